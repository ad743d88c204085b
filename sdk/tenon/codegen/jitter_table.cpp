#include <tenon/codegen/jitter_table.hpp>

#include <algorithm>
#include <optional>

namespace tenon::codegen {
namespace {

bool runs_on(const JitterRow& row, const TargetDescription& target) {
  if (!row.feature.empty() && !target.has_feature(row.feature)) return false;
  return row.without.empty() || !target.has_feature(row.without);
}

// What a row must contain in `types`; nothing: no row matches.
std::optional<LaneTypes> types_wanted(const Signature& signature) {
  LaneTypes wanted;
  bool masks = false;
  for (const std::span<const ElementType> side : {signature.in, signature.out}) {
    for (const ElementType element : side) {
      if (element.is_bool())
        masks = true;
      else if (!kNumberLanes.contains(element))
        return std::nullopt;
      else
        wanted.add(element);
    }
  }
  return masks && wanted == LaneTypes{} ? kBoolLanes : wanted;
}

bool accepts(const JitterRow& row, const Signature& signature, LaneTypes wanted) {
  return (row.types | wanted) == row.types && (!row.accepts || row.accepts(signature));
}

}  // namespace

bool JitterRow::matches(const Signature& signature) const {
  const auto wanted = signature.op == op ? types_wanted(signature) : std::nullopt;
  return wanted && codegen::accepts(*this, signature, *wanted);
}

Result<void> JitterTable::add(JitterRow row) {
  if (row.op.empty() || !row.make || row.types == LaneTypes{}) {
    return error(Code::invalid_argument, "a row of the ", kind_, " jitter table for operator '", row.op,
                 "' needs a name, an emitter and element types");
  }
  std::vector<JitterRow>& rows = rows_[row.op];
  rows.push_back(std::move(row));
  return {};
}

Result<void> JitterTable::add(std::vector<JitterRow> rows) {
  for (JitterRow& row : rows) TENON_OK(add(std::move(row)));
  return {};
}

const JitterRow* JitterTable::find(const Signature& signature, const TargetDescription& target) const {
  const auto found = rows_.find(signature.op);
  const auto wanted = found == rows_.end() ? std::nullopt : types_wanted(signature);
  if (!wanted) return nullptr;
  for (const JitterRow& row : found->second)
    if (runs_on(row, target) && accepts(row, signature, *wanted)) return &row;
  return nullptr;
}

JitterTable JitterTable::of_machine(const TargetDescription& target) const {
  JitterTable made(kind_);
  for (const auto& [name, rows] : rows_) {
    for (const JitterRow& row : rows) {
      if (!runs_on(row, target)) continue;
      JitterRow& kept = made.rows_[name].emplace_back(row);
      kept.feature.clear(), kept.without.clear();
    }
  }
  return made;
}

std::vector<const JitterRow*> JitterTable::rows() const {
  std::vector<const std::vector<JitterRow>*> by_name;
  for (const auto& [name, rows] : rows_) by_name.push_back(&rows);
  std::sort(by_name.begin(), by_name.end(), [](auto* a, auto* b) { return a->front().op < b->front().op; });
  std::vector<const JitterRow*> all;
  for (const std::vector<JitterRow>* rows : by_name)
    for (const JitterRow& row : *rows) all.push_back(&row);
  return all;
}

}  // namespace tenon::codegen
