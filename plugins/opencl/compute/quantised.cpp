// Exact products and convolutions of bytes: ConvInteger, QLinearConv, QLinearMatMul. Sums are modulo 2^32, and are
// scaled and rounded in doubles as in the reference; devices without doubles do not run the operators that scale.
#include <algorithm>

#include <tenon/ops/convolution.hpp>
#include <tenon/ops/matmul.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/device_info.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

bool is_narrow_int(ElementType element) { return element.is_int() && element.bits() <= 16; }

// STORE(i, sum, scale, zero): round half to even, saturate.
Result<void> define_store(ComputeSource& source, const KernelRequest& request, const ComputeTarget& target) {
  const ElementType element = request.results[0].element();
  if (!target.description.has_feature(kFp64))
    return error(Code::unsupported, "scales of integers are f64, which the device has not");
  if (!is_narrow_int(element)) return error(Code::unsupported, "a quantised result of ", element);
  const int64_t most = (int64_t{1} << (element.bits() - (element.is_signed_int() ? 1 : 0))) - 1;
  source.define("LEAST", str("(double)", element.is_signed_int() ? -most - 1 : 0));
  source.define("MOST", str("(double)", most));
  source.store("Y", 0, kI32);
  source.define("STORE(i, sum, scale, zero)",
                "{ const double rounded = rint((double)(sum) * (scale)) + (double)(zero); "
                "Y(i, isnan(rounded) ? 0 : (int)fmin(fmax(rounded, LEAST), MOST)); }");
  return {};
}

// ---- Convolutions ----

// Operands of the two operators; 0 where there is none.
struct ConvPorts {
  size_t w, x_zero, w_zero, bias = 0;
  bool scaled = false;
};

// n: 0 input channels, 1 output channels, 2 groups, 3 inputs and 4 outputs of a channel, 5 taps, then the axes.
constexpr int kFirstQuantisedAxis = 6;
constexpr std::string_view kConvBody = R"(
    const long position = item % n[4], output = item / n[4] % n[1], image = item / n[4] / n[1];
    const long channels = n[0] / n[2], group = output / (n[1] / n[2]);
    const int x_zero = X_ZERO(0), w_zero = W_ZERO(W_PARAMETER(output));
    uint sum = (uint)BIAS(output);
    for (long channel = 0; channel < channels; ++channel) {
      const long plane = (image * n[0] + group * channels + channel) * n[3];
      int k[R];
      for (int d = 0; d < R; ++d) k[d] = 0;
      for (long tap = 0; tap < n[5]; ++tap) {
        long at = 0, stride = 1, rest = position;
        int inside = 1;
        for (int d = R - 1; d >= 0; --d) {
          const int i = (int)(rest % OUT(d)) * STRIDE(d) + k[d] * DILATION(d) - BEGIN(d);
          rest /= OUT(d);
          inside &= i >= 0 && i < IN(d);
          at += i * stride;
          stride *= IN(d);
        }
        if (inside)
          sum += (uint)(X(plane + at) - x_zero) * (uint)(W((output * channels + channel) * n[5] + tap) - w_zero);
        NEXT_TAP(k);
      }
    }
    DELIVER;
)";

Result<ComputeKernel> make_conv(const KernelRequest& request, const ComputeTarget& target, const ConvPorts& ports) {
  const Op* op = &request.op;
  if (!is_narrow_int(request.operands[0].element()) || !is_narrow_int(request.operands[ports.w].element()))
    return error(Code::unsupported, op->name(), " of ", request.operands[0].element(), " and ",
                 request.operands[ports.w].element());
  ComputeSource source(request, target);
  source.load("X", 0, kI32);
  source.load("W", ports.w, kI32);
  source.load_optional("X_ZERO", ports.x_zero, kI32, "0");
  source.load_optional("W_ZERO", ports.w_zero, kI32, "0");
  const auto one_of_all = [&](size_t operand) {
    const Shape& shape = request.operands[operand].shape();
    return !request.passes(operand) || shape == Shape(Dims{}) || shape == Shape{1};
  };
  source.define("W_PARAMETER(output)", one_of_all(ports.w_zero) ? "0" : "(output)");
  if (ports.bias)
    source.load_optional("BIAS", ports.bias, kI32, "0");
  else
    source.define("BIAS(i)", 0);
  if (ports.scaled) {
    TENON_OK(define_store(source, request, target));
    for (const auto& [operand, name] :
         {std::pair{size_t{1}, "X_SCALE"}, {size_t{4}, "W_SCALE"}, {size_t{6}, "Y_SCALE"}})
      source.load(name, operand, kF64);
    source.load("Y_ZERO", 7, kI32);
    source.define("DELIVER", str("STORE(item, (int)sum, X_SCALE(0) / Y_SCALE(0) * W_SCALE(",
                                 one_of_all(4) ? "0" : "output", "), Y_ZERO(0))"));
  } else {
    source.store("Y", 0, kI32);
    source.define("DELIVER", "Y(item, (int)sum)");
  }
  define_axes(source, spatial_rank(request, 0), kFirstQuantisedAxis);
  return source.kernel(kConvBody, [op, w_at = ports.w](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &x = shapes.operands[0], &w = shapes.operands[w_at], &y = shapes.results[0], kernel = spatial_of(w);
    TENON_TRY(axes, window_axes(*op, spatial_of(x), spatial_of(y), {kernel.begin(), kernel.end()}));
    ComputeLaunch made{{x[1], y[1], std::max<int64_t>(op->attr<int64_t>("group", 1), 1), elements_of(spatial_of(x)),
                        elements_of(spatial_of(y)), elements_of(kernel)},
                       elements_of(y)};
    add_axes(axes, made);
    return made;
  });
}

