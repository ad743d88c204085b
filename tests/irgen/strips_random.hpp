// Random parts of networks whose operators can be computed in strips: windows with all kinds of padding, strides,
// dilations and groups, elementwise operators, normalisations, products, moves; operators with several results, several
// users, residual sums, constants.
#pragma once
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/builder.hpp>

namespace tenon::irgen::testing {

using tenon::testing::pick;
using tenon::testing::random_tensor;

class RandomPiece {
 public:
  RandomPiece(uint32_t seed, int64_t height)
      : random_(seed * 2654435761u + 17), graph_(std::make_unique<Graph>("piece")), b_(graph_->body()) {
    const Dims dims{pick(random_, 1, 4) == 1 ? 2 : 1, pick(random_, 1, 4), height, pick(random_, 4, 9)};
    values_.push_back(graph_->body().add_input("x", Type(kF32, Shape(dims))));
  }

  // Null if this seed and height give no operator.
  std::unique_ptr<Graph> build() {
    const int64_t ops = pick(random_, 2, 8);
    for (int64_t i = 0; i < 6 * ops && static_cast<int64_t>(values_.size()) <= ops; ++i) {
      const auto made = draw();
      if (made.ok() && shape(*made).size() == 4 && elements(*made) > 0 && elements(*made) < 20000)
        values_.push_back(*made);
    }
    if (values_.size() < 2) return nullptr;
    graph_->body().add_output(values_.back(), "y");
    // Now and then a value within is wanted as well, and breaks the chain.
    if (pick(random_, 0, 5) == 0 && values_.size() > 2) {
      Value* other = values_[static_cast<size_t>(pick(random_, 1, static_cast<int64_t>(values_.size()) - 2))];
      graph_->body().add_output(other, "z");
    }
    erase_dead();
    return std::move(graph_);
  }

 private:
  static Dims shape(const Value* v) { return v->type().shape().static_dims().value_or(Dims{}); }
  static int64_t elements(const Value* v) { return *element_count(shape(v)); }
  Value* some() {
    // Mostly the latest.
    const int64_t last = static_cast<int64_t>(values_.size()) - 1;
    return values_[static_cast<size_t>(pick(random_, 0, 3) ? last
                                                           : pick(random_, std::max<int64_t>(0, last - 3), last))];
  }
  Value* constant(Dims dims) { return b_.constant(random_tensor(random_, kF32, std::move(dims))); }
  bool coin() { return pick(random_, 0, 1) == 1; }

  void set_padding(Attributes& a) {
    const int64_t kind = pick(random_, 0, 5);
    if (kind == 0) a.set("auto_pad", "SAME_UPPER");
    if (kind == 1) a.set("auto_pad", "SAME_LOWER");
    if (kind == 2) a.set("auto_pad", "VALID");
    if (kind > 2)
      a.set("pads",
            Attribute::Integers{pick(random_, 0, 2), pick(random_, 0, 2), pick(random_, 0, 2), pick(random_, 0, 2)});
  }
  Attributes window(bool dilates) {
    Attributes a;
    set_padding(a);
    a.set("strides", Attribute::Integers{pick(random_, 1, 2), pick(random_, 1, 2)});
    if (dilates) a.set("dilations", Attribute::Integers{pick(random_, 1, 2), pick(random_, 1, 2)});
    return a;
  }

