#include <tenon/snippet/body/params.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

#include <map>
#include <set>

namespace tenon::snippet::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Body matrix_body(std::string_view dims = "kk") {
  BodyBuilder build("matrix", dims);
  const ValueId x = build.input(3, kF16), y = build.input(2);
  build.output(build.op("Add", {x, y}));
  return build.take();
}

TEST(SpaceExtents, AreProductsOfTheShapes) {
  Body body = matrix_body();
  body.dims[0].sources = {{0, 0}, {0, 1}};
  body.dims[1].sources = {{0, 2}};
  body.dims[1].factor = 3, body.dims[1].divisor = 2;
  const std::vector<Dims> shapes{{2, 5, 4}, {4}, {2, 5, 4}};
  EXPECT_THAT(*space_extents(body, shapes), ElementsAre(10, 6));
  body.dims[1].divisor = 5;
  EXPECT_THAT(space_extents(body, shapes).error().to_string(), HasSubstr("dim 1 of body 'matrix'"));
  body.dims[1].sources = {{0, 3}};
  EXPECT_FALSE(space_extents(body, shapes).ok());
}

// A kernel that iterates over blocks itself gets pieces of many adjacent blocks.
TEST(CallPlan, PiecesOfBlocksAreLong) {
  BodyBuilder build("softmax", "krk");
  const ValueId x = build.input(7), less = build.op("Sub", {x, build.reduce("ReduceMax", x)});
  const ValueId e = build.op("Exp", {less});
  build.output(build.op("Mul", {e, build.op("Div", {build.scalar(1), build.reduce("ReduceSum", e)})}));
  const Body body = build.take();
  const auto pieces = [&](bool inside, Dims extents, int64_t threads) {
    const auto cycles = [](const Body&, const BodyNode& node) { return node.op == "Exp" ? 10.0 : 1.0; };
    auto kernel = lower(body, {.lanes = 4, .cycles = cycles, .whole_rows = true, .behind_blocks = inside});
    EXPECT_TRUE(kernel.ok() && kernel->blocks.inside == inside);
    kernel->blocks.sizes = {{.elements = 64}};
    return CallPlan::make_for_extents(body, *kernel, std::move(extents))->pieces(threads, 4);
  };
  EXPECT_EQ(pieces(true, {1, 9, 6400}, 1), 1);
  EXPECT_EQ(pieces(false, {1, 9, 6400}, 2), 8);
  EXPECT_EQ(pieces(true, {1, 9, 6400}, 2), 6) << "100 blocks";
  EXPECT_EQ(pieces(true, {1, 9, 640}, 2), 2) << "10 blocks";
  EXPECT_EQ(pieces(true, {10, 9, 640}, 2), 6) << "10 of each of 10";
  EXPECT_EQ(pieces(true, {10, 9, 640000}, 2), 8);
  EXPECT_EQ(pieces(true, {10, 9, 63}, 2), 2) << "less than a block";
}

TEST(SpaceExtents, OfKnownDimsNeedNoSource) {
  Body body = matrix_body();
  body.dims[0].extent = 7, body.dims[1].extent = 9;
  EXPECT_THAT(*space_extents(body, {}), ElementsAre(7, 9));
}

