// Erf and Tanh of polynomials that are added to 1 are evaluated from one table, argument included:
//
//   %3 = Div %1, %2    1.41421354              %5 = TabulatedErf %1 {of = [0.707106769]}
//   %4 = Erf %3                                %6 = Add %5, %7
//   %6 = Add %4, %7    1
//
// Right because rounding the sum discards what a small result has below 2^-24, and because each step before the
// function adds an error of that size to its argument, which the table avoids. Where the sum is also multiplied by x
// itself, the products are included:
//
//   %8 = Mul %1, %6                            %9 = TabulatedErfGate %1 {of = [0.707106769], scale = [0.5]}
//   %9 = Mul %8, %10   0.5
//
// Intermediate products, which may be larger than the last one, then do not overflow.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "x86/emitters/odd_table.hpp"
#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

using Outer = OddFunction::Outer;

constexpr size_t kDegrees = 8;

// A polynomial of the value of register `base`; -1: a constant.
struct Polynomial {
  RegisterId base = -1;
  std::array<double, kDegrees> of = {};  // by degree
};

std::optional<Polynomial> sum_of(const Polynomial& a, const Polynomial& b, double sign) {
  if (a.base >= 0 && b.base >= 0 && a.base != b.base) return std::nullopt;
  Polynomial made{.base = std::max(a.base, b.base)};
  for (size_t i = 0; i < kDegrees; ++i) made.of[i] = a.of[i] + sign * b.of[i];
  return made;
}

std::optional<Polynomial> product_of(const Polynomial& a, const Polynomial& b) {
  if (a.base >= 0 && b.base >= 0 && a.base != b.base) return std::nullopt;
  Polynomial made{.base = std::max(a.base, b.base)};
  for (size_t i = 0; i < kDegrees; ++i) {
    if (a.of[i] == 0) continue;
    for (size_t k = 0; k < kDegrees; ++k) {
      if (b.of[k] == 0) continue;
      if (i + k >= kDegrees) return std::nullopt;
      made.of[i + k] += a.of[i] * b.of[k];
    }
  }
  return made;
}

std::optional<Polynomial> quotient_of(Polynomial a, const Polynomial& b) {
  if (b.base >= 0 || b.of[0] == 0) return std::nullopt;
  for (double& factor : a.of) factor /= b.of[0];
  return a;
}

class Tabulator {
 public:
  Tabulator(LinearKernel& kernel, Isa isa)
      : kernel_(kernel), isa_(isa), uses_(kernel), values_(kernel.registers.size()) {}

  void run() {
    // Values come before their readers, so each polynomial is built from polynomials that have been visited.
    for (const Instruction& one : kernel_.body)
      if (one.out.size() == 1 && is_f32(one.out[0]) && uses_.once(one.out[0])) value(one.out[0]) = value_of(one);
    bool changed = false;
    for (Instruction& one : kernel_.body) changed = tabulate(one) || changed;
    if (changed) drop_unread(kernel_, uses_);  // polynomials that only the tabulated functions read
  }

 private:
  bool is_f32(RegisterId id) const { return kernel_.registers[static_cast<size_t>(id)].element == kF32; }
  std::optional<Polynomial>& value(RegisterId id) { return values_[static_cast<size_t>(id)]; }

  // Arithmetic of f32 whose rounding may change.
  static bool is_arithmetic(const Instruction& one) {
    return !one.memory && !one.attributes.has(kRounded) &&
           (one.op == kAdd || one.op == kSub || one.op == kMul || one.op == kDiv || one.op == kNeg);
  }

  Polynomial value_of(const Instruction& one) {
    std::optional<Polynomial> made;
    if (one.op == kScalar) {
      made.emplace();
      made->of[0] = std::bit_cast<float>(static_cast<uint32_t>(*one.attributes.find("bits")->get_if<int64_t>()));
    } else if (is_arithmetic(one)) {
      made = arithmetic(one);
    }
    const auto finite = [](double factor) { return std::isfinite(factor); };
    if (made && std::ranges::all_of(made->of, finite)) return *made;
    Polynomial itself{.base = one.out[0]};
    itself.of[1] = 1;
    return itself;
  }

  std::optional<Polynomial> arithmetic(const Instruction& one) {
    const auto &a = value(one.in[0]), &b = value(one.in[one.in.size() - 1]);
    if (!a || !b) return std::nullopt;
    if (one.op == kNeg) return product_of(*a, Polynomial{.of = {-1}});
    if (one.op == kMul) return product_of(*a, *b);
    if (one.op == kDiv) return quotient_of(*a, *b);
    return sum_of(*a, *b, one.op == kAdd ? 1 : -1);
  }

  std::optional<double> number(RegisterId id) {
    const auto& known = value(id);
    return known && known->base < 0 ? std::optional(known->of[0]) : std::nullopt;
  }

  // A value computed from f, with polynomials of the argument of f: plain + factor f.
  struct Parts {
    Polynomial plain, factor;
  };

