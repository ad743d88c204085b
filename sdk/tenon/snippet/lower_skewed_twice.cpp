// Three walks along each row, of three rows in one loop: the first finds how the second goes, and keeps nothing.
//
//   if there is a row                       loops that run once: the loops inside have the same counter
//     first walk of the first row
//     if there is a next row
//       second walk of this row, first walk of the next
//       while there is a row behind that
//         for its elements                    y of this row;  the second walk of the next row, which takes its memory;
//         what is made of the folds           the first walk of the row behind
//       y of the last row but one
//     second walk of the last row, y of it
#include <algorithm>
#include <utility>

#include <tenon/snippet/lower_internal.hpp>

namespace tenon::snippet {
namespace {

// All but its walks.
Phase values_of(Phase phase) {
  phase.sweeps.clear();
  return phase;
}

}  // namespace

void Lowering::write_row_next(SweepLoops& loops) {
  auto aside = put_aside(of_row_next_);
  region([&] {
    place_.ahead = 2;
    make_sweep_level(loops, loops.sweep->loops.size(), true);
  });
  put_back(of_row_next_, std::move(aside));
}

void Lowering::write_skewed_twice(const Nest& nest, std::vector<LoopId>& ids) {
  const int dim = nest.kept.back();
  const std::vector<Phase>& phases = nest.scopes.back().phases;
  const size_t first = *plan_.skewed_behind, second = *plan_.skewed_with;
  const Sweep &fold = phases[first].sweeps.back(), &powers = phases[second].sweeps.back(),
              &last = phases.back().sweeps.back();
  std::vector<ValueId> takers = powers.values;  // of what is known before the second walk
  takers.insert(takers.end(), last.values.begin(), last.values.end());
  for (const BodyNode* node : powers.folds) takers.push_back(node->result);
  for (size_t i = second + 1; i < phases.size(); ++i)
    takers.insert(takers.end(), phases[i].values.begin(), phases[i].values.end());

  const auto write_values = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) write_phase(nest, values_of(phases[i]));
  };
  // What is bound since `bound` and taken goes to registers of its own, the same for each row.
  const auto keep = [&](RowValues& kept, size_t bound, const std::vector<ValueId>& by) {
    if (kept.empty())
      for (size_t i = bound; i < bound_order_.size(); ++i)
        if (const ValueId id = bound_order_[i]; !swept(id) && is_taken(id, by))
          kept.push_back({id, kernel_.add_lanes(lane(id))});
    for (const auto& [id, to] : kept) write({.op = "Copy", .in = {register_of(id, {})}, .out = {to}});
  };
  RowValues known;  // before the second walk of the row that has it next
  const auto bind_all = [&](const RowValues& values) {
    for (const auto& [id, kept] : values) bind(id, {kept});
  };
  const auto write_first = [&](int ahead) {
    const size_t bound = bound_order_.size();
    place_.row_dim = dim, place_.ahead = ahead;
    write_values(0, first + 1);
    write_sweep(nest, fold);
    store_folds(nest, fold);
    write_values(first + 1, second + 1);
    keep(known, bound, takers);
    unbind(bound);
    place_.ahead = 0;
  };
  const auto finish_second = [&](size_t bound) {
    store_folds(nest, powers);
    write_values(second + 1, phases.size());
    keep(of_row_before_, bound, last.values);
    unbind(bound);
  };
  const auto write_second = [&] {
    const size_t bound = bound_order_.size();
    bind_all(known);
    write_sweep(nest, powers);
    finish_second(bound);
  };
  const auto write_last = [&] {
    const size_t bound = bound_order_.size();
    bind_all(of_row_before_);
    write_sweep(nest, last);
    unbind(bound);
  };
  const auto write_all = [&] {
    place_.row_dim = dim, place_.ahead = 2;
    SweepLoops next{.sweep = &fold, .vector = nest.vector};
    const size_t outside = bound_order_.size();
    write_values(0, first + 1);
    of_row_next_.clear();
    for (size_t i = outside; i < bound_order_.size(); ++i)
      of_row_next_.push_back({bound_order_[i], bound_[index(bound_order_[i])][0]});
    unbind(outside);
    place_.ahead = 1;
    bind_all(known);
    behind_ = &last, next_ = &next;
    write_sweep(nest, powers);
    behind_ = nullptr, next_ = nullptr;
    finish_second(outside);
    place_.ahead = 2;
    bind_all(of_row_next_);
    finish_folds(next);
    store_folds(nest, fold);
    write_values(first + 1, second + 1);
    keep(known, outside, takers);
    unbind(outside);
  };

  const RegisterId counter = zero();
  const auto limit_ahead = [&](LoopId loop, int rows) {
    kernel_.loops[index(loop)].limit = kernel_.add_param({.kind = Param::Kind::limit, .loop = loop, .ahead = rows});
  };
  row_pointers_.clear();
  LoopId all = -1, next_to_last = -1;
  const LoopId outer = scalar_loop(dim, counter, 1, [&] {
    write_first(0);
    next_to_last = scalar_loop(dim, counter, 1, [&] {
      write_second();
      write_first(1);
      all = scalar_loop(dim, counter, 1, write_all);
      write_last();
    });
    without_rows_behind([&] {
      write_second();
      write_last();
    });
  });
  limit_ahead(next_to_last, 1);
  limit_ahead(all, 2);
  last_row_loops_ = {outer, next_to_last};
  for (const LoopId loop : {next_to_last, all}) {
    row_loop_ = loop;
    make_row_pointers(all);
  }
  row_loop_ = -1;
  ids.back() = all;
}

}  // namespace tenon::snippet
