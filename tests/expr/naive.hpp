// An evaluator of expression text that simplifies nothing, and random expression text: the oracle of this folder.
#pragma once
#include <cctype>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/expr/expr.hpp>

namespace tenon {
// How GoogleTest prints an expression.
inline std::ostream& operator<<(std::ostream& out, const Expr& e) { return out << e.to_string(); }
}  // namespace tenon

namespace tenon::test {

__extension__ typedef __int128 Wide;
using Point = std::map<std::string, int64_t, std::less<>>;

// Supports only unquoted symbols and well-formed text. nullopt: division by zero, or an intermediate value beyond 126
// bits.
class NaiveEvaluator {
 public:
  NaiveEvaluator(std::string_view text, const Point& point) : text_(text), point_(point) {}
  std::optional<Wide> operator()() { return expr(); }

 private:
  using Value = std::optional<Wide>;
  static Value small(Value v) { return v && *v < (Wide{1} << 126) && *v > -(Wide{1} << 126) ? v : std::nullopt; }
  static Value times(Value a, Value b) {
    Wide r;
    if (!a || !b || __builtin_mul_overflow(*a, *b, &r)) return std::nullopt;
    return small(r);
  }
  static Value quotient(Value a, Value b) {
    if (!a || !b || *b == 0) return std::nullopt;
    Wide q = *a / *b;
    while (q * *b > *a && *b > 0) --q;
    while (q * *b < *a && *b < 0) --q;
    return q;
  }
  bool accept(std::string_view sign) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  Value expr() {
    const Value a = sum();
    for (const char* sign : {"<=", "==", "<"}) {
      if (!accept(sign)) continue;
      const Value b = sum();
      if (!a || !b) return std::nullopt;
      return sign[0] == '=' ? *a == *b : sign[1] == '=' ? *a <= *b : *a < *b;
    }
    return a;
  }
  Value sum() {
    Value total = term();
    for (;;) {
      const bool plus = accept("+");
      if (!plus && !accept("-")) return total;
      const Value next = term();
      total = total && next ? small(plus ? *total + *next : *total - *next) : std::nullopt;
    }
  }
  Value term() {
    Value total = factor();
    for (;;) {
      if (accept("*")) {
        total = times(total, factor());
      } else if (accept("floordiv")) {
        total = quotient(total, factor());
      } else if (accept("ceildiv")) {
        const Value down = quotient(times(total, -1), factor());
        total = times(down, -1);
      } else if (accept("mod")) {
        const Value b = factor(), q = times(quotient(total, b), b);
        total = q ? Value(*total - *q) : std::nullopt;
      } else {
        return total;
      }
    }
  }
  Value factor() {
    if (accept("-")) return times(factor(), -1);
    if (accept("(")) return arguments()[0];
    if (accept("min(") || accept("max(")) {
      const bool is_min = text_[at_ - 3] == 'i' || text_.substr(at_ - 4, 3) == "min";
      const auto list = arguments();
      Value best = list[0];
      for (const Value& v : list) best = !best || !v ? std::nullopt : is_min == (*v < *best) && *v != *best ? v : best;
      return best;
    }
    if (accept("select(")) {
      const auto list = arguments();
      return !list[0] ? std::nullopt : *list[0] != 0 ? list[1] : list[2];
    }
    std::string word;
    while (at_ < text_.size() && (std::isalnum(text_[at_]) || text_[at_] == '_')) word += text_[at_++];
    if (!std::isdigit(word[0])) return point_.at(word);
    Wide value = 0;
    for (const char c : word) value = value * 10 + (c - '0');
    return value;
  }
  std::vector<Value> arguments() {
    std::vector<Value> list;
    do list.push_back(expr());
    while (accept(","));
    accept(")");
    return list;
  }

  std::string_view text_;
  const Point& point_;
  size_t at_ = 0;
};

inline std::optional<Wide> naive(std::string_view text, const Point& point) { return NaiveEvaluator(text, point)(); }

inline const std::vector<std::string>& variables() {
  static const std::vector<std::string> names = {"a", "b", "m", "n", "x"};
  return names;
}

using Random = std::mt19937_64;
inline int64_t draw(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// Every variable is drawn independently: mostly small, of both signs, sometimes near the ends of int64.
inline Point random_point(Random& random, bool extremes) {
  static constexpr int64_t kExtremes[] = {
      INT64_MIN, INT64_MIN + 1, -(int64_t{1} << 32), int64_t{1} << 31, int64_t{1} << 62, INT64_MAX - 1, INT64_MAX};
  Point point;
  for (const auto& name : variables())
    point[name] = extremes && draw(random, 0, 2) == 0 ? kExtremes[draw(random, 0, 6)] : draw(random, -20, 20);
  return point;
}

inline std::string random_text(Random& random, int depth, bool extremes) {
  if (depth == 0 || draw(random, 0, 7) == 0) {
    if (extremes && draw(random, 0, 5) == 0)
      return std::vector<std::string>{"9223372036854775807", "(-9223372036854775807)", "4611686018427387904",
                                      "(-9223372036854775808)", "4294967296"}[static_cast<size_t>(draw(random, 0, 4))];
    if (draw(random, 0, 2) == 0) return "(" + std::to_string(draw(random, -9, 9)) + ")";
    return variables()[static_cast<size_t>(draw(random, 0, static_cast<int64_t>(variables().size()) - 1))];
  }
  const auto part = [&] { return random_text(random, depth - 1, extremes); };
  const std::string a = part(), b = part();
  switch (draw(random, 0, 13)) {
    case 0:
    case 1:
    case 2: return "(" + a + " + " + b + ")";
    case 3:
    case 4: return "(" + a + " - " + b + ")";
    case 5:
    case 6: return "(" + a + " * " + b + ")";
    case 7: return "(" + a + " floordiv " + b + ")";
    case 8: return "(" + a + " mod " + b + ")";
    case 9: return "(" + a + " floordiv " + std::to_string(draw(random, 1, 12)) + ")";
    case 10: return "(" + a + " mod " + std::to_string(draw(random, 1, 12)) + ")";
    case 11: return "min(" + a + ", " + b + (draw(random, 0, 2) == 0 ? ", " + part() : "") + ")";
    case 12: return "max(" + a + ", " + b + (draw(random, 0, 2) == 0 ? ", " + part() : "") + ")";
    default:
      return "select(" + a + std::vector<std::string>{" < ", " <= ", " == "}[static_cast<size_t>(draw(random, 0, 2))] +
             b + ", " + part() + ", " + part() + ")";
  }
}

inline std::string to_text(const Point& point) {
  std::string out;
  for (const auto& [name, value] : point) out += name + "=" + std::to_string(value) + " ";
  return out;
}

}  // namespace tenon::test
