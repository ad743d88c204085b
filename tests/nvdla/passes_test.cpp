// The passes by their text form: the result of tensor selection, which chains become one operator and which do not, the
// preparation of float models, and the output of the later phases.
#include <gmock/gmock.h>

#include "layers.hpp"
#include "nvdla/passes.hpp"

namespace tenon::nvdla {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::Not;

MachinePtr machine_of(const TargetDescription& target) {
  EXPECT_TRUE(create_backend(target).ok());  // registers the operators
  return std::make_shared<const Machine>(Machine{target, *Hardware::of(target)});
}
MachinePtr full() { return machine_of(target_of("nvdla-full")); }

// nvdla-full with this list under `fusions`.
TargetDescription with_fusions(const std::vector<std::vector<std::string>>& chains) {
  TargetDescription target = target_of("nvdla-full");
  Setting list = Setting::list();
  for (const auto& chain : chains) {
    Setting names = Setting::list();
    for (const std::string& name : chain) names.add(Setting::word(name));
    list.add(std::move(names));
  }
  Setting options = Setting::map();
  for (const Setting& option : target.options.items())
    if (option.key() != "fusions") options.add(option.key(), option);
  target.options = std::move(options.add("fusions", std::move(list)));
  return target;
}

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
  return graph.ok() ? *std::move(graph) : std::make_unique<Graph>();
}

void run(Graph& graph, const std::vector<Pass>& passes) {
  PassManager manager;
  for (const Pass& pass : passes) ASSERT_TRUE(manager.add(pass).ok());
  ASSERT_TRUE(manager.add("remove-dead").ok());
  const auto report = manager.run(graph, {.verify_each = true});
  ASSERT_TRUE(report.ok()) << report.error().to_string();
}

// Names of the operators after selection and fusion, with the bounds and windows of products.
std::string fused(std::string_view text, const TargetDescription& target = target_of("nvdla-full")) {
  const MachinePtr machine = machine_of(target);
  auto graph = parsed(text);
  auto fuse = fuse_pass(machine);
  EXPECT_TRUE(fuse.ok()) << (fuse.ok() ? "" : fuse.error().to_string());
  run(*graph, {select_pass(machine), *fuse});
  std::string list;
  for (const Op& op : graph->body()) {
    if (op.name().view() == "Constant") continue;
    list += str(list.empty() ? "" : " ", op.attr<std::string>("as"));
    if (op.attributes().has("low")) list += str(">=", op.attr<float>("low"));
    if (op.attributes().has("high")) list += str("<=", op.attr<float>("high"));
    if (op.attributes().has("pool_kernel")) list += str(" pool ", op.attr<Integers>("pool_kernel")[0]);
  }
  return list;
}

std::string network(std::string_view body, std::string_view outputs = "%y") {
  return str("graph @g(%x: f16[1,3,8,8]) -> ", outputs, " {\n  %w = Constant {value = splat<f16[4,3,1,1]: 0.5>}\n",
             body, "\n}\n");
}

constexpr std::string_view kConv = "  %c = Conv %x, %w\n";
constexpr std::string_view kPool = "MaxPool %r {kernel_shape = [2, 2], strides = [2, 2]}\n";

TEST(Fuse, ListedChains) {
  EXPECT_EQ(fused(network(str(kConv, "  %y = Relu %c"))), "Conv>=0");
  EXPECT_EQ(fused(network(str(kConv, "  %r = Relu %c\n  %y = ", kPool))), "Conv>=0 pool 2");
  EXPECT_EQ(fused("graph @g(%x: f16[1,8]) -> %y {\n  %w = Constant {value = splat<f16[8,4]: 0.5>}\n"
                  "  %c = Gemm %x, %w\n  %y = Relu %c\n}\n"),
            "Gemm>=0");
}

