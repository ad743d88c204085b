// Pairs of rows of the jitter table, one for each instruction set, made from one algorithm.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include <tenon/codegen/jitter_table.hpp>

#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

inline constexpr codegen::LaneTypes kInt32{kI32, kU32}, kInt64{kI64, kU64}, kF64Only{kF64};

using Algorithm = void (*)(VectorCode&);

// For several results: interleaves the algorithm's code for each one, with its share of operands and scratch registers.
Result<void> emit_algorithm(const std::function<void(VectorCode&)>& algorithm, codegen::EmitContext& context,
                            const codegen::Emission& emission);

// Constants are added to the pool when code requests them; the pool follows the code, which refers to it by a label.
template <Algorithm kAlgorithm>
class AlgorithmEmitter final : public codegen::Emitter {
 public:
  Result<void> emit_code(codegen::EmitContext& context, const codegen::Emission& emission) const override {
    return emit_algorithm(kAlgorithm, context, emission);
  }
};

// Registers and cycles of an algorithm on one instruction set.
struct Cost {
  int vectors = 0, masks = 0;  // scratch registers
  double cycles = 1;           // per vector in a stream of vectors, in L1
  // For how many vectors interleaved code is fastest (docs/performance/functions.md): 1, 2 or 4. For 2 there is also a
  // row of two vectors, for 4 both one of two and one of four. The code must then consist of vector instructions alone.
  int in_turn = 1;
};

// The operator of the row for several vectors: the operands of one vector after those of another, and as many results.
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
