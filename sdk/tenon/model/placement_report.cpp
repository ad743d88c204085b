// The placement report: which target runs each operator, and why others do not.
#include <algorithm>
#include <map>

#include <tenon/model/compiled_model.hpp>
#include <tenon/support/str.hpp>

namespace tenon {

double PlacementReport::coverage(std::string_view target) const {
  if (entries.empty()) return 1;
  const auto there =
      std::count_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.target == target; });
  return static_cast<double>(there) / static_cast<double>(entries.size());
}

std::string PlacementReport::to_string() const {
  std::map<std::string, std::map<std::string, int>> operators;                     // target -> operator -> count
  std::map<std::string, std::map<std::string, std::vector<std::string>>> refused;  // target -> reason -> labels
  for (const auto& entry : entries) {
    ++operators[entry.target][entry.op];
    for (const auto& [target, reason] : entry.refusals) {
      refused[target][reason].push_back(entry.label.empty() ? entry.op : entry.label);
    }
  }
  std::string out;
  for (const auto& [target, counts] : operators) {
    int total = 0;
    for (const auto& [op, count] : counts) total += count;
    out += str(target, ": ", total, " of ", entries.size(), " operators\n ");
    for (const auto& [op, count] : counts) out += str(" ", op, count > 1 ? str(" x", count) : std::string());
    out += "\n";
  }
  for (const auto& [target, reasons] : refused) {
    out += str("refused by ", target, ":\n");
    for (const auto& [reason, labels] : reasons) {
      out += str("  ", reason, " (", labels.size(), ": ", labels[0], labels.size() > 1 ? ", ..." : "", ")\n");
    }
  }
  return out;
}

}  // namespace tenon
