// What the builder refuses, and figures that cases.yaml names as goals beyond the measured ones.
#include <array>

#include <program/pipeline_support.hpp>

namespace tenon::program {

namespace {

const Expr x = var("x"), y = var("y");

std::string refusal(const Result<Program>& built) { return built.ok() ? "built" : built.error().to_string(); }

TEST(Pipeline, RefusesWrongUseWithNames) {
  Pipeline p("wrong");
  BufferRef a = p.buffer("a", kI32, 2), b = p.buffer("b", kI32, 2);
  p.stage("s", add_constant<int32_t>(1)).reads(a, {x}).writes(b, {x, y});
  EXPECT_NE(refusal(p.build({a}, {b})).find("stage 's' gives 1 windows of buffer 'a', which has 2 dims"),
            std::string::npos);
}

TEST(Pipeline, RefusesUnknownSymbolsAndMissingProducers) {
  Pipeline p("unknown");
  BufferRef a = p.buffer("a", kI32, 1), b = p.buffer("b", kI32, 1), c = p.buffer("c", kI32, 1);
  p.stage("s", add_constant<int32_t>(1)).reads(a, {x + var("nowhere")}).writes(b, {x});
  EXPECT_NE(refusal(p.build({a}, {b})).find("'nowhere'"), std::string::npos);
  EXPECT_NE(refusal(p.build({}, {b})).find("'a', which is no input and which no stage writes"), std::string::npos);
  EXPECT_NE(refusal(p.build({a}, {c})).find("output 'c' is written by no stage"), std::string::npos);
}

TEST(Pipeline, RefusesStagesThatDoNotFit) {
  Pipeline p("order");
  BufferRef a = p.buffer("a", kI32, 1), b = p.buffer("b", kI32, 1), c = p.buffer("c", kI32, 1);
  StageRef first = p.stage("first", add_constant<int32_t>(1)).reads(a, {x}).writes(b, {x});
  EXPECT_NE(refusal(p.build({b}, {a})).find("stage 'first' writes input 'b'"), std::string::npos);
  p.stage("again", add_constant<int32_t>(1)).reads(b, {x}).writes(c, {x});
  first.loops({{y, 4}});
  EXPECT_NE(refusal(p.build({a}, {c})).find("stage 'first' loops over 'y', which is no index of its results"),
            std::string::npos);
  for (const auto& [read, write] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}}) {
    Pipeline in_place("in_place");
    BufferRef from = in_place.buffer("from", kI32, 1), to = in_place.buffer("to", kI32, 1);
    in_place.stage("only", add_constant<int32_t>(1)).reads(from, {x}).writes(to, {x}).in_place(read, write);
    EXPECT_NE(refusal(in_place.build({from}, {to}))
                  .find(str("stage 'only' in place: read ", read, " and result ", write, " of 1 and 1")),
              std::string::npos);
  }
  p.stage("back", add_constant<int32_t>(1)).reads(c, {x}).writes(a, {x});
  const std::string loop = refusal(p.build({}, {c}));
  EXPECT_NE(loop.find("needs its own results"), std::string::npos) << loop;
  EXPECT_NE(loop.find("in what stage 'again' reads"), std::string::npos) << loop;
  p.stage("twice", add_constant<int32_t>(1)).reads(a, {x}).writes(c, {x});
  EXPECT_NE(refusal(p.build({}, {c})).find("buffer 'c' is written by stages 'again' and 'twice'"), std::string::npos);
}

TEST(Pipeline, RefusesAPlaceThatIsNotAroundAllReaders) {
  Pipeline p("place");
  BufferRef a = p.buffer("a", kI32, 1), b = p.buffer("b", kI32, 1), c = p.buffer("c", kI32, 1),
            d = p.buffer("d", kI32, 1);
  StageRef first = p.stage("first", add_constant<int32_t>(1)).reads(a, {x}).writes(b, {x});
  StageRef second =
      p.stage("second", add_constant<int32_t>(1)).reads(b, {x}).writes(c, {x}).loops({{x, 1, kAllWorkers}});
  p.stage("third", add_constant<int32_t>(1)).reads(b, {x}).writes(d, {x});
  first.compute_at(second, x);
  EXPECT_NE(refusal(p.build({a}, {c, d})).find("is not around all readers"), std::string::npos);
}

