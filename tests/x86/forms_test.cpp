// The forms of a snippet's code, and when they are made.
#include <array>
#include <tuple>

#include "x86/forms_support.hpp"

namespace tenon::x86 {
namespace {

// Copies use instructions for several vectors if the code of the emitter may be interleaved and registers suffice.
TEST_P(Forms, CopiesComputeFunctionsInTurn) {
  const auto text = [&](std::string_view type, std::string_view operators) {
    const auto code = Compiler(target(), **jitter_table()).compile(body_of(type, operators));
    EXPECT_TRUE(code.ok()) << (code.ok() ? "" : code.error().to_string());
    return snippet::print((*code)->form.kernel);
  };
  EXPECT_NE(text("f32[N]", "%y = Tanh %x").find("= TanhInTurn2 "), std::string::npos);
  EXPECT_NE(text("f32[N]", "%y = Tanh %x").find("= Tanh "), std::string::npos) << "the tail has one vector";
  const std::string_view exp = GetParam() == Isa::avx512 ? "= ExpInTurn4 " : "= ExpInTurn2 ";
  EXPECT_NE(text("f32[N]", "%y = Exp %x").find(exp), std::string::npos);
  EXPECT_EQ(text("f32[N]", "%y = Sin %x").find("InTurn"), std::string::npos) << "it jumps";
  EXPECT_EQ(text("f32[8]", "%y = Tanh %x").find("InTurn"), std::string::npos) << "one vector";
  TargetDescription few = target();
  few.registers = {{.name = "vector", .count = 12, .width_bits = static_cast<uint64_t>(vector_bits(GetParam()))}};
  const auto code = Compiler(few, **jitter_table()).compile(body_of("f32[N]", "%y = Tanh %x"));
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  EXPECT_EQ(snippet::print((*code)->form.kernel).find("InTurn"), std::string::npos) << "there is no room";
}

// Conversions are interleaved with one common check, even where few registers remain on AVX2 for other values, and next
// to functions for which registers do not suffice.
TEST_P(Forms, CopiesShareTheChecksOfConversions) {
  const auto text = [&](const TargetDescription& target, std::string_view operators) {
    const auto body = testing::body_of(str("graph @g(%x: f32[N]) -> %y {\n  ", operators, "\n}"));
    const auto code = Compiler(target, **jitter_table()).compile(body);
    EXPECT_TRUE(code.ok()) << (code.ok() ? "" : code.error().to_string());
    EXPECT_EQ((*code)->form.kernel.frame_slots, 0);
    return snippet::print((*code)->form.kernel);
  };
  const std::string squares = R"(%i = Cast %x {to = type<i32[*]>}
  %q = Mul %i, %i
  %s = Add %q, %i
  %c = Constant {value = dense<i32[]: 7>}
  %l = Less %s, %c
  %m = Less %q, %i
  %b = And %l, %m
  %w = Where %b, %i, %s
  %y = Sub %w, %q)";
  EXPECT_NE(text(target(), squares).find("= ConvertInTurn"), std::string::npos);
  TargetDescription few = target();
  few.registers = {{.name = "vector", .count = 12, .width_bits = static_cast<uint64_t>(vector_bits(GetParam()))}};
  const std::string text_of_few = text(few, R"(%t = Tanh %x
  %i = Cast %x {to = type<i32[*]>}
  %f = Cast %i {to = type<f32[*]>}
  %y = Sub %t, %f)");
  EXPECT_NE(text_of_few.find("= ConvertInTurn"), std::string::npos) << text_of_few;
  EXPECT_EQ(text_of_few.find("= TanhInTurn"), std::string::npos) << text_of_few;
}

// Checks are shared even if registers spill, since this still takes fewer cycles.
TEST_P(Forms, CopiesThatSpillShareTheChecksOfConversions) {
  const auto body = testing::body_of(R"(graph @g(%x: f32[N], %v: i32[N]) -> %y {
  %i = Cast %x {to = type<i32[*]>}
  %c = Less %i, %v
  %three = Constant {value = dense<i32[]: 3>}
  %d = Less %i, %three
  %e = And %c, %d
  %four = Constant {value = dense<i32[]: 4>}
  %a = Where %e, %four, %v
  %s = Add %a, %i
  %m = Abs %s
  %b = Cast %m {to = type<u8[*]>}
  %seven = Constant {value = dense<u8[]: 7>}
  %y = Min %b, %seven
})");
  TargetDescription few = target();
  few.registers = {{.name = "vector", .count = 16, .width_bits = static_cast<uint64_t>(vector_bits(GetParam()))}};
  const auto code = Compiler(few, **jitter_table()).compile(body);
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  const std::string_view wanted = GetParam() == Isa::avx2 ? "= ConvertInTurn4" : "= ConvertInTurn2";
  EXPECT_NE(snippet::print((*code)->form.kernel).find(wanted), std::string::npos)
      << snippet::print((*code)->form.kernel);
}

