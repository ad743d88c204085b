// ConvTranspose as a gather: each output element sums the inputs that contribute to it.
#include <tenon/ops/convolution.hpp>

#include "opencl/compute/conv_forms.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {

using irgen::KernelRequest;

namespace {

// n as conv_launch() fills it; the axes' "in" is of x, "out" of y. w: [C, M / group, taps].
constexpr std::string_view kTransposedBody = R"(
    const long groups = n[3], channels = n[1] / groups, outputs = n[2] / groups, taps = n[6];
    const long in_size = n[4], out_size = n[5];
    const long output = item / out_size % n[2], group = output / outputs, image = item / out_size / n[2];
    int at[R];
    long rest = item % out_size;
    for (int d = R - 1; d >= 0; --d) {
      at[d] = (int)(rest % OUT(d)) + BEGIN(d);
      rest /= OUT(d);
    }
    T sum = BIAS(output);
    int k[R];
    for (int d = 0; d < R; ++d) k[d] = 0;
    for (long tap = 0; tap < taps; ++tap) {
      long from = 0;
      int inside = 1;
      for (int d = 0; d < R; ++d) {
        const int reach = at[d] - k[d] * DILATION(d), i = reach / STRIDE(d);
        inside &= reach >= 0 && i * STRIDE(d) == reach && i < IN(d);
        from = from * IN(d) + i;
      }
      if (inside)
        for (long c = 0; c < channels; ++c) {
          const long channel = group * channels + c;
          sum = fma(X((image * n[1] + channel) * in_size + from),
                    W((channel * outputs + output % outputs) * taps + tap), sum);
        }
      NEXT_TAP(k);
    }
    Y(item, sum);
)";

}  // namespace

Result<ComputeKernel> make_conv_transpose(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType work = work_type_of(request.operands[0].element());
  if (!work.is_float()) return error(Code::unsupported, "ConvTranspose of ", request.operands[0].element());
  ComputeSource source(request, target);
  source.define("T", scalar_name(work));
  source.load("X", 0, work);
  source.load("W", 1, work);
  source.store("Y", 0, work);
  define_bias(source, request, work);
  define_axes(source, spatial_rank(request, 0), kConvAxes);
  const Op* op = &request.op;
  return source.kernel(kTransposedBody, [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &x = shapes.operands[0], &w = shapes.operands[1], &y = shapes.results[0];
    const Dims in = spatial_of(x), out = spatial_of(y);
    TENON_TRY(window, Window::of(*op, in.size(), kernel_of(w)));
    TENON_TRY(begin, conv_transpose_begin(*op, window, {in.begin(), in.end()}, {out.begin(), out.end()}));
    std::vector<WindowAxis> axes;
    for (size_t d = 0; d < in.size(); ++d)
      axes.push_back({in[d], out[d], w[d + 2], window.strides[d], window.dilations[d], begin[d].constant()});
    if (axes.empty()) axes.emplace_back();
    return conv_launch(x, y, op->attr<int64_t>("group", 1), axes);
  });
}

}  // namespace tenon::opencl