TEST(Fuse, NotWhatIsNotListed) {
  EXPECT_EQ(fused(network(str(kConv, "  %y = MaxPool %c {kernel_shape = [2, 2]}"))), "Conv MaxPool");
  EXPECT_EQ(fused(network(str(kConv, "  %r = Relu %c\n  %y = AveragePool %r {kernel_shape = [2, 2]}"))),
            "Conv>=0 AveragePool");
  const std::string relu = network(str(kConv, "  %y = Relu %c"));
  const std::string clip =
      network(str("  %lo = Constant {value = dense<f16[]: 0.0>}\n  %hi = Constant {value = dense<f16[]: 6.0>}\n", kConv,
                  "  %y = Clip %c, %lo, %hi"));
  const std::string pool = network(str(kConv, "  %r = Relu %c\n  %y = ", kPool));
  EXPECT_EQ(fused(clip), "Conv Clip>=0<=6");
  EXPECT_EQ(fused(clip, with_fusions({{"Conv", "Clip"}})), "Conv>=0<=6");
  EXPECT_EQ(fused(relu, with_fusions({{"Gemm", "Relu"}})), "Conv Relu>=0");
  EXPECT_EQ(fused(relu, with_fusions({})), "Conv Relu>=0");
  EXPECT_EQ(fused(pool, with_fusions({{"Conv", "Relu"}})), "Conv>=0 MaxPool");
  EXPECT_EQ(fused(pool, with_fusions({{"Conv", "MaxPool"}})), "Conv Relu>=0 MaxPool");
}

TEST(Fuse, NotWhatSomebodyElseReads) {
  EXPECT_EQ(fused(network(str(kConv, "  %r = Relu %c\n  %y = Add %r, %c"))), "Conv Relu>=0 Add");
  EXPECT_EQ(fused(network(str(kConv, "  %y = Relu %c"), "(%y, %c)")), "Conv Relu>=0") << "an output is a user";
  EXPECT_EQ(fused(network(str(kConv, "  %r = Relu %c\n  %y = ", kPool), "(%y, %r)")), "Conv>=0 MaxPool");
}

// A second bound would need a second unit.
TEST(Fuse, OneActivationOnly) {
  EXPECT_EQ(fused(network(str(kConv, "  %r = Relu %c\n  %y = Relu %r"))), "Conv>=0 Relu>=0");
}

// The ReLU of a quantised convolution is in its bounds.
TEST(Fuse, QuantisedConvolutionAndPool) {
  const auto net = [](int64_t clip_min) {
    return str(
        "graph @g(%x: i8[1,3,8,8]) -> %y {\n  %w = Constant {value = splat<i8[4,3,1,1]: 1>}\n  %c = fused.QConv %x, %w "
        "{clip_min = ",
        clip_min, "}\n  %y = fused.QMaxPool %c {kernel_shape = [2, 2]}\n}\n");
  };
  EXPECT_EQ(fused(net(0), target_of("nvdla-small")), "Conv>=0<=127 pool 2");
  EXPECT_EQ(fused(net(-128), target_of("nvdla-small")), "Conv>=-128<=127 MaxPool") << "no ReLU between them";
}

TEST(Fuse, RefusesChainsThatNoUnitsDo) {
  for (const std::vector<std::string>& chain : std::vector<std::vector<std::string>>{
           {"Conv"}, {"Conv", "Tanh"}, {"Relu", "Conv"}, {"Gemm", "Relu", "MaxPool"}}) {
    const auto backend = create_backend(with_fusions({chain}));
    ASSERT_FALSE(backend.ok()) << chain.front();
    EXPECT_THAT(backend.error().message(),
                HasSubstr("is none of Conv or Gemm, then Relu or Clip, then behind Conv MaxPool"));
  }
}

// ---- Preparation ----

constexpr std::string_view kFloats = R"(graph @g(%x: f32[1,3,8,8]) -> %y {
  %w = Constant {value = splat<f32[4,3,1,1]: 0.5>}
  %c = Conv %x, %w "c"
  %r = Relu %c "r"
  %y = Softmax %r "s"
}
)";

