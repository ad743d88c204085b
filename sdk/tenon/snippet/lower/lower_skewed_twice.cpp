// Three sweeps along each row, over three rows in one loop. The first one computes what the second depends on, and
// keeps nothing.
//
//   if there is a row                       loops that run once: the loops inside have the same counter
//     first sweep of the first row
//     if there is a next row
//       second sweep of this row, first sweep of the next
//       while there is a row after that
//         for its elements                    y of this row;  the second sweep of the next row, which takes its memory;
//         what depends on the results         the first sweep of the row after that
//       y of the last row but one
//     second sweep of the last row, y of it
#include <algorithm>
#include <utility>

#include <tenon/snippet/lower/lower_internal.hpp>

namespace tenon::snippet {
namespace {

// All but its sweeps.
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

// State shared by the parts of the loops.
class Lowering::ThreeWalks {
 public:
  ThreeWalks(Lowering& lowering, const Nest& nest)
      : to_(lowering),
        nest_(nest),
        phases_(nest.scopes.back().phases),
        first_(*lowering.plan_.skewed_behind),
        second_(*lowering.plan_.skewed_with),
        takers_(powers().values) {
    takers_.insert(takers_.end(), last().values.begin(), last().values.end());
    for (const BodyNode* node : powers().folds) takers_.push_back(node->result);
    for (size_t i = second_ + 1; i < phases_.size(); ++i)
      takers_.insert(takers_.end(), phases_[i].values.begin(), phases_[i].values.end());
  }

  void write_first(int ahead) {
    const size_t bound = to_.bound_order_.size();
    to_.place_.row_dim = dim(), to_.place_.ahead = ahead;
    write_values(0, first_ + 1);
    to_.write_sweep(nest_, fold());
    finish_first(bound);
    to_.place_.ahead = 0;
  }
  void write_second() {
    const size_t bound = to_.bound_order_.size();
    bind_all(known_);
    to_.write_sweep(nest_, powers());
    finish_second(bound);
  }
  void write_last() {
    const size_t bound = to_.bound_order_.size();
    bind_all(to_.of_row_before_);
    to_.write_sweep(nest_, last());
    to_.unbind(bound);
  }
  void write_all() {
    to_.place_.row_dim = dim(), to_.place_.ahead = 2;
    SweepLoops next{.sweep = &fold(), .vector = nest_.vector};
    const size_t bound = to_.bound_order_.size();
    write_values(0, first_ + 1);
    to_.of_row_next_.clear();
    for (size_t i = bound; i < to_.bound_order_.size(); ++i)
      to_.of_row_next_.push_back({to_.bound_order_[i], to_.bound_[index(to_.bound_order_[i])][0]});
    to_.unbind(bound);
    to_.place_.ahead = 1;
    bind_all(known_);
    to_.behind_ = &last(), to_.next_ = &next;
    to_.write_sweep(nest_, powers());
    to_.behind_ = nullptr, to_.next_ = nullptr;
    finish_second(bound);
    to_.place_.ahead = 2;
    bind_all(to_.of_row_next_);
    to_.finish_folds(next);
    finish_first(bound);
  }

 private:
  int dim() const { return nest_.kept.back(); }
  const Sweep& fold() const { return phases_[first_].sweeps.back(); }
  const Sweep& powers() const { return phases_[second_].sweeps.back(); }
  const Sweep& last() const { return phases_.back().sweeps.back(); }

  void write_values(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) to_.write_phase(nest_, values_of(phases_[i]));
  }
  // Computes what depends on a sweep's folds after its end; values bound since `bound` are no longer valid.
  void finish_first(size_t bound) {
    to_.store_folds(nest_, fold());
    write_values(first_ + 1, second_ + 1);
    keep(known_, bound, takers_);
    to_.unbind(bound);
  }
  void finish_second(size_t bound) {
    to_.store_folds(nest_, powers());
    write_values(second_ + 1, phases_.size());
    keep(to_.of_row_before_, bound, last().values);
    to_.unbind(bound);
  }
  // Copies values bound since `bound` that are needed to registers of their own, the same for each row.
  void keep(RowValues& kept, size_t bound, const std::vector<ValueId>& by) {
    if (kept.empty())
      for (size_t i = bound; i < to_.bound_order_.size(); ++i)
        if (const ValueId id = to_.bound_order_[i]; !to_.swept(id) && to_.is_taken(id, by))
          kept.push_back({id, to_.kernel_.add_lanes(to_.lane(id))});
    for (const auto& [id, to] : kept) to_.write({.op = "Copy", .in = {to_.register_of(id, {})}, .out = {to}});
  }
  void bind_all(const RowValues& values) {
    for (const auto& [id, kept] : values) to_.bind(id, {kept});
  }

  Lowering& to_;
  const Nest& nest_;
  const std::vector<Phase>& phases_;
  const size_t first_, second_;  // phases of the first sweep and of the second
  std::vector<ValueId> takers_;  // readers of what is known before the second sweep
  RowValues known_;              // before the second sweep of the row that has it next
};

void Lowering::write_skewed_twice(const Nest& nest, std::vector<LoopId>& ids) {
  const int dim = nest.kept.back();
  const RegisterId counter = zero();
  ThreeWalks walks(*this, nest);
  row_pointers_.clear();
  LoopId all = -1, next_to_last = -1;
  const LoopId outer = scalar_loop(dim, counter, 1, [&] {
    walks.write_first(0);
    next_to_last = scalar_loop(dim, counter, 1, [&] {
      walks.write_second();
      walks.write_first(1);
      all = scalar_loop(dim, counter, 1, [&] { walks.write_all(); });
      walks.write_last();
    });
    without_rows_behind([&] {
      walks.write_second();
      walks.write_last();
    });
  });
  const auto limit_ahead = [&](LoopId loop, int rows) {
    kernel_.loops[index(loop)].limit = add_param({.kind = Param::Kind::limit, .loop = loop, .ahead = rows});
  };
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
