// Elementary functions and activations.
#include "opencl/emitters/emitters.hpp"
#include "opencl/emitters/pattern.hpp"

namespace tenon::opencl {
namespace {

using namespace codegen;

constexpr LaneTypes kF64Lanes{kF64};

bool by_erf(const Signature& signature) {
  const Attribute* how = signature.attributes.find("approximate");
  const std::string* name = how ? how->get_if<std::string>() : nullptr;
  return !name || *name == "none";
}
// Without a factor of its own, whose rounding the exponential would magnify.
bool is_plain_swish(const Signature& signature) {
  const Attribute* alpha = signature.attributes.find("alpha");
  const float* value = alpha ? alpha->get_if<float>() : nullptr;
  return !value || *value == 1.0f;
}

// Of f64 no bound is stated: rows' bounds are about f32.
constexpr Pattern kPatterns[] = {
    {"Exp", kFloatLanes, "exp($0)", 3, 10},
    {"Expm1", kFloatLanes, "expm1($0)", 3, 14},
    {"Log", kFloatLanes, "log($0)", 3, 12},
    {"Sin", kFloatLanes, "sin($0)", 4, 16},
    {"Cos", kFloatLanes, "cos($0)", 4, 16},
    {"Asin", kFloatLanes, "asin($0)", 4, 18},
    {"Acos", kFloatLanes, "acos($0)", 4, 18},
    {"Sinh", kFloatLanes, "sinh($0)", 4, 16},
    {"Cosh", kFloatLanes, "cosh($0)", 4, 16},
    {"Asinh", kFloatLanes, "asinh($0)", 4, 24},
    {"Acosh", kFloatLanes, "acosh($0)", 4, 24},
    {"Tanh", kFloatLanes, "tanh($0)", 5, 14},
    {"Sigmoid", kFloatLanes, "@sigmoid($0)", 6, 22},
    {"Softplus", kFloatLanes, "@softplus($0)", 6, 28},

    {"Tan", kF32Lanes, "convert_$T(tan(convert_$D($0)))", 1, 40, kFp64},
    {"Atan", kF32Lanes, "convert_$T(atan(convert_$D($0)))", 1, 40, kFp64},
    {"Atanh", kF32Lanes, "convert_$T(atanh(convert_$D($0)))", 1, 60, kFp64},
    {"Erf", kF32Lanes, "convert_$T(erf(convert_$D($0)))", 1, 50, kFp64},
    {"Pow", kF32Lanes, "convert_$T(pow(convert_$D($0), convert_$D($1)))", 1, 120, kFp64},
    {"Mish", kF32Lanes, "convert_$T(@@mish(convert_$D($0)))", 1, 80, kFp64},
    {"Gelu", kF32Lanes, "convert_$T(@@gelu(convert_$D($0)))", 1, 60, kFp64, by_erf},
    {"Gelu", kF32Lanes, "convert_$T(@@gelu_by_tanh(convert_$D($0)))", 1, 60, kFp64},
    {"Swish", kF32Lanes, "$0 * @sigmoid($0)", 7, 24, {}, is_plain_swish},
    {"Swish", kF32Lanes, "convert_$T(convert_$D($0) * @@sigmoid($a * convert_$D($0)))", 1, 60, kFp64},

    {"Tan", kFloatLanes, "tan($0)", 5, 20},
    {"Atan", kFloatLanes, "atan($0)", 5, 20},
    {"Atanh", kFloatLanes, "atanh($0)", 5, 30},
    {"Erf", kFloatLanes, "erf($0)", 16, 25},
    {"Pow", kFloatLanes, "pow($0, $1)", 16, 80},
    {"Mish", kF64Lanes, "@mish($0)", 0, 80},
    {"Gelu", kF64Lanes, "@gelu($0)", 0, 60, {}, by_erf},
    {"Gelu", kF64Lanes, "@gelu_by_tanh($0)", 0, 60},
    {"Swish", kF64Lanes, "$0 * @sigmoid($a * $0)", 0, 60},
};

}  // namespace

Result<void> add_function_rows(JitterTable& table) { return add_patterns<kPatterns>(table); }

}  // namespace tenon::opencl
