// Products and convolutions of work groups on a CPU: a kernel for all extents, at extents around those of its tile,
// compared with the reference. Elements are small integers, so that sums are exact in any order.
#include <gmock/gmock.h>

#include <support_lib/environment.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon/tensor/compare.hpp>

#include "graph_support.hpp"
#include "opencl/compute/group_tile.hpp"

namespace tenon::opencl::testing {
namespace {

using tenon::testing::pick;
using tenon::testing::random_tensor;
using ::testing::HasSubstr;

// Settings of a target's kernels: those of targets/opencl-gpu.yaml, and a group size that is not a power of two.
struct Groups {
  const char* name;
  int64_t group, lanes;
};
constexpr Groups kGpu{"gpu", 64, 4};
constexpr Groups kOdd{"odd", 6, 8};

class OpenclGroupProducts : public OpenclTest {
 protected:
  static TargetDescription groups(const Groups& of) {
    TargetDescription target = cpu_target();
    target.options.add("work_group", Setting::word(str(of.group)));
    target.options.add("lanes", Setting::word(str(of.lanes)));
    return target;
  }

  // A graph, compiled once.
  struct Compiled {
    std::unique_ptr<TargetBackend> backend;
    std::unique_ptr<Graph> graph;
    std::unique_ptr<Executable> executable;
  };
  Result<Compiled> compile(const Groups& of, std::string_view text) {
    Compiled made;
    TENON_TRY(backend, create_backend(guarded_target(groups(of))));
    TENON_TRY(graph, parse_graph(text));
    TENON_TRY(executable, compiled(*backend, graph->clone()));
    made.backend = std::move(backend), made.graph = std::move(graph), made.executable = std::move(executable);
    return made;
  }

  // `launches`: the expected number; 0: any.
  void right(const Compiled& of, const std::vector<Dims>& shapes, double tolerance = 0, size_t launches = 1) {
    std::vector<Datum> inputs;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const ElementType element = of.graph->body().input(i)->type().element();
      Tensor x = random_tensor(random_, element, shapes[i], element.is_signed_int() ? -3 : 0, 3);
      // Floats are integers as well.
      for (int64_t e = 0; element.is_float() && e < x.size(); ++e)
        x.set_double(e, static_cast<double>(pick(random_, -3, 3)));
      inputs.emplace_back(std::move(x));
    }
    std::string text;
    for (const Dims& dims : shapes) text += str(Shape(dims), ' ');
    SCOPED_TRACE(str(text, "seed ", seed_));
    const std::vector<Tensor> expected = on_reference(*of.graph, inputs);
    std::vector<OpProfile> profile;
    const auto got = run_on(*stream, *of.executable, inputs, {.profile = &profile});
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    if (launches > 0 && expected[0].size() > 0) {
      EXPECT_EQ(profile.size(), launches);
    }
    for (size_t i = 0; i < got->size(); ++i) {
      const Comparison comparison = compare((*got)[i], expected[i], {.rtol = tolerance, .atol = tolerance});
      ASSERT_TRUE(comparison.equal) << "output " << i << ": " << comparison.difference;
    }
  }

  // The tile of kernels whose extents are known only at run time.
  GroupTile tile_of(const Groups& of, ElementType work) const {
    const ComputeTarget target{this->target,
                               *table,
                               of.group,
                               static_cast<int>(of.lanes),
                               static_cast<int64_t>(device->info().local_bytes),
                               device->info().compute_units};
    return choose_group_tile({}, 1, work, target);
  }
  // A random extent around `tile`.
  int64_t around(int64_t tile) {
    const int64_t some[] = {1, tile - 1, tile, tile + 1, 2 * tile + 1, pick(random_, 1, 2 * tile)};
    return std::max<int64_t>(some[pick(random_, 0, 5)], 1);
  }

