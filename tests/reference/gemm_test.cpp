#include <tenon/reference/gemm.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include <support_lib/guarded.hpp>

namespace tenon {
namespace {

using testing::Guarded;

// Distributes ranges over real threads, so that a sanitizer detects races.
class Threads final : public ParallelFor {
 public:
  void run(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) override {
    const int64_t part = std::max(grain, (count + 3) / 4);
    std::vector<std::thread> threads;
    for (int64_t begin = 0; begin < count; begin += part) {
      threads.emplace_back([&body, begin, end = std::min(count, begin + part)] { body(begin, end); });
    }
    for (auto& thread : threads) thread.join();
  }
  int threads() const override { return 4; }
};

template <class T>
class Gemm : public ::testing::Test {};
using Types = ::testing::Types<float, double, uint32_t, uint64_t>;
TYPED_TEST_SUITE(Gemm, Types);

// Small whole numbers: every partial sum is exact in every type, so results are equal and not merely close.
template <class T>
std::vector<T> numbers(std::mt19937& random, int64_t count) {
  std::vector<T> out(static_cast<size_t>(count));
  for (T& x : out) x = static_cast<T>(std::uniform_int_distribution<int>(-8, 8)(random));
  return out;
}

// One product of whole numbers; A, B and C end at inaccessible pages.
template <class T>
struct Product {
  int64_t m, n, k;
  bool trans_a, trans_b, add;
  Guarded<T> a, b, c;
  std::vector<T> old;

  Product(std::mt19937& random, int64_t m, int64_t n, int64_t k, int form)
      : m(m),
        n(n),
        k(k),
        trans_a(form & 1),
        trans_b(form & 2),
        add(form & 4),
        a(numbers<T>(random, m * k)),
        b(numbers<T>(random, k * n)),
        c(numbers<T>(random, m * n)),
        old(c.values().begin(), c.values().end()) {}

  MatrixView<T> left() { return {a.data(), trans_a ? 1 : k, trans_a ? m : 1}; }
  MatrixView<T> right() { return {b.data(), trans_b ? 1 : n, trans_b ? k : 1}; }
  Store store() const { return add ? Store::add : Store::overwrite; }

  // How many elements of C are not what the definition says.
  int64_t wrong() {
    int64_t count = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        T expected = add ? old[i * n + j] : T(0);
        for (int64_t p = 0; p < k; ++p) {
          expected += left().data[i * left().row_stride + p * left().column_stride] *
                      right().data[p * right().row_stride + j * right().column_stride];
        }
        count += c.values()[i * n + j] != expected;
      }
    }
    return count;
  }
};

TYPED_TEST(Gemm, EqualsTheDefinition) {
  using T = TypeParam;
  Threads threads;
  const int64_t sizes[][3] = {{1, 1, 1},     {2, 5, 300},   {3, 700, 20}, {4, 1, 7},     {6, 32, 256},
                              {13, 33, 257}, {50, 70, 9},   {0, 4, 4},    {4, 0, 4},     {4, 4, 0},
                              {2, 3, 0},     {401, 390, 3}, {17, 3, 60},  {24, 64, 512}, {5, 1000, 31}};
  for (unsigned seed = 0; const auto& [m, n, k] : sizes) {
    std::mt19937 random(++seed);
    const auto a = numbers<T>(random, m * k), b = numbers<T>(random, k * n), old = numbers<T>(random, m * (n + 1));
    for (int form = 0; form < 8; ++form) {
      const bool trans_a = form & 1, trans_b = form & 2, add = form & 4;
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ": " << m << "x" << n << "x" << k << " form " << form);
      auto c = old;
      gemm<T>(m, n, k, MatrixView<T>{a.data(), trans_a ? 1 : k, trans_a ? m : 1},
              MatrixView<T>{b.data(), trans_b ? 1 : n, trans_b ? k : 1}, c.data(), n + 1,
              add ? Store::add : Store::overwrite, form % 3 == 0 ? threads : serial());
      int64_t wrong = 0;
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j <= n; ++j) {
          T expected = add || j == n ? old[i * (n + 1) + j] : T(0);
          for (int64_t p = 0; p < k && j < n; ++p) {
            expected += a[trans_a ? p * m + i : i * k + p] * b[trans_b ? j * k + p : p * n + j];
          }
          wrong += c[i * (n + 1) + j] != expected;
        }
      }
      EXPECT_EQ(wrong, 0) << "elements, of " << m * (n + 1);
    }
  }
}

