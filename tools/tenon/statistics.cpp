#include "statistics.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

namespace tenon::cli {
namespace {

void say_times(const std::vector<OpProfile>& profile, const Session& session, Json& document) {
  struct Cost {
    int count = 0;
    double us = 0;
  };
  std::map<std::string, Cost> by_op;
  double total = 0;
  for (const OpProfile& op : profile) {
    by_op[op.op].count += 1;
    by_op[op.op].us += op.microseconds;
    total += op.microseconds;
  }
  std::vector<std::pair<std::string, Cost>> rows(by_op.begin(), by_op.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  session.say("time by operator (last run):");
  document["stats"] = Json::array();
  for (const auto& [op, cost] : rows) {
    session.say(str("  ", fixed(cost.us / 1000, 3), " ms  ", fixed(100 * cost.us / std::max(total, 1e-9), 1), "%  ", op,
                    " x", cost.count));
    document["stats"].push_back({{"op", op}, {"count", cost.count}, {"milliseconds", cost.us / 1000}});
  }
}

// Reports device counters: per operator in the document, their sums as text.
void say_counters(const std::vector<OpProfile>& profile, const Session& session, Json& document) {
  Json list = Json::array();
  std::vector<std::pair<std::string, int64_t>> sums;
  for (const OpProfile& op : profile) {
    if (op.counters.empty()) continue;
    Json counters = Json::object();
    for (const auto& [name, count] : op.counters) {
      counters[name] = count;
      const auto known = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.first == name; });
      if (known == sums.end()) {
        sums.emplace_back(name, count);
      } else {
        known->second += count;
      }
    }
    list.push_back({{"op", op.op}, {"label", op.label}, {"counters", std::move(counters)}});
  }
  if (list.empty()) return;
  document["counters"] = std::move(list);
  std::string line = "counted by the device:";
  for (const auto& [name, sum] : sums) line += str(" ", name, " ", sum, &sum == &sums.back().second ? "" : ",");
  session.say(line);
}

// Measured times of kernels, by operator and label, in the order of the profile.
class Measured {
 public:
  explicit Measured(const std::vector<OpProfile>& profile) {
    for (const OpProfile& op : profile) times_[{op.op, op.label}].push_back(op.microseconds);
  }
  double take(const KernelInfo& kernel) {
    const Key key{kernel.op, kernel.label};
    std::vector<double>& times = times_[key];
    size_t& at = taken_[key];
    return at < times.size() ? times[at++] : 0;
  }

