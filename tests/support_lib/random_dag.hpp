// Seeded random graphs of elementwise, broadcasting and reducing operators with mixed types, as snippets have them.
#pragma once
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/support/check.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::testing {

struct RandomDagOptions {
  uint32_t seed = 0;
  // true: only operators with identical results on every machine, including discontinuous ones (comparisons, rounding,
  // casts to integers), all types. false: f32 only, smooth functions and sums, whose last bits may differ.
  bool exact = true;
  int max_ops = 60, max_inputs = 40;
  int lanes = 8;       // extents are drawn around it
  bool crops = false;  // some inputs are read in part
  bool joins = false;  // some results become parts of larger ones, together with others or with inputs
  bool again = false;  // some values are outputs twice, directly or through a view
};

class RandomDag {
 public:
  explicit RandomDag(const RandomDagOptions& options) : options_(options), random_(options.seed) {}

  std::unique_ptr<Graph> build() {
    graph_ = std::make_unique<Graph>(str("dag", options_.seed));
    draw_space();
    const int64_t inputs = pick(random_, 1, pick(random_, 1, options_.max_inputs));
    for (int64_t i = 0; i < inputs; ++i) {
      const ElementType element = draw_type();
      Shape shape = i == 0 ? Shape(space_) : draw_shape();
      if (options_.crops && pick(random_, 0, 2) == 0)
        add_cropped_input(i, element, shape);
      else
        values_.push_back(graph_->body().add_input(str("in", i), Type(element, std::move(shape))));
    }
    const int64_t ops = pick(random_, 1, options_.max_ops);
    for (int64_t i = 0; i < ops; ++i) add_op();
    for (int64_t left = options_.joins ? pick(random_, 0, 4) : 0; left > 0; --left) add_join();
    int outputs = 0;
    for (Value* value : values_)
      if (!value->used() && value->producer()) graph_->body().add_output(value, str("out", outputs++));
    for (int64_t left = options_.again ? pick(random_, 0, 3) : 0; left > 0 && outputs > 0; --left) add_again(outputs++);
    return std::move(graph_);
  }

  // Inputs for a graph made by build().
  std::vector<Datum> inputs(const Graph& graph) {
    std::vector<Datum> data;
    for (size_t i = 0; i < graph.body().input_count(); ++i) {
      const Type& type = graph.body().input(i)->type();
      const bool truth = type.element().is_bool(), natural = type.element().is_unsigned_int();
      data.emplace_back(random_tensor(random_, type.element(), *type.shape().static_dims(), truth || natural ? 0 : -20,
                                      truth ? 1 : 20));
    }
    return data;
  }

 private:
  struct Choice {
    const char* op;
    int operands;
    enum class On { numbers, floats, signed_numbers, integers, natural, booleans } on;
  };

  void draw_space() {
    const int64_t l = options_.lanes;
    const std::vector<int64_t> extents = {1, 2, 3, 5, 7, l - 1, l, l + 1, 2 * l + 3, 40, 100};
    const int64_t rank = pick(random_, 1, 4);
    int64_t elements = 1;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t extent = pick(random_, 0, 60) == 0 ? 0 : one_of(extents);
      space_.push_back(elements * extent > 20000 ? 1 : extent);
      elements *= std::max<int64_t>(space_.back(), 1);
    }
  }
  // An input with more elements along some dims, of which a Slice takes `shape`.
  void add_cropped_input(int64_t number, ElementType element, const Shape& shape) {
    Dims whole = *shape.static_dims(), starts, ends, axes;
    for (size_t d = 0; d < whole.size(); ++d) {
      if (pick(random_, 0, 1) == 0) continue;
      starts.push_back(pick(random_, 0, 3));
      ends.push_back(starts.back() + whole[d]);
      axes.push_back(static_cast<int64_t>(d));
      whole[d] = ends.back() + pick(random_, 0, 3);
    }
    Value* input = graph_->body().add_input(str("in", number), Type(element, Shape(whole)));
    if (axes.empty()) return values_.push_back(input);
    Builder builder(graph_->body());
    add("Slice", {input, builder.constant_ints(starts), builder.constant_ints(ends), builder.constant_ints(axes)});
  }

  // A Concat of an unused result with other unused results or inputs, which may be longer along the axis.
  void add_join() {
    const auto is_open = [](const Value* value) { return !value->used() && value->producer(); };
    std::vector<Value*> open;
    std::ranges::copy_if(values_, std::back_inserter(open), is_open);
    std::erase_if(open, [](const Value* value) { return value->type().shape().dims().empty(); });
    if (open.empty()) return;
    Value* first = one_of(open);
    Dims dims = *first->type().shape().static_dims();
    const auto axis = static_cast<size_t>(pick(random_, 0, static_cast<int64_t>(dims.size()) - 1));
    std::vector<Value*> parts{first};
    for (Value* other : open) {
      Dims like = *other->type().shape().static_dims();
      if (other == first || like.size() != dims.size() || other->type().element() != first->type().element()) continue;
      like[axis] = dims[axis];
      if (like == dims && pick(random_, 0, 2) != 0) parts.push_back(other);
    }
    if (parts.size() == 1 || pick(random_, 0, 2) == 0) {
      dims[axis] = pick(random_, 0, 40);
      const Type type(first->type().element(), Shape(dims));
      parts.push_back(graph_->body().add_input(str("in", graph_->body().input_count()), type));
    }
    std::shuffle(parts.begin(), parts.end(), random_);
    add("Concat", parts, {{"axis", static_cast<int64_t>(axis)}});
  }

  // For any result, so that others may read it as well.
  void add_again(int number) {
    std::vector<Value*> made;
    std::ranges::copy_if(values_, std::back_inserter(made), [](const Value* value) { return value->producer(); });
    Value* value = pick(random_, 0, 1) ? one_of(made) : graph_->body().output(0);
    Builder builder(graph_->body());
    const int64_t elements = *element_count(*value->type().shape().static_dims());
    switch (pick(random_, 0, 3)) {
      case 0: value = *builder.op("Identity", {value}); break;
      case 1: value = *builder.op("Flatten", {value}, {{"axis", int64_t{0}}}); break;
      case 2:
        value = *builder.op("Reshape", {value, builder.constant_ints({elements})}, {{"allowzero", int64_t{1}}});
        break;
    }
    graph_->body().add_output(value, str("out", number));
  }

  // A shape that broadcasts to the space.
  Shape draw_shape() {
    Dims dims = space_;
    const int64_t kind = pick(random_, 0, 9);
    if (kind >= 6)
      for (int64_t& extent : dims)
        if (pick(random_, 0, 1) == 0) extent = 1;
    if (kind == 9) dims.erase(dims.begin(), dims.begin() + pick(random_, 0, static_cast<int64_t>(dims.size())));
    return Shape(dims);
  }
  ElementType draw_type() {
    if (!options_.exact) return kF32;
    static const std::vector<ElementType> kTypes = {kF32, kF32, kF32, kF16, kBF16, kI8,   kI16, kI32,
                                                    kI64, kU8,  kU16, kU32, kU64,  kBool, kBool};
    return one_of(kTypes);
  }
  template <class T>
  T one_of(const std::vector<T>& from) {
    return from[static_cast<size_t>(pick(random_, 0, static_cast<int64_t>(from.size()) - 1))];
  }

  static bool fits(Choice::On on, ElementType element) {
    switch (on) {
      case Choice::On::numbers: return element.is_number();
      case Choice::On::floats: return element.is_float();
      case Choice::On::signed_numbers: return element.is_float() || element.is_signed_int();
      case Choice::On::integers: return element.is_int();
      case Choice::On::natural: return element.is_unsigned_int();
      case Choice::On::booleans: return element.is_bool();
    }
    return false;
  }

  Value* draw_value(const std::function<bool(ElementType)>& good) {
    std::vector<Value*> found;
    for (Value* value : values_)
      if (good(value->type().element())) found.push_back(value);
    if (found.empty()) return nullptr;
    // Newer ones more often, so that graphs become deep.
    const int64_t last = static_cast<int64_t>(found.size()) - 1;
    return found[static_cast<size_t>(std::max(pick(random_, 0, last), pick(random_, 0, last)))];
  }
  void add(Name op, std::vector<Value*> operands, Attributes attributes = {}) {
    Builder builder(graph_->body());
    auto made = builder.op(op, operands, std::move(attributes));
    TENON_CHECK(made.ok(), "a random graph: ", op, ": ", made.ok() ? "" : made.error().to_string());
    values_.push_back(*made);
  }

  void add_op() {
    const int64_t kind = pick(random_, 0, 99);
    if (options_.exact) {
      if (kind < 12) return add_cast();
      if (kind < 20) return add_compare();
      if (kind < 26) return add_where();
      if (kind < 30) return add_reduction(pick(random_, 0, 1) ? "ReduceMax" : "ReduceMin");
      return add_from(exact_choices());
    }
    if (kind < 6)
      return add_reduction(one_of<const char*>({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceLogSumExp"}));
    if (kind < 9) return add_softmax();
    if (kind < 13) return add_scaled_by_fold();
    if (kind < 17) return add_gate();
    return add_from(smooth_choices());
  }

  static const std::vector<Choice>& exact_choices() {
    using On = Choice::On;
    static const std::vector<Choice> kChoices = {
        {"Add", 2, On::numbers},        {"Add", 2, On::numbers},         {"Sub", 2, On::numbers},
        {"Mul", 2, On::numbers},        {"Div", 2, On::numbers},         {"Min", 2, On::numbers},
        {"Max", 2, On::numbers},        {"Neg", 1, On::signed_numbers},  {"Abs", 1, On::numbers},
        {"Sign", 1, On::numbers},       {"Sqrt", 1, On::floats},         {"Floor", 1, On::floats},
        {"Ceil", 1, On::floats},        {"Round", 1, On::floats},        {"Relu", 1, On::signed_numbers},
        {"Reciprocal", 1, On::floats},  {"And", 2, On::booleans},        {"Or", 2, On::booleans},
        {"Xor", 2, On::booleans},       {"Not", 1, On::booleans},        {"BitwiseAnd", 2, On::integers},
        {"BitwiseOr", 2, On::integers}, {"BitwiseXor", 2, On::integers}, {"BitwiseNot", 1, On::integers},
        {"Mod", 2, On::integers},       {"Identity", 1, On::numbers}};
    return kChoices;
  }
  static const std::vector<Choice>& smooth_choices() {
    using On = Choice::On;
    static const std::vector<Choice> kChoices = {
        {"Add", 2, On::floats},   {"Add", 2, On::floats},       {"Sub", 2, On::floats},
        {"Mul", 2, On::floats},   {"Max", 2, On::floats},       {"Min", 2, On::floats},
        {"Relu", 1, On::floats},  {"Tanh", 1, On::floats},      {"Sigmoid", 1, On::floats},
        {"Erf", 1, On::floats},   {"Gelu", 1, On::floats},      {"Softplus", 1, On::floats},
        {"Mish", 1, On::floats},  {"HardSwish", 1, On::floats}, {"Sin", 1, On::floats},
        {"Cos", 1, On::floats},   {"Atan", 1, On::floats},      {"Elu", 1, On::floats},
        {"Abs", 1, On::floats},   {"Neg", 1, On::floats},       {"Softsign", 1, On::floats},
        {"Asinh", 1, On::floats}, {"Mean", 3, On::floats},      {"HardSigmoid", 1, On::floats}};
    return kChoices;
  }

  void add_from(const std::vector<Choice>& choices) {
    const Choice choice = one_of(choices);
    Value* first = draw_value([&](ElementType element) { return fits(choice.on, element); });
    if (!first) return;
    std::vector<Value*> operands{first};
    while (operands.size() < static_cast<size_t>(choice.operands))
      operands.push_back(draw_value([&](ElementType element) { return element == first->type().element(); }));
    Attributes attributes;
    if (std::string_view(choice.op) == "Mod" && pick(random_, 0, 1)) attributes.set("fmod", int64_t{1});
    add(choice.op, std::move(operands), std::move(attributes));
  }
  // x (c + f(x / a + b x^3)) with Erf or Tanh, as GELU is decomposed. All parts are values that others may read.
  void add_gate() {
    Value* const x = draw_value([](ElementType element) { return element.is_float(); });
    if (!x) return;
    Builder builder(graph_->body());
    const auto number = [&](double value) { return builder.constant_scalar(x->type().element(), value); };
    const auto then = [&](Name op, std::vector<Value*> operands) {
      add(op, std::move(operands));
      return values_.back();
    };
    Value* argument = then("Div", {x, number(0.25 + static_cast<double>(pick(random_, 1, 16)) / 8)});
    if (pick(random_, 0, 1) == 0) {
      Value* const cube = then("Mul", {then("Mul", {x, x}), x});
      argument = then("Add", {argument, then("Mul", {cube, number(static_cast<double>(pick(random_, 0, 8)) / 64)})});
    }
    Value* const function = then(pick(random_, 0, 1) ? "Erf" : "Tanh", {argument});
    then("Mul", {x, then("Add", {function, number(static_cast<double>(pick(random_, 1, 4)) / 2)})});
  }
  void add_cast() {
    static const std::vector<ElementType> kTo = {kF32, kF32, kF16, kBF16, kI8,  kI16, kI32,
                                                 kI64, kU8,  kU16, kU32,  kU64, kBool};
    Value* from = draw_value([](ElementType) { return true; });
    // To an integer only from a number that its type has a sure result for: out of range is the machine's affair in
    // ONNX, so numbers are brought into range first.
    ElementType to = one_of(kTo);
    if (to.is_int() && from->type().element().is_float()) {
      Builder builder(graph_->body());
      const ElementType element = from->type().element();
      Value* low = builder.constant_scalar(element, to.is_unsigned_int() ? 0 : -100);
      Value* high = builder.constant_scalar(element, 100);
      add("Clip", {from, low, high});
      from = values_.back();
    }
    add("Cast", {from}, {{"to", Type(to, Shape())}});
  }
  void add_compare() {
    static const std::vector<const char*> kOps = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
    Value* left = draw_value([](ElementType element) { return element.is_number(); });
    if (!left) return;
    Value* right = draw_value([&](ElementType element) { return element == left->type().element(); });
    add(one_of(kOps), {left, right});
  }
  void add_where() {
    Value* condition = draw_value([](ElementType element) { return element.is_bool(); });
    Value* left = draw_value([](ElementType) { return true; });
    if (!condition) return;
    add("Where", {condition, left, draw_value([&](ElementType element) { return element == left->type().element(); })});
  }
  Value* axes_of(const Value& value, int64_t& keepdims) {
    const auto rank = static_cast<int64_t>(value.type().shape().dims().size());
    if (rank == 0) return nullptr;
    // The same axes for all reductions of a graph, mostly: others are a snippet of their own.
    if (axes_.empty() || pick(random_, 0, 9) == 0) {
      axes_.clear();
      for (int64_t a = 1; a <= static_cast<int64_t>(space_.size()); ++a)
        if (pick(random_, 0, 1)) axes_.push_back(-a);
      if (axes_.empty()) axes_.push_back(-1);
    }
    std::vector<int64_t> axes;
    for (const int64_t axis : axes_)
      if (-axis <= rank) axes.push_back(axis);
    if (axes.empty()) return nullptr;
    keepdims = 1;
    return Builder(graph_->body()).constant_ints(axes);
  }
  static bool empty(const Value& value) {
    const Dims dims = *value.type().shape().static_dims();
    return std::find(dims.begin(), dims.end(), 0) != dims.end();
  }
  void add_reduction(Name op) {
    Value* value = draw_value([](ElementType element) {
      return element == kF32 || element == kI32 || element == kI64 || element == kI8 || element == kU8 ||
             element == kF16;
    });
    // Over no elements, a maximum is an error of its own in some versions.
    if (!value || empty(*value)) return;
    int64_t keepdims = 1;
    Value* axes = axes_of(*value, keepdims);
    if (!axes) return;
    add(op, {value, axes}, {{"keepdims", keepdims}});
    // Which zero is the larger one depends on the order in which they come: plus 0, both are 0.
    Value*& folded = values_.back();
    const ElementType element = folded->type().element();
    if (!options_.exact || !element.is_float()) return;
    Builder builder(graph_->body());
    folded = *builder.op("Add", {folded, builder.constant_scalar(element, 0)});
  }
  // As in a decomposed norm whose column scale is combined with the row's reduction before it meets the row:
  // x * (scale + sum of x), where scale is an input that varies only over the reduced dims.
  void add_scaled_by_fold() {
    Value* value = draw_value([](ElementType) { return true; });
    int64_t keepdims = 1;
    Value* axes = empty(*value) ? nullptr : axes_of(*value, keepdims);
    if (!axes) return;
    add(one_of<const char*>({"ReduceSum", "ReduceMean", "ReduceMax"}), {value, axes}, {{"keepdims", keepdims}});
    const Value& fold = *values_.back();
    Dims dims = *value->type().shape().static_dims();
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d] == fold.type().shape()[d].value()) dims[d] = 1;
    Value* scale = graph_->body().add_input(str("in", graph_->body().input_count()), Type(kF32, Shape(dims)));
    add(one_of<const char*>({"Mul", "Add", "Sub"}), {scale, values_.back()});
    add(one_of<const char*>({"Mul", "Add", "Sub"}), {value, values_.back()});
  }
  void add_softmax() {
    Value* value = draw_value([](ElementType) { return true; });
    const auto rank = static_cast<int64_t>(value->type().shape().dims().size());
    if (rank == 0) return;
    add(pick(random_, 0, 3) ? "Softmax" : "LogSoftmax", {value}, {{"axis", pick(random_, 0, rank - 1)}});
  }

  const RandomDagOptions options_;
  std::mt19937 random_;
  std::unique_ptr<Graph> graph_;
  Dims space_;
  std::vector<int64_t> axes_;
  std::vector<Value*> values_;
};

}  // namespace tenon::testing