// Every kernel that this machine supports, around the boundaries of a vector and of a register tile.
TYPED_TEST(Gemm, EveryKernelEqualsTheDefinitionAndStaysInBounds) {
  using T = TypeParam;
  for (const GemmIsa isa : gemm_isas()) {
    const auto [rows, columns] = gemm_panel<T>(isa);
    const int64_t lanes = columns / 2;
    for (const int64_t m : {int64_t{0}, int64_t{1}, int64_t{4}, rows - 1, rows, rows + 1}) {
      for (const int64_t n : {int64_t{0}, int64_t{1}, lanes - 1, lanes, lanes + 1, columns - 1, columns, columns + 1}) {
        for (const int64_t k : {0, 1, 7, 257}) {
          for (int form = 0; form < 8; ++form) {
            const auto seed = static_cast<unsigned>(((m * 100 + n) * 300 + k) * 8 + form);
            std::mt19937 random(seed);
            Product<T> product(random, m, n, k, form);
            const StridedPanels<T> a(product.left().data, product.left().row_stride, product.left().column_stride);
            const StridedPanels<T> b(product.right().data, product.right().column_stride, product.right().row_stride);
            gemm<T>(m, n, k, a, b, product.c.data(), n, product.store(), serial(), isa);
            ASSERT_EQ(product.wrong(), 0)
                << gemm_isa_name(isa) << ": " << m << "x" << n << "x" << k << " form " << form << ", seed " << seed;
          }
        }
      }
    }
  }
}

// Up to three rows use different code.
TYPED_TEST(Gemm, FewRowsStayInBounds) {
  using T = TypeParam;
  for (const GemmIsa isa : gemm_isas()) {
    for (unsigned seed = 0; const int64_t m : {0, 1, 2, 3}) {
      for (const int64_t n : {0, 1, 15, 16, 17, 511, 512, 513}) {
        for (const int64_t k : {0, 1, 15, 16, 17, 256, 257}) {
          for (int form = 0; form < 8; ++form) {
            std::mt19937 random(++seed);
            Product<T> product(random, m, n, k, form);
            gemm<T>(m, n, k, product.left(), product.right(), product.c.data(), n, product.store(), serial(), isa);
            ASSERT_EQ(product.wrong(), 0)
                << gemm_isa_name(isa) << ": " << m << "x" << n << "x" << k << " form " << form << ", seed " << seed;
          }
        }
      }
    }
  }
}

template <class T>
class GemmRows : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GemmRows, Floats);

// With inexact sums, whose order is visible.
TYPED_TEST(GemmRows, ByThemselvesHaveTheBitsOfTheWhole) {
  using T = TypeParam;
  const int64_t m = 13, n = 37;
  for (const GemmIsa isa : gemm_isas()) {
    for (const int64_t k : {1, 7, 64, 257, 700}) {
      for (int form = 0; form < 8; ++form) {
        const auto seed = static_cast<unsigned>(k * 8 + form);
        std::mt19937 random(seed);
        Product<T> whole(random, m, n, k, form);
        std::uniform_real_distribution<T> uniform(-1, 1);
        for (T& x : whole.a.values()) x = uniform(random);
        for (T& x : whole.b.values()) x = uniform(random);
        const std::vector<T> old = whole.old;
        gemm<T>(m, n, k, whole.left(), whole.right(), whole.c.data(), n, whole.store(), serial(), isa);
        for (int64_t rows = 1, first = 0; first + rows <= m; first += rows, ++rows) {
          std::vector<T> part(old.begin() + first * n, old.begin() + (first + rows) * n);
          MatrixView<T> left = whole.left();
          left.data += first * left.row_stride;
          gemm<T>(rows, n, k, left, whole.right(), part.data(), n, whole.store(), serial(), isa);
          ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.c.data() + first * n))
              << gemm_isa_name(isa) << ": rows [" << first << ", " << first + rows << ") of k " << k << " form " << form
              << ", seed " << seed;
        }
      }
    }
  }
}

TEST(GemmIsas, AreOrderedAndTheWidestIsTakenUnlessTheEnvironmentNamesOne) {
  const std::vector<GemmIsa> known = gemm_isas();
  ASSERT_FALSE(known.empty());
  EXPECT_EQ(known.front(), GemmIsa::baseline);
  EXPECT_TRUE(std::is_sorted(known.begin(), known.end()));
  const char* wanted = std::getenv("TENON_REFERENCE_ISA");  // set by some of this program's entries in CMakeLists.txt
  const auto named = std::ranges::find_if(known, [&](GemmIsa isa) { return wanted && gemm_isa_name(isa) == wanted; });
  EXPECT_EQ(gemm_isa(), named == known.end() ? known.back() : *named);
}

TEST(GemmAccuracy, LongSumsStayCloseToDouble) {
  const int64_t k = 20000;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> a(8 * k), b(k * 8), c(64);
  for (float& x : a) x = uniform(random);
  for (float& x : b) x = uniform(random);
  gemm<float>(8, 8, k, MatrixView<float>{a.data(), k, 1}, MatrixView<float>{b.data(), 8, 1}, c.data(), 8,
              Store::overwrite, serial());
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t j = 0; j < 8; ++j) {
      double expected = 0;
      for (int64_t p = 0; p < k; ++p) expected += static_cast<double>(a[i * k + p]) * b[p * 8 + j];
      // 256 additions of equal sign, then 79: at most 335 half units in the last place.
      EXPECT_NEAR(c[i * 8 + j], expected, expected * 335 * 0x1p-24);
    }
  }
}

}  // namespace
}  // namespace tenon
