// Passes on linear kernels in text form: what they write, and what it computes on the machine.
#include "x86/passes/passes.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <snippet/bodies.hpp>
#include <support/guard_pages.hpp>

#include <tenon/snippet/allocate.hpp>
#include <tenon/snippet/emit.hpp>
#include <tenon/tensor/numeric.hpp>

#include "x86/assembly/listing.hpp"
#include "x86/kernel_support.hpp"

namespace tenon::x86::testing {
namespace {

using snippet::LinearKernel;
using test::GuardedBuffer;

LinearKernel parsed(const std::string& text) {
  auto kernel = snippet::parse_linear(text);
  EXPECT_TRUE(kernel.ok()) << (kernel.ok() ? "" : kernel.error().to_string()) << "\n" << text;
  return kernel.ok() ? *std::move(kernel) : LinearKernel();
}

// `text` with its values %10 and above as fresh registers from `next` on: no number may be left out.
std::string renumbered(const std::string& text, int& next) {
  std::map<std::string, int> numbers;
  std::string done;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (text[at] == '%' && end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    const std::string word = text.substr(at, end - at);
    if (word.size() < 3) {
      done += word;
    } else {
      const auto [number, is_new] = numbers.try_emplace(word, next);
      next += is_new;
      done += str("%", number->second);
    }
    at = end;
  }
  return done;
}

// y = what `inside` makes of the row x and the element w, as %20; the tail does the same.
std::string row_kernel(int lanes, const std::string& inside, std::string_view element = "f32") {
  int next = 6;
  const auto part = [&](std::string_view touched, std::string_view tail) {
    std::string text = inside;
    for (size_t at; (at = text.find("@")) != std::string::npos;) text.replace(at, 1, touched);
    for (size_t at; (at = text.find("!")) != std::string::npos;) text.replace(at, 1, tail);
    return renumbered(str(text, "    Store", touched, " ", element, " [%1 + %3], %20", tail, "\n"), next);
  };
  const std::string loop = part("", ""), tail = part(".partial", ", %4, %5");
  return str("kernel @row lanes ", lanes,
             " {\n  #0 = pointer 0\n  #1 = pointer 2\n  #2 = pointer 1\n  #3 = limit loop 0\n  #4 = limit loop 1\n"
             "  %0:g = Parameter #0\n  %1:g = Parameter #1\n  %2:g = Parameter #2\n  %3:g = Zero\n"
             "  loop 0 d0 dim 0 %3 vector step ",
             lanes, " limit #3 {\n", loop, "  }\n  tail 1 d0 dim 0 %3 limit #4 -> %4:bool, %5:g {\n", tail, "  }\n}\n");
}

std::string load(std::string_view element) { return str("    %10:", element, " = Load@ ", element, " [%0 + %3]!\n"); }
std::string weight(std::string_view element) {
  return str("    %11:", element, " = BroadcastLoad ", element, " [%2]\n");
}

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

class Passes : public MachineTest {
 protected:
  LinearKernel optimised(const std::string& text, PassOptions options = {}) {
    options.isa = GetParam().isa;
    LinearKernel kernel = parsed(text);
    const auto done = optimise(kernel, options);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
    return kernel;
  }

  std::shared_ptr<const JitCode> compiled(LinearKernel kernel) {
    const TargetDescription target = target_of(GetParam().isa);
    const auto fail = [](const Error& e) { ADD_FAILURE() << e.to_string(); };
    if (const auto done = allocate(kernel, register_pool(GetParam().isa), snippet::needs_of(full_table(), target));
        !done.ok())
      return fail(done.error()), nullptr;
    auto object = assemble(kernel, full_table(), target);
    if (!object.ok()) return fail(object.error()), nullptr;
    auto code = JitMemory::shared().add(std::make_shared<CodeObject>(*std::move(object)));
    if (!code.ok()) return fail(code.error()), nullptr;
    return *code;
  }

  // y for each x of a row, with guard pages behind both.
  template <class T>
  std::vector<T> run(const JitCode& code, const std::vector<T>& x, T w) {
    GuardedBuffer from(x.size() * sizeof(T)), to(x.size() * sizeof(T), 0xa5, output_), one(sizeof(T));
    if (!x.empty()) std::memcpy(from.data(), x.data(), from.bytes());
    std::memcpy(one.data(), &w, sizeof w);
    const auto width = static_cast<int64_t>(x.size());
    std::vector<int64_t> params = {reinterpret_cast<int64_t>(from.data()), reinterpret_cast<int64_t>(to.data()),
                                   reinterpret_cast<int64_t>(one.data()), width - GetParam().lanes, width};
    params.insert(params.end(), extra_params_.begin(), extra_params_.end());
    code.function()(params.data());
    std::vector<T> y(x.size());
    if (!x.empty()) std::memcpy(y.data(), to.data(), to.bytes());
    return y;
  }

  // Numbers that are the same in all types of so many bits, booleans included.
  template <class T>
  void check_copy(const JitCode& code) {
    for (const int64_t width : widths(GetParam().lanes)) {
      std::vector<T> x(static_cast<size_t>(width));
      for (size_t i = 0; i < x.size(); ++i) x[i] = sizeof(T) == 1 ? i % 2 : static_cast<T>(0x3c00 + 37 * i);
      EXPECT_EQ(run<T>(code, x, T{}), x);
    }
  }

  std::vector<int64_t> extra_params_;  // those that a pass adds
  tenon::testing::GuardAt output_ = tenon::testing::GuardAt::end;

