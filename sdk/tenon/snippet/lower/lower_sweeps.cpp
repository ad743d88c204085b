// Sweeps over reduced dims, and their reductions.
#include <algorithm>
#include <utility>

#include <tenon/snippet/lower/lower_internal.hpp>

namespace tenon::snippet {
namespace {

// The loop of the sweep, counted from 1, in which a value is computed.
size_t sweep_level(const Sweep& sweep, DimSet varies) {
  for (size_t i = sweep.loops.size(); i-- > 0;)
    if (contains(varies, sweep.loops[i])) return i + 1;
  return 0;
}

}  // namespace

// Sums of floats depend on their order. They therefore always have the same number of accumulators, however long the
// body: fused or alone, a reduction gives the same bits.
int Lowering::sweep_copies(const Sweep& sweep) const {
  const auto ordered = [&](const BodyNode* fold) {
    const bool sum = fold->op == "ReduceSum" || fold->op == "ReduceProd";
    return sum && lane(fold->result).is_float();
  };
  if (std::any_of(sweep.folds.begin(), sweep.folds.end(), ordered)) return options_.unroll;
  return copies_for(sweep.values.size() + sweep.reads.size() + sweep.stores.size(), sweep.folds.size(),
                    std::max(options_.unroll / unit_rows(), place_.least_copies));
}

void Lowering::write_sweep(const Nest& nest, const Sweep& sweep) {
  if (place_.row.vectors > 0) return write_held_sweep(nest, sweep);
  if (goes_row_by_row(sweep)) {
    for (int row = 0; row < place_.rows; ++row)
      region([&] {
        place_.first_row = row, place_.unit_rows = 1;
        write_sweep(nest, sweep);
      });
    return;
  }
  SweepLoops loops{.sweep = &sweep, .scalar = sweep.loops.size()};
  // Only elements of the innermost dim are contiguous.
  const bool innermost = nest.kept.empty() || sweep.loops.back() > nest.kept.back();
  if (!nest.tiled && innermost) {
    loops.vector = sweep.loops.back();
    --loops.scalar;
    loops.copies = copies_within(loops.vector, sweep_copies(sweep));
    loops.behind = behind_, loops.next = next_;
    // As many accumulators of sums as when it is separate: all that a loop may have.
    if (next_) next_->copies = loops.copies = copies_within(loops.vector, options_.unroll);
  }
  if (loops.next) begin_folds(*loops.next);
  begin_folds(loops);
  walk_sweep(loops);
  finish_folds(loops);
}

void Lowering::walk_sweep(SweepLoops& loops) {
  PortSet all = std::exchange(touched_, {});
  region([&] {
    for (const SweepLoops* one : {static_cast<const SweepLoops*>(&loops), static_cast<const SweepLoops*>(loops.next)})
      for (size_t i = 0; one && i < one->accumulators.size(); ++i) place_.accumulators += one->accumulators[i].size();
    write_sweep_level(loops, 0);
  });
  std::vector<int> ports = touched_.all();
  std::sort(ports.begin(), ports.end());
  std::reverse(loops.ids.begin(), loops.ids.end());
  move_pointers(ports, loops.sweep->loops, loops.ids, true);
  if (loops.whole_rows && joined()) rewind_behind_rest(loops.ids.front());
  for (const int port : ports) all.add(port);
  touched_ = std::move(all);
}

void Lowering::make_sweep_level(SweepLoops& loops, size_t level, bool folds) {
  const Sweep& sweep = *loops.sweep;
  const auto here = [&](ValueId id) { return sweep_level(sweep, varies(id)) == level; };
  std::vector<Access> reads;
  std::vector<ValueId> values;
  std::copy_if(sweep.reads.begin(), sweep.reads.end(), std::back_inserter(reads),
               [&](const Access& read) { return here(read.value); });
  std::copy_if(sweep.values.begin(), sweep.values.end(), std::back_inserter(values), here);
  make(reads, values, sweep.stores, folds ? &loops : nullptr);
}

void Lowering::write_sweep_level(SweepLoops& loops, size_t level) {
  const size_t last = loops.sweep->loops.size();
  const bool outside = level > 0 && level < last;
  if (loops.behind && !loops.whole_rows && outside) write_row_before(loops, level);
  if (level > 0) make_sweep_level(loops, level, level == last);
  if (level == last) return;
  if (level + 1 == last && loops.whole_rows)
    vector_loops(loops.vector, place_.rows == loops.rows ? loops.copies : 1, [&] { fold_along_row(loops); });
  else if (level + 1 == last && loops.vector >= 0)
    vector_loops(
        loops.vector, loops.copies,
        [&] {
          if (loops.behind) write_row_before(loops);
          if (loops.next) write_row_next(*loops.next);
          loops.merging ? write_group(loops) : make_sweep_level(loops, last, true);
        },
        head_of(loops));
  else if (loops.whole_rows && level + 1 == loops.scalar)
    write_row_loops(loops, level);
  else
    loops.ids.push_back(scalar_loop(loops.sweep->loops[level], zero(), 1, [&] {
      const size_t before = of_row_before_.size();
      write_sweep_level(loops, level + 1);
      of_row_before_.resize(before);
    }));
}

// The output whose vectors its sweep along a row aligns; -1: none. Lanes that are folded are not shifted.
int Lowering::head_of(const SweepLoops& loops) const {
  return loops.sweep->folds.empty() ? head_port(loops.vector, loops.sweep->stores) : -1;
}

// --- folds --------------------------------------------------------------------------------------------------------

// Each copy has accumulators of its own, so that copies do not depend on each other.
int Lowering::copies_of(const SweepLoops& loops, const BodyNode& fold) const {
  if (loops.whole_rows) return place_.copies;
  if (loops.vector >= 0) return loops.copies;
  return in_lanes(fold.result) ? place_.copies : 1;
}

void Lowering::begin_folds(SweepLoops& loops) {
  for (const BodyNode* fold : loops.sweep->folds) {
    std::vector<RegisterId>& made = loops.accumulators.emplace_back();
    const int units = unit_rows() * copies_of(loops, *fold);
    for (int unit = 0; unit < units; ++unit) {
      made.push_back(kernel_.add_lanes(lane(fold->result)));
      write({.op = "Scalar",
             .attributes = {{"bits", initial_of(*fold)}},
             .out = {made.back()},
             .label = label_of(*fold)});
    }
  }
}

// Folds the values of units [first, last) into the accumulators. Whole rows keep these in memory, so that each sum may
// be another register.
void Lowering::fold(SweepLoops& loops, int first, int last) {
  for (size_t i = 0; i < loops.sweep->folds.size(); ++i) {
    const BodyNode& node = *loops.sweep->folds[i];
    const int copies = copies_of(loops, node);
    for (int number = first; number < last; ++number) {
      const Unit unit = unit_of(number);
      if (unit.copy >= copies) continue;
      RegisterId& accumulator = loops.accumulators[i][index((loops.whole_rows ? 0 : unit.row * copies) + unit.copy)];
      const RegisterId operand = fill_tail(loops, node, register_of(node.operands[0], unit));
      const RegisterId sum = loops.whole_rows ? kernel_.add_lanes(lane(node.result)) : accumulator;
      write({.op = *fold_of(node.op),
             .attributes = said_of(node),
             .in = {accumulator, operand},
             .out = {sum},
             .label = label_of(node)});
      accumulator = sum;
    }
  }
}

// Its lanes beyond the end are then 0.
bool Lowering::loaded_in_part(RegisterId id) const {
  static const Name kLoad("Load");
  const auto makes = [&](const Instruction& instruction) {
    return std::find(instruction.out.begin(), instruction.out.end(), id) != instruction.out.end();
  };
  const auto maker = std::find_if(kernel_.body.rbegin(), kernel_.body.rend(), makes);
  return maker != kernel_.body.rend() && maker->op == kLoad && maker->touched == codegen::Lanes::partial;
}

// Lanes beyond the end must not affect a fold of lanes.
RegisterId Lowering::fill_tail(const SweepLoops& loops, const BodyNode& node, RegisterId operand) {
  if (loops.vector < 0 || loops.whole_rows || place_.mask < 0) return operand;
  if (initial_of(node) == 0 && loaded_in_part(operand)) return operand;
  const RegisterId filled = kernel_.add_lanes(lane(node.result));
  write({.op = "FillTail",
         .attributes = {{"bits", initial_of(node)}},
         .in = {operand, place_.mask},
         .out = {filled},
         .label = label_of(node)});
  return filled;
}

void Lowering::finish_folds(SweepLoops& loops) {
  for (size_t i = 0; i < loops.sweep->folds.size(); ++i) {
    const BodyNode& node = *loops.sweep->folds[i];
    const std::vector<RegisterId>& made = loops.accumulators[i];
    if (loops.vector < 0) {
      bind(node.result, made);
      continue;
    }
    std::vector<RegisterId> rows;
    for (auto at = made.begin(); at != made.end(); at += loops.copies)
      rows.push_back(fold_copies(node, {at, at + loops.copies}));
    bind(node.result, fold_lanes(node, rows));
  }
}

// Pairwise.
RegisterId Lowering::fold_copies(const BodyNode& node, std::vector<RegisterId> made) {
  for (size_t count = made.size(); count > 1; count = (count + 1) / 2) {
    for (size_t i = 0; i < count / 2; ++i) {
      const RegisterId other = made[count - 1 - i];
      write({.op = *fold_of(node.op),
             .attributes = said_of(node),
             .in = {made[i], other},
             .out = {made[i]},
             .label = label_of(node)});
    }
  }
  return made[0];
}

// Four rows share the steps; the bits are those of each on its own.
std::vector<RegisterId> Lowering::fold_lanes(const BodyNode& node, const std::vector<RegisterId>& rows) {
  const size_t together = rows.size() % 4 == 0 ? 4 : 1;
  std::vector<RegisterId> made;
  for (auto at = rows.begin(); at != rows.end(); at += static_cast<std::ptrdiff_t>(together)) {
    Instruction instruction{.op = together == 4 ? "FoldRows" : "FoldLanes",
                            .attributes = said_of(node),
                            .in = {at, at + static_cast<std::ptrdiff_t>(together)},
                            .label = label_of(node)};
    instruction.attributes.set("by", fold_of(node.op)->str());
    for (size_t i = 0; i < together; ++i) instruction.out.push_back(kernel_.add_lanes(lane(node.result)));
    made.insert(made.end(), instruction.out.begin(), instruction.out.end());
    write(std::move(instruction));
  }
  return made;
}

}  // namespace tenon::snippet