TEST(CallPlan, RowsAligned) {
  const auto aligned = [](const Body& body, const Dims& extents, size_t port) {
    const auto kernel = lower(body, {.lanes = 4, .unroll = 2});
    EXPECT_TRUE(kernel.ok());
    const auto plan = CallPlan::make_for_extents(body, *kernel, extents);
    EXPECT_TRUE(plan.ok());
    return plan->rows_aligned(port, 64);
  };
  constexpr size_t kHalves = 0, kRow = 1, kFloats = 2;
  const Body body = matrix_body();
  EXPECT_TRUE(aligned(body, {3, 32}, kHalves));
  EXPECT_FALSE(aligned(body, {3, 16}, kHalves)) << "32 bytes a row";
  EXPECT_TRUE(aligned(body, {3, 16}, kFloats));
  EXPECT_FALSE(aligned(body, {3, 21}, kFloats));
  EXPECT_TRUE(aligned(body, {1, 21}, kFloats)) << "one row";
  EXPECT_TRUE(aligned(body, {3, 21}, kRow)) << "the same row again";

  BodyBuilder build("sums", "kr");
  build.output(build.reduce("ReduceSum", build.input(3)));
  EXPECT_TRUE(aligned(build.take(), {3, 21}, 1)) << "no rows";

  Body part = matrix_body();
  part.outputs[0].cuts = {{.dim = 1, .begin = 0, .box = 16, .whole = 32}};
  EXPECT_TRUE(aligned(part, {3, 16}, kFloats));
  part.outputs[0].cuts[0].whole = 33;
  EXPECT_FALSE(aligned(part, {3, 16}, kFloats)) << "33 floats from row to row";
  part.outputs[0].cuts[0] = {.dim = 1, .begin = 4, .box = 16, .whole = 32};
  EXPECT_FALSE(aligned(part, {3, 16}, kFloats)) << "the first begins at 16 bytes";
}

TEST(CallPlan, PartsAligned) {
  const auto aligned = [](const char* dims, DimSet varies, const Dims& extents) {
    BodyBuilder build("sums", dims);
    build.output(build.reduce("ReduceSum", build.input(varies)));
    const Body body = build.take();
    const auto kernel = lower(body, {.lanes = 4, .unroll = 2});
    EXPECT_TRUE(kernel.ok());
    const auto plan = CallPlan::make_for_extents(body, *kernel, extents);
    EXPECT_TRUE(plan.ok());
    return plan->parts_aligned(64);
  };
  EXPECT_TRUE(aligned("rk", 3, {100, 32})) << "128 bytes a part";
  EXPECT_FALSE(aligned("rk", 3, {100, 20})) << "80 bytes a part";
  EXPECT_TRUE(aligned("kr", 3, {32, 100}));
  EXPECT_FALSE(aligned("kr", 3, {1, 100})) << "one of several rows, as far as code knows";
  EXPECT_TRUE(aligned("r", 1, {100})) << "single elements";
}

TEST(CallPlan, OutputsThatArePartsOfTensors) {
  Body body = matrix_body();
  body.outputs[0].cuts = {{.dim = 1, .begin = 2, .box = 16, .whole = 40}};
  ASSERT_TRUE(verify(body).ok());
  EXPECT_THAT(body.to_string(), ::testing::HasSubstr("output 0 f32 [2:18 of 40 from d1 on] = %"));
  const auto kernel = lower(body, {.lanes = 4, .unroll = 2});
  ASSERT_TRUE(kernel.ok());
  const auto plan = CallPlan::make_for_extents(body, *kernel, {3, 16});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->begin_bytes(2), 8);
  EXPECT_EQ(plan->port_bytes(2), 3u * 16 * 4);
  body.outputs[0].cuts[0].whole = 17;
  const auto beyond = verify(body);
  ASSERT_FALSE(beyond.ok());
  EXPECT_THAT(beyond.error().message(), ::testing::HasSubstr("is cut to [2:18] of 17 from dim 1 on"));
}

