#include <tenon/passes/assign_layouts.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <passes/layout_graph_testing.hpp>
#include <support_lib/layout_check.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/layout.hpp>

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = LayoutStep::Kind;

std::unique_ptr<Graph> graph_of(std::string_view text) {
  auto parsed = parse_graph(text);
  EXPECT_TRUE(parsed.ok()) << parsed.error().to_string();
  return *std::move(parsed);
}

// With a weight for each Conv of the text, which is declared as an input "w: f32[O,I,K,K]" and becomes a constant.
struct Laid {
  std::unique_ptr<Graph> plain, graph;
  AssignLayoutsOptions options;
  LayoutReport report;

  Op& op(std::string_view name) const {
    for (Op& op : graph->body()) {
      if (op.name().view() == name) return op;
    }
    ADD_FAILURE() << "no " << name << " in\n" << print(*graph);
    return *graph->body().first();
  }
  // Compares with inputs of small numbers.
  void check(double tolerance = 1e-5, const SymbolValues& symbols = {}) const {
    std::mt19937 random(1);
    std::vector<Datum> inputs;
    for (size_t i = 0; i < plain->body().input_count(); ++i) {
      const Type& type = plain->body().input(i)->type();
      Dims dims;
      for (const Dim& dim : type.shape().dims()) dims.push_back(dim.expr().evaluate(symbols).value());
      inputs.emplace_back(random_tensor(random, type.element(), dims, 0, 3));
    }
    const auto wanted = run_poisoned(*plain, inputs, PoisonPadding::none);
    ASSERT_TRUE(wanted.ok()) << wanted.error().to_string();
    const auto good = check_laid_out(*graph, options, inputs, *wanted, tolerance);
    EXPECT_TRUE(good.ok()) << good.error().to_string() << "\n" << print(*graph);
  }
};

Laid lay_out(std::unique_ptr<Graph> graph, AssignLayoutsOptions options) {
  Laid laid{graph->clone(), std::move(graph), std::move(options), {}};
  auto report = assign_layouts(*laid.graph, laid.options);
  EXPECT_TRUE(report.ok()) << report.error().to_string();
  if (report.ok()) laid.report = *std::move(report);
  return laid;
}

// x -> Conv -> act -> Conv -> y, `channels` everywhere.
std::unique_ptr<Graph> two_convs(std::string_view act, int64_t channels = 5, ElementType in = kF32, Dim batch = 1) {
  auto graph = std::make_unique<Graph>("net");
  Builder b(graph->body());
  std::mt19937 random(3);
  const auto weight = [&] { return b.constant(random_tensor(random, kF32, {channels, channels, 1, 1}), "w"); };
  Value* x = graph->body().add_input("x", Type(in, Shape{std::move(batch), channels, 4, 4}));
  if (in != kF32) x = b.op("Cast", {x}, {{"to", Type(kF32, Shape())}}).value();
  Value* a = b.op("Conv", {x, weight()}).value();
  a->set_name("a");
  Value* middle = b.op(Name(act), {a}).value();
  middle->set_name("middle");
  Value* y = b.op("Conv", {middle, weight()}).value();
  y->set_name("y");
  graph->body().add_output(y, "y");
  return graph;
}

