// What a strip of an operator's result reads: its bounds rule, evaluated with a symbol for the position of each loop
// over strips.
//
//   TENON_TRY(reads, strip_reads(conv, 0, {2}));  // strips along dim 2 of the result of a 3x3 convolution, padded by 1
//   reads.operands[0][2]     // first max(0, strip0 - 1), last min(h - 1, strip0 + 1), moved by loop 0
//   reads.operands[1]        // the weights: whole, moved by no loop
//
// Nothing here names an operator. An operator can be a stage of a chain if it has a bounds rule, runs on parts, and has
// dims along which strips repeat no work and give the same bits.
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

// Maximum number of loops over strips around a chain.
inline constexpr size_t kMostStripLoops = 2;
// The symbol for the index of the result in loop `loop`.
TENON_API Expr strip_symbol(size_t loop);

// Positions [first, last] of one dim of an operand, over the symbols of loops; both ends are non-decreasing.
struct StripWindow {
  Expr first, last;
  int loop = -1;    // which loop moves it; -1: none, and it is the whole dim
  double rate = 0;  // positions by which it moves per index of the result, on average
  double span = 0;  // positions that one index of the result reads, at most
};

struct StripReads {
  std::vector<std::vector<StripWindow>> operands;  // by operand and dim; no dims for an absent operand
  // The dim of the operand that each loop moves: -1 for none; empty when a loop moves several, or several loops one.
  TENON_API std::vector<int> moved_dims(size_t operand, size_t loops) const;
};

// Static dims of a non-empty row-major tensor of whole bytes; else Code::unsupported with the reason. `types`: of all
// values, such as those of a run, where the graph has symbols.
TENON_API Result<Dims> strip_dims(const Value& value, const TypeSource& types = TypeSource());

// For strips along `dims` of one of the operator's results, one dim per loop. Code::unsupported, with a reason that
// names the operator, when strips cannot be computed with the same bits as the whole and without repeated work.
TENON_API Result<StripReads> strip_reads(const Op& op, size_t result, const std::vector<int>& dims,
                                         const TypeSource& types = TypeSource());

}  // namespace tenon::irgen
