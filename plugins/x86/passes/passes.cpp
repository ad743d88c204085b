#include "x86/passes/passes.hpp"

#include <algorithm>

#include <tenon/snippet/write_out.hpp>

#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

// The instruction that reads `id`, which is for one, when it comes after `at` with no border, and no write to one of
// `kept`, and, where `stores` says so, no store between them; else null. Stays true of what is not yet looked at while
// readers take what their operands are made of, from the body's begin to its end.
Instruction* reader_of(LinearKernel& kernel, const Uses& uses, size_t at, RegisterId id,
                       std::span<const RegisterId> kept, bool stores) {
  static const Name kStore("Store");
  const size_t reader = uses.readers(id)[0];
  if (reader <= at || !uses.in_one_stretch(at, reader)) return nullptr;
  for (size_t i = at + 1; i < reader; ++i) {
    const Instruction& between = kernel.body[i];
    if (stores && between.op == kStore) return nullptr;
    if (std::ranges::find_first_of(between.out, kept) != between.out.end()) return nullptr;
  }
  return &kernel.body[reader];
}

// ---- Mul, Neg and Add ----

// `sum` adds the product `product` of `factors`: as one operation. False when it does something else with it.
bool contract(Instruction& sum, RegisterId product, const snippet::RegisterIds& factors) {
  static const Name kAdd("Add"), kSub("Sub"), kFma("Fma"), kFms("Fms"), kFnma("Fnma");
  if ((sum.op != kAdd && sum.op != kSub) || sum.memory) return false;
  const bool first = sum.in[0] == product;
  const RegisterId other = sum.in[first ? 1 : 0];
  sum.op = sum.op == kAdd ? kFma : first ? kFms : kFnma;
  sum.in = {factors[0], factors[1], other};
  return true;
}

// `sum` adds `negated`, which is -x: as a difference. The sign of a NaN may be another.
bool subtract(Instruction& sum, RegisterId negated, const snippet::RegisterIds& x) {
  static const Name kAdd("Add"), kSub("Sub");
  if (sum.op != kAdd || sum.memory) return false;
  sum.op = kSub;
  sum.in = {sum.in[sum.in[0] == negated ? 1 : 0], x[0]};
  return true;
}

// ---- Loads ----

bool reads_lanes_as_they_are(const LinearKernel& kernel, const Instruction& load, Isa isa) {
  static const Name kLoad("Load"), kBroadcast("BroadcastLoad");
  if (load.touched != Lanes::full || (load.op != kLoad && load.op != kBroadcast)) return false;
  if (load.op == kBroadcast && isa != Isa::avx512) return false;
  const ElementType lane = kernel.registers[static_cast<size_t>(load.out[0])].element;
  return lane == load.memory->element && lane.bits() >= 32;
}

// No set has a quotient of integers.
bool is_float(const LinearKernel& kernel, const Instruction& user) {
  return kernel.registers[static_cast<size_t>(user.out[0])].element.is_float();
}

// AVX2 has no product of 64-bit integers.
bool machine_multiplies(const LinearKernel& kernel, const Instruction& user) {
  const ElementType element = kernel.registers[static_cast<size_t>(user.out[0])].element;
  return element.is_float() || element.bits() == 32;
}