TEST(CallPlan, StreamsAreStretchesOfWholeLines) {
  auto kernel = lower(matrix_body(), {.lanes = 4, .unroll = 1});
  ASSERT_TRUE(kernel.ok());
  LoopId loop = 0;
  while (kernel->loops[static_cast<size_t>(loop)].kind != Loop::Kind::vector) ++loop;
  const Param stream{.loop = loop, .streams = 4, .stream_least = 128};
  Param limit = stream, step = stream, rest = stream;
  limit.kind = Param::Kind::stream_limit, rest.kind = Param::Kind::stream_rest;
  step.kind = Param::Kind::stream_step, step.port = 0;
  const size_t first = kernel->params.size();
  for (const Param& param : {limit, step, rest}) kernel->add_param(param);
  const auto text = print(*kernel);
  const auto parsed = parse_linear(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
  EXPECT_EQ(print(*parsed), text);
  std::byte x[1], y[1], z[1];
  const std::vector<void*> addresses{x, y, z};
  const auto words = [&](int64_t columns) {
    const auto plan = CallPlan::make_for_extents(matrix_body(), *kernel, {3, columns});
    EXPECT_TRUE(plan.ok());
    std::vector<int64_t> all(plan->words());
    plan->fill(all, addresses, nullptr);
    return std::vector<int64_t>(all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
  };
  EXPECT_THAT(words(4 * 128 + 200), ElementsAre(128 - 4, 128 * 2, 3 * 128));
  EXPECT_THAT(words(4 * 192), ElementsAre(192 - 4, 192 * 2, 3 * 192));
  EXPECT_THAT(words(4 * 128 - 1), ElementsAre(-4, 0, 0)) << "too short";
}

// Streams start at different offsets within a page, because a load waits for a preceding store to the same offset of
// another page.
TEST(CallPlan, LongStreamsBeginAtOtherPlacesOfAPage) {
  for (const int streams : {2, 3, 4}) {
    for (int64_t extent = 4 * 8192; extent < 4 * 8192 + 20000; extent += 61) {
      const int64_t length = stream_length({.streams = streams, .stream_least = 128}, extent);
      EXPECT_EQ(length % kLineElements, 0);
      EXPECT_LE(length * streams, extent);
      EXPECT_GE(length * streams, extent - streams * 17 * kLineElements) << "too much is left to one stream";
      for (const int64_t bytes : {1, 2, 4, 8}) {
        for (int64_t s = 1; s < streams; ++s) {
          const int64_t place = s * length * bytes % 4096;
          EXPECT_TRUE(place >= 256 && place <= 4096 - 256)
              << streams << " streams of " << extent << ", " << bytes << " bytes: " << place;
        }
      }
    }
  }
}

// With known extents, params that do not depend on the division of work are known, and a call with other extents is
// refused.
TEST(CallPlan, KnownParams) {
  const auto rows = [](std::string_view dims) {
    BodyBuilder build("rows", dims);
    build.output(build.reduce("ReduceSum", build.input((1u << dims.size()) - 1)));
    Body body = build.take();
    for (size_t d = 0; d < body.rank(); ++d) body.dims[d].extent = d == 0 ? 6 : 33;
    return body;
  };
  const auto known = [](const Body& body, LinearKernel& kernel) {
    EXPECT_TRUE(CallPlan::write_known(body, kernel).ok());
    std::map<std::string, int64_t> found;
    for (size_t i = 0; i < kernel.params.size(); ++i) {
      const Param& param = kernel.params[i];
      const LoopId loop = param.loop;
      const std::string of = loop < 0 ? "" : kernel.loops[static_cast<size_t>(loop)].name;
      const int64_t step = loop < 0 ? 0 : kernel.loops[static_cast<size_t>(loop)].increment;
      if (param.known)
        found[str(param.kind == Param::Kind::limit ? "limit " : "shift ", of, " ", step, " ", param.port)] =
            *param.known;
    }
    EXPECT_EQ(print(*parse_linear(print(kernel))), print(kernel));
    return found;
  };
  const Body body = rows("kr");
  auto kernel = lower(body, {.lanes = 16, .unroll = 1});
  ASSERT_TRUE(kernel.ok());
  EXPECT_THAT(known(body, *kernel),
              ::testing::UnorderedElementsAre(std::pair("limit d1 16 -1", 33 - 16), std::pair("limit d1 1 -1", 33),
                                              std::pair("shift d0 4 0", 4 * 33 * 4), std::pair("shift d0 4 1", 4 * 4),
                                              std::pair("shift d0 1 0", 33 * 4), std::pair("shift d0 1 1", 4)));
  EXPECT_TRUE(CallPlan::make_for_extents(body, *kernel, {6, 33}).ok());
  EXPECT_TRUE(CallPlan::make_for_extents(body, *kernel, {5, 33}).ok()) << "the rows are not known";
  const auto other = CallPlan::make_for_extents(body, *kernel, {6, 34});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message(), HasSubstr("its code was made for"));
  const auto open = [&](std::string_view dims, size_t dim) {
    Body made = rows(dims);
    made.dims[dim].extent = Expr::symbol("N");
    return made;
  };
  const auto lowered = [](const Body& of) { return *lower(of, {.lanes = 16, .unroll = 1}); };
  const Body any_rows = open("kr", 0), planes = open("krr", 1);
  auto of_any_rows = lowered(any_rows), of_planes = lowered(planes);
  EXPECT_EQ(known(any_rows, of_any_rows), known(body, *kernel)) << "rows are cut, known or not";
  EXPECT_TRUE(CallPlan::make_for_extents(any_rows, of_any_rows, {0, 33}).ok());
  EXPECT_THAT(known(planes, of_planes),
              ::testing::UnorderedElementsAre(std::pair("shift d0 1 1", 4), std::pair("shift d0 4 1", 16)))
      << "planes begin somewhere, and are walked as one";
  for (const int64_t row : {0, 1, 7}) EXPECT_TRUE(CallPlan::make_for_extents(planes, of_planes, {6, row, 33}).ok());
  for (const Body& of : {rows("rk"), open("kr", 1)}) {
    auto made = lowered(of);
    EXPECT_THAT(known(of, made), ::testing::IsEmpty());
  }
}

// Nothing is known about a part of a tensor with an unknown extent: the extents that write_known() tries need not be
// multiples of the part, and may then agree on a gap that no call has.
TEST(CallPlan, WhatLiesBetweenOpenPartsIsNotKnown) {
  BodyBuilder build("parts", "kkr");
  const ValueId x = build.input(7), y = build.input(1);
  build.output(build.reduce("ReduceSum", x));
  build.output(build.op("Neg", {y}));  // so that no call is divided along d1
  Body body = build.take();
  body.dims[0].extent = 6, body.dims[1].extent = Expr::symbol("N"), body.dims[2].extent = 33;
  body.inputs[0].cuts = {{.dim = 1, .begin = 0, .box = 9, .whole = 9}};
  auto kernel = lower(body, {.lanes = 16, .unroll = 1});
  ASSERT_TRUE(kernel.ok());
  ASSERT_TRUE(CallPlan::write_known(body, *kernel).ok());
  for (const int64_t rows : {0, 3, 6, 21}) {
    const auto plan = CallPlan::make_for_extents(body, *kernel, {6, rows, 33});
    EXPECT_TRUE(plan.ok()) << rows << ": " << plan.error().to_string();
  }
  EXPECT_TRUE(std::ranges::any_of(kernel->params, [](const Param& param) { return param.known && param.port == 2; }))
      << "of other tensors all is known";
}

// The parts of a reduction divide a dim that no other split divides. In a tensor without the kept dim, whose planes are
// contiguous, the step from the end of a plane to the next plane is 0 for any extent, but not for a part of the rows.
TEST(CallPlan, WhatPartsOfFoldsChangeIsNotKnown) {
  BodyBuilder build("parts", "rkrr");
  const ValueId x = build.input(0b1111), z = build.input(0b1101), row = build.input(0b1000);
  build.output(build.reduce("ReduceSum", build.op("Add", {build.op("Add", {x, z}), row})));
  Body body = build.take();
  body.dims[0].extent = 19, body.dims[1].extent = 8, body.dims[3].extent = 7;
  body.dims[2].extent = Expr::symbol("part"), body.dims[2].parted = true;
  auto kernel = lower(body, {.lanes = 8, .unroll = 1});
  ASSERT_TRUE(kernel.ok());
  ASSERT_TRUE(CallPlan::write_known(body, *kernel).ok());
  const auto plan = CallPlan::make_for_extents(body, *kernel, {19, 8, 3, 7});
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const Split split = plan->split_fold(2);
  std::vector<void*> addresses(4, nullptr);
  std::vector<int64_t> words(plan->words());
  int known = 0;
  for (int64_t chunk = 0; chunk < split.chunks(); ++chunk) {
    plan->fill(words, addresses, nullptr, split, chunk);
    for (size_t i = 0; i < words.size(); ++i) {
      const Param& param = kernel->params[i];
      known += param.known.has_value();
      EXPECT_EQ(param.known.value_or(words[i]), words[i])
          << "param " << i << " of port " << param.port << ", part " << chunk << "\n"
          << print(*kernel);
    }
  }
  EXPECT_GT(known, 0);
}

// In whole rows: the sum of x over r, or with `again` x minus that sum.
std::pair<Body, LinearKernel> columns(bool again, std::vector<LinearKernel::Blocks::Size> sizes) {
  BodyBuilder build("columns", "krk");
  const ValueId x = build.input(7), sum = build.reduce("ReduceSum", x);
  build.output(again ? build.op("Sub", {x, sum}) : sum);
  const Body body = build.take();
  auto kernel = lower(body, {.lanes = 4, .whole_rows = true});
  EXPECT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->blocks, (LinearKernel::Blocks{.dim = 2, .again = again}));
  kernel->blocks.sizes = std::move(sizes);
  const auto text = print(*kernel);
  EXPECT_EQ(print(*parse_linear(text)), text);
  return {body, *std::move(kernel)};
}