  Result<Value*> conv(Value* x) {
    const int64_t channels = shape(x)[1], group = coin() ? channels : 1, outputs = group * pick(random_, 1, 3);
    Attributes a = window(coin());
    a.set("group", group);
    Value* w = constant({outputs, channels / group, pick(random_, 1, 3), pick(random_, 1, 3)});
    return b_.op("Conv", {x, w, coin() ? constant({outputs}) : nullptr}, a);
  }
  Result<Value*> conv_transpose(Value* x) {
    const int64_t channels = shape(x)[1];
    Attributes a;
    a.set("strides", Attribute::Integers{pick(random_, 1, 2), 1});
    a.set("pads", Attribute::Integers{pick(random_, 0, 1), 0, pick(random_, 0, 1), 0});
    return b_.op("ConvTranspose", {x, constant({channels, pick(random_, 1, 2), pick(random_, 2, 3), 2})}, a);
  }
  Result<Value*> pool(Value* x) {
    const bool mean = coin();
    Attributes a = window(!mean && coin());
    a.set("kernel_shape", Attribute::Integers{pick(random_, 1, 3), pick(random_, 1, 3)});
    if (mean) a.set("count_include_pad", pick(random_, 0, 1));
    if (!a.has("auto_pad")) a.set("ceil_mode", pick(random_, 0, 1));
    return b_.op(mean ? "AveragePool" : "MaxPool", {x}, a);
  }
  Result<Value*> elementwise(Value* x) {
    static const char* const kUnary[] = {"Relu", "Sigmoid", "Neg", "LeakyRelu", "Identity"};
    static const char* const kBinary[] = {"Add", "Mul", "Sub", "Max"};
    const int64_t channels = shape(x)[1], height = shape(x)[2];
    if (coin()) return b_.op(kUnary[pick(random_, 0, 4)], {x});
    Value* other = some();  // residual, where the shapes agree
    const int64_t kind = pick(random_, 0, 3);
    if (kind == 0) other = constant({channels, 1, 1});
    if (kind == 1) other = constant({height, 1});
    return b_.op(kBinary[pick(random_, 0, 3)],
                 coin() ? std::initializer_list<Value*>{x, other} : std::initializer_list<Value*>{other, x});
  }
  Result<Value*> normalise(Value* x) {
    const int64_t channels = shape(x)[1];
    switch (pick(random_, 0, 4)) {
      case 0:
        return b_.op(
            "BatchNormalization",
            {x, constant({channels}), constant({channels}), constant({channels}),
             b_.constant(Tensor::of<float>({channels}, std::vector<float>(static_cast<size_t>(channels), 1.5f)))});
      case 1: return b_.op("LayerNormalization", {x, constant({shape(x)[3]})}, {{"axis", int64_t{-1}}});
      case 2: return b_.op("InstanceNormalization", {x, constant({channels}), constant({channels})});
      case 3: return b_.op("LRN", {x}, {{"size", int64_t{3}}});
      default: return b_.op("Softmax", {x}, {{"axis", pick(random_, 1, 3)}});
    }
  }
  // Rows times weights, or times another value as in attention.
  Result<Value*> product(Value* x) {
    const Dims dims = shape(x);
    const int64_t columns = pick(random_, 1, 9);
    if (coin()) return b_.op("MatMul", {x, constant({dims[3], columns})});
    if (coin()) return b_.op("MatMul", {constant({dims[2], dims[2]}), x});
    TENON_TRY(turned, b_.op("Transpose", {x}, {{"perm", Attribute::Integers{0, 1, 3, 2}}}));
    TENON_TRY(scores, b_.op("MatMul", {some_like(x), turned}));
    TENON_TRY(weights, b_.op("Softmax", {scores}, {{"axis", int64_t{-1}}}));
    return b_.op("MatMul", {weights, x});
  }
  Value* some_like(Value* x) {
    Value* other = some();
    return shape(other) == shape(x) ? other : x;
  }
  Result<Op*> operator_of(Name name, const std::vector<Value*>& operands, size_t results, Attributes attributes) {
    Op& op = graph_->body().create(name, operands, std::vector<Type>(results), std::move(attributes));
    const auto inferred = infer_result_types(op);
    if (inferred.ok()) return &op;
    op.erase();
    return inferred.error();
  }
  // Two of the results are joined again, or one is used.
  Result<Value*> several(Value* x) {
    const Dims dims = shape(x);
    switch (pick(random_, 0, 3)) {
      case 0: {
        TENON_TRY(made, operator_of("LayerNormalization", {x, constant({dims[3]})}, 3, {{"axis", int64_t{-1}}}));
        Op& op = *made;
        if (coin()) return op.result(0);
        return b_.op("Sub", {op.result(0), op.result(pick(random_, 1, 2))});
      }
      case 1: {
        Attributes a = window(false);
        a.set("kernel_shape", Attribute::Integers{2, 2});
        TENON_TRY(made, operator_of("MaxPool", {x}, 2, a));
        return made->result(0);
      }
      default: {
        const int64_t axis = pick(random_, 1, 3), parts = std::min<int64_t>(pick(random_, 2, 3), dims[axis]);
        // No result is empty.
        if (parts < 2 || (parts - 1) * ((dims[axis] + parts - 1) / parts) >= dims[axis])
          return error(Code::unsupported, "a Split of ", dims[axis]);
        TENON_TRY(made,
                  operator_of("Split", {x}, static_cast<size_t>(parts), {{"axis", axis}, {"num_outputs", parts}}));
        Op& op = *made;
        if (coin()) return op.result(static_cast<size_t>(pick(random_, 0, parts - 1)));
        if (coin() && dims[axis] % parts == 0) return b_.op("Mul", {op.result(0), op.result(1)});
        return b_.op("Concat", {op.result(1), op.result(0)}, {{"axis", axis}});
      }
    }
  }
  Result<Value*> move(Value* x) {
    static const char* const kModes[] = {"constant", "edge", "reflect"};
    switch (pick(random_, 0, 4)) {
      case 0:
        return b_.op("Pad",
                     {x, b_.constant_ints({0, 0, pick(random_, 0, 3), pick(random_, 0, 2), 0, 0, pick(random_, 0, 3),
                                           pick(random_, 0, 2)})},
                     {{"mode", kModes[pick(random_, 0, 2)]}});
      case 1: {
        const float by = coin() ? 2.0f : 1.5f;
        return b_.op("Resize", {x, nullptr, b_.constant(Tensor::of<float>({4}, {1, 1, by, 1}))},
                     {{"mode", coin() ? "nearest" : "linear"},
                      {"coordinate_transformation_mode", coin() ? "asymmetric" : "half_pixel"}});
      }
      case 2: return b_.op("Concat", {x, some()}, {{"axis", pick(random_, 1, 2)}});
      case 3:
        return b_.op("Slice", {x, b_.constant_ints({pick(random_, 0, 1)}), b_.constant_ints({1000}),
                               b_.constant_ints({pick(random_, 2, 3)}), b_.constant_ints({pick(random_, 1, 2)})});
      default: return b_.op("Transpose", {x}, {{"perm", Attribute::Integers{0, 1, 3, 2}}});
    }
  }

  Result<Value*> draw() {
    Value* x = some();
    switch (pick(random_, 0, 12)) {
      case 0:
      case 1: return conv(x);
      case 2: return pool(x);
      case 3:
      case 4:
      case 5: return elementwise(x);
      case 6: return normalise(x);
      case 7: return coin() ? conv_transpose(x) : move(x);
      case 8:
      case 9: return product(x);
      case 10:
      case 11: return several(x);
      default: return move(x);
    }
  }
  void erase_dead() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Op* op = graph_->body().last(); op;) {
        Op* before = op->previous();
        if (!op->has_uses()) op->erase(), changed = true;
        op = before;
      }
    }
  }

  std::mt19937 random_;
  std::unique_ptr<Graph> graph_;
  Builder b_;
  std::vector<Value*> values_;
};

}  // namespace tenon::irgen::testing
