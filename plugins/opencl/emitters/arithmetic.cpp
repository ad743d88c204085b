// Arithmetic. Integers are computed as unsigned ones, which wrap around: signed overflow is undefined.
#include "opencl/emitters/emitters.hpp"
#include "opencl/emitters/pattern.hpp"

namespace tenon::opencl {
namespace {

using namespace codegen;

// Division and square root of f32 in doubles are correctly rounded, since a double has more than twice the bits.
constexpr Pattern kArithmeticPatterns[] = {
    {"Add", kFloatLanes, "$0 + $1", 0.5},
    {"Add", kIntLanes, "as_$T($u0 + $u1)"},
    {"Sub", kFloatLanes, "$0 - $1", 0.5},
    {"Sub", kIntLanes, "as_$T($u0 - $u1)"},
    {"Mul", kFloatLanes, "$0 * $1", 0.5},
    {"Mul", kIntLanes, "as_$T($u0 * $u1)", 0, 2},
    {"Div", kF32Lanes, "$0 / $1", 0.5, 10, kRoundedDivide},
    {"Div", kF32Lanes, "convert_$T(convert_$D($0) / convert_$D($1))", 0.5, 20, kFp64},
    {"Div", kF32Lanes, "$0 / $1", 2.5, 10},
    {"Div", kF64Lanes, "$0 / $1", 0.5, 16},
    {"Div", kIntLanes, "@divide($0, $1)", 0, 80},
    {"Fmod", kFloatLanes, "@remainder($0, $1)", 0, 100},
    {"Fmod", kIntLanes, "@remainder($0, $1)", 0, 80},
    {"Mod", kFloatLanes | kSigned, "@modulus($0, $1)", 0, 100},
    {"Mod", kUnsigned, "@remainder($0, $1)", 0, 80},
    {"Pow", kIntLanes, "@power($0, $1)", 0, 120},
    {"Neg", kFloatLanes, "-$0"},
    {"Neg", kIntLanes, "as_$T(($U)0 - $u0)"},
    {"Abs", kFloatLanes, "fabs($0)"},
    {"Abs", kSigned, "as_$T(abs($0))"},
    {"Sqrt", kF32Lanes, "sqrt($0)", 0.5, 12, kRoundedDivide},
    {"Sqrt", kF32Lanes, "convert_$T(sqrt(convert_$D($0)))", 0.5, 24, kFp64},
    {"Sqrt", kF32Lanes, "sqrt($0)", 3, 12},
    {"Sqrt", kF64Lanes, "sqrt($0)", 0.5, 18},
    {"Floor", kFloatLanes, "floor($0)"},
    {"Ceil", kFloatLanes, "ceil($0)"},
    {"RoundEven", kFloatLanes, "rint($0)"},
    {"Max", kFloatLanes, "select($1, $0, ($0 > $1) | ($0 != $0))", 0, 3},
    {"Max", kIntLanes, "max($0, $1)"},
    {"Min", kFloatLanes, "select($1, $0, ($0 < $1) | ($0 != $0))", 0, 3},
    {"Min", kIntLanes, "min($0, $1)"},
    {"ClampLow", kNumberLanes, "select($0, $1, $0 < $1)", 0, 2},
    {"ClampHigh", kNumberLanes, "select($0, $1, $0 > $1)", 0, 2},
    {"BitwiseAnd", kIntLanes, "$0 & $1"},
    {"BitwiseOr", kIntLanes, "$0 | $1"},
    {"BitwiseXor", kIntLanes, "$0 ^ $1"},
    {"BitwiseNot", kIntLanes, "~$0"},
    {"ShiftLeft", kUnsigned, "select($0 << ($1 & ($T)$b), ($T)0, $1 > ($T)$b)", 0, 3},
    {"ShiftRight", kUnsigned, "select($0 >> ($1 & ($T)$b), ($T)0, $1 > ($T)$b)", 0, 3},
};

}  // namespace

Result<void> add_arithmetic_rows(JitterTable& table) { return add_patterns<kArithmeticPatterns>(table); }

std::string_view fold_pattern(std::string_view op, ElementType element) {
  for (const Pattern& pattern : kArithmeticPatterns)
    if (pattern.op == op && pattern.types.contains(element)) return pattern.text;
  return {};
}

}  // namespace tenon::opencl