// Blocks have the first size at which the bytes of a block are within the bound.
TEST(CallPlan, BlocksOfColumns) {
  const auto widths = [](const std::pair<Body, LinearKernel>& of, const Dims& extents, int64_t parts) {
    const auto plan = CallPlan::make_for_extents(of.first, of.second, extents);
    EXPECT_TRUE(plan.ok());
    const Split split = plan->split(parts, 1);
    return std::pair(split.multiple.back(), split.parts.back());
  };
  const auto once = columns(false, {{.elements = 1024}});
  EXPECT_EQ(widths(once, {2, 5, 100}, 1), std::pair(int64_t{128}, int64_t{1})) << "all of it";
  EXPECT_EQ(widths(once, {2, 5, 3000}, 1), std::pair(int64_t{1024}, int64_t{3}));
  EXPECT_EQ(widths(once, {1, 5, 3000}, 6), std::pair(int64_t{512}, int64_t{6})) << "one for each thread at least";
  const auto again = columns(true, {{512, 32 << 10}, {320, 32 << 10}, {.elements = 1024}});
  EXPECT_EQ(widths(again, {1, 8, 3000}, 1), std::pair(int64_t{512}, int64_t{6})) << "16 rows of 2 KiB lie near";
  EXPECT_EQ(widths(again, {9, 8, 3000}, 1), std::pair(int64_t{512}, int64_t{6})) << "as do those of each outer row";
  EXPECT_EQ(widths(again, {1, 12, 3000}, 1), std::pair(int64_t{320}, int64_t{10})) << "24 rows of 1.25 KiB";
  EXPECT_EQ(widths(again, {1, 13, 3000}, 1), std::pair(int64_t{1024}, int64_t{3})) << "nothing does";
  const auto whole = columns(true, {});
  EXPECT_EQ(widths(whole, {1, 5, 3000}, 1), std::pair(int64_t{1}, int64_t{1})) << "no sizes";
  EXPECT_EQ(widths(whole, {1, 5, 3000}, 4), std::pair(int64_t{64}, int64_t{4})) << "as other rows, for threads";
}

