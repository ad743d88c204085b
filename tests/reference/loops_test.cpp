#include <tenon/reference/loops.hpp>

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include <support_lib/random_tensor.hpp>
#include <support_lib/shredding_parallel.hpp>

namespace tenon {
namespace {

using testing::pick;
using testing::ShreddingParallel;

constexpr int kCases = 200;

int64_t count_of(const Dims& dims) { return *element_count(dims); }

Dims index_of(int64_t position, const Dims& dims) {
  Dims index(dims.size());
  for (size_t d = dims.size(); d-- > 0; position /= dims[d]) index[d] = position % dims[d];
  return index;
}

// The offset at which a result's index reads a broadcast operand, by NumPy's rule.
int64_t offset_of(const Dims& index, const Dims& operand) {
  int64_t offset = 0;
  for (size_t d = 0; d < operand.size(); ++d) {
    const int64_t i = index[index.size() - operand.size() + d];
    offset = offset * operand[d] + (operand[d] == 1 ? 0 : i);
  }
  return offset;
}

Dims random_dims(std::mt19937& random, int64_t most_rank, int64_t least) {
  Dims dims(static_cast<size_t>(pick(random, 0, most_rank)));
  for (int64_t& dim : dims) dim = pick(random, least, 4);
  return dims;
}

// Drops leading dims and makes some of the others 1.
Dims narrowed(std::mt19937& random, const Dims& dims) {
  Dims out(dims.begin() + pick(random, 0, static_cast<int64_t>(dims.size())), dims.end());
  for (int64_t& dim : out) dim = pick(random, 0, 2) == 0 ? 1 : dim;
  return out;
}

TEST(BroadcastPlan, VisitsWhatNumPyWould) {
  std::mt19937 random(20);
  for (int n = 0; n < kCases; ++n) {
    const Dims result = random_dims(random, 5, 0), a = narrowed(random, result), b = narrowed(random, result);
    SCOPED_TRACE(Shape(result).to_string() + Shape(a).to_string() + Shape(b).to_string());
    const BroadcastPlan<2> plan(result, {a, b});
    ASSERT_EQ(plan.count(), count_of(result));
    std::vector<int> visits(static_cast<size_t>(plan.count()));
    ShreddingParallel parallel(pick(random, 1, 7));
    plan.run(parallel, [&](int64_t first, int64_t count, const auto& offsets) {
      for (int64_t i = 0; i < count; ++i) {
        const Dims index = index_of(first + i, result);
        ++visits[static_cast<size_t>(first + i)];
        ASSERT_EQ(offsets[0] + i * plan.inner_strides()[0], offset_of(index, a)) << first + i;
        ASSERT_EQ(offsets[1] + i * plan.inner_strides()[1], offset_of(index, b)) << first + i;
      }
    });
    EXPECT_EQ(visits, std::vector<int>(visits.size(), 1));
  }
}

TEST(BroadcastPlan, MergesDims) {
  const Dims result{2, 3, 4, 5}, row{5}, column{2, 1, 1, 1};
  const auto runs_beside = [&](const Dims& operand) {
    int runs = 0;
    BroadcastPlan<2>(result, {result, operand}).for_runs(0, 120, [&](int64_t, int64_t, const auto&) { ++runs; });
    return runs;
  };
  EXPECT_EQ(runs_beside(result), 1);
  EXPECT_EQ(runs_beside(column), 2);
  EXPECT_EQ(runs_beside(row), 24);
}

TEST(MapElements, EveryPairOfStrides) {
  const std::vector<int> a{1, 2, 3}, b{10, 20, 30};
  const Dims vector{3}, scalar{};
  const auto sum = [&](const Dims& of_a, const Dims& of_b, const Dims& result) {
    std::vector<int> out(static_cast<size_t>(count_of(result)));
    map_elements(serial(), BroadcastPlan<2>(result, {of_a, of_b}), a.data(), b.data(), out.data(),
                 [](int x, int y) { return x + y; });
    return out;
  };
  EXPECT_EQ(sum(vector, vector, vector), (std::vector<int>{11, 22, 33}));
  EXPECT_EQ(sum(scalar, vector, vector), (std::vector<int>{11, 21, 31}));
  EXPECT_EQ(sum(vector, scalar, vector), (std::vector<int>{11, 12, 13}));
  EXPECT_EQ(sum(scalar, scalar, vector), (std::vector<int>{11, 11, 11}));
  EXPECT_EQ(sum(scalar, scalar, scalar), (std::vector<int>{11}));
}

TEST(AxisView, LinesCoverTheTensor) {
  std::mt19937 random(21);
  for (int n = 0; n < kCases; ++n) {
    Dims dims = random_dims(random, 4, 1);
    dims.push_back(pick(random, 1, 4));
    const auto axis = static_cast<size_t>(pick(random, 0, static_cast<int64_t>(dims.size()) - 1));
    const AxisView view(dims, axis);
    std::vector<int> visits(static_cast<size_t>(count_of(dims)));
    ShreddingParallel parallel(pick(random, 1, 3));
    view.run(parallel, [&](int64_t line, int64_t offset) {
      ASSERT_EQ(offset, view.offset(line));
      for (int64_t i = 0; i < view.extent; ++i) {
        const int64_t at = offset + i * view.inner;
        ++visits[static_cast<size_t>(at)];
        EXPECT_EQ(index_of(at, dims)[axis], i);
      }
    });
    EXPECT_EQ(visits, std::vector<int>(visits.size(), 1)) << Shape(dims).to_string() << " axis " << axis;
  }
}

TEST(ReductionPlan, FoldsWhatItShould) {
  std::mt19937 random(22);
  for (int n = 0; n < kCases; ++n) {
    const Dims dims = random_dims(random, 5, 0);
    std::vector<bool> folded(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) folded[d] = pick(random, 0, 1) == 1;
    std::vector<int64_t> in(static_cast<size_t>(count_of(dims)));
    std::iota(in.begin(), in.end(), 1);

    Dims kept;
    for (size_t d = 0; d < dims.size(); ++d) kept.push_back(folded[d] ? 1 : dims[d]);
    std::vector<int64_t> expected(static_cast<size_t>(count_of(kept)), 1000);
    for (size_t i = 0; i < in.size(); ++i) {
      expected[static_cast<size_t>(offset_of(index_of(static_cast<int64_t>(i), dims), kept))] += in[i];
    }

    const ReductionPlan plan(dims, folded);
    ASSERT_EQ(plan.results(), count_of(kept));
    std::vector<int64_t> out(expected.size(), -1);
    ShreddingParallel parallel(pick(random, 1, 7));
    plan.run(
        parallel, in.data(), out.data(), int64_t{1000}, [](int64_t& sum, int64_t x) { sum += x; },
        [](int64_t sum) { return sum; });
    EXPECT_EQ(out, expected) << Shape(dims).to_string() << " " << ::testing::PrintToString(folded);
  }
}

}  // namespace
}  // namespace tenon
