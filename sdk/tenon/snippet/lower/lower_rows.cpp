// Several short rows side by side: loops, tails and reductions over lanes are then paid once instead of once a row, and
// the rows' dependency chains overlap. The loop over rows exists twice, for several rows and for single ones. Long
// rows, which would only evict each other from the cache, are all processed by the second (CallPlan).
#include <algorithm>
#include <map>

#include <tenon/snippet/lower/lower_internal.hpp>

namespace tenon::snippet {
namespace {

// Pointers to rows that are processed at once: more do not stay in registers.
constexpr size_t kPointers = 8;

}  // namespace

// A value that is kept in a scratch row has one row only.
bool Lowering::rows_have_memory(const Nest& nest, const Scope& scope) const {
  const auto alone = [&](const Access& access) {
    return scratch_of(access.port) && !contains(varies_of(access.port), nest.kept.back());
  };
  const auto has_memory = [&](const Sweep& sweep) { return std::ranges::none_of(sweep.stores, alone); };
  return std::ranges::all_of(scope.phases, [&](const Phase& phase) {
    return std::ranges::all_of(phase.sweeps, has_memory) &&
           (phase.merges < 0 || has_memory(plan_.mergings[index(phase.merges)].sweep));
  });
}

// One pointer for each port that varies over them.
size_t Lowering::row_pointers_of(const Nest& nest) const {
  size_t pointers = 0;
  for (int port = 0; port < tensors(); ++port) pointers += contains(varies_of(port), nest.kept.back());
  return pointers;
}

// Whether the rows that it stores along `dim` may begin anywhere in a line, as far as is known.
bool Lowering::ends_within_line(const Access& store, int dim) const {
  const Expr& extent = body_.dims[index(dim)].extent;
  return extent.is_constant() && contains(varies(store.value), dim) &&
         extent.constant() * element_of(store.port).bits() % kLineBits != 0;
}

// Rows that end within a line: unaligned stores of vectors as wide as a line are split, and halves of a line are stored
// by vectors that are apart, with those of other rows in between. With two or more halves per vector, interleaving rows
// gains nothing (docs/performance/lessons/rows.md, Halves of lines).
bool Lowering::stores_parts_of_lines(const Nest& nest, const Scope& scope) const {
  int64_t bits = 0;
  for (const Phase& phase : scope.phases)
    for (const Sweep& sweep : phase.sweeps)
      for (const Access& store : sweep.stores)
        if (ends_within_line(store, nest.vector)) bits += options_.lanes * element_of(store.port).bits();
  return bits >= kLineBits;
}

// Whether interleaved rows are stored one after the other. The vectors that share a line, or cross its border, are then
// adjacent, without lines of other rows in between (docs/performance/lessons/rows.md). Folds stay interleaved, since
// each has its own dependency chain; so do values that rows share, unless these are only loaded, and rows that are
// stored together for that reason.
bool Lowering::goes_row_by_row(const Sweep& sweep) const {
  if (unit_rows() == 1 || !sweep.folds.empty() || kernel_.stored_together) return false;
  const int dim = sweep.loops.back();
  const auto in_scratch = [&](const Access& store) { return scratch_of(store.port) != nullptr; };
  const auto in_parts = [&](const Access& store) { return ends_within_line(store, dim); };
  const auto is_made = [&](ValueId id) {
    const Maker& maker = makers_[index(id)];
    return rows_share(id, dim) && (maker.node || element_of(maker.port) != lane(id));
  };
  return std::ranges::none_of(sweep.stores, in_scratch) && std::ranges::any_of(sweep.stores, in_parts) &&
         std::ranges::none_of(sweep.values, is_made);
}

// As many as registers allow: accumulators of sums in half of the vectors, a pointer for each row and port.
int Lowering::rows_together(const Nest& nest) const {
  constexpr size_t kInstructions = 160;
  if (nest.tiled || nest.kept.empty() || nest.vector < nest.kept.back() || options_.heads) return 1;
  const Scope& scope = nest.scopes.back();
  size_t instructions = 0, folds = 0, sweeps = 0;
  for (const Phase& phase : scope.phases) {
    if (phase.merges >= 0) return 1;  // its rows are long
    for (const Sweep& sweep : phase.sweeps) {
      if (sweep.loops.size() != 1) return 1;
      ++sweeps;
      instructions += sweep.values.size() + sweep.reads.size() + sweep.stores.size();
      folds = std::max(folds, sweep.folds.size());
    }
  }
  if (sweeps == 0 || folds == 0 || !rows_have_memory(nest, scope)) return 1;
  if (sweeps == 1 && long_when_walked_once(nest)) return 1;
  const size_t pointers = row_pointers_of(nest);
  const size_t accumulators = folds * static_cast<size_t>(options_.unroll);
  int rows = options_.rows;
  const auto fits = [&] {
    const auto count = static_cast<size_t>(rows);
    // Unrolled ones have adjacent accumulators at a known stride.
    const HeldRow held = held_row(nest, rows);
    if (held.vectors > 0 && 2 * held.held >= held.vectors)
      return accumulators + count * folds <= static_cast<size_t>(options_.vectors) / 2 && pointers <= kPointers;
    return count * accumulators <= static_cast<size_t>(options_.vectors) / 2 && count * pointers <= kPointers &&
           count * instructions <= kInstructions;
  };
  while (rows > 1 && !fits()) rows /= 2;
  if (rows > 1 && held_row(nest, rows).vectors == 0 && stores_parts_of_lines(nest, scope)) return 1;
  // Two of unrolled rows, where everything of two stays in registers and not of four: reloads cost more than the two
  // rows gain from each other.
  const HeldRow held = held_row(nest, rows), of_two = held_row(nest, 2);
  return rows > 2 && held.held < held.vectors && of_two.held == of_two.vectors ? 2 : rows;
}

// Rows that are traversed again are then in a near cache; the others stream from memory.
int Lowering::longest_row(const Scope& scope) const {
  size_t sweeps = 0;
  for (const Phase& phase : scope.phases) sweeps += phase.sweeps.size();
  return sweeps > 1 ? options_.longest_row_again : options_.longest_row_once;
}

// The id of the loop over single rows, which represents both when pointers are moved.
LoopId Lowering::write_rows(const Nest& nest, int rows, std::vector<LoopId>& ids) {
  const int dim = nest.kept.back();
  const RegisterId counter = zero();
  row_pointers_.clear();
  row_loop_ = scalar_loop(dim, counter, rows, [&] {
    place_.row_dim = dim, place_.rows = rows;
    write_scope(nest, nest.kept.size(), ids);
  });
  // The first inner loop is one over the elements of a row; short rows have none.
  if (index(row_loop_) + 1 < kernel_.loops.size()) {
    Param& limit = kernel_.params[index(kernel_.loops[index(row_loop_)].limit)];
    limit.inner = row_loop_ + 1;
    limit.longest = longest_row(nest.scopes.back());
  }
  const LoopId single = scalar_loop(dim, counter, 1, [&] { write_scope(nest, nest.kept.size(), ids); });
  make_row_pointers(single);
  return single;
}

// Sweeps along single dims of which the last one folds nothing, and reads nothing that is kept in a scratch row.
int Lowering::rows_stored_together(const Nest& nest) const {
  const Scope& scope = nest.scopes.back();
  if (options_.stored_together <= 1 || options_.heads || nest.tiled || nest.vector < nest.kept.back()) return 1;
  const auto is_along_row = [&](const Sweep& sweep) { return sweep.loops.size() == 1; };
  size_t folds = 0;
  for (const Phase& phase : scope.phases) {
    if (!std::ranges::all_of(phase.sweeps, is_along_row)) return 1;
    if (phase.merges >= 0 && !is_along_row(plan_.mergings[index(phase.merges)].sweep)) return 1;
    folds += phase.sweeps.size() + (phase.merges >= 0 ? 1 : 0);
  }
  const std::vector<Sweep>& last = scope.phases.back().sweeps;
  if (folds < 2 || last.size() != 1 || !last.front().folds.empty() || !rows_have_memory(nest, scope)) return 1;
  int rows = options_.stored_together;
  while (rows > 1 && static_cast<size_t>(rows) * row_pointers_of(nest) > kPointers) rows /= 2;
  return held_row(nest, 1).vectors > 0 ? 1 : rows;
}

// Each row's sweeps but the last one; then the last one for all rows, with the values that it needs of each in
// registers.
void Lowering::fold_and_store_rows(const Nest& nest, int rows) {
  const Sweep& last = nest.scopes.back().phases.back().sweeps.back();
  std::map<ValueId, std::vector<RegisterId>> taken;
  for (int row = 0; row < rows; ++row) {
    region([&] {
      place_.ahead = row;
      place_.accumulators += taken.size() * index(row);
      const size_t bound = bound_order_.size();
      write_row_folds(nest);
      for (size_t i = bound; i < bound_order_.size(); ++i)
        if (const ValueId id = bound_order_[i]; !swept(id) && is_taken(id, last.values))
          taken[id].push_back(register_of(id, {}));
    });
  }
  // Two adjacent vectors of a row are a line where vectors are half as long.
  place_.rows = rows, place_.least_copies = std::min(options_.unroll, 2);
  for (const auto& [id, of_rows] : taken) {
    place_.accumulators += of_rows.size();
    bind(id, of_rows);
  }
  write_sweep(nest, last);
}

// The loop exists twice, as for short rows. Returns the id of that over single rows.
LoopId Lowering::write_rows_stored_together(const Nest& nest, int rows, std::vector<LoopId>& ids) {
  const int dim = nest.kept.back();
  const RegisterId counter = zero();
  kernel_.stored_together = true;
  row_pointers_.clear();
  row_loop_ = scalar_loop(dim, counter, rows, [&] {
    place_.row_dim = dim;
    fold_and_store_rows(nest, rows);
  });
  const LoopId single = scalar_loop(dim, counter, 1, [&] { write_scope(nest, nest.kept.size(), ids); });
  make_row_pointers(single);
  return single;
}

// At the beginning of each iteration: a row's pointer is one stride after that of the previous row.
void Lowering::make_row_pointers(LoopId single) {
  std::vector<Instruction> made;
  std::vector<int> ports;
  for (const auto& [port, pointers] : row_pointers_) ports.push_back(port);
  std::sort(ports.begin(), ports.end());
  for (const int port : ports) {
    const ParamId stride = add_param({.kind = Param::Kind::shift, .port = port, .loop = single});
    RegisterId before = pointers_[index(port)];
    for (const RegisterId pointer : row_pointers_[port]) {
      made.push_back({.op = "AddParameter", .in = {before}, .out = {pointer}, .number = stride});
      before = pointer;
    }
  }
  static const Name kBegin("LoopBegin");
  const auto begins = [&](const Instruction& instruction) {
    return instruction.op == kBegin && instruction.number == row_loop_;
  };
  const auto begin = std::find_if(kernel_.body.rbegin(), kernel_.body.rend(), begins);  // near the end: of this sweep
  kernel_.body.insert(begin.base(), made.begin(), made.end());
}

// The first row's pointers move by all rows of an iteration.
void Lowering::move_row_pointers(int dim, const std::vector<int>& ports) {
  for (const int port : ports) {
    if (!contains(varies_of(port), dim)) continue;
    const ParamId each = add_param({.kind = Param::Kind::shift, .port = port, .loop = row_loop_});
    kernel_.loops[index(row_loop_)].shifts.push_back({.pointer = pointers_[index(port)], .each = each});
  }
}

}  // namespace tenon::snippet