  uint32_t seed_ = tenon::testing::first_seed();
  std::mt19937 random_{seed_};
};

// Seed 901 of opencl_compute_fuzz_test, reduced: two of six items fetch nothing.
TEST_F(OpenclGroupProducts, ItemsWithoutAPlaceHarmNobody) {
  const auto conv = compile({"six", 6, 4}, R"(graph @g(%x: f32[2,9,5,8,34], %w: f32[4,9,2,4,1]) -> %y {
  %y = Conv %x, %w {dilations = [2, 2, 1], group = 1, pads = [2, 0, 0, 2, 3, 0], strides = [1, 3, 2]}
})");
  ASSERT_TRUE(conv.ok()) << conv.error().to_string();
  right(*conv, {{2, 9, 5, 8, 34}, {4, 9, 2, 4, 1}});
}

TEST_F(OpenclGroupProducts, MatMulAroundTheTile) {
  for (const Groups& of : {kGpu, kOdd}) {
    SCOPED_TRACE(of.name);
    const GroupTile tile = tile_of(of, kF32);
    auto made = compile(of, "graph @g(%a: f32[M,K], %b: f32[K,N]) -> %y { %y = MatMul %a, %b }");
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    for (int round = 0; round < 24; ++round) {
      const int64_t m = around(tile.block_rows()), n = around(tile.columns()), k = around(tile.depth);
      right(*made, {{m, k}, {k, n}});
    }
    right(*made, {{3, 0}, {0, 5}});
    right(*made, {{0, 4}, {4, 5}});
    right(*made, {{tile.block_rows() + 1, 200}, {200, tile.columns() + 1}});
  }
}

TEST_F(OpenclGroupProducts, GemmWhicheverWayOperandsLie) {
  constexpr const char* kC[] = {"f32[N]", "f32[M,1]", "f32[M,N]", "f32[1]"};
  for (int form = 0; form < 4; ++form) {
    const bool trans_a = form & 1, trans_b = form & 2;
    const Groups of = form == 1 ? kOdd : kGpu;
    const GroupTile tile = tile_of(of, kF32);
    SCOPED_TRACE(str("transA ", trans_a, ", transB ", trans_b, ", ", of.name));
    auto made = compile(of, str("graph @g(%a: f32[", trans_a ? "K,M" : "M,K", "], %b: f32[", trans_b ? "N,K" : "K,N",
                                "], %c: ", kC[form], ") -> %y { %y = Gemm %a, %b, %c {transA = ", int{trans_a},
                                ", transB = ", int{trans_b}, ", alpha = 2.0, beta = -1.0} }"));
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    for (int round = 0; round < 12; ++round) {
      const int64_t m = around(tile.block_rows()), n = around(tile.columns()), k = around(tile.depth);
      const Dims c[] = {{n}, {m, 1}, {m, n}, {1}};
      right(*made, {trans_a ? Dims{k, m} : Dims{m, k}, trans_b ? Dims{n, k} : Dims{k, n}, c[form]});
    }
  }
}

TEST_F(OpenclGroupProducts, BatchesAreRepeatedAndFolded) {
  auto both = compile(kGpu, "graph @g(%a: f32[A,B,M,K], %b: f32[C,D,K,N]) -> %y { %y = MatMul %a, %b }");
  ASSERT_TRUE(both.ok()) << both.error().to_string();
  right(*both, {{2, 3, 30, 9}, {2, 3, 9, 20}});
  right(*both, {{2, 1, 30, 9}, {1, 3, 9, 20}});
  right(*both, {{1, 1, 5, 9}, {2, 3, 9, 20}});
  right(*both, {{2, 3, 40, 9}, {2, 1, 9, 20}});
  right(*both, {{2, 3, 40, 9}, {1, 1, 9, 20}});
  right(*both, {{0, 3, 4, 9}, {1, 1, 9, 20}});
  auto shared = compile(kOdd, "graph @g(%a: f32[A,B,M,K], %b: f32[K,N]) -> %y { %y = MatMul %a, %b }");
  ASSERT_TRUE(shared.ok()) << shared.error().to_string();
  right(*shared, {{2, 3, 17, 9}, {9, 33}});
  right(*shared, {{3, 1, 1, 9}, {9, 33}});
  auto vector = compile(kGpu, "graph @g(%a: f32[K], %b: f32[B,K,N]) -> %y { %y = MatMul %a, %b }");
  ASSERT_TRUE(vector.ok()) << vector.error().to_string();
  right(*vector, {{37}, {3, 37, 70}});
}

