// Bodies for tests: a builder, an evaluator that computes value by value over the whole space, and a harness that
// compares it with the linear kernel on emulated lanes.
#pragma once
#include <gtest/gtest.h>
#include <support/guard_pages.hpp>

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/body/params.hpp>
#include <tenon/snippet/linear/allocate.hpp>
#include <tenon/snippet/linear/run_linear.hpp>
#include <tenon/snippet/lower/lower.hpp>

namespace tenon::snippet::test {

class BodyBuilder {
 public:
  // One letter a dim, outermost first: k kept, r reduced.
  BodyBuilder(std::string name, std::string_view dims);

  ValueId input(DimSet varies, ElementType element = kF32);
  ValueId scalar(float value);
  ValueId scalar_bits(ElementType element, int64_t bits);
  // `element` is that of the result; by default that of the last operand.
  ValueId op(const char* name, std::vector<ValueId> operands, Attributes attributes = {}, ElementType element = {});
  ValueId spread(ValueId operand, DimSet over);
  ValueId reduce(const char* name, ValueId operand);
  ValueId count(ElementType element = kF32);
  void output(ValueId value, ElementType element = {});
  Body take();

 private:
  ValueId value(ElementType element, DimSet varies);
  Body body_;
};

// Softmax of rows: over "kr".
Body softmax_body();

// softmax(x) + x of rows: over "kr".
Body residual_softmax_body();

// Bodies whose sums may be moved (body/moved_sums_internal.hpp). `dims` ends in `r`, or in `k` with an `r` before it.
Body softmax_and_sum_body(std::string_view dims);   // softmax(x); for rows, the sum as well
Body log_sum_exp_body(std::string_view dims);       // x - ln(sum of e^x); the offset subtracted from x is finite
Body offset_softmax_body(std::string_view dims);    // softmax(x); the offset subtracted from x is finite
Body norm_and_moments_body(std::string_view dims);  // (x - mean) / sqrt(variance + 1); for rows, both moments as well

// The memory of all ports, with values in the inputs.
struct Tensors {
  std::vector<tenon::test::GuardedBuffer> ports;
};
// Small integers, so that sums are exact in any order.
Tensors random_tensors(const Body& body, const Dims& extents, std::mt19937& random,
                       testing::GuardAt outputs = testing::GuardAt::end);

// Puts NaN, infinities, -0 and large numbers into input 0, which has f32 elements: each element with a chance of one in
// `share`; with 1, all are the same. Some rows begin or end with many equal ones.
void fill_specials(const Tensors& tensors, std::mt19937& random);

// How sums of f32 are rounded: after each element, in order, or once. Long sums need the latter, so that tolerances
// cover only the rounding of the kernel.
enum class Sums : uint8_t { round_each, round_once };
// The bytes of each output without gaps, computed operator by operator.
std::vector<std::vector<std::byte>> evaluate_body(const Body& body, const Dims& extents, const Tensors& tensors,
                                                  Sums sums = Sums::round_each);

// Compares outputs in `tensors` with these bytes; zeros of either sign are equal, and so are NaN. `tolerance`: see
// HarnessOptions.
void expect_outputs(const Body& body, const Dims& extents, const Tensors& tensors,
                    const std::vector<std::vector<std::byte>>& want, double tolerance = 0);

// Registers of a fictitious machine.
struct TestMachine {
  codegen::RegisterPool pool;
  NeedsFn needs;
};
// `count` registers in each of the vector and general files. Booleans: in 3 masks, or in vectors. `greedy`: emitters
// need scratch registers, and some write their result early.
TestMachine test_machine(int count, bool masks, bool greedy);

struct HarnessOptions {
  LowerOptions lower{.lanes = 4, .unroll = 4};
  std::optional<TestMachine> machine = std::nullopt;    // registers are allocated for it
  int64_t parts = 1;                                    // pieces that the work is cut into
  std::vector<LinearKernel::Blocks::Size> blocks = {};  // block sizes, unless a pass has set some
  testing::GuardAt outputs = testing::GuardAt::end;
  std::function<void(const Tensors& tensors)> fill = nullptr;  // sets other values of inputs
  double tolerance = 0;                                        // relative, of floats; 0: the same bits
  Sums sums = Sums::round_each;                                // rounding of the expected sums
  // A target's passes, and how it runs a call of the kernel, after allocation; null: none, and emulated lanes.
  std::function<Result<void>(LinearKernel& kernel)> passes = nullptr;
  std::function<Result<void>(const LinearKernel& kernel, std::span<const int64_t> words)> run = nullptr;
};
// Compares the kernel with evaluate_body; expects success.
void check_body(const Body& body, const Dims& extents, std::mt19937& random, const HarnessOptions& options = {});

// The widths with which every kernel is tested.
std::vector<int64_t> widths_of(int lanes);

}  // namespace tenon::snippet::test
