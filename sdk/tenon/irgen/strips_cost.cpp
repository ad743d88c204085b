#include <tenon/irgen/strips_cost.hpp>

#include <algorithm>

#include <tenon/support/str.hpp>

namespace tenon::irgen {

namespace {

// Overhead of a kernel call on crops: views, a look-up, and the kernel's own startup time.
constexpr double kSecondsPerCall = 1e-6;

double rounded(double value, double digits) {
  return static_cast<double>(static_cast<int64_t>(value * digits + 0.5)) / digits;
}

}  // namespace

CostModel strip_model() {
  CostModel model = CostModel::host();
  model.seconds_per_call = kSecondsPerCall;
  return model;
}

CostModel strip_model(const TargetDescription& target) {
  if (std::ranges::count_if(target.memories, [](const MemorySpace& m) { return m.size_bytes > 0; }) < 2)
    return strip_model();  // nothing is measured: the same strips on any machine
  CostModel model = CostModel::of(target);
  model.seconds_per_call = kSecondsPerCall;
  return model;
}

void StripCost::move(const CostModel& model, double bytes, double working_set) {
  size_t level = 0;
  while (model.memories[level].bytes != 0 && working_set > model.memories[level].bytes) ++level;
  moved_bytes[level] += bytes;
  seconds += bytes / model.memories[level].bytes_per_second;
}

void StripCost::move_and_compute(const CostModel& model, double bytes, double working_set, double arithmetic_seconds) {
  const double before = seconds;
  move(model, bytes, working_set);
  seconds = before + std::max(seconds - before, arithmetic_seconds);
}

std::string to_string(const StripCost& cost, const CostModel& model) {
  std::string out;
  for (size_t i = model.memories.size(); i-- > 0;)
    if (cost.moved_bytes[i] > 0)
      out += str(rounded(cost.moved_bytes[i] / 1e6, 1000), " MB through ", model.memories[i].name, ", ");
  return out + str(rounded(cost.seconds * 1e3, 1000), " ms, ", cost.peak_bytes, " bytes at most");
}

}  // namespace tenon::irgen
