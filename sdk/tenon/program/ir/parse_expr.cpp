#include <algorithm>
#include <charconv>

#include <tenon/expr/text.hpp>
#include <tenon/program/ir/parse_internal.hpp>

namespace tenon::program::detail {

size_t Parser::end_of_expr() const {
  int depth = 0;
  size_t at = at_;
  while (at < text_.size()) {
    const char c = text_[at];
    if (c == '"') {
      std::string_view rest = text_.substr(at);
      if (!unquote(rest)) return at;
      at = text_.size() - rest.size();
      continue;
    }
    if (c == '\n' || c == '#' || c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == ';') return at;
    if (depth == 0 && (c == ',' || c == ')' || text_.substr(at).starts_with("+:"))) return at;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    const size_t behind = skip_symbol(at);
    if (std::ranges::count(kAfterExpr, text_.substr(at, behind - at))) return at;
    at = std::max(at + 1, behind);
  }
  return at;
}

size_t Parser::skip_symbol(size_t at) const {
  while (at < text_.size() && (is_word_char(text_[at]) || text_[at] == '.')) ++at;
  return at;
}

Result<Expr> Parser::expr() {
  skip_blanks();
  const size_t end = end_of_expr();
  auto parsed = parse_expr(trim(text_.substr(at_, end - at_)));
  if (!parsed) return fail(str("in the expression here: ", parsed.error().message()));
  at_ = end;
  return *std::move(parsed);
}

Result<Range> Parser::range() {
  TENON_TRY(min, expr());
  TENON_OK(expect("+:"));
  TENON_TRY(extent, expr());
  return Range{min, extent};
}

Result<Dim> Parser::dim() {
  TENON_TRY(r, range());
  Dim result{r.min, r.extent, {}, {}};
  if (take_word("stride")) {
    TENON_TRY(stride, expr());
    result.stride = stride;
  }
  if (take_word("fold")) {
    TENON_TRY(fold, expr());
    result.fold = fold;
  }
  return result;
}

Result<std::vector<Dim>> Parser::dims() {
  std::vector<Dim> result;
  TENON_OK(expect("["));
  TENON_OK(list("]", [&]() -> Result<void> {
    TENON_TRY(d, dim());
    result.push_back(std::move(d));
    return {};
  }));
  return result;
}

Result<Region> Parser::region() {
  TENON_TRY(id, buffer());
  Region result{id, {}};
  // On the same line: a box, not the beginning of the next statement.
  if (!take("[")) return result;
  TENON_OK(list("]", [&]() -> Result<void> {
    TENON_TRY(r, range());
    result.box.push_back(std::move(r));
    return {};
  }));
  return result;
}

Result<std::vector<Expr>> Parser::exprs() {
  std::vector<Expr> result;
  TENON_OK(list(")", [&]() -> Result<void> {
    TENON_TRY(e, expr());
    result.push_back(std::move(e));
    return {};
  }));
  return result;
}

}  // namespace tenon::program::detail