// out(y) = sum of a(y - r ... y + r), r rows around, in steps of a run-time value.
TEST(Pipeline, WindowsSlideWithStepsKnownAtRunTime) {
  constexpr int64_t kRadius = 2, kWidth = 8, kHeight = 64;
  Pipeline p("symbolic_step");
  const Expr chunk = p.scalar("chunk");
  BufferRef in = p.buffer("in", kI32, 2), a = p.buffer("a", kI32, 2), out = p.buffer("out", kI32, 2);
  p.stage("f", add_constant<int32_t>(1)).reads(in, {x, y}).writes(a, {x, y});
  p.stage("g", window_sum<int32_t>({0, -kRadius}, {0, kRadius}))
      .reads(a, {x, {y - kRadius, y + kRadius}})
      .writes(out, {x, y})
      .loops({{y, chunk}});
  const auto program = p.build({in}, {out});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  for (const int64_t step : {1, 4, 7, 100}) {
    Array<int32_t> source({0, -kRadius}, {kWidth, kHeight + 2 * kRadius}), result({kWidth, kHeight});
    source.fill_pattern();
    RunStatistics statistics;
    const auto ran = interpret(
        program.value(), {{{"in", source.argument()}, {"out", result.argument()}}, {{"chunk", step}}}, {}, &statistics);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
    EXPECT_EQ(statistics.stages.at("f->a").elements, kWidth * (kHeight + 2 * kRadius));
    EXPECT_EQ(statistics.heap_peak, kWidth * 4 * std::min(step + 2 * kRadius, kHeight + 2 * kRadius));
  }
}

// A loop over bands around one over strips, both over y: each band begins its windows anew and keeps them, with one set
// per worker, and only what is across the border of two bands is computed for both.
TEST(Pipeline, BandsHaveWindowsOfTheirOwn) {
  constexpr int64_t kWidth = 5, kHeight = 96, kStages = 3, kStrip = 4, kBands = 3;
  Pipeline p("bands");
  BufferRef in = p.buffer("in", kI32, 2), from = in;
  std::optional<StageRef> last;
  for (int64_t s = 0; s < kStages; ++s) {
    BufferRef to = p.buffer("b" + std::to_string(s), kI32, 2);
    last = p.stage("s" + std::to_string(s), window_sum<int32_t>({0, -1}, {0, 1}))
               .reads(from, {x, {y - 1, y + 1}})
               .writes(to, {x, y});
    from = to;
  }
  const Expr workers = p.scalar("workers");
  Array<int32_t> source({0, -kStages}, {kWidth, kHeight + 2 * kStages}), expected({kWidth, kHeight});
  source.fill_pattern();
  const auto arguments = [&](Array<int32_t>& result, int64_t count) {
    return Arguments{{{"in", source.argument()}, {"b2", result.argument()}}, {{"workers", count}}};
  };
  const auto whole = p.build({in}, {from});
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();
  ASSERT_TRUE(interpret(whole.value(), arguments(expected, 1), {}).ok());

  last->loops({{y, kStrip}, {y, ceildiv(from.extent(1), kBands), workers}});
  const auto program = p.build({in}, {from});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  ASSERT_TRUE(verify(program.value()).ok()) << verify(program.value()).error().to_string();
  for (const int64_t count : {1, 2, 3}) {
    Array<int32_t> result({kWidth, kHeight});
    RunStatistics statistics;
    const auto ran = interpret(program.value(), arguments(result, count), {count}, &statistics);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string() << print(program.value());
    EXPECT_EQ(result.data(), expected.data()) << count << " workers";
    EXPECT_EQ(statistics.stages.at("s1->b1_memory").elements, kWidth * (kHeight + 2 * kBands));
    EXPECT_EQ(statistics.stages.at("s0->b0_memory").elements, kWidth * (kHeight + 4 * kBands));
    EXPECT_EQ(statistics.heap_peak, count * 2 * kWidth * 4 * (kStrip + 2));
    EXPECT_TRUE(check_races(program.value(), arguments(result, count), {count}).ok());
    expect_same_compiled(program.value(), arguments(result, count), static_cast<int>(count), 0);
  }
}