  // All forms with f32: the bits of `expected`.
  template <class T, class Expected>
  void check(const JitCode& code, Expected expected) {
    std::mt19937 random(3);
    for (const int64_t width : widths(GetParam().lanes)) {
      std::vector<T> x(static_cast<size_t>(width));
      for (T& value : x) value = static_cast<T>(static_cast<int>(random() % 20001) - 10000) / static_cast<T>(7);
      const T w = static_cast<T>(static_cast<int>(random() % 201) - 100) / static_cast<T>(3);
      const std::vector<T> y = run(code, x, w);
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(y[i], expected(x[i], w)) << "x " << x[i] << ", w " << w << ", element " << i << " of " << width;
    }
  }
};

TEST_P(Passes, ProductsThatAreAddedAreContracted) {
  struct Case {
    std::string sum, op;
    float (*expected)(float x, float w);
  };
  const std::vector<Case> cases = {
      {"Add %12, %10", "Fma", [](float x, float w) { return std::fma(x, w, x); }},
      {"Add %11, %12", "Fma", [](float x, float w) { return std::fma(x, w, w); }},
      {"Sub %12, %11", "Fms", [](float x, float w) { return std::fma(x, w, -w); }},
      {"Sub %11, %12", "Fnma", [](float x, float w) { return std::fma(-x, w, w); }},
  };
  for (const Case& one : cases) {
    const std::string text = row_kernel(
        GetParam().lanes, load("f32") + weight("f32") + "    %12:f32 = Mul %10, %11\n    %20:f32 = " + one.sum + "\n");
    const std::string done = print(optimised(text, {.memory_operands = false}));
    EXPECT_EQ(count(done, one.op + " "), 2) << done;
    EXPECT_EQ(count(done, "Mul"), 0) << done;
    for (const bool memory_operands : {false, true}) {
      const auto code = compiled(optimised(text, {.memory_operands = memory_operands}));
      ASSERT_NE(code, nullptr);
      check<float>(*code, one.expected);
    }
    // Without contraction: two roundings.
    const std::string plain = print(optimised(text, {.contract = false, .memory_operands = false}));
    EXPECT_EQ(count(plain, "Mul"), 2) << plain;
  }
}

TEST_P(Passes, WhatIsNegatedAndAddedIsSubtracted) {
  for (const char* sum : {"Add %12, %11", "Add %11, %12"}) {
    const std::string text = row_kernel(
        GetParam().lanes, load("f32") + weight("f32") + "    %12:f32 = Neg %10\n    %20:f32 = " + sum + "\n");
    const LinearKernel kernel = optimised(text);
    EXPECT_EQ(count(print(kernel), "Neg"), 0) << print(kernel);
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    check<float>(*code, [](float x, float w) { return w - x; });
  }
  // Others read it as well.
  const std::string twice =
      load("f32") + weight("f32") + "    %12:f32 = Neg %10\n    %13:f32 = Add %12, %11\n    %20:f32 = Max %12, %13\n";
  EXPECT_EQ(count(print(optimised(row_kernel(GetParam().lanes, twice))), "Neg"), 2);
}

TEST_P(Passes, ANegatedProductIsSubtractedAtOnce) {
  for (const char* sum : {"Add %13, %11", "Add %11, %13"}) {
    const std::string text = row_kernel(
        GetParam().lanes,
        load("f32") + weight("f32") + "    %12:f32 = Mul %10, %11\n    %13:f32 = Neg %12\n    %20:f32 = " + sum + "\n");
    const std::string done = print(optimised(text, {.memory_operands = false}));
    EXPECT_EQ(count(done, "Fnma "), 2) << done;
    EXPECT_EQ(count(done, "Mul") + count(done, "Neg"), 0) << done;
    const auto code = compiled(optimised(text));
    ASSERT_NE(code, nullptr);
    check<float>(*code, [](float x, float w) { return std::fma(-x, w, w); });
    EXPECT_EQ(count(print(optimised(text, {.contract = false})), "Neg"), 2);
  }
}

TEST_P(Passes, AProductThatOthersReadStays) {
  const std::string twice = load("f32") + weight("f32") +
                            "    %12:f32 = Mul %10, %11\n    %13:f32 = Add %12, %11\n    %20:f32 = Max %12, %13\n";
  EXPECT_EQ(count(print(optimised(row_kernel(GetParam().lanes, twice))), "Mul"), 2);
  // Its own factor changes before the sum.
  const std::string changed =
      load("f32") + weight("f32") + "    %12:f32 = Mul %10, %11\n    %10:f32 = Copy %11\n    %20:f32 = Add %12, %10\n";
  EXPECT_EQ(count(print(optimised(row_kernel(GetParam().lanes, changed))), "Mul"), 2);
  // Integers have no such operation.
  const std::string ints = load("i32") + weight("i32") + "    %12:i32 = Mul %10, %11\n    %20:i32 = Add %12, %11\n";
  EXPECT_EQ(count(print(optimised(row_kernel(GetParam().lanes, ints, "i32"))), "Fma"), 0);
}

template <class Half>
float widened(uint16_t bits) {
  return static_cast<float>(Half::from_bits(bits));
}

TEST_P(Passes, WhatIsStoredNarrowIsRoundedByTheStore) {
  const auto squares = [&](std::string_view element, std::string_view behind) {
    return row_kernel(GetParam().lanes,
                      str("    %10:f32 = Load@ ", element, " [%0 + %3]!\n    %12:f32 = Mul %10, %10\n", behind),
                      element);
  };
  std::mt19937 random(5);
  const auto check_squares = [&]<class Half>(std::string_view element) {
    const LinearKernel kernel = optimised(squares(element, str("    %20:f32 = Round %12 {to = \"", element, "\"}\n")));
    EXPECT_EQ(count(print(kernel), "Round"), 0) << print(kernel);
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    for (int64_t width : widths(GetParam().lanes)) {
      std::vector<uint16_t> x(static_cast<size_t>(width) * 8);
      for (uint16_t& bits : x) bits = static_cast<uint16_t>(random());
      const auto y = run<uint16_t>(*code, x, 0);
      for (size_t i = 0; i < x.size(); ++i) {
        const float exact = widened<Half>(x[i]) * widened<Half>(x[i]);
        const bool is_nan = std::isnan(exact);
        ASSERT_TRUE(is_nan ? std::isnan(widened<Half>(y[i])) : y[i] == Half(exact).bits)
            << element << " of bits " << x[i] << " gave " << y[i];
      }
    }
    // Others read it as well, or it is rounded to something else.
    const std::string read = str("    %13:f32 = Round %12 {to = \"", element, "\"}\n    %20:f32 = Max %13, %13\n");
    EXPECT_EQ(count(print(optimised(squares(element, read))), "Round"), 2);
  };
  check_squares.operator()<f16>("f16");
  check_squares.operator()<bf16>("bf16");
  EXPECT_EQ(count(print(optimised(squares("bf16", "    %20:f32 = Round %12 {to = \"f16\"}\n"))), "Round"), 2);
}

TEST_P(Passes, LoadsBecomeOperands) {
  struct Case {
    std::string op, result;
    float (*expected)(float x, float w);
  };
  // %13 = w * w, so that w has more uses than one.
  const std::vector<Case> cases = {
      {"Add %10, %13", "AddMemory", [](float x, float w) { return x + w * w; }},
      {"Add %13, %10", "AddMemory", [](float x, float w) { return w * w + x; }},
      {"Sub %13, %10", "SubMemory", [](float x, float w) { return w * w - x; }},
      {"Mul %13, %10", "MulMemory", [](float x, float w) { return w * w * x; }},
      {"Div %13, %10", "DivMemory", [](float x, float w) { return w * w / x; }},
      {"Max %13, %10", "MaxMemory", [](float x, float w) { return std::max(w * w, x); }},
      {"Min %13, %10", "MinMemory", [](float x, float w) { return std::min(w * w, x); }},
      {"Fma %10, %13, %11", "FmaMemory", [](float x, float w) { return std::fma(x, w * w, w); }},
      {"Fma %13, %10, %11", "FmaMemory", [](float x, float w) { return std::fma(x, w * w, w); }},
      {"Fma %11, %13, %10", "FmaMemory", [](float x, float w) { return std::fma(w, w * w, x); }},
  };
  for (const Case& one : cases) {
    const std::string text = row_kernel(GetParam().lanes, weight("f32") + "    %13:f32 = Mul %11, %11\n" + load("f32") +
                                                              "    %20:f32 = " + one.op + "\n");
    const LinearKernel kernel = optimised(text, {.contract = false});
    const std::string done = print(kernel);
    EXPECT_EQ(count(done, one.result + " f32 [%0 + %3]"), 1) << "in the loop, not in the tail\n" << done;
    EXPECT_EQ(count(done, "= Load "), 0) << done;
    // Text and back.
    EXPECT_EQ(print(parsed(done)), done);
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    check<float>(*code, one.expected);
  }
}

// As the operator: NaN if either is, and of two zeros the second.
TEST_P(Passes, ExtremesWithMemoryKeepNaN) {
  const auto kernel_of = [&](const std::string& type, const std::string& op) {
    return optimised(row_kernel(GetParam().lanes,
                                weight(type) + "    %13:" + type + " = Mul %11, %11\n" + load(type) +
                                    "    %20:" + type + " = " + op + " %13, %10\n",
                                type),
                     {.contract = false});
  };
  const auto check_type = [&](auto zero, const std::string& type) {
    using T = decltype(zero);
    constexpr T kNaN = std::numeric_limits<T>::quiet_NaN(), kInfinity = std::numeric_limits<T>::infinity();
    for (const bool greater : {true, false}) {
      const LinearKernel kernel = kernel_of(type, greater ? "Max" : "Min");
      const auto code = compiled(kernel);
      ASSERT_NE(code, nullptr);
      for (const T w : {T{0}, T{2}, kInfinity, kNaN}) {
        std::vector<T> x(static_cast<size_t>(3 * GetParam().lanes + 1));
        const std::array<T, 7> values{T{1}, kNaN, -zero, kInfinity, T{100}, -kInfinity, -kNaN};
        for (size_t i = 0; i < x.size(); ++i) x[i] = values[i % values.size()];
        const std::vector<T> y = run<T>(*code, x, w);
        for (size_t i = 0; i < x.size(); ++i) {
          const T a = w * w, b = x[i];
          if (std::isnan(a) || std::isnan(b)) {
            EXPECT_TRUE(std::isnan(y[i])) << a << ", " << b;
          } else {
            EXPECT_EQ(y[i], greater ? std::max(a, b) : std::min(a, b)) << a << ", " << b;
            EXPECT_EQ(std::signbit(y[i]), std::signbit(greater ? (a > b ? a : b) : (a < b ? a : b))) << a << ", " << b;
          }
        }
      }
    }
  };
  if (GetParam().lanes == lanes_of(GetParam().isa, kF32)) check_type(0.0f, "f32");
  if (GetParam().lanes == lanes_of(GetParam().isa, kF64)) check_type(0.0, "f64");
}

TEST_P(Passes, LoadsStayWhereTheyMust) {
  const int lanes = GetParam().lanes;
  const auto loads_left = [&](const std::string& inside, std::string_view element = "f32") {
    return count(print(optimised(row_kernel(lanes, inside, element), {.contract = false})), "= Load ");
  };
  const std::string w = weight("f32");
  EXPECT_EQ(loads_left(w + load("f32") + "    %20:f32 = Sub %10, %11\n"), 1) << "the first operand of Sub";
  EXPECT_EQ(loads_left(w + load("f32") + "    %20:f32 = Max %10, %11\n"), 1) << "of two zeros the second counts";
  EXPECT_EQ(loads_left(load("f32") + "    %20:f32 = Add %10, %10\n"), 1) << "two uses";
  EXPECT_EQ(loads_left(w + load("f32") + "    Store f32 [%1], %11\n    %20:f32 = Add %11, %10\n"), 1)
      << "a store between might write to it";
  EXPECT_EQ(loads_left(w + "    %10:f32 = Load@ f16 [%0 + %3]!\n    %20:f32 = Add %11, %10\n"), 1) << "a conversion";
  EXPECT_EQ(loads_left(weight("i32") + load("i32") + "    %20:i32 = Div %11, %10\n", "i32"), 1) << "integers";
}

TEST_P(Passes, WhatIsMadeBeforeALoopStaysThere) {
  // The loop's part of `lines` is moved before it; the tail keeps its own.
  const auto ahead = [&](const std::string& lines, const std::string& behind) {
    std::string text = row_kernel(GetParam().lanes, lines + load("f32") + behind);
    const size_t loop = text.find("  loop 0 d0"), begin = text.find('\n', loop) + 1,
                 end = text.find("= Load f32 [%0", begin);
    const size_t first = text.rfind('\n', end) + 1;
    const std::string moved = text.substr(begin, first - begin);
    text.erase(begin, moved.size());
    text.insert(loop, moved);
    return print(optimised(text));
  };
  const std::string line = "    %11:f32 = Load f32 [%2]\n";
  // It would be read in each iteration, and stores of the loop may lie between.
  const std::string read = ahead(line, "    %12:f32 = Neg %10\n    %20:f32 = Max %12, %11\n");
  EXPECT_LT(read.find("= Load f32 [%2]"), read.find("  loop 0 d0")) << read;
  // It would be multiplied in each iteration.
  const std::string product = ahead(line + "    %13:f32 = Mul %11, %11\n", "    %20:f32 = Add %13, %10\n");
  EXPECT_LT(product.find("= Mul "), product.find("  loop 0 d0")) << product;
}

TEST_P(Passes, OneElementIsBroadcastByItsUser) {
  const std::string text = row_kernel(
      GetParam().lanes, load("f32") + "    %12:f32 = Neg %10\n" + weight("f32") + "    %20:f32 = Mul %12, %11\n");
  const LinearKernel kernel = optimised(text);
  EXPECT_EQ(count(print(kernel), "BroadcastLoad"), GetParam().isa == Isa::avx512 ? 0 : 2) << print(kernel);
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float w) { return -x * w; });
}

