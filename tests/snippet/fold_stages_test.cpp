// Reductions in stages, on emulated lanes, compared with the undivided body operator by operator. The values of random
// bodies are integers, so that every order of a sum gives the same bits. TENON_FUZZ_SEEDS sets the number of seeds,
// TENON_FUZZ_FIRST the first.
#include <gtest/gtest.h>
#include <snippet/random_body.hpp>
#include <support_lib/environment.hpp>

#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <tenon/snippet/body/body_elements.hpp>
#include <tenon/snippet/body/fold_stages.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet::test {
namespace {

// The memory between stages, in buffers that end at guard pages.
std::vector<tenon::test::GuardedBuffer> memories_of(const Body& whole, const FoldStages& stages, const Dims& extents,
                                                    int64_t parts) {
  std::vector<tenon::test::GuardedBuffer> made;
  for (const FoldStages::Memory& memory : stages.memories) {
    made.emplace_back(memory.bytes(extents, parts));
    if (!memory.counts) continue;
    const int64_t count = element_count(whole.reduced_dims(), extents);
    const uint64_t bits = lane_bits(memory.element, static_cast<double>(count));
    std::memcpy(made.back().data(), &bits, made.back().bytes());
  }
  return made;
}

void run_stage(const FoldStage& stage, const Dims& extents, int64_t parts, const LowerOptions& options,
               const std::vector<tenon::test::GuardedBuffer*>& ports) {
  SCOPED_TRACE(stage.body.to_string());
  const auto valid = verify(stage.body);
  ASSERT_TRUE(valid.ok()) << valid.error().to_string();
  auto kernel = lower(stage.body, options);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  if (kernel->blocks.dim >= 0) kernel->blocks.sizes = {{.elements = kLineElements}};
  insert_shifts(*kernel);
  const auto plan = CallPlan::make_for_extents(stage.body, *kernel, stage.extents(extents, parts));
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const Split split = stage.kind == FoldStage::Kind::parts ? plan->split_fold(parts) : plan->split(2, 1);
  const tenon::test::GuardedBuffer scratch(plan->scratch_bytes());
  std::vector<void*> addresses;
  std::vector<LinearBuffer> buffers{{scratch.data(), scratch.bytes(), true}};
  for (size_t i = 0; i < ports.size(); ++i) {
    addresses.push_back(ports[i]->data());
    buffers.push_back({ports[i]->data(), ports[i]->bytes(), i >= stage.body.inputs.size()});
  }
  std::vector<int64_t> words(plan->words());
  for (int64_t chunk = 0; chunk < split.chunks(); ++chunk) {
    plan->fill(words, addresses, scratch.data(), split, chunk);
    const auto ran = run_linear(*kernel, words, buffers);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
  }
}

void run_stages(const Body& whole, const FoldStages& stages, const Dims& extents, int64_t parts,
                const LowerOptions& options, Tensors& tensors) {
  auto memories = memories_of(whole, stages, extents, parts);
  for (const FoldStage& stage : stages.stages) {
    std::vector<tenon::test::GuardedBuffer*> ports;
    for (const FoldStage::Port& port : stage.ports)
      ports.push_back(port.in_memory ? &memories[port.index] : &tensors.ports[port.index]);
    run_stage(stage, extents, parts, options, ports);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void check_stages(const Body& whole, const FoldStages& stages, const Dims& extents, int64_t parts,
                  const LowerOptions& options, std::mt19937& random, bool special = false, double tolerance = 0) {
  SCOPED_TRACE(str(whole.to_string(), "extents ", extents, " parts ", parts));
  Tensors tensors = random_tensors(whole, extents, random);
  if (special) fill_specials(tensors, random);
  const auto want = evaluate_body(whole, extents, tensors);
  run_stages(whole, stages, extents, parts, options, tensors);
  expect_outputs(whole, extents, tensors, want, tolerance);
}

TEST(FoldStages, ComputeWhatTheWholeDoes) {
  const uint64_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(1500);
  int tried = 0;
  for (uint64_t seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(str("seed ", seed, " (TENON_FUZZ_FIRST)"));
    RandomBody random(seed);
    const size_t shape = random.pick(4);
    Body body = shape < 2 ? random.make() : random.make_swept(/*columns=*/shape == 3);
    LowerOptions options{.lanes = std::array{1, 4, 8}[random.pick(3)], .unroll = 1 << random.pick(3)};
    options.rows = 1 << random.pick(3);
    options.whole_rows = random.pick(2) == 0;
    options.join_rows = random.pick(2) == 0;
    Dims extents = random.extents(body, options.lanes);
    if (options.join_rows) random.lengthen_rows(body, extents);
    random.make_known(body, extents);
    const auto parts = static_cast<int64_t>(1 + random.pick(6));
    for (size_t cut = 0; cut < body.rank() && !HasFailure(); ++cut) {
      const auto stages = make_fold_stages(body, cut);
      if (!stages || element_count(body.all_dims(), extents) == 0) continue;
      ++tried;
      check_stages(body, *stages, extents, parts, options, random.random());
    }
  }
  const bool usual = !std::getenv("TENON_FUZZ_FIRST") && !std::getenv("TENON_FUZZ_SEEDS");
  EXPECT_GE(tried, usual ? 300 : 0);
}

// Sums are relative to the maximum of each part, so that two stages that reduce are enough instead of four. With empty
// parts, with parts of infinities only, and with NaN.
TEST(FoldStages, MoveSumsOfParts) {
  std::mt19937 random(1);
  const std::pair<Body (*)(std::string_view), const char*> kinds[] = {{softmax_and_sum_body, "softmax"},
                                                                      {log_sum_exp_body, "log sum exp"},
                                                                      {offset_softmax_body, "offset"},
                                                                      {norm_and_moments_body, "norm"}};
  for (const auto& [make, name] : kinds) {
    for (const std::string_view dims : {"kr", "krk", "krr", "rk"}) {
      const Body body = make(dims);
      const size_t cut = dims.find('r');
      const auto stages = make_fold_stages(body, cut);
      ASSERT_TRUE(stages) << name;
      EXPECT_EQ(stages->stages.size(), 3u) << name;
      for (const int64_t extent : {1, 2, 3, 7, 64, 200}) {
        for (const bool special : {false, true}) {
          SCOPED_TRACE(str(name, " of ", dims, ", ", extent));
          Dims extents(dims.size(), 3);
          extents[cut] = extent;
          // e^x has an error of up to 2 ulp, and sums have another order.
          check_stages(body, *stages, extents, 1 + static_cast<int64_t>(random() % 5), {.lanes = 4}, random, special,
                       1e-5);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// The means of parts are rounded to 2^-10 while deviations are about 1, so the sum of the differences from the rounded
// mean must be taken into account.
TEST(FoldStages, VariancesOfNumbersFarFromZeroAreExact) {
  const Body body = norm_and_moments_body("r");
  const auto stages = make_fold_stages(body, 0);
  ASSERT_TRUE(stages);
  std::mt19937 random(1);
  std::normal_distribution<float> numbers(10'000, 1);
  for (const int64_t extent : {64, 200, 1000}) {
    Tensors tensors = random_tensors(body, {extent}, random);
    std::vector<float> x(static_cast<size_t>(extent));
    for (float& one : x) one = numbers(random);
    std::memcpy(tensors.ports[0].data(), x.data(), x.size() * sizeof(float));
    run_stages(body, *stages, {extent}, /*parts=*/5, {.lanes = 4}, tensors);
    double mean = 0, variance = 0;
    for (const float one : x) mean += one / static_cast<double>(extent);
    for (const float one : x) variance += (one - mean) * (one - mean) / static_cast<double>(extent);
    float got = 0;
    std::memcpy(&got, tensors.ports[3].data(), sizeof got);
    // A mean that is off by 10^-3 makes the variance greater by 10^-6; the rest is the rounding of a sum of floats.
    EXPECT_NEAR(got, variance, 2e-5 * variance) << extent;
  }
}

}  // namespace
}  // namespace tenon::snippet::test