TEST(PrepareHalf, CastsAtTheEnds) {
  auto graph = parsed(kFloats);
  run(*graph, {prepare_half_pass(full())});
  EXPECT_EQ(print(*graph), R"(graph @g(%x: f32[1,3,8,8]) -> %y {
  %0 = Cast %x {to = type<f16[*]>} : f16[1,3,8,8]
  %w = Constant {value = splat<f16[4,3,1,1]: 0.5>} : f16[4,3,1,1]
  %c = nvdla.Conv %0, %w "c" {as = "Conv", atom = 16, atomic_c = 64, dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]} : f16[1,4,8,8]
  %r = Relu %c "r" : f16[1,4,8,8]
  %r'1 = Cast %r {to = type<f32[*]>} : f32[1,4,8,8]
  %y = Softmax %r'1 "s" : f32[1,4,8,8]
}
)");
}

// Operators that the machine would refuse in f16 are unchanged.
TEST(PrepareHalf, LeavesWhatIsRefused) {
  auto graph = parsed(R"(graph @g(%x: f32[2,3,8,8], %v: f32[1,4]) -> (%y, %f) {
  %w = Constant {value = splat<f32[4,3,1,1]: 0.5>}
  %y = Conv %x, %w
  %f = Flatten %v
}
)");
  const std::string before = print(*graph);
  run(*graph, {prepare_half_pass(full())});
  EXPECT_EQ(print(*graph), before);
}

// ---- The other phases ----

constexpr std::string_view kHalves = R"(graph @g(%x: f16[1,17,6,5]) -> %y {
  %w = Constant {value = splat<f16[4,17,1,1]: 0.5>}
  %c = Conv %x, %w "c"
  %r = Relu %c "r"
  %y = Add %r, %r "a"
}
)";

TEST(Phases, WriteWhatTheyPromise) {
  auto graph = parsed(kHalves);
  auto backend = create_backend(target_of("nvdla-full"));
  ASSERT_TRUE(backend.ok());
  PassManager passes;
  for (const auto add :
       {&TargetBackend::add_tensor_sel, &TargetBackend::add_tensor_sched, &TargetBackend::add_mem_alloc})
    ASSERT_TRUE(((**backend).*add)(passes).ok());
  ASSERT_TRUE(passes.run(*graph, {.verify_each = true}).ok());
  EXPECT_EQ(print(*graph), R"(graph @g(%x: f16[1,17,6,5] in "NCHW{16c};align(H)=32B" pinned) -> %y {
  %w = Constant {value = splat<f16[4,17,1,1]: 0.5>} : f16[4,17,1,1] in "KCRS{16k~64c~};size=128B" pinned
  %r = nvdla.Conv %x, %w "c+r" {as = "Conv", atom = 16, atomic_c = 64, band_rows = 6, data_banks = 1, dilations = [1, 1], dram = [0, 2944, 1920], group = 1, low = 0.0, pads = [0, 0, 0, 0], plan = "all data, all weights", strides = [1, 1], weight_banks = 1} : f16[1,4,6,5] in "NCHW{16c};align(H)=32B" pinned
  %y = nvdla.Sdp %r, %r "a" {as = "Add", dram = [1920, 1920, 0]} : f16[1,4,6,5] in "NCHW{16c};align(H)=32B" pinned
}
properties {
  nvdla.inputs = "0"
  nvdla.outputs = "0"
  nvdla.sizes = "2880 2880 3200"
}
)");
}

TEST(Phases, RunInTheirOrder) {
  auto backend = create_backend(target_of("nvdla-full"));
  ASSERT_TRUE(backend.ok());
  const auto names = [&](Result<void> (TargetBackend::*add)(PassManager&)) {
    PassManager passes;
    EXPECT_TRUE(((**backend).*add)(passes).ok());
    std::string list;
    for (const Pass& pass : passes.passes()) list += str(list.empty() ? "" : " ", pass.name);
    return list;
  };
  EXPECT_EQ(names(&TargetBackend::add_prepare), "infer-types prepare-half remove-dead");
  EXPECT_EQ(names(&TargetBackend::add_tensor_sel), "infer-types select-nvdla fuse-nvdla remove-dead lay-out-nvdla");
  EXPECT_EQ(names(&TargetBackend::add_tensor_sched), "plan-nvdla");
  EXPECT_EQ(names(&TargetBackend::add_mem_alloc), "place-nvdla");
  EXPECT_EQ(names(&TargetBackend::add_code_emit), "encode-nvdla");
}

}  // namespace
}  // namespace tenon::nvdla
