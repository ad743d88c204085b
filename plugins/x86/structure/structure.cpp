#include "x86/structure/structure.hpp"

#include "x86/structure/internal.hpp"

namespace tenon::x86 {

Result<int64_t> integer_attribute(const Emission& emission, Name name) {
  const Attribute* attribute = emission.attributes.find(name);
  if (attribute && attribute->get_if<int64_t>()) return *attribute->get_if<int64_t>();
  return error(Code::internal, emission.op, " has no integer attribute '", name, "'");
}

std::optional<int32_t> known_param(const Emission& emission) {
  static const Name kKnown("known");
  const Attribute* known = emission.attributes.find(kKnown);
  const int64_t* value = known ? known->get_if<int64_t>() : nullptr;
  if (!value || *value != static_cast<int32_t>(*value)) return std::nullopt;
  return static_cast<int32_t>(*value);
}

Result<const EmitAddress*> memory_of(const Emission& emission, ElementType lane) {
  if (!emission.memory) return error(Code::internal, emission.op, " of ", lane, " without memory");
  const EmitAddress& memory = *emission.memory;
  if (codegen::lane_type(memory.element) != lane || !memory.element.byte_addressable())
    return error(Code::internal, emission.op, " of ", memory.element, " in memory with lanes of ", lane);
  return &memory;
}

Result<void> add_structure_rows(codegen::JitterTable& table) {
  TENON_OK(table.add(register_rows()));
  TENON_OK(table.add(loop_rows()));
  TENON_OK(table.add(narrow_load_rows()));  // before the other loads, whose rows ignore attributes
  TENON_OK(table.add(load_rows()));
  TENON_OK(table.add(store_rows()));
  TENON_OK(table.add(line_rows()));
  TENON_OK(table.add(item_rows()));
  TENON_OK(table.add(fold_rows()));
  TENON_OK(table.add(alike_rows()));
  TENON_OK(table.add(four_rows()));
  return table.add(operand_rows());
}

}  // namespace tenon::x86
