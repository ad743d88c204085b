#include "opencl/plan_memory.hpp"

#include <algorithm>

#include <tenon/support/str.hpp>

namespace tenon::opencl {
namespace {

using program::BufferId;
using program::Role;

constexpr size_t kLeastAlignment = 64;

size_t rounded(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

PlanMemory::PlanMemory(const PlanSources& sources, const program::FlatProgram& flat)
    : from_(sources),
      flat_(flat),
      align_(std::max<size_t>(sources.device.info().alignment_bits / 8, kLeastAlignment)),
      zone_(rounded(static_cast<size_t>(sources.compiler.options().guard_zones), align_)) {}

Result<void> PlanMemory::find_roots() {
  const irgen::GraphProgram& program = from_.program;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    roots_[program.inputs[i]].place = {MemoryPlace::Kind::input, i};
    if (zone_ > 0)
      TENON_OK(guard_port(program.inputs[i], program.input_types[i], irgen::dims_of_input(program, i, from_.scalars)));
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    roots_[program.outputs[i]].place = {MemoryPlace::Kind::output, i};
    if (zone_ > 0)
      TENON_OK(
          guard_port(program.outputs[i], program.output_types[i], irgen::dims_of_output(program, i, from_.scalars)));
  }
  for (size_t i = 0; i < program.constants.size(); ++i)
    roots_[program.constants[i].buffer] = {{MemoryPlace::Kind::constants, 0}, from_.constant_offsets[i]};
  for (size_t step = 0; step < flat_.steps.size(); ++step)
    for (const program::FlatOperand& operand : flat_.steps[step].operands) use(operand.root, step);
  return {};
}

void PlanMemory::use(BufferId root, size_t step) {
  Root& known = roots_[root];
  if (from_.program.program.buffer(root).role != Role::local) return;
  const auto bytes = static_cast<size_t>(flat_.local_bytes[static_cast<size_t>(root)]);
  if (known.block == kNone) known.block = add_block({.root = root, .step = step, .bytes = bytes, .stride = bytes});
  Lifetime& life = lifetimes_[known.block];
  life.last = std::max(life.last, step);
}

// With guard zones, blocks never share memory.
size_t PlanMemory::add_block(const Block& block) {
  blocks_.push_back(block);
  const size_t bytes = block.stride * block.pieces;
  lifetimes_.push_back(zone_ > 0 ? Lifetime{bytes + 2 * zone_, 0, flat_.steps.size()}
                                 : Lifetime{bytes, block.step, block.step});
  return blocks_.size() - 1;
}

size_t PlanMemory::add_scratch(size_t step, size_t bytes, size_t pieces) {
  bytes = rounded(bytes, kLeastAlignment);
  return add_block({.step = step, .bytes = bytes, .stride = bytes + zone_, .pieces = pieces});
}

// Puts a port into the arena, because zones are around it there.
Result<void> PlanMemory::guard_port(BufferId root, const Type& type, const Result<Dims>& dims) {
  TENON_OK(dims.ok() ? Result<void>() : Result<void>(dims.error()));
  TENON_TRY(count, element_count(*dims));
  const size_t bytes = static_cast<size_t>(count) * static_cast<size_t>(type.element().bits() / 8);
  roots_[root] = {.place = {}, .block = add_block({.root = root, .bytes = bytes, .stride = bytes})};
  return {};
}

void PlanMemory::plan_arena_of(DevicePlan& plan) {
  ArenaPlan arena = plan_arena(lifetimes_, align_);
  offsets_ = std::move(arena.offsets);
  plan.arena_bytes = arena.bytes, plan.arena_lower_bound_bytes = arena.lower_bound_bytes;
  if (zone_ == 0) return;
  plan.guards = std::make_unique<GuardZones>(zone_);
  for (size_t i = 0; i < blocks_.size(); ++i) guard(*plan.guards, i);
}

void PlanMemory::guard(GuardZones& zones, size_t number) const {
  const Block& block = blocks_[number];
  const program::Buffer* buffer = block.root >= 0 ? &from_.program.program.buffer(block.root) : nullptr;
  for (size_t piece = 0; piece < block.pieces; ++piece)
    zones.add(buffer ? str("%", buffer->name)
                     : str("the scratch memory of chunk ", piece, " of ", flat_.steps[block.step].stage),
              scratch(number, piece), block.bytes);
  if (buffer && buffer->role == Role::input) zones.is_input();
  if (buffer && buffer->role == Role::output) zones.is_output();
}

int64_t PlanMemory::offset(const program::FlatOperand& operand) const {
  const Root& root = roots_.at(operand.root);
  return operand.offset_bytes + (root.block == kNone ? root.offset : static_cast<int64_t>(offset_of(root.block)));
}

}  // namespace tenon::opencl
