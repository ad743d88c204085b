// What values of a network look like: ranges and histograms that calibration collects, kept in a file.
//
// Values are known by keys that say how they are made, not what they are called (structural_keys): a profile serves the
// same network under other names, at another batch, and cut into parts.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::quant {

// How often |x| lies where. Bins divide [0, 2^exponent); zeros are left out, since every scale holds them exactly. The
// range doubles when a number does not fit, two bins becoming one: the order in which numbers come does not matter.
class TENON_API Histogram {
 public:
  static constexpr size_t kBins = 2048;
  Histogram() = default;
  Histogram(int64_t exponent, std::vector<uint64_t> bins) : exponent_(exponent), bins_(std::move(bins)) {}

  void add(std::span<const float> numbers);  // infinities and NaNs are left out
  void add(const Histogram& other);
  bool empty() const { return bins_.empty(); }
  int64_t exponent() const { return exponent_; }
  const std::vector<uint64_t>& bins() const { return bins_; }  // kBins, or none when empty

 private:
  void reach(int64_t exponent);
  int64_t exponent_ = 0;
  std::vector<uint64_t> bins_;
};

struct TENON_API ValueProfile {
  std::string name;                // in the model that was profiled: for people
  double least = 0, greatest = 0;  // with 0 among them, as padding is
  Histogram magnitudes;
  void add(std::span<const float> numbers);
};

enum class Method : uint8_t {
  minmax,  // nothing is cut off: 127 steps reach the largest magnitude
  kl,      // of that step and parts of it down to a sixteenth, the one with the least divergence (Kullback, Leibler) of
           // the 8-bit distribution from the one that was measured
};
// The step between neighbours of 8 bits; 1 for a value that is always 0.
TENON_API double step_of(const ValueProfile& profile, Method method);

struct TENON_API Profile {
  int64_t samples = 0;
  std::map<std::string, ValueProfile> values;  // by key

  std::string to_json() const;
  // JSON, or YAML of the same form; `file` names it in errors.
  static Result<Profile> parse(std::string_view text, std::string_view file);
};

// A key for each value of the graph's body: operator, attributes, and constants of the operators that make it, back to
// the next operators with weights. So what stands before weights does not matter, names and extents of a batch neither;
// two alike are told apart by their order. `inputs`: keys of the graph's inputs by place, for parts of a graph whose
// inputs have keys already; the rest count as inputs of a network.
TENON_API std::unordered_map<const Value*, std::string> structural_keys(
    const Graph& graph, const std::unordered_map<size_t, std::string>& inputs = {});

}  // namespace tenon::quant
