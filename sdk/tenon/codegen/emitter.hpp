// Emitter: writes the code of one instruction in the form that a target uses: machine code, OpenCL C, commands.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <tenon/codegen/constant_pool.hpp>
#include <tenon/codegen/register.hpp>
#include <tenon/ir/attribute.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::codegen {

// The destination of code. Each kind of target derives its own, and its emitters cast to it. kind() identifies it,
// because types are not compared across libraries.
class TENON_API EmitContext {
 public:
  explicit EmitContext(ConstantPool& constants) : constants_(constants) {}
  EmitContext(const EmitContext&) = delete;
  EmitContext& operator=(const EmitContext&) = delete;
  virtual ~EmitContext();
  virtual std::string_view kind() const = 0;  // "x86", "opencl"
  ConstantPool& constants() { return constants_; }
  // The code that follows belongs to `instruction` ("%7:f32 = Exp %5") of the operator `label` ("Softmax
  // attn/softmax_3"): for listings and profilers.
  virtual void mark(std::string_view label, std::string_view instruction) = 0;

 private:
  ConstantPool& constants_;
};

// An operand or result, in a register.
struct EmitValue {
  PhysicalRegister at;
  ElementType element;  // a lane type (lane_type()); of general registers i64
};

// Memory: the element at base + index * bytes of `element` + displacement_bytes.
struct EmitAddress {
  ElementType element;  // as it lies in memory
  PhysicalRegister base;
  std::optional<PhysicalRegister> index;
  int64_t displacement_bytes = 0;
};

// How many lanes a load or store touches.
enum class Lanes : uint8_t {
  full,     // all
  partial,  // those below a count; the rest of a loaded register is zero
  one,      // lane 0 alone
};

// One instruction with its registers. Borrowed for the call. A result may have the same register as an operand, unless
// the emitter writes it before it has read all operands and its row says so (JitterRow::early_result).
struct Emission {
  std::string_view op;
  const Attributes& attributes;
  std::span<const EmitValue> in, out;
  std::span<const int> vectors, masks, generals;  // scratch registers, as many as the row asks for; contents undefined
  int lanes = 1;                                  // of each vector: 32-bit values occupy half the bytes of 64-bit ones
  std::optional<EmitAddress> memory = std::nullopt;
  Lanes touched = Lanes::full;
  int64_t number = 0;  // of instructions about loops, parameters and frames: which one
};

// Has no state except the instruction's attributes; any thread.
class TENON_API Emitter {
 public:
  virtual ~Emitter();
  // Appends the code. `context` has the kind that the table is for.
  virtual Result<void> emit_code(EmitContext& context, const Emission& emission) const = 0;
  // Adds the constants that emit_code will need, where the context must know their number beforehand.
  virtual void emit_data(ConstantPool&, const Emission&) const {}
};

}  // namespace tenon::codegen
