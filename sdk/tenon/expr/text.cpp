#include <tenon/expr/text.hpp>

#include <algorithm>
#include <charconv>

#include <tenon/expr/node_internal.hpp>

namespace tenon {
namespace {

constexpr std::string_view kWords[] = {"floordiv", "ceildiv", "mod", "min", "max", "select"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return is_letter(c) || is_digit(c) || c == '.'; }
bool is_word(std::string_view name) { return std::ranges::find(kWords, name) != std::end(kWords); }

class Printer {
 public:
  explicit Printer(std::string& out) : out_(out) {}

  // Writes `e` where the grammar has an expr.
  void expr(const Expr& e) {
    if (out_.size() >= kMaxExprTextBytes) {
      out_ += "...";
      return;
    }
    switch (e.kind()) {
      case ExprKind::constant: append_text(out_, e.constant()); return;
      case ExprKind::symbol: symbol(e.name()); return;
      case ExprKind::sum: sum(e); return;
      case ExprKind::product: product(e); return;
      case ExprKind::unfolded_sum: unfolded(e, " + "); return;
      case ExprKind::unfolded_product: unfolded(e, "*"); return;
      case ExprKind::floordiv: infix(e, " floordiv "); return;
      case ExprKind::mod: infix(e, " mod "); return;
      case ExprKind::min: call("min", e); return;
      case ExprKind::max: call("max", e); return;
      case ExprKind::select: call("select", e); return;
      case ExprKind::at_least_0: comparison(e.operands()[0], " <= "); return;
      case ExprKind::is_0: comparison(e.operands()[0], " == "); return;
    }
  }

 private:
  void symbol(std::string_view name) {
    const bool bare = !name.empty() && is_letter(name[0]) && std::ranges::all_of(name, is_name_part) && !is_word(name);
    out_ += bare ? std::string(name) : quote(name);
  }
  void bracketed(const Expr& e) {
    out_ += '(';
    if (++depth_ > kMaxExprTextDepth)
      out_ += "...";
    else
      expr(e);
    --depth_;
    out_ += ')';
  }
  // Writes `e` where the grammar has a factor.
  void factor(const Expr& e) {
    switch (e.kind()) {
      case ExprKind::constant:
      case ExprKind::symbol:
      case ExprKind::min:
      case ExprKind::max:
      case ExprKind::select: return expr(e);
      default: return bracketed(e);
    }
  }
  void infix(const Expr& e, std::string_view word) {
    factor(e.operands()[0]);
    out_ += word;
    factor(e.operands()[1]);
  }
  void product(const Expr& e) {
    bool first = true;
    for (size_t i = 0; i < e.operands().size(); ++i) {
      for (int64_t k = 0; k < e.numbers()[i]; ++k) {
        if (!first) out_ += '*';
        first = false;
        factor(e.operands()[i]);
      }
    }
  }
  void sum(const Expr& e) {
    const auto terms = e.operands();
    const auto numbers = e.numbers();
    for (size_t i = 0; i < terms.size(); ++i) {
      int64_t k = numbers[i];
      if (i > 0 && k < 0 && k != INT64_MIN) {
        out_ += " - ";
        k = -k;
      } else if (i > 0) {
        out_ += " + ";
      }
      const bool is_product = terms[i].kind() == ExprKind::product;
      if (k == 1 && !is_comparison(terms[i])) {
        expr(terms[i]);
        continue;
      }
      if (k == -1) out_ += '-';
      if (k != 1 && k != -1) append_text(out_, k), out_ += '*';
      is_product ? product(terms[i]) : factor(terms[i]);
    }
    const int64_t constant = numbers.back();
    if (constant == 0) return;
    out_ += constant < 0 && constant != INT64_MIN ? " - " : " + ";
    append_text(out_, constant < 0 && constant != INT64_MIN ? -constant : constant);
  }
  // Comparisons have the lowest precedence and need brackets inside other expressions.
  static bool is_comparison(const Expr& e) { return e.kind() == ExprKind::at_least_0 || e.kind() == ExprKind::is_0; }
  // The brackets make it a single operand of the surrounding expression.
  void unfolded(const Expr& e, std::string_view sign) {
    out_ += '(';
    ++depth_;
    bool first = true;
    for (const Expr& operand : e.operands()) {
      if (!first) out_ += sign;
      first = false;
      bracketed(operand);
    }
    --depth_;
    out_ += ')';
  }
  void call(std::string_view function, const Expr& e) {
    out_ += function;
    out_ += '(';
    bool first = true;
    if (++depth_ > kMaxExprTextDepth) {
      out_ += "...";
    } else {
      for (const Expr& operand : e.operands()) {
        if (!first) out_ += ", ";
        first = false;
        expr(operand);
      }
    }
    --depth_;
    out_ += ')';
  }
  // Writes 0 <= e (0 == e), with the negative terms of `e` on the left.
  void comparison(const Expr& e, std::string_view sign) {
    Expr left = 0, right = e;
    const detail::Linear linear(e);
    for (const auto& [term, k] : linear.terms) {
      if (k >= 0 || k == INT64_MIN) continue;
      left += term * -k;
      right += term * -k;
    }
    side(left);
    out_ += sign;
    side(right);
  }
  void side(const Expr& e) { is_comparison(e) ? bracketed(e) : expr(e); }

