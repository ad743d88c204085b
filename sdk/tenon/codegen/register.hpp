// Registers, as code generators see them.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon::codegen {

enum class RegisterFile : uint8_t { vector, mask, general };
inline constexpr size_t kRegisterFiles = 3;
TENON_API std::string_view register_file_name(RegisterFile file);  // as in target files: "vector", "mask", "general"

// A register of the machine, or, for a target that generates source text, a variable.
struct PhysicalRegister {
  RegisterFile file = RegisterFile::vector;
  int number = -1;
  bool operator==(const PhysicalRegister&) const = default;
};

// The registers that an allocator may assign.
struct RegisterPool {
  // Register numbers of each file, preferred ones first. Registers that the target reserves (stack pointer, a scratch
  // register of its own) are not listed.
  std::array<std::vector<int>, kRegisterFiles> registers;
  // The file that holds lanes of booleans: mask, or vector where a machine has no masks (all bits of a lane equal).
  RegisterFile lane_mask_file = RegisterFile::mask;

  const std::vector<int>& of(RegisterFile file) const { return registers[static_cast<size_t>(file)]; }
};

// The lane type in which a register holds elements of a type: narrow types are widened when they are loaded, and
// narrowed when they are stored.
//
//   f32            f32 f16 bf16            i64, u64   themselves
//   i32            i8 i16 i32              u32        u8 u16 u32
//   f64            f64                     bool       bool
//
// Nothing (an invalid type) for others.
constexpr ElementType lane_type(ElementType element) {
  if (element == kF32 || element == kF16 || element == kBF16) return kF32;
  if (element == kF64 || element == kI64 || element == kU64 || element == kBool) return element;
  if (element == kI8 || element == kI16 || element == kI32) return kI32;
  if (element == kU8 || element == kU16 || element == kU32) return kU32;
  return {};
}

// A set of lane types.
class LaneTypes {
 public:
  constexpr LaneTypes() = default;
  constexpr LaneTypes(std::initializer_list<ElementType> types) {
    for (const ElementType type : types) bits_ |= bit(type);
  }
  constexpr void add(ElementType type) { bits_ |= bit(type); }
  constexpr bool contains(ElementType type) const { return (bits_ & bit(type)) != 0; }
  constexpr LaneTypes operator|(LaneTypes other) const {
    other.bits_ |= bits_;
    return other;
  }
  constexpr bool operator==(const LaneTypes&) const = default;

 private:
  // Signatures are looked up for each instruction of a kernel.
  static constexpr uint8_t bit(ElementType type) {
    if (type == kBool) return 0x40;
    if (type.bits() != 32 && type.bits() != 64) return 0;
    const bool wide = type.bits() == 64;
    switch (type.kind()) {
      case ElementKind::ieee: return wide ? 0x02 : 0x01;
      case ElementKind::sint: return wide ? 0x10 : 0x04;
      case ElementKind::uint: return wide ? 0x20 : 0x08;
      default: return 0;
    }
  }
  uint8_t bits_ = 0;
};
inline constexpr LaneTypes kF32Lanes{kF32}, kFloatLanes{kF32, kF64}, kBoolLanes{kBool};
inline constexpr LaneTypes kIntLanes{kI32, kU32, kI64, kU64};
inline constexpr LaneTypes kNumberLanes = kFloatLanes | kIntLanes;
inline constexpr LaneTypes kAnyLanes = kNumberLanes | kBoolLanes;

}  // namespace tenon::codegen