TEST(AssignLayouts, ReordersAtTheEdgesOnly) {
  const Laid laid = lay_out(two_convs("Relu"), target_taking(kNhwc));
  EXPECT_EQ(laid.report.count(Kind::reorder), 2u);
  EXPECT_EQ(laid.report.count(Kind::scrub), 0u);
  ASSERT_THAT(laid.report.steps, SizeIs(2));  // 1x1 weights of the same kernels: row-major
  EXPECT_EQ(laid.report.steps[0].tensor, "x");
  EXPECT_EQ(laid.report.steps[0].from, "row-major");
  EXPECT_EQ(laid.report.steps[0].to, "NHWC");
  EXPECT_EQ(laid.report.steps[0].bytes, 2 * 5 * 16 * 4);
  EXPECT_EQ(laid.report.steps[0].cost, 2 * 5 * 16 * 4);
  EXPECT_THAT(laid.report.steps[0].forced_by, ElementsAre(laid.op("Conv").describe()));
  EXPECT_THAT(laid.report.steps[1].forced_by, ElementsAre("output 'y'"));
  EXPECT_EQ(laid.report.cost, 2 * 640 + 200);
  EXPECT_TRUE(laid.report.proven);
  EXPECT_EQ(laid.op("Relu").result()->layout()->text, "NHWC");
  EXPECT_EQ(laid.graph->body().output_name(0), "y");
  laid.check(0);
  EXPECT_THAT(laid.report.to_string(), HasSubstr("reorder 'x' row-major -> NHWC: 640 bytes, cost 640, for Conv"));
  EXPECT_THAT(laid.report.to_json(), HasSubstr("\"to\": \"NHWC\", \"bytes\": 640"));
}

TEST(AssignLayouts, APlainTargetIsLeftAlone) {
  const Laid laid = lay_out(two_convs("Relu"), target_taking(kPlain));
  EXPECT_THAT(laid.report.steps, IsEmpty());
  EXPECT_EQ(print(*laid.graph), print(*laid.plain));
}

TEST(AssignLayouts, ScrubsOnlyWhatIsDirty) {
  const Laid clean = lay_out(two_convs("Relu"), target_taking(kBlocked));
  EXPECT_EQ(clean.report.count(Kind::scrub), 0u);
  EXPECT_EQ(clean.op("Relu").result()->layout()->pad, PadState::zero);
  clean.check();
  const Laid dirty = lay_out(two_convs("Sigmoid"), target_taking(kBlocked));
  EXPECT_EQ(dirty.report.count(Kind::scrub), 1u);
  EXPECT_EQ(dirty.op("Sigmoid").result()->layout()->pad, PadState::dirty);
  EXPECT_EQ(dirty.op("layout.Scrub").operand(0), dirty.op("Sigmoid").result());
  dirty.check();
  const Laid full = lay_out(two_convs("Sigmoid", 8), target_taking(kBlocked));
  EXPECT_EQ(full.report.count(Kind::scrub), 0u);
  EXPECT_EQ(full.op("Sigmoid").result()->layout()->pad, PadState::none);
  full.check();
}

TEST(AssignLayouts, ConstantsAreFolded) {
  const Laid laid = lay_out(two_convs("Relu"), target_taking(kBlocked));
  EXPECT_EQ(laid.report.count(Kind::constant), 2u);
  for (const Op& op : laid.graph->body()) {
    if (!isa<Constant>(op)) continue;
    EXPECT_EQ(op.result()->layout()->text, "OIHW{4i4o}");
    EXPECT_EQ(op.result()->layout()->pad, PadState::zero);
  }
}

TEST(AssignLayouts, ReordersSlideToTheNarrowerType) {
  const Laid laid = lay_out(two_convs("Relu", 5, ElementType::parse("u8").value()), target_taking(kNhwc));
  EXPECT_EQ(laid.op("layout.Reorder").operand(0), laid.graph->body().input(0));
  EXPECT_EQ(laid.report.steps[0].bytes, 2 * 5 * 16);
  laid.check(0);
}

TEST(AssignLayouts, ReordersSlideBeforeABroadcast) {
  auto graph = two_convs("Relu");
  Op* second = graph->body().output(0)->producer();
  Builder b(graph->body(), second);
  Value* small = graph->body().add_input("s", Type(kF32, Shape(Dims{1, 5, 1, 4})));
  second->set_operand(0, b.op("Add", {second->operand(0), small}).value());
  const Laid laid = lay_out(std::move(graph), target_taking(kNhwc));
  ASSERT_EQ(laid.report.count(Kind::reorder), 3u);
  for (const LayoutStep& step : laid.report.steps) {
    if (step.tensor == "s") {
      EXPECT_EQ(step.bytes, 2 * 5 * 4 * 4);
    }
  }
  laid.check(0);
}

