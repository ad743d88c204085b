// Random bodies through the whole compilation, on the device, compared with their operators one by one. The device is a
// CPU that works in the memory of this process, so buffers end at guard pages.
//
// TENON_FUZZ_SEEDS sets the number of seeds, TENON_FUZZ_FIRST the first. The device's compiler is slow.
#include <cstdlib>
#include <numeric>

#include <snippet/random_body.hpp>
#include <support_lib/environment.hpp>
#include <tenon/snippet/linear/emit.hpp>

#include "opencl_support.hpp"

namespace tenon::opencl::testing {
namespace {

using snippet::LinearKernel;
using snippet::test::HarnessOptions;
using snippet::test::RandomBody;

class OpenclBodies : public OpenclTest {
 protected:
  // `form`: how items share the lanes.
  void try_seed(uint64_t seed, const GroupForm& form) {
    SCOPED_TRACE(str("seed ", seed, " (TENON_FUZZ_FIRST), ", form.items, " items"));
    RandomBody random(seed);
    const snippet::Body body = random.make();
    constexpr int kManyRegisters = 4000;
    const int lanes = form.items == 1 ? 8 : 4 * form.items;
    codegen::RegisterPool pool;
    for (std::vector<int>& file : pool.registers) {
      file.resize(kManyRegisters);
      std::iota(file.begin(), file.end(), 0);
    }
    HarnessOptions options;
    options.lower = {.lanes = lanes, .unroll = 1 << random.pick(2), .rows = 1};
    options.lower.recompute_cycles = static_cast<double>(random.pick(6));
    options.parts = random.pick(3) == 0 ? static_cast<int64_t>(random.pick(6)) + 2 : 1;
    options.machine = {pool, snippet::needs_of(*table, target)};
    options.run = [&](const LinearKernel& kernel, std::span<const int64_t> words) {
      return run(body, kernel, words, form);
    };
    check_body(body, random.extents(body, lanes), random.random(), options);
  }

  void try_seeds(const GroupForm& form) {
    const uint64_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(12);
    for (uint64_t seed = first; seed < first + seeds && !HasFailure(); ++seed) try_seed(seed, form);
  }

  // `words` holds addresses of this process.
  Result<void> run(const snippet::Body& body, const LinearKernel& kernel, std::span<const int64_t> words,
                   const GroupForm& form) {
    const size_t ports = body.inputs.size() + body.outputs.size();
    TENON_TRY(source, assemble(kernel, {.ports = ports, .form = form}, *table, target));
    if (std::getenv("TENON_TEST_LISTING")) std::puts(source.c_str());
    return launch(*stream, source, words, 1, std::vector<cl_mem>(ports + !kernel.scratch.empty(), nullptr), form);
  }
};

TEST_F(OpenclBodies, MatchTheOperatorsOneByOne) { try_seeds({}); }

// Adjacent items access adjacent elements, as on a GPU.
TEST_F(OpenclBodies, OfItemsThatShareTheLanesMatchThem) { try_seeds({.items = 8, .group = 8}); }

}  // namespace
}  // namespace tenon::opencl::testing
