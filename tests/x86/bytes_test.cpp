// Arithmetic of narrow integers, in byte lanes where possible, and conversions of floats to them: every pair of bytes,
// numbers that no integer represents, and random graphs, compared with the reference, between guard pages.
//
// TENON_FUZZ_SEEDS sets the number of graphs, TENON_FUZZ_FIRST the first.
#include <gtest/gtest.h>

#include <bench/drawn_graph.hpp>
#include <limits>
#include <support_lib/environment.hpp>
#include <support_lib/on_reference.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/tensor/compare.hpp>

#include "x86/forms/forms.hpp"
#include "x86/guarded_graph.hpp"

namespace tenon::x86 {
namespace {

using tenon::testing::on_reference;
using testing::GuardedGraph;

class Bytes : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  // The number of bytes in a vector.
  static int64_t vector() { return vector_bits(GetParam()) / 8; }

  static std::unique_ptr<Graph> graph_of(const std::string& text) {
    auto graph = parse_graph(text);
    TENON_CHECK(graph.ok(), graph.ok() ? "" : graph.error().to_string() + "\n" + text);
    return *std::move(graph);
  }
  void expect_exact(const std::string& text, const std::vector<Datum>& inputs) {
    auto graph = graph_of(text);
    const std::vector<Tensor> expected = on_reference(*graph, inputs);
    GuardedGraph runner(GetParam(), {.contract = false, .bounds = false, .small_caches = false});
    ASSERT_EQ(runner.tokenize(*graph), 1u) << text;
    std::mt19937 random(1);
    const std::vector<Tensor> got = runner.run(*graph, inputs, random);
    for (size_t i = 0; i < got.size(); ++i) {
      const Comparison comparison = compare(got[i], expected[i], {.rtol = 0, .atol = 0});
      ASSERT_TRUE(comparison.equal) << "output " << i << ": " << comparison.difference << "\n" << text;
    }
  }
  // The number of such instructions in the first form.
  static int64_t count(const std::string& text, std::string_view ending) {
    auto graph = graph_of(text);
    GuardedGraph runner(GetParam(), {.small_caches = false});
    runner.tokenize(*graph);
    const auto is_snippet = [](const Op& op) { return isa<snippet::Subgraph>(op); };
    const auto body = snippet::make_body(*std::ranges::find_if(graph->body(), is_snippet));
    TENON_CHECK(body.ok(), text);
    const FormMaker maker(testing::target_of(GetParam()), **jitter_table(), {});
    const auto form = maker.make(*body, maker.tiers_of(*body).front());
    TENON_CHECK(form.ok(), form.ok() ? "" : form.error().to_string());
    return std::ranges::count_if(form->kernel.body,
                                 [&](const snippet::Instruction& one) { return one.op.view().ends_with(ending); });
  }
};

// Each operator on all pairs of bytes, and at other widths, where the results are also used as floats.
TEST_P(Bytes, AllPairs) {
  const char* const kBodies[] = {
      "%y = Add %x, %z",
      "%y = Sub %x, %z",
      "%y = Mul %x, %z",
      "%y = Shrink %x {lambd = 7.5}",
      "%y = Max %x, %z",
      "%y = Min %x, %z",
      "%y = BitwiseAnd %x, %z",
      "%y = BitwiseXor %x, %z",
      "%a = BitwiseNot %x\n%y = BitwiseOr %a, %z",
      "%c = Less %x, %z\n%a = Add %x, %z\n%y = Where %c, %a, %z",
      "%c = LessOrEqual %x, %z\n%a = Sub %x, %z\n%y = Where %c, %a, %z",
      "%c = Greater %x, %z\n%a = Add %x, %z\n%y = Where %c, %x, %a",
      "%c = GreaterOrEqual %x, %z\n%a = Sub %z, %x\n%y = Where %c, %k, %a",
      "%c = LessOrEqual %x, %z\n%d = Not %c\n%e = Greater %x, %k\n%f = Or %d, %e\n%y = Where %f, %z, %x",
      "%c = GreaterOrEqual %x, %z\n%d = Equal %x, %k\n%e = Xor %c, %d\n%a = Mul %x, %k\n%y = Where %e, %a, %x",
      "%a = Add %x, %z\n%b = Sub %a, %k\n%c = Max %b, %z\n%d = Mul %c, %c\n%y = Min %d, %x",
      // Sums that are simplified, and comparisons replaced by their opposites.
      "%a = Mul %x, %k\n%b = Sub %a, %x\n%c = Sub %z, %b\n%d = Add %c, %x\n%e = BitwiseNot %d\n%y = Max %e, %z",
      "%a = Sub %x, %k\n%b = BitwiseXor %a, %z\n%c = Sub %b, %k\n%d = Add %c, %x\n%y = Min %d, %b",
      "%c = Less %x, %z\n%d = Greater %x, %z\n%e = Or %c, %d\n%a = Where %e, %z, %k\n%y = Add %a, %x",
      "%c = LessOrEqual %x, %z\n%d = GreaterOrEqual %x, %k\n%e = Or %c, %d\n%a = Sub %z, %z\n%b = Add %x, %z\n%y = "
      "Where %e, %b, %a",
  };
  const std::string kInWiderLanes[] = {"%y = Pow %x, %z", "%y = Shrink %x {bias = 3.0, lambd = 7.5}"};
  std::vector<std::string> bodies(std::begin(kBodies), std::end(kBodies));
  bodies.insert(bodies.end(), std::begin(kInWiderLanes), std::end(kInWiderLanes));
  std::mt19937 random(2);
  for (const char* element : {"i8", "u8"}) {
    const ElementType type = *ElementType::parse(element);
    const int64_t low = type == kI8 ? -128 : 0;
    Tensor x = *Tensor::zeros(type, {65536}), z = *Tensor::zeros(type, {65536});
    for (int64_t i = 0; i < 65536; ++i) x.set_int(i, low + i / 256), z.set_int(i, low + i % 256);
    const auto text = [&](const std::string& body, const std::string& n, const std::string& last) {
      return str("graph @g(%x: ", element, "[", n, "], %z: ", element, "[", n, "]) -> ", last,
                 " {\n%k = Constant {value = dense<", element, "[]: 7>}\n", body, "\n}");
    };
    for (const std::string& body : bodies) {
      expect_exact(text(body, "65536", "%y"), {Datum(x), Datum(z)});
      if (HasFatalFailure()) return;
      if (std::ranges::find(kInWiderLanes, body) == std::end(kInWiderLanes)) {
        EXPECT_GE(count(text(body, "N", "%y"), "Bytes"), 3) << body;
      }
      for (const int64_t n : {int64_t{0}, int64_t{1}, vector() / 4 - 1, vector() / 4 + 1, vector() - 1, vector(),
                              vector() + 1, 2 * vector() + vector() / 4 + 3}) {
        const Tensor few = tenon::testing::random_tensor(random, type, {n}, low, low + 255);
        const Tensor other = tenon::testing::random_tensor(random, type, {n}, low, low + 255);
        expect_exact(text(body, str(n), "%y"), {Datum(few), Datum(other)});
        expect_exact(text(body + "\n%w = Cast %y {to = type<f32[*]>}", str(n), "(%y, %w)"), {Datum(few), Datum(other)});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// The negative of -128 is -128, and its magnitude is not an i8.
TEST_P(Bytes, OfOne) {
  Tensor x = *Tensor::zeros(kI8, {512});
  for (int64_t i = 0; i < 512; ++i) x.set_int(i, i % 256 - 128);
  for (const char* body : {"%y = Neg %x", "%y = Abs %x", "%a = Neg %x\n%b = Abs %a\n%y = Mul %b, %x"}) {
    const std::string text = str("graph @g(%x: i8[512]) -> %y {\n", body, "\n}");
    expect_exact(text, {Datum(x)});
    EXPECT_GT(count(text, "Bytes"), 2) << body;
  }
}

// Bytes that are compared as floats, also with numbers that are not bytes, and with each other.
TEST_P(Bytes, ComparedAsFloats) {
  for (const char* element : {"i8", "u8"}) {
    const ElementType type = *ElementType::parse(element);
    Tensor x = *Tensor::zeros(type, {256}), w = *Tensor::zeros(kF32, {256});
    for (int64_t i = 0; i < 256; ++i) x.set_int(i, i + (type == kI8 ? -128 : 0)), w.set_double(i, 0.5 * i);
    for (const char* op : {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
      for (const char* operands : {"%f, %k", "%k, %f", "%f, %g"})
        for (const double k : {-128.5, -128.0, -127.5, -1.0, -0.5, -0.0, 0.5, 1.0, 126.5, 127.0, 127.5, 254.5, 255.0}) {
          expect_exact(
              str("graph @g(%x: ", element, "[256], %w: f32[256]) -> %y {\n%k = Constant {value = dense<f32[]: ", k,
                  ">}\n%f = Cast %x {to = type<f32[*]>}\n%v = BitwiseNot %x\n%g = Cast %v {to = type<f32[*]>}\n%m = "
                  "Neg %w\n%c = ",
                  op, " ", operands, "\n%y = Where %c, %w, %m\n}"),
              {Datum(x), Datum(w)});
          if (HasFatalFailure()) return;
        }
  }
}

// Uniform values, constant or from a tensor, are stored as vectors of bytes.
TEST_P(Bytes, OneNumberEverywhere) {
  std::mt19937 random(5);
  for (const char* element : {"i8", "u8"}) {
    const ElementType type = *ElementType::parse(element);
    const int64_t low = type == kI8 ? -128 : 0;
    const auto text = [&](const std::string& n, const std::string& body) {
      return str("graph @g(%x: ", element, "[", n, "], %r: ", element, "[]) -> %y {\n%k = Constant {value = dense<",
                 element, "[]: ", low + 255, ">}\n", body, "\n}");
    };
    for (const char* body : {"%y = Max %x, %k", "%c = LessOrEqual %x, %k\n%y = Where %c, %r, %x"}) {
      EXPECT_EQ(count(text("N", body), "StoreBytes"), 1) << body;
      EXPECT_EQ(count(text("N", body), "Load"), body[1] == 'c' ? 1 : 0) << "of what all elements are, once";
      for (const int64_t n : {int64_t{0}, int64_t{1}, vector() / 4 + 1, vector(), 3 * vector() + 5, 4 * vector()}) {
        const Tensor x = tenon::testing::random_tensor(random, type, {n}, low, low + 255);
        const Tensor r = tenon::testing::random_tensor(random, type, {}, low, low + 255);
        expect_exact(text(str(n), body), {Datum(x), Datum(r)});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Products by some constants become sums and shifts, those by others remain.
TEST_P(Bytes, ProductsByConstants) {
  for (const char* element : {"i8", "u8"}) {
    const ElementType type = *ElementType::parse(element);
    const int64_t low = type == kI8 ? -128 : 0;
    Tensor x = *Tensor::zeros(type, {320});
    for (int64_t i = 0; i < 320; ++i) x.set_int(i, low + i % 256);
    for (int64_t factor = low; factor < low + 256; ++factor) {
      const std::string text = str("graph @g(%x: ", element, "[320]) -> %y {\n%k = Constant {value = dense<", element,
                                   "[]: ", factor, ">}\n%a = BitwiseNot %x\n%y = Mul %a, %k\n}");
      expect_exact(text, {Datum(x)});
      if (HasFatalFailure()) return;
    }
  }
  const auto of = [&](int factor, std::string_view op) {
    return count(str("graph @g(%x: u8[N], %z: u8[N]) -> %y {\n%k = Constant {value = dense<u8[]: ", factor,
                     ">}\n%a = Mul %x, %k\n%y = Add %a, %z\n}"),
                 op);
  };
  EXPECT_EQ(of(9, "MulBytes"), 0);
  EXPECT_EQ(of(249, "MulBytes"), 0) << "-7";
  EXPECT_GT(of(77, "MulBytes"), 0);
}

// A condition per row combined with conditions per element; sums of bytes that are used as floats and as 32-bit
// integers; 32-bit integers of which only low bytes are used.
TEST_P(Bytes, BesideOtherLanes) {
  std::mt19937 random(3);
  const char* const kBodies[] = {
      "%c = LessOrEqual %r, %k\n%d = Less %x, %r\n%e = Or %c, %d\n%a = Where %e, %x, %k\n%y = Add %a, %x",
      "%a = Add %x, %r\n%b = Sub %a, %k\n%c = Less %b, %x\n%d = Where %c, %k, %b\n%y = Cast %d {to = type<f32[*]>}",
      "%a = Add %x, %r\n%b = Sub %k, %a\n%c = Mul %b, %b\n%y = Cast %c {to = type<i32[*]>}",
      "%a = Add %w, %w\n%b = Cast %a {to = type<i8[*]>}\n%c = Less %b, %x\n%d = Where %c, %x, %b\n%y = Neg %d",
      // A choice between two values that are equal in all lanes; no tensor of bytes.
      "%b = Cast %w {to = type<i8[*]>}\n%c = Less %b, %r\n%d = Where %c, %r, %k\n%e = Less %d, %b\n%y = Where %e, %k, "
      "%b",
      // Operators on bytes that are equal in all lanes.
      "%a = BitwiseOr %r, %k\n%c = Less %x, %r\n%b = Where %c, %x, %a\n%d = Less %b, %k\n%e = Mul %b, %a\n%y = Where "
      "%d, %e, %x",
      "%a = Abs %w\n%b = Cast %a {to = type<i8[*]>}\n%c = Cast %w {to = type<i8[*]>}\n%d = Max %b, %c\n%e = Add %d, "
      "%c\n%f "
      "= Max %e, %b\n%g = Neg %f\n%y = Cast %g {to = type<i32[*]>}",
  };
  for (const int64_t n : {int64_t{1}, vector() - 1, vector(), 3 * vector() + 5}) {
    for (const char* body : kBodies) {
      const Tensor x = tenon::testing::random_tensor(random, kI8, {5, n}, -128, 127);
      const Tensor r = tenon::testing::random_tensor(random, kI8, {5, 1}, -128, 127);
      const Tensor w = tenon::testing::random_tensor(random, kI32, {5, n}, -1000, 1000);
      expect_exact(str("graph @g(%x: i8[5,", n, "], %r: i8[5,1], %w: i32[5,", n,
                       "]) -> %y {\n%k = Constant {value = dense<i8[]: 7>}\n", body, "\n}"),
                   {Datum(x), Datum(r), Datum(w)});
      if (HasFatalFailure()) return;
    }
  }
  for (const char* body : kBodies)
    EXPECT_GT(count(str("graph @g(%x: i8[M,N], %r: i8[M,1], %w: i32[M,N]) -> %y {\n%k = Constant {value = dense<i8[]: "
                        "7>}\n",
                        body, "\n}"),
                    "Bytes"),
              1)
        << body;
  EXPECT_EQ(count("graph @g(%x: i8[N], %r: i8[1]) -> %y {\n%k = Constant {value = dense<i8[]: 7>}\n%a = BitwiseOr %r, "
                  "%k\n%c = Less %x, %r\n%b = Where %c, %x, %a\n%d = Less %b, %k\n%y = Where %d, %a, %x\n}",
                  "GreaterBytes") +
                count("graph @g(%x: i8[N], %r: i8[1]) -> %y {\n%k = Constant {value = dense<i8[]: 7>}\n%a = BitwiseOr "
                      "%r, %k\n%c = Less %x, %r\n%b = Where %c, %x, %a\n%d = Less %b, %k\n%y = Where %d, %a, %x\n}",
                      "LessBytes"),
            2);
}

// The comparisons of four vectors become one mask if only the low bytes of the chosen values matter, and if packing
// them needs no further instructions.
TEST_P(Bytes, ChosenByOtherLanes) {
  const auto text = [](const std::string& w, int64_t n, const std::string& body) {
    return str("graph @g(%x: i8[", n, "], %w: ", w, "[", n, "]) -> %y {\n%k = Constant {value = dense<i8[]: 7>}\n",
               "%l = Constant {value = dense<", w, "[]: 9>}\n", body, "\n}");
  };
  const char* const kBodies[] = {
      "%c = LessOrEqual %w, %l\n%m = Constant {value = dense<i32[]: 300>}\n%d = Where %c, %m, %w\n%e = Cast %d {to = "
      "type<i8[*]>}\n%f = Cast %w {to = type<i8[*]>}\n%g = "
      "Max %e, %k\n%y = Min %g, %f",
      "%c = Less %w, %l\n%a = Add %x, %k\n%b = Where %c, %a, %x\n%y = Max %b, %k",
      "%c = Less %w, %l\n%d = Greater %x, %k\n%e = Where %c, %x, %k\n%f = Add %e, %x\n%y = Where %d, %e, %f",
  };
  std::mt19937 random(4);
  for (const char* element : {"i32", "f32"})
    for (const char* body : kBodies) {
      if (std::string_view(element) == "f32" && body == kBodies[0]) continue;
      const std::string long_one = text(element, 4096, body);
      EXPECT_EQ(count(long_one, "PackMask"), 1) << long_one;
      EXPECT_GE(count(long_one, "WhereBytes"), 1) << long_one;
      EXPECT_EQ(count(long_one, "LessOrEqual"), GetParam() == Isa::avx2 ? 0 : body == kBodies[0] ? 4 : 0) << long_one;
      for (const int64_t n : {int64_t{1}, vector() - 1, vector(), 3 * vector() + 5}) {
        const Tensor x = tenon::testing::random_tensor(random, kI8, {n}, -128, 127);
        const Tensor w = tenon::testing::random_tensor(random, *ElementType::parse(element), {n}, -20, 40);
        expect_exact(text(element, n, body), {Datum(x), Datum(w)});
        if (HasFatalFailure()) return;
      }
    }
}

// On avx2 this body needs more registers than are available, and is still faster than with four vectors of 32 bits.
TEST_P(Bytes, ThatSpill) {
  const std::string text =
      str("graph @g(%x: i8[7,102], %v: i32[1,102], %s: f16[1,1]) -> %y {\n",
          "%a = Constant {value = dense<i8[]: -6>}\n%b = Constant {value = dense<i8[]: 1>}\n",
          "%c = Constant {value = dense<i8[]: 8>}\n%d = Constant {value = dense<i8[]: 5>}\n",
          "%w = Cast %v {to = type<i8[*]>}\n%m = Max %x, %w\n%e = LessOrEqual %m, %a\n%f = Less %w, %b\n",
          "%g = And %e, %f\n%h = Where %g, %c, %m\n%i = BitwiseOr %x, %c\n%j = Add %i, %w\n",
          "%k = BitwiseOr %j, %x\n%l = Max %k, %x\n%n = Cast %s {to = type<f32[*]>}\n",
          "%o = Cast %n {to = type<i8[*]>}\n%p = Greater %o, %d\n%q = Where %p, %l, %w\n%r = Add %q, %i\n",
          "%t = Less %j, %o\n%y = Where %t, %r, %h\n}");
  EXPECT_GT(count(text, "Bytes"), 0);
  Tensor x = *Tensor::zeros(kI8, {7, 102}), v = *Tensor::zeros(kI32, {1, 102}), s = *Tensor::zeros(kF16, {1, 1});
  for (int64_t i = 0; i < x.size(); ++i) x.set_int(i, i * 37 % 256 - 128);
  for (int64_t i = 0; i < v.size(); ++i) v.set_int(i, i * 1001);
  for (const double number : {-3.0, 0.0, 7.0, 100.0}) {
    s.set_double(0, number);
    expect_exact(text, {Datum(x), Datum(v), Datum(s)});
  }
}

// Byte lanes that spill are used together with many other operations, since 32-bit lanes would have to be packed.
TEST_P(Bytes, ThatSpillBesideFloats) {
  const std::string text =
      "graph @g(%x: f32[N]) -> %y {\n%c = Constant {value = dense<f32[]: 0.55>}\n"
      "%h = Constant {value = dense<f32[]: 0.5>}\n%k = Constant {value = dense<i8[]: 1>}\n%a = Mul %x, %c\n%b = Neg "
      "%a\n%d = Relu %b\n%e = Abs %a\n%f = Add %e, %h\n%g = Div %d, %f\n%i = Mul %g, %b\n%j = Cast %i {to = "
      "type<i32[*]>}\n%l = Cast %j {to = type<i8[*]>}\n%m = Greater %l, %k\n%n = Cast %g {to = type<i8[*]>}\n%y = "
      "Where "
      "%m, %l, %n\n}";
  EXPECT_EQ(count(text, "StoreBytes"), 1);
}

// Floats that are clamped before conversion need no further check: NaN becomes 0 as well, for all readers.
TEST_P(Bytes, FloatsThatNoByteHolds) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers{0,    -0.0f, 0.9f,   -0.9f,  1,     -1,    127,    127.9f, 128,    -128,  -128.9f,
                                   -129, 255,   255.9f, 256,    32767, 32768, -32769, 65535,  65536,  1e9f,  -1e9f,
                                   3e9f, -3e9f, 1e30f,  -1e30f, kInf,  -kInf, NAN,    -NAN,   1e-40f, 254.5f};
  for (const int64_t n : {int64_t{5}, int64_t{32}, int64_t{300}}) {
    Tensor x = *Tensor::zeros(kF32, {n});
    for (int64_t i = 0; i < n; ++i) x.set_double(i, numbers[static_cast<size_t>(i) % numbers.size()]);
    for (const char* to : {"u8", "i8", "u16", "i16"}) {
      for (const char* then : {"%y = Add %a, %a", "%y = Max %a, %k", "%c = Greater %a, %k\n%y = Where %c, %a, %k",
                               "%y = Cast %a {to = type<f32[*]>}", "%y = Cast %a {to = type<i32[*]>}",
                               "%b = Mul %a, %k\n%y = Sub %b, %a"}) {
        expect_exact(str("graph @g(%x: f32[", n, "]) -> (%y, %a) {\n%k = Constant {value = dense<", to,
                         "[]: 3>}\n%a = Cast %x {to = type<", to, "[*]>}\n", then, "\n}"),
                     {Datum(x)});
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_EQ(count("graph @g(%x: f32[N]) -> %y {\n%y = Cast %x {to = type<u8[*]>}\n}", "ConvertInRange") % 3, 0);
  EXPECT_GT(count("graph @g(%x: f32[N]) -> %y {\n%y = Cast %x {to = type<u8[*]>}\n}", "ConvertInRange"), 0);
}

// Clamped floats, four vectors of which are packed into one of bytes. Packing saturates, which does not help readers of
// the floats.
TEST_P(Bytes, FloatsThatAreClamped) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers{0,      -0.0f,   -0.5f,   0.5f,  4.9f,   -4.9f,  100, 126.6f, 127.5f,
                                   128,    -127.5f, -128.5f, -129,  200.5f, 254.5f, 255, 256.5f, 40000,
                                   -40000, 3e9f,    -3e9f,   1e30f, kInf,   -kInf,  NAN, -NAN};
  struct Case {
    const char* to;
    float least, most;
  };
  for (const auto& [to, least, most] :
       {Case{"u8", 0, 255}, Case{"u8", -0.0f, 200}, Case{"u8", 4.5f, 127}, Case{"u8", -7, 255}, Case{"u8", 0, 300},
        Case{"i8", -128, 127}, Case{"i8", -3, 100}, Case{"i8", 0, 127}, Case{"i8", -128, 200}}) {
    for (const int64_t n : {int64_t{0}, int64_t{1}, vector() - 1, vector(), vector() + 1, 3 * vector() + 3}) {
      Tensor x = *Tensor::zeros(kF32, {n});
      for (int64_t i = 0; i < n; ++i) x.set_double(i, numbers[static_cast<size_t>(i) % numbers.size()]);
      for (const char* outputs : {"%y", "%y, %b", "%y, %low", "%y, %a, %wide"}) {
        for (const char* of : {"%x", "%low"}) {
          for (const char* by : {"%b", "%i"}) {  // directly, and modulo 256
            expect_exact(str("graph @g(%x: f32[", n, "]) -> (", outputs, ") {\n%l = Constant {value = dense<f32[]: ",
                             least, ">}\n%h = Constant {value = dense<f32[]: ", most, ">}\n%low = Relu %x\n%b = Clip ",
                             of, ", %l, %h\n%i = Cast %b {to = type<i32[*]>}\n%a = Cast ", by, " {to = type<", to,
                             "[*]>}\n%y = Add %a, %a\n%wide = Cast %a {to = type<f32[*]>}\n}"),
                         {Datum(x)});
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
  const auto lower_bounds = [&](std::string_view to) {
    const std::string text =
        str("graph @g(%x: f32[N]) -> %y {\n%a = Cast %x {to = type<", to, "[*]>}\n%y = Add %a, %a\n}");
    return count(text, "ClampHigh") - count(text, "ClampLow");
  };
  EXPECT_EQ(lower_bounds("u8"), 4);
  EXPECT_EQ(lower_bounds("i8"), 0);
}

// Floats that are never NaN: packing to i8 enforces the lower bound as well.
TEST_P(Bytes, NumbersThatAreClamped) {
  const std::vector<int> numbers{0,    1,    -1,   253,  254,   255,    256,        257,        -255,
                                 -256, -257, -258, 9999, -9999, 100000, 2147483647, -2147483647};
  const auto text = [](int64_t n, const char* to, float least, float most, const char* outputs) {
    return str("graph @g(%x: i32[", n < 0 ? "N" : str(n), "]) -> (", outputs,
               ") {\n%k = Constant {value = dense<f32[]: 0.5>}\n%l = Constant {value = dense<f32[]: ", least,
               ">}\n%h = Constant {value = dense<f32[]: ", most, ">}\n%f = Cast %x {to = type<f32[*]>}\n",
               "%m = Mul %f, %k\n%b = Clip %m, %l, %h\n%r = Round %b\n%a = Cast %r {to = type<", to,
               "[*]>}\n%y = Add %a, %a\n}");
  };
  for (const auto& [to, least, most] : {std::tuple{"i8", -128.0f, 127.0f}, {"i8", -3.0f, 100.0f}, {"u8", 0.0f, 255.0f}})
    for (const int64_t n : {int64_t{0}, int64_t{1}, vector() - 1, vector(), vector() + 1, 3 * vector() + 3})
      for (const char* outputs : {"%y", "%y, %b", "%y, %a, %m"}) {
        Tensor x = *Tensor::zeros(kI32, {n});
        for (int64_t i = 0; i < n; ++i) x.set_double(i, numbers[static_cast<size_t>(i) % numbers.size()]);
        expect_exact(text(n, to, least, most, outputs), {Datum(x)});
        if (HasFatalFailure()) return;
      }
  const auto lower_bounds = [&](float least, const char* outputs) {
    const std::string graph = text(-1, "i8", least, 127, outputs);
    return count(graph, "ClampHigh") - count(graph, "ClampLow");
  };
  EXPECT_EQ(lower_bounds(-128, "%y"), 4);
  EXPECT_EQ(lower_bounds(-128, "%y, %b"), 0);
  EXPECT_EQ(lower_bounds(-100, "%y"), 0);
}

TEST_P(Bytes, QuantisedNumbersAreRoundedAndKeptInRange) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers{
      0,       -0.0f,   0.25f,    -0.25f,     0.75f, -0.75f, 1.25f, -1.25f, 63.5f, 63.75f, 64,  -64.f, -64.5f, 127.25f,
      127.75f, -127.5f, 16383.5f, -16384.25f, 3e9f,  -3e9f,  1e30f, -1e30f, kInf,  -kInf,  NAN, -NAN,  1e-40f, 5.1f};
  for (const int64_t n : {int64_t{5}, int64_t{32}, int64_t{300}}) {
    Tensor x = *Tensor::zeros(kF32, {n});
    for (int64_t i = 0; i < n; ++i) x.set_double(i, numbers[static_cast<size_t>(i) % numbers.size()]);
    for (const char* to : {"u8", "i8", "u16", "i16"}) {
      for (const int zero : {0, 3, 127}) {
        for (const char* then : {"%y = DequantizeLinear %a, %s, %z", "%y = Cast %a {to = type<i32[*]>}"}) {
          expect_exact(str("graph @g(%x: f32[", n,
                           "]) -> (%y, %a) {\n%s = Constant {value = dense<f32[]: 0.5>}\n%z = "
                           "Constant {value = dense<",
                           to, "[]: ", zero, ">}\n%a = QuantizeLinear %x, %s, %z\n", then, "\n}"),
                       {Datum(x)});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  // One conversion per vector, which rounds, and no check for NaN.
  const std::string text =
      "graph @g(%x: f32[N]) -> %y {\n%s = Constant {value = dense<f32[]: 0.3>}\n%z = Constant "
      "{value = dense<u8[]: 100>}\n%y = QuantizeLinear %x, %s, %z\n}";
  EXPECT_GT(count(text, "RoundInRange"), 0);
  for (const char* spared : {"RoundEven", "Wrap", "Where", "NotEqual"}) EXPECT_EQ(count(text, spared), 0) << spared;
}

// Random graphs as in drawn_loops_bench: all types, known extents and shapes.
TEST_P(Bytes, DrawnGraphsKeepToTheBounds) {
  GuardedGraph runner(testing::target_of_machine(GetParam()), {.small_caches = false});
  const uint32_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(200);
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const bench::DrawnGraph drawn = bench::draw_graph(seed, 11);
    auto graph = graph_of(drawn.text());
    std::mt19937 random(seed);
    std::vector<Datum> inputs;
    for (size_t i = 0; i < graph->body().input_count(); ++i) {
      const Value* const input = graph->body().input(i);
      const ElementType element = input->type().element();
      inputs.emplace_back(tenon::testing::random_tensor(random, element, *input->type().shape().static_dims(),
                                                        element == kU8 ? 0 : -128, element == kU8 ? 255 : 127));
    }
    runner.tokenize(*graph);
    runner.run(*graph, inputs, random);
    ASSERT_FALSE(HasFatalFailure()) << drawn.text();
  }
  EXPECT_GT(runner.snippets, seeds / 2);
}

INSTANTIATE_TEST_SUITE_P(Both, Bytes, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