 private:
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::vector<double>> times_;
  std::map<Key, size_t> taken_;
};

// For an operator without a label in the model (targets number these: "#3"): its content, as far as a line holds it.
std::string name_of(const KernelInfo& kernel) {
  constexpr size_t kOperatorsNamed = 4;
  if (!kernel.label.empty() && kernel.label.front() != '#') return kernel.label;
  std::string name;
  for (size_t i = 0; i < std::min(kernel.operators.size(), kOperatorsNamed); ++i)
    name += str(i == 0 ? "" : " + ", kernel.operators[i]);
  return kernel.operators.size() > kOperatorsNamed ? name + " + ..." : name;
}

Json to_json(const KernelInfo& kernel, const std::string& target, double measured_us) {
  Json stages = Json::array();
  for (const KernelStage& stage : kernel.stages)
    stages.push_back({{"name", stage.name}, {"code_bytes", stage.code_bytes}});
  return {{"op", kernel.op},
          {"label", kernel.label},
          {"name", name_of(kernel)},
          {"target", target},
          {"operators", kernel.operators},
          {"parameters", kernel.parameters},
          {"results", kernel.results},
          {"constants", kernel.constants},
          {"bytes_unfused", kernel.bytes_unfused},
          {"bytes_fused", kernel.bytes_fused},
          {"predicted_us", kernel.predicted_us},
          {"measured_us", measured_us},
          {"code_bytes", kernel.code_bytes},
          {"stages", std::move(stages)}};
}

// With nanoseconds where a tenth would be too coarse: small kernels take a few.
std::string microseconds(double us) { return fixed(us, us < 1 ? 3 : 1); }

// For reductions that threads share, what runs instead of the kernel.
std::string stages_of(const KernelInfo& kernel) {
  std::string text;
  for (const KernelStage& stage : kernel.stages)
    text += str(text.empty() ? "; shared by threads as " : ", ", stage.name, " (", stage.code_bytes, " bytes)");
  return text;
}

std::string to_line(const KernelInfo& kernel, double measured_us) {
  const double gain = kernel.bytes_fused > 0 ? kernel.bytes_unfused / kernel.bytes_fused : 1;
  const double rate = measured_us > 0 ? kernel.bytes_fused / measured_us / 1000 : 0;
  return str("  ", name_of(kernel), ": ", kernel.operators.size(),
             kernel.operators.size() == 1 ? " operator, " : " operators, ", kernel.parameters, " in, ", kernel.results,
             " out; ", fixed(kernel.bytes_unfused / 1e6, 3), " MB unfused, ", fixed(kernel.bytes_fused / 1e6, 3),
             " MB fused (", fixed(gain, 1), "x); predicted ", microseconds(kernel.predicted_us), " us, measured ",
             microseconds(measured_us), " us (", fixed(rate, 1), " GB/s); ", kernel.code_bytes, " bytes of code",
             stages_of(kernel));
}

struct MeasuredKernel {
  KernelInfo info;
  std::string target;
  double us = 0;
};
std::vector<MeasuredKernel> kernels_of(const CompiledModel& model, const std::vector<OpProfile>& profile) {
  Measured measured(profile);
  std::vector<MeasuredKernel> kernels;
  for (const CompiledModel::Segment& segment : model.segments()) {
    for (KernelInfo& info : segment.executable->kernels()) {
      const double us = measured.take(info);
      kernels.push_back({std::move(info), segment.target, us});
    }
  }
  return kernels;
}

// The text lists the slowest kernels, the document all of them.
constexpr size_t kKernelsShown = 10;

void say_kernels(const CompiledModel& model, const std::vector<OpProfile>& profile, const Session& session,
                 Json& document) {
  document["kernels"] = Json::array();
  std::vector<std::pair<double, std::string>> lines;
  double unfused = 0, fused = 0;
  for (const MeasuredKernel& kernel : kernels_of(model, profile)) {
    lines.emplace_back(kernel.us, to_line(kernel.info, kernel.us));
    document["kernels"].push_back(to_json(kernel.info, kernel.target, kernel.us));
    unfused += kernel.info.bytes_unfused;
    fused += kernel.info.bytes_fused;
  }
  if (lines.empty()) return;
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  session.say("generated kernels (bytes walked by their operators one by one, and fused):");
  for (size_t i = 0; i < std::min(lines.size(), kKernelsShown); ++i) session.say(lines[i].second);
  session.say(str("  all ", lines.size(), " kernels: ", fixed(unfused / 1e6, 3), " MB unfused, ", fixed(fused / 1e6, 3),
                  " MB fused"));
}

}  // namespace

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

Json kernels_to_json(const CompiledModel& model, const std::vector<OpProfile>& profile) {
  Json kernels = Json::array();
  for (const MeasuredKernel& kernel : kernels_of(model, profile))
    kernels.push_back(to_json(kernel.info, kernel.target, kernel.us));
  return kernels;
}

void say_statistics(const CompiledModel& model, const std::vector<OpProfile>& profile, const Session& session,
                    Json& document) {
  say_times(profile, session, document);
  say_counters(profile, session, document);
  say_kernels(model, profile, session, document);
  session.say(str("arena ", model.arena_bytes(), " bytes, lower bound ", model.arena_lower_bound_bytes()));
  document["arena_bytes"] = model.arena_bytes();
  document["arena_lower_bound_bytes"] = model.arena_lower_bound_bytes();
  if (!model.layouts().empty()) session.say(model.layouts().to_string());
  document["layouts"] = Json::parse(model.layouts().to_json());
}

}  // namespace tenon::cli