// The last band has a single strip, for which the loop within it would have several workers: they share the slot of
// that strip.
TEST(Pipeline, LoopsWithinLoopsOfWorkersShareTheirSlots) {
  Pipeline p("nested");
  BufferRef in = p.buffer("in", kI32, 2), mid = p.buffer("mid", kI32, 2), out = p.buffer("out", kI32, 2);
  p.stage("add", add_constant<int32_t>(1)).reads(in, {x, y}).writes(mid, {x, y}).loops({{y, 1, 2}});
  const auto pairs = kernel<int32_t>("pairs", [](const CallContext& c, const Index& i) {
    const auto v = c.elements<const int32_t>(0);
    return v(i[0], 2 * i[1]) + v(i[0], 2 * i[1] + 1);
  });
  p.stage("sum", pairs).reads(mid, {x, {2 * y, 2 * y + 1}}).writes(out, {x, y}).loops({{y, 4, 3}, {y, 7}});
  const auto program = p.build({in}, {out});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  for (const int64_t rows : {1, 4, 9, 11}) {
    Array<int32_t> source({4, 2 * rows}), result({4, rows});
    source.fill_pattern();
    const Arguments arguments{{{"in", source.argument()}, {"out", result.argument()}}, {}};
    ASSERT_TRUE(interpret(program.value(), arguments, {4}).ok());
    for_each_index({0, 0}, {4, rows}, [&](const Index& i) {
      EXPECT_EQ(result.at(i), source(i[0], 2 * i[1]) + source(i[0], 2 * i[1] + 1) + 2) << rows << " rows";
    });
    expect_same_compiled(program.value(), arguments, 4, 0);
  }
}

// Resampling chains use sliding windows, too: no level of a pyramid is computed twice.
TEST(Pipeline, PyramidsComputeNothingTwice) {
  Pipeline p("pyramid");
  BufferRef from = p.buffer("in", kI32, 2), in = from;
  std::vector<BufferRef> down;
  const auto halves = kernel<int32_t>("half", [](const CallContext& c, const Index& i) {
    const auto v = c.elements<const int32_t>(0);
    return v(2 * i[0], 2 * i[1]) + v(2 * i[0] + 1, 2 * i[1] + 1);
  });
  for (int level = 0; level < 3; ++level) {
    down.push_back(p.buffer("down" + std::to_string(level), kI32, 2));
    p.stage("half" + std::to_string(level), halves)
        .reads(from, {{2 * x, 2 * x + 1}, {2 * y, 2 * y + 1}})
        .writes(down.back(), {x, y});
    from = down.back();
  }
  const auto doubles = kernel<int32_t>("double", [](const CallContext& c, const Index& i) {
    return c.elements<const int32_t>(0).at(i) + c.elements<const int32_t>(1)(i[0] / 2, i[1] / 2);
  });
  std::optional<StageRef> last;
  for (int level = 2; level >= 0; --level) {
    const BufferRef fine = level == 0 ? in : down[static_cast<size_t>(level) - 1];
    BufferRef up = p.buffer("up" + std::to_string(level), kI32, 2);
    last = p.stage("double" + std::to_string(level), doubles)
               .reads(fine, {x, y})
               .reads(from, {floordiv(x, 2), floordiv(y, 2)})
               .writes(up, {x, y});
    from = up;
  }
  last->loops({{y, 1}});
  const auto program = p.build({in}, {from});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  Array<int32_t> source({48, 32}), result({48, 32});
  source.fill_pattern();
  RunStatistics statistics;
  const auto ran =
      interpret(program.value(), {{{"in", source.argument()}, {"up0", result.argument()}}, {}}, {}, &statistics);
  ASSERT_TRUE(ran.ok()) << ran.error().to_string() << print(program.value());
  EXPECT_EQ(statistics.stages.at("half0->down0").elements, 384);
  EXPECT_EQ(statistics.stages.at("half1->down1").elements, 96);
  EXPECT_EQ(statistics.stages.at("half2->down2").elements, 24);
}

// A chain without loops needs two arrays, and none if stages work in place.
TEST(Pipeline, LinearChainsTakeTwoArraysOrNone) {
  for (const bool in_place : {false, true}) {
    Pipeline p("chain");
    BufferRef in = p.buffer("in", kI32, 1), from = in;
    for (int s = 0; s < 32; ++s) {
      BufferRef to = p.buffer("b" + std::to_string(s), kI32, 1);
      StageRef stage = p.stage("s" + std::to_string(s), add_constant<int32_t>(1)).reads(from, {x}).writes(to, {x});
      if (in_place) stage.in_place();
      from = to;
    }
    const auto program = p.build({in}, {from});
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    Array<int32_t> source({100}), result({100});
    RunStatistics statistics;
    ASSERT_TRUE(
        interpret(program.value(), {{{"in", source.argument()}, {"b31", result.argument()}}, {}}, {}, &statistics)
            .ok());
    EXPECT_EQ(statistics.heap_peak, in_place ? 0 : 800);
    EXPECT_EQ(result(7), 32);
  }
}

