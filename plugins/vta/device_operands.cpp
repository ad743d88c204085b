#include <tenon/ir/builder.hpp>

#include "vta/device_op_internal.hpp"
#include "vta/pack.hpp"
#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

constexpr int64_t kMostPad = 15;  // four bits of a load

}  // namespace

Error refuse(const Hardware& hardware, std::string reason) {
  return error(Code::unsupported, reason, " on target '", hardware.name, "'");
}

// ---- Operands ----

Result<Dims> dims_of(const Value* value, std::string_view what, const Hardware& hardware) {
  if (!value || !value->type().is_tensor()) return refuse(hardware, str(what, " is no tensor"));
  const Type& type = value->type();
  if (type.element() != kI8) return refuse(hardware, str(what, " is ", type.element(), ", not i8"));
  if (auto dims = type.shape().static_dims()) return *dims;
  return refuse(hardware, str(what, " has the shape ", type.shape(), ", which only a run tells: it cannot be tiled"));
}

Result<void> check_bytes(int64_t bytes, std::string_view what, const Hardware& hardware) {
  if (bytes <= dram_window_bytes(hardware)) return {};
  return refuse(hardware, str(what, " takes ", bytes, " bytes, a buffer of the driver ", dram_window_bytes(hardware)));
}

Result<Image> image_of_value(const Value* value, std::string_view what, const Hardware& hardware) {
  TENON_TRY(dims, dims_of(value, what, hardware));
  TENON_TRY(image, image_of(dims, hardware), what);
  TENON_OK(check_bytes(image.elements() * hardware.element_bytes(Memory::inp), what, hardware));
  if (image.width > kMostTransfer)
    return refuse(hardware,
                  str(what, " has rows of ", image.width, " elements, a transfer's stride is at most ", kMostTransfer));
  return image;
}

Result<Tensor> constant_operand(const Op& op, size_t i, std::string_view what, const Hardware& hardware) {
  if (const Tensor* tensor = constant_of(op.operand(i))) return *tensor;
  return refuse(hardware, str(what, " of ", op.name(), " is no constant"));
}

// ---- Windows ----

Result<Axes> axes_of(const Op& op, const Dims& kernel, const Hardware& hardware) {
  const size_t count = kernel.size();
  if (count < 1 || count > 2) return refuse(hardware, str("a window of rank ", count, " is none of 1 and 2"));
  const auto of = [&](Name name, size_t i, int64_t fallback) {
    const auto all = op.attr<Attribute::Integers>(name);
    return i < all.size() ? all[i] : fallback;
  };
  Axes axes;
  for (size_t i = 0; i < count; ++i) {
    WindowAxis& axis = i + 1 == count ? axes.cols : axes.rows;
    axis = {
        .kernel = kernel[i], .stride = of("strides", i, 1), .dilation = of("dilations", i, 1), .pad = of("pads", i, 0)};
    for (const int64_t pad : {axis.pad, of("pads", count + i, 0)}) {
      if (pad < 0 || pad > kMostPad) return refuse(hardware, str("pad ", pad, " is not in 0 to ", kMostPad));
      if (pad >= axis.extent())
        return refuse(hardware, str("pad ", pad, " reaches beyond a window of ", axis.extent(),
                                    ", so that windows of padding only would be"));
    }
  }
  axes.rows.skips = axes.rows.kernel == 1 && axes.rows.stride > 1 && axes.rows.pad == 0;
  return axes;
}

Result<void> check_row_stride(const Image& input, const WindowAxis& rows, const Hardware& hardware) {
  const int64_t stride = input.width * (rows.skips ? rows.stride : 1);
  if (stride <= kMostTransfer) return {};
  return refuse(hardware, str("rows of ", input.width, " elements at stride ", rows.stride, " are ", stride,
                              " elements apart, a transfer's are at most ", kMostTransfer));
}

}  // namespace tenon::vta
