// Folds that change values by rounding: random operators before and after fold-batch-norm and fold-pad.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::testing {
namespace {

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(static_cast<std::mt19937::result_type>(seed)), builder_(graph_.body()) {}

  int64_t draw(int64_t low, int64_t high) { return pick(random_, low, high); }
  ElementType element() const { return element_; }
  void set_element(ElementType element) { element_ = element; }
  Builder& builder() { return builder_; }

  Value* input(Dims dims) {
    inputs_.push_back(random_tensor(random_, element_, dims));
    return graph_.body().add_input(str("in", inputs_.size()), Type(element_, Shape(dims)));
  }
  Value* constant(Dims dims) { return builder_.constant(random_tensor(random_, element_, std::move(dims))); }
  // In [1/2, 2].
  Value* positive(Dims dims) {
    Tensor tensor = random_tensor(random_, element_, std::move(dims));
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, 0.5 + std::abs(tensor.double_at(i)) * 0.75);
    return builder_.constant(tensor);
  }
  Value* op(Name name, std::vector<Value*> operands, Attributes attributes = {}) {
    auto made = builder_.op(name, operands, std::move(attributes));
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return made.ok() ? *made : nullptr;
  }

  // Runs the graph that ends in `y` before and after the pass. Returns the number of operators with `names` afterwards.
  size_t check(Value* y, const char* pass, double tolerance, const std::vector<Name>& names) {
    graph_.body().add_output(y, "y");
    const auto after = graph_.clone();
    PassManager manager;
    EXPECT_TRUE(manager.add(std::string_view(pass)).ok());
    const auto report = manager.run(*after, {.verify_each = true});
    EXPECT_TRUE(report.ok()) << report.error().to_string();
    compare(*after, tolerance);
    size_t left = 0;
    for (const Op& op : std::as_const(*after).body())
      left += std::find(names.begin(), names.end(), op.name()) != names.end();
    return left;
  }

 private:
  void compare(const Graph& after, double tolerance) {
    const auto before_run = Interpreter::prepare(graph_), after_run = Interpreter::prepare(after);
    ASSERT_TRUE(before_run.ok() && after_run.ok());
    const auto wanted = (*before_run)->run(inputs_), got = (*after_run)->run(inputs_);
    ASSERT_TRUE(wanted.ok()) << wanted.error().to_string();
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    const Tensor &a = (*wanted)[0].tensor(), &b = (*got)[0].tensor();
    ASSERT_EQ(a.type(), b.type());
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(a.double_at(i)));
      worst = std::max(worst, std::abs(a.double_at(i) - b.double_at(i)));
    }
    EXPECT_LE(worst, tolerance * largest) << print(graph_, {.elide_beyond = 16}) << print(after, {.elide_beyond = 16});
  }

  std::mt19937 random_;
  ElementType element_ = kF32;
  Graph graph_;
  Builder builder_;
  std::vector<Datum> inputs_;
};

// A linear operator of random shape: its result, its channels, and the axis of them.
struct Made {
  Value* y;
  int64_t channels;
  int64_t trailing;  // axes behind the channels
};
Made linear(Maker& m) {
  const int64_t kind = m.draw(0, 3), group = m.draw(1, 3);
  const bool bias = m.draw(0, 1) == 1;
  if (kind <= 1) {
    const int64_t in = m.draw(1, 3) * group, out = m.draw(1, 3) * group, kernel = m.draw(1, 3);
    Value* x = m.input({2, in, 6, 5});
    Value* w = m.constant(kind == 0 ? Dims{out, in / group, kernel, 2} : Dims{in, out / group, kernel, 2});
    std::vector<Value*> operands = {x, w};
    if (bias) operands.push_back(m.constant({out}));
    const Attribute::Integers strides = {m.draw(1, 2), m.draw(1, 2)};
    return {m.op(kind == 0 ? "Conv" : "ConvTranspose", operands, {{"group", group}, {"strides", strides}}), out, 2};
  }
  const int64_t k = m.draw(1, 5), n = m.draw(1, 5);
  if (kind == 3) return {m.op("MatMul", {m.input({3, k}), m.constant({k, n})}), n, 0};
  const bool trans_b = m.draw(0, 1) == 1;
  std::vector<Value*> operands = {m.input({3, k}), m.constant(trans_b ? Dims{n, k} : Dims{k, n})};
  if (bias)
    operands.push_back(m.constant(std::vector<Dims>{{n}, {1, n}, {}, {1}, {1, 1}}[static_cast<size_t>(m.draw(0, 4))]));
  return {m.op("Gemm", operands, {{"transB", trans_b ? 1 : 0}, {"alpha", 0.5f}, {"beta", 1.5f}}), n, 0};
}