// Of what is alike in all lanes, and of nothing else.
// Every significand of x, both halves of the exponent's range, and what is no number.
TEST(QuotientFactors, GiveTheBitsOfTheQuotient) {
  std::mt19937 random(20261122);
  std::vector<float> divisors = {1.4142135f,    255,          3, 6, -6, 0.1f, 127.5f, 1e-10f, 2.5066283f,
                                 0x1.fffffep3f, 0x1.000002p0f};
  while (divisors.size() < 40)
    divisors.push_back(
        std::ldexp(1.0f + static_cast<float>(random() >> 9) * 0x1p-23f, static_cast<int>(random() % 40) - 20));
  int found = 0;
  for (const float divisor : divisors) {
    const auto by = quotient_factors(divisor);
    if (!by) continue;
    ++found;
    for (uint32_t bits = 0; bits < 1u << 23; ++bits) {
      const float x = std::bit_cast<float>(0x3f800000u | bits);
      ASSERT_EQ(std::fma(x, by->high, x * by->low), x / divisor) << x << " by " << divisor;
    }
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const float x : {kInfinity, -kInfinity, 0.0f, -0.0f, 0x1.fffffep127f, 0x1p-60f}) {
      const float y = std::fma(x, by->high, x * by->low);
      EXPECT_EQ(std::bit_cast<uint32_t>(y), std::bit_cast<uint32_t>(x / divisor)) << x << " by " << divisor;
    }
    for (int step = 0; step < 20000; ++step) {  // tiny ones
      const float x = std::bit_cast<float>(static_cast<uint32_t>(random()) % 0x10000000u);
      const float y = std::fma(x, by->high, x * by->low), wanted = x / divisor;
      EXPECT_TRUE(y == wanted || y == std::nextafter(wanted, 2 * wanted) || y == std::nextafter(wanted, 0.0f))
          << x << " by " << divisor;
    }
  }
  EXPECT_GE(found, 36) << "of 40";
}

TEST(QuotientFactors, PowersOfTwoAreExactAndOthersHaveNone) {
  const auto quarter = quotient_factors(-4);
  ASSERT_TRUE(quarter);
  EXPECT_EQ(quarter->high, -0.25f);
  EXPECT_EQ(quarter->low, 0);
  for (const float divisor : {0.0f, -0.0f, 0x1p-149f, 0x1p-61f, 0x1p61f, std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()})
    EXPECT_FALSE(quotient_factors(divisor)) << divisor;
}

