// Every row of the decomposition table compared with the evaluator of its operator.
#include <gtest/gtest.h>

#include <set>

#include <support_lib/body_evaluator.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/decompose.hpp>
#include <tenon/tensor/compare.hpp>

namespace tenon::snippet {
namespace {

using testing::pick;
using testing::random_tensor;

// One operator with its operands; absent ones have no type.
struct Case {
  Name op;
  std::vector<Type> operands;
  Attributes attributes = {};
  std::map<size_t, Tensor> constants = {};
  size_t results = 1;
  // The range of random integers and floats.
  int64_t low = -20, high = 20;
  double rtol = -1;  // below 0: depends on the element type
};

const ElementType kTypes[] = {kF32, kF16, kBF16, kF64, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kBool};

double tolerance_of(ElementType element) {
  if (element == kF16) return 2e-3;
  if (element == kBF16) return 1.6e-2;
  if (element == kF32) return 2e-6;
  return element == kF64 ? 1e-13 : 0;
}

class OneOperator {
 public:
  // False: the operator does not take these types, or has no form in the dialect for them.
  static bool check(const Case& c, std::mt19937& random, bool must_have_body = false) {
    Graph graph("one");
    Region& body = graph.body();
    Builder b(body);
    std::vector<Value*> operands;
    std::vector<Datum> inputs;
    for (size_t i = 0; i < c.operands.size(); ++i) {
      const auto constant = c.constants.find(i);
      if (constant != c.constants.end()) {
        operands.push_back(b.constant(constant->second));
        continue;
      }
      if (!c.operands[i].known()) {
        operands.push_back(nullptr);
        continue;
      }
      operands.push_back(body.add_input(str("x", i), c.operands[i]));
    }
    auto made = b.ops(c.op, operands, c.results, c.attributes);
    if (!made.ok()) return false;
    for (size_t i = 0; i < made->size(); ++i) body.add_output((*made)[i], str("y", i));
    const Op& op = *(*made)[0]->producer();
    auto snippet_body = make_body(op);
    if (!snippet_body.ok()) {
      EXPECT_FALSE(must_have_body) << snippet_body.error().to_string();
      return false;
    }
    for (size_t i = 0; i < body.input_count(); ++i) inputs.emplace_back(draw(c, body.input(i)->type(), random));
    auto interpreter = Interpreter::prepare(graph);
    EXPECT_TRUE(interpreter.ok()) << interpreter.error().to_string();
    auto expected = (*interpreter)->run(inputs);
    EXPECT_TRUE(expected.ok()) << expected.error().to_string();
    compare_with(c, op, *snippet_body, inputs, *expected);
    return true;
  }

 private:
  // Symbolic extents are 3. Large ranges also contain special values.
  static Tensor draw(const Case& c, const Type& type, std::mt19937& random) {
    Dims dims;
    for (const Dim& dim : type.shape().dims()) dims.push_back(dim.is_static() ? dim.value() : 3);
    const ElementType element = type.element();
    if (element.is_bool()) return random_tensor(random, element, dims, 0, 1);
    const int64_t low = element.is_unsigned_int() ? std::max<int64_t>(c.low, 0) : c.low;
    Tensor tensor = random_tensor(random, element, dims, low, c.high);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (element.is_float()) tensor.set_double(i, tensor.double_at(i) * static_cast<double>(c.high) / 4);
      const double specials[] = {INFINITY, -INFINITY, NAN, -0.0, 0.0};
      if (element.is_float() && c.high > 20 && pick(random, 0, 9) == 0)
        tensor.set_double(i, specials[pick(random, 0, 4)]);
      if (element.is_int() && c.high > 20 && pick(random, 0, 4) == 0)
        tensor.set_int(i, static_cast<int64_t>(random()) << (pick(random, 0, 1) ? 31 : 0));
    }
    return tensor;
  }