TEST(FoldBatchNorm, RandomOperatorsComputeTheSame) {
  for (uint64_t seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Maker m(seed);
    m.set_element(std::vector<ElementType>{kF32, kF64, kF16, kBF16}[seed % 4]);
    const double tolerance = std::vector<double>{1e-5, 1e-13, 8e-3, 6e-2}[seed % 4];
    auto [y, channels, trailing] = linear(m);
    Dims per_channel(static_cast<size_t>(trailing) + 1, 1);
    per_channel[0] = channels;
    for (int64_t steps = m.draw(1, 3); steps > 0; --steps) {
      switch (m.draw(0, 4)) {
        case 0:
          y = m.op("BatchNormalization",
                   {y, m.positive({channels}), m.constant({channels}), m.constant({channels}), m.positive({channels})});
          break;
        case 1: y = m.op("Mul", {m.draw(0, 1) ? y : m.positive(per_channel), y}); break;
        case 2: y = m.op("Div", {y, m.positive(m.draw(0, 1) ? per_channel : Dims{})}); break;
        case 3: y = m.op("Add", {m.constant(per_channel), y}); break;
        default: y = m.op("Sub", {y, m.constant(per_channel)}); break;
      }
    }
    m.check(y, "fold-batch-norm", tolerance, {});
  }
}

TEST(FoldBatchNorm, NothingIsLeftBehindAConvolution) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Maker m(seed);
    Value* y = m.op("Conv", {m.input({1, 3, 5, 5}), m.constant({4, 3, 3, 3})});
    for (int i = 0; i < 3; ++i) {
      y = m.op("BatchNormalization", {y, m.positive({4}), m.constant({4}), m.constant({4}), m.positive({4})});
      y = m.op("Mul", {y, m.positive({4, 1, 1})});
      y = m.op("Add", {y, m.constant({})});
    }
    EXPECT_EQ(m.check(y, "fold-batch-norm", 1e-5, {"BatchNormalization", "Mul", "Add"}), 0u);
  }
}

TEST(FoldPad, RandomWindowsComputeTheSame) {
  size_t folded = 0;
  for (uint64_t seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Maker m(seed);
    const int64_t kind = m.draw(0, 2);
    Value* x = m.input({2, 2, 6, 5});
    Value* pads = m.builder().constant_ints({0, 0, m.draw(0, 3), m.draw(0, 3), 0, 0, m.draw(0, 3), m.draw(0, 3)});
    Value* value = kind == 2 ? m.builder().constant_scalar(kF32, -std::numeric_limits<double>::infinity()) : nullptr;
    Value* padded = m.op("Pad", value ? std::vector<Value*>{x, pads, value} : std::vector<Value*>{x, pads});
    const Attribute::Integers kernel = {m.draw(2, 3), m.draw(2, 4)}, strides = {m.draw(1, 2), m.draw(1, 3)};
    const Attribute::Integers own = {m.draw(0, 1), m.draw(0, 1), m.draw(0, 1), m.draw(0, 1)};
    Attributes attributes = {{"kernel_shape", kernel}, {"strides", strides}, {"pads", own}};
    Value* y = nullptr;
    if (kind == 0) {
      y = m.op("Conv", {padded, m.constant({3, 2, kernel[0], kernel[1]})}, attributes);
    } else if (kind == 1) {
      attributes.set("count_include_pad", m.draw(0, 1));
      y = m.op("AveragePool", {padded}, attributes);
    } else {
      y = m.op("MaxPool", {padded}, attributes);
    }
    folded += m.check(y, "fold-pad", 1e-6, {"Pad"}) == 0;
  }
  EXPECT_GE(folded, 100u);
}

}  // namespace
}  // namespace tenon::testing