// A joined row consists of whole lines of 16 elements and has at least 512 elements; there are at least six of them.
TEST(RowsToJoin, AreWholeLinesAndEnough) {
  EXPECT_EQ(rows_to_join(4000, 8, 16), 64);
  EXPECT_EQ(rows_to_join(4000, 31, 16), 16);
  EXPECT_EQ(rows_to_join(4000, 33, 16), 16);
  EXPECT_EQ(rows_to_join(4000, 7, 4), 80);
  EXPECT_EQ(rows_to_join(4000, 7, 64), 128) << "whole vectors";
  EXPECT_EQ(rows_to_join(6 * 64 - 1, 8, 16), 62);
  EXPECT_EQ(rows_to_join(6 * 16, 31, 16), 16);
  EXPECT_EQ(rows_to_join(6 * 16 - 1, 31, 16), 1);
  EXPECT_EQ(rows_to_join(4000, 127, 16), 16);
  EXPECT_EQ(rows_to_join(4000, 128, 16), 1) << "may be cut for two threads";
  EXPECT_EQ(rows_to_join(4000, 0, 16), 1);
  EXPECT_EQ(rows_to_join(0, 8, 16), 1);
}

// The bytes of all tensors at one point of the kept dims. Up to 10 columns are counted together.
TEST(CallPlan, FoldedBytes) {
  const auto folded = [](std::string_view dims, const Dims& extents) {
    BodyBuilder build("fold", dims);
    const ValueId x = build.input((DimSet{1} << dims.size()) - 1, kF16),
                  bias = build.input(DimSet{1} << (dims.size() - 1));
    build.output(build.op("Add", {x, build.op("Sub", {bias, build.reduce("ReduceSum", x)})}));
    const Body body = build.take();
    const auto kernel = lower(body, {.lanes = 4});
    const auto plan = CallPlan::make_for_extents(body, *kernel, extents);
    EXPECT_TRUE(plan.ok());
    return plan->folded_bytes(10);
  };
  EXPECT_EQ(folded("kr", {7, 100}), 100 * (2 + 4 + 4));
  EXPECT_EQ(folded("rkr", {3, 7, 100}), 3 * 100 * (2 + 4) + 100 * 4);
  EXPECT_EQ(folded("krk", {7, 100, 40}), 10 * (100 * (2 + 4) + 4));
  EXPECT_EQ(folded("krk", {7, 100, 4}), 4 * (100 * (2 + 4) + 4));
  EXPECT_EQ(folded("kr", {7, 0}), 0);
}

