// Convolutions with one input channel per group, by planes.
#include <algorithm>

#include <tenon/ops/convolution.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/conv_forms.hpp"

namespace tenon::opencl {

using irgen::KernelRequest;

std::optional<PlaneWindow> depthwise_window(const KernelRequest& request, ElementType work, int64_t group,
                                            const ComputeTarget& target) {
  constexpr int64_t kMostOutputs = 4;
  const auto w = request.operands[1].shape().static_dims();
  if (!w || w->size() < 3 || (*w)[1] != 1 || w->front() > kMostOutputs * group) return std::nullopt;
  const auto window = Window::of(request.op, w->size() - 2, kernel_of(*w));
  if (!window.ok()) return std::nullopt;
  const auto y = request.results[0].shape().static_dims();
  return plane_window(*window, work, target, y && !y->empty() ? std::optional(y->back()) : std::nullopt);
}

Result<ComputeKernel> make_depthwise(const KernelRequest& request, const PlaneWindow& window, int64_t group,
                                     const ComputeTarget& target, const Epilogue& epilogue) {
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  source.load("W", 1, work);
  define_bias(source, request, work);
  std::string job = "    const long output = plane % n[10];\n";
  for (int64_t tap = 0; tap < window.taps(); ++tap)
    job += str("    const T weight", tap, " = W(output * TAPS + ", tap, ");\n");
  const std::string body = plane_body(source, window, work, target,
                                      {.padding = "0",
                                       .job = job,
                                       .column = "",
                                       .sum = "TV",
                                       .start = "(TV)BIAS(output)",
                                       .take = "sum = fma((TV)weight##tap, x, sum)",
                                       .take_at = "sum = fma((TV)W(output * TAPS + tap), x, sum)",
                                       .done = "FINISH(place, first, column, count, sum)",
                                       .copies = is_short(epilogue)});
  source.finish(epilogue, window.lanes);
  const Op* op = &request.op;
  return source.kernel(body, [op, window, work, group, target](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims in = spatial_of(shapes.operands[0]), out = spatial_of(shapes.results[0]);
    TENON_TRY(of, Window::of(*op, in.size(), kernel_of(shapes.operands[1])));
    const int64_t outputs = shapes.results[0][1];
    ComputeLaunch made = plane_launch(window, plane_extents(of, in, out), shapes.results[0][0] * outputs,
                                      std::max<int64_t>(outputs / group, 1), work, target);
    made.numbers.push_back(outputs);
    return made;
  });
}

}  // namespace tenon::opencl