// `user` with its operand `value` in memory. False when it has no such form.
bool fold(const LinearKernel& kernel, Instruction& user, RegisterId value) {
  static const Name kAdd("Add"), kSub("Sub"), kMul("Mul"), kDiv("Div"), kFma("Fma"), kMax("Max"), kMin("Min");
  const bool extreme = user.op == kMax || user.op == kMin;
  if (user.memory || std::count(user.in.begin(), user.in.end(), value) != 1) return false;
  const auto at = static_cast<size_t>(std::find(user.in.begin(), user.in.end(), value) - user.in.begin());
  if (user.op == kFma) {
    user.attributes.set("place", at == 2 ? 2 : 1);
  } else if (user.op == kAdd || (user.op == kMul && machine_multiplies(kernel, user))) {
    // either operand
  } else if (at != 1 || !(user.op == kSub || ((user.op == kDiv || extreme) && is_float(kernel, user)))) {
    return false;
  }
  user.op = user.op.str() + "Memory";
  user.in.erase(user.in.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

// Floats that `maker` makes, not marked as rounded (body/numbers.hpp), and that one sum alone reads, taken into that
// sum by `into(sum, made, operands)`.
template <class Into>
void take_into_sums(LinearKernel& kernel, Name maker, Into into) {
  const Uses uses(kernel);
  std::vector<char> gone(kernel.body.size(), 0);
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& one = kernel.body[i];
    if (one.op != maker || one.attributes.find("rounded")) continue;
    const RegisterId made = one.out[0];
    if (!kernel.registers[static_cast<size_t>(made)].element.is_float() || !uses.is_for_one(made)) continue;
    Instruction* const sum = reader_of(kernel, uses, i, made, one.in, false);
    if (sum) gone[i] = into(*sum, made, one.in);
  }
  erase_marked(kernel, gone);
}

}  // namespace

void contract_multiply_add(LinearKernel& kernel) {
  static const Name kMul("Mul"), kNeg("Neg");
  // Negated products become products that are subtracted.
  take_into_sums(kernel, kNeg, subtract);
  take_into_sums(kernel, kMul, contract);
}

void leave_rounding_to_stores(LinearKernel& kernel) {
  static const Name kRound("Round"), kStore("Store");
  const Uses uses(kernel);
  std::vector<char> gone(kernel.body.size(), 0);
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& round = kernel.body[i];
    if (round.op != kRound || !uses.is_for_one(round.out[0])) continue;
    Instruction* const store = reader_of(kernel, uses, i, round.out[0], round.in, false);
    if (!store || store->op != kStore) continue;
    const std::string* to = round.attributes.find("to")->get_if<std::string>();
    if (!to || ElementType::parse(*to).value_or(ElementType()) != store->memory->element ||
        kernel.registers[static_cast<size_t>(round.in[0])].element != kF32)
      continue;
    store->in[0] = round.in[0];
    gone[i] = 1;
  }
  erase_marked(kernel, gone);
}

void fold_loads(LinearKernel& kernel, Isa isa) {
  static const Name kBroadcast("BroadcastLoad");
  const Uses uses(kernel);
  std::vector<char> gone(kernel.body.size(), 0);
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& load = kernel.body[i];
    if (!load.memory || !reads_lanes_as_they_are(kernel, load, isa) || !uses.is_for_one(load.out[0])) continue;
    // The memory may be an output's as well: no store may come between.
    const RegisterId address[] = {load.memory->base, load.memory->index};
    Instruction* const user = reader_of(kernel, uses, i, load.out[0], address, true);
    if (!user || !fold(kernel, *user, load.out[0])) continue;
    user->memory = load.memory;
    if (load.op == kBroadcast) user->attributes.set("broadcast", 1);
    gone[i] = 1;
  }
  erase_marked(kernel, gone);
}

std::set<RegisterId> standing_pointers(const LinearKernel& kernel) {
  static const Name kBegin("LoopBegin"), kTail("TailBegin"), kEnd("LoopEnd"), kTailEnd("TailEnd"),
      kParameter("Parameter");
  std::set<RegisterId> standing;
  for (const Instruction& one : kernel.body)
    if (one.op == kParameter) standing.insert(one.out[0]);
  for (const Loop& loop : kernel.loops)
    if (!kernel.is_inside_row(loop))
      for (const Loop::Shift& shift : loop.shifts) standing.erase(shift.pointer);
  if (kernel.skewed) return standing;
  std::vector<bool> open, moves_rows(kernel.loops.size());
  for (size_t i = 0; i < kernel.loops.size(); ++i)
    moves_rows[i] = !kernel.loops[i].shifts.empty() && !kernel.is_inside_row(kernel.loops[i]);
  for (const Instruction& one : kernel.body) {
    if (one.op == kBegin || one.op == kTail) open.push_back(moves_rows[static_cast<size_t>(one.number)]);
    if (one.op == kEnd || one.op == kTailEnd) open.pop_back();
    if (one.memory && std::ranges::find(open, true) == open.end()) standing.erase(one.memory->base);
  }
  return standing;
}

