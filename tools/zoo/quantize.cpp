#include "quantize.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "net.hpp"

namespace tenon::zoo {
namespace {

struct Range {
  double least = 0, greatest = 0;  // includes 0, so that padding is exact
  void include(const Tensor& tensor) {
    for (const float v : tensor.as<float>()) {
      least = std::min<double>(least, v);
      greatest = std::max<double>(greatest, v);
    }
  }
};
using Ranges = std::unordered_map<const Value*, Range>;

// Records the ranges of the float values of a run.
class Calibration final : public Interpreter::Observer {
 public:
  explicit Calibration(Ranges& ranges) : ranges_(ranges) {}
  void before(const Op&) override {}
  void after(const Op& op, std::span<const Datum> results) override {
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].is_tensor() && results[i].tensor().element() == kF32)
        ranges_[op.result(i)].include(results[i].tensor());
    }
  }

 private:
  Ranges& ranges_;
};

Result<Ranges> calibrate(const Graph& graph, const std::vector<std::vector<Datum>>& samples) {
  Ranges ranges;
  Calibration calibration(ranges);
  TENON_TRY(interpreter, Interpreter::prepare(graph));
  for (const auto& inputs : samples) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].tensor().element() == kF32) ranges[graph.body().input(i)].include(inputs[i].tensor());
    }
    TENON_OK(interpreter->run(inputs, default_pool(), &calibration), "the calibration run");
  }
  return ranges;
}

// Rounds up to a number with 12 significant bits: differences in the last bits of two machines' sums then give the same
// scale.
float coarse(double scale) {
  int exponent = 0;
  const double fraction = std::frexp(scale > 0 ? scale : 1, &exponent);
  return static_cast<float>(std::ldexp(std::ceil(fraction * 4096) / 4096, exponent));
}

// One rewrite of a graph. A value is quantised once, whatever uses it.
class Quantizer {
 public:
  Quantizer(Graph& graph, Ranges ranges, Scheme scheme)
      : body_(graph.body()), ranges_(std::move(ranges)), scheme_(scheme) {}

  Result<void> run() {
    static const std::set<Name> kOnIntegers{"Conv", "Gemm", "Add", "GlobalAveragePool"};
    for (Op* op : body_.ops()) {
      if (!kOnIntegers.contains(op->name())) continue;
      const bool weighted = op->is("Conv") || op->is("Gemm");
      TENON_TRY(x_scale, quantize_activation(*op, 0), op->describe());
      if (op->is("Add")) TENON_OK(quantize_activation(*op, 1), op->describe());
      if (weighted) TENON_OK(quantize_weights(*op, x_scale), op->describe());
    }
    for (Op* op : body_.ops()) {
      if (isa<Constant>(op) && !op->has_uses()) op->erase();
    }
    put_constants_first(body_);
    return {};
  }

 private:
  struct Quantized {
    Value* value;
    float scale;
  };

  // Inserts the pair after the value that is operand `i`; returns its scale.
  Result<float> quantize_activation(Op& op, size_t i) {
    Value* x = op.operand(i);
    auto found = done_.find(x);
    if (found == done_.end()) {
      const auto range = ranges_.find(x);
      if (range == ranges_.end()) return error(Code::internal, "no range was measured for '", x->name(), "'");
      TENON_TRY(made, quantized(*x, range->second));
      found = done_.emplace(x, made).first;
    }
    op.set_operand(i, found->second.value);
    return found->second.scale;
  }

