// Blocks of columns in one call, with the last sweep one block behind the others. Run separately, each sweep over a
// block would wait for memory or for arithmetic, and non-temporal stores would not overlap with anything in a later
// loop.
//
//   for blocks                     a cache holds their rows, with what the last sweep reads
//     for rows: maxima
//     for rows: y of the previous block = what was kept * its factors;  sums += what is kept of this block
//     factors
//   for rows: y of the last block;  then the remaining columns, as one block of their own
//
// Blocks that only the last-level cache holds are read once. Maximum and sum are then one merged sweep, and what it
// keeps is relative to the maximum of its group of rows, which is kept as well (lower_plan_kept.cpp).
//
// Before the first block there is no previous one: its y is first stored with undefined contents, and again later with
// the right ones.
#include <algorithm>

#include <tenon/snippet/lower/lower_internal.hpp>

namespace tenon::snippet {

void Lowering::write_block(const Nest& nest, bool last_behind) {
  std::vector<const Sweep*> sweeps;
  for (const Phase& phase : nest.scopes.back().phases)
    for (const Sweep& sweep : phase.sweeps) sweeps.push_back(&sweep);
  const Sweep *last = sweeps.back(), *before = kernel_.merged ? nullptr : sweeps[sweeps.size() - 2];
  for (const Phase& phase : nest.scopes.back().phases) {
    write_row_values(nest, phase);
    if (phase.merges >= 0) write_merged_rows(nest, plan_.mergings[index(phase.merges)], last_behind ? last : nullptr);
    for (const Sweep& sweep : phase.sweeps) {
      if (last_behind && &sweep == last) continue;
      write_row_sweep(nest, sweep, last_behind && &sweep == before ? last : nullptr);
    }
  }
}

void Lowering::write_block_loop(const Nest& nest) {
  for (const Access& row : nest.rows) row_ports_[index(row.value)] = row.port;
  kernel_.blocks.dim = nest.vector;
  kernel_.blocks.again = kernel_.blocks.inside = true;
  const Sweep& last = nest.scopes.back().phases.back().sweeps.back();
  struct Stored {
    int port = -1;
    RegisterId here = -1, behind = -1;
  };
  std::vector<Stored> stored;
  for (const Access& store : last.stores) stored.push_back({store.port, pointer_of(store.port), kernel_.add_general()});
  const auto follow = [&] {
    for (const Stored& one : stored) write({.op = "Copy", .in = {one.here}, .out = {one.behind}});
  };
  follow();
  for (const Stored& one : stored) pointers_[index(one.port)] = one.behind;
  columns_ = kernel_.blocks.block();
  const LoopId blocks = scalar_loop(kernel_.blocks.count(), zero(), 1, [&] {
    write_block(nest, true);
    follow();
  });
  write_row_sweep(nest, last);
  for (const Stored& one : stored) pointers_[index(one.port)] = one.here;
  columns_ = kernel_.blocks.rest();
  write_block(nest, false);
  columns_ = -1;
  for (const int port : touched_.all()) {
    if (scratch_of(port) || !contains(varies_of(port), nest.vector)) continue;
    const RegisterId pointer = pointers_[index(port)];
    const ParamId each = add_param({.kind = Param::Kind::shift, .port = port, .loop = blocks});
    const ParamId rewind = add_param({.kind = Param::Kind::rewind, .port = port, .loop = blocks});
    kernel_.loops[index(blocks)].shifts.push_back({.pointer = pointer, .each = each});
    write({.op = "AddParameter", .in = {pointer}, .out = {pointer}, .number = rewind});
  }
}

}  // namespace tenon::snippet
