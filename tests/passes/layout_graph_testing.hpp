// Small convolutional networks whose channels do not fill blocks, and targets that take them in several layouts.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/passes/assign_layouts.hpp>
#include <tenon/support/str.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::testing {

// Bit flags for the layouts that a target's kernels take.
enum Takes : unsigned { kPlain = 1, kNhwc = 2, kBlocked = 4, kIntoBlocks = 8 };

inline std::vector<LayoutKernel> kernels_in(const Op& op, unsigned takes, uint64_t cost_seed) {
  const std::string name = op.name().str();
  const bool conv = name == "Conv", pool = name == "MaxPool" || name == "GlobalAveragePool", join = name == "Concat";
  if (!conv && !pool && !join) return {};
  const auto make = [&](std::string layout, std::string weight, PadEffect pad, unsigned salt) {
    LayoutKernel kernel;
    kernel.operands.assign(join ? op.operand_count() : 1, {layout, "", conv && !weight.empty()});
    if (!weight.empty() && conv) kernel.operands.push_back({weight, "", true});
    kernel.results = {{layout, "", false}};
    kernel.pad = pad;
    kernel.cost =
        static_cast<double>(cost_seed == 0 ? 100 : (cost_seed * 7919 + op.label().size() * 31 + salt * 977) % 4000);
    kernel.name = "in " + layout;
    return kernel;
  };
  std::vector<LayoutKernel> kernels;
  if (takes & kPlain) kernels.push_back(make("", "", PadEffect::zero, 1));
  if (takes & kNhwc) kernels.push_back(make("NHWC", "", PadEffect::zero, 2));
  if (takes & kBlocked) kernels.push_back(make("NCHW{4c}", "OIHW{4i4o}", pool ? PadEffect::same : PadEffect::zero, 3));
  if (takes & kIntoBlocks && conv) {
    kernels.push_back(make("", "", PadEffect::zero, 4));
    kernels.back().results = {{"NCHW{4c}", "", false}};
  }
  return kernels;
}
inline AssignLayoutsOptions target_taking(unsigned takes, uint64_t cost_seed = 0) {
  AssignLayoutsOptions options;
  options.kernels = [takes, cost_seed](const Op& op) { return kernels_in(op, takes, cost_seed); };
  return options;
}

class NetworkBuilder {
 public:
  explicit NetworkBuilder(uint64_t seed) : random_(static_cast<std::mt19937::result_type>(seed)) {}

  std::unique_ptr<Graph> make(int layers) {
    live_ = {input("x", kF32), input("u", ElementType::parse("u8").value())};
    live_[1] = op("Cast", {live_[1]}, {{"to", Type(kF32, Shape())}});
    for (int i = 0; i < layers; ++i) layer();
    size_t outputs = 0;
    for (Value* value : live_) {
      if (!value->used()) graph_->body().add_output(value, str("out", outputs++));
    }
    return std::move(graph_);
  }
  std::vector<Datum> inputs(const Graph& graph) {
    std::vector<Datum> data;
    for (size_t i = 0; i < graph.body().input_count(); ++i) {
      const Type& type = graph.body().input(i)->type();
      data.emplace_back(random_tensor(random_, type.element(), *type.shape().static_dims(), 0, 3));
    }
    return data;
  }

 private:
  int64_t draw(int64_t below) { return pick(random_, 0, below - 1); }
  Value* any() { return live_[static_cast<size_t>(draw(static_cast<int64_t>(live_.size())))]; }
  static Dims dims(Value* value) { return *value->type().shape().static_dims(); }
  Value* input(std::string name, ElementType element) {
    return graph_->body().add_input(std::move(name), Type(element, Shape(Dims{1, 3, 4, 4})));
  }
  Value* constant(Dims dims) { return builder_.constant(random_tensor(random_, kF32, std::move(dims))); }
  Value* op(Name name, std::vector<Value*> operands, Attributes attributes = {}) {
    auto made = builder_.op(name, operands, std::move(attributes));
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    (*made)->set_name(str("v", names_));
    (*made)->producer()->set_label(std::string(static_cast<size_t>(++names_ % 11), 'l'));
    return *made;
  }

  void layer() {
    Value* x = any();
    const int64_t channels = dims(x)[1];
    switch (draw(15)) {
      case 0:
      case 1:
      case 2:
      case 12:
      case 13: {
        const int64_t outputs = 2 + draw(6), kernel = 1 + 2 * draw(2);
        Attributes attributes = {{"pads", Attribute::Integers(4, kernel / 2)}};
        std::vector<Value*> operands = {x, constant({outputs, channels, kernel, kernel})};
        if (draw(2) == 0) operands.push_back(constant({outputs}));
        x = op("Conv", operands, attributes);
        return keep(op("Mul", {x, builder_.constant(Tensor::of<float>({}, {0.125f}))}));
      }
      case 3: return keep(op("Relu", {x}));
      case 4:
      case 14: return keep(op("Sigmoid", {x}));
      case 5: return keep(op("Add", {x, constant({channels, 1, 1})}));
      case 6: return keep(op("Mul", {x, constant({1, channels, 1, 1})}));
      case 7: {
        for (Value* y : live_) {
          if (y != x && y->type() == x->type()) return keep(op("Add", {x, y}));
        }
        return keep(op("Sub", {x, constant({1, 1, 4, 4})}));
      }
      case 8:
        if (channels > 12) return keep(op("Tanh", {x}));
        return keep(op("Concat", {x, any()}, {{"axis", int64_t{1}}}));
      case 9:
        return keep(
            op("MaxPool", {x}, {{"kernel_shape", Attribute::Integers{3, 3}}, {"pads", Attribute::Integers(4, 1)}}));
      case 10: {
        Value* flat = op("Reshape", {x, builder_.constant_ints({channels * 16})});
        return keep(op("Reshape", {flat, builder_.constant_ints(dims(x))}));
      }
      default: return keep(op("Mul", {x, op("GlobalAveragePool", {x})}));
    }
  }
  void keep(Value* value) {
    if (live_.size() < 6) {
      live_.push_back(value);
    } else {
      Value*& place = live_[static_cast<size_t>(draw(6))];
      if (place->used())
        place = value;
      else
        live_.push_back(value);
    }
  }

  std::mt19937 random_;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>("network");
  Builder builder_{graph_->body()};
  std::vector<Value*> live_;
  size_t names_ = 0;
};

}  // namespace tenon::testing