  Result<Quantized> quantized(Value& x, const Range& range) {
    const bool symmetric = scheme_ == Scheme::symmetric;
    const float scale =
        coarse(symmetric ? std::max(-range.least, range.greatest) / 127 : (range.greatest - range.least) / 255);
    const auto zero_point = static_cast<uint8_t>(std::nearbyint(std::clamp(-range.least / scale, 0.0, 255.0)));
    Builder builder(body_, x.producer() ? x.producer()->next() : body_.first());
    Value* step = builder.constant(Tensor::scalar<float>(scale), x.name() + ".scale");
    Value* zero = builder.constant(symmetric ? Tensor::scalar<int8_t>(0) : Tensor::scalar<uint8_t>(zero_point),
                                   x.name() + ".zero");
    TENON_TRY(narrow, named(builder, "QuantizeLinear", x.name() + ".quantized", {&x, step, zero}, {}));
    TENON_TRY(wide, named(builder, "DequantizeLinear", x.name() + ".dequantized", {narrow, step, zero}, {}));
    return Quantized{wide, scale};
  }

  // Weights [channels, ...] by the range of each channel; the bias in steps of the input's times the weight's scale, so
  // that an integer kernel adds it to its sum unchanged.
  Result<void> quantize_weights(Op& op, float x_scale) {
    const Tensor* weights = constant_of(op.operand(1));
    const Tensor* bias = constant_of(op.operand(2));
    if (!weights || !bias) return error(Code::invalid_argument, "needs constant weights and a constant bias");
    const int64_t channels = weights->dim(0), row = weights->size() / channels;
    TENON_TRY(narrow, Tensor::allocate(kI8, weights->dims()));
    std::vector<float> scales, bias_scales;
    std::vector<int32_t> sums;
    for (int64_t c = 0; c < channels; ++c) {
      const auto from = weights->as<float>().subspan(static_cast<size_t>(c * row), static_cast<size_t>(row));
      const auto to = narrow.mutable_as<int8_t>().subspan(static_cast<size_t>(c * row), static_cast<size_t>(row));
      double reach = 0;
      for (const float v : from) reach = std::max(reach, std::abs(static_cast<double>(v)));
      const float scale = coarse(reach / 127);
      std::transform(from.begin(), from.end(), to.begin(),
                     [&](float v) { return static_cast<int8_t>(std::nearbyint(static_cast<double>(v) / scale)); });
      scales.push_back(scale);
      bias_scales.push_back(scale * x_scale);
      const double steps =
          std::nearbyint(bias->as<float>()[static_cast<size_t>(c)] / static_cast<double>(bias_scales.back()));
      sums.push_back(static_cast<int32_t>(std::clamp(steps, -0x1p31, 0x1p31 - 1)));
    }
    TENON_OK(dequantized_weight(op, 1, std::move(narrow), scales));
    return dequantized_weight(op, 2, Tensor::of<int32_t>({channels}, sums), bias_scales);
  }

  Result<void> dequantized_weight(Op& op, size_t operand, Tensor narrow, const std::vector<float>& scales) {
    const std::string name = op.operand(operand)->name();
    Builder builder(body_, &op);
    Value* integers = builder.constant(std::move(narrow), name + ".integers");
    Value* steps = builder.constant(Tensor::of<float>({static_cast<int64_t>(scales.size())}, scales), name + ".scale");
    TENON_TRY(wide, named(builder, "DequantizeLinear", name, {integers, steps}, {{"axis", 0}}));
    op.set_operand(operand, wide);
    return {};
  }

  static Result<Value*> named(Builder& builder, Name op, const std::string& name,
                              std::initializer_list<Value*> operands, Attributes attributes) {
    builder.set_name_prefix(name);  // becomes the label
    TENON_TRY(made, builder.op(op, operands, std::move(attributes)));
    made->set_name(name);
    return made;
  }

  Region& body_;
  Ranges ranges_;
  Scheme scheme_;
  std::unordered_map<const Value*, Quantized> done_;
};

}  // namespace

Result<void> quantize(Graph& graph, const std::vector<std::vector<Datum>>& samples, Scheme scheme) {
  TENON_TRY(ranges, calibrate(graph, samples), "calibrating '", graph.name(), "'");
  TENON_OK(Quantizer(graph, std::move(ranges), scheme).run(), "quantising '", graph.name(), "'");
  return verify(graph);
}

}  // namespace tenon::zoo