// The items of a group divide the inner extent among them.
TEST_F(OpenclGroupProducts, FewRows) {
  for (const Groups& of : {kGpu, kOdd})
    for (const int64_t m : {1, 3, 8}) {
      SCOPED_TRACE(str(m, " rows, ", of.name));
      auto rows = compile(of, str("graph @g(%a: f32[", m, ",K], %b: f32[K,N]) -> %y { %y = MatMul %a, %b }"));
      ASSERT_TRUE(rows.ok()) << rows.error().to_string();
      auto columns = compile(of, str("graph @g(%a: f32[", m,
                                     ",K], %b: f32[N,K], %c: f32[N]) -> %y { %y = Gemm %a, "
                                     "%b, %c {transB = 1, alpha = 0.5} }"));
      ASSERT_TRUE(columns.ok()) << columns.error().to_string();
      for (int round = 0; round < 10; ++round) {
        const int64_t n = around(of.lanes * 16), k = around(of.lanes * 8);
        right(*rows, {{m, k}, {k, n}});
        right(*columns, {{m, k}, {n, k}, {n}});
      }
      right(*rows, {{m, 0}, {0, 3}});
      right(*columns, {{m, 1000}, {9, 1000}, {9}});
    }
}

TEST_F(OpenclGroupProducts, FewRowsThatLieByColumnsAndKnownExtents) {
  for (const char* text : {
           "graph @g(%a: f32[300,5], %b: f32[70,300]) -> %y { %y = Gemm %a, %b {transA = 1, transB = 1} }",
           "graph @g(%a: f32[30,5], %b: f32[30,70]) -> %y { %y = Gemm %a, %b {transA = 1} }",
           "graph @g(%a: f32[2,300], %b: f32[3,300]) -> %y { %y = Gemm %a, %b {transB = 1} }",
           "graph @g(%a: f32[4,1,200], %b: f32[200,37]) -> %y { %y = MatMul %a, %b }",
           "graph @g(%a: f32[3,4,1,20], %b: f32[3,1,20,37]) -> %y { %y = MatMul %a, %b }",
       }) {
    SCOPED_TRACE(text);
    auto made = compile(kGpu, text);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    std::vector<Dims> shapes;
    for (size_t i = 0; i < made->graph->body().input_count(); ++i)
      shapes.push_back(*made->graph->body().input(i)->type().shape().static_dims());
    right(*made, shapes);
  }
}

// A column of results is a row of the transposed product.
TEST_F(OpenclGroupProducts, OneColumn) {
  for (const bool trans_a : {false, true}) {
    SCOPED_TRACE(trans_a);
    auto gemm =
        compile(kGpu, str("graph @g(%a: f32[", trans_a ? "K,M" : "M,K",
                          "], %b: f32[K,1], %c: f32[M,1]) -> %y { %y = Gemm %a, %b, %c {transA = ", int{trans_a},
                          ", alpha = 2.0} }"));
    ASSERT_TRUE(gemm.ok()) << gemm.error().to_string();
    for (int round = 0; round < 8; ++round) {
      const int64_t m = around(64), k = around(32);
      right(*gemm, {trans_a ? Dims{k, m} : Dims{m, k}, {k, 1}, {m, 1}});
    }
  }
  auto batched = compile(kOdd, "graph @g(%a: f32[B,M,K], %b: f32[B,K,1]) -> %y { %y = MatMul %a, %b }");
  ASSERT_TRUE(batched.ok()) << batched.error().to_string();
  right(*batched, {{3, 50, 33}, {3, 33, 1}});
  auto vector = compile(kGpu, "graph @g(%a: f32[B,M,K], %b: f32[K]) -> %y { %y = MatMul %a, %b }");
  ASSERT_TRUE(vector.ok()) << vector.error().to_string();
  right(*vector, {{3, 50, 33}, {33}});
}