  static void compare_with(const Case& c, const Op& op, const Body& body, const std::vector<Datum>& inputs,
                           const std::vector<Datum>& expected) {
    std::vector<Tensor> ports;
    for (const size_t operand : body_operands(op)) {
      const Tensor* constant = constant_of(op.operand(operand));
      ports.push_back(constant ? *constant : inputs[op.operand(operand)->index()].tensor());
    }
    ASSERT_EQ(ports.size(), body.inputs.size());
    std::vector<Dims> dims;
    for (const Datum& output : expected) dims.push_back(output.tensor().dims());
    auto results = testing::BodyEvaluator(body, ports, dims).run();
    ASSERT_TRUE(results.ok()) << results.error().to_string() << body.to_string();
    for (size_t i = 0; i < expected.size(); ++i) {
      const ElementType element = expected[i].tensor().element();
      const double rtol = c.rtol >= 0 ? c.rtol : tolerance_of(element);
      const auto same = compare((*results)[i], expected[i].tensor(), {.rtol = rtol, .atol = rtol / 16});
      EXPECT_TRUE(same.equal) << op.describe() << " result " << i << ": " << same.difference << "\n"
                              << (inputs.empty() ? "" : inputs[0].tensor().to_string()) << "\n"
                              << body.to_string();
    }
  }
};

Type type(ElementType element, Shape shape) { return Type(element, std::move(shape)); }
const Dim kN = Dim(Expr::symbol("N"));
const Shape kWide{kN, Dim(int64_t{5}), Dim(int64_t{7})}, kRow{Dim(int64_t{5}), Dim(int64_t{1})}, kNone{};

std::vector<Shape> broadcasting(size_t operands) {
  if (operands == 1) return {kWide};
  if (operands == 2) return {kWide, kRow};
  return {Shape{Dim(int64_t{1}), Dim(int64_t{5}), Dim(int64_t{7})}, kWide, Shape{Dim(int64_t{7})}};
}

TEST(BodyOfOperators, ElementwiseOnesHaveTheBitsOrNearlyOfTheirEvaluators) {
  std::mt19937 random(20260722);
  std::map<std::string_view, int> taken;
  for (const DecomposeRow* row : all_decompositions()) {
    const OpDef* def = find_op(row->op);
    ASSERT_TRUE(def) << row->op;
    if (row->view || def->has(Trait::reduction) || !def->has(Trait::elementwise) || row->op == "Cast" ||
        row->op == "CastLike" || row->op == "BitCast" || row->op == "Clip")
      continue;
    for (const ElementType element : kTypes) {
      const size_t most = std::min<size_t>(std::max<size_t>(def->min_operands(), def->max_operands()), 3);
      for (size_t operands = def->min_operands(); operands <= most; ++operands) {
        for (const int64_t high : {6, 100}) {
          Case c{row->op, {}};
          const std::vector<Shape> shapes = broadcasting(operands);
          for (size_t i = 0; i < operands; ++i) {
            const bool condition = row->op == "Where" && i == 0;
            c.operands.push_back(type(condition ? kBool : element, row->op == "SwiGLU" ? kWide : shapes[i]));
          }
          c.low = -high;
          c.high = high;
          if (row->op == "BitShift") c.attributes = {{"direction", high == 6 ? "LEFT" : "RIGHT"}};
          if (row->op == "Mod" && element.is_float()) c.attributes = {{"fmod", 1}};
          // Cancellation, and products of rounded factors.
          if (row->op == "HardSigmoid") c.rtol = tolerance_of(element) * 16;
          taken[row->op] += OneOperator::check(c, random);
        }
      }
    }
    EXPECT_GT(taken[row->op], 0) << row->op;
  }
}

TEST(BodyOfOperators, CastsBetweenAllTypes) {
  std::mt19937 random(2);
  for (const ElementType from : kTypes) {
    for (const ElementType to : kTypes) {
      for (const int64_t high : {6, 100000}) {
        Case c{"Cast", {type(from, kWide)}, {{"to", Type(to, Shape())}}};
        c.low = from.bits() < 32 ? -100 : -high;
        c.high = from.bits() < 32 ? 100 : high;
        c.rtol = 0;
        EXPECT_TRUE(OneOperator::check(c, random, true)) << str(from, " to ", to);
        Case like{"CastLike", {type(from, kWide), type(to, kRow)}};
        like.rtol = 0;
        EXPECT_TRUE(OneOperator::check(like, random, true)) << str(from, " like ", to);
      }
    }
  }
}

// Numbers for which rounding twice differs from rounding once.
TEST(BodyOfOperators, CastsToNarrowFloatsRoundOnce) {
  const auto cast = [](const Tensor& x, ElementType to) {
    Graph graph("cast");
    Value* input = graph.body().add_input("x", Type(x.element(), Shape(x.dims())));
    Value* y = *Builder(graph.body()).op("Cast", {input}, {{"to", Type(to, Shape())}});
    const Body body = *make_body(*y->producer());
    const std::vector<Dims> dims{x.dims()};
    const std::vector<Tensor> inputs{x};
    const Tensor got = (*testing::BodyEvaluator(body, inputs, dims).run())[0];
    const auto same = compare(got, *convert(x, to), {0, 0});
    EXPECT_TRUE(same.equal) << str(x.element(), " to ", to, ": ", same.difference);
  };
  std::vector<int64_t> odd;
  for (int bit = 8; bit < 63; ++bit) {
    for (const int64_t half : {int64_t{1} << bit, (int64_t{1} << bit) + (int64_t{1} << (bit - 8))}) {
      for (const int64_t off : {-1, 0, 1}) odd.insert(odd.end(), {half + off, -half + off});
    }
  }
  const auto count = static_cast<int64_t>(odd.size());
  const Tensor wide = Tensor::of<int64_t>({count}, odd);
  for (const ElementType to : {kBF16, kF16, kF32}) {
    cast(wide, to);
    cast(*convert(wide, kU64), to);
    cast(*convert(wide, kI32), to);
    cast(*convert(wide, kU32), to);
    cast(*convert(wide, kF64), to);
  }
}

TEST(BodyOfOperators, ClipsAndPowers) {
  std::mt19937 random(3);
  for (const ElementType element : kTypes) {
    if (element.is_bool()) continue;
    const Shape scalar{std::vector<Dim>{}};
    Case both{"Clip", {type(element, kWide), type(element, scalar), type(element, Shape(Dims{1}))}};
    EXPECT_TRUE(OneOperator::check(both, random, true));
    Case high{"Clip", {type(element, kWide), Type(), type(element, scalar)}};
    EXPECT_TRUE(OneOperator::check(high, random, true));
    for (const double exponent : {2.0, 3.0, 4.0, 1.0, 0.0, -1.0, -2.0, 0.5, -0.5, 0.25, 0.75, -0.75, 1.5, 3.7}) {
      for (const ElementType of : {element, kF32, kI64}) {
        Tensor number = *Tensor::zeros(of, Dims{});
        if (of.is_float())
          number.set_double(0, exponent);
        else
          number.set_int(
              0, of.is_unsigned_int() ? static_cast<int64_t>(std::abs(exponent)) : static_cast<int64_t>(exponent));
        Case power{"Pow", {type(element, kWide), type(of, scalar)}, {}, {{1, number}}};
        power.low = -100;
        power.high = 100;
        OneOperator::check(power, random);
      }
    }
  }
}

TEST(BodyOfOperators, PowersOfIntegersOfTwoTypes) {
  std::mt19937 random(20261125);
  for (const ElementType element : kTypes) {
    for (const ElementType of : kTypes) {
      if (!element.is_int() || !of.is_int()) continue;
      // Bases -1, 0 and 1, which are special cases for negative exponents, and a wide range.
      for (const int64_t most : {int64_t{1}, int64_t{100}}) {
        Case power{"Pow", {type(element, kWide), type(of, kWide)}};
        power.low = -most;
        power.high = most;
        EXPECT_TRUE(OneOperator::check(power, random, true));
      }
      for (const int64_t exponent : {5, 6, 7, 31, 64, 100, 127}) {
        Tensor number = *Tensor::zeros(of, Dims{});
        number.set_int(0, exponent);
        Case power{"Pow", {type(element, kWide), type(of, Shape(Dims{}))}, {}, {{1, number}}};
        power.low = -100;
        power.high = 100;
        EXPECT_TRUE(OneOperator::check(power, random, true));
      }
    }
  }
}

TEST(BodyOfOperators, ShrunkIntegers) {
  std::mt19937 random(20261126);
  for (const ElementType element : kTypes) {
    if (!element.is_int()) continue;
    for (const float lambd :
         {0.5f, 0.0f, -0.5f, -3.0f, 7.0f, 127.0f, 128.0f, -129.0f, 1e9f, -1e9f, 5e9f, -5e9f, INFINITY, -INFINITY, NAN})
      for (const float bias : {0.0f, -0.0f, 1.0f, -2.0f, 100.0f, -300.0f, 1.5f, -0.25f, 16777216.0f, 3e9f}) {
        Case shrink{"Shrink", {type(element, kWide)}, {{"lambd", lambd}, {"bias", bias}}};
        shrink.low = -150;
        shrink.high = 150;
        EXPECT_TRUE(OneOperator::check(shrink, random, true)) << lambd << " " << bias;
      }
  }
}

TEST(BodyOfOperators, ReductionsOverAnyAxes) {
  std::mt19937 random(4);
  const std::vector<std::vector<int64_t>> axes = {{2}, {0}, {1}, {0, 2}, {-1, 1}, {0, 1, 2}, {3}, {}};
  for (const DecomposeRow* row : all_decompositions()) {
    if (!row->op.starts_with("Reduce")) continue;
    for (const ElementType element : kTypes) {
      for (const auto& list : axes) {
        for (const int64_t keepdims : {0, 1}) {
          Case c{row->op,
                 {type(element, Shape{kN, Dim(int64_t{5}), Dim(int64_t{7}), Dim(int64_t{1})}), type(kI64, kNone)},
                 {{"keepdims", keepdims}, {"noop_with_empty_axes", keepdims}},
                 {{1, Tensor::of<int64_t>({static_cast<int64_t>(list.size())}, list)}}};
          c.rtol = tolerance_of(element) * 40;
          c.low = -4;
          c.high = 4;
          OneOperator::check(c, random);
        }
      }
    }
  }
}

// The body does not contain the axes: they are 64-bit integers, which would halve the number of lanes.
TEST(BodyOfOperators, HoldWhatOutputsNeedAndNoMore) {
  Graph graph("sum");
  Builder build(graph.body());
  Value* x = graph.body().add_input("x", Type(kF32, Shape({4, 8})));
  Value* axes = build.constant(Tensor::of<int64_t>({1}, {0}));
  Value* y = *build.op("ReduceSum", {x, axes}, {{"keepdims", 0}});
  const auto body = make_body(*y->producer());
  ASSERT_TRUE(body.ok()) << body.error().to_string();
  EXPECT_EQ(body->values.size(), 2u) << body->to_string();
  EXPECT_EQ(body->nodes.size(), 1u);
}

TEST(BodyOfOperators, ReductionsOverNothing) {
  std::mt19937 random(5);
  for (const DecomposeRow* row : all_decompositions()) {
    if (!row->op.starts_with("Reduce")) continue;
    for (const ElementType element : kTypes) {
      OneOperator::check(
          {row->op, {type(element, Shape(Dims{3, 0})), type(kI64, kNone)}, {}, {{1, Tensor::of<int64_t>({1}, {1})}}},
          random);
    }
  }
}

TEST(BodyOfOperators, SoftmaxesAndNormalisations) {
  std::mt19937 random(6);
  for (const ElementType element : {kF32, kF16, kBF16, kF64}) {
    const auto x = [&](Dims dims) { return type(element, Shape(dims)); };
    const auto expect = [&](Case c) {
      c.rtol = tolerance_of(element) * 40;
      EXPECT_TRUE(OneOperator::check(c, random, true)) << str(c.op, " of ", element);
    };
    for (const int64_t axis : {0, 1, 2, -1}) {
      for (const char* name : {"Softmax", "LogSoftmax", "LpNormalization"})
        expect({name, {type(element, kWide)}, {{"axis", axis}}});
      expect({"LayerNormalization", {x({2, 3, 4}), x({4}), x({4})}, {{"axis", axis}}, {}, 3});
      expect({"RMSNormalization", {x({2, 3, 4}), x({1, 3, 1})}, {{"axis", axis}}});
    }
    for (const char* name : {"GlobalMaxPool", "GlobalAveragePool"}) expect({name, {x({2, 3, 4, 5})}});
    expect({"LpNormalization", {x({4, 5})}, {{"p", 1}}});
    expect({"MeanVarianceNormalization", {x({2, 3, 4, 5})}});
    expect({"BatchNormalization",
            {x({2, 3, 4, 5}), x({3}), x({3}), x({3}), type(element, Shape(Dims{3}))},
            {},
            {{4, *convert(Tensor::of<float>({3}, {0.25f, 0, 4}), element)}}});
    for (const size_t results : {1, 3})
      expect({"BatchNormalization",
              {x({2, 3, 4, 5}), x({3}), x({3}), x({3}), x({3})},
              {{"training_mode", 1}, {"momentum", 0.75f}},
              {},
              results});
    expect({"InstanceNormalization", {x({2, 3, 4, 5}), x({3}), x({3})}});
    for (const int64_t groups : {2, 4}) {
      for (const Dims& dims :
           {Dims{3, 8}, {3, 8, 21}, {1, 4, 8, 8}, {1, 8, 1, 22}, {1, 4, 1, 1, 34}, {1, 8, 1, 8, 2, 2}}) {
        const Dims channels{dims[1]};
        expect({"GroupNormalization", {x(dims), x(channels), x(channels)}, {{"num_groups", groups}}});
      }
    }
    expect({"Dropout", {x({3, 4})}, {}, {}, 2});
    // training_mode is known only at run time; with a ratio of 0 it makes no difference.
    const std::map<size_t, Tensor> none = {{1, Tensor::of<float>({}, {0.0f})}};
    expect({"Dropout", {x({3, 4}), Type(kF32, Shape(Dims{})), Type(kBool, Shape(Dims{}))}, {}, none, 2});
  }
}

TEST(BodyOfOperators, QuantisationPerTensorAndPerAxis) {
  std::mt19937 random(7);
  for (const ElementType real : {kF32, kF16, kBF16}) {
    for (const ElementType integer : {kI8, kU8, kI16, kU16}) {
      for (const Dims& scale : {Dims{}, Dims{5}}) {
        const auto count = *element_count(scale);
        Tensor scales = *Tensor::zeros(real, scale), zeros = *Tensor::zeros(integer, scale);
        for (int64_t i = 0; i < count; ++i) {
          scales.set_double(i, static_cast<double>(pick(random, 1, 64)) / 32);
          zeros.set_int(i, pick(random, integer.is_signed_int() ? -100 : 0, 100));
        }
        Case q{"QuantizeLinear",
               {type(real, kWide), type(real, Shape(scale)), type(integer, Shape(scale))},
               {{"axis", 1}},
               {{1, scales}, {2, zeros}}};
        q.low = -1000;
        q.high = 1000;
        EXPECT_TRUE(OneOperator::check(q, random, true)) << str(real, " to ", integer);
        Case d{"DequantizeLinear",
               {type(integer, kWide), type(real, Shape(scale)), type(integer, Shape(scale))},
               {{"axis", 1}}};
        d.low = -100;
        d.high = 100;
        EXPECT_TRUE(OneOperator::check(d, random, true)) << str(integer, " to ", real);
      }
    }
  }
}

TEST(BodyOfOperators, QuantisationByBlocks) {
  std::mt19937 random(12);
  for (const int64_t axis : {0, 1, 2}) {
    const Dims x{4, 6, 8};
    for (const int64_t block : {1, 2, 4}) {
      Dims scale = x;
      if (x[static_cast<size_t>(axis)] % block != 0) continue;
      scale[static_cast<size_t>(axis)] /= block;
      Tensor scales = *Tensor::zeros(kF32, scale);
      for (int64_t i = 0; i < scales.size(); ++i) scales.set_double(i, static_cast<double>(pick(random, 1, 64)) / 32);
      const Attributes attributes{{"axis", axis}, {"block_size", block}};
      for (const bool has_zero : {true, false}) {
        const Type zero = has_zero ? type(kI8, Shape(scale)) : Type();
        Case q{"QuantizeLinear", {type(kF32, Shape(x)), type(kF32, Shape(scale)), zero}, attributes, {{1, scales}}};
        q.high = 100;
        if (!has_zero) q.attributes.set("output_dtype", Type(kI8, Shape()));
        EXPECT_TRUE(OneOperator::check(q, random, true));
        Case d{"DequantizeLinear", {type(kI8, Shape(x)), type(kF32, Shape(scale)), zero}, attributes};
        EXPECT_TRUE(OneOperator::check(d, random, true));
      }
    }
  }
}

TEST(BodyOfOperators, BitsOfOtherTypes) {
  std::mt19937 random(13);
  for (const ElementType from : kTypes) {
    for (const ElementType to : kTypes) {
      if (from.bits() != to.bits()) continue;
      Case c{"BitCast", {type(from, kWide)}, {{"to", Type(to, Shape())}}};
      c.high = 100;
      c.rtol = 0;
      const bool taken = OneOperator::check(c, random);
      const bool hidden = from != to && (from == kF16 || to == kF16 || to == kBF16);
      EXPECT_EQ(taken, !hidden) << str(from, " as ", to);
    }
  }
}

TEST(BodyOfOperators, Thresholds) {
  std::mt19937 random(14);
  for (const ElementType element : {kF32, kF64, kI32, kI64})
    EXPECT_TRUE(
        OneOperator::check({"ai.onnx.ml.Binarizer", {type(element, kWide)}, {{"threshold", 1.5f}}}, random, true));
}

TEST(BodyOfOperators, QuantisationByTheRangeOfItsOwn) {
  std::mt19937 random(10);
  for (const int64_t high : {1, 20, 100}) {
    Case c{"DynamicQuantizeLinear", {type(kF32, kWide)}, {}, {}, 3};
    c.high = high;
    EXPECT_TRUE(OneOperator::check(c, random, true));
  }
  EXPECT_TRUE(OneOperator::check({"DynamicQuantizeLinear", {type(kF32, Shape(Dims{1}))}, {}, {}, 3}, random, true));
}

TEST(BodyOfOperators, ViewsAddAndDropAndJoinDims) {
  std::mt19937 random(8);
  const Type x = type(kF32, Shape{kN, Dim(int64_t{1}), Dim(int64_t{4}), Dim(int64_t{6})});
  const auto expect = [&](Name op, std::vector<int64_t> operand, Attributes attributes = {}) {
    Case c{op, {x}, std::move(attributes)};
    if (op != Name("Flatten") && op != Name("Identity")) {
      c.operands.push_back(type(kI64, kNone));
      c.constants[1] = Tensor::of<int64_t>({static_cast<int64_t>(operand.size())}, operand);
    }
    EXPECT_TRUE(OneOperator::check(c, random, true)) << op.str();
  };
  expect("Identity", {});
  expect("Squeeze", {1});
  expect("Unsqueeze", {0, 3});
  expect("Flatten", {}, {{"axis", 1}});
  expect("Flatten", {}, {{"axis", 2}});
  expect("Reshape", {0, 24});
  expect("Reshape", {0, 2, 2, 6});
  expect("Reshape", {0, 4, 3, 2, 1});
}

// Exponents that f32 cannot represent, with bases so close to 1 that the last bits of the exponent matter.
TEST(BodyOfOperators, PowersOfFloatsByWideIntegers) {
  std::mt19937 random(11);
  const std::vector<float> bases = {1, -1, 1 + 0x1p-23f, 1 - 0x1p-24f, -1 - 0x1p-23f, 1 + 0x1p-12f, 0.999f, -1.5f,
                                    2, 0,  -0.0f,        INFINITY,     -INFINITY,     NAN};
  for (const ElementType element : {kF32, kF16, kBF16}) {
    const Tensor base = *convert(Tensor::of<float>({static_cast<int64_t>(bases.size()), 1}, bases), element);
    for (const ElementType of : {kI32, kU32, kI64, kU64}) {
      std::vector<int64_t> exponents = {0, 1, 2, 3, 65535, 65536, 70001, 1 << 24, (1 << 24) + 1, (1u << 31) - 1};
      if (of.is_signed_int())
        for (size_t i = 0; i < 10; ++i) exponents.push_back(-exponents[i]);
      if (of.bits() == 64) exponents.insert(exponents.end(), {(int64_t{1} << 40) + 1, int64_t{1} << 62});
      if (of == kI64) exponents.push_back(-(int64_t{1} << 40) - 1);
      const Tensor exponent = *convert(Tensor::of<int64_t>({static_cast<int64_t>(exponents.size())}, exponents), of);
      const Case c{
          "Pow", {type(element, Shape(base.dims())), type(of, Shape(exponent.dims()))}, {}, {{0, base}, {1, exponent}}};
      EXPECT_TRUE(OneOperator::check(c, random, true));
    }
  }
}

TEST(BodyOfOperators, RefusesWhatHasNoOneNest) {
  std::mt19937 random(9);
  const auto refused = [&](const Case& c) { return !OneOperator::check(c, random); };
  const Dim m = Dim(Expr::symbol("M"));
  EXPECT_TRUE(refused({"Add", {type(kF32, Shape{kN}), type(kF32, Shape{m})}}));
  EXPECT_TRUE(refused({"Add", {type(kF32, Shape{kN}), type(kF32, Shape(Dims{5}))}}));
  EXPECT_TRUE(refused({"Relu", {type(kF32, Shape{Dim()})}}));
  EXPECT_TRUE(refused({"Relu", {type(kF32, Shape())}}));
  const std::map<size_t, Tensor> half = {{1, Tensor::of<float>({}, {0.5f})}};
  EXPECT_TRUE(refused(
      {"Dropout", {type(kF32, Shape(Dims{3})), type(kF32, Shape(Dims{})), type(kBool, Shape(Dims{}))}, {}, half}));
  EXPECT_TRUE(refused({"MatMul", {type(kF32, Shape(Dims{2, 3})), type(kF32, Shape(Dims{3, 2}))}}));
  EXPECT_TRUE(refused(
      {"Add", {type(ElementType(ElementKind::sint, 4), kWide), type(ElementType(ElementKind::sint, 4), kWide)}}));
  EXPECT_TRUE(refused(
      {"Reshape", {type(kF32, Shape(Dims{4, 6})), type(kI64, kNone)}, {}, {{1, Tensor::of<int64_t>({2}, {6, 4})}}}));
}

}  // namespace
}  // namespace tenon::snippet
