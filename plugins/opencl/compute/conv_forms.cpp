#include "opencl/compute/conv_forms.hpp"

namespace tenon::opencl {

void define_bias(ComputeSource& source, const irgen::KernelRequest& request, ElementType work) {
  if (request.op.operand(2))
    source.load("BIAS", 2, work);
  else
    source.define("BIAS(i)", "((T)0)");
}

void define_conv_operands(ComputeSource& source, const irgen::KernelRequest& request, ElementType work) {
  source.define("ROW_OF_A(row)", "((group * M + (row)) * K)");
  source.define("START(row)", "BIAS(group * M + (row))");
  source.define("LINE(row)", "((image * n[2] + group * M + (row)) * N)");
  source.load("X", 0, work);
  source.load("A", 1, work);
  source.load_by_pointer("A", 1, work);
  define_bias(source, request, work);
}

bool is_plain(const std::vector<WindowAxis>& axes) {
  for (const WindowAxis& a : axes)
    if (a.kernel != 1 || a.stride != 1 || a.begin != 0 || a.in != a.out) return false;
  return true;
}

ComputeLaunch conv_launch(const Dims& x, const Dims& y, int64_t group, const std::vector<WindowAxis>& axes) {
  int64_t taps = 1;
  for (const WindowAxis& a : axes) taps *= a.kernel;
  ComputeLaunch made{{x[0], x[1], y[1], group, elements_of(spatial_of(x)), elements_of(spatial_of(y)), taps,
                      is_plain(axes) ? 1 : 0, 1, 1, 1},
                     elements_of(y)};
  add_axes(axes, made);
  return made;
}

std::vector<Dim> kernel_of(const Dims& w) { return {w.begin() + 2, w.end()}; }

}  // namespace tenon::opencl
