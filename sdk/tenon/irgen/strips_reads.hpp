// What a strip of an operator's result reads: its bounds rule, asked with a symbol for the position that each loop over
// strips is at.
//
//   TENON_TRY(reads, strip_reads(conv, 0, {2}));      // strips along dim 2 of the result of a 3x3 convolution, padded
//   by 1 reads.operands[0][2]     // first max(0, strip0 - 1), last min(h - 1, strip0 + 1), moved by loop 0
//   reads.operands[1]        // the weights: whole, moved by no loop
//
// Nothing here names an operator: one with a bounds rule that runs on parts, and along whose dims strips repeat no work
// and keep their bits, is a stage of a chain.
#pragma once
#include <cstdint>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon::irgen {

// Loops of strips around a chain, at most.
inline constexpr size_t kMostStripLoops = 2;
// The index of the result that loop `loop` is at.
TENON_API Expr strip_symbol(size_t loop);

// Positions [first, last] of one dim of an operand, over the symbols of loops; neither end ever goes back.
struct StripWindow {
  Expr first, last;
  int loop = -1;    // which loop moves it; -1: none, and it is all of the dim
  double rate = 0;  // positions by which it moves for one index of the result, on average
  double span = 0;  // positions that one index of the result reads, at most
};

struct StripReads {
  std::vector<std::vector<StripWindow>> operands;  // by operand and dim; no dims for an absent operand
  // Which dim of the operand each loop moves: -1 for none; empty when a loop moves several, or several loops one.
  TENON_API std::vector<int> moved_dims(size_t operand, size_t loops) const;
};

// Static dims of a tensor of whole bytes that lies row-major and is not empty; else Code::unsupported with the reason.
// `types`: of all values, as those of a run, where the graph has symbols.
TENON_API Result<Dims> strip_dims(const Value& value, const TypeSource& types = TypeSource());

// For strips along `dims` of one of the operator's results, one dim for each loop. Code::unsupported, with a reason
// that names the operator, when it cannot be computed in strips so that each has the bits of the whole and no work is
// done twice.
TENON_API Result<StripReads> strip_reads(const Op& op, size_t result, const std::vector<int>& dims,
                                         const TypeSource& types = TypeSource());

}  // namespace tenon::irgen