TEST_P(Passes, QuotientsByConstantsAreProducts) {
  const auto kernel_by = [](const std::string& bits) {
    return row_kernel(GetParam().lanes,
                      load("f32") + "    %11:f32 = Scalar {bits = " + bits + "}\n    %20:f32 = Div %10, %11\n");
  };
  const LinearKernel kernel = optimised(kernel_by("0x40e00000"), {.memory_operands = false});
  const std::string text = print(kernel);
  EXPECT_EQ(count(text, "Div "), 0) << text;
  EXPECT_EQ(count(text, "Fma "), 2) << text;
  EXPECT_EQ(count(text, "Scalar"), 4) << "of the loop and the tail\n" << text;
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float) { return x / 7; });
  const std::string half = print(optimised(kernel_by("0x40000000"), {.memory_operands = false}));
  EXPECT_EQ(count(half, "Mul "), 2) << half;
  EXPECT_EQ(count(half, "Fma "), 0) << half;
  EXPECT_EQ(count(print(optimised(kernel_by("0x0"), {.memory_operands = false})), "Div "), 2);
}

// %18 = the function of %17, an argument of %10, its square %14, %11 = 1, %12 = 0.5 and %13 = 16.
std::string function_of(const std::string& argument, const std::string& function, const std::string& rest) {
  return load("f32") + "    %11:f32 = Scalar {bits = 0x3f800000}\n    %12:f32 = Scalar {bits = 0x3f000000}\n" +
         "    %13:f32 = Scalar {bits = 0x41800000}\n    %14:f32 = Mul %10, %10\n" + argument +
         "    %18:f32 = " + function + " %17\n" + rest;
}

TEST_P(Passes, FunctionsThatAreSummedWithAsMuchAreTabulated) {
  const std::string half = "    %17:f32 = Mul %10, %12\n";
  const std::string cubic = "    %15:f32 = Mul %14, %10\n    %16:f32 = Div %15, %13\n    %17:f32 = Add %16, %10\n";
  const std::string sum = "    %20:f32 = Add %18, %11\n";
  struct Case {
    std::string argument, function, rest, tabulated;  // empty: it stays
  };
  const std::vector<Case> cases = {
      {half, "Erf", sum, "TabulatedErf %10 {of = [0.5]}"},
      {cubic, "Tanh", sum, "TabulatedTanh %10 {of = [1.0, 0.0625]}"},
      {half, "Erf", "    %20:f32 = Sub %11, %18\n", "TabulatedErf %10 {of = [0.5]}"},
      {half, "Erf", "    %19:f32 = Mul %18, %12\n    %20:f32 = Add %19, %12\n", "TabulatedErf %10 {of = [0.5]}"},
      {half, "Erf", "    %19:f32 = Neg %18\n    %20:f32 = Add %11, %19\n", "TabulatedErf %10 {of = [0.5]}"},
      {"    %17:f32 = Neg %10\n", "Erf", sum, ""},       // falls
      {"    %17:f32 = Add %10, %11\n", "Erf", sum, ""},  // is not odd
      {"    %17:f32 = Add %14, %10\n", "Erf", sum, ""},
      {half, "Tanh", sum, ""},                            // a table would be long
      {half, "Erf", "    %20:f32 = Add %18, %12\n", ""},  // with less than its size
      {half, "Erf", "    %20:f32 = Add %18, %10\n", ""},
      {half, "Erf", "    %19:f32 = Mul %18, %13\n    %20:f32 = Add %19, %11\n", ""},
      {half, "Erf", "    %19:f32 = Add %18, %11\n    %20:f32 = Mul %19, %18\n", ""},  // others read it as well
      {"    %17:f32 = Mul %10, %12 {rounded = 1}\n", "Erf", sum, "TabulatedErf %17 {of = [1.0]}"},
  };
  for (const Case& one : cases) {
    const std::string text = row_kernel(GetParam().lanes, function_of(one.argument, one.function, one.rest));
    const std::string done = print(optimised(text, {.memory_operands = false}));
    EXPECT_EQ(count(done, "Tabulated"), one.tabulated.empty() ? 0 : 2) << done;
    const std::string told = one.tabulated.substr(0, one.tabulated.find(' '));
    EXPECT_EQ(count(done, told + " %"), told.empty() ? count(done, " %") : 2) << done;
    if (const size_t of = one.tabulated.find('{'); of != std::string::npos) {
      EXPECT_EQ(count(done, one.tabulated.substr(of)), 2) << done;
    }
    // What was the argument alone is gone, and what others read is not.
    if (!one.tabulated.empty() && one.argument == cubic) {
      EXPECT_EQ(count(done, "Div") + count(done, "Mul"), 0) << done;
    }
    EXPECT_EQ(count(print(optimised(text, {.contract = false, .memory_operands = false})), "Tabulated"), 0);
    const auto code = compiled(optimised(text));
    ASSERT_NE(code, nullptr);
  }
}

TEST_P(Passes, WhatIsTabulatedComesOutAsWhatWasWritten) {
  const std::string text =
      row_kernel(GetParam().lanes,
                 function_of("    %15:f32 = Mul %14, %10\n    %16:f32 = Div %15, %13\n    %17:f32 = Add %16, %10\n",
                             "Tanh", "    %19:f32 = Add %18, %11\n    %20:f32 = Mul %10, %19\n"));
  const LinearKernel kernel = optimised(text);
  ASSERT_EQ(count(print(kernel), "TabulatedTanh"), 2) << print(kernel);
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  std::mt19937 random(5);
  for (const int64_t width : widths(GetParam().lanes)) {
    std::vector<float> x(static_cast<size_t>(width));
    for (float& value : x) value = static_cast<float>(static_cast<int>(random() % 20001) - 10000) / 1500.0f;
    const std::vector<float> y = run(*code, x, 0.0f);
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i], wanted = v * (1 + std::tanh(v + v * v * v / 16));
      // Within 2^-23 of 1, and two roundings.
      ASSERT_NEAR(y[i], wanted, std::abs(v) * 0x1p-23 + std::abs(wanted) * 0x1p-23) << "x " << v << " of " << width;
    }
  }
}

// The bits of a number, so that neighbours differ by 1 and both zeros are one.
int64_t place_of(float x) {
  const auto bits = std::bit_cast<int32_t>(x);
  return bits < 0 ? -int64_t{bits & 0x7fffffff} : bits;
}

