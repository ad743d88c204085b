// Column reductions over short rows, several of which are joined into one. A joined row gives one partial result per
// column for each of its rows; a value that each row needs of a column is replicated for all of them in a scratch row.
//
//   for joined rows, four at once   as whole rows are processed; then the remaining rows, which form a shorter one
//     for their elements              sums += x
//   for columns                     for the rows of a joined one: sum += sums;  what depends on the sum
//                                   for the rows of a joined one: its value, for the next sweep
#include <algorithm>

#include <tenon/snippet/lower/lower_internal.hpp>

namespace tenon::snippet {

// Calls `f` with the pointers of the scratch rows of `ids` at each row of a joined one in turn.
template <class F>
void Lowering::each_row(const std::vector<ValueId>& ids, F f) {
  const LoopId loop = scalar_loop(kernel_.joined.each(), zero(), 1, f);
  for (const ValueId id : ids) {
    const int port = row_ports_[index(id)];
    const ParamId each = add_param({.kind = Param::Kind::shift, .port = port, .loop = loop});
    const ParamId rewind = add_param({.kind = Param::Kind::rewind, .port = port, .loop = loop});
    kernel_.loops[index(loop)].shifts.push_back({.pointer = pointer_of(port), .each = each, .rewind = rewind});
  }
}

// Stores values of one vector of columns where later sweeps read them.
void Lowering::store_in_each_row(const std::vector<Access>& stores) {
  std::vector<ValueId> ids;
  for (const Access& store : stores) ids.push_back(store.value);
  if (ids.empty()) return;
  each_row(ids, [&] {
    for (const Access& access : stores) store(access.port, access.value, {});
  });
}

void Lowering::write_joined_values(const Nest& nest, const std::vector<Access>& reads,
                                   const std::vector<ValueId>& makes, const std::vector<Access>& stores) {
  std::vector<Access> results, rows;
  for (const Access& access : stores) (scratch_of(access.port) ? rows : results).push_back(access);
  vector_loops(nest.vector, kernel_.joined.row(), 1, [&] {
    make(reads, makes, results);
    store_in_each_row(rows);
  });
}

// For each column: `states` of each row of a joined one in turn, the values `made` from them and from the columns' own
// `wanted`, and the folds of these parts.
void Lowering::join_folds(const Nest& nest, const std::vector<JoinedFold>& folds, const std::vector<ValueId>& wanted,
                          const std::vector<ValueId>& states, const std::vector<ValueId>& made) {
  std::vector<Access> rows, results;
  for (const auto& [fold, part] : folds) {
    if (users_[index(fold->result)] > 0) rows.push_back({fold->result, row_ports_[index(fold->result)]});
    std::copy_if(nest.roots.begin(), nest.roots.end(), std::back_inserter(results),
                 [&](const Access& root) { return root.value == fold->result; });
  }
  const auto load_row = [&](ValueId id) { bind(id, {load(row_ports_[index(id)], id, {})}); };
  vector_loops(nest.vector, kernel_.joined.row(), 1, [&] {
    std::ranges::for_each(wanted, load_row);
    std::vector<RegisterId> wholes;
    for (const auto& [fold, part] : folds) {
      wholes.push_back(kernel_.add_lanes(lane(fold->result)));
      write({.op = "Scalar",
             .attributes = {{"bits", initial_of(*fold)}},
             .out = {wholes.back()},
             .label = label_of(*fold)});
    }
    each_row(states, [&] {
      std::ranges::for_each(states, load_row);
      make({}, made, {});
      for (size_t i = 0; i < folds.size(); ++i)
        write({.op = *fold_of(folds[i].fold->op),
               .attributes = said_of(*folds[i].fold),
               .in = {wholes[i], register_of(folds[i].part, {})},
               .out = {wholes[i]},
               .label = label_of(*folds[i].fold)});
    });
    for (size_t i = 0; i < folds.size(); ++i) bind(folds[i].fold->result, {wholes[i]});
    for (const Access& result : results) store(result.port, result.value, {});
    store_in_each_row(rows);
  });
}

void Lowering::join_row_folds(const Nest& nest, const Sweep& row) {
  if (row.folds.empty()) return;
  std::vector<JoinedFold> folds;
  std::vector<ValueId> states;
  for (const BodyNode* fold : row.folds) folds.push_back({fold, fold->result}), states.push_back(fold->result);
  join_folds(nest, folds, {}, states, {});
}

// The remaining rows follow the loop over joined ones, and continue with its pointers.
void Lowering::rewind_behind_rest(LoopId outermost) {
  for (Loop::Shift& shift : kernel_.loops[index(outermost)].shifts) {
    if (shift.rewind < 0) continue;
    write({.op = "AddParameter", .in = {shift.pointer}, .out = {shift.pointer}, .number = shift.rewind});
    shift.rewind = -1;
  }
}

}  // namespace tenon::snippet