TEST_F(OpenclGroupProducts, OfOtherElements) {
  for (const std::string_view element : {"f16", "bf16", "f64", "i32", "i64", "u32"}) {
    if (element == "f64" && !target.has_feature(kFp64)) continue;
    SCOPED_TRACE(element);
    auto blocks =
        compile(kGpu, str("graph @g(%a: ", element, "[M,K], %b: ", element, "[K,N]) -> %y { %y = MatMul %a, %b }"));
    ASSERT_TRUE(blocks.ok()) << blocks.error().to_string();
    right(*blocks, {{65, 17}, {17, 63}});
    auto slices = compile(
        kGpu, str("graph @g(%a: ", element, "[2,K], %b: ", element, "[N,K]) -> %y { %y = Gemm %a, %b {transB = 1} }"));
    ASSERT_TRUE(slices.ok()) << slices.error().to_string();
    right(*slices, {{2, 70}, {33, 70}});
  }
}

TEST_F(OpenclGroupProducts, WithEpilogues) {
  constexpr const char* kText =
      "graph @g(%a: f32[B,M,K], %b: f32[B,K,N], %c: f32[M,1], %d: f32[B,1,N]) -> %y {\n"
      " %m = MatMul %a, %b\n %s = Add %m, %c\n %t = Mul %s, %d\n %u = Sub %t, %c\n %v = Neg %u\n %y = Relu %v\n}";
  for (const Groups& of : {kGpu, kOdd}) {
    auto made = compile(of, kText);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    right(*made, {{2, 33, 9}, {2, 9, 66}, {33, 1}, {2, 1, 66}});
    right(*made, {{1, 65, 17}, {1, 17, 5}, {65, 1}, {1, 1, 5}});
  }
  auto few = compile(kGpu,
                     "graph @g(%a: f32[2,K], %b: f32[N,K], %c: f32[N]) -> %y { %g = Gemm %a, %b, %c {transB = 1}\n %y "
                     "= Relu %g\n}");
  ASSERT_TRUE(few.ok()) << few.error().to_string();
  right(*few, {{2, 70}, {33, 70}, {33}});
}

TEST_F(OpenclGroupProducts, ConvolutionsOfImagesThatOnlyARunKnows) {
  struct Case {
    const char* weights;
    const char* attributes;
    int64_t channels, rank;
  };
  for (const Case& of :
       {Case{"20,6,3,3", "{pads = [1, 1, 1, 1]}", 6, 2}, Case{"9,5,1,1", "{}", 5, 2},
        Case{"12,3,2,3", "{group = 4, strides = [2, 1], dilations = [1, 2], pads = [0, 2, 1, 1]}", 12, 2},
        Case{"70,4,5", "{strides = [3], pads = [2, 4]}", 4, 1},
        Case{"8,2,2,2,3", "{pads = [1, 0, 1, 0, 1, 2]}", 2, 3}}) {
    SCOPED_TRACE(of.weights);
    const Groups form = of.rank == 2 ? kGpu : kOdd;
    const std::string spatial = of.rank == 1 ? "W" : of.rank == 2 ? "H,W" : "D,H,W";
    auto made = compile(form, str("graph @g(%x: f32[B,", of.channels, ",", spatial, "], %w: f32[", of.weights,
                                  "], %b: f32[C]) -> %y { %y = Conv %x, %w, %b ", of.attributes, " }"));
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    const Dims weights = *made->graph->body().input(1)->type().shape().static_dims();
    for (int round = 0; round < 4; ++round) {
      Dims x{round % 2 + 1, of.channels};
      for (int64_t d = 0; d < of.rank; ++d) x.push_back(pick(random_, 6, of.rank == 1 ? 300 : of.rank == 2 ? 20 : 9));
      right(*made, {x, weights, {weights[0]}});
    }
  }
}

TEST_F(OpenclGroupProducts, AMeasuredSearchIsRight) {
  TargetDescription searching = groups(kGpu);
  searching.options.add("search", Setting::word("measured"));
  auto backend = create_backend(searching);
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  Compiled made;
  made.graph = *parse_graph("graph @g(%a: f32[70,30], %b: f32[30,90]) -> %y { %y = MatMul %a, %b }");
  auto executable = compiled(**backend, made.graph->clone());
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  made.executable = *std::move(executable);
  right(made, {{70, 30}, {30, 90}});
}

}  // namespace
}  // namespace tenon::opencl::testing
