// Kernels with known extents have fewer loops and copies than those with unknown ones, and constants instead of words.
// They give the same bits, for fractions, whose sums depend on the order, and for widths around those of vectors.
// However, dims known to be 1 are dropped, so that a sum down one column becomes a sum along a row, over lanes.
#include <gtest/gtest.h>

#include "x86/guarded_graph.hpp"
#include "x86/run_snippet.hpp"

namespace tenon::x86 {
namespace {

constexpr unsigned kSeed = 20261123;

// Operators on %x, whose rows have W elements, and on further inputs.
struct Case {
  std::string_view name, body, results = "%y", inputs = "";
  int64_t least_width = 0;
};
constexpr Case kCases[] = {
    {"sum", "%y = ReduceSum %x, %last"},
    {"product", "%y = ReduceProd %x, %last"},
    {"greatest", "%y = ReduceMax %x, %last"},
    {"root of squares", "%y = ReduceL2 %x, %last"},
    {"sum of columns", "%y = ReduceSum %x, %first", "%y", "", 2},
    {"two sums", "%y = ReduceSum %x, %last\n%q = Mul %x, %x\n%z = ReduceSum %q, %last", "(%y, %z)"},
    {"less its mean", "%m = ReduceMean %x, %last\n%y = Sub %x, %m"},
    {"softmax", "%y = Softmax %x {axis = -1}"},
    {"softmax of columns", "%y = Softmax %x {axis = 0}", "%y", "", 2},
    {"softmax of softmax", "%a = Softmax %x {axis = -1}\n%y = Softmax %a {axis = -1}"},
    {"RMS norm", "%y = RMSNormalization %x, %s {axis = -1, epsilon = 1e-5}\n%z = Mul %y, %b", "(%y, %z)",
     ", %s: f32[W], %b: f32[W]"},
    {"scale of columns over that of rows",
     "%q = Mul %x, %x\n%m = ReduceMean %q, %last\n%r = Sqrt %m\n%t = Div %s, %r\n%u = Mul %x, %t\n%y = Add %u, %b",
     "%y", ", %s: f32[W], %b: f32[W]"},
    {"layer norm", "%y = LayerNormalization %x, %s, %b {axis = -1, epsilon = 1e-5}", "%y", ", %s: f32[W], %b: f32[W]"},
    {"three outputs", "%y = Add %x, %x\n%q = Mul %x, %x\n%z = Relu %q\n%v = Sub %x, %y", "(%y, %z, %v)"},
};

class KnownExtents : public ::testing::TestWithParam<std::tuple<Isa, bool>> {
 protected:
  void SetUp() override {
    if (!machine_has(isa())) GTEST_SKIP() << "this machine has no " << isa_name(isa());
    const TargetDescription target = testing::target_of(isa());
    const bool small = std::get<1>(GetParam());
    compiler_ = std::make_shared<Compiler>(small ? testing::with_small_caches(target) : target, **jitter_table());
  }
  static Isa isa() { return std::get<0>(GetParam()); }

  static std::string with_width(std::string text, const std::string& width) {
    for (size_t at = text.find('W'); at != std::string::npos; at = text.find('W')) text.replace(at, 1, width);
    return text;
  }

  std::vector<Datum> run(const Case& one, const std::string& rows, const std::string& width,
                         const std::vector<Datum>& inputs) const {
    auto results =
        testing::run_snippet(str("graph @g(%x: f32[", rows, ",", width, "]", with_width(std::string(one.inputs), width),
                                 ") -> ", one.results, " {\n%first = Constant {value = dense<i64[1]: 0>}\n",
                                 "%last = Constant {value = dense<i64[1]: 1>}\n", one.body, "\n}"),
                             compiler_, inputs);
    TENON_CHECK(results.ok(), results.ok() ? "" : results.error().to_string());
    return *std::move(results);
  }

  std::shared_ptr<Compiler> compiler_;
};

TEST_P(KnownExtents, HaveTheBitsOfOpenOnes) {
  const int lanes = lanes_of(isa(), kF32);
  std::mt19937 random(kSeed);
  for (const Case& one : kCases) {
    for (const int64_t rows : {0, 1, 3, 4, 9, 17}) {
      for (const int64_t width : {0, 1, lanes - 1, lanes, lanes + 1, 2 * lanes, 2 * lanes + 3, 3 * lanes + 5,
                                  4 * lanes - 1, 4 * lanes, 5 * lanes + 3, 8 * lanes + 1, 16 * lanes, 300}) {
        if (width < one.least_width) continue;
        std::vector<Datum> inputs{Datum(tenon::testing::random_tensor(random, kF32, {rows, width}, -1, 1))};
        if (!one.inputs.empty())
          for (int i = 0; i < 2; ++i) inputs.emplace_back(tenon::testing::random_tensor(random, kF32, {width}, -1, 1));
        const std::vector<Datum> open = run(one, "R", "C", inputs);
        for (const bool any_rows : {false, true}) {
          const std::vector<Datum> known = run(one, any_rows ? "R" : str(rows), str(width), inputs);
          for (size_t i = 0; i < known.size(); ++i) {
            const Tensor &a = known[i].tensor(), &b = open[i].tensor();
            ASSERT_EQ(a.bytes(), b.bytes());
            ASSERT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0)
                << one.name << " of " << rows << (any_rows ? ", which may be any number," : "") << " x " << width
                << ", result " << i << ", seed " << kSeed;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, KnownExtents,
                         ::testing::Combine(::testing::Values(Isa::avx2, Isa::avx512), ::testing::Bool()),
                         [](const auto& info) {
                           return str(isa_name(std::get<0>(info.param)),
                                      std::get<1>(info.param) ? "_small_caches" : "");
                         });

}  // namespace
}  // namespace tenon::x86
