// Emitters that are a line of OpenCL C with placeholders.
//
//   $0 $1 $2     operands
//   $u0          operand 0 as unsigned integers of its width (bits)
//   $T $S $N     type of the lanes (float16), of one lane (float), and the number of lanes
//   $I $U        signed and unsigned integers of the lanes' width
//   $D           double, with as many lanes
//   $b           bits of a lane, minus 1
//   $C( ... )    a comparison of lanes, as lanes of booleans
//   $L( ... )    booleans as a mask for select() on lanes
//   $a           attribute `alpha`
//   @name        the function of the library (functions.hpp) on lanes of this type; @@name: on doubles
//
// "Lanes" are those of the row's type: of the first operand that is not boolean, else of the result.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tenon/codegen/jitter_table.hpp>

#include "opencl/device_info.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {

inline constexpr codegen::LaneTypes kSigned{kI32, kI64}, kUnsigned{kU32, kU64}, kF64Lanes{kF64};

// The values of placeholders.
struct Fill {
  ElementType element;
  int lanes = 1;
  std::span<const std::string> operands = {};
  const Attributes* attributes = nullptr;
};
// Also defines the functions that the text names in the context.
Result<std::string> expand(SourceContext& context, std::string_view text, const Fill& fill);

struct Pattern {
  std::string_view op;
  codegen::LaneTypes types;
  std::string_view text;
  double max_ulp = 0;
  double cycles = 1;
  std::string_view feature = {};
  bool (*accepts)(const codegen::Signature&) = nullptr;
};

// out = the pattern.
class PatternEmitter final : public codegen::Emitter {
 public:
  explicit PatternEmitter(const Pattern& pattern) : pattern_(pattern) {}
  Result<void> emit_code(codegen::EmitContext& context, const codegen::Emission& emission) const override;

 private:
  const Pattern& pattern_;
};

// An emitter that calls a function.
using EmitFunction = Result<void> (*)(SourceContext&, const codegen::Emission&);
template <EmitFunction kEmit>
class FunctionEmitter final : public codegen::Emitter {
 public:
  Result<void> emit_code(codegen::EmitContext& context, const codegen::Emission& emission) const override {
    return kEmit(source_context(context), emission);
  }
};
template <EmitFunction kEmit>
inline constexpr auto function_emitter = codegen::make_emitter<FunctionEmitter<kEmit>>;

// Adds the row. Where its types include f64, adds a second row for devices that have it, and the first one excludes it.
Result<void> add_row(codegen::JitterTable& table, codegen::JitterRow row);

template <const auto& kPatterns>
Result<void> add_patterns(codegen::JitterTable& table) {
  const auto add = [&]<size_t kIndex>() -> Result<void> {
    const Pattern& pattern = kPatterns[kIndex];
    codegen::JitterRow row{.op = pattern.op, .types = pattern.types, .feature = std::string(pattern.feature)};
    row.cycles = pattern.cycles, row.max_ulp = pattern.max_ulp, row.accepts = pattern.accepts;
    row.make = [](const Attributes&) -> std::unique_ptr<codegen::Emitter> {
      return std::make_unique<PatternEmitter>(kPatterns[kIndex]);
    };
    return add_row(table, std::move(row));
  };
  Result<void> done;
  const auto all = [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    (void)((done.ok() && (done = add.template operator()<kIndex>()).ok()) && ...);
  };
  all(std::make_index_sequence<std::size(kPatterns)>());
  return done;
}

}  // namespace tenon::opencl