// By any divisor, of any x: all infinities, zeros and NaN, all else but for a few the quotient's bits.
TEST_P(Passes, QuotientsByWhatStandsAreProducts) {
  std::string text = row_kernel(GetParam().lanes, load("f32") + "    %20:f32 = Div %10, W\n");
  for (size_t at; (at = text.find('W')) != std::string::npos;) text.replace(at, 1, "%10");
  const std::string_view before = "%3:g = Zero\n";
  text.insert(text.find(before) + before.size(), "  %10:f32 = BroadcastLoad f32 [%2]\n");
  EXPECT_EQ(count(print(optimised(text, {.extents = {5 * GetParam().lanes}, .memory_operands = false})), "Div "), 2);
  const LinearKernel kernel = optimised(text, {.memory_operands = false});
  EXPECT_EQ(count(print(kernel), "Div "), 0) << print(kernel);
  EXPECT_EQ(count(print(kernel), "Fma "), 2) << print(kernel);
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
  std::vector<float> hard{0, -0.0f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), kMost, -kMost};
  for (const int exponent : {-149, -148, -127, -126, -125, -101, -100, -99, -60, -1, 0, 1, 99, 100, 101, 126, 127})
    for (const float m : {1.0f, -1.0f, 1.5f, 0x1.fffffep0f}) hard.push_back(std::ldexp(m, exponent));
  std::mt19937 random(5);
  const auto any = [&] { return std::bit_cast<float>(static_cast<uint32_t>(random())); };
  std::vector<float> divisors = hard;
  while (divisors.size() < 1000) divisors.push_back(any());
  size_t apart = 0;
  for (size_t which = 0; which < divisors.size(); ++which) {
    // A power of two by 2 - 2^-23 lies next to the middle of two numbers.
    const bool is_hard = which < hard.size();
    const float divisor = divisors[which];
    std::vector<float> x = hard;
    while (x.size() < 500) x.push_back(any());
    while (x.size() < 1000) x.push_back(divisor * std::ldexp(any(), -100));  // quotients of some size
    const std::vector<float> y = run(*code, x, divisor);
    for (size_t i = 0; i < x.size(); ++i) {
      const float wanted = x[i] / divisor;
      if (std::bit_cast<uint32_t>(y[i]) == std::bit_cast<uint32_t>(wanted)) continue;
      if (std::isnan(wanted) && std::isnan(y[i])) continue;
      const bool is_small = std::abs(wanted) < 0x1p-100f, is_exact = x[i] == 0 || !std::isfinite(wanted);
      ASSERT_LE(std::abs(place_of(y[i]) - place_of(wanted)), is_exact   ? 0
                                                             : is_small ? 2
                                                                        : 1)
          << x[i] << " by " << divisor << " is " << y[i];
      apart += !is_small && !is_hard;
    }
  }
  EXPECT_LE(apart, 3u) << "of a million";
}

// Of unsigned elements that were loaded from 8 or 16 bits, and of no others.
TEST_P(Passes, NarrowIntegersAreConvertedAsSigned) {
  for (const auto& [element, lane, marked] :
       {std::tuple{"u8", "u32", 2}, {"u16", "u32", 2}, {"u32", "u32", 0}, {"i8", "i32", 0}}) {
    const LinearKernel kernel = optimised(row_kernel(
        GetParam().lanes, str("    %10:", lane, " = Load@ ", element, " [%0 + %3]!\n    %20:f32 = Convert %10\n")));
    EXPECT_EQ(count(print(kernel), "fits_i32"), marked) << print(kernel);
    EXPECT_NE(compiled(kernel), nullptr);
  }
  const LinearKernel sums = optimised(row_kernel(
      GetParam().lanes, "    %10:u32 = Load@ u8 [%0 + %3]!\n    %11:u32 = Add %10, %10\n    %20:f32 = Convert %11\n"));
  EXPECT_EQ(count(print(sums), "fits_i32"), 0) << print(sums);
}

// Both operands loaded from 8 or 16 bits, wrapped to these, or numbers that fit them.
TEST_P(Passes, NarrowIntegersDivideInF32) {
  const auto marked = [&](const std::string& operand, std::string_view lane = "i32") {
    const LinearKernel kernel = optimised(
        row_kernel(GetParam().lanes, str("    %10:", lane, " = Load@ ", lane == "i32" ? "i16" : "u16", " [%0 + %3]!\n",
                                         operand, "    %19:", lane, " = Div %10, %11\n    %20:f32 = Convert %19\n")));
    EXPECT_NE(compiled(kernel), nullptr);
    return count(print(kernel), "fits_24_bits") > 0;
  };
  EXPECT_TRUE(marked("    %11:i32 = Load@ i8 [%0 + %3]!\n"));
  EXPECT_TRUE(marked("    %11:u32 = Load@ u16 [%0 + %3]!\n", "u32"));
  EXPECT_FALSE(marked("    %11:i32 = Load@ i32 [%0 + %3]!\n"));
  EXPECT_TRUE(marked("    %11:i32 = Scalar {bits = 0xffff8000}\n"));
  EXPECT_FALSE(marked("    %11:i32 = Scalar {bits = 0xffff7fff}\n"));
  EXPECT_TRUE(marked("    %11:u32 = Scalar {bits = 0xffff}\n", "u32"));
  EXPECT_FALSE(marked("    %11:u32 = Scalar {bits = 0x10000}\n", "u32"));
  EXPECT_FALSE(marked("    %11:i32 = Add %10, %10\n"));
  EXPECT_TRUE(marked("    %12:i32 = Add %10, %10\n    %11:i32 = Wrap %12 {to = \"i8\"}\n"));
}

TEST_P(Passes, QuotientsOfWhatIsAlikeTakeOneLane) {
  const auto kernel_of = [&](std::string_view operand) {
    return optimised(row_kernel(
        GetParam().lanes, load("f32") + weight("f32") + "    %12:f32 = Scalar {bits = 0x40400000}\n" +
                              "    %13:f32 = Div %12, " + std::string(operand) +
                              "\n    %14:f32 = Abs %13\n    %15:f32 = Sqrt %14\n" + "    %20:f32 = Add %10, %15\n"));
  };
  EXPECT_EQ(count(print(kernel_of("%10")), "Alike"), 0);
  const LinearKernel kernel = kernel_of("%11");
  EXPECT_EQ(count(print(kernel), "DivAlike"), 2) << print(kernel);
  EXPECT_EQ(count(print(kernel), "SqrtAlike"), 2);
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float w) { return x + std::sqrt(std::abs(3 / w)); });
}

TEST_P(Passes, WrittenLinesAreFetchedAhead) {
  for (const std::string_view element : {"f32", "i8"}) {
    const std::string lane = element == "i8" ? "i32" : "f32";
    const std::string text =
        row_kernel(GetParam().lanes, str("    %20:", lane, " = Load@ ", element, " [%0 + %3]!\n"), element);
    EXPECT_EQ(count(print(optimised(text)), "PrefetchWrite"), 0);
    const LinearKernel kernel = optimised(text, {.prefetch_writes = {.lines = 32}});
    EXPECT_EQ(count(print(kernel), str("PrefetchWrite ", element, " [%1 + %3 + 2048]")), 1) << print(kernel);
    EXPECT_EQ(count(print(kernel), "PrefetchWrite"), 1) << "one line an iteration, none in the tail";
    EXPECT_EQ(print(parsed(print(kernel))), print(kernel));
    if (element == "i8") continue;
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    EXPECT_EQ(count(listing(code->object()), "prefetchw"), 1);
    check<float>(*code, [](float x, float) { return x; });  // up to guard pages: prefetches do not fault
  }
}

TEST_P(Passes, ReadLinesAreFetchedAhead) {
  const std::string text = row_kernel(GetParam().lanes, load("f32") + weight("f32") + "    %20:f32 = Add %10, %11\n");
  for (const bool memory_operands : {false, true}) {
    const LinearKernel kernel = optimised(text, {.memory_operands = memory_operands, .prefetch_reads = {.lines = 64}});
    EXPECT_EQ(count(print(kernel), "PrefetchRead f32 [%0 + %3 + 4096]"), 1) << print(kernel);
    EXPECT_EQ(count(print(kernel), "PrefetchRead"), 1) << "not of the one element, nor in the tail";
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    EXPECT_EQ(count(listing(code->object()), "prefetcht0"), 1);
    check<float>(*code, [](float x, float w) { return x + w; });
  }
}

