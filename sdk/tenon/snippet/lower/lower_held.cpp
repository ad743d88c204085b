// Short rows of known length, fully unrolled. The values that a sweep loads and computes stay in registers for the
// sweeps after it, as far as there are registers; the rest is loaded, recomputed or kept in memory, as in loops.
//
//   for kept dims outside
//     for the vectors of a row       x = load,  sum += x
//     for the vectors of a row       d = x - sum / n,  squares += d * d      the same x: no load
//     ...
#include <algorithm>
#include <tuple>

#include <tenon/snippet/lower/lower_internal.hpp>

namespace tenon::snippet {
namespace {

struct Lives {
  int made = -1, last = -1;  // sweeps
};

}  // namespace

// Registers that are live between two sweeps for each vector of a row: of each row, and of all rows together.
std::pair<int, int> Lowering::waiting(const Nest& nest) const {
  std::vector<Lives> lives(body_.values.size());
  int number = 0;
  for (const Phase& phase : nest.scopes.back().phases) {
    for (const Sweep& sweep : phase.sweeps) {
      const auto use = [&](ValueId id) { lives[index(id)].last = number; };
      const auto made = [&](ValueId id) {
        if (lives[index(id)].made >= 0) return;
        lives[index(id)].made = number;
        if (const BodyNode* node = makers_[index(id)].node) std::ranges::for_each(node->operands, use);
      };
      for (const Access& read : sweep.reads) made(read.value);
      std::ranges::for_each(sweep.values, made);
      for (const BodyNode* fold : sweep.folds) use(fold->operands[0]);
      for (const Access& store : sweep.stores)
        if (!waits_in_memory(nest, store)) use(store.value);
      ++number;
    }
  }
  std::pair<int, int> most;
  for (int border = 0; border + 1 < number; ++border) {
    std::pair<int, int> now;
    for (size_t id = 0; id < lives.size(); ++id) {
      if (lives[id].made < 0 || lives[id].made > border || lives[id].last <= border) continue;
      ++(!nest.kept.empty() && contains(varies(static_cast<ValueId>(id)), nest.kept.back()) ? now.first : now.second);
    }
    if (now.first + now.second > most.first + most.second) most = now;
  }
  return most;
}

// Whether the value is stored only for a later sweep.
bool Lowering::waits_in_memory(const Nest& nest, const Access& store) {
  return std::ranges::none_of(nest.roots,
                              [&](const Access& root) { return root.value == store.value && root.port == store.port; });
}

// Lines of L2 arrive as fast as loads request them if the hardware can predict their stride, as for one loop, row after
// row. Shorter rows gain more from folding their lanes four rows at once.
bool Lowering::long_when_walked_once(const Nest& nest) const {
  constexpr int64_t kVectors = 6;
  const Expr& extent = body_.dims[index(nest.vector)].extent;
  return extent.is_constant() && extent.constant() > kVectors * options_.lanes;
}

// How rows are unrolled, `rows` at once; without vectors: they are not.
Lowering::HeldRow Lowering::held_row(const Nest& nest, int rows) const {
  constexpr int kInstructions = 512, kUnits = 64;
  if (options_.held_vectors == 0 || options_.heads || nest.tiled || nest.whole_rows || nest.vector < 0) return {};
  const Expr& extent = body_.dims[index(nest.vector)].extent;
  if (!extent.is_constant() || !body_.dims[index(nest.vector)].reduced) return {};
  const int64_t vectors = (extent.constant() + options_.lanes - 1) / options_.lanes;
  if (vectors < 1 || vectors > options_.held_vectors || vectors * rows > kUnits) return {};
  size_t instructions = 0, sweeps = 0, accumulators = 0;
  for (const Phase& phase : nest.scopes.back().phases) {
    if (phase.merges >= 0 || phase.settles >= 0) return {};
    for (const Sweep& sweep : phase.sweeps) {
      if (sweep.loops.size() != 1 || sweep.loops.back() != nest.vector) return {};
      ++sweeps;
      instructions += sweep.values.size() + sweep.reads.size() + sweep.stores.size() + sweep.folds.size();
      accumulators = std::max(accumulators, sweep.folds.size());
    }
  }
  const auto units = static_cast<int>(vectors) * rows;
  if (sweeps == 0 || units * static_cast<int>(instructions) > kInstructions) return {};
  if (sweeps == 1 && long_when_walked_once(nest)) return {};
  const auto [each, shared] = waiting(nest);
  const int beside = options_.vectors / 4 + 2;
  const int free = options_.vectors - beside - static_cast<int>(accumulators) * rows, one = each * rows + shared;
  const int held = one == 0 ? static_cast<int>(vectors) : std::clamp(free / one, 0, static_cast<int>(vectors));
  return {.vectors = static_cast<int>(vectors),
          .held = held,
          .tail = static_cast<int>(extent.constant() % options_.lanes),
          .registers = held * one};
}

// The lanes of the last vector of a row, for all rows.
std::pair<RegisterId, RegisterId> Lowering::held_tail(int lanes) {
  auto& [mask, count] = held_tail_;
  if (mask < 0) {
    count = kernel_.add_general(), mask = kernel_.add_lanes(kBool);
    entry_.push_back({.op = "Number", .attributes = {{"value", int64_t{lanes}}}, .out = {count}});
    entry_.push_back({.op = "FirstLanes", .in = {count}, .out = {mask}});
  }
  return held_tail_;
}

void Lowering::begin_held(const Nest& nest) {
  const HeldRow row = held_row(nest, place_.rows);
  if (row.vectors == 0) return;
  place_.row = row;
  place_.vector = nest.vector, place_.counter = -1, place_.copies = row.vectors;
  place_.accumulators += static_cast<size_t>(row.registers);
}

// Which of `copies` accumulators takes vector `number` of a row: the same as in loops over several vectors, then single
// ones.
int Lowering::accumulator_of(int number, int copies) const {
  const int whole = place_.row.vectors - (place_.row.tail > 0);
  int at = 0;
  for (; copies > 1; copies /= 4)
    for (; at + copies <= whole; at += copies)
      if (number < at + copies) return number - at;
  return 0;
}

void Lowering::fold_held(const SweepLoops& loops, int first, int last) {
  for (size_t i = 0; i < loops.sweep->folds.size(); ++i) {
    const BodyNode& node = *loops.sweep->folds[i];
    for (int number = first; number < last; ++number) {
      const Unit unit = unit_of(number);
      const int at = (unit.row - place_.first_row) * loops.copies + accumulator_of(unit.copy, loops.copies);
      const RegisterId accumulator = loops.accumulators[i][index(at)];
      const RegisterId operand = fill_tail(loops, node, register_of(node.operands[0], unit));
      write({.op = *fold_of(node.op),
             .attributes = said_of(node),
             .in = {accumulator, operand},
             .out = {accumulator},
             .label = label_of(node)});
    }
  }
}

// Vectors [begin, end), which are either all held or none, and all whole or not. The last ones are held: a partial
// store of a vector cannot be forwarded to a load.
void Lowering::write_held_vectors(const Nest& nest, const SweepLoops& loops, int begin, int end) {
  if (begin == end) return;
  const Sweep& sweep = *loops.sweep;
  const Place before = place_;
  place_.reuses = begin >= place_.row.vectors - place_.row.held;
  if (begin == place_.row.vectors - (place_.row.tail > 0))
    std::tie(place_.mask, place_.count) = held_tail(place_.row.tail);
  std::vector<Access> wanted = sweep.stores;
  if (place_.reuses) std::erase_if(wanted, [&](const Access& store) { return waits_in_memory(nest, store); });
  const StoresByValue stores(std::move(wanted));
  const int rows = unit_rows(), together = units_together(sweep.reads, sweep.values, stores);
  for (int first = begin * rows; first < end * rows; first += together) {
    const int last = std::min(first + together, end * rows);
    make_units(sweep.reads, sweep.values, stores, true, first, last);
    fold_held(loops, first, last);
  }
  place_ = before;
}

// For unrolled rows: whether each reloads what rows share, and has its own dependency chain.
bool Lowering::gains_row_by_row(const Sweep& sweep) const {
  constexpr int kLeastVectors = 6, kLeastLines = 2;
  const auto is_shared = [&](ValueId id) { return rows_share(id, sweep.loops.back()); };
  const auto shared = std::ranges::count_if(sweep.values, is_shared);
  const int least = shared == 0 && !stores_parts(sweep.stores) ? kLeastLines : kLeastVectors;
  return place_.row.vectors >= least && shared <= std::ssize(sweep.stores);
}

// Rows are interleaved, vector by vector; or processed row by row where each has several accumulators, or
// goes_row_by_row().
void Lowering::write_held_sweep(const Nest& nest, const Sweep& sweep) {
  SweepLoops loops{.sweep = &sweep, .vector = nest.vector, .copies = copies_within(nest.vector, sweep_copies(sweep))};
  const Place before = place_;
  const bool stored_apart = gains_row_by_row(sweep) && goes_row_by_row(sweep);
  place_.unit_rows = !stored_apart && (sweep.folds.empty() || loops.copies == 1) ? place_.rows : 1;
  std::vector<std::vector<RegisterId>> folded(sweep.folds.size());
  for (; place_.first_row < place_.rows; place_.first_row += unit_rows()) {
    loops.accumulators.clear();
    begin_folds(loops);
    const size_t bound = bound_order_.size();
    const size_t others = place_.accumulators;
    for (const std::vector<RegisterId>& made : loops.accumulators) place_.accumulators += made.size();
    const int whole = place_.row.vectors - (place_.row.tail > 0);
    const int held = std::min(place_.row.vectors - place_.row.held, whole);  // from there on
    write_held_vectors(nest, loops, 0, held);
    write_held_vectors(nest, loops, held, whole);
    write_held_vectors(nest, loops, whole, place_.row.vectors);
    place_.accumulators = others;
    for (size_t i = 0; i < sweep.folds.size(); ++i)
      for (auto at = loops.accumulators[i].begin(); at != loops.accumulators[i].end(); at += loops.copies)
        folded[i].push_back(fold_copies(*sweep.folds[i], {at, at + loops.copies}));
    if (stored_apart) unbind(bound);  // values shared by rows would be live for all of them
  }
  place_ = before;
  for (size_t i = 0; i < sweep.folds.size(); ++i) bind(sweep.folds[i]->result, fold_lanes(*sweep.folds[i], folded[i]));
}

}  // namespace tenon::snippet
