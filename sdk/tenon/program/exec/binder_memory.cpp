// Where the allocations of a bound program are placed, and how they are counted.
#include <algorithm>

#include <tenon/program/exec/binder_internal.hpp>
#include <tenon/program/exec/statistics_internal.hpp>

namespace tenon::program::detail {

Result<void> Binder::emit(const Allocate& s) {
  const Allocation& a = s.allocation;
  const MemoryRoot before = roots_[static_cast<size_t>(a.buffer)];
  TENON_TRY(made, make_allocation(a), "allocate '", name(a.buffer), "'");
  auto result = with_buffer(a.buffer, std::move(made), s.body);
  if (!freed_[static_cast<size_t>(a.buffer)]) count_free(a.buffer);
  freed_[static_cast<size_t>(a.buffer)] = false;
  roots_[static_cast<size_t>(a.buffer)] = before;
  return result;
}

Result<void> Binder::emit(const Free& s) {
  freed_[static_cast<size_t>(s.buffer)] = true;
  count_free(s.buffer);
  return {};
}

Result<SymbolicBuffer> Binder::make_allocation(const Allocation& a) {
  SymbolicBuffer made = scope_.allocation(a);
  TENON_OK(check_extents(a, made));
  const SymbolicSpread spread = spread_of(made.dims, program_.buffer(a.buffer).element);
  const Expr bytes = scope_.simplified(spread.bytes);
  TENON_TRY(slots, most(resolved(a.slots)), "the slots of '", name(a.buffer), "'");
  if (slots < 1)
    return error(Code::invalid_argument, "'", name(a.buffer), "' has ", slots, " slots, at least 1 is needed");
  TENON_TRY(root, make_root(a, bytes, slots));
  made.offset = scope_.simplified(spread.base);
  roots_[static_cast<size_t>(a.buffer)] = std::move(root);
  if (options_.statistics) count_allocation(a, bytes * slots);
  return made;
}

Result<void> Binder::check_extents(const Allocation& a, const SymbolicBuffer& made) {
  for (size_t d = 0; d < made.dims.size(); ++d)
    if (!prove_not_negative(made.dims[d].extent))
      TENON_OK(check_at_run(made.dims[d].extent,
                            str("allocate '", name(a.buffer), "': dim ", d, " has an extent that is negative")));
  return {};
}

Result<MemoryRoot> Binder::make_root(const Allocation& a, const Expr& bytes, int64_t slots) {
  MemoryRoot root{.place = registers_.new_word(),
                  .level = region_level(),
                  .high = bytes,
                  .slot_bytes = bytes,
                  .slots = slots,
                  .depth = loops_.size()};
  TENON_TRY(most_bytes, most(bytes));
  const auto limit = static_cast<int64_t>(tensor_bytes_limit());
  const int64_t align = std::max<int64_t>(a.align_bytes, static_cast<int64_t>(kAlignBytes));
  const bool planned = bytes.is_constant() || most_bytes <= options_.most_planned_bytes / slots;
  if (planned && most_bytes > limit / slots)
    return error(Code::resource_exhausted, slots, " slots of ", most_bytes, " bytes, and at most ", limit,
                 " are allowed (TENON_TENSOR_LIMIT)");
  if (planned) {
    root.slot_bytes = most_bytes;
    root.block = static_cast<int32_t>(result_.blocks.size());
    result_.blocks.push_back(
        {.buffer = a.buffer, .space = a.space, .bytes = most_bytes * slots, .align = align, .region = region_});
    block_roots_.push_back(root.place);
  } else {
    root.grows = true;
    root.level = std::max(registers_.level_of(bytes), region_level());
    Instr grow{Op::grow, root.place, registers_.value(bytes * slots)};
    grow.index = static_cast<int32_t>(code().grow_align.size());
    code().grow_align.push_back(static_cast<size_t>(align));
    registers_.set_at_begin(std::move(grow), root.level);
  }
  return root;
}

void Binder::count_allocation(const Allocation& a, const Expr& bytes) {
  Instr instr{Op::allocate};
  instr.a = registers_.value(scope_.simplified(bytes));
  instr.index = a.buffer;
  // Automatic placement depends on the bytes of a run.
  instr.b = a.placement == Placement::automatic
                ? registers_.value(scope_.simplified(less_equal(bytes, options_.stack_bytes)))
                : Value{a.placement == Placement::stack, -1};
  body().push_back(instr);
  counted_[a.buffer] = instr;
}

void Binder::count_free(BufferId id) {
  if (!options_.statistics) return;
  Instr instr = counted_[id];
  instr.op = Op::free;
  body().push_back(instr);
}

void Binder::place_blocks() {
  plan_arenas(result_.blocks, result_.regions);
  std::vector<std::map<std::string, Place>> bases(result_.regions.size());
  for (size_t r = 0; r < result_.regions.size(); ++r) {
    const ArenaRegion& region = result_.regions[r];
    for (const auto& [space, bytes] : region.bytes) {
      const Place base = bases[r][space] = registers_.new_word();
      if (r == 0)
        code().arenas.emplace_back(base, space);
      else
        code().loops[static_cast<size_t>(region.loop)].bases.push_back(
            {base, bases[static_cast<size_t>(region.outer)].at(space), region.offset.at(space), bytes});
    }
  }
  code().arena_bytes = result_.regions[0].bytes;
  for (size_t b = 0; b < result_.blocks.size(); ++b) {
    const PlannedBlock& block = result_.blocks[b];
    if (block.first > block.last) continue;  // unused
    const auto r = static_cast<size_t>(block.region);
    auto& roots = r == 0 ? code().roots : code().loops[static_cast<size_t>(result_.regions[r].loop)].worker_roots;
    roots.push_back({block_roots_[b], bases[r].at(block.space), block.offset});
  }
}

}  // namespace tenon::program::detail
