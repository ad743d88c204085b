// Merged sweeps (Merging): each group of vectors, or of rows of columns, is reduced while it is in registers.
//
//   running: g = -inf, s = 0            in registers, lane by lane; for columns in scratch rows
//   for groups of the row               maximum, including the running one: g'
//                                       s = s * e^(g - g') + the group's sum of e^(x - g');  g = g'
//   the maximum of all lanes;  in each lane s * e^(g - maximum), and the sum of these
#include <algorithm>

#include <tenon/snippet/lower/lower_internal.hpp>

namespace tenon::snippet {
namespace {

// Rows of columns in a group, and vectors of a row in a group.
constexpr int kMostInGroup = 8, kVectorsOfLargeGroups = 32;

}  // namespace

int Lowering::largest_group() const {
  return options_.vectors >= kVectorsOfLargeGroups ? kMostInGroup : kMostInGroup / 2;
}

template <class F>
void Lowering::each_carried(const Merging& merging, F f) {
  for (const Merging::Fold& one : merging.folds) f(one.state, one.next, initial_of(one.node));
  if (merging.count) f(merging.count->state, merging.count->next, int64_t{0});
  for (const Merging::Subtracted& one : merging.subtracted)
    if (!one.is_fold) f(one.state, one.next, int64_t{0});
  for (const Merging::Fold& one : merging.sums) f(one.state, one.next, initial_of(one.node));
}

// --- along rows -----------------------------------------------------------------------------------------------------

void Lowering::write_merged_sweep(const Merging& merging) {
  const Sweep& sweep = merging.sweep;
  SweepLoops loops{.sweep = &sweep,
                   .scalar = sweep.loops.size() - 1,
                   .vector = sweep.loops.back(),
                   .behind = behind_,
                   .merging = &merging};
  loops.copies =
      copies_within(loops.vector, copies_for(sweep.values.size() + merging.second.size(), 0, largest_group()));
  each_carried(merging, [&](ValueId state, ValueId, int64_t initial) {
    bind(state, {kernel_.add_lanes(lane(state))});
    write({.op = "Scalar", .attributes = {{"bits", initial}}, .out = {register_of(state, {})}});
  });
  walk_sweep(loops);
  make({}, merging.finish, {});
  for (const Merging::Fold& one : merging.folds)
    bind(one.node.result, fold_lanes(one.node, {register_of(one.right, {})}));
}

void Lowering::settle_lanes(const Merging& merging) {
  make({}, merging.settle, {});
  for (const Merging::Fold& one : merging.sums)
    if (one.by >= 0) bind(one.node.result, fold_lanes(one.node, {register_of(one.settled, {})}));
}

// --- columns in whole rows ------------------------------------------------------------------------------------------

void Lowering::begin_merged_rows(const Nest& nest, const Merging& merging) {
  vector_loops(nest.vector, options_.unroll, [&] {
    each_carried(merging, [&](ValueId state, ValueId, int64_t bits) {
      bind(state, std::vector<RegisterId>(static_cast<size_t>(place_.copies), scalar(lane(state), bits)));
      for (int copy = 0; copy < place_.copies; ++copy) store(row_ports_[index(state)], state, {.copy = copy});
    });
  });
}

void Lowering::write_merged_rows(const Nest& nest, const Merging& merging, const Sweep* behind) {
  const Sweep row = along_row(nest, merging.sweep), along = behind ? along_row(nest, *behind) : Sweep{};
  SweepLoops loops{.sweep = &row,
                   .scalar = merging.sweep.loops.size(),
                   .vector = nest.vector,
                   .whole_rows = true,
                   .behind = behind ? &along : nullptr,
                   .merging = &merging};
  Sweep all = row;
  all.values.insert(all.values.end(), merging.second.begin(), merging.second.end());
  loops.rows = plan_.behind ? kRowsOfKept : rows_of_sweep(all, largest_group());
  begin_merged_rows(nest, merging);
  walk_sweep(loops);
  if (!joined()) return;
  std::vector<JoinedFold> folds;
  std::vector<ValueId> states;
  for (const Merging::Fold& one : merging.folds) folds.push_back({&one.node, one.state}), states.push_back(one.state);
  join_folds(nest, folds, {}, states, {});
}

// For columns that are not joined this is the whole: the subtracted value is that of all rows.
void Lowering::settle_rows(const Nest& nest, const Merging& merging) {
  if (!joined()) return;
  std::vector<JoinedFold> folds;
  std::vector<ValueId> whole, states;
  for (const Merging::Fold& one : merging.sums)
    if (one.by >= 0) folds.push_back({&one.node, one.settled});
  for (const Merging::Subtracted& one : merging.subtracted) whole.push_back(one.whole);
  const auto is_read = [&](ValueId state) {
    return std::ranges::any_of(merging.settle, [&](ValueId id) {
      const std::vector<ValueId>& operands = makers_[index(id)].node->operands;
      return std::ranges::find(operands, state) != operands.end();
    });
  };
  each_carried(merging, [&](ValueId state, ValueId, int64_t) {
    if (is_read(state)) states.push_back(state);
  });
  join_folds(nest, folds, whole, states, merging.settle);
}

// --- a group --------------------------------------------------------------------------------------------------------

// The fold of the group's vectors by `node`; in whole rows, one of each copy.
std::vector<RegisterId> Lowering::fold_group(const SweepLoops& loops, const BodyNode& node) {
  const int results = loops.whole_rows ? place_.copies : 1, parts = loops.whole_rows ? place_.rows : place_.copies;
  std::vector<RegisterId> made;
  for (int result = 0; result < results; ++result) {
    std::vector<RegisterId> folded;
    for (int part = 0; part < parts; ++part) {
      const Unit unit = loops.whole_rows ? Unit{part, result} : Unit{0, part};
      folded.push_back(fill_tail(loops, node, register_of(node.operands[0], unit)));
    }
    for (; folded.size() > 1; folded.resize((folded.size() + 1) / 2)) {
      for (size_t i = 0; i < folded.size() / 2; ++i) {
        const RegisterId both = kernel_.add_lanes(lane(node.operands[0]));
        write({.op = *fold_of(node.op),
               .attributes = said_of(node),
               .in = {folded[i], folded[folded.size() - 1 - i]},
               .out = {both},
               .label = label_of(node)});
        folded[i] = both;
      }
    }
    made.push_back(folded.front());
  }
  return made;
}

void Lowering::write_group(SweepLoops& loops) {
  const Merging& merging = *loops.merging;
  const auto copies = static_cast<size_t>(place_.copies);
  each_carried(merging, [&](ValueId state, ValueId, int64_t) {
    place_.accumulators += loops.whole_rows ? copies : 1;
    if (!loops.whole_rows) return;
    std::vector<RegisterId> made;
    for (int copy = 0; copy < place_.copies; ++copy)
      made.push_back(load(row_ports_[index(state)], state, {.copy = copy}));
    bind(state, made);
  });
  make_sweep_level(loops, loops.sweep->loops.size(), false);
  for (const Merging::Fold& one : merging.folds) bind(one.group, fold_group(loops, one.node));
  if (merging.count) {
    const int counted = loops.whole_rows ? place_.rows : place_.copies;
    const ElementType element = lane(merging.count->state);
    const RegisterId count = scalar(element, static_cast<int64_t>(lane_bits(element, counted)));
    bind(merging.count->group,
         std::vector<RegisterId>(loops.whole_rows ? copies : 1, fill_tail(loops, merging.sums.front().node, count)));
  }
  make({}, merging.advance, loops.sweep->stores);
  for (const Merging::Subtracted& one : merging.subtracted) bind(one.whole, bound_[index(one.next)]);
  place_.accumulators += copies * static_cast<size_t>(place_.rows);  // the subtracted value is live in registers
  make({}, merging.second, loops.sweep->stores);
  for (const Merging::Fold& one : merging.sums) bind(one.group, fold_group(loops, one.node));
  make({}, merging.add, {});
  each_carried(merging, [&](ValueId state, ValueId next, int64_t) {
    if (!loops.whole_rows) write({.op = "Copy", .in = {register_of(next, {})}, .out = {register_of(state, {})}});
    for (int copy = 0; loops.whole_rows && copy < place_.copies; ++copy)
      store(row_ports_[index(state)], next, {.copy = copy});
  });
}

}  // namespace tenon::snippet