namespace {

// Pointers that lie a step behind one of `pointers`, too.
void add_steps_from(const LinearKernel& kernel, std::set<RegisterId>& pointers) {
  static const Name kAdd("AddParameter");
  for (const Instruction& one : kernel.body)
    if (one.op == kAdd && pointers.contains(one.in[0])) pointers.insert(one.out[0]);
}

// Of rows of one tensor behind the first, those before the furthest: as that they were fetched.
std::set<RegisterId> nearer_rows(const LinearKernel& kernel) {
  static const Name kAdd("AddParameter");
  std::set<RegisterId> behind, nearer;
  for (const Instruction& one : kernel.body) {
    if (one.op != kAdd) continue;
    if (behind.contains(one.in[0])) nearer.insert(one.in[0]);
    behind.insert(one.out[0]);
  }
  return nearer;
}

void fetch_ahead(LinearKernel& kernel, const PassOptions& options) {
  auto [near, standing] = fetch_next_rows(kernel, options.next_row);
  if (options.next_row_lines) near.clear();
  near.merge(standing);
  fetch_held_rows(kernel, options.prefetch_reads, options.prefetch_writes);
  // Rows that are merged without being skewed may exceed the caches: nothing of theirs is near.
  if (kernel.skewed || !kernel.merged) near.merge(standing_pointers(kernel));
  if (options.streams.each > 1 && !options.whole_lines) split_streams(kernel, options.streams);
  add_steps_from(kernel, near);
  if (kernel.skewed) near.merge(nearer_rows(kernel));
  if (options.prefetch_writes.lines > 0) prefetch_writes(kernel, options.prefetch_writes, near);
  if (options.prefetch_reads.lines > 0) prefetch_reads(kernel, options.prefetch_reads, near);
}

}  // namespace

Result<void> optimise(LinearKernel& kernel, const PassOptions& options) {
  drop_wraps(kernel);
  convert_in_range(kernel);
  if (options.near || options.bytes) join_bytes(kernel, options.isa);
  if (options.isa == Isa::avx512) join_conditions(kernel);
  if (options.contract) tabulate_functions(kernel, options.isa);
  divide_by_constants(kernel);
  if (options.contract) divide_by_standing(kernel, options);
  mark_narrow_integers(kernel);
  mark_narrow_loads(kernel);
  if (options.contract) contract_multiply_add(kernel);
  // Behind contraction, which stays within loops: bits are those of open extents.
  if (options.near) snippet::write_out(kernel);
  drop_neutral_folds(kernel);
  mark_first_lanes(kernel);
  pack_fours(kernel);
  narrow_alike(kernel);
  leave_rounding_to_stores(kernel);
  if (options.far_by_halves)
    load_by_halves(kernel, ByHalves::first_walks);
  else if (options.any_rows)
    load_by_halves(kernel, ByHalves::all);
  if (options.memory_operands) fold_loads(kernel, options.isa);
  if (options.stream_stores) stream_stores(kernel, options), loads_before_stores(kernel);
  if (options.items) stage_items(kernel, *options.items);
  // Blocks and joined rows are short, and several of their rows side by side already.
  if (kernel.blocks.dim < 0) {
    fetch_ahead(kernel, options);
  } else if (options.block_cache_bytes > 0) {
    size_blocks(kernel, options);
    if (options.prefetch_blocks && kernel.blocks.inside && kernel.merged)
      fetch_rows_ahead(kernel);
    else if (options.prefetch_blocks && !kernel.merged)
      prefetch_blocks(kernel);
    // Their blocks are long rows that no cache holds.
    if (kernel.merged && !kernel.blocks.inside && options.prefetch_reads.lines > 0)
      prefetch_reads(kernel, options.prefetch_reads);
  }
  if (options.whole_lines) store_lines(kernel);
  spread_prefetches(kernel);
  fold_steps(kernel);
  store_fours(kernel);
  return snippet::verify(kernel);
}

}  // namespace tenon::x86