TEST(AssignLayouts, OneReorderForAllWhoWantIt) {
  auto graph = two_convs("Relu");
  Op* second = graph->body().output(0)->producer();
  second->set_operand(0, graph->body().input(0));
  graph->body().add_output(graph->body().first()->next()->result(), "first");
  const Laid laid = lay_out(std::move(graph), target_taking(kNhwc));
  ASSERT_FALSE(laid.report.steps.empty());
  EXPECT_THAT(laid.report.steps[0].forced_by, SizeIs(2));
  EXPECT_EQ(laid.report.count(Kind::reorder), 3u);
  laid.check(0);
}

TEST(AssignLayouts, TwiceIsOnce) {
  for (const unsigned takes : {unsigned(kNhwc), unsigned(kBlocked), kPlain | kBlocked | kIntoBlocks}) {
    Laid laid = lay_out(two_convs("Sigmoid"), target_taking(takes));
    const std::string once = print(*laid.graph);
    const auto again = assign_layouts(*laid.graph, laid.options);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->cost, laid.report.cost);
    EXPECT_EQ(again->count(Kind::reorder), laid.report.count(Kind::reorder));
    laid.check();
    // Without kernels all of it goes again.
    ASSERT_TRUE(assign_layouts(*laid.graph).ok());
    EXPECT_EQ(laid.graph->total_op_count(), laid.plain->total_op_count());
    for (const Op& op : laid.graph->body()) EXPECT_EQ(op.result()->layout(), nullptr);
  }
}

TEST(AssignLayouts, PinnedValuesKeepTheirLayout) {
  for (const unsigned takes : {0u, unsigned(kPlain), unsigned(kNhwc), unsigned(kBlocked)}) {
    for (const char* name : {"x", "middle", "y", "w"}) {
      SCOPED_TRACE(str("takes ", takes, ", pinned ", name));
      auto graph = two_convs("Sigmoid");
      const std::string text = *name == 'w' ? "OIHW{2o}" : "NHCW{3c}";
      const auto set = set_layout(*graph, name, text, *name == 'w' ? "OIHW" : "NCHW");
      ASSERT_TRUE(set.ok()) << set.error().to_string();
      const Laid laid = lay_out(std::move(graph), target_taking(takes));
      int pinned = 0;
      const auto count = [&](const Value* value) {
        if (!value->layout() || !value->layout()->pinned) return;
        ++pinned;
        EXPECT_EQ(value->layout()->text, text);
        EXPECT_EQ(value->name(), name);
      };
      count(laid.graph->body().input(0));
      for (const Op& op : laid.graph->body()) count(op.result());
      EXPECT_EQ(pinned, *name == 'w' ? 2 : 1) << print(*laid.graph);
      laid.check();
      if (std::string_view(name) == "middle") {
        EXPECT_THAT(laid.report.to_string(), HasSubstr("pin of 'middle'"));
      }
    }
  }
}

TEST(AssignLayouts, RegionsReadRowMajor) {
  auto graph = graph_of(R"(graph @g(%c: bool[], %x: f32[1,3,4,4]) -> (%y) {
    %p = MaxPool %x {kernel_shape = [1, 1]}
    %y = If %c (() -> %a { %a = Relu %p }, () -> %p {})
  })");
  const Laid laid = lay_out(std::move(graph), target_taking(kNhwc));
  EXPECT_EQ(laid.report.count(Kind::reorder), 2u);
  EXPECT_THAT(laid.report.steps[1].forced_by[0], HasSubstr("If"));
}