// The alignment of rows also depends on the tensor that an output is a part of.
TEST_P(Forms, WhereRowsBegin) {
  const auto aligned = [](std::string_view type, std::vector<snippet::PortCut> cuts) {
    snippet::Body made = body_of(type, "%y = Softmax %x {axis = -1}");
    made.outputs[0].cuts = std::move(cuts);
    EXPECT_TRUE(verify(made).ok());
    return rows_aligned(made);
  };
  EXPECT_EQ(aligned("f32[N,64]", {}), true);
  EXPECT_EQ(aligned("f32[7,65]", {}), false);
  EXPECT_EQ(aligned("f32[N,65]", {}), std::nullopt) << "there may be one row";
  EXPECT_EQ(aligned("f32[7,N]", {}), std::nullopt);
  EXPECT_EQ(aligned("f32[7,64]", {{.dim = 1, .begin = 16, .box = 64, .whole = 96}}), true);
  EXPECT_EQ(aligned("f32[7,64]", {{.dim = 1, .begin = 0, .box = 64, .whole = 97}}), false);
  EXPECT_EQ(aligned("f32[7,64]", {{.dim = 1, .begin = 4, .box = 64, .whole = 96}}), false);
  EXPECT_EQ(aligned("f32[7,65]", {{.dim = 1, .begin = 0, .box = 65, .whole = 80}}), true);
  EXPECT_EQ(aligned("f32[7,N]", {{.dim = 1, .begin = 0, .box = 4, .whole = 8}}), std::nullopt);
}

// With unknown extents, forms for large calls are made on first use, even after the compiler has been destroyed.
TEST_P(Forms, ForLargeCallsWaitForOne) {
  const size_t before = made();
  auto compiler = std::make_unique<Compiler>(target(), **jitter_table());
  const auto code = compiler->compile(body("N", 11));
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  compiler.reset();
  EXPECT_EQ(made() - before, 1u);
  ASSERT_EQ((*code)->larger.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const auto form = (*code)->larger[i]->get((*code)->body);
    ASSERT_TRUE(form.ok()) << form.error().to_string();
    EXPECT_EQ(made() - before, i + 2);
    EXPECT_EQ((*form)->non_temporal, i == 1);
    EXPECT_EQ(*(*code)->larger[i]->get((*code)->body), *form);
    EXPECT_EQ(made() - before, i + 2);
  }
}

TEST_P(Forms, OfKnownExtentsAreThoseThatCallsRun) {
  const auto larger = [&](std::string_view rows, int number) {
    Compiler compiler(target(), **jitter_table());
    const size_t before = made();
    const auto code = compiler.compile(body(rows, number));
    EXPECT_TRUE(code.ok());
    EXPECT_EQ(made() - before, 1 + (*code)->larger.size()) << "at once";
    return (*code)->larger.size();
  };
  EXPECT_EQ(larger("10", 21), 0u);    // 5 KB
  EXPECT_EQ(larger("1000", 22), 0u);  // 512 KB: prefetched
  EXPECT_EQ(larger("4000", 23), 1u);  // 2 MB: non-temporal, or the first form if outputs are not aligned
}

