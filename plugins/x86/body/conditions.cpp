#include "x86/body/conditions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace tenon::x86 {
namespace {

enum class How : uint8_t { less, less_equal, greater, greater_equal, equal };

Numbers known(bool truth) { return {.low = truth ? 1.0 : 0.0, .high = truth ? 1.0 : 0.0}; }
Numbers open() { return {.low = 0, .high = 1}; }

// The next number of the type.
double above(double x, ElementType type) {
  return type == kF32 ? double{std::nextafter(static_cast<float>(x), std::numeric_limits<float>::infinity())} : x + 1;
}
double below(double x, ElementType type) { return -above(-x, type); }

// The condition that x, any number from x.low to x.high or NaN, is from `low` to `high`.
Numbers lies(snippet::ValueId id, const Numbers& x, double low, double high) {
  if (x.high < low || x.low > high) return known(false);
  if (x.only.empty() && x.low >= low && x.high <= high) return known(true);
  return {.low = low, .high = high, .of = id};
}

bool has_sign(double x) { return x < 0 || std::signbit(x); }

// The condition on the distance of two values. No comparison holds for NaN.
Numbers apart(How how, const Numbers& a, const Numbers& b) {
  const bool numbers = a.only.empty() && b.only.empty();
  const auto said = [&](bool always, bool never) {
    return always && numbers ? known(true) : never ? known(false) : open();
  };
  switch (how) {
    case How::less: return said(a.high < b.low, a.low >= b.high);
    case How::less_equal: return said(a.high <= b.low, a.low > b.high);
    case How::greater: return said(a.low > b.high, a.high <= b.low);
    case How::greater_equal: return said(a.low >= b.high, a.high < b.low);
    case How::equal: return said(false, a.high < b.low || a.low > b.high);
  }
  return open();
}

// The lower bound of the intersection of two ranges: for comparisons, -0 equals 0.
double raised(double low, double to) {
  const double raised = std::max(low, to);
  return raised == 0 && has_sign(low) ? -0.0 : raised;
}

}  // namespace

Numbers compared(Name op, ElementType type, snippet::ValueId a, snippet::ValueId b, const std::vector<Numbers>& all) {
  static const std::unordered_map<Name, How> kHow{{"Less", How::less},
                                                  {"LessOrEqual", How::less_equal},
                                                  {"Greater", How::greater},
                                                  {"GreaterOrEqual", How::greater_equal},
                                                  {"Equal", How::equal}};
  static constexpr How kTurned[] = {How::greater, How::greater_equal, How::less, How::less_equal, How::equal};
  const auto found = kHow.find(op);
  if (found == kHow.end()) return open();
  const auto numbers = [&](snippet::ValueId id) -> const Numbers& { return all[static_cast<size_t>(id)]; };
  const auto is_one = [&](snippet::ValueId id) {
    return numbers(id).only.empty() && numbers(id).low == numbers(id).high && std::isfinite(numbers(id).low);
  };
  How how = found->second;
  if (a == b) {
    if (how == How::less || how == How::greater) return known(false);
    return numbers(a).only.empty() ? known(true) : open();
  }
  if (is_one(a)) std::swap(a, b), how = kTurned[static_cast<size_t>(how)];
  if (!is_one(b)) return apart(how, numbers(a), numbers(b));
  const Numbers& x = numbers(a);
  const double bound = numbers(b).low;
  switch (how) {
    case How::less: return lies(a, x, -kInfinity, below(bound, type));
    case How::less_equal: return lies(a, x, -kInfinity, bound);
    case How::greater: return lies(a, x, above(bound, type), kInfinity);
    case How::greater_equal: return lies(a, x, bound, kInfinity);
    case How::equal: return lies(a, x, bound, bound);
  }
  return open();
}

std::optional<bool> truth_of(const Numbers& condition) {
  if (condition.of >= 0 || condition.low != condition.high) return std::nullopt;
  return condition.low != 0;
}

bool implies(const Numbers& a, const Numbers& b) {
  return a.of >= 0 && a.of == b.of && a.low >= b.low && a.high <= b.high;
}

bool excludes(const Numbers& a, const Numbers& b) {
  return a.of >= 0 && a.of == b.of && (a.high < b.low || a.low > b.high);
}

Numbers both(const Numbers& a, const Numbers& b) {
  if (const auto truth = truth_of(a)) return *truth ? b : a;
  if (const auto truth = truth_of(b)) return *truth ? a : b;
  if (a.of < 0 || a.of != b.of) return open();
  const Numbers made{.low = std::max(a.low, b.low), .high = std::min(a.high, b.high), .of = a.of};
  return made.low > made.high ? known(false) : made;
}

Numbers either(const Numbers& a, const Numbers& b, ElementType type, const std::vector<Numbers>& all) {
  if (const auto truth = truth_of(a)) return *truth ? a : b;
  if (const auto truth = truth_of(b)) return *truth ? b : a;
  if (a.of < 0 || a.of != b.of || a.low > above(b.high, type) || b.low > above(a.high, type)) return open();
  return lies(a.of, all[static_cast<size_t>(a.of)], std::min(a.low, b.low), std::max(a.high, b.high));
}

Numbers opposite(const Numbers& condition) {
  const auto truth = truth_of(condition);
  return truth ? known(!*truth) : open();
}

Numbers where_it_holds(Numbers x, snippet::ValueId id, const Numbers& condition) {
  if (condition.of != id) return x;
  x.low = raised(x.low, condition.low), x.high = std::min(x.high, condition.high);
  x.only.clear();
  return x;
}

Numbers where_it_does_not(Numbers x, snippet::ValueId id, ElementType type, const Numbers& condition) {
  if (condition.of != id) return x;
  if (condition.low == -kInfinity && condition.high < kInfinity)
    x.low = raised(x.low, above(condition.high, type));
  else if (condition.high == kInfinity && condition.low > -kInfinity)
    x.high = std::min(x.high, below(condition.low, type));
  return x;
}

}  // namespace tenon::x86