// A block of ResNet after its normalisations have been folded.
std::unique_ptr<Graph> residual_block() {
  auto graph = std::make_unique<Graph>("block");
  Builder b(graph->body());
  std::mt19937 random(11);
  const auto conv = [&](Value* x, int64_t inputs, int64_t outputs, int64_t kernel) {
    Value* weight = b.constant(random_tensor(random, kF32, {outputs, inputs, kernel, kernel}));
    return b
        .op("Conv", {x, weight, b.constant(random_tensor(random, kF32, {outputs}))},
            {{"pads", Attribute::Integers(4, kernel / 2)}})
        .value();
  };
  Value* x = graph->body().add_input("x", Type(kF32, Shape(Dims{1, 5, 6, 6})));
  Value* y = conv(b.op("Relu", {conv(x, 5, 8, 3)}).value(), 8, 8, 3);
  y = b.op("Relu", {b.op("Add", {y, conv(x, 5, 8, 1)}).value()}).value();
  graph->body().add_output(y, "y");
  return graph;
}

// The operators except constants, each with the layout of its result.
std::string layouts_of(const Graph& graph) {
  std::string out;
  for (const Op& op : graph.body()) {
    if (isa<Constant>(op)) continue;
    out += str(op.name(), " ", op.result()->layout() ? op.result()->layout()->text : "row-major", "\n");
  }
  return out;
}

TEST(AssignLayouts, AResidualBlockHasReordersAtItsEdgesOnly) {
  const Laid nchw = lay_out(residual_block(), target_taking(kPlain));
  EXPECT_THAT(nchw.report.steps, IsEmpty());
  EXPECT_EQ(print(*nchw.graph), print(*nchw.plain));

  const Laid nhwc = lay_out(residual_block(), target_taking(kNhwc));
  // The last one may as well stand behind the last Relu: it costs the same there.
  EXPECT_EQ(layouts_of(*nhwc.graph), R"(layout.Reorder NHWC
Conv NHWC
Relu NHWC
Conv NHWC
Conv NHWC
Add NHWC
layout.Reorder row-major
Relu row-major
)");
  EXPECT_EQ(nhwc.report.count(Kind::reorder), 2u);
  EXPECT_TRUE(nhwc.report.proven);
  nhwc.check(0);
}

TEST(AssignLayouts, ExtentsThatOnlyARunShows) {
  const Dim batch(Expr::symbol("N"));
  const Laid plain = lay_out(two_convs("Sigmoid", 5, kF32, batch), target_taking(kPlain | kNhwc));
  EXPECT_THAT(plain.report.steps, IsEmpty());
  for (const unsigned takes : {unsigned(kNhwc), unsigned(kBlocked)}) {
    const Laid laid = lay_out(two_convs("Sigmoid", 5, kF32, batch), target_taking(takes));
    EXPECT_EQ(laid.report.count(Kind::reorder), 2u);
    for (const int64_t n : {1, 2, 5}) laid.check(1e-5, {{"N", n}});
  }
  // A rank that is not known: row-major only.
  auto graph = graph_of("graph @g(%x: f32[*]) -> (%y) {\n %y = MaxPool %x {kernel_shape = [1, 1]}\n}");
  const auto only = assign_layouts(*graph, target_taking(kNhwc));
  ASSERT_FALSE(only.ok());
  EXPECT_THAT(only.error().to_string(), HasSubstr("no kernel of the target fits"));
  EXPECT_THAT(only.error().to_string(), HasSubstr("MaxPool"));
  EXPECT_THAT(only.error().to_string(), HasSubstr("NHWC"));
}

TEST(AssignLayouts, PinnedValuesOfAnyBatch) {
  for (const unsigned takes : {0u, unsigned(kPlain), unsigned(kNhwc), unsigned(kBlocked)}) {
    for (const char* name : {"x", "middle", "y"}) {
      for (const char* text : {"NHCW{3c}", "NCHW{4n}", "CHWN", "NCHW{2n!}", "(n, c, h, w) -> (w, n, c, h)"}) {
        SCOPED_TRACE(str("takes ", takes, ", pinned ", name, " in ", text));
        auto graph = two_convs("Sigmoid", 5, kF32, Dim(Expr::symbol("N")));
        ASSERT_TRUE(set_layout(*graph, name, text, "NCHW").ok());
        const Laid laid = lay_out(std::move(graph), target_taking(takes));
        EXPECT_THAT(print(*laid.graph), HasSubstr("pinned"));
        for (const int64_t n : {2, 4, 6}) laid.check(1e-5, {{"N", n}});
      }
    }
  }
}