// Forms for large calls serve calls from the sizes of the target's caches on, three quarters for the last one. For
// columns, only rows of at least two vectors.
TEST_P(Forms, ForLargeCallsServeNoOthers) {
  const auto larger = [&](const snippet::Body& body) {
    const auto code = Compiler(target(), **jitter_table()).compile(body);
    EXPECT_TRUE(code.ok()) << code.error().to_string();
    EXPECT_EQ((*code)->form.least_row, 0);
    std::vector<std::pair<double, int64_t>> least;
    for (const auto& form : (*code)->larger)
      least.emplace_back(form->calls().least_bytes, (*form->get((*code)->body))->least_row);
    return least;
  };
  using Least = std::vector<std::pair<double, int64_t>>;
  const int64_t row = 2 * lanes_of(GetParam(), kF32);
  EXPECT_EQ(larger(body("N", 51)), (Least{{1e5, 0}, {7.5e5, 0}}));
  EXPECT_EQ(larger(body_of("f32[N,800]", "%y = Softmax %x {axis = 0}")),
            (Least{{1e5, row}, {7.5e5, row}, {7.5e5, row}, {7.5e5, row}, {7.5e5, row}, {7.5e5, row}, {7.5e5, row}}));
}

// Options for large calls do not apply to the code for small ones, and suffixes of kernel names distinguish the forms.
TEST_P(Forms, HaveWhatTheirCallsNeed) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const FormMaker maker(target(), **jitter_table(), {});
  const std::vector<FormMaker::Tier> open = maker.tiers_of(body_of("f32[N,800]", "%y = Softmax %x {axis = 0}"));
  constexpr std::array kSuffixes{"",
                                 ".prefetching",
                                 ".streaming",
                                 ".streaming.blocks",
                                 ".streaming.blocks256",
                                 ".streaming.blocks128",
                                 ".streaming.merged",
                                 ".streaming.blocks.merged"};
  // Columns of blocks, and least bytes of a reduction: two fifths of 100,000 for one block.
  constexpr std::array kColumns{0, 0, 0, 512, 256, 128, 0, 0};
  constexpr std::array kLeast{0., 0., 0., 0., 20e3, 40e3, 100e3, 80e3};
  ASSERT_EQ(open.size(), kSuffixes.size());
  for (size_t i = 0; i < open.size(); ++i) {
    const FormMaker::Tier& tier = open[i];
    EXPECT_EQ(tier.suffix, kSuffixes[i]);
    EXPECT_EQ(tier.lower.whole_rows, i > 0);
    EXPECT_EQ(tier.passes.prefetch_blocks, i > 0);
    EXPECT_EQ(tier.passes.block_cache_bytes, i > 0 ? 100'000 : 0);
    EXPECT_EQ(tier.passes.stream_stores, i > 1);
    EXPECT_EQ(tier.lower.resweep_cycles > snippet::LowerOptions{}.resweep_cycles, i > 1);
    EXPECT_EQ(tier.passes.last_cache_bytes, i > 0 ? 1'000'000 : 0);
    EXPECT_EQ(tier.lower.behind_blocks, (i >= 3 && i <= 5) || i == 7);
    EXPECT_EQ(tier.lower.merge_sweeps, i > 5);
    EXPECT_EQ(tier.passes.block_columns, kColumns[i]);
    EXPECT_NEAR(tier.calls.least_folded_bytes, kLeast[i], 1e-6);
    EXPECT_EQ(tier.calls.most_folded_bytes, i == 3 || i == 4 ? open[i + 1].calls.least_folded_bytes : kNone);
    EXPECT_FALSE(tier.certain);
  }
  const std::vector<FormMaker::Tier> known = maker.tiers_of(body("4000", 61));
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0].suffix, "") << "it is the first of its calls";
  EXPECT_EQ(known[1].suffix, ".streaming");
  EXPECT_TRUE(known[0].certain && known[1].certain);
}