// Tiling and its inverse are one copy each, whatever the map.
TEST(Pipeline, UntilingIsOneCopy) {
  Pipeline p("untile");
  BufferRef in = p.buffer("in", kI32, 4), out = p.buffer("out", kI32, 2);
  p.copy(in, {mod(x, 4), mod(y, 4), floordiv(x, 4), floordiv(y, 4)}, out, {x, y});
  const auto program = p.build({in}, {out});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  Array<int32_t> source({4, 4, 3, 2}), result({12, 8});
  source.fill_pattern();
  RunStatistics statistics;
  const auto ran =
      interpret(program.value(), {{{"in", source.argument()}, {"out", result.argument()}}, {}}, {}, &statistics);
  ASSERT_TRUE(ran.ok()) << ran.error().to_string();
  EXPECT_EQ(statistics.copies.at("copy out->out").calls, 1);
  for_each_index({0, 0}, {12, 8},
                 [&](const Index& i) { EXPECT_EQ(result.at(i), source(i[0] % 4, i[1] % 4, i[0] / 4, i[1] / 4)); });
}

// What a stage computes of a buffer that another reads at such a place: all of that, and no more where each index
// stands in it once. What is computed beside that is stated for boxes of x from 2 to 6 and -3 to 4, and y from 1 to 5
// and -5 to -2.
TEST(Pipeline, PlacesOfAnyExpression) {
  const Expr n = var("n");
  const struct {
    const char* name;
    Expr place;
    std::array<int64_t, 4> beside;
  } kCases[] = {
      {"scaled", 3 * x - 2 * y + 1, {}},
      {"product", x * y, {}},
      {"product_by_a_scalar", n * x + y, {}},
      {"quotient", 2 - floordiv(x, 3), {}},
      {"quotient_by_a_scalar", floordiv(x + 7 * y, n), {}},
      {"quotient_by_an_index", floordiv(x, 2 * y + 1), {11, 7, 12, 6}},
      {"remainder", mod(x, 16), {}},
      {"remainder_by_a_scalar", mod(x, n), {}},
      {"remainder_by_an_index", mod(x, 2 * y + 1), {4, 0, 1, 0}},
      {"least", min(x, y + 1), {}},
      {"greatest", max(2 * x, -y), {}},
      {"choice", select(less(x, 4), y, 9), {}},
      {"condition", 5 * less(x, 4), {}},
      {"equality", 5 * equal(x, 3), {}},
      {"square", x * x, {0, 12, 0, 12}},
      {"rising", x + floordiv(x, 2), {}},
      {"falling", -x - floordiv(x, 3) + y, {}},
      {"turning", x - 2 * floordiv(x, 2) + y, {}},
  };
  const Index boxes[][2] = {{{2, 1}, {5, 5}}, {{-3, 1}, {8, 5}}, {{2, -5}, {5, 4}}, {{-3, -5}, {8, 4}}};
  for (const auto& [name, place, beside] : kCases) {
    const auto at = [place = place](const Index& i, int64_t scalar) {
      return place.evaluate({{"x", i[0]}, {"y", i[1]}, {"n", scalar}}).value();
    };
    Pipeline p("places");
    p.scalar("n");
    BufferRef in = p.buffer("in", kI32, 1), mid = p.buffer("mid", kI32, 1), out = p.buffer("out", kI32, 2);
    p.stage("first", add_constant<int32_t>(1)).reads(in, {x}).writes(mid, {x});
    int64_t scalar = 0;
    const auto reads = kernel<int32_t>("reads", [&](const CallContext& c, const Index& i) {
      const auto v = c.elements<const int32_t>(0);
      const int64_t wanted = at(i, scalar);
      const bool is_there = wanted >= v.min(0) && wanted < v.min(0) + v.extent(0);
      EXPECT_TRUE(is_there) << name << ": " << wanted << " is read";
      return is_there ? v(wanted) : 0;
    });
    p.stage("last", reads).reads(mid, {place}).writes(out, {x, y});
    const auto program = p.build({in}, {out});
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    Array<int32_t> source({-1000}, {2000});
    source.fill_pattern();
    for (scalar = -3; scalar <= 3; scalar += 6)
      for (size_t b = 0; b < std::size(boxes); ++b) {
        const auto& [mins, extents] = boxes[b];
        Array<int32_t> result(mins, extents);
        RunStatistics statistics;
        const auto ran =
            interpret(program.value(), {{{"in", source.argument()}, {"out", result.argument()}}, {{"n", scalar}}}, {},
                      &statistics);
        ASSERT_TRUE(ran.ok()) << name << ": " << ran.error().to_string();
        int64_t first = 1000, last = -1000;
        for_each_index(mins, extents, [&](const Index& i) {
          const int64_t wanted = at(i, scalar);
          first = std::min(first, wanted), last = std::max(last, wanted);
          EXPECT_EQ(result.at(i), source(wanted) + 1) << name;
        });
        EXPECT_EQ(statistics.stages.at("first->mid").elements - (last - first + 1), beside[b])
            << name << ", n = " << scalar << ", box " << b;
      }
  }
}