// Two extents that may or may not be equal: nothing is known about padding.
TEST(AssignLayouts, ExtentsThatMayBeBroadcastStayRowMajor) {
  auto graph = graph_of(R"(graph @g(%x: f32[N,3] in "NC{4n}" pinned, %s: f32[M,3]) -> (%y) {
    %y = Add %x, %s
  })");
  const Laid laid = lay_out(std::move(graph), target_taking(kPlain));
  EXPECT_EQ(laid.op("Add").result()->layout(), nullptr);
  laid.check(0, {{"N", 5}, {"M", 1}});
  laid.check(0, {{"N", 1}, {"M", 5}});
  laid.check(0, {{"N", 5}, {"M", 5}});
}

TEST(AssignLayouts, WrongKernelsAreNamed) {
  const auto message = [](std::vector<LayoutKernel::Port> operands) -> std::string {
    LayoutKernel kernel;
    kernel.operands = std::move(operands);
    kernel.name = "mine";
    AssignLayoutsOptions options;
    options.kernels = [&](const Op& op) {
      return op.name().view() == "Relu" ? std::vector{kernel} : std::vector<LayoutKernel>();
    };
    const auto report = assign_layouts(*two_convs("Relu"), options);
    return report.ok() ? std::string() : report.error().to_string();
  };
  EXPECT_THAT(message({{"NHWC", "", false}, {"NHWC", "", false}}), HasSubstr("kernel 'mine' has layouts for 2"));
  const std::string wrong = message({{"NHWQ", "NCHW", false}});
  EXPECT_THAT(wrong, HasSubstr("NHWQ"));
  EXPECT_THAT(wrong, HasSubstr("kernel 'mine'"));
  EXPECT_THAT(wrong, HasSubstr("Relu"));
}

// ---- Random networks, and what becomes of them when a rewrite is left out ----

// A change that removes or inverts something that the pass wrote. Most changes violate a condition; some give another,
// equally good solution.
struct Mutant {
  std::string what;
  std::function<void(Graph&)> change;
  bool as_good = false;
};

// The op at the same place in a clone.
Op& op_at(Graph& graph, size_t index) {
  Op* op = graph.body().first();
  while (index-- > 0) op = op->next();
  return *op;
}
void change_layout(Value& value, const std::function<void(ValueLayout&)>& change) {
  auto layout = std::make_shared<ValueLayout>(*value.layout());
  change(*layout);
  value.set_layout(std::move(layout));
}
bool feeds_zero_kernel(const Value& value, const AssignLayoutsOptions& options) {
  for (const Use* use : value.uses()) {
    for (const LayoutKernel& kernel : options.kernels(*use->user())) {
      if (use->index() < kernel.operands.size() && kernel.operands[use->index()].needs_zero_pad) return true;
    }
  }
  return false;
}

// Whether the padding is relied on by a kernel, or by a value that promises zeros because this one has them.
bool is_relied_on(const Value& value, const AssignLayoutsOptions& options) {
  if (feeds_zero_kernel(value, options)) return true;
  return std::ranges::any_of(value.uses(), [&](const Use* use) {
    const Op& user = *use->user();
    if (isa<LayoutReorder>(user) || isa<LayoutScrub>(user)) return false;
    const auto kernels = options.kernels(user);
    const auto passes_on = [](const LayoutKernel& kernel) { return kernel.pad == PadEffect::same; };
    if (!kernels.empty() && std::ranges::none_of(kernels, passes_on)) return false;
    return user.result()->layout() && user.result()->layout()->pad == PadState::zero;
  });
}