// What all rows share stays near; of one row alone nothing does.
TEST_P(Passes, WhatRowsShareIsNotFetched) {
  const auto fetched = [&](std::string_view dims) {
    snippet::test::BodyBuilder build("add", dims);
    const snippet::DimSet row = snippet::DimSet{1} << (dims.size() - 1), all = (snippet::DimSet{1} << dims.size()) - 1;
    build.output(build.op("Add", {build.input(all), build.input(row)}));
    auto kernel = snippet::lower(build.take(), {.lanes = GetParam().lanes, .rows = 1});
    TENON_CHECK(kernel.ok(), kernel.ok() ? "" : kernel.error().to_string());
    EXPECT_TRUE(optimise(*kernel, {.isa = GetParam().isa, .prefetch_reads = {.lines = 8}}).ok());
    std::set<snippet::RegisterId> pointers;
    for (const snippet::Instruction& one : kernel->body)
      if (one.op == "PrefetchRead") pointers.insert(one.memory->base);
    return pointers.size();
  };
  EXPECT_EQ(fetched("kk"), 1u);
  EXPECT_EQ(fetched("kkk"), 1u);
  EXPECT_EQ(fetched("k"), 2u);
}

// Later walks along a row find its lines in the caches.
TEST_P(Passes, TheFirstOfSeveralWalksFetches) {
  const int lanes = GetParam().lanes;
  const auto walk = [&](int loop, int counter, int value) {
    return str("  %", counter, ":g = Zero\n  loop ", loop, " d0 dim 0 %", counter, " vector step ", lanes, " limit #",
               2 + loop, " {\n    %", value, ":f32 = Load f32 [%0 + %", counter, "]\n    Store f32 [%1 + %", counter,
               "], %", value, "\n  }\n");
  };
  const LinearKernel kernel =
      optimised(str("kernel @twice lanes ", lanes,
                    " {\n  #0 = pointer 0\n  #1 = pointer 1\n  #2 = limit loop 0\n  #3 = limit loop 1\n",
                    "  %0:g = Parameter #0\n  %1:g = Parameter #1\n", walk(0, 2, 3), walk(1, 4, 5), "}\n"),
                {.prefetch_writes = {.lines = 48}, .prefetch_reads = {.lines = 64}});
  const std::string text = print(kernel), second = text.substr(text.find("loop 1 d0"));
  EXPECT_EQ(count(text, "PrefetchRead"), 1) << text;
  EXPECT_EQ(count(text, "PrefetchWrite"), 1) << text;
  EXPECT_EQ(count(second, "Prefetch"), 0) << text;
}

// Blocks of columns: the second sweep over the rows fetches the next block's, and no other does.
TEST_P(Passes, TheNextBlockIsFetchedByTheSecondSweep) {
  snippet::test::BodyBuilder build("softmax", "rk");
  const snippet::ValueId x = build.input(3), most = build.reduce("ReduceMax", x);
  const snippet::ValueId e = build.op("Exp", {build.op("Sub", {x, most})});
  build.output(build.op("Mul", {e, build.reduce("ReduceSum", e)}));
  build.output(most);
  const snippet::Body body = build.take();
  const int lanes = GetParam().lanes;
  const auto text_of = [&](bool prefetch, bool whole_rows) {
    auto kernel = snippet::lower(body, {.lanes = lanes, .resweep_cycles = 24, .whole_rows = whole_rows});
    TENON_CHECK(kernel.ok(), kernel.ok() ? "" : kernel.error().to_string());
    const auto passed =
        optimise(*kernel, {.isa = GetParam().isa, .block_cache_bytes = 1 << 20, .prefetch_blocks = prefetch});
    EXPECT_TRUE(passed.ok()) << passed.error().to_string();
    return print(*kernel);
  };
  const std::string text = text_of(true, true);
  EXPECT_EQ(count(text_of(false, true), "Prefetch"), 0);
  EXPECT_EQ(count(text_of(true, false), "Prefetch"), 0) << "tiles are no blocks";
  // Two vectors at once of four rows, and single ones.
  const int vectors_of_line = std::max(1, 64 / (lanes * 4));
  const int lines = 4 * std::max(1, 2 / vectors_of_line) + 4;
  EXPECT_EQ(count(text, "PrefetchRead"), lines) << text;
  EXPECT_EQ(count(text.substr(0, text.find("Exp")), "Prefetch"), 0) << text;
  EXPECT_NE(text.find("2048]"), std::string::npos) << text;
}

// Blocks whose rows are read once: those that four rows at once read next but one are fetched, of the tensor alone, and
// blocks are as large as half of the last-level cache holds.
TEST_P(Passes, RowsThatAreReadOnceAreFetchedAhead) {
  snippet::test::BodyBuilder build("softmax", "rk");
  const snippet::ValueId x = build.input(3), most = build.reduce("ReduceMax", x);
  const snippet::ValueId e = build.op("Exp", {build.op("Sub", {x, most})});
  build.output(build.op("Mul", {e, build.op("Sqrt", {build.reduce("ReduceSum", e)})}));
  auto kernel = snippet::lower(
      build.take(), {.lanes = GetParam().lanes, .whole_rows = true, .behind_blocks = true, .merge_sweeps = true});
  ASSERT_TRUE(kernel.ok());
  ASSERT_TRUE(kernel->merged && kernel->blocks.inside);
  ASSERT_TRUE(
      optimise(
          *kernel,
          {.isa = GetParam().isa, .block_cache_bytes = 1 << 20, .last_cache_bytes = 32 << 20, .prefetch_blocks = true})
          .ok());
  const std::string text = print(*kernel);
  EXPECT_EQ(count(text, "PrefetchRead"), 2 * 4) << "of the blocks, and of the columns behind the last\n" << text;
  EXPECT_NE(text.find("again inside of 512 within 655360, 256 within 16777216, "), text.npos) << text;
  std::set<snippet::RegisterId> fetched;
  for (const snippet::Instruction& one : kernel->body)
    if (one.op == "PrefetchRead") fetched.insert(one.memory->base);
  for (const snippet::Instruction& one : kernel->body) {
    if (one.op != "AddParameter" || !fetched.contains(one.out[0])) continue;
    const snippet::Param& step = kernel->params[static_cast<size_t>(one.number)];
    EXPECT_EQ(step.port, 0) << text;
    EXPECT_EQ(kernel->loops[static_cast<size_t>(step.loop)].increment, 4) << text;
  }
}

// Those that are read again have the columns that the options say, and the next ones are fetched so far ahead.
TEST_P(Passes, BlocksBehindAWalkAreAsLongAsAsked) {
  snippet::test::BodyBuilder build("softmax", "rk");
  const snippet::ValueId x = build.input(3), most = build.reduce("ReduceMax", x);
  const snippet::ValueId e = build.op("Exp", {build.op("Sub", {x, most})});
  build.output(build.op("Mul", {e, build.op("Sqrt", {build.reduce("ReduceSum", e)})}));
  auto kernel = snippet::lower(build.take(), {.lanes = GetParam().lanes, .whole_rows = true, .behind_blocks = true});
  ASSERT_TRUE(kernel.ok());
  ASSERT_TRUE(kernel->blocks.inside && kernel->blocks.again && !kernel->merged);
  const PassOptions options{
      .isa = GetParam().isa, .block_cache_bytes = 1 << 20, .block_columns = 128, .prefetch_blocks = true};
  ASSERT_TRUE(optimise(*kernel, options).ok());
  const std::string text = print(*kernel);
  EXPECT_NE(text.find("again inside of 128 within 655360, 128"), text.npos) << text;
  EXPECT_NE(text.find(" + 512]"), text.npos) << text;
  EXPECT_EQ(count(text, " + 2048]"), 0) << text;
}