// 100 rows of 8 elements in each of 2: six joined rows of 16, and 4 remaining ones.
TEST(CallPlan, WordsOfJoinedRows) {
  BodyBuilder build("columns", "krk");
  const ValueId x = build.input(7), sum = build.reduce("ReduceSum", x);
  build.output(build.op("Div", {build.op("Sub", {x, sum}), build.count()}));
  const Body body = build.take();
  const auto kernel = lower(body, {.lanes = 4, .whole_rows = true, .join_rows = true});
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->joined.rows, 1);
  EXPECT_EQ(kernel->blocks.dim, -1);
  const auto plan = CallPlan::make_for_extents(body, *kernel, {2, 100, 8});
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  EXPECT_EQ(plan->port_bytes(0), 2u * 100 * 8 * 4);
  EXPECT_EQ(plan->scratch_bytes(), 16u * 8 * 4) << "the sums of one joined row";
  EXPECT_TRUE(plan->rows_aligned(0, 64)) << "512 bytes";
  EXPECT_THAT(plan->split(8, 64).parts, ElementsAre(2, 1, 1));
  std::vector<int64_t> words(plan->words());
  const std::vector<void*> addresses(2, nullptr);
  plan->fill(words, addresses, nullptr);
  for (size_t i = 0; i < words.size(); ++i) {
    const Param& param = kernel->params[i];
    if (param.kind != Param::Kind::limit && param.kind != Param::Kind::shift) continue;
    const Loop& loop = kernel->loops[static_cast<size_t>(param.loop)];
    if (param.kind == Param::Kind::limit) {
      const int64_t extents[] = {2, 6, 128, 8, 32, 16};
      EXPECT_EQ(words[i], extents[loop.dim] - (loop.kind == Loop::Kind::tail ? 0 : loop.increment)) << loop.dim;
    } else if (loop.dim == 1) {
      EXPECT_EQ(words[i], 512 * loop.increment);
    } else if (loop.dim == 0) {
      EXPECT_EQ(words[i], 3200);
    } else {
      EXPECT_EQ(words[i], 32) << "rows of a joined one";
    }
  }
}

