// Passes that prefetch lines, divide blocks, and load by halves.
#include <set>
#include <snippet/bodies.hpp>

#include "x86/assembly/listing.hpp"
#include "x86/passes_support.hpp"

namespace tenon::x86::testing {
namespace {

TEST_P(Passes, WrittenLinesAreFetchedAhead) {
  for (const std::string_view element : {"f32", "i8"}) {
    const std::string lane = element == "i8" ? "i32" : "f32";
    const std::string text =
        row_kernel(GetParam().lanes, str("    %20:", lane, " = Load@ ", element, " [%0 + %3]!\n"), element);
    EXPECT_EQ(count(print(optimised(text)), "PrefetchWrite"), 0);
    const LinearKernel kernel = optimised(text, {.prefetch_writes = {.lines = 32}});
    EXPECT_EQ(count(print(kernel), str("PrefetchWrite ", element, " [%1 + %3 + 2048]")), 1) << print(kernel);
    EXPECT_EQ(count(print(kernel), "PrefetchWrite"), 1) << "one line an iteration, none in the tail";
    EXPECT_EQ(print(parsed(print(kernel))), print(kernel));
    if (element == "i8") continue;
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    EXPECT_EQ(count(listing(code->object()), "prefetchw"), 1);
    check<float>(*code, [](float x, float) { return x; });  // prefetches beyond guard pages do not fault
  }
}

TEST_P(Passes, ReadLinesAreFetchedAhead) {
  const std::string text = row_kernel(GetParam().lanes, load("f32") + weight("f32") + "    %20:f32 = Add %10, %11\n");
  for (const bool memory_operands : {false, true}) {
    const LinearKernel kernel = optimised(text, {.memory_operands = memory_operands, .prefetch_reads = {.lines = 64}});
    EXPECT_EQ(count(print(kernel), "PrefetchRead f32 [%0 + %3 + 4096]"), 1) << print(kernel);
    EXPECT_EQ(count(print(kernel), "PrefetchRead"), 1) << "not of the one element, nor in the tail";
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    EXPECT_EQ(count(listing(code->object()), "prefetcht0"), 1);
    check<float>(*code, [](float x, float w) { return x + w; });
  }
}

// Operands that all rows share stay in the caches and are not prefetched. A single row shares nothing.
TEST_P(Passes, WhatRowsShareIsNotFetched) {
  const auto fetched = [&](std::string_view dims) {
    snippet::test::BodyBuilder build("add", dims);
    const snippet::DimSet row = snippet::DimSet{1} << (dims.size() - 1), all = (snippet::DimSet{1} << dims.size()) - 1;
    build.output(build.op("Add", {build.input(all), build.input(row)}));
    auto kernel = snippet::lower(build.take(), {.lanes = GetParam().lanes, .rows = 1});
    TENON_CHECK(kernel.ok(), kernel.ok() ? "" : kernel.error().to_string());
    EXPECT_TRUE(optimise(*kernel, FormPasses{.isa = GetParam().isa, .prefetch_reads = {.lines = 8}}).ok());
    std::set<snippet::RegisterId> pointers;
    for (const snippet::Instruction& one : kernel->body)
      if (one.op == "PrefetchRead") pointers.insert(one.memory->base);
    return pointers.size();
  };
  EXPECT_EQ(fetched("kk"), 1u);
  EXPECT_EQ(fetched("kkk"), 1u);
  EXPECT_EQ(fetched("k"), 2u);
}

// Only the first sweep along a row prefetches; later ones find its lines in the caches.
TEST_P(Passes, TheFirstOfSeveralWalksFetches) {
  const int lanes = GetParam().lanes;
  const auto walk = [&](int loop, int counter, int value) {
    return str("  %", counter, ":g = Zero\n  loop ", loop, " d0 dim 0 %", counter, " vector step ", lanes, " limit #",
               2 + loop, " {\n    %", value, ":f32 = Load f32 [%0 + %", counter, "]\n    Store f32 [%1 + %", counter,
               "], %", value, "\n  }\n");
  };
  const LinearKernel kernel =
      optimised(str("kernel @twice lanes ", lanes,
                    " {\n  #0 = pointer 0\n  #1 = pointer 1\n  #2 = limit loop 0\n  #3 = limit loop 1\n",
                    "  %0:g = Parameter #0\n  %1:g = Parameter #1\n", walk(0, 2, 3), walk(1, 4, 5), "}\n"),
                {.prefetch_writes = {.lines = 48}, .prefetch_reads = {.lines = 64}});
  const std::string text = print(kernel), second = text.substr(text.find("loop 1 d0"));
  EXPECT_EQ(count(text, "PrefetchRead"), 1) << text;
  EXPECT_EQ(count(text, "PrefetchWrite"), 1) << text;
  EXPECT_EQ(count(second, "Prefetch"), 0) << text;
}

// Lines that are read are prefetched into the requested cache, those that are written into the nearest one.
TEST_P(Passes, LinesAreFetchedIntoTheSecondLevelIfAsked) {
  const int lanes = GetParam().lanes;
  const std::string text =
      str("kernel @copy lanes ", lanes, " {\n  #0 = pointer 0\n  #1 = pointer 1\n  #2 = limit loop 0\n",
          "  %0:g = Parameter #0\n  %1:g = Parameter #1\n  %2:g = Zero\n  loop 0 d0 dim 0 %2 vector step ", lanes,
          " limit #2 {\n    %3:f32 = Load f32 [%0 + %2]\n    Store f32 [%1 + %2], %3\n  }\n}\n");
  for (const bool to_second : {false, true}) {
    const std::string made = print(
        optimised(text, {.prefetch_writes = {.lines = 48}, .prefetch_reads = {.lines = 64, .to_second = to_second}}));
    const size_t read = made.find("PrefetchRead"), written = made.find("PrefetchWrite");
    ASSERT_TRUE(read != made.npos && written != made.npos) << made;
    const auto line = [&](size_t at) { return made.substr(at, made.find('\n', at) - at); };
    EXPECT_EQ(line(read).find("second") != std::string::npos, to_second) << made;
    EXPECT_EQ(line(written).find("second"), std::string::npos) << made;
  }
}

// Blocks of columns: only the second sweep over the rows prefetches those of the next block.
TEST_P(Passes, TheNextBlockIsFetchedByTheSecondSweep) {
  snippet::test::BodyBuilder build("softmax", "rk");
  const snippet::ValueId x = build.input(3), most = build.reduce("ReduceMax", x);
  const snippet::ValueId e = build.op("Exp", {build.op("Sub", {x, most})});
  build.output(build.op("Mul", {e, build.reduce("ReduceSum", e)}));
  build.output(most);
  const snippet::Body body = build.take();
  const int lanes = GetParam().lanes;
  const auto text_of = [&](bool prefetch, bool whole_rows) {
    auto kernel = snippet::lower(body, {.lanes = lanes, .resweep_cycles = 24, .whole_rows = whole_rows});
    TENON_CHECK(kernel.ok(), kernel.ok() ? "" : kernel.error().to_string());
    const auto passed =
        optimise(*kernel, FormPasses{.isa = GetParam().isa, .block_cache_bytes = 1 << 20, .prefetch_blocks = prefetch});
    EXPECT_TRUE(passed.ok()) << passed.error().to_string();
    return print(*kernel);
  };
  const std::string text = text_of(true, true);
  EXPECT_EQ(count(text_of(false, true), "Prefetch"), 0);
  EXPECT_EQ(count(text_of(true, false), "Prefetch"), 0) << "tiles are no blocks";
  // Loops over two vectors and over one, of four rows and of single ones.
  const int vectors_of_line = std::max(1, 64 / (lanes * 4));
  const int lines = 4 * std::max(1, 2 / vectors_of_line) + 4;
  EXPECT_EQ(count(text, "PrefetchRead"), lines) << text;
  EXPECT_EQ(count(text.substr(0, text.find("Exp")), "Prefetch"), 0) << text;
  EXPECT_NE(text.find("2048]"), std::string::npos) << text;
}

// Blocks whose rows are read once, four at a time: the lines of the tensor four rows ahead are prefetched, but not
// those of scratch memory, and blocks are as large as half of the last-level cache.
TEST_P(Passes, RowsThatAreReadOnceAreFetchedAhead) {
  snippet::test::BodyBuilder build("softmax", "rk");
  const snippet::ValueId x = build.input(3), most = build.reduce("ReduceMax", x);
  const snippet::ValueId e = build.op("Exp", {build.op("Sub", {x, most})});
  build.output(build.op("Mul", {e, build.op("Sqrt", {build.reduce("ReduceSum", e)})}));
  auto kernel = snippet::lower(
      build.take(), {.lanes = GetParam().lanes, .whole_rows = true, .behind_blocks = true, .merge_sweeps = true});
  ASSERT_TRUE(kernel.ok());
  ASSERT_TRUE(kernel->merged && kernel->blocks.inside);
  const FormPasses passes{
      .isa = GetParam().isa, .block_cache_bytes = 1 << 20, .last_cache_bytes = 32 << 20, .prefetch_blocks = true};
  ASSERT_TRUE(optimise(*kernel, passes).ok());
  const std::string text = print(*kernel);
  EXPECT_EQ(count(text, "PrefetchRead"), 2 * 4) << "of the blocks, and of the columns behind the last\n" << text;
  EXPECT_NE(text.find("again inside of 512 within 655360, 256 within 16777216, "), text.npos) << text;
  std::set<snippet::RegisterId> fetched;
  for (const snippet::Instruction& one : kernel->body)
    if (one.op == "PrefetchRead") fetched.insert(one.memory->base);
  for (const snippet::Instruction& one : kernel->body) {
    if (one.op != "AddParameter" || !fetched.contains(one.out[0])) continue;
    const snippet::Param& step = kernel->params[static_cast<size_t>(one.number)];
    EXPECT_EQ(step.port, 0) << text;
    EXPECT_EQ(kernel->loops[static_cast<size_t>(step.loop)].increment, 4) << text;
  }
}

// Blocks that are read again have the number of columns that the options state, and so has the prefetch distance.
TEST_P(Passes, BlocksBehindAWalkAreAsLongAsAsked) {
  snippet::test::BodyBuilder build("softmax", "rk");
  const snippet::ValueId x = build.input(3), most = build.reduce("ReduceMax", x);
  const snippet::ValueId e = build.op("Exp", {build.op("Sub", {x, most})});
  build.output(build.op("Mul", {e, build.op("Sqrt", {build.reduce("ReduceSum", e)})}));
  auto kernel = snippet::lower(build.take(), {.lanes = GetParam().lanes, .whole_rows = true, .behind_blocks = true});
  ASSERT_TRUE(kernel.ok());
  ASSERT_TRUE(kernel->blocks.inside && kernel->blocks.again && !kernel->merged);
  const FormPasses options{
      .isa = GetParam().isa, .block_cache_bytes = 1 << 20, .block_columns = 128, .prefetch_blocks = true};
  ASSERT_TRUE(optimise(*kernel, options).ok());
  const std::string text = print(*kernel);
  EXPECT_NE(text.find("again inside of 128 within 655360, 128"), text.npos) << text;
  EXPECT_NE(text.find(" + 512]"), text.npos) << text;
  EXPECT_EQ(count(text, " + 2048]"), 0) << text;
}

// If one sweep reads a block, it also prefetches the next one.
TEST_P(Passes, BlocksThatAreReadOnceAreFetchedAsTheyAreRead) {
  snippet::test::BodyBuilder build("columns", "rk");
  const snippet::ValueId x = build.input(3), squares = build.op("Mul", {x, x});
  build.output(build.op("Div", {x, build.op("Sqrt", {build.reduce("ReduceSum", squares)})}));
  auto kernel = snippet::lower(build.take(), {.lanes = GetParam().lanes, .whole_rows = true, .behind_blocks = true});
  ASSERT_TRUE(kernel.ok() && kernel->blocks.inside);
  const FormPasses options{
      .isa = GetParam().isa, .block_cache_bytes = 1 << 20, .block_columns = 128, .prefetch_blocks = true};
  ASSERT_TRUE(optimise(*kernel, options).ok());
  const std::string text = print(*kernel);
  EXPECT_GT(count(text, "PrefetchRead"), 0) << text;
  size_t depth = 0, blocks = 0;
  for (const snippet::Instruction& one : kernel->body) {
    if (one.op == "LoopBegin") ++depth, blocks = depth == 1 ? static_cast<size_t>(one.number) : blocks;
    if (one.op == "LoopEnd") --depth;
    if (one.op == "PrefetchRead") {
      EXPECT_EQ(kernel->loops[blocks].dim, kernel->blocks.count()) << "there is no next one behind the loop";
    }
  }
}

// Only tensors that advance with the rows are prefetched; results of joined rows stay in the caches.
TEST_P(Passes, OfJoinedRowsTheTensorsAreFetched) {
  snippet::test::BodyBuilder build("columns", "rk");
  build.output(build.reduce("ReduceSum", build.input(3)));
  const int lanes = GetParam().lanes;
  auto kernel = snippet::lower(build.take(), {.lanes = lanes, .rows = 1, .whole_rows = true, .join_rows = true});
  ASSERT_TRUE(kernel.ok());
  ASSERT_GE(kernel->joined.rows, 0);
  ASSERT_TRUE(optimise(*kernel, FormPasses{.isa = GetParam().isa, .prefetch_reads = {.lines = 8}}).ok());
  const std::string text = print(*kernel);
  size_t reads = 0;
  for (const snippet::Instruction& one : kernel->body) {
    if (one.op != "PrefetchRead") continue;
    ++reads;
    EXPECT_TRUE(std::ranges::any_of(kernel->loops, [&](const snippet::Loop& loop) {
      return loop.dim == 0 &&
             std::ranges::any_of(loop.shifts, [&](const auto& s) { return s.pointer == one.memory->base; });
    })) << text;
  }
  EXPECT_GT(reads, 0u) << text;
}

// The sizes of blocks follow from the cache and from the content of scratch rows.
TEST_P(Passes, BlocksAreCutForTheCache) {
  const auto blocks_of = [&](bool again, bool keeps, int64_t cache_bytes) {
    snippet::test::BodyBuilder build("columns", "rk");
    snippet::ValueId x = build.input(3, kF16);
    if (keeps) x = build.op("Exp", {x});
    const snippet::ValueId sum = build.reduce("ReduceSum", x);
    build.output(again ? build.op("Sub", {x, sum}) : sum, kF16);
    const auto cycles = [](const snippet::Body&, const snippet::BodyNode& node) {
      return node.op == "Exp" ? 100. : 1.;
    };
    auto kernel = snippet::lower(build.take(), {.lanes = GetParam().lanes, .cycles = cycles, .whole_rows = true});
    EXPECT_TRUE(kernel.ok() &&
                optimise(*kernel, FormPasses{.isa = GetParam().isa, .block_cache_bytes = cache_bytes}).ok());
    const std::string text = print(*kernel);
    const size_t at = text.find("blocks dim 1");
    return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(blocks_of(false, false, 0), "blocks dim 1");
  EXPECT_EQ(blocks_of(false, false, 1 << 20), "blocks dim 1 of 16384");
  EXPECT_EQ(blocks_of(false, false, 256 << 10), "blocks dim 1 of 4096");
  EXPECT_EQ(blocks_of(true, false, 256 << 10), "blocks dim 1 again of 512 within 131072, 256 within 131072, 4096");
  EXPECT_EQ(blocks_of(true, true, 256 << 10), "blocks dim 1 again of 512 within 131072, 256 within 131072, 256");
}

// Data beyond the caches is loaded by halves; for shared operands, which are in the caches, that would cost one more
// operation.
TEST_P(Passes, WhatComesFromFarIsLoadedByHalves) {
  const int lanes = GetParam().lanes;
  const bool halves = lanes * 32 == 512;
  const FormPasses options{.far_by_halves = true};
  const LinearKernel sum =
      optimised(row_kernel(lanes, load("f32") + weight("f32") + "    %20:f32 = Add %10, %11\n"), options);
  EXPECT_EQ(count(print(sum), "LoadHalves"), halves) << "not what all rows share: " << print(sum);
  const auto code = compiled(sum);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float w) { return x + w; });
}

TEST(PassesAhead, StretchesShareTheCache) {
  const Ahead ahead{.lines = 64, .together = 128};
  EXPECT_EQ(ahead.of(1), 64);
  EXPECT_EQ(ahead.of(4), 32);
  EXPECT_EQ(ahead.of(8), 16);
  EXPECT_EQ(ahead.of(1000), 1);
  EXPECT_EQ(Ahead{.lines = 64}.of(1000), 64) << "no bound";
}

TENON_ON_ALL_MACHINES(Passes);

}  // namespace
}  // namespace tenon::x86::testing