  std::optional<Parts> parts_of(const Instruction& one, RegisterId id, const Parts& of, RegisterId base) {
    constexpr Polynomial kMinus{.of = {-1}};
    const auto times = [&](const Polynomial& by) -> std::optional<Parts> {
      const auto plain = product_of(of.plain, by), factor = product_of(of.factor, by);
      return plain && factor ? std::optional(Parts{*plain, *factor}) : std::nullopt;
    };
    if (one.op == kNeg) return times(kMinus);
    const bool first = one.in[0] == id;
    const auto& other = value(one.in[first ? 1 : 0]);
    if (!other || (other->base >= 0 && other->base != base)) return std::nullopt;
    if (one.op == kMul) return times(*other);
    if (one.op == kDiv)
      return first && other->base < 0 && other->of[0] != 0 ? times({.of = {1 / other->of[0]}}) : std::nullopt;
    if (one.op == kSub && !first) {
      const auto negative = times(kMinus);
      return negative ? std::optional(Parts{*sum_of(negative->plain, *other, 1), negative->factor}) : std::nullopt;
    }
    return Parts{*sum_of(of.plain, *other, one.op == kAdd ? 1 : -1), of.factor};
  }

  // The scale of a gate scale x + scale x f. Only powers of two: other scales are rounded, and then a remainder would
  // be left where f is near -1.
  static std::optional<float> scale_of(const Parts& parts) {
    const double scale = parts.plain.of[1];
    Polynomial gate{.base = parts.plain.base};
    gate.of[1] = scale;
    constexpr double kLeast = 0x1p-60, kMost = 0x1p60;  // its products with the table's terms are normal numbers
    if (parts.plain.of != gate.of || parts.factor.of != gate.of || scale < kLeast || scale > kMost) return std::nullopt;
    int exponent = 0;
    return std::frexp(scale, &exponent) == 0.5 ? std::optional(static_cast<float>(scale)) : std::nullopt;
  }

  // The outermost of the sums and products around f, `id`, that is a gate of `base`: its position, and the scale of f.
  std::optional<std::pair<size_t, float>> gate_around(RegisterId id, RegisterId base) {
    std::optional<std::pair<size_t, float>> found;
    Parts parts{.factor = {.of = {1}}};
    while (uses_.is_for_one(id)) {
      const size_t at = uses_.readers(id)[0];
      const Instruction& one = kernel_.body[at];
      if (!is_arithmetic(one) || !uses_.once(one.out[0])) break;
      const auto next = parts_of(one, id, parts, base);
      if (!next) break;
      parts = *next;
      id = one.out[0];
      if (const auto scale = scale_of(parts)) found.emplace(at, *scale);
    }
    return found;
  }

  // Whether `id`, whose magnitude is up to `size`, is only added to numbers of at least that magnitude, directly or
  // after products with constants.
  bool is_summed(RegisterId id, double size) {
    const auto readers = uses_.readers(id);
    return !readers.empty() && std::ranges::all_of(readers, [&](size_t at) {
      const Instruction& one = kernel_.body[at];
      if (!is_arithmetic(one) || !uses_.once(one.out[0])) return false;
      if (one.op == kNeg) return is_summed(one.out[0], size);
      const bool first = one.in[0] == id;
      const std::optional<double> other = number(one.in[first ? 1 : 0]);
      if (!other) return false;
      if (one.op == kMul) return is_summed(one.out[0], size * std::abs(*other));
      if (one.op == kDiv) return first && *other != 0 && is_summed(one.out[0], size / std::abs(*other));
      return std::abs(*other) >= size;
    });
  }

  static std::optional<OddFunction> odd(Outer outer, const Polynomial& of) {
    OddFunction made{.outer = outer};
    for (size_t i = 0; i < kDegrees; ++i) {
      if (of.of[i] < 0 || (i % 2 == 0 && of.of[i] != 0)) return std::nullopt;
      if (i % 2 == 1) made.inner[i / 2] = static_cast<float>(of.of[i]);
    }
    return made;
  }

  bool tabulate(Instruction& one) {
    if ((one.op != kErf && one.op != kTanh) || one.memory || one.attributes.has(kRounded)) return false;
    if (!is_f32(one.in[0]) || !uses_.once(one.out[0]) || !is_summed(one.out[0], 1)) return false;
    const auto& of = value(one.in[0]);
    if (!of || of->base < 0) return false;
    auto function = odd(one.op == kErf ? Outer::erf : Outer::tanh, *of);
    if (!function || !odd_table(*function, isa_)) return false;
    const RegisterId base = of->base;
    if (const auto gate = gate_around(one.out[0], base)) {
      function->scale = gate->second;
      replace(kernel_.body[gate->first], odd_gate_name(function->outer), odd_gate_attributes(*function), base);
    } else {
      replace(one, odd_function_name(function->outer), odd_function_attributes(*function), base);
    }
    return true;
  }

  static void replace(Instruction& one, Name op, Attributes attributes, RegisterId in) {
    one.op = op;
    one.attributes = std::move(attributes);
    one.in = {in};
  }

  LinearKernel& kernel_;
  Isa isa_;
  const Uses uses_;
  std::vector<std::optional<Polynomial>> values_;
};

}  // namespace

void tabulate_functions(LinearKernel& kernel, Isa isa) {
  const auto is_one = [](const Instruction& one) { return one.op == kErf || one.op == kTanh; };
  if (std::ranges::any_of(kernel.body, is_one)) Tabulator(kernel, isa).run();
}

}  // namespace tenon::x86