// The cost as the pass computes it: reorders of values, scrubs by the bytes that they may write, the cheapest kernel.
double cost_of(const Graph& graph, const AssignLayoutsOptions& options) {
  const auto layout_of = [](const Value& value) { return resolve_layout(value).value(); };
  const auto lies_as = [](const Value& value, const LayoutKernel::Port& port) {
    return (value.layout() ? value.layout()->text : "") == port.layout;
  };
  double cost = 0;
  for (const Op& op : graph.body()) {
    if (isa<LayoutReorder>(op)) {
      cost += reorder_cost(layout_of(*op.operand(0)), layout_of(*op.result()), options.costs).value();
    } else if (isa<LayoutScrub>(op)) {
      cost += static_cast<double>(layout_of(*op.result()).bytes());
    }
    double least = 0;
    for (bool first = true; const LayoutKernel& kernel : options.kernels(op)) {
      bool fits = lies_as(*op.result(), kernel.results[0]);
      for (size_t i = 0; i < kernel.operands.size(); ++i) fits &= lies_as(*op.operand(i), kernel.operands[i]);
      if (fits && (first || kernel.cost < least)) least = kernel.cost, first = false;
    }
    cost += least;
  }
  return cost;
}

std::vector<Mutant> mutants_of(const Graph& graph, const AssignLayoutsOptions& options) {
  std::vector<Mutant> mutants;
  size_t at = 0;
  for (const Op& op : graph.body()) {
    const size_t i = at++;
    const auto add = [&](const char* what, std::function<void(Op&)> change, bool as_good = false) {
      mutants.push_back({str(what, " ", op.describe()), [i, change](Graph& g) { change(op_at(g, i)); }, as_good});
    };
    if (isa<LayoutReorder>(op) || isa<LayoutScrub>(op)) {
      add("drop", [](Op& it) { it.result()->replace_all_uses_with(it.operand(0)); });
    }
    if (op.attributes().has(Name(kLayoutKernelAttribute))) {
      add("unmark", [](Op& it) { it.attributes().erase(Name(kLayoutKernelAttribute)); });
    }
    const Value& made = *op.result();
    if (!made.layout()) continue;
    if (isa<Constant>(op)) {
      // A kernel takes its constants in one layout. One that is broadcast to an elementwise operator has what is left
      // of that operator's layout, which is the same as row-major where all but one of its extents are 1.
      const bool of_kernel = !options.kernels(*made.first_use()->user()).empty();
      add(
          "unfold", [](Op& it) { it.result()->set_layout(nullptr); }, !of_kernel);
      add("change", [](Op& it) {
        const Tensor& old = *constant_of(it.result());
        Tensor tensor = *Tensor::zeros(old.element(), old.dims());
        for (int64_t k = 0; k < old.size(); ++k) tensor.set_double(k, old.double_at(k) + (k == 0));
        it.set_attr("value", tensor);
      });
    }
    if (made.layout()->pad == PadState::dirty) {
      add("promise zeros of", [](Op& it) { change_layout(*it.result(), [](auto& l) { l.pad = PadState::zero; }); });
    } else if (made.layout()->pad == PadState::zero) {
      // Less than is true: wrong only where somebody relies on it.
      add(
          "promise nothing of", [](Op& it) { change_layout(*it.result(), [](auto& l) { l.pad = PadState::dirty; }); },
          !is_relied_on(made, options));
    }
  }
  return mutants;
}

struct Tally {
  int graphs = 0, reorders = 0, scrubs = 0, constants = 0, equal_bits = 0, proven = 0;
  int mutants = 0, killed = 0, as_good = 0;
};