Result<ComputeKernel> make_conv_integer(const KernelRequest& request, const ComputeTarget& target) {
  return make_conv(request, target, {.w = 1, .x_zero = 2, .w_zero = 3});
}
Result<ComputeKernel> make_qlinear_conv(const KernelRequest& request, const ComputeTarget& target) {
  return make_conv(request, target, {.w = 3, .x_zero = 2, .w_zero = 5, .bias = 8, .scaled = true});
}

// ---- QLinearMatMul ----

// Each parameter has one element, one for each line of a matrix, or one for each line of every matrix: LINE % elements.
// n: 0 M, 1 N, 2 K, 3 to 8 elements of the parameters of A (scale, zero), B and Y; 9 outer dims, then extent and step,
// in matrices, of A and B.
constexpr std::string_view kMatMulBody = R"(
    const long M = n[0], N = n[1], K = n[2], column = item % N, row = item / N % M;
    long a_matrix = 0, b_matrix = 0, rest = item / N / M;
    for (long d = n[9] - 1; d >= 0; --d) {
      const long index = rest % n[10 + 3 * d];
      rest /= n[10 + 3 * d];
      a_matrix += index * n[11 + 3 * d];
      b_matrix += index * n[12 + 3 * d];
    }
    const long a_line = a_matrix * M + row, b_line = b_matrix * N + column, y_line = item / N;
    const int a_zero = A_ZERO(a_line % n[4]), b_zero = B_ZERO(b_line % n[6]);
    uint sum = 0;
    for (long k = 0; k < K; ++k)
      sum += (uint)(A(a_line * K + k) - a_zero) * (uint)(B((b_matrix * K + k) * N + column) - b_zero);
    STORE(item, (int)sum, A_SCALE(a_line % n[3]) * B_SCALE(b_line % n[5]) / Y_SCALE(y_line % n[7]),
          Y_ZERO(y_line % n[8]));
)";

// Steps of the outer dims in matrices; 0 where the operand has extent 1 and is broadcast.
Dims matrix_steps(const Dims& dims, size_t outer) {
  Dims steps(outer, 0);
  int64_t step = 1;
  for (size_t i = 0; i + 2 < dims.size(); ++i) {
    const int64_t extent = dims[dims.size() - 3 - i];
    if (extent != 1) steps[outer - 1 - i] = step;
    step *= extent;
  }
  return steps;
}

Result<ComputeLaunch> matmul_launch(const CallShapes& shapes) {
  const Dims &a = shapes.operands[0], &b = shapes.operands[3], &y = shapes.results[0];
  const bool row = a.size() == 1, column = b.size() == 1;
  const size_t outer = y.size() - (row ? 0 : 1) - (column ? 0 : 1);
  ComputeLaunch made{{row ? 1 : a[a.size() - 2], column ? 1 : b.back(), a.back()}, elements_of(y)};
  for (const size_t parameter : {1, 2, 4, 5, 6, 7})
    made.numbers.push_back(std::max<int64_t>(elements_of(shapes.operands[parameter]), 1));
  made.numbers.push_back(static_cast<int64_t>(outer));
  const Dims a_steps = matrix_steps(a, outer), b_steps = matrix_steps(b, outer);
  for (size_t d = 0; d < outer; ++d) made.numbers.insert(made.numbers.end(), {y[d], a_steps[d], b_steps[d]});
  return made;
}

Result<ComputeKernel> make_qlinear_matmul(const KernelRequest& request, const ComputeTarget& target) {
  if (!is_narrow_int(request.operands[0].element()) || !is_narrow_int(request.operands[3].element()))
    return error(Code::unsupported, "QLinearMatMul of ", request.operands[0].element(), " and ",
                 request.operands[3].element());
  ComputeSource source(request, target);
  TENON_OK(define_store(source, request, target));
  source.load("A", 0, kI32);
  source.load("A_SCALE", 1, kF64);
  source.load("A_ZERO", 2, kI32);
  source.load("B", 3, kI32);
  source.load("B_SCALE", 4, kF64);
  source.load("B_ZERO", 5, kI32);
  source.load("Y_SCALE", 6, kF64);
  source.load("Y_ZERO", 7, kI32);
  return source.kernel(kMatMulBody, matmul_launch);
}

constexpr ComputeRow kQuantisedRows[] = {{ConvInteger::kName, make_conv_integer},
                                         {QLinearConv::kName, make_qlinear_conv},
                                         {QLinearMatMul::kName, make_qlinear_matmul}};

}  // namespace

std::span<const ComputeRow> quantised_rows() { return kQuantisedRows; }

}  // namespace tenon::opencl
