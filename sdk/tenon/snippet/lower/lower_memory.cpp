// Memory accesses of values: ports, pointers, loads and stores.
#include <algorithm>

#include <tenon/snippet/lower/lower_internal.hpp>

namespace tenon::snippet {

const ScratchPlan* Lowering::scratch_of(int port) const {
  return port < tensors() ? nullptr : &plan_.scratch[index(port - tensors())];
}
ElementType Lowering::element_of(int port) const {
  const size_t inputs = body_.inputs.size();
  if (const ScratchPlan* scratch = scratch_of(port)) return scratch->element;
  return index(port) < inputs ? body_.inputs[index(port)].element : body_.outputs[index(port) - inputs].element;
}
DimSet Lowering::varies_of(int port) const {
  const size_t inputs = body_.inputs.size();
  if (const ScratchPlan* scratch = scratch_of(port)) return scratch->dims;
  return varies(index(port) < inputs ? body_.inputs[index(port)].value : body_.outputs[index(port) - inputs].value);
}

RegisterId Lowering::pointer_of(int port) {
  if (pointers_.size() <= index(port)) pointers_.resize(index(port) + 1, -1);
  RegisterId& pointer = pointers_[index(port)];
  if (pointer < 0) pointer = parameter({.kind = Param::Kind::pointer, .port = port});
  touched_.add(port);
  return pointer;
}

RegisterId Lowering::pointer_of(int port, int row) {
  const RegisterId first = pointer_of(port);
  if (row == 0 || !contains(varies_of(port), place_.row_dim)) return first;
  std::vector<RegisterId>& pointers = row_pointers_[port];
  while (pointers.size() < index(row)) pointers.push_back(kernel_.add_general());
  return pointers[index(row - 1)];
}

Memory Lowering::address(int port, ValueId id, Unit unit) {
  const ElementType element = element_of(port);
  Memory memory{.element = element, .base = pointer_of(port, unit.row + place_.ahead)};
  if (!in_lanes(id)) return memory;
  memory.displacement_bytes = int64_t{unit.copy} * options_.lanes * (element.bits() / 8);
  if (!in_tile_scratch(port)) memory.index = place_.counter;
  return memory;
}

// The lanes of one tile are all present, whatever the tensors' tail.
bool Lowering::in_tile_scratch(int port) const {
  const ScratchPlan* scratch = scratch_of(port);
  return scratch && scratch->tile;
}

void Lowering::note_width(int port) {
  if (!in_tile_scratch(port)) return;
  int64_t& width = kernel_.scratch[index(port - tensors())].width;
  width = std::max(width, int64_t{options_.lanes} * place_.tile_copies);
}

RegisterId Lowering::load(int port, ValueId id, Unit unit) {
  static const Name kLoad("Load"), kBroadcastLoad("BroadcastLoad");
  const RegisterId made = kernel_.add_lanes(lane(id));
  Instruction instruction{
      .op = in_lanes(id) ? kLoad : kBroadcastLoad, .out = {made}, .memory = address(port, id, unit)};
  limit_to_tail(instruction, port, id);
  write(std::move(instruction));
  return made;
}

void Lowering::store(int port, ValueId id, Unit unit) {
  note_width(port);
  static const Name kStore("Store");
  Instruction instruction{.op = kStore, .in = {register_of(id, unit)}, .memory = address(port, id, unit)};
  if (!in_lanes(id)) instruction.touched = codegen::Lanes::one;
  limit_to_tail(instruction, port, id);
  if (is_aligned(port, id)) instruction.attributes.set("aligned", 1);
  write(std::move(instruction));
}

// Tensors over the same dims have their elements at the same positions, and so have parts with equal cuts, as far as
// strides are concerned: the caller checks where they begin.
bool Lowering::is_aligned(int port, ValueId id) const {
  if (place_.aligned_port < 0 || place_.mask >= 0 || !in_lanes(id) || scratch_of(port)) return false;
  const auto cuts = [&](int output) -> const std::vector<PortCut>& {
    return body_.outputs[index(output) - body_.inputs.size()].cuts;
  };
  const auto alike = [](const PortCut& a, const PortCut& b) {
    return a.dim == b.dim && a.box == b.box && a.whole == b.whole;
  };
  return varies_of(port) == varies_of(place_.aligned_port) &&
         std::ranges::equal(cuts(port), cuts(place_.aligned_port), alike);
}

void Lowering::store_if_wanted(ValueId id, Unit unit, const StoresByValue& stores) {
  for (const Access& store : stores.of(id)) this->store(store.port, id, unit);
}

void Lowering::limit_to_tail(Instruction& instruction, int port, ValueId id) const {
  if (place_.mask < 0 || !in_lanes(id) || in_tile_scratch(port)) return;
  instruction.touched = codegen::Lanes::partial;
  instruction.in.push_back(place_.mask);
  instruction.in.push_back(place_.count);
}

}  // namespace tenon::snippet
