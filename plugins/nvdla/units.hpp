// The units of the machine during a run of commands: the checks, the work and the counters of each command.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tenon/support/parallel.hpp>
#include <tenon/support/result.hpp>

#include "nvdla/arithmetic.hpp"
#include "nvdla/checks.hpp"
#include "nvdla/clock.hpp"
#include "nvdla/command.hpp"
#include "nvdla/hardware.hpp"
#include "nvdla/simulator.hpp"

namespace tenon::nvdla {

enum class Role : uint8_t { empty, data, weights };

// The convolution buffer.
struct Buffer {
  explicit Buffer(const Hardware& hardware)
      : bytes(static_cast<size_t>(hardware.entries() * hardware.entry_bytes)),
        loaded(static_cast<size_t>(hardware.entries())),
        roles(static_cast<size_t>(hardware.banks)) {}
  std::vector<std::byte> bytes;
  std::vector<bool> loaded;  // by entry
  std::vector<Role> roles;   // by bank
};

class Units {
 public:
  Units(const Hardware& hardware, Buffer& buffer, std::span<std::byte> dram, ParallelFor& parallel)
      : h_(hardware), buffer_(buffer), dram_(dram), parallel_(parallel), clock_(hardware) {}

  Result<void> step(const Words& words);
  Counters counters() const;

 private:
  int64_t dram_bytes() const { return static_cast<int64_t>(dram_.size()); }

  // units_load.cpp
  Result<void> begin();
  Result<void> load_data(const Command& c);
  Result<void> load_weights(const Command& c);
  // Claims entries that are loaded, and checks entries that are read.
  Result<void> take(std::string_view what, int64_t first, int64_t count, Role role);
  Result<void> uses(std::string_view what, int64_t first, int64_t count, Role role);

  // units_conv.cpp
  template <class T>
  Result<void> convolve(const Command& c);
  Result<void> check_conv(const Command& c) const;
  Result<void> check_held(const Command& c);
  Result<void> check_rows(const Command& c) const;
  Result<void> check_weights(const Command& c);
  DramImage result_image(const Command& c, int64_t rows, int64_t width) const;
  DramImage operand_image(const Command& c, const DramImage& result, int64_t rows, int64_t width) const;
  template <class T>
  T bias_at(const Command& c, int64_t kernel) const;
  // Results of SDP: [row][column][kernel], lanes rounded up.
  template <class T>
  std::vector<float> conv_values(const Command& c, const DramImage& operand);
  template <class T>
  void finish_row(const Command& c, const DramImage& operand, int64_t row, int64_t lanes, const T* sums,
                  const std::vector<T>& bias, float* values) const;
  void write_results(const Command& c, const std::vector<float>& values, const DramImage& result) const;
  void count(const Command& c, const DramImage& result);

  // units_post.cpp: SDP and PDP
  Result<void> elementwise(const Command& c);
  Result<void> pool(const Command& c);
  Result<void> check_sdp(const Command& c) const;
  Result<void> check_pool(const Command& c, int64_t height) const;
  std::byte* place(const DramImage& image, int64_t channel, int64_t row, int64_t column) const;
  float element(const DramImage& image, int64_t channel, int64_t row, int64_t column) const;
  void account(int64_t cycles, int64_t read, int64_t stored);

  const Hardware& h_;
  Buffer& buffer_;
  std::span<std::byte> dram_;
  ParallelFor& parallel_;
  Clock clock_;
  Counters counters_;
};

// Cycles for `elements` in a unit of `lanes` lanes; 0 where the target does not state it.
inline int64_t at_rate(int64_t elements, int64_t lanes) { return lanes == 0 ? 0 : ceil_div(elements, lanes); }

}  // namespace tenon::nvdla