TEST(CallPlan, JoinedRowsAreThoseOfTheLastDimsButOne) {
  auto [body, kernel] = columns(false, {});
  kernel.joined.rows = 0;
  const auto plan = CallPlan::make_for_extents(body, kernel, {2, 5, 100});
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message(), HasSubstr("joins rows of dim 0, which is not the last but one of 3"));
}

TEST(CallPlan, BlocksLieAlongTheInnermostDim) {
  auto [body, kernel] = columns(false, {{.elements = 1024}});
  kernel.blocks.dim = 0;
  const auto plan = CallPlan::make_for_extents(body, kernel, {2, 5, 100});
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message(), ::testing::HasSubstr("along dim 0, which is not the innermost of 3"));
}

// Scratch memory holds the values kept for a later sweep of only one block.
TEST(CallPlan, ScratchOfBlocksIsThatOfOne) {
  BodyBuilder build("softmax", "rk");
  const ValueId x = build.input(3, kF16);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Div", {e, build.reduce("ReduceSum", e)}), kF16);
  const Body body = build.take();
  const auto cycles = [](const Body&, const BodyNode& node) { return node.op == "Exp" ? 10.0 : 1.0; };
  auto kernel = lower(body, {.lanes = 4, .cycles = cycles, .whole_rows = true});
  ASSERT_TRUE(kernel.ok());
  kernel->blocks.sizes = {{.elements = 256}};
  const auto plan = CallPlan::make_for_extents(body, *kernel, {100, 5000});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->split(1, 1).multiple.back(), 256);
  EXPECT_EQ(plan->scratch_bytes(), 100u * 256 * 4 + 2 * 256 * 4);
}

TEST(CallPlan, Words) {
  const auto kernel = lower(matrix_body(), {.lanes = 4, .unroll = 2});
  ASSERT_TRUE(kernel.ok());
  const auto plan = CallPlan::make_for_extents(matrix_body(), *kernel, {3, 21});
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  EXPECT_FALSE(plan->empty());
  EXPECT_EQ(plan->port_bytes(0), 3u * 21 * 2);
  EXPECT_EQ(plan->port_bytes(1), 21u * 4);
  std::vector<int64_t> words(plan->words());
  std::vector<std::byte> x, y, z;
  const std::vector<void*> addresses{&x, &y, &z};
  plan->fill(words, addresses, nullptr);
  for (size_t i = 0; i < words.size(); ++i) {
    const Param& param = kernel->params[i];
    if (param.kind == Param::Kind::pointer) {
      EXPECT_EQ(words[i], reinterpret_cast<intptr_t>(addresses[static_cast<size_t>(param.port)]));
    } else if (param.kind == Param::Kind::shift) {
      EXPECT_EQ(words[i], param.port == 0 ? 42 : 84);
    } else {
      const Loop& loop = kernel->loops[static_cast<size_t>(param.loop)];
      const int64_t extent = loop.dim == 0 ? 3 : 21;
      EXPECT_EQ(words[i], extent - (loop.kind == Loop::Kind::tail ? 0 : loop.increment));
    }
  }
}

TEST(CallPlan, EmptyTensors) {
  const auto kernel = lower(matrix_body(), {});
  EXPECT_TRUE(CallPlan::make_for_extents(matrix_body(), *kernel, {0, 5})->empty());
  EXPECT_TRUE(CallPlan::make_for_extents(matrix_body(), *kernel, {5, 0})->empty());
  EXPECT_EQ(CallPlan::make_for_extents(matrix_body(), *kernel, {5, 0})->split(8, 1).chunks(), 1);
  EXPECT_FALSE(CallPlan::make_for_extents(matrix_body(), *kernel, {5}).ok());
}