// An output that does not vary over the innermost dim may have loops of its own along another dim, so the alignment of
// rows says nothing about its vectors.
TEST_P(Forms, OutputsOfOtherRowsStayInTheCaches) {
  const FormMaker maker(target(), **jitter_table(), {});
  snippet::Body both = body_of("f32[N,19,M]", "%y = Softmax %x {axis = 1}");  // whose dims are used below
  ASSERT_EQ(both.rank(), 3u);
  both.dims[1].reduced = false;
  both.dims.insert(both.dims.begin(), both.dims[0]);
  both.values = {{kF32, 15}, {kF32, 15}, {kF32, 5}, {kF32, 5}};
  both.inputs = {{0, kF32}, {2, kF32}};
  both.outputs = {{1, kF32}, {3, kF32}};
  both.nodes = {{.op = "Neg", .operands = {0}, .result = 1}, {.op = "Neg", .operands = {2}, .result = 3}};
  const auto tiers = maker.tiers_of(both);
  const auto streaming = std::ranges::find(tiers, ".streaming", &FormMaker::Tier::suffix);
  ASSERT_NE(streaming, tiers.end());
  const auto form = maker.make(both, *streaming);
  ASSERT_TRUE(form.ok()) << form.error().to_string();
  EXPECT_TRUE(form->non_temporal);
  for (const snippet::Instruction& one : form->kernel.body) {
    if (one.op != Name("StoreStreaming")) continue;
    for (const snippet::Instruction& pointer : form->kernel.body) {
      if (pointer.op != Name("Parameter") || pointer.out[0] != one.memory->base) continue;
      EXPECT_EQ(form->kernel.params[static_cast<size_t>(pointer.number)].port, 2) << snippet::print(form->kernel);
    }
  }
}

// Byte lanes that spill in the first form are not tried in the next, which would be the same.
TEST_P(Forms, BytesThatSpillAreTriedOnce) {
  const FormMaker maker(target(), **jitter_table(), {});
  const auto body = testing::body_of(R"(graph @g(%x: u8[N,64,M], %h: f16[N,64,M], %c: f32[64,1], %r: f32[M]) -> %y {
  %v0 = Cast %x {to = type<f32[*]>}
  %v1 = Cast %h {to = type<f32[*]>}
  %v2 = Sub %v0, %c
  %v3 = Mul %v2, %r
  %v4 = Add %v3, %v1
  %v5 = Sigmoid %v4
  %v6 = Mul %v5, %v4
  %v7 = Greater %v6, %c
  %v8 = Where %v7, %v6, %v1
  %v9 = Floor %v8
  %v12 = Sub %v8, %v9
  %v13 = Mul %v12, %c
  %v14 = Add %v13, %r
  %v15 = Abs %v14
  %v16 = Min %v15, %v6
  %v17 = Div %v16, %c
  %y = Cast %v17 {to = type<i8[*]>}
})");
  FormBodies bodies = maker.bodies_of(body);
  const std::vector<FormMaker::Tier> tiers = maker.tiers_of(bodies);
  ASSERT_TRUE(maker.make(bodies, tiers[0]).ok());
  EXPECT_EQ(bodies.bytes_lose(), GetParam() == Isa::avx2);
  const auto next = maker.make(bodies, tiers[1]), alone = maker.make(body, tiers[1]);
  ASSERT_TRUE(next.ok() && alone.ok());
  EXPECT_EQ(snippet::print(next->kernel), snippet::print(alone->kernel));
}

// The merged sweep also writes values that a sweep would keep for the next one. These rows have arbitrary alignment.
TEST_P(Forms, ScratchMemoryIsNotWrittenPastTheCaches) {
  const FormMaker maker(target(), **jitter_table(), {});
  auto graph = parse_graph(
      "graph @g(%x: f32[N,M], %m: f32[1,M]) -> %y {\n%a = Asinh %x\n%t = Min %a, %m\n"
      "%y = ReduceLogSumExp %t\n}");
  testing::GuardedGraph(GetParam(), {}).tokenize(**graph);
  const auto body = snippet::make_body(*(*graph)->body().output(0)->producer());
  size_t merged = 0;
  for (const FormMaker::Tier& tier : maker.tiers_of(*body)) {
    const auto form = maker.make(*body, tier);
    ASSERT_TRUE(form.ok()) << form.error().to_string();
    merged += form->kernel.merged;
    const std::string text = snippet::print(form->kernel);
    EXPECT_EQ(text.find("StoreStreaming"), std::string::npos) << tier.suffix << " folds to one number: " << text;
  }
  EXPECT_GT(merged, 0u);
}

