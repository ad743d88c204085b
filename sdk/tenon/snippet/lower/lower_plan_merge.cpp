// Which two sweeps are merged (LowerOptions::merge_sweeps): the second sums a function of the result of the first, and
// there is a rule by which such sums are rescaled.
#include <algorithm>

#include <tenon/snippet/lower/lower_plan_internal.hpp>

namespace tenon::snippet {
bool may_merge_sweeps(const Body& body) {
  std::vector<char> behind(body.values.size(), 0);
  for (const BodyNode& node : body.nodes) {
    const auto at = [&](ValueId id) { return static_cast<size_t>(id); };
    for (const ValueId operand : node.operands) behind[at(node.result)] |= behind[at(operand)];
    if (node.op == "ReduceSum" && behind[at(node.result)] && body.values[at(node.result)].element.is_float())
      return true;
    behind[at(node.result)] |= is_reduction(node.op);
  }
  return false;
}

// The values that depend on the folds of a sweep.
std::vector<char> Planner::behind_folds(const Sweep& sweep) const {
  std::vector<char> behind(body_.values.size(), 0);
  for (const BodyNode* fold : sweep.folds) behind[index(fold->result)] = 1;
  for (const BodyNode& node : body_.nodes)
    for (const ValueId operand : node.operands) behind[index(node.result)] |= behind[index(operand)];
  return behind;
}

// The sums of `second`, if each can be rescaled, and nothing else in it depends on the folds of `first`.
std::vector<MovedSum> Planner::moved_sums(const Nest& nest, const Sweep& first, const Sweep& second) const {
  const std::vector<char> behind = behind_folds(first);
  const auto goes_by = [&](ValueId id) { return behind[index(id)] != 0; };
  const auto is_result = [&](const BodyNode* fold) {
    return std::ranges::any_of(nest.roots, [&](const Access& root) { return root.value == fold->result; });
  };
  if (first.folds.empty() || second.folds.empty() || first.loops != second.loops) return {};
  if (!nest.whole_rows && (nest.tiled || first.loops.back() != nest.vector)) return {};
  if (nest.whole_rows && (std::ranges::any_of(first.folds, is_result) || std::ranges::any_of(second.folds, is_result)))
    return {};
  if (!plan_.behind && std::ranges::any_of(second.stores, [&](const Access& store) { return goes_by(store.value); }))
    return {};
  std::vector<MovedSum> sums;
  for (const BodyNode* fold : second.folds) {
    const auto sum = moved_sum(body_, maker_, *fold, first.folds);
    if (!sum || !contains(varies(sum->difference->result), first.loops.back())) return {};
    sums.push_back(*sum);
  }
  const auto is_term = [&](ValueId id) {
    return std::ranges::any_of(
        sums, [&](const MovedSum& sum) { return id == sum.term->result || id == sum.difference->result; });
  };
  for (const ValueId id : second.values)
    if (goes_by(id) && !is_term(id)) return {};
  return sums;
}

// Values and memory of both, without what depends on the first one's folds.
Sweep Planner::joined_sweep(const Sweep& first, const Sweep& second) const {
  const std::vector<char> behind = behind_folds(first);
  Sweep both = first;
  both.values.clear();
  const auto has = [](const std::vector<ValueId>& ids, ValueId id) { return std::ranges::find(ids, id) != ids.end(); };
  for (const ValueId id : order_)
    if (!behind[index(id)] && (has(first.values, id) || has(second.values, id))) both.values.push_back(id);
  for (const Access& read : second.reads) {
    const auto same = [&](const Access& other) { return other.value == read.value; };
    if (!has(both.values, read.value) && std::ranges::none_of(both.reads, same)) both.reads.push_back(read);
  }
  both.stores.insert(both.stores.end(), second.stores.begin(), second.stores.end());
  return both;
}

// Whether the second sweep keeps for the last one, which runs a block behind, only exponentials that can be rescaled
// and values that do not depend on the first sweep.
bool Planner::may_move_kept(const Scope& scope, size_t first, const std::vector<MovedSum>& sums) const {
  if (first + 3 != scope.phases.size() || scope.phases[first + 1].sweeps.size() != 1) return false;
  if (std::ranges::any_of(sums, &MovedSum::squares)) return false;
  const std::vector<char> behind = behind_folds(scope.phases[first].sweeps.front());
  return std::ranges::all_of(scope.phases[first + 1].sweeps.front().stores, [&](const Access& store) {
    const auto is_power = [&](const MovedSum& sum) { return sum.term->result == store.value; };
    return !behind[index(store.value)] || std::ranges::any_of(sums, is_power);
  });
}

// Drops what the first sweep kept for the second only: the merged sweep has it in registers.
void Planner::drop_unread_stores(const Nest& nest, const Scope& scope, Sweep& sweep) const {
  const auto reads = [](const Sweep& of, int port) {
    return std::ranges::find(of.reads, port, &Access::port) != of.reads.end();
  };
  const auto is_read = [&](int port) {
    return reads(sweep, port) || std::ranges::any_of(scope.phases, [&](const Phase& phase) {
             return std::ranges::any_of(phase.sweeps, [&](const Sweep& other) { return reads(other, port); });
           });
  };
  const auto is_result = [&](const Access& store) {
    return std::ranges::any_of(
        nest.roots, [&](const Access& root) { return root.value == store.value && root.port == store.port; });
  };
  std::erase_if(sweep.stores, [&](const Access& store) { return !is_result(store) && !is_read(store.port); });
}

void Planner::merge_sweeps(const Nest& nest, Scope& scope) {
  for (size_t i = 0; i + 1 < scope.phases.size(); ++i) {
    Phase &phase = scope.phases[i], &next = scope.phases[i + 1];
    if (phase.settles >= 0 || phase.sweeps.size() != 1 || next.sweeps.empty()) continue;
    const std::vector<MovedSum> sums = moved_sums(nest, phase.sweeps.front(), next.sweeps.front());
    if (sums.empty() || (plan_.behind && !may_move_kept(scope, i, sums))) continue;
    if (plan_.body.values.empty()) plan_.body = body_;
    plan_.mergings.push_back(
        merging_of(plan_.body, joined_sweep(phase.sweeps.front(), next.sweeps.front()), sums, !nest.whole_rows));
    if (plan_.behind) {
      Merging& merging = plan_.mergings.back();
      std::vector<int> ports;
      for (const Merging::Subtracted& one : merging.subtracted) {
        plan_.scratch.push_back(
            {plan_.body.values[index(one.next)].element, reduced_ | DimSet{1} << nest.vector, false});
        ports.push_back(last_scratch());
      }
      move_kept(plan_.body, merging, scope.phases.back(), sums, ports);
    }
    phase.merges = next.settles = static_cast<int>(plan_.mergings.size()) - 1;
    phase.sweeps.clear();
    next.sweeps.erase(next.sweeps.begin());
    drop_unread_stores(nest, scope, plan_.mergings.back().sweep);
  }
}

}  // namespace tenon::snippet
