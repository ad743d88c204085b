#include <tenon/passes/change.hpp>

#include <algorithm>
#include <tenon/passes/local_internal.hpp>
#include <unordered_set>

namespace tenon {
namespace {

bool every_inner_op(const Op& op, bool (*test)(const Op&)) {
  for (size_t i = 0; i < op.region_count(); ++i) {
    const Region& region = op.region(i);
    if (!std::all_of(region.begin(), region.end(), test)) return false;
  }
  return true;
}

bool is_inside(const Op& inner, const Op& op) {
  for (const Region* around = inner.parent(); around->parent(); around = around->outer()) {
    if (around->parent() == &op) return true;
  }
  return false;
}

// The producers of what `op` and the operators in its regions read, without the latter, which are erased together with
// it. Operators with regions are rare, so copies do not matter.
std::vector<Op*> producers_read_by(const Op& op) {
  std::vector<Op*> producers;
  const auto add = [&](const Op& reader) {
    for (size_t i = 0; i < reader.operand_count(); ++i) {
      if (reader.operand(i) && reader.operand(i)->producer()) producers.push_back(reader.operand(i)->producer());
    }
  };
  add(op);
  for (size_t i = 0; i < op.region_count(); ++i) {
    for_each_op(std::as_const(op.region(i)), [&](const Op& inner) { add(inner); });
    add(op.region(i).return_op());
  }
  std::erase_if(producers, [&](const Op* producer) { return is_inside(*producer, op); });
  std::sort(producers.begin(), producers.end());
  producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
  return producers;
}

}  // namespace

bool has_no_effect(const Op& op) {
  const OpDef* def = op.def();
  return def && (def->has(Trait::pure) || def->has(Trait::random)) && every_inner_op(op, has_no_effect);
}

bool is_repeatable(const Op& op) {
  const OpDef* def = op.def();
  return def && def->has(Trait::pure) && !def->has(Trait::random) && every_inner_op(op, is_repeatable);
}

Result<void> replace_value(Value& old, Value& by) {
  if (&old == &by) return {};
  if (old.type() != by.type()) {
    auto merged = merge(old.type(), by.type());
    if (!merged.ok()) {
      return error(Code::internal, "%", old.name(), " of type ", old.type(), " cannot become %", by.name(), " of type ",
                   by.type(), ": ", merged.error().message());
    }
    if (by.producer()) by.set_type(*std::move(merged));
  }
  if (by.producer() && by.name().empty()) by.set_name(old.name());
  old.replace_all_uses_with(&by);
  return {};
}

void erase_dead(Op& op, const std::function<void(Op&)>& erasing) {
  std::unordered_set<const Op*> gone;  // an operator that several of them read is in the list several times
  std::vector<Op*> candidates = {&op};
  while (!candidates.empty()) {
    Op* candidate = candidates.back();
    candidates.pop_back();
    if (gone.contains(candidate) || candidate->has_uses() || !has_no_effect(*candidate)) continue;
    const std::vector<Op*> producers = producers_read_by(*candidate);
    gone.insert(candidate);
    if (erasing) erasing(*candidate);
    candidate->erase();
    candidates.insert(candidates.end(), producers.begin(), producers.end());
  }
}

bool have_same_shape(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor() || !a.shape().ranked() || !b.shape().ranked()) return false;
  return std::ranges::equal(a.shape().dims(), b.shape().dims(),
                            [](const Dim& x, const Dim& y) { return x.same_extent(y); });
}

}  // namespace tenon
