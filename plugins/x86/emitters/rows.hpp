// Rows of the jitter table in pairs, one for each instruction set, made from one algorithm.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include <tenon/codegen/jitter_table.hpp>

#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

inline constexpr codegen::LaneTypes kInt32{kI32, kU32}, kInt64{kI64, kU64}, kF64Only{kF64};

using Algorithm = void (*)(VectorCode&);

// Of several results: the algorithm's instructions for each, with its share of operands and scratch registers, in turn.
Result<void> emit_algorithm(const std::function<void(VectorCode&)>& algorithm, codegen::EmitContext& context,
                            const codegen::Emission& emission);

// Constants come into the pool as code asks for them: it lies behind the code, which finds them by a label.
template <Algorithm kAlgorithm>
class AlgorithmEmitter final : public codegen::Emitter {
 public:
  Result<void> emit_code(codegen::EmitContext& context, const codegen::Emission& emission) const override {
    return emit_algorithm(kAlgorithm, context, emission);
  }
};

// What an algorithm needs and costs on one instruction set.
struct Cost {
  int vectors = 0, masks = 0;  // scratch registers
  double cycles = 1;           // of one vector in a stream of them, in L1
  // How many vectors' instructions are fastest in turn (docs/performance/functions.md): 1, 2 or 4. For 2 there is a row
  // of two vectors as well, for 4 both one of two and one of four. The code then consists of vector instructions alone.
  int in_turn = 1;
};

// The operator of the row of so many vectors: their operands, one vector's behind the other's, and as many results.
Name in_turn(Name op, size_t vectors);

struct RowPair {
  std::string_view op;
  codegen::LaneTypes types;
  Cost avx2, avx512;
  double max_ulp = 0;
  std::unique_ptr<codegen::Emitter> (*make)(const Attributes&) = nullptr;
  bool (*accepts)(const codegen::Signature&) = nullptr;
  bool early_result = false;
};

template <Algorithm kAlgorithm>
inline constexpr auto algorithm = codegen::make_emitter<AlgorithmEmitter<kAlgorithm>>;

Result<void> add_pairs(codegen::JitterTable& table, std::span<const RowPair> pairs);

}  // namespace tenon::x86
