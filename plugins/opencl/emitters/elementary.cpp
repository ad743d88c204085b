// Elementary functions and activations.
#include "opencl/emitters/emitters.hpp"
#include "opencl/emitters/pattern.hpp"

namespace tenon::opencl {
namespace {

using namespace codegen;

bool by_erf(const Signature& signature) {
  const Attribute* how = signature.attributes.find("approximate");
  const std::string* name = how ? how->get_if<std::string>() : nullptr;
  return !name || *name == "none";
}
// With another alpha, the product with it is rounded, and the exponential magnifies that error.
bool is_plain_swish(const Signature& signature) {
  const Attribute* alpha = signature.attributes.find("alpha");
  const float* value = alpha ? alpha->get_if<float>() : nullptr;
  return !value || *value == 1.0f;
}

// The rows' bounds are for f32; none is stated for f64. Sine and cosine of f32 exceed 4 ulp on CPU devices of PoCL 3.1
// where another lane of the vector is large. Swish in f32 loses bits where the sigmoid is below the least normal
// number.
constexpr Pattern kFunctionPatterns[] = {
    {"Exp", kFloatLanes, "exp($0)", 3, 10},
    {"Expm1", kFloatLanes, "expm1($0)", 3, 14},
    {"Log", kFloatLanes, "log($0)", 3, 12},
    {"Asin", kFloatLanes, "asin($0)", 4, 18},
    {"Acos", kFloatLanes, "acos($0)", 4, 18},
    {"Sinh", kFloatLanes, "sinh($0)", 4, 16},
    {"Cosh", kFloatLanes, "cosh($0)", 4, 16},
    {"Asinh", kFloatLanes, "asinh($0)", 4, 24},
    {"Acosh", kFloatLanes, "acosh($0)", 4, 24},
    {"Tanh", kFloatLanes, "tanh($0)", 5, 14},
    {"Sigmoid", kFloatLanes, "@sigmoid($0)", 6, 22},
    {"Softplus", kFloatLanes, "@softplus($0)", 6, 28},

    {"Sin", kF32Lanes, "convert_$T(sin(convert_$D($0)))", 1, 40, kFp64},
    {"Cos", kF32Lanes, "convert_$T(cos(convert_$D($0)))", 1, 40, kFp64},
    {"Tan", kF32Lanes, "convert_$T(tan(convert_$D($0)))", 1, 40, kFp64},
    {"Atan", kF32Lanes, "convert_$T(atan(convert_$D($0)))", 1, 40, kFp64},
    {"Atanh", kF32Lanes, "convert_$T(atanh(convert_$D($0)))", 1, 60, kFp64},
    {"Erf", kF32Lanes, "convert_$T(erf(convert_$D($0)))", 1, 50, kFp64},
    {"Pow", kF32Lanes, "convert_$T(@@power_by_exp(convert_$D($0), convert_$D($1)))", 1, 120, kFp64},
    {"Mish", kF32Lanes, "convert_$T(@@mish(convert_$D($0)))", 1, 80, kFp64},
    {"Gelu", kF32Lanes, "convert_$T(@@gelu(convert_$D($0)))", 1, 60, kFp64, by_erf},
    {"Gelu", kF32Lanes, "convert_$T(@@gelu_by_tanh(convert_$D($0)))", 1, 60, kFp64},
    {"Swish", kF32Lanes, "convert_$T(convert_$D($0) * @@sigmoid($a * convert_$D($0)))", 1, 60, kFp64},

    {"Sin", kFloatLanes, "sin($0)", 4, 16},
    {"Cos", kFloatLanes, "cos($0)", 4, 16},
    {"Tan", kFloatLanes, "tan($0)", 5, 20},
    {"Atan", kFloatLanes, "atan($0)", 5, 20},
    {"Atanh", kFloatLanes, "atanh($0)", 5, 30},
    {"Erf", kFloatLanes, "erf($0)", 16, 25},
    {"Pow", kFloatLanes, "@power($0, $1)", 16, 80},
    {"Swish", kF32Lanes, "$0 * @sigmoid($0)", 64, 24, {}, is_plain_swish},
    {"Mish", kF64Lanes, "@mish($0)", 0, 80},
    {"Gelu", kF64Lanes, "@gelu($0)", 0, 60, {}, by_erf},
    {"Gelu", kF64Lanes, "@gelu_by_tanh($0)", 0, 60},
    {"Swish", kF64Lanes, "$0 * @sigmoid($a * $0)", 0, 60},
};

}  // namespace

Result<void> add_function_rows(JitterTable& table) { return add_patterns<kFunctionPatterns>(table); }

}  // namespace tenon::opencl
