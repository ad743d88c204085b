#include <tenon/ir/layout_report.hpp>

#include <algorithm>
#include <array>

#include <tenon/support/str.hpp>

namespace tenon {
namespace {

// Like quote(), with control bytes escaped as in JSON.
std::string json_string(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      out += str("\\u00", kHex[byte >> 4], kHex[byte & 15]);
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

std::string json_of(const LayoutStep& step) {
  std::string forced;
  for (const std::string& by : step.forced_by) forced += (forced.empty() ? "" : ", ") + json_string(by);
  return str("{\"kind\": ", json_string(layout_step_kind_name(step.kind)), ", \"tensor\": ", json_string(step.tensor),
             ", \"from\": ", json_string(step.from), ", \"to\": ", json_string(step.to), ", \"bytes\": ", step.bytes,
             ", \"cost\": ", step.cost, ", \"forced_by\": [", forced, "]}");
}

std::string line_of(const LayoutStep& step) {
  const std::string what = step.kind == LayoutStep::Kind::scrub ? step.to : str(step.from, " -> ", step.to);
  std::string forced;
  for (const std::string& by : step.forced_by) forced += (forced.empty() ? "" : ", ") + by;
  return str(layout_step_kind_name(step.kind), " '", step.tensor, "' ", what, ": ", step.bytes, " bytes, cost ",
             step.cost, ", for ", forced, "\n");
}

}  // namespace

std::string_view layout_step_kind_name(LayoutStep::Kind kind) {
  static constexpr std::array<std::string_view, 3> kNames = {"reorder", "scrub", "constant"};
  return kNames[static_cast<size_t>(kind)];
}

size_t LayoutReport::count(LayoutStep::Kind kind) const {
  return static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [&](const auto& step) { return step.kind == kind; }));
}

int64_t LayoutReport::bytes() const {
  int64_t sum = 0;
  for (const LayoutStep& step : steps) sum += step.kind == LayoutStep::Kind::constant ? 0 : step.bytes;
  return sum;
}

void LayoutReport::append(const LayoutReport& other) {
  steps.insert(steps.end(), other.steps.begin(), other.steps.end());
  cost += other.cost;
  kernel_cost += other.kernel_cost;
  lower_bound += other.lower_bound;
  proven = proven && other.proven;
}

std::string LayoutReport::to_string() const {
  if (empty()) return "";
  std::string out;
  for (const LayoutStep& step : steps) out += line_of(step);
  const std::string best =
      proven ? "the least there is" : str("not proven to be the least, which is above ", lower_bound);
  return out + str("layouts: ", count(LayoutStep::Kind::reorder), " reorders, ", count(LayoutStep::Kind::scrub),
                   " scrubs, ", bytes(), " bytes; cost ", cost, ", of which kernels ", kernel_cost, "; ", best, "\n");
}

std::string LayoutReport::to_json() const {
  std::string list;
  for (const LayoutStep& step : steps) list += (list.empty() ? "" : ", ") + json_of(step);
  return str("{\"cost\": ", cost, ", \"kernel_cost\": ", kernel_cost, ", \"lower_bound\": ", lower_bound,
             ", \"proven\": ", proven, ", \"bytes\": ", bytes(), ", \"steps\": [", list, "]}");
}

}  // namespace tenon
