// Convolutions with several taps and known extents, by images (images.hpp).
#include <tenon/ops/convolution.hpp>

#include "opencl/compute/conv_forms.hpp"

namespace tenon::opencl {

using irgen::KernelRequest;

std::optional<TiledImageConv> image_conv(const KernelRequest& request, ElementType work, int64_t group,
                                         const ComputeTarget& target) {
  const auto w = request.operands[1].shape().static_dims();
  const Shape &x = request.operands[0].shape(), &y = request.results[0].shape();
  if (!w || w->size() < 3 || !x.ranked() || !y.ranked()) return std::nullopt;
  Dims in, out;
  for (size_t d = 2; d < w->size(); ++d) {
    if (!x.dims()[d].is_static() || !y.dims()[d].is_static()) return std::nullopt;
    in.push_back(x.dims()[d].value()), out.push_back(y.dims()[d].value());
  }
  const auto of = Window::of(request.op, in.size(), kernel_of(*w));
  if (!of.ok()) return std::nullopt;
  const auto window = plane_window(*of, work, target);
  if (!window || (window->taps() == 1 && window->stride[0] == 1 && window->stride[1] == 1)) return std::nullopt;
  const ImageConv conv{*window, plane_extents(*of, in, out), (*w)[1] * group, w->front(), group};
  const auto tile = image_tile(conv, work, target);
  return tile ? std::optional(TiledImageConv{conv, *tile}) : std::nullopt;
}

Result<ComputeKernel> make_image_conv(const KernelRequest& request, const TiledImageConv& form,
                                      const ComputeTarget& target, const Epilogue& epilogue) {
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  source.load_by_pointer("A", 1, work);
  source.define("START(output)", "BIAS(output)");
  define_bias(source, request, work);
  const std::string body = image_body(source, form.conv, form.tile, work, target);
  source.finish(epilogue, form.tile.tile.lanes);
  return source.kernel(body, [form, target](const CallShapes& shapes) -> Result<ComputeLaunch> {
    return image_launch(form.conv, form.tile, shapes.results[0][0], target);
  });
}

}  // namespace tenon::opencl
