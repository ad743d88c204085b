// Column reductions in whole rows: which nests process them, and what is passed from one sweep along the row to the
// next.
#include <algorithm>
#include <bit>

#include <tenon/snippet/lower/lower_plan_internal.hpp>

namespace tenon::snippet {

bool Planner::walks_rows(const Nest& nest) const {
  if (!options_.whole_rows || !nest.tiled || static_cast<size_t>(nest.vector) + 1 != body_.rank()) return false;
  const int innermost = std::bit_width(reduced_) - 1;
  bool folds = false;
  for (const ValueId id : order_) {
    if (!needed_[index(id)] || !contains(varies(id), nest.vector)) continue;
    folds |= swept(id) || reduction(id);
    // A tile holds it in registers while the innermost loop runs; here each of its rows would recompute it.
    if (swept(id) && !contains(varies(id), innermost) && costs_more_again(id, options_.recompute_cycles)) return false;
  }
  return folds;
}

bool may_join_rows(const Body& body) {
  const size_t rank = body.rank();
  if (rank < 2 || body.dims[rank - 1].reduced || !body.dims[rank - 2].reduced || body.has_cuts()) return false;
  const DimSet both = DimSet{3} << (rank - 2), reduced = body.reduced_dims();
  const auto has_both = [&](ValueId id) {
    const DimSet dims = body.values[static_cast<size_t>(id)].varies;
    return (dims & reduced) == 0 || (dims & both) == both;
  };
  for (size_t id = 0; id < body.values.size(); ++id)
    if (!has_both(static_cast<ValueId>(id))) return false;
  return std::ranges::all_of(body.nodes, [&](const BodyNode& node) {
    return !is_reduction(node.op) || (body.values[static_cast<size_t>(node.operands[0])].varies & reduced) != 0;
  });
}

bool Planner::joins() const { return options_.join_rows && may_join_rows(body_); }

// One element per column: computed here, or, where rows are joined, read, since each row of a joined one needs it.
bool Planner::in_row(const Nest& nest, ValueId id) const {
  return needed_[index(id)] && (maker_[index(id)] || joins()) && !swept(id) && contains(varies(id), nest.vector);
}

// Values of a phase that only its own sweep uses stay in registers.
void Planner::plan_rows(Nest& nest) {
  std::vector<char> wanted(body_.values.size(), 0);
  for (const ValueId user : order_) {
    const BodyNode* node = maker_[index(user)];
    if (!node || !needed_[index(user)]) continue;
    for (const ValueId operand : node->operands) {
      const bool elsewhere = swept(user) || is_reduction(node->op) || phase_[index(operand)] != phase_[index(user)];
      if (in_row(nest, operand) && elsewhere) wanted[index(operand)] = 1;
    }
  }
  nest.rows.clear();
  for (const ValueId id : order_) {
    if (!in_row(nest, id) || !(reduction(id) || wanted[index(id)])) continue;
    plan_.scratch.push_back({body_.values[index(id)].element, DimSet{1} << nest.vector, false});
    nest.rows.push_back({id, last_scratch()});
  }
  for (const Phase& phase : nest.scopes.back().phases)
    if (phase.merges >= 0) add_merged_rows(nest, plan_.mergings[static_cast<size_t>(phase.merges)]);
}

// The running folds. Where each column has one such value, the last is the result; joined rows have one each.
void Planner::add_merged_rows(Nest& nest, const Merging& merging) {
  const auto add = [&](ValueId state) {
    plan_.scratch.push_back({plan_.body.values[index(state)].element, DimSet{1} << nest.vector, false});
    nest.rows.push_back({state, last_scratch()});
  };
  for (const std::vector<Merging::Fold>* folds : {&merging.folds, &merging.sums}) {
    for (const Merging::Fold& one : *folds) {
      const auto whole = std::ranges::find(nest.rows, one.node.result, &Access::value);
      if (joins() || whole == nest.rows.end())
        add(one.state);
      else
        nest.rows.push_back({one.state, whole->port});
    }
  }
  if (merging.count) add(merging.count->state);
  std::ranges::for_each(merging.negated, add);
  for (const Merging::Subtracted& one : merging.subtracted)
    if (!one.is_fold) add(one.state);
}

// Whether the last sweep may run one block behind the others: it folds nothing, and reads only what the sweep before it
// keeps, over the same loops, and rows that are computed between the two: everything else would be of the next block
// then.
bool Planner::may_go_behind(const Nest& nest) const {
  if (!nest.whole_rows || !may_join_rows(body_)) return false;
  std::vector<const Sweep*> sweeps;
  for (const Phase& phase : nest.scopes.back().phases)
    for (const Sweep& sweep : phase.sweeps) sweeps.push_back(&sweep);
  const Phase& phase = nest.scopes.back().phases.back();
  if (sweeps.size() < 2 || phase.sweeps.size() != 1) return false;
  const Sweep &last = *sweeps.back(), &before = *sweeps[sweeps.size() - 2];
  if (!last.folds.empty() || last.loops != before.loops) return false;
  const auto has = [](const std::vector<ValueId>& ids, ValueId id) { return std::ranges::find(ids, id) != ids.end(); };
  const auto kept_before = [&](const Access& read) {
    return std::ranges::any_of(before.stores, [&](const Access& store) { return store.port == read.port; });
  };
  if (!std::ranges::all_of(last.reads, kept_before)) return false;
  const auto is_there = [&](ValueId id) {
    return swept(id) || !contains(varies(id), nest.vector) || (maker_[index(id)] && has(phase.values, id));
  };
  const auto is_made = [&](ValueId id) {
    const BodyNode* node = maker_[index(id)];
    return node && std::ranges::all_of(node->operands, is_there);
  };
  return std::ranges::all_of(last.values, is_made) &&
         std::ranges::all_of(last.stores, [&](const Access& store) { return swept(store.value); });
}

// Loops over rows, with sweeps along each that fold, one after the other, or two that are merged; then one that stores.
// That one runs together with the sweep of the next row, in the returned phase, which overwrites what it reads.
std::optional<size_t> Planner::skewed_with(const Nest& nest) const {
  if (nest.tiled || nest.whole_rows || nest.kept.empty() || std::countr_zero(reduced_) < nest.kept.back())
    return std::nullopt;
  const auto walks = [](const Phase& phase) { return phase.merges >= 0 || !phase.sweeps.empty(); };
  for (size_t level = 0; level + 1 < nest.scopes.size(); ++level)
    if (std::ranges::any_of(nest.scopes[level].phases, walks)) return std::nullopt;
  const std::vector<Phase>& phases = nest.scopes.back().phases;
  std::vector<std::pair<size_t, const Sweep*>> sweeps;  // with their phases
  bool merges = false;
  for (size_t i = 0; i < phases.size(); ++i) {
    merges |= phases[i].merges >= 0;
    if (phases[i].merges >= 0) sweeps.push_back({i, &plan_.mergings[static_cast<size_t>(phases[i].merges)].sweep});
    for (const Sweep& sweep : phases[i].sweeps) sweeps.push_back({i, &sweep});
    if (!sweeps.empty() && sweeps.size() > 1 && sweeps.back().first == sweeps[sweeps.size() - 2].first)
      return std::nullopt;
  }
  const auto is_along_row = [&](const auto& sweep) { return sweep.second->loops == dims_of(reduced_); };
  if (sweeps.size() < 2 || (merges && sweeps.size() > 2) || !std::ranges::all_of(sweeps, is_along_row) ||
      phases.back().sweeps.size() != 1 || !phases.back().sweeps.back().folds.empty())
    return std::nullopt;
  sweeps.pop_back();
  size_t home = sweeps.front().first;
  const std::vector<Access>& reads = phases.back().sweeps.back().reads;
  for (size_t i = 0; i < reads.size(); ++i) {
    const auto keeps = [&](const auto& sweep) {
      return std::ranges::any_of(sweep.second->stores, [&](const Access& one) { return one.port == reads[i].port; });
    };
    const auto keeper = std::ranges::find_if(sweeps, keeps);
    if (keeper == sweeps.end() || (i > 0 && keeper->first != home)) return std::nullopt;
    home = keeper->first;
  }
  return home;
}

// The phase of the only earlier sweep; none where there are others, or it keeps something of a row.
std::optional<size_t> Planner::skewed_behind(const Scope& scope) const {
  std::optional<size_t> first;
  if (scope.phases.back().sweeps.back().loops.size() > 1) return std::nullopt;
  for (size_t i = 0; i < *plan_.skewed_with; ++i) {
    if (scope.phases[i].sweeps.empty()) continue;
    if (first || !scope.phases[i].sweeps.front().stores.empty()) return std::nullopt;
    first = i;
  }
  const auto walks = [](const Phase& phase) { return !phase.sweeps.empty(); };
  const bool last = std::ranges::count_if(scope.phases.begin() + static_cast<std::ptrdiff_t>(*plan_.skewed_with),
                                          scope.phases.end(), walks) == 2;
  return last ? first : std::nullopt;
}

}  // namespace tenon::snippet