// Of blocks that one sweep reads, that sweep fetches the next.
TEST_P(Passes, BlocksThatAreReadOnceAreFetchedAsTheyAreRead) {
  snippet::test::BodyBuilder build("columns", "rk");
  const snippet::ValueId x = build.input(3), squares = build.op("Mul", {x, x});
  build.output(build.op("Div", {x, build.op("Sqrt", {build.reduce("ReduceSum", squares)})}));
  auto kernel = snippet::lower(build.take(), {.lanes = GetParam().lanes, .whole_rows = true, .behind_blocks = true});
  ASSERT_TRUE(kernel.ok() && kernel->blocks.inside);
  const PassOptions options{
      .isa = GetParam().isa, .block_cache_bytes = 1 << 20, .block_columns = 128, .prefetch_blocks = true};
  ASSERT_TRUE(optimise(*kernel, options).ok());
  const std::string text = print(*kernel);
  EXPECT_GT(count(text, "PrefetchRead"), 0) << text;
  size_t depth = 0, blocks = 0;
  for (const snippet::Instruction& one : kernel->body) {
    if (one.op == "LoopBegin") ++depth, blocks = depth == 1 ? static_cast<size_t>(one.number) : blocks;
    if (one.op == "LoopEnd") --depth;
    if (one.op == "PrefetchRead") {
      EXPECT_EQ(kernel->loops[blocks].dim, kernel->blocks.count()) << "there is no next one behind the loop";
    }
  }
}

// Lines ahead of what moves on with the rows; what joined rows fold into stays near.
TEST_P(Passes, OfJoinedRowsTheTensorsAreFetched) {
  snippet::test::BodyBuilder build("columns", "rk");
  build.output(build.reduce("ReduceSum", build.input(3)));
  const int lanes = GetParam().lanes;
  auto kernel = snippet::lower(build.take(), {.lanes = lanes, .rows = 1, .whole_rows = true, .join_rows = true});
  ASSERT_TRUE(kernel.ok());
  ASSERT_GE(kernel->joined.rows, 0);
  ASSERT_TRUE(optimise(*kernel, {.isa = GetParam().isa, .prefetch_reads = {.lines = 8}}).ok());
  const std::string text = print(*kernel);
  size_t reads = 0;
  for (const snippet::Instruction& one : kernel->body) {
    if (one.op != "PrefetchRead") continue;
    ++reads;
    EXPECT_TRUE(std::ranges::any_of(kernel->loops, [&](const snippet::Loop& loop) {
      return loop.dim == 0 &&
             std::ranges::any_of(loop.shifts, [&](const auto& s) { return s.pointer == one.memory->base; });
    })) << text;
  }
  EXPECT_GT(reads, 0u) << text;
}

// Rows that are walked at once are all stored past the caches, not the first alone: what is left are stores of parts.
TEST_P(Passes, OfSeveralRowsAllAreStoredPastTheCaches) {
  snippet::test::BodyBuilder build("columns", "rk");
  const snippet::ValueId x = build.input(3);
  build.output(build.op("Sub", {x, build.reduce("ReduceSum", x)}));
  auto kernel = snippet::lower(build.take(), {.lanes = GetParam().lanes, .rows = 4, .whole_rows = true});
  ASSERT_TRUE(kernel.ok());
  const auto stores = [&](std::string_view op) {
    std::set<snippet::RegisterId> pointers;
    for (const snippet::Instruction& one : kernel->body)
      if (one.op == op && one.touched == codegen::Lanes::full) pointers.insert(one.memory->base);
    return pointers.size();
  };
  EXPECT_EQ(stores("Store"), 1u + 4u) << "the sums, and four rows of the result";
  ASSERT_TRUE(optimise(*kernel, {.isa = GetParam().isa, .stream_stores = true}).ok());
  EXPECT_EQ(stores("StoreStreaming"), 4u) << print(*kernel);
  EXPECT_EQ(stores("Store"), 1u) << print(*kernel);
}

// The sizes of blocks follow from the cache and from what lies in scratch rows.
TEST_P(Passes, BlocksAreCutForTheCache) {
  const auto blocks_of = [&](bool again, bool keeps, int64_t cache_bytes) {
    snippet::test::BodyBuilder build("columns", "rk");
    snippet::ValueId x = build.input(3, kF16);
    if (keeps) x = build.op("Exp", {x});
    const snippet::ValueId sum = build.reduce("ReduceSum", x);
    build.output(again ? build.op("Sub", {x, sum}) : sum, kF16);
    const auto cycles = [](const snippet::Body&, const snippet::BodyNode& node) {
      return node.op == "Exp" ? 100. : 1.;
    };
    auto kernel = snippet::lower(build.take(), {.lanes = GetParam().lanes, .cycles = cycles, .whole_rows = true});
    EXPECT_TRUE(kernel.ok() && optimise(*kernel, {.isa = GetParam().isa, .block_cache_bytes = cache_bytes}).ok());
    const std::string text = print(*kernel);
    const size_t at = text.find("blocks dim 1");
    return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(blocks_of(false, false, 0), "blocks dim 1");
  EXPECT_EQ(blocks_of(false, false, 1 << 20), "blocks dim 1 of 16384");
  EXPECT_EQ(blocks_of(false, false, 256 << 10), "blocks dim 1 of 4096");
  EXPECT_EQ(blocks_of(true, false, 256 << 10), "blocks dim 1 again of 512 within 131072, 256 within 131072, 4096");
  EXPECT_EQ(blocks_of(true, true, 256 << 10), "blocks dim 1 again of 512 within 131072, 256 within 131072, 256");
}

// Of whole vectors, in registers as they are and narrowed, with a fence before the return.
TEST_P(Passes, StoresGoPastTheCaches) {
  output_ = tenon::testing::GuardAt::lines;
  const int lanes = GetParam().lanes;
  for (const std::string_view element : {"f32", "f16", "bf16", "i32", "i16", "u8", "bool"}) {
    const bool is_bool = element == "bool";
    const std::string lane = is_bool                             ? "bool"
                             : element.find('f') != element.npos ? "f32"
                             : element[0] == 'u'                 ? "u32"
                                                                 : "i32";
    const int bits = *element.rbegin() == '2' ? 32 : element == "u8" || is_bool ? 8 : 16;
    if (is_bool && lanes * 8 < 128) continue;
    const std::string text = row_kernel(lanes, str("    %20:", lane, " = Load@ ", element, " [%0 + %3]!\n"), element);
    const LinearKernel kernel = optimised(text, {.stream_stores = true, .prefetch_writes = {.lines = 32}});
    const bool streams = lanes * bits >= 128;
    EXPECT_EQ(count(print(kernel), "StoreStreaming"), streams) << print(kernel);
    EXPECT_EQ(count(print(kernel), "PrefetchWrite"), !streams) << "lines that go past the caches are not fetched";
    EXPECT_EQ(has_streaming_stores(kernel), streams);
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    EXPECT_EQ(count(listing(code->object()), "movnt"), streams);
    EXPECT_EQ(count(listing(code->object()), "sfence"), streams);
    if (bits == 32) check<float>(*code, [](float x, float) { return x; });
    if (bits == 16) check_copy<uint16_t>(*code);
    if (bits == 8) check_copy<uint8_t>(*code);
  }
}

// Of rows that begin anywhere those that are said to be aligned, and lines are loaded by halves; operands in memory are
// not lines.
TEST_P(Passes, WhereRowsBeginAnywhereAlignedStoresAloneGoPastTheCaches) {
  const int lanes = GetParam().lanes;
  const std::string text = row_kernel(lanes, load("f32") + "    %20:f32 = Neg %10\n");
  const size_t store = text.find("Store f32"), line = text.find('\n', store);
  const std::string aligned = text.substr(0, line) + " {aligned = 1}" + text.substr(line);
  const PassOptions options{.stream_stores = true, .any_rows = true};
  const bool streams = lanes * 32 >= 128, halves = lanes * 32 == 512;
  EXPECT_EQ(count(print(optimised(text, options)), "StoreStreaming"), 0);
  const LinearKernel kernel = optimised(aligned, options);
  EXPECT_EQ(count(print(kernel), "StoreStreaming"), streams) << print(kernel);
  EXPECT_EQ(count(print(kernel), "LoadHalves"), halves) << print(kernel);
  const LinearKernel sum =
      optimised(row_kernel(lanes, load("f32") + weight("f32") + "    %20:f32 = Add %10, %11\n"), options);
  EXPECT_EQ(count(print(sum), "LoadHalves"), halves) << print(sum);
  const auto code = compiled(sum);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float w) { return x + w; });
}