// Forms that would equal the previous one serve no call.
TEST_P(Forms, WithoutStoresPastTheCachesAreForNoCall) {
  const auto least_row = [&](std::string_view type, std::string_view operators, std::string_view suffix) {
    const FormMaker maker(target(), **jitter_table(), {});
    const snippet::Body body = body_of(type, operators);
    for (const FormMaker::Tier& tier : maker.tiers_of(body)) {
      if (tier.suffix != suffix) continue;
      const auto form = maker.make(body, tier);
      EXPECT_TRUE(form.ok()) << (form.ok() ? "" : form.error().to_string());
      return std::pair(form->least_row, form->non_temporal);
    }
    ADD_FAILURE() << "no form " << suffix << " of " << body.to_string();
    return std::pair(int64_t{-1}, false);
  };
  const int64_t lanes = lanes_of(GetParam(), kF32), none = std::numeric_limits<int64_t>::max();
  const std::string_view sum = "%a = Constant {value = dense<i64[1]: 1>}\n  %y = ReduceSum %x, %a";
  const bool lines = lanes * 4 == kLineBytes;
  EXPECT_EQ(least_row("f32[N,M]", "%y = Softmax %x {axis = -1}", ".streaming.heads"),
            std::pair(int64_t{lines ? 128 : 768}, true));
  EXPECT_EQ(least_row("f16[N,M]", "%y = Softmax %x {axis = -1}", ".streaming.heads"), std::pair(int64_t{768}, true))
      << "half lines";
  EXPECT_EQ(least_row("f32[N,800]", "%y = Softmax %x {axis = 0}", ".streaming.blocks"), std::pair(2 * lanes, true));
  EXPECT_EQ(least_row("f32[N,M,K]", sum, ".streaming.blocks"), std::pair(none, true)) << "one sweep";
  const auto narrow = [](int axis) {
    return str("%y = snippet.Subgraph %x \"narrow\" ((%0: f64[N,800]) -> %3 {\n    %1 = Softmax %0 {axis = ", axis,
               R"(} : f64[N,800]
    %2 = Constant {value = dense<f64[]: 0.5>} : f64[]
    %3 = Less %1, %2 : bool[N,800]
  }) : bool[N,800])");
  };
  EXPECT_EQ(least_row("f64[N,800]", narrow(0), ".streaming.blocks"), std::pair(none, false)) << "8 bytes a vector";
  EXPECT_EQ(least_row("f64[N,800]", narrow(1), ".streaming.heads"), std::pair(none, false)) << "8 bytes a vector";
}

TEST_P(Forms, AListingShowsAll) {
  const Compiler compiler(target(), **jitter_table());
  const auto all = compiler.assemble_snippet(body("N", 31));
  ASSERT_TRUE(all.ok()) << all.error().to_string();
  ASSERT_EQ(all->size(), 3u);
  EXPECT_NE((*all)[1].name.find(".prefetching"), std::string::npos) << (*all)[1].name;
  EXPECT_NE((*all)[2].name.find(".streaming"), std::string::npos) << (*all)[2].name;
  const auto first = compiler.assemble_snippet(body("N", 31), Compiler::Forms::first);
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(first->size(), 1u);
  EXPECT_EQ((*first)[0], (*all)[0]);
}

