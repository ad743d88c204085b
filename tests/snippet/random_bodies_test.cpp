// Random bodies through lowering and register allocation, on emulated lanes, compared with the operators one by one.
// Values are integers, so that every order of a sum gives the same bits. TENON_FUZZ_SEEDS sets the number of seeds,
// TENON_FUZZ_FIRST the first.
#include <gtest/gtest.h>
#include <snippet/random_body.hpp>
#include <support_lib/environment.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <tenon/support/str.hpp>

namespace tenon::snippet::test {
namespace {

// Counts kernels of forms that only some options and bodies give.
struct Forms {
  int joined = 0, behind_blocks = 0, skewed = 0, skewed_twice = 0, together = 0, scratch = 0, cut = 0, cut_outputs = 0;
  void count(const LinearKernel& kernel) {
    joined += kernel.joined.rows >= 0;
    behind_blocks += kernel.blocks.inside;
    skewed += kernel.skewed;
    skewed_twice += kernel.skewed_twice;
    together += kernel.stored_together;
    scratch += !kernel.scratch.empty();
  }
};

void try_seed(uint64_t seed, Forms& forms) {
  SCOPED_TRACE(str("seed ", seed, " (TENON_FUZZ_FIRST)"));
  RandomBody random(seed);
  enum class Shape { any, rows, columns };
  const Shape shape = std::array{Shape::rows, Shape::columns, Shape::any}[std::min<size_t>(random.pick(10), 2)];
  Body body = shape == Shape::any ? random.make() : random.make_swept(shape == Shape::columns);
  HarnessOptions options;
  options.lower.lanes = std::array{1, 4, 8}[random.pick(3)];
  options.lower.unroll = 1 << random.pick(3);
  options.lower.rows = 1 << random.pick(3);
  options.lower.vectors = std::array{16, 32}[random.pick(2)];
  options.lower.recompute_cycles = static_cast<double>(random.pick(6));
  options.lower.resweep_cycles = static_cast<double>(random.pick(6));
  options.lower.whole_rows = random.pick(2) == 0;
  options.lower.join_rows = random.pick(2) == 0;
  options.lower.behind_blocks = !options.lower.join_rows && random.pick(2) == 0;
  options.lower.merge_sweeps = options.lower.behind_blocks && random.pick(2) == 0;
  options.lower.heads = random.pick(2) == 0;
  if (options.lower.heads && (body.outputs.size() > 1 || random.pick(2) == 0))
    options.outputs = testing::GuardAt::lines;
  options.lower.keep_near = random.pick(3) == 0;
  options.lower.keep_joined = random.pick(3) == 0;
  options.lower.skew_rows = random.pick(3) == 0;
  options.lower.skew_twice = random.pick(2) == 0;
  options.blocks = random.block_sizes();
  options.parts = random.pick(3) == 0 ? static_cast<int64_t>(random.pick(6)) + 2 : 1;
  const int registers = std::array{0, 4, 8, 16, 32}[random.pick(5)];
  if (registers > 0) options.machine = test_machine(registers, random.pick(2) == 0, random.pick(2) == 0);
  Dims extents = random.extents(body, options.lower.lanes);
  if (options.lower.join_rows) random.lengthen_rows(body, extents);
  options.lower.held_vectors = std::array{0, 2, 16}[random.pick(3)];
  options.lower.reread_outputs = random.pick(2) == 0;
  random.make_known(body, extents);
  if (random.pick(3) == 0) random.cut_inputs(body, extents);
  // Heads require outputs with the same alignment.
  const auto begins_at_line = [&](const BodyPort&, const PortLayout& layout) {
    return !options.lower.heads || layout.begin_bytes % 64 == 0;
  };
  if (random.pick(3) == 0) random.cut_outputs(body, extents, begins_at_line);
  if (shape != Shape::any) {
    // Lowering applies all of these options or none.
    options.lower.join_rows = options.lower.merge_sweeps = options.lower.heads = false;
    options.lower.skew_rows = shape == Shape::rows;
    options.lower.whole_rows = options.lower.behind_blocks = shape == Shape::columns;
    options.lower.resweep_cycles = shape == Shape::rows && random.pick(2) == 0 ? 1.5 : 0;  // 1.5: inputs are read again
    options.lower.held_vectors = 0;
  }
  if (shape == Shape::any && options.lower.join_rows) options.lower.skew_rows = false;
  options.lower.stored_together = 1 << random.pick(3);
  if (options.lower.stored_together > 1 && random.pick(2) == 0) options.lower.skew_rows = false;
  const auto kernel = lower(body, options.lower);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  forms.count(*kernel);
  const auto is_cut = [](const BodyPort& port) { return !port.cuts.empty(); };
  forms.cut += std::ranges::any_of(body.inputs, is_cut);
  forms.cut_outputs += std::ranges::any_of(body.outputs, is_cut);
  check_body(body, extents, random.random(), options);
}

TEST(RandomBodies, MatchTheOperatorsOneByOne) {
  Forms forms;
  const uint64_t first = testing::first_seed(), seeds = testing::seeds(1500);
  for (uint64_t seed = first; seed < first + seeds && !::testing::Test::HasFailure(); ++seed) try_seed(seed, forms);
  const bool usual = !std::getenv("TENON_FUZZ_FIRST") && !std::getenv("TENON_FUZZ_SEEDS");
  if (!usual || HasFailure()) return;
  // The seeds give several kernels of each form.
  for (const auto& [name, found] :
       {std::pair{"joined", forms.joined}, std::pair{"behind blocks", forms.behind_blocks},
        std::pair{"skewed", forms.skewed}, std::pair{"skewed twice", forms.skewed_twice},
        std::pair{"stored together", forms.together}, std::pair{"of parts", forms.cut},
        std::pair{"that write parts", forms.cut_outputs}, std::pair{"with scratch memory", forms.scratch}})
    EXPECT_GE(found, 5) << "kernels " << name << " of " << seeds << " seeds";
}

}  // namespace
}  // namespace tenon::snippet::test
