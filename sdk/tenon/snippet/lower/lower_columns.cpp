// Column reductions in whole rows: the vector loop is inside the loops over rows, and the accumulators are in a scratch
// row, which is short compared with the tensors. Memory is then read in order, several rows at once.
//
//   for columns                     sums = 0
//   for rows, four at once          rows one after the other into each sum, as in a tile: the same bits
//     for columns                     sum += x
//   for columns                     what depends on the sums
#include <algorithm>
#include <utility>

#include <tenon/snippet/lower/lower_internal.hpp>

namespace tenon::snippet {
namespace {

bool has(const std::vector<ValueId>& ids, ValueId id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

}  // namespace

void Lowering::write_whole_rows(const Nest& nest) {
  if (plan_.behind) return write_block_loop(nest);
  size_t sweeps = 0;
  if (joined()) kernel_.joined.rows = nest.vector - 1;
  for (const Access& row : nest.rows) row_ports_[index(row.value)] = row.port;
  for (const Phase& phase : nest.scopes.back().phases) {
    write_row_values(nest, phase);
    if (phase.settles >= 0) settle_rows(nest, plan_.mergings[index(phase.settles)]);
    if (phase.merges >= 0) write_merged_rows(nest, plan_.mergings[index(phase.merges)], nullptr);
    for (const Sweep& sweep : phase.sweeps) write_row_sweep(nest, sweep);
    sweeps += phase.sweeps.size() + (phase.merges >= 0);
  }
  if (joined()) return;
  kernel_.blocks.dim = nest.vector;
  kernel_.blocks.again |= sweeps > 1;
}

// The reads of a sweep along the row, beside its own values: values of other sweeps, and inputs, which it loads.
void Lowering::add_row_operands(const Nest& nest, const std::vector<ValueId>& wanted, std::vector<Access>& reads,
                                std::vector<ValueId>& makes) const {
  std::vector<char> there(body_.values.size(), 0);
  for (const ValueId id : makes) there[index(id)] = 1;
  for (const Access& read : reads) there[index(read.value)] = 1;
  std::vector<ValueId> loads;
  const auto add = [&](ValueId id) {
    if (swept(id) || !contains(varies(id), nest.vector) || std::exchange(there[index(id)], 1)) return;
    if (row_ports_[index(id)] >= 0)
      reads.push_back({id, row_ports_[index(id)]});
    else
      loads.push_back(id);
  };
  for (const ValueId id : makes)
    if (const BodyNode* node = makers_[index(id)].node)
      for (const ValueId operand : node->operands) add(operand);
  for (const ValueId id : wanted) add(id);
  makes.insert(makes.begin(), loads.begin(), loads.end());
}

void Lowering::write_row_values(const Nest& nest, const Phase& phase) {
  std::vector<Access> stores, reads;
  for (const std::vector<Access>* accesses : {&nest.roots, &nest.rows})
    std::copy_if(accesses->begin(), accesses->end(), std::back_inserter(stores),
                 [&](const Access& access) { return has(phase.values, access.value); });
  if (stores.empty()) return;
  std::vector<ValueId> makes;  // inputs only where they are stored: readers load them themselves
  std::copy_if(phase.values.begin(), phase.values.end(), std::back_inserter(makes), [&](ValueId id) {
    return makers_[index(id)].node ||
           std::any_of(stores.begin(), stores.end(), [&](const Access& store) { return store.value == id; });
  });
  add_row_operands(nest, {}, reads, makes);
  if (joined()) return write_joined_values(nest, reads, makes, stores);
  vector_loops(nest.vector, copies_for(makes.size(), 0, options_.unroll), [&] { make(reads, makes, stores); });
}

// With the loop along the row, and its reads there.
Sweep Lowering::along_row(const Nest& nest, const Sweep& sweep) const {
  Sweep row = sweep;
  std::vector<ValueId> folded;
  for (const BodyNode* fold : sweep.folds) folded.push_back(fold->operands[0]);
  add_row_operands(nest, folded, row.reads, row.values);
  row.loops.push_back(nest.vector);
  return row;
}

void Lowering::write_row_sweep(const Nest& nest, const Sweep& sweep, const Sweep* behind) {
  const Sweep row = along_row(nest, sweep), along = behind ? along_row(nest, *behind) : Sweep{};
  Sweep all = row;
  all.values.insert(all.values.end(), along.values.begin(), along.values.end());
  all.reads.insert(all.reads.end(), along.reads.begin(), along.reads.end());
  all.stores.insert(all.stores.end(), along.stores.begin(), along.stores.end());
  SweepLoops loops{.sweep = &row, .scalar = sweep.loops.size(), .vector = nest.vector, .whole_rows = true};
  if (behind) loops.behind = &along;
  loops.rows = plan_.behind && kernel_.merged ? kRowsOfKept : rows_of_sweep(all, options_.rows);
  const size_t instructions = all.values.size() + all.reads.size() + all.stores.size();
  loops.copies = copies_for(static_cast<size_t>(loops.rows) * instructions, row.folds.size(), options_.unroll / 2);
  begin_row_folds(nest, row);
  walk_sweep(loops);
  joined() ? join_row_folds(nest, row) : store_row_folds(nest, row);
}

// As many as there are pointer registers for, at most `most`.
int Lowering::rows_of_sweep(const Sweep& row, int most) const {
  constexpr size_t kPointers = 8, kInstructions = 96;
  const int dim = row.loops[row.loops.size() - 2];
  std::vector<int> ports;
  const auto add = [&](int port) {
    if (port >= 0 && contains(varies_of(port), dim) && std::find(ports.begin(), ports.end(), port) == ports.end())
      ports.push_back(port);
  };
  for (const ValueId id : row.values) add(makers_[index(id)].port);
  for (const std::vector<Access>* accesses : {&row.reads, &row.stores})
    for (const Access& access : *accesses) add(access.port);
  int rows = most;
  while (rows > 1 && (static_cast<size_t>(rows) * ports.size() > kPointers ||
                      static_cast<size_t>(rows) * row.values.size() > kInstructions))
    rows /= 2;
  return rows;
}

void Lowering::begin_row_folds(const Nest& nest, const Sweep& row) {
  if (row.folds.empty()) return;
  vector_loops(nest.vector, options_.unroll, [&] {
    for (const BodyNode* fold : row.folds) {
      const RegisterId initial = scalar(lane(fold->result), initial_of(*fold));
      bind(fold->result, std::vector<RegisterId>(static_cast<size_t>(place_.copies), initial));
      store_row_fold(*fold);
    }
  });
}

void Lowering::store_row_fold(const BodyNode& fold) {
  for (int copy = 0; copy < place_.copies; ++copy) store(row_ports_[index(fold.result)], fold.result, {.copy = copy});
}

// Those that are results of the nest.
void Lowering::store_row_folds(const Nest& nest, const Sweep& row) {
  std::vector<Access> stores, reads;
  for (const BodyNode* fold : row.folds) {
    const auto of_fold = [&](const Access& root) { return root.value == fold->result; };
    const size_t before = stores.size();
    std::copy_if(nest.roots.begin(), nest.roots.end(), std::back_inserter(stores), of_fold);
    if (stores.size() > before) reads.push_back({fold->result, row_ports_[index(fold->result)]});
  }
  if (!stores.empty()) vector_loops(nest.vector, options_.unroll, [&] { make(reads, {}, stores); });
}

// The loop over rows exists twice, for several and for single ones.
void Lowering::write_row_loops(SweepLoops& loops, size_t level) {
  const int dim = loops.sweep->loops[level];
  const RegisterId counter = zero();
  if (loops.rows > 1) {
    row_pointers_.clear();
    row_loop_ = scalar_loop(dim, counter, loops.rows, [&] {
      place_.row_dim = dim, place_.rows = loops.rows;
      write_sweep_level(loops, level + 1);
    });
  }
  loops.ids.push_back(scalar_loop(dim, counter, 1, [&] { write_sweep_level(loops, level + 1); }));
  if (joined()) vector_loops(loops.vector, kernel_.joined.rest(), loops.copies, [&] { fold_along_row(loops); });
  if (loops.rows == 1) return;
  make_row_pointers(loops.ids.back());
  move_row_pointers(dim, touched_.all());
  row_loop_ = -1;
}

// The body of a vector loop: the folds of columns are loaded from memory and stored back.
void Lowering::fold_along_row(SweepLoops& loops) {
  if (loops.behind) region([&] { make(loops.behind->reads, loops.behind->values, loops.behind->stores); });
  if (loops.merging) return write_group(loops);
  loops.accumulators.clear();
  for (const BodyNode* fold : loops.sweep->folds) {
    std::vector<RegisterId>& made = loops.accumulators.emplace_back();
    for (int copy = 0; copy < place_.copies; ++copy)
      made.push_back(load(row_ports_[index(fold->result)], fold->result, {.copy = copy}));
    place_.accumulators += made.size();
  }
  make_sweep_level(loops, loops.sweep->loops.size(), true);
  for (size_t i = 0; i < loops.accumulators.size(); ++i) {
    const BodyNode& fold = *loops.sweep->folds[i];
    bind(fold.result, loops.accumulators[i]);
    store_row_fold(fold);
  }
}

}  // namespace tenon::snippet
