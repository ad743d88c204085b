// Shared by the files of structure rows.
#pragma once
#include <optional>
#include <vector>

#include "x86/assembly/context.hpp"
#include "x86/structure/structure.hpp"

namespace tenon::x86 {

using codegen::Emission;
using codegen::EmitAddress;
using codegen::EmitValue;
using codegen::JitterRow;
using codegen::Lanes;
using codegen::RegisterFile;

inline constexpr const char* kAvx512Feature = "avx512f";

// An emitter that calls a function.
template <Result<void> (*kEmit)(X86Context&, const Emission&)>
class FunctionEmitter final : public codegen::Emitter {
 public:
  Result<void> emit_code(codegen::EmitContext& context, const Emission& emission) const override {
    return kEmit(x86_context(context), emission);
  }
};
template <Result<void> (*kEmit)(X86Context&, const Emission&)>
std::unique_ptr<codegen::Emitter> make_function(const Attributes&) {
  return std::make_unique<FunctionEmitter<kEmit>>();
}

// A required integer attribute.
Result<int64_t> integer_attribute(const Emission& emission, Name name);
// The value of the instruction's param, or of its loop's limit, when it is known (snippet::Param::known) and fits an
// immediate operand.
std::optional<int32_t> known_param(const Emission& emission);
// The memory operand; an error if there is none, or if its type cannot be converted to or from the lane's.
Result<const EmitAddress*> memory_of(const Emission& emission, ElementType lane);

// For rows whose operands are lanes and, in tails, a mask and a count: whether the lanes (the first result, or the
// first operand where there is no result) are of one of the types.
template <const ElementType&... kTypes>
bool lanes_are(const codegen::Signature& signature) {
  const ElementType lane = signature.out.empty() ? signature.in[0] : signature.out[0];
  return ((lane == kTypes) || ...);
}

std::vector<JitterRow> register_rows();     // structure/registers.cpp
std::vector<JitterRow> loop_rows();         // structure/loops.cpp
std::vector<JitterRow> load_rows();         // structure/load.cpp
std::vector<JitterRow> narrow_load_rows();  // structure/narrow_loads.cpp
std::vector<JitterRow> store_rows();        // structure/store.cpp
std::vector<JitterRow> line_rows();         // structure/lines.cpp
std::vector<JitterRow> item_rows();         // structure/items.cpp
std::vector<JitterRow> fold_rows();         // structure/fold.cpp
std::vector<JitterRow> alike_rows();        // structure/alike.cpp
std::vector<JitterRow> four_rows();         // structure/four.cpp
std::vector<JitterRow> operand_rows();      // structure/operands.cpp

}  // namespace tenon::x86
