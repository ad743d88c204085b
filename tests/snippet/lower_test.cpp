#include <gmock/gmock.h>

#include <snippet/lower_support.hpp>

namespace tenon::snippet::test {
namespace {

using ::testing::HasSubstr;

Body add_body(DimSet a, DimSet b, std::string_view dims) {
  BodyBuilder build("add", dims);
  build.output(build.op("Add", {build.input(a), build.input(b)}));
  return build.take();
}

TEST_F(Lower, AddWithAllBroadcastPatterns) {
  for (DimSet a = 0; a < 8; ++a) check_widths(add_body(a, 7, "kkk"), {2, 3, 0});
  for (DimSet a = 0; a < 4; ++a) check_widths(add_body(a, 3 & ~a, "kk"), {3, 0});
}

TEST_F(Lower, SingleElements) {
  BodyBuilder build("single", "");
  build.output(build.op("Mul", {build.input(0), build.scalar(3)}));
  check(build.take(), {});
}

TEST_F(Lower, NarrowTypesInMemory) {
  for (const ElementType element : {kF16, kBF16, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF64, kBool}) {
    BodyBuilder build("copy", "k");
    const ValueId x = build.input(1, element);
    build.output(element.is_bool() ? build.op("Not", {x}) : build.op("Add", {x, x}), element);
    check_widths(build.take(), {0});
  }
}

TEST_F(Lower, SoftmaxOverEveryAxis) {
  for (const char* dims : {"r", "kr", "rk", "krk", "rkr", "kkr", "krkk", "rr", "rrk"}) {
    const Dims extents = std::string_view(dims).size() == 1   ? Dims{0}
                         : std::string_view(dims).size() == 2 ? Dims{3, 0}
                         : std::string_view(dims).size() == 3 ? Dims{2, 3, 0}
                                                              : Dims{2, 3, 2, 0};
    check_widths(softmax_body(dims), extents, 1e-6);
  }
}

TEST_F(Lower, ExpensiveValuesWaitInTheOutput) {
  options_.rows = 1;
  const auto kernel = lower(softmax_body("kr"), options_);
  ASSERT_TRUE(kernel.ok());
  EXPECT_TRUE(kernel->scratch.empty());
  size_t exponentials = 0;
  for (const Instruction& instruction : kernel->body) exponentials += instruction.op == "Exp";
  EXPECT_EQ(exponentials, 4u + 1 + 1);  // one phase: 4 copies, a single vector, the tail
}

// A value that outer loops would otherwise recompute is kept in elements of its own width.
TEST_F(Lower, NarrowValuesWaitAsSuch) {
  for (const ElementType element : {kI8, kU16, kI32}) {
    BodyBuilder build("row", "kk");
    const ElementType lane = element.is_signed_int() ? kI32 : kU32;
    const ValueId x = build.input(3, lane);
    ValueId made = build.input(2, lane);
    for (int i = 0; i < 8; ++i) made = build.op("Mul", {made, made});
    if (element != kI32) made = build.op("Wrap", {made}, {{"to", element.to_string()}});
    build.output(build.op("Add", {x, made}), lane);
    const Body body = build.take();
    const auto kernel = lower(body, options_);
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    ASSERT_EQ(kernel->scratch.size(), 1u) << print(*kernel);
    EXPECT_EQ(kernel->scratch[0].element, element) << print(*kernel);
    check_widths(body, {3, 0});
  }
}

// If only three of four copies fit into the registers, they are processed two by two instead of three and one.
TEST_F(Lower, CopiesSideBySideGoInGroupsAlike) {
  BodyBuilder build("product", "k");
  const ValueId a = build.input(1), b = build.input(1), c = build.input(1);
  build.output(build.op("Mul", {build.op("Add", {a, b}), c}));
  const Body body = build.take();
  options_.beside = 0;
  const auto groups = [&](int vectors) {
    options_.vectors = vectors;
    const auto kernel = lower(body, options_);
    EXPECT_TRUE(kernel.ok());
    std::vector<int> lengths;
    for (size_t i = 0; i < kernel->body.size() && kernel->body[i].op != "LoopEnd"; ++i) {
      if (kernel->body[i].op != "Add") continue;
      if (i == 0 || kernel->body[i - 1].op != "Add") lengths.push_back(0);
      ++lengths.back();
    }
    if (lengths.empty()) ADD_FAILURE() << print(*kernel);
    return lengths;
  };
  EXPECT_THAT(groups(12), ::testing::ElementsAre(4));
  EXPECT_THAT(groups(9), ::testing::ElementsAre(2, 2));
  EXPECT_THAT(groups(6), ::testing::ElementsAre(2, 2));
  EXPECT_THAT(groups(3), ::testing::ElementsAre(1, 1, 1, 1));
}

// A spread value needs no instruction, and an input that only provides extents is not loaded.
TEST_F(Lower, SpreadValuesAreNoInstructions) {
  for (const std::string_view dims : {"k", "kk", "kr", "rk", "krk", "rkr"}) {
    const DimSet all = (DimSet{1} << dims.size()) - 1;
    for (const DimSet from : {DimSet{0}, DimSet{1}, all & ~DimSet{1}}) {
      BodyBuilder build("spread", dims);
      const ValueId unread = build.input(all), x = build.input(from), mask = build.input(from, kBool);
      build.output(build.spread(x, all));
      build.output(build.op("Where", {build.spread(mask, all), build.spread(build.scalar(3), all), x}));
      if (dims.find('r') != std::string_view::npos)
        build.output(build.spread(build.reduce("ReduceSum", build.spread(x, all)), all));
      const Body body = build.take();
      const auto kernel = lower(body, options_);
      ASSERT_TRUE(kernel.ok());
      EXPECT_TRUE(std::ranges::none_of(kernel->params, [&](const Param& param) {
        return param.kind == Param::Kind::pointer && param.port == unread;
      })) << print(*kernel);
      EXPECT_TRUE(std::ranges::none_of(kernel->body, [](const Instruction& one) { return one.op == kSpread; }));
      check_widths(body, Dims(dims.size(), 3));
    }
  }
  BodyBuilder build("narrowed", "kk");
  build.output(build.spread(build.input(3), 0));
  Body body = build.take();
  body.values[static_cast<size_t>(body.outputs[0].value)].varies = 1;
  const auto narrowed = verify(body);
  ASSERT_FALSE(narrowed.ok());
  EXPECT_THAT(narrowed.error().message(), HasSubstr("varies over d0, its operands over d0 d1"));
}

// Whether a kernel reads what it has written to the first output.
bool reads_output(const LinearKernel& kernel, const Body& body) {
  const auto is_read = [&](const Instruction& pointer) {
    return std::ranges::any_of(kernel.body, [&](const Instruction& one) {
      return one.memory && one.op != "Store" && one.memory->base == pointer.out[0];
    });
  };
  return std::ranges::any_of(kernel.body, [&](const Instruction& one) {
    return one.op == "Parameter" &&
           kernel.params[static_cast<size_t>(one.number)].port == static_cast<int>(body.inputs.size()) && is_read(one);
  });
}

TEST_F(Lower, ValuesThatCostLessThanTheirMemoryAreMadeAgain) {
  options_.rows = 1;
  options_.resweep_cycles = 12;
  for (const char* dims : {"kr", "rk"}) {
    const Body body = softmax_body(dims);
    const auto kernel = lower(body, options_);
    ASSERT_TRUE(kernel.ok());
    EXPECT_FALSE(reads_output(*kernel, body)) << print(*kernel);
    check_widths(body, {3, 0}, 1e-6);
  }
}

// The sum of two tensors and its square cost two cycles and two loads, although the square reads the sum twice.
TEST_F(Lower, WhatIsReadTwiceCostsOnce) {
  options_.rows = 1;
  BodyBuilder build("squares", "kr");
  const ValueId sum = build.op("Add", {build.input(3), build.input(3)}), square = build.op("Mul", {sum, sum});
  build.output(build.op("Sub", {square, build.reduce("ReduceSum", square)}));
  const Body body = build.take();
  for (const double cycles : {3.0, 4.0}) {
    options_.resweep_cycles = cycles;
    const auto kernel = lower(body, options_);
    ASSERT_TRUE(kernel.ok());
    EXPECT_EQ(reads_output(*kernel, body), cycles < 4) << print(*kernel);
    check_widths(body, {3, 0});
  }
}

TEST_F(Lower, LayerNorm) {
  check_widths(layer_norm_body("kr", 2), {3, 0}, 1e-4);
  check_widths(layer_norm_body("krr", 1), {2, 3, 0}, 1e-4);
  check_widths(layer_norm_body("rkr", 2), {2, 3, 0}, 1e-4);
  check_widths(layer_norm_body("rk", 2), {3, 0}, 1e-4);
}

TEST_F(Lower, SumsOverSeveralAxes) {
  for (const char* dims : {"r", "rr", "kr", "rk", "rkr", "krk", "rkrk", "krkr", "rrkk"}) {
    BodyBuilder build("sum", dims);
    const std::string_view all = dims;
    const ValueId x = build.input((DimSet{1} << all.size()) - 1);
    build.output(build.reduce("ReduceSum", x));
    build.output(build.reduce("ReduceMax", x));
    const Body body = build.take();
    Dims extents;
    for (size_t d = 0; d < all.size(); ++d) extents.push_back(static_cast<int64_t>(d) % 2 + 2);
    check_widths(body, extents);
    extents.front() = 0;
    check(body, extents);
  }
}

// The number of accumulators is fixed, so that a sum has the same bits in a long body as in a body of its own.
TEST_F(Lower, SumsHaveAsManyAccumulatorsInAnyBody) {
  options_.rows = 1;
  for (const int length : {0, 10, 100}) {
    BodyBuilder build("sum", "kr");
    ValueId x = build.input(3);
    for (int i = 0; i < length; ++i) x = build.op("Neg", {x});
    build.output(build.reduce("ReduceSum", x));
    const auto kernel = lower(build.take(), options_);
    ASSERT_TRUE(kernel.ok());
    EXPECT_EQ(std::count_if(kernel->body.begin(), kernel->body.end(),
                            [](const Instruction& instruction) { return instruction.op == "Scalar"; }),
              options_.unroll);
  }
}

TEST_F(Lower, ExtremesByPlainConstantsAreClamps) {
  const auto body_of = [](const char* op, float constant, bool first) {
    BodyBuilder build("extreme", "k");
    const ValueId x = build.input(1), c = build.scalar(constant);
    build.output(first ? build.op(op, {c, x}) : build.op(op, {x, c}));
    return build.take();
  };
  const auto clamps = [&](const Body& body) {
    const auto kernel = lower(body, options_);
    return std::any_of(kernel->body.begin(), kernel->body.end(), [](const Instruction& instruction) {
      return instruction.op == "ClampLow" || instruction.op == "ClampHigh";
    });
  };
  for (const bool first : {false, true}) {
    for (const char* op : {"Max", "Min"}) {
      for (const float constant : {2.0f, -3.0f, std::numeric_limits<float>::infinity()}) {
        const Body body = body_of(op, constant, first);
        EXPECT_TRUE(clamps(body)) << op << " " << constant;
        check_widths(body, {0});
      }
      for (const float constant : {0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN()})
        EXPECT_FALSE(clamps(body_of(op, constant, first))) << op << " " << constant;
    }
  }
}

// A reduction covers all reduced dims, whether or not its operand varies over them.
TEST_F(Lower, ReductionsOfInvariantOperands) {
  for (DimSet varies = 0; varies < 8; ++varies) {
    for (const char* dims : {"krr", "rkr", "rrk", "krk", "rkk"}) {
      BodyBuilder build("sum", dims);
      const ValueId s = build.reduce("ReduceSum", build.input(varies));
      build.output(s);
      build.output(build.op("Add", {build.input(7), s}));
      check(build.take(), {2, 3, 5});
    }
  }
}

TEST_F(Lower, OutputsOfDifferentLevels) {
  BodyBuilder build("levels", "kkk");
  const ValueId a = build.input(7), b = build.input(3), c = build.input(1), d = build.input(5), e = build.input(4);
  build.output(build.op("Add", {a, b}));
  build.output(build.op("Mul", {b, c}));
  build.output(build.op("Neg", {c}));
  build.output(build.op("Add", {d, e}));
  build.output(build.op("Abs", {e}));
  build.output(build.op("Neg", {build.input(0)}));
  const Body body = build.take();
  check_widths(body, {2, 3, 0});
  check(body, {2, 0, 5});
  check(body, {0, 3, 5});
}

// Reductions at different levels of one nest, of one tensor and of others, as in attention.
TEST_F(Lower, ReductionsOfDifferentLevels) {
  for (const char* dims : {"kkr", "krk", "rkk"}) {
    BodyBuilder build("levels", dims);
    const ValueId x = build.input(7);
    for (DimSet varies = 0; varies < 8; ++varies) {
      const ValueId s = build.reduce("ReduceMax", build.op("Add", {build.input(varies), build.scalar(1)}));
      build.output(s);
      build.output(build.op("Sub", {x, s}));
    }
    check_widths(build.take(), {2, 3, 0});
  }
}

// exp(b) of a bias row is computed once, not for each row; so are whole reductions.
TEST_F(Lower, InvariantRowsAreMadeOnce) {
  BodyBuilder build("rows", "kk");
  const ValueId e = build.op("Exp", {build.input(2)});
  build.output(build.op("Mul", {build.input(3), build.op("Add", {e, build.scalar(1)})}));
  const Body body = build.take();
  const auto kernel = lower(body, {.lanes = 4, .unroll = 1, .cycles = cycles});
  ASSERT_EQ(kernel->scratch.size(), 1u);
  for (const Instruction& instruction : kernel->body) {
    if (instruction.op == "LoopBegin" && kernel->loops[static_cast<size_t>(instruction.number)].dim == 0) break;
    EXPECT_NE(instruction.op, Name("Mul"));
  }
  const auto count = [&](Name op) {
    return std::count_if(kernel->body.begin(), kernel->body.end(), [&](const Instruction& i) { return i.op == op; });
  };
  EXPECT_EQ(count("Exp"), 2);
  EXPECT_EQ(count("Add"), 2);
  check_widths(body, {3, 0});
  check(body, {0, 5});
}

TEST_F(Lower, InvariantReductionsAndColumns) {
  for (const char* dims : {"kkr", "krk", "rkk", "krr"}) {
    for (DimSet varies = 1; varies < 8; ++varies) {
      BodyBuilder build("invariant", dims);
      const ValueId x = build.input(7), w = build.input(varies);
      const ValueId scaled = build.op("Sub", {w, build.reduce("ReduceMax", build.op("Exp", {w}))});
      const ValueId y = build.op("Add", {x, build.op("Exp", {scaled})});
      build.output(build.reduce("ReduceMin", y));
      build.output(y);
      check(build.take(), {3, 2, 5}, 1e-6);
    }
  }
}

TEST_F(Lower, OutputsThatOthersReadAreMadeOnce) {
  BodyBuilder build("shared", "kk");
  const ValueId e = build.op("Exp", {build.input(2)});
  build.output(build.op("Mul", {build.input(3), e}));
  build.output(e);
  const Body body = build.take();
  EXPECT_TRUE(lower(body, options_)->scratch.empty());
  check_widths(body, {3, 0});
}

TEST_F(Lower, ManyInputs) {
  BodyBuilder build("many", "kk");
  ValueId sum = build.input(3);
  for (int i = 0; i < 40; ++i)
    sum = build.op("Sub", {build.input(static_cast<DimSet>(i) % 4), build.op("Add", {sum, build.scalar(i)})});
  build.output(sum);
  check_widths(build.take(), {3, 0});
}

TEST_F(Lower, WorkIsCutIntoPieces) {
  for (const char* dims : {"kkk", "kkr", "rkk", "krk"}) {
    BodyBuilder build("cut", dims);
    const ValueId x = build.input(7), y = build.input(5);
    const ValueId s = build.op("Add", {x, y});
    build.output(build.op("Sub", {s, std::string_view(dims) == "kkk" ? y : build.reduce("ReduceSum", s)}));
    const Body body = build.take();
    for (const int64_t parts : {2, 3, 7, 100})
      check_body(body, {3, 4, 130}, random_, {.lower = options_, .parts = parts});
  }
}

TEST_F(Lower, Deterministic) {
  const Body body = layer_norm_body("krr", 1);
  EXPECT_EQ(print(*lower(body, options_)), print(*lower(body, options_)));
}

TEST_F(Lower, RefusesWhatIsNoBody) {
  BodyBuilder build("bad", "r");
  build.output(build.reduce("ReduceSum", build.input(1)));
  Body body = build.take();
  body.nodes[0].attributes.erase("initial");
  const auto lowered = lower(body, options_);
  ASSERT_FALSE(lowered.ok());
  EXPECT_THAT(lowered.error().message(), HasSubstr("has no integer 'initial'"));
  EXPECT_FALSE(lower(body, {.lanes = 0}).ok());
}

TEST_F(Lower, InlineOnRegisters) {
  BodyBuilder build("epilogue", "kk");
  const ValueId x = build.input(3), bias = build.input(2);
  const ValueId y = build.op("ClampLow", {build.op("Add", {x, bias}), build.scalar(0)});
  build.output(y);
  build.output(bias);
  const Body body = build.take();
  LinearKernel kernel{.name = "host", .lanes = 4};
  const std::vector<RegisterId> inputs{kernel.add_lanes(kF32), kernel.add_lanes(kF32)};
  const auto code = lower_inline(body, kernel, inputs);
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  ASSERT_EQ(code->invariant.size(), 1u);
  EXPECT_EQ(print(kernel, code->invariant[0]), "%3:f32 = Scalar {bits = 0x0}");
  ASSERT_EQ(code->body.size(), 2u);
  EXPECT_EQ(print(kernel, code->body[0]), "%2:f32 = Add %0, %1");
  EXPECT_EQ(print(kernel, code->body[1]), "%4:f32 = ClampLow %2, %3");
  EXPECT_EQ(code->outputs, (std::vector<RegisterId>{4, 1}));
  EXPECT_FALSE(lower_inline(body, kernel, std::vector<RegisterId>{0}).ok());
  EXPECT_FALSE(lower_inline(softmax_body("r"), kernel, std::vector<RegisterId>{0}).ok());
}

}  // namespace
}  // namespace tenon::snippet::test
