// Skewed rows: the store of a row is fused with the reduction of the next. A sweep that reduces only reads main memory,
// and one that stores non-temporally only writes it; both at once take little longer than either.
//
//   if there is a row              a loop that runs once: the loop inside has the same counter
//     reduction of the first row, kept in a scratch row
//     while there is a next row
//       for its elements             y of this row = what is kept, scaled;  what is kept = the next row's, and its
//       what depends on the result   reduction
//     y of the last row
#include <algorithm>
#include <utility>

#include <tenon/snippet/lower/lower_internal.hpp>

namespace tenon::snippet {

// All of a row but the sweep that stores. `behind`: that of the previous row, which runs together with it.
void Lowering::write_row_folds(const Nest& nest, const Sweep* behind) {
  std::vector<Phase> phases = nest.scopes.back().phases;
  phases.back().sweeps.pop_back();
  for (size_t i = 0; i < phases.size(); ++i) {
    behind_ = plan_.skewed_with == i ? behind : nullptr;
    write_phase(nest, phases[i]);
  }
  behind_ = nullptr;
}

// Replaces the bound values by those of another row.
std::vector<std::vector<RegisterId>> Lowering::put_aside(const RowValues& values) {
  std::vector<std::vector<RegisterId>> aside;
  for (const auto& [id, made] : values) aside.push_back(std::exchange(bound_[index(id)], {made}));
  return aside;
}

void Lowering::put_back(const RowValues& values, std::vector<std::vector<RegisterId>> aside) {
  for (size_t i = 0; i < values.size(); ++i) bound_[index(values[i].first)] = std::move(aside[i]);
}

bool Lowering::is_taken(ValueId id, std::span<const ValueId> by) const {
  return std::ranges::any_of(by, [&](ValueId value) {
    const BodyNode* node = makers_[index(value)].node;
    return node && std::ranges::find(node->operands, id) != node->operands.end();
  });
}

// Computes what the sweep needs outside of its innermost loop, and binds it for the inner loops: the fold may bind the
// same values for another row.
void Lowering::write_row_before(const SweepLoops& loops, size_t level) {
  const auto aside = put_aside(of_row_before_);
  RowValues made;
  region([&] {
    place_.ahead = 0;
    const size_t bound = bound_order_.size();
    SweepLoops before{.sweep = loops.behind};
    make_sweep_level(before, level, false);
    for (size_t i = bound; i < bound_order_.size(); ++i)
      made.push_back({bound_order_[i], bound_[index(bound_order_[i])][0]});
  });
  put_back(of_row_before_, aside);
  of_row_before_.insert(of_row_before_.end(), made.begin(), made.end());
}

// Its stores come first: the next row takes their memory. Values of the next row that are computed before the sweep are
// set aside meanwhile. Vector by vector: with several at once, loads from L2 are back to back and leave no room for
// prefetches of what is to be folded.
void Lowering::write_row_before(SweepLoops& loops) {
  auto aside = put_aside(of_row_before_);
  region([&] {
    place_.ahead = 0, place_.one_by_one = true;
    place_.accumulators += of_row_before_.size();
    if (const Merging* merging = loops.merging)
      place_.accumulators += merging->folds.size() + merging->sums.size() + merging->subtracted.size() + 1;
    SweepLoops before{.sweep = loops.behind, .vector = loops.vector};
    make_sweep_level(before, before.sweep->loops.size(), false);
  });
  put_back(of_row_before_, std::move(aside));
}

void Lowering::write_skewed(const Nest& nest, std::vector<LoopId>& ids) {
  const int dim = nest.kept.back();
  const Sweep& last = nest.scopes.back().phases.back().sweeps.back();
  const RegisterId counter = zero();
  row_pointers_.clear();
  last_row_loops_.push_back(scalar_loop(dim, counter, 1, [&] {
    const size_t bound = bound_order_.size();
    write_row_folds(nest);
    // The values that the last sweep needs of a row are in registers that the fold of the next row does not use.
    for (size_t i = bound; i < bound_order_.size(); ++i) {
      const ValueId id = bound_order_[i];
      if (!swept(id) && is_taken(id, last.values)) of_row_before_.push_back({id, bound_[index(id)][0]});
    }
    unbind(bound);
    row_loop_ = scalar_loop(dim, counter, 1, [&] {
      place_.row_dim = dim, place_.ahead = 1;
      write_row_folds(nest, &last);
      for (const auto& [id, kept] : of_row_before_)
        if (register_of(id, {}) != kept) write({.op = "Copy", .in = {register_of(id, {})}, .out = {kept}});
    });
    kernel_.loops[index(row_loop_)].limit = add_param({.kind = Param::Kind::limit, .loop = row_loop_, .ahead = 1});
    for (const auto& [id, kept] : of_row_before_) bind(id, {kept});
    without_rows_behind([&] { write_sweep(nest, last); });
  }));
  make_row_pointers(row_loop_);
  ids.back() = std::exchange(row_loop_, -1);
}

}  // namespace tenon::snippet