TEST(CallPlan, KernelOfAnotherBodyIsAnError) {
  BodyBuilder build("vector", "k");
  build.output(build.op("Neg", {build.input(1)}));
  const auto kernel = lower(matrix_body(), {});
  EXPECT_FALSE(CallPlan::make_for_extents(build.take(), *kernel, {5}).ok());
}

TEST(CallPlan, SplitsKeptDimsThatAllOutputsVaryOver) {
  const auto parts = [](std::string_view dims, DimSet second, Dims extents, int64_t threads) {
    BodyBuilder build("split", dims);
    const ValueId x = build.input(7);
    build.output(std::string_view(dims).find('r') == std::string_view::npos ? build.op("Neg", {x})
                                                                            : build.reduce("ReduceSum", x));
    if (second) build.output(build.op("Neg", {build.input(second)}));
    const Body body = build.take();
    const auto kernel = lower(body, {});
    return CallPlan::make_for_extents(body, *kernel, std::move(extents))->split(threads, 64).parts;
  };
  EXPECT_THAT(parts("kkk", 0, {20, 32, 64}, 40), ElementsAre(20, 2, 1));
  EXPECT_THAT(parts("kkk", 0, {1, 1, 4096}, 4), ElementsAre(1, 1, 4));
  EXPECT_THAT(parts("kkk", 0, {1, 1, 63}, 4), ElementsAre(1, 1, 1));
  EXPECT_THAT(parts("kkk", 0, {2, 2, 8}, 4), ElementsAre(1, 1, 1));  // too little work
  EXPECT_THAT(parts("kkk", 4, {20, 32, 256}, 4), ElementsAre(1, 1, 4));
  EXPECT_THAT(parts("rkk", 0, {20, 32, 256}, 4), ElementsAre(1, 4, 1));
  EXPECT_THAT(parts("krr", 0, {3, 32, 256}, 4), ElementsAre(3, 1, 1));
}

// Every element is in exactly one chunk.
TEST(CallPlan, ChunksCoverTheSpaceOnce) {
  BodyBuilder build("cover", "kk");
  build.output(build.op("Neg", {build.input(3)}));
  const Body body = build.take();
  const auto kernel = lower(body, {.lanes = 4, .unroll = 1});
  for (const Dims& extents : {Dims{1, 1000}, Dims{7, 129}, Dims{3, 64}, Dims{100, 3}}) {
    for (const int64_t threads : {1, 2, 3, 5, 16, 64}) {
      const auto plan = CallPlan::make_for_extents(body, *kernel, extents);
      const Split split = plan->split(threads, 1);
      EXPECT_LE(split.chunks(), threads);
      std::vector<int64_t> words(plan->words());
      std::set<int64_t> seen;
      for (int64_t chunk = 0; chunk < split.chunks(); ++chunk) {
        const std::vector<void*> addresses(2, nullptr);
        plan->fill(words, addresses, nullptr, split, chunk);
        int64_t begin = 0, rows = 0, width = 0;
        for (size_t i = 0; i < words.size(); ++i) {
          const Param& param = kernel->params[i];
          if (param.kind == Param::Kind::pointer && param.port == 1) begin = words[i];
          if (param.kind != Param::Kind::limit) continue;
          const Loop& loop = kernel->loops[static_cast<size_t>(param.loop)];
          if (loop.dim == 0) rows = words[i] + 1;
          if (loop.kind == Loop::Kind::tail) width = words[i];
        }
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t k = 0; k < width; ++k) EXPECT_TRUE(seen.insert(begin + (row * extents[1] + k) * 4).second);
      }
      EXPECT_EQ(static_cast<int64_t>(seen.size()), extents[0] * extents[1]);
    }
  }
}

}  // namespace
}  // namespace tenon::snippet::test
