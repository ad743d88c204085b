#include "opencl/compute/windows.hpp"

namespace tenon::opencl {

void define_axes(ComputeSource& source, size_t rank, int first) {
  source.define("R", rank);
  int offset = 0;
  for (const char* name : {"IN", "OUT", "KERNEL", "STRIDE", "DILATION", "BEGIN"})
    source.define(str(name, "(d)"), str("((int)n[", first + offset++, " + ", kNumbersOfAxis, " * (d)])"));
  source.define("NEXT_TAP(k)", "for (int d = R - 1; d >= 0 && ++k[d] == KERNEL(d); --d) k[d] = 0");
}

void add_axes(const std::vector<WindowAxis>& axes, ComputeLaunch& launch) {
  for (const WindowAxis& a : axes)
    launch.numbers.insert(launch.numbers.end(), {a.in, a.out, a.kernel, a.stride, a.dilation, a.begin});
}

size_t spatial_rank(const irgen::KernelRequest& request, size_t operand) {
  const Shape& shape = request.operands[operand].shape();
  return shape.ranked() && shape.rank() > 2 ? static_cast<size_t>(shape.rank()) - 2 : 1;
}

Dims spatial_of(const Dims& dims) { return {dims.begin() + 2, dims.end()}; }

Result<ElementType> image_type(const irgen::KernelRequest& request) {
  const ElementType work = work_type_of(request.operands[0].element());
  if (work.is_float()) return work;
  return error(Code::unsupported, "images of ", request.operands[0].element(), " are resampled on the host");
}

int64_t elements_of(const Dims& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

Result<std::vector<WindowAxis>> window_axes(const Op& op, const Dims& in, const Dims& out, std::vector<Dim> kernel) {
  TENON_TRY(window, kernel.empty() ? Window::of(op, in.size()) : Window::of(op, in.size(), std::move(kernel)));
  std::vector<WindowAxis> axes;
  for (size_t d = 0; d < in.size(); ++d)
    axes.push_back(
        {in[d], out[d], window.kernel[d].value(), window.strides[d], window.dilations[d], window.pad_begin(d, in[d])});
  if (axes.empty()) axes.emplace_back();
  return axes;
}

}  // namespace tenon::opencl
