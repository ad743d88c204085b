// Random graphs on the device compared with the reference, bit for bit except for the bits of a NaN.
//
// TENON_FUZZ_SEEDS sets the number of seeds, TENON_FUZZ_FIRST the first.
#include <support_lib/environment.hpp>
#include <support_lib/random_dag.hpp>

#include "graph_support.hpp"

namespace tenon::opencl::testing {
namespace {

// Runs the graph with guard zones, and without, since several buffers then share memory of the arena.
void try_graph(ClStream& stream, const TargetDescription& target, const Graph& graph,
               const std::vector<Datum>& inputs) {
  for (const TargetDescription& form : {guarded_target(target), target}) {
    auto backend = create_backend(form);
    ASSERT_TRUE(backend.ok()) << backend.error().to_string();
    expect_reference(stream, **backend, graph, inputs, {.rtol = 0, .atol = 0});
  }
}

void try_graphs(ClStream& stream, const TargetDescription& target) {
  const uint32_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(8);
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    tenon::testing::RandomDag dag({.seed = seed, .exact = true, .max_ops = 30, .max_inputs = 12, .lanes = 16});
    const auto graph = dag.build();
    try_graph(stream, target, *graph, dag.inputs(*graph));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_F(OpenclTest, RandomGraphsHaveTheBitsOfTheReference) { try_graphs(*stream, cpu_target()); }

// Fewer elements than lanes, with 8 bytes in one operand and 2 in a result (seed 6634, reduced).
TEST_F(OpenclTest, NarrowedTailsAreStored) {
  const auto graph = parse_graph(R"(graph @g(%x: i64[7]) -> (%below, %narrow) {
  %0 = Sub %x, %x : i64[7]
  %1 = Cast %x {to = type<i16[*]>} : i16[7]
  %below = Less %x, %0 : bool[7]
  %narrow = Identity %1 : i16[7]
})");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const std::vector<Datum> inputs{Datum(Tensor::of<int64_t>({7}, {-14, -13, -14, 14, 3, -1, 5}))};
  try_graph(*stream, cpu_target(), **graph, inputs);
}

// The form for GPUs: items of a work group share the lanes of a snippet.
TEST_F(OpenclTest, RandomGraphsOfWorkGroupsHaveTheBitsOfTheReference) {
  TargetDescription groups = cpu_target();
  groups.options.add("work_group", Setting::word("32"));
  try_graphs(*stream, groups);
}

}  // namespace
}  // namespace tenon::opencl::testing
