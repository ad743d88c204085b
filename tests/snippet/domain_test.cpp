#include <gtest/gtest.h>

#include <tenon/snippet/domain.hpp>

namespace tenon::snippet {
namespace {

struct DomainCase {
  int64_t min_kernel, threads;
  std::vector<Dims> inputs;
  Domain expected;
};

// The vectors of the design, "x2" written out.
const DomainCase kDomains[] = {
    {256, 4, {{14, 15, 1, 17}, {14, 15, 1, 17}}, {{1, 1, 14, 255}, 1}},
    {256, 4, {{14, 15, 16, 1}, {14, 15, 16, 1}}, {{1, 1, 14, 240}, 1}},
    {256, 18, {{14, 15, 1, 17}, {14, 15, 1, 17}}, {{1, 14, 15, 17}, 1}},
    {256, 4, {{14, 15, 16, 17}, {14, 15, 16, 17}}, {{1, 14, 15, 272}, 2}},
    {256, 4, {{14, 15, 16, 1}, {14, 15, 1, 17}}, {{14, 15, 16, 17}, 2}},
    {256, 4, {{14, 15, 16, 16}, {16, 16}}, {{1, 14, 15, 256}, 2}},
    {256, 2, {{256, 256, 3}, {3}}, {{256, 256, 3}, 2}},
    {256, 1, {{4, 1, 6, 7}, {4, 1, 6, 7}}, {{1, 1, 1, 168}, 1}},
    // A scalar is contiguous over everything; one dim and none stay as they are.
    {256, 1, {{4, 6, 7}, {}}, {{1, 1, 168}, 1}},
    {256, 1, {{7}, {7}}, {{7}, 1}},
    {256, 1, {{}}, {{}, 1}},
};

TEST(Domain, JoinsDimsUntilAKernelHasWorkOrThreadsHaveNone) {
  for (const DomainCase& c : kDomains) {
    const auto domain = collapse_domain(c.inputs, c.min_kernel, c.threads);
    ASSERT_TRUE(domain.ok()) << domain.error().to_string();
    EXPECT_EQ(Shape(domain->dims), Shape(c.expected.dims)) << Shape(c.inputs[0]).to_string();
    EXPECT_EQ(domain->inside, c.expected.inside) << Shape(c.inputs[0]).to_string();
  }
  const std::vector<Dims> wrong = {{4, 5}, {4, 6}};
  EXPECT_FALSE(collapse_domain(wrong, 256, 4).ok());
}

struct RowsCase {
  int64_t batch, rows, threads;
  RowSplit expected;
};

const RowsCase kRows[] = {
    {20, 32, 40, {2, 16}},
    {30, 60, 40, {2, 30}},
    {10, 100, 40, {4, 25}},
    {5, 16384, 32, {32, 512}},
    {12, 128, 16, {4, 32}},
    {40, 32, 40, {1, 32}},
    // Primes, rows too few to cut, and no rows stay whole.
    {1, 31, 8, {1, 31}},
    {1, 15, 8, {1, 15}},
    {3, 0, 8, {1, 0}},
};

TEST(Domain, SplitsRowsSoThatThreadsHaveAlikeWork) {
  for (const RowsCase& c : kRows)
    EXPECT_EQ(split_rows(c.batch, c.rows, c.threads), c.expected) << c.batch << " x " << c.rows << " on " << c.threads;
}

}  // namespace
}  // namespace tenon::snippet