// Another solution: its layouts can be run, it has the same cost, and its results have the same bits.
void expect_as_good(const Graph& laid, const Graph& changed, const AssignLayoutsOptions& options,
                    std::span<const Datum> inputs) {
  const auto bits = run_poisoned(laid, inputs, PoisonPadding::none);
  ASSERT_TRUE(bits.ok()) << bits.error().to_string();
  const auto good = check_laid_out(changed, options, inputs, *bits, 0);
  EXPECT_TRUE(good.ok()) << good.error().to_string();
  EXPECT_EQ(cost_of(changed, options), cost_of(laid, options));
}

void check_mutants(const Graph& laid, const AssignLayoutsOptions& options, std::span<const Datum> inputs,
                   std::span<const Datum> wanted, Tally& tally) {
  for (const Mutant& mutant : mutants_of(laid, options)) {
    const auto changed = laid.clone();
    mutant.change(*changed);
    if (mutant.as_good) {
      SCOPED_TRACE(mutant.what);
      expect_as_good(laid, *changed, options, inputs);
      ++tally.as_good;
      continue;
    }
    const bool caught = !check_laid_out(*changed, options, inputs, wanted).ok();
    ++tally.mutants;
    tally.killed += caught;
    EXPECT_TRUE(caught) << mutant.what << " in\n" << print(laid);
  }
}

void check_network(uint64_t seed, bool with_mutants, Tally& tally) {
  SCOPED_TRACE(str("seed ", seed));
  static constexpr unsigned kTargets[] = {kNhwc, kBlocked, kPlain | kBlocked, kPlain | kNhwc | kBlocked | kIntoBlocks,
                                          kPlain | kBlocked | kIntoBlocks};
  NetworkBuilder builder(seed);
  const auto plain = builder.make(4 + static_cast<int>(seed % 24));
  const auto inputs = builder.inputs(*plain);
  const auto options = target_taking(kTargets[seed % std::size(kTargets)], seed % 3);
  const auto wanted = run_poisoned(*plain, inputs, PoisonPadding::none);
  ASSERT_TRUE(wanted.ok()) << wanted.error().to_string();
  const auto laid = plain->clone();
  const auto report = assign_layouts(*laid, options);
  ASSERT_TRUE(report.ok()) << report.error().to_string() << print(*plain);
  const auto good = check_laid_out(*laid, options, inputs, *wanted);
  ASSERT_TRUE(good.ok()) << good.error().to_string() << "\n" << print(*laid);
  ++tally.graphs;
  tally.proven += report->proven;
  tally.reorders += static_cast<int>(report->count(Kind::reorder));
  tally.scrubs += static_cast<int>(report->count(Kind::scrub));
  tally.constants += static_cast<int>(report->count(Kind::constant));
  tally.equal_bits += check_laid_out(*laid, options, inputs, *wanted, 0).ok();
  if (with_mutants) check_mutants(*laid, options, inputs, *wanted, tally);
}

TEST(AssignLayouts, RandomNetworksMeanTheSame) {
  Tally tally;
  for (uint64_t seed = 0; seed < 400 && !HasFailure(); ++seed) check_network(seed, false, tally);
  EXPECT_EQ(tally.graphs, 400);
  EXPECT_GT(tally.reorders, 400);
  EXPECT_GT(tally.scrubs, 20);
  EXPECT_GT(tally.constants, 200);
  RecordProperty("proven", tally.proven);
  std::printf("%d graphs, %d reorders, %d scrubs, %d constants; %d of equal bits, %d proven\n", tally.graphs,
              tally.reorders, tally.scrubs, tally.constants, tally.equal_bits, tally.proven);
}

TEST(AssignLayouts, EveryRewriteIsNeeded) {
  Tally tally;
  for (uint64_t seed = 1000; seed < 1080 && !HasFailure(); ++seed) check_network(seed, true, tally);
  EXPECT_GT(tally.mutants, 500);
  EXPECT_EQ(tally.killed, tally.mutants);
  EXPECT_GT(tally.as_good, 50);
  std::printf("%d mutants, %d killed; %d more are as good as what they were\n", tally.mutants, tally.killed,
              tally.as_good);
}

}  // namespace
}  // namespace tenon::testing