// What is computed of an aligned buffer begins and ends at multiples; where that is all of an output so aligned, as it
// is.
TEST(Pipeline, BoxesOfAlignedBuffers) {
  const auto computed = [](bool aligned_output, int64_t first, int64_t extent) {
    Pipeline p("aligned");
    BufferRef in = p.buffer("in", kI32, 1), mid = p.buffer("mid", kI32, 1), out = p.buffer("out", kI32, 1);
    p.stage("first", add_constant<int32_t>(1)).reads(in, {x}).writes(mid, {x});
    p.stage("last", add_constant<int32_t>(2)).reads(mid, {x}).writes(out, {x});
    mid.align(0, 4);
    if (aligned_output) out.align(0, 8);
    const auto program = p.build({in}, {out});
    EXPECT_TRUE(program.ok()) << program.error().to_string();
    EXPECT_EQ(print(*program).find("floordiv") == std::string::npos, aligned_output) << print(*program);
    Array<int32_t> source({-32}, {64}), result({first}, {extent});
    source.fill_pattern();
    RunStatistics statistics;
    const auto ran =
        interpret(*program, {{{"in", source.argument()}, {"out", result.argument()}}, {}}, {}, &statistics);
    EXPECT_TRUE(ran.ok()) << ran.error().to_string();
    for (int64_t i = first; i < first + extent; ++i) EXPECT_EQ(result(i), source(i) + 3);
    return statistics.stages.at("first->mid").elements;
  };
  EXPECT_EQ(computed(false, 0, 8), 8);
  EXPECT_EQ(computed(false, 3, 6), 12);
  EXPECT_EQ(computed(false, -3, 6), 8);
  EXPECT_EQ(computed(false, 4, 1), 4);
  EXPECT_EQ(computed(true, 8, 16), 16);
}

// Bytes between rows of the intermediate buffer, as its reader sees it: a window of three rows of `width` floats.
int64_t row_stride(int64_t width, bool reader_takes_dense_only) {
  static int64_t seen;
  auto reader = std::make_shared<Kernel>(*make_kernel(
      "reader", [](CallContext& c) -> Result<void> { return seen = c.operands[0].dims[1].stride, Result<void>(); },
      true));
  reader->takes_dense_only = reader_takes_dense_only;
  Pipeline p("rows");
  BufferRef in = p.buffer("in", kI32, 2), mid = p.buffer("mid", kI32, 2), out = p.buffer("out", kI32, 2);
  p.stage("first", add_constant<int32_t>(1)).reads(in, {x, y}).writes(mid, {x, y});
  p.stage("last", reader).reads(mid, {x, {y - 1, y + 1}}).writes(out, {x, y}).loops({{y, 1}});
  const auto program = p.build({in}, {out});
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  Array<int32_t> source({0, -1}, {width, 10}), result({width, 8});
  const Arguments arguments{{{"in", source.argument()}, {"out", result.argument()}}, {}};
  auto bound = BoundProgram::bind(*program, arguments);
  EXPECT_TRUE(bound.ok() && bound->run(arguments).ok());
  return seen;
}

// Kernels take longer for rows that are not aligned to cache lines. Short rows would grow by too much, and some kernels
// accept no gaps.
TEST(Pipeline, LongRowsBeginAtLines) {
  EXPECT_EQ(row_stride(255, false), 1020);
  EXPECT_EQ(row_stride(256, false), 1024);
  EXPECT_EQ(row_stride(257, false), 1088);
  EXPECT_EQ(row_stride(1000, false), 4032);
  EXPECT_EQ(row_stride(1000, true), 4000);
}

}  // namespace
}  // namespace tenon::program