// What lies near costs an operation more by halves.
TEST_P(Passes, WhatComesFromFarIsLoadedByHalves) {
  const int lanes = GetParam().lanes;
  const bool halves = lanes * 32 == 512;
  const PassOptions options{.far_by_halves = true};
  const LinearKernel sum =
      optimised(row_kernel(lanes, load("f32") + weight("f32") + "    %20:f32 = Add %10, %11\n"), options);
  EXPECT_EQ(count(print(sum), "LoadHalves"), halves) << "not what all rows share: " << print(sum);
  const auto code = compiled(sum);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float w) { return x + w; });
}

TEST(PassesAhead, StretchesShareTheCache) {
  const Ahead ahead{.lines = 64, .together = 128};
  EXPECT_EQ(ahead.of(1), 64);
  EXPECT_EQ(ahead.of(4), 32);
  EXPECT_EQ(ahead.of(8), 16);
  EXPECT_EQ(ahead.of(1000), 1);
  EXPECT_EQ(Ahead{.lines = 64}.of(1000), 64) << "no bound";
}

// Rows that are long enough go in four stretches side by side, and what is left as before.
TEST_P(Passes, StretchesOfARowGoSideBySide) {
  output_ = tenon::testing::GuardAt::lines;
  const int lanes = GetParam().lanes;
  const std::string text = row_kernel(lanes, load("f32") + weight("f32") + "    %20:f32 = Add %10, %11\n");
  const LinearKernel kernel = optimised(text, {.stream_stores = true,
                                               .streams = {.each = 4, .least_elements = 64},
                                               .prefetch_reads = {.lines = 16, .together = 32}});
  EXPECT_EQ(count(print(kernel), "StoreStreaming"), 9) << print(kernel);
  EXPECT_EQ(count(print(kernel), "+ 512]"), 4) << "each stretch 8 lines ahead: " << print(kernel);
  EXPECT_EQ(count(print(kernel), "AddParameter"), 2 * 3 + 1) << print(kernel);
  EXPECT_EQ(print(parsed(print(kernel))), print(kernel));
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  const auto expected = [](float x, float w) { return x + w; };
  for (const int64_t width : {63, 255, 256, 257, 512, 3 * 256 + 64 + 5}) {
    extra_params_ = {width / 256 * 64 - 2 * lanes, width / 256 * 256, width / 256 * 256, width / 256 * 192};
    std::vector<float> x(static_cast<size_t>(width));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    const std::vector<float> y = run(*code, x, 0.5f);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], expected(x[i], 0.5f)) << "element " << i << " of " << width;
  }
}

TEST_P(Passes, LoopsThatStoreIntoTheCachesAreOneStream) {
  const std::string text = row_kernel(GetParam().lanes, load("f32") + "    %20:f32 = Neg %10\n");
  EXPECT_EQ(count(print(optimised(text, {.streams = {.each = 4}})), "stream"), 0);
}

// Two rows at once: the second one's pointer is the first one's and a step.
TEST_P(Passes, KnownStepsBecomePartOfAddresses) {
  const auto text = [](std::string_view known, std::string_view more) {
    return str("kernel @rows lanes 4 {\n  #0 = pointer 0\n  #1 = pointer 1\n  #2 = limit loop 0\n  #3 = shift 0 loop 0",
               known, "\n  #4 = shift 1 loop 0\n  %0:g = Parameter #0\n  %1:g = Parameter #1\n  %2:g = Zero\n",
               "  loop 0 d0 dim 0 %2 step 2 limit #2 {\n    %3:g = AddParameter %0 #3\n    %4:g = AddParameter %3 #3\n",
               "    %10:f32 = Load f32 [%3 + 8]\n    %11:f32 = Load f32 [%4]\n", more,
               "    %12:f32 = Add %10, %11\n    Store f32 [%1], %12\n    %0:g = AddParameter %0 #3\n  }\n}\n");
  };
  const auto done = [&](std::string_view known, std::string_view more = "") {
    LinearKernel kernel = parsed(text(known, more));
    fold_steps(kernel);
    EXPECT_TRUE(snippet::verify(kernel).ok());
    EXPECT_EQ(print(parsed(print(kernel))), print(kernel));
    return print(kernel);
  };
  const std::string folded = done(" known 100");
  EXPECT_EQ(count(folded, "Load f32 [%0 + 108]"), 1) << folded;
  EXPECT_EQ(count(folded, "Load f32 [%0 + 200]"), 1) << folded;
  EXPECT_EQ(count(folded, "AddParameter"), 1) << "what the loop moves stays: " << folded;
  EXPECT_EQ(count(done(""), "AddParameter"), 3) << "not known";
  EXPECT_EQ(count(done(" known 3000000000"), "AddParameter"), 3) << "more than an address holds";
  EXPECT_EQ(count(done(" known 100", "    %0:g = AddParameter %0 #4\n    %13:f32 = Load f32 [%4]\n"), "AddParameter"),
            3)
      << "the second row's pointer is read after the first one's has moved";
}

TEST_P(Passes, OutputsThatAreReadAgainStayInTheCaches) {
  const std::string text =
      row_kernel(GetParam().lanes, "    %10:f32 = Load@ f32 [%1 + %3]!\n    %20:f32 = Add %10, %10\n");
  EXPECT_FALSE(has_streaming_stores(optimised(text, {.stream_stores = true})));
}

TEST_P(Passes, DoublesHaveTheSameForms) {
  if (GetParam().lanes * 64 > vector_bits(GetParam().isa)) return;  // no body with so many lanes has f64
  const std::string text =
      row_kernel(GetParam().lanes,
                 weight("f64") + load("f64") + "    %12:f64 = Mul %11, %10\n    %20:f64 = Sub %11, %12\n", "f64");
  const auto code = compiled(optimised(text, {.prefetch_writes = {.lines = 40}}));
  ASSERT_NE(code, nullptr);
  check<double>(*code, [](double x, double w) { return std::fma(-w, x, w); });
  const auto plain = compiled(optimised(text, {.contract = false, .memory_operands = true}));
  ASSERT_NE(plain, nullptr);
  check<double>(*plain, [](double x, double w) {
    const volatile double product = w * x;  // rounded, whatever this test is compiled for
    return w - product;
  });
}

TENON_ON_ALL_MACHINES(Passes);

}  // namespace
}  // namespace tenon::x86::testing
