#include <tenon/plugin/reference_layouts.hpp>

#include <algorithm>
#include <map>
#include <string_view>

#include <tenon/ir/value_layout.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

enum class Family : uint8_t {
  convolution,  // x [N, C, ...], w [O, I, ...]
  matmul,       // a [M, K], b [K, N]
  pooling,      // each channel on its own
  elements,     // operand 0 and the results
  join,         // all operands
};

const Family* family_of(const Op& op) {
  static const std::map<std::string_view, Family> kFamilies = {
      {"Conv", Family::convolution},
      {"MatMul", Family::matmul},
      {"MaxPool", Family::pooling},
      {"AveragePool", Family::pooling},
      {"GlobalMaxPool", Family::pooling},
      {"GlobalAveragePool", Family::pooling},
      {"ConvTranspose", Family::elements},
      {"LpPool", Family::elements},
      {"GlobalLpPool", Family::elements},
      {"Gemm", Family::elements},
      {"BatchNormalization", Family::elements},
      {"InstanceNormalization", Family::elements},
      {"GroupNormalization", Family::elements},
      {"LRN", Family::elements},
      {"Softmax", Family::elements},
      {"Resize", Family::elements},
      {"Upsample", Family::elements},
      {"Pad", Family::elements},
      {"QuantizeLinear", Family::elements},
      {"DequantizeLinear", Family::elements},
      {"ReduceSum", Family::elements},
      {"ReduceMean", Family::elements},
      {"ReduceMax", Family::elements},
      {"ReduceMin", Family::elements},
      {"Concat", Family::join},
  };
  const auto found = kFamilies.find(op.name().view());
  return found == kFamilies.end() ? nullptr : &found->second;
}

std::optional<Dims> dims_of(const Value* value) {
  return value && value->type().is_tensor() ? value->type().shape().static_dims() : std::nullopt;
}

// The layout of the value with this text, if it is valid.
std::optional<Layout> layout_of(const Value* value, const std::string& text) {
  const auto dims = dims_of(value);
  if (!dims || value->type().element().is_string()) return std::nullopt;
  auto layout = resolve_layout({text, "", PadState::dirty, 0, false}, *dims, value->type().element().bits());
  return layout.ok() ? std::optional(*std::move(layout)) : std::nullopt;
}

double bytes_of(const Value* value) {
  const auto dims = dims_of(value);
  if (!dims || value->type().element().is_string()) return 0;
  const auto layout = Layout::row_major(*dims, value->type().element().bits());
  return layout.ok() ? static_cast<double>(layout->bytes()) : 0;
}
double cost_of(const Op& op) {
  double bytes = 0;
  for (size_t i = 0; i < op.operand_count(); ++i) bytes += bytes_of(op.operand(i));
  for (size_t i = 0; i < op.result_count(); ++i) bytes += bytes_of(op.result(i));
  return bytes;
}

// Whether dim `d` is the only one with padding.
bool pads_only(const Layout& layout, char dim) {
  for (size_t v = 0; v < layout.variables().size(); ++v) {
    const int i = static_cast<int>(v);
    const bool more = layout.padded_extent(i) != layout.variable_extent(i);
    if (more && layout.variables()[v].name != dim) return false;
  }
  return layout.has_digits() && !layout.is_ragged();
}

class KernelMaker {
 public:
  KernelMaker(const TargetDescription& description, const Op& op, Family family)
      : description_(description), op_(op), family_(family) {}

  std::optional<LayoutKernel> make(const std::string& text) const {
    const auto activation = layout_of(op_.operand(0), text);
    if (!activation) return std::nullopt;
    LayoutKernel kernel;
    kernel.name = str("reference in ", text);
    kernel.cost = cost_of(op_);
    kernel.operands.resize(family_ == Family::join ? op_.operand_count() : 1);
    for (auto& port : kernel.operands) port.layout = text;
    for (size_t i = 0; i < op_.result_count(); ++i) {
      const bool same_rank = dims_of(op_.result(i)).value_or(Dims()).size() == activation->shape().size();
      kernel.results.push_back({same_rank ? text : "", "", false});
    }
    if (family_ == Family::convolution || family_ == Family::matmul) add_weight(*activation, kernel);
    if (family_ == Family::pooling && op_.result_count() == 1 && activation->padding() > 0 &&
        pads_only(*activation, activation->dims()[1])) {
      kernel.pad = PadEffect::same;
    }
    return kernel;
  }

 private:
  // Blocked kernels accumulate whole blocks, so the padding of both operands must be zero.
  void add_weight(const Layout& activation, LayoutKernel& kernel) const {
    const auto stated = description_.layouts.find(family_ == Family::matmul ? "matrix" : "weight");
    if (stated == description_.layouts.end()) return;
    const auto weight = layout_of(op_.operand(1), stated->second);
    if (!weight) return;
    const char summed = family_ == Family::matmul ? activation.dims().back() : activation.dims()[1];
    const bool blocked = activation.padding() > 0 && weight->padding() > 0 && pads_only(activation, summed) &&
                         op_.attr<int64_t>("group", 1) == 1;
    kernel.operands[0].needs_zero_pad = blocked;
    kernel.operands.push_back({stated->second, "", blocked});
  }

  const TargetDescription& description_;
  const Op& op_;
  Family family_;
};

std::vector<std::string> stated_layouts(const TargetDescription& description, const Op& op) {
  const OperatorLimits* limits = description.limits(op.name().str());
  if (limits && !limits->layouts.empty()) return limits->layouts;
  const auto activation = description.layouts.find("activation");
  return activation == description.layouts.end() ? std::vector<std::string>() : std::vector{activation->second};
}

}  // namespace

std::vector<LayoutKernel> reference_layout_kernels(const TargetDescription& description, const Op& op) {
  const Family* family = family_of(op);
  if (!family || op.operand_count() == 0) return {};
  std::vector<LayoutKernel> kernels;
  for (const std::string& text : stated_layouts(description, op)) {
    if (auto kernel = KernelMaker(description, op, *family).make(text)) kernels.push_back(*std::move(kernel));
  }
  return kernels;
}

}  // namespace tenon