  std::string& out_;
  int depth_ = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Expr> whole() {
    if (text_.size() > kMaxExprTextBytes)
      return error(Code::resource_exhausted, "the text of an expression has ", text_.size(), " bytes; at most ",
                   kMaxExprTextBytes, " are read");
    TENON_TRY(e, expr());
    skip_space();
    if (at_ != text_.size()) return expected("an operator or the end");
    return e;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool accept(std::string_view sign) {
    skip_space();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  std::string_view peek_name() {
    skip_space();
    size_t end = at_;
    if (end < text_.size() && is_letter(text_[end]))
      while (end < text_.size() && is_name_part(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  Error expected(std::string_view what) const {
    const std::string found = at_ < text_.size() ? quote(text_.substr(at_, 20)) : "the end";
    return error(Code::parse, "column ", at_ + 1, ": expected ", what, ", found ", found);
  }

  Result<Expr> expr() {
    TENON_TRY(left, sum());
    const bool le = accept("<="), eq = !le && accept("=="), lt = !le && !eq && accept("<");
    if (!le && !eq && !lt) return left;
    TENON_TRY(right, sum());
    return le ? less_equal(left, right) : eq ? equal(left, right) : less(left, right);
  }
  Result<Expr> sum() {
    std::vector<Expr> terms;
    for (bool negative = false;;) {
      TENON_TRY(next, term());
      terms.push_back(negative ? -next : next);
      negative = false;
      if (accept("+")) continue;
      if (!accept("-")) break;
      negative = true;
    }
    return terms.size() == 1 ? terms[0] : tenon::sum(terms);
  }
  Result<Expr> term() {
    TENON_TRY(first, factor());
    // Consecutive factors are multiplied at once, so that the result does not depend on their order.
    std::vector<Expr> factors{first};
    const auto collapse = [&] {
      if (factors.size() > 1) factors = {product(factors)};
      return factors[0];
    };
    for (;;) {
      if (accept("*")) {
        TENON_TRY(next, factor());
        factors.push_back(next);
        continue;
      }
      const std::string_view word = peek_name();
      if (word != "floordiv" && word != "mod" && word != "ceildiv") return collapse();
      at_ += word.size();
      TENON_TRY(divisor, factor());
      const Expr dividend = collapse();
      factors = {word == "mod"        ? mod(dividend, divisor)
                 : word == "floordiv" ? floordiv(dividend, divisor)
                                      : ceildiv(dividend, divisor)};
    }
  }
  Result<Expr> factor() {
    bool negative = false;
    while (accept("-")) negative = !negative;
    skip_space();
    if (at_ < text_.size() && is_digit(text_[at_])) return integer(negative);
    TENON_TRY(e, primary());
    return negative ? -e : e;
  }
  Result<Expr> integer(bool negative) {
    uint64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), value);
    const uint64_t limit = (uint64_t{1} << 63) - !negative;
    const auto size = static_cast<size_t>(end - begin);
    if (status != std::errc() || value > limit)
      return error(Code::parse, "column ", at_ + 1, ": the integer ", negative ? "-" : "",
                   text_.substr(at_, std::min<size_t>(size, 40)), " is outside [", INT64_MIN, ", ", INT64_MAX, "]");
    at_ += size;
    return Expr(static_cast<int64_t>(negative ? 0 - value : value));
  }
  Result<Expr> primary() {
    if (accept("(")) {
      TENON_TRY(list, arguments());
      if (list.size() != 1) return expected("')' after one expression");
      return list[0];
    }
    if (at_ < text_.size() && text_[at_] == '"') return quoted_symbol();
    const size_t start = at_;
    const std::string_view name = peek_name();
    if (name.empty()) return expected("an integer, a symbol, '-' or '('");
    at_ += name.size();
    if (!is_word(name)) return Expr::symbol(name);
    const bool is_function = name == "min" || name == "max" || name == "select";
    if (!is_function || !accept("(")) {
      at_ = start;
      return expected(is_function ? str("'(' after '", name, "' (a symbol of this name is written in quotes)")
                                  : str("an operand (a symbol named ", name, " is written in quotes)"));
    }
    TENON_TRY(list, arguments());
    if (name == "min") return min(list);
    if (name == "max") return max(list);
    if (list.size() != 3)
      return error(Code::parse, "column ", start + 1, ": select takes a condition and two values, not ", list.size(),
                   " arguments");
    return select(list[0], list[1], list[2]);
  }
  // Parses what is between brackets, after the opening one.
  Result<std::vector<Expr>> arguments() {
    if (++depth_ > kMaxExprTextDepth)
      return error(Code::resource_exhausted, "column ", at_, ": brackets are nested deeper than ", kMaxExprTextDepth);
    std::vector<Expr> list;
    do {
      TENON_TRY(e, expr());
      list.push_back(e);
    } while (accept(","));
    if (!accept(")")) return expected("')' or ','");
    --depth_;
    return list;
  }
  Result<Expr> quoted_symbol() {
    const size_t start = at_++;
    std::string name;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_++];
      if (c != '\\') {
        name += c;
        continue;
      }
      const char escape = at_ < text_.size() ? text_[at_++] : '\0';
      if (escape == '"' || escape == '\\') {
        name += escape;
      } else if (escape == 'n' || escape == 't') {
        name += escape == 'n' ? '\n' : '\t';
      } else {
        unsigned byte = 0;
        const std::string_view digits = text_.substr(std::min(at_, text_.size()), 2);
        const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
        if (escape != 'x' || digits.size() != 2 || status != std::errc() || end != digits.data() + 2)
          return error(Code::parse, "column ", at_, ": a quoted symbol knows the escapes \\\" \\\\ \\n \\t and \\xNN");
        at_ += 2;
        name += static_cast<char>(byte);
      }
    }
    if (at_ == text_.size()) return error(Code::parse, "column ", start + 1, ": the quoted symbol has no end");
    ++at_;
    return Expr::symbol(name);
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string Expr::to_string() const {
  std::string out;
  Printer(out).expr(*this);
  return out;
}

Result<Expr> parse_expr(std::string_view text) { return Parser(text).whole(); }

}  // namespace tenon
