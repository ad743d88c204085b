// Results that are written as parts of a Concat's result: programs as text, and their results.
#include <gmock/gmock.h>

#include "irgen/irgen_testing.hpp"

namespace tenon::irgen {
namespace {

using namespace irgen::testing;
using ::testing::HasSubstr;
using ::testing::Not;

// A strided Neg, which may be requested with parts; all other kernels are the reference's.
class PartKernels final : public KernelSource {
 public:
  explicit PartKernels(bool writes_parts = true, bool refuses = false)
      : writes_parts_(writes_parts), refuses_(refuses) {}
  std::string_view name() const override { return "parts"; }
  Result<KernelChoice> kernel(const KernelRequest& request) const override {
    if (!request.op.is("Neg")) return reference_kernels().kernel(request);
    const bool part = std::ranges::any_of(request.result_wholes, &Shape::ranked);
    if (part && refuses_) return error(Code::unsupported, "no parts of ", request.result_wholes[0].to_string());
    const auto negate = [](program::CallContext& c) -> Result<void> {
      const program::BufferView &x = c.operands[0], &y = c.operands[1];
      for (int64_t i = 0; i < x.elements(); ++i) {
        int64_t rest = i, from = 0, to = 0;
        for (size_t d = 0; d < x.dims.size(); ++d) {
          from += rest % x.dims[d].extent * x.dims[d].stride;
          to += rest % x.dims[d].extent * y.dims[d].stride;
          rest /= x.dims[d].extent;
        }
        *reinterpret_cast<float*>(y.base + to) = -*reinterpret_cast<const float*>(x.base + from);
      }
      return {};
    };
    return KernelChoice{.kernel = program::make_kernel("Neg", negate), .writes_parts = writes_parts_};
  }

 private:
  const bool writes_parts_, refuses_;
};

// The program, after checking that it computes what the graph interpreter computes.
std::string text_of(std::string_view text, const PartKernels& kernels = PartKernels(), bool share_memory = true) {
  const auto graph = parsed(text);
  const auto program = from_graph(*graph, kernels, {.share_memory = share_memory});
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  if (!program.ok()) return "";
  const auto checked = program::verify(program->program);
  EXPECT_TRUE(checked.ok()) << checked.error().to_string();
  std::mt19937 random(5);
  std::vector<Datum> inputs;
  for (size_t i = 0; i < graph->body().input_count(); ++i) {
    Dims dims;
    for (const Dim& dim : graph->body().input(i)->type().shape().dims())
      dims.push_back(dim.is_static() ? dim.value() : 3);
    inputs.emplace_back(tenon::testing::random_tensor(random, kF32, dims));
  }
  const auto interpreter = Interpreter::prepare(*graph);
  EXPECT_TRUE(interpreter.ok());
  for (const bool contract : {false, true}) {
    const auto got = interpreted(*program, inputs, contract);
    EXPECT_TRUE(got.ok()) << got.error().to_string();
    if (got.ok()) expect_identical(*(*interpreter)->run(inputs), *got, program::print(program->program));
  }
  return program::print(program->program);
}

constexpr std::string_view kHalves = R"(graph @net(%x: f32[N,16], %w: f32[N,20]) -> (%y) {
    %a = Neg %x : f32[N,16]
    %b = Neg %w : f32[N,20]
    %y = Concat %a, %b {axis = 1} : f32[N,36]
  })";

TEST(Parts, AreWrittenWhereTheConcatHasThem) {
  EXPECT_EQ(text_of(kHalves), R"(program @net(N) {
  input %x : f32 rank 2
  input %w : f32 rank 2
  output %y : f32 rank 2
  view %a : f32 = %y at 0 [0 +: 16 stride 4, 0 +: N stride 144] {
    call Neg(in %x, out %a) as "Neg"
  }
  view %b : f32 = %y at 64 [0 +: 20 stride 4, 0 +: N stride 144] {
    call Neg(in %w, out %b) as "Neg"
  }
}
)");
}

TEST(Parts, OfWhatOthersMakeAreCopied) {
  const std::string text = text_of(R"(graph @net(%x: f32[3,16], %w: f32[3,20]) -> (%y) {
    %a = Neg %x : f32[3,16]
    %y = Concat %w, %a {axis = 1} : f32[3,36]
  })");
  EXPECT_THAT(text, HasSubstr("view %a : f32 = %y at 80 [0 +: 16 stride 4, 0 +: 3 stride 144]"));
  EXPECT_THAT(text, HasSubstr("copy %y[0 +: 20, 0 +: 3](i0, i1) = %w(i0, i1)"));
}

// The inner one is in the outer one, and so are its operands.
TEST(Parts, OfPartsLieInTheOuterOne) {
  const std::string text = text_of(R"(graph @net(%x: f32[3,5,16], %w: f32[3,5,20], %v: f32[3,2,36]) -> (%y) {
    %a = Neg %x : f32[3,5,16]
    %b = Neg %w : f32[3,5,20]
    %i = Concat %a, %b {axis = 2} : f32[3,5,36]
    %y = Concat %v, %i {axis = 1} : f32[3,7,36]
  })");
  EXPECT_THAT(text, HasSubstr("view %b : f32 = %y at 352 [0 +: 20 stride 4, 0 +: 5 stride 144, 0 +: 3 stride 1008]"));
  EXPECT_THAT(text, Not(HasSubstr("local")));
}

TEST(Parts, ThatOthersReadOrThatAreShortAreCopied) {
  EXPECT_THAT(text_of(R"(graph @net(%x: f32[3,16]) -> (%y, %z) {
    %a = Neg %x : f32[3,16]
    %y = Concat %x, %a {axis = 1} : f32[3,32]
    %z = Softmax %a : f32[3,16]
  })"),
              HasSubstr("local %a"));
  EXPECT_THAT(text_of(R"(graph @net(%x: f32[3,15]) -> (%y) {
    %a = Neg %x : f32[3,15]
    %y = Concat %x, %a {axis = 1} : f32[3,30]
  })"),
              HasSubstr("local %a"))
      << "60 bytes";
  EXPECT_THAT(text_of(R"(graph @net(%x: f32[3,16]) -> (%y) {
    %a = Neg %x : f32[3,16]
    %y = Concat %a, %a {axis = 1} : f32[3,32]
  })"),
              HasSubstr("local %a"));
}

TEST(Parts, AreCopiedWhereTheKernelIsMadeForDenseResultsAlone) {
  EXPECT_THAT(text_of(kHalves, PartKernels(/*writes_parts=*/false)), HasSubstr("local %a"));
  EXPECT_THAT(text_of(kHalves, PartKernels(true, /*refuses=*/true)), HasSubstr("local %a"));
  EXPECT_THAT(text_of(kHalves, PartKernels(), /*share_memory=*/false), HasSubstr("local %a"));
}

// Columns of a row that is joined to the rows: both are in %y, but there must be a copy between them.
TEST(Parts, CopiesWithinOneStorageStay) {
  const std::string text = text_of(R"(graph @net(%x: f32[2,4]) -> (%y) {
    %a = Softmax %x : f32[2,4]
    %b = Constant {value = dense<i64[1]: 1>} : i64[1]
    %e = Constant {value = dense<i64[1]: 3>} : i64[1]
    %s = Slice %a, %b, %e, %b : f32[2,2]
    %l = Constant {value = dense<i64[2]: 1, 4>} : i64[2]
    %r = Reshape %s, %l : f32[1,4]
    %y = Concat %a, %r {axis = 0} : f32[3,4]
  })");
  EXPECT_THAT(text, HasSubstr("as \"Slice\""));
}

}  // namespace
}  // namespace tenon::irgen