// Each form traverses data as stated for the memory that its calls read.
TEST_P(Forms, WalkAsTheirMemorySays) {
  TargetDescription stated = target();
  stated.memories[1].row_lines = 2, stated.memories[1].prefetch_together = 64;
  stated.memories[2].most_streams = 6;
  stated.memories.push_back({.name = "l1", .size_bytes = 16'384});
  const FormMaker maker(stated, **jitter_table(), {});
  const std::vector<FormMaker::Tier> tiers = maker.tiers_of(body("N", 41));
  ASSERT_EQ(tiers.size(), 3u);
  const auto lines = [&](size_t tier) {
    const FormPasses& passes = tiers[tier].passes;
    return std::tuple(passes.prefetch_reads.lines, passes.prefetch_writes.lines, passes.streams.each,
                      passes.streams.most);
  };
  EXPECT_EQ(lines(0), std::tuple(0, 0, 1, 0)) << "l2 states nothing";
  EXPECT_EQ(lines(1), std::tuple(7, 5, 1, 0));
  EXPECT_EQ(lines(2), std::tuple(9, 0, 3, 6));
  EXPECT_EQ(tiers[1].passes.prefetch_reads.together, 64);
  // Rows of f32 have 2 lines at most. If lines are not prefetched, rows that are read again may be longer, so that four
  // fit into half of L1.
  EXPECT_EQ(tiers[0].lower.longest_row_again, 512);
  EXPECT_EQ(tiers[1].lower.longest_row_once, 32);
  EXPECT_EQ(tiers[1].lower.longest_row_again, 32);
  // The same in the code.
  const auto listed = [&](size_t tier, std::string_view what) {
    const auto code = maker.make(body("N", 41), tiers[tier]);
    EXPECT_TRUE(code.ok());
    return print(code->kernel).find(what) != std::string::npos;
  };
  EXPECT_FALSE(listed(0, "Prefetch"));
  EXPECT_TRUE(listed(1, "PrefetchRead f32") && listed(1, "PrefetchWrite f32"));
  EXPECT_TRUE(listed(2, "PrefetchRead f32") && !listed(2, "PrefetchWrite f32"));
  EXPECT_TRUE(listed(2, " of 3 least 16384"));
  EXPECT_FALSE(listed(1, " of 3 least 16384"));
  EXPECT_FALSE(listed(2, "LoadHalves")) << "no width is stated";
  const snippet::Body rows = body_of("f32[N,M]", "%a = Constant {value = dense<i64[1]: 1>}\n  %y = ReduceSum %x, %a");
  const auto longest = [&](size_t tier) {
    const auto code = maker.make(rows, maker.tiers_of(rows)[tier]);
    EXPECT_TRUE(code.ok());
    for (const snippet::Param& param : code->kernel.params)
      if (param.longest > 0) return param.longest;
    return 0;
  };
  EXPECT_EQ(longest(0), 256);
  EXPECT_EQ(longest(1), 32);
}

// First sweeps follow a memory that states the width of loads, but not if functions are the bottleneck.
TEST_P(Forms, LoadAsWideAsTheirMemorySays) {
  TargetDescription stated = target();
  stated.memories[2].load_bytes = 32;
  const FormMaker maker(stated, **jitter_table(), {});
  const auto loads = [&](const snippet::Body& of, std::string_view form) {
    const std::vector<FormMaker::Tier> tiers = maker.tiers_of(of);
    const auto tier = std::ranges::find(tiers, form, &FormMaker::Tier::suffix);
    EXPECT_NE(tier, tiers.end()) << form;
    const auto code = maker.make(of, *tier);
    EXPECT_TRUE(code.ok());
    const std::string text = print(code->kernel);
    const auto has = [&](std::string_view what) { return text.find(what) != std::string::npos; };
    return std::pair(has("= LoadHalves f32"), has("= Load f32") || has("Memory f32"));
  };
  using Found = std::pair<bool, bool>;
  const bool halves = GetParam() == Isa::avx512;
  const snippet::Body costly = body_of("f32[N]", "%y = Sigmoid %x"), cheap = body_of("f32[N]", "%y = Sign %x");
  EXPECT_EQ(loads(cheap, ".prefetching"), Found(false, true)) << "from the last-level cache";
  EXPECT_EQ(loads(cheap, ".streaming"), Found(halves, !halves));
  EXPECT_EQ(loads(costly, ".streaming"), Found(false, true));
  const snippet::Body again =
      body_of("f32[N,512]", "%c = Constant {value = dense<f32[1]: 3.0>}\n  %y = LayerNormalization %x, %c {axis = -1}");
  EXPECT_EQ(loads(again, ".streaming"), Found(halves, true)) << "the second walk finds the row in a cache";
}

INSTANTIATE_TEST_SUITE_P(Both, Forms, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
