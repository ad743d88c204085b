// Allocations of the interpreter: each has memory of its own.
#include <algorithm>

#include <tenon/program/exec/interpreter_internal.hpp>

namespace tenon::program::detail {

Result<void> Interpreter::run(const Allocate& allocate) {
  const Allocation& a = allocate.allocation;
  TENON_TRY(buffer, this->allocate(a), "allocate '", name_of(a.buffer), "'");
  const std::shared_ptr<MemoryBlock> memory = buffer.memory;
  auto result = run_with(a.buffer, std::move(buffer), allocate.body);
  TENON_OK(std::move(result));
  if (!memory->freed) return free(*memory);
  return {};
}

Result<void> Interpreter::run(const Free& f) {
  TENON_TRY(buffer, lookup(f.buffer), "free '", name_of(f.buffer), "'");
  return free(*buffer->memory);
}

Result<BoundBuffer> Interpreter::allocate(const Allocation& a) {
  TENON_TRY(buffer, make(a));
  const MemoryBlock& memory = *buffer.memory;
  const bool on_stack = is_on_stack(a.placement, memory.bytes * memory.slots, options_.stack_bytes);
  counts_.allocate(memory.bytes * memory.slots, on_stack);
  on_stack_[&memory] = on_stack;
  return buffer;
}

Result<BoundBuffer> Interpreter::make(const Allocation& a) {
  const ElementType element = program_.buffer(a.buffer).element;
  BoundBuffer buffer{nullptr, {}, element, std::make_shared<MemoryBlock>()};
  TENON_TRY(dims, evaluate(a.dims, element));
  TENON_TRY(spread, spread_of(dims, element));
  TENON_TRY(slots, evaluate(a.slots));
  const int64_t limit = static_cast<int64_t>(tensor_bytes_limit());
  if (slots < 1 || spread.bytes() > limit / slots)
    return error(Code::resource_exhausted, slots, " slots of ", spread.bytes(),
                 " bytes: at least one slot, and at most ", limit, " bytes (TENON_TENSOR_LIMIT)");
  const size_t bytes = static_cast<size_t>(spread.bytes() * slots);
  TENON_TRY(owned, allocate_aligned(bytes, a.align_bytes > 0 ? static_cast<size_t>(a.align_bytes) : kAlignBytes));
  if (!tracer_) std::fill_n(owned.get(), bytes, kUndefined);
  *buffer.memory = {std::move(owned), nullptr, spread.bytes(), slots, a.buffer, false};
  buffer.memory->begin = buffer.memory->owned.get();
  buffer.base = buffer.memory->begin - spread.low;
  buffer.dims = std::move(dims);
  return buffer;
}

Result<void> Interpreter::free(MemoryBlock& memory) {
  for (size_t token = 0; token < queues_.size(); ++token)
    for (const PendingTransfer& t : queues_[token])
      if (t.copy.destination.memory.get() == &memory || t.copy.source.memory.get() == &memory ||
          (t.copy.padding && t.copy.padding->memory.get() == &memory))
        return error(Code::invalid_argument, "'", name_of(memory.root), "' is freed while a transfer of token '",
                     program_.tokens[token], "' is under way: wait for it before");
  memory.freed = true;
  if (tracer_) memory.owned.reset();  // a tracer may keep the block, for its name
  counts_.free(memory.bytes * memory.slots, on_stack_[&memory]);
  on_stack_.erase(&memory);
  return {};
}

}  // namespace tenon::program::detail
