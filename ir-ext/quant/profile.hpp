// Statistics of the values of a network: ranges and histograms that calibration collects, stored in a file.
//
// Values are identified by keys that state how they are computed, not by their names (structural_keys): a profile
// serves the same network with other names, with another batch size, and divided into parts.
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

// A histogram of |x|. Bins divide [0, 2^exponent); zeros are left out, because every scale represents them exactly. The
// range doubles when a number does not fit, by merging pairs of bins, so the order of the numbers does not matter.
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
  std::string name;                // in the profiled model: for readers
  double least = 0, greatest = 0;  // including 0, which padding has
  Histogram magnitudes;
  void add(std::span<const float> numbers);
};

enum class Method : uint8_t {
  minmax,  // nothing is clipped: 127 steps reach the largest magnitude
  kl,      // among that step and fractions of it down to a sixteenth, the one with the least divergence (Kullback,
           // Leibler) of the 8-bit distribution from the measured one
};
// The step between adjacent 8-bit values; 1 for a value that is always 0.
TENON_API double step_of(const ValueProfile& profile, Method method);

struct TENON_API Profile {
  int64_t samples = 0;
  std::map<std::string, ValueProfile> values;  // by key

  std::string to_json() const;
  // JSON, or YAML of the same form; `file` names it in errors.
  static Result<Profile> parse(std::string_view text, std::string_view file);
};

// A key for each value of the graph's body, from operator, attributes, and constants of the operators that produce it,
// back to the previous operators with weights. Therefore, what precedes weights does not matter, nor do names or the
// batch size; equal keys are distinguished by their order. `inputs`: keys of the graph's inputs by position, for parts
// of a graph whose inputs already have keys; other inputs count as inputs of a network.
TENON_API std::unordered_map<const Value*, std::string> structural_keys(
    const Graph& graph, const std::unordered_map<size_t, std::string>& inputs = {});

}  // namespace tenon::quant
