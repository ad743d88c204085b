// Inside the room: the parser. text_cursor reads words, parse.cpp declarations, parse_expr.cpp expressions and regions,
// parse_statements.cpp and parse_calls.cpp the statements.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/program/ir/text.hpp>
#include <tenon/program/ir/text_cursor_internal.hpp>

namespace tenon::program::detail {

class Parser : TextCursor {
 public:
  Parser(std::string_view text, const KernelTable& kernels, std::string_view where)
      : TextCursor(text, where), kernels_(kernels) {}

  Result<Program> parse();

 private:
  // Expressions -----------------------------------------------------------------------------------------------

  // Returns the end of an expression that begins here: see text.hpp.
  size_t end_of_expr() const;
  // Returns the position after the word and everything that dots join to it.
  size_t skip_symbol(size_t at) const;
  Result<Expr> expr();
  Result<Range> range();
  Result<Dim> dim();
  Result<std::vector<Dim>> dims();

  // Buffers ---------------------------------------------------------------------------------------------------

  Result<std::string> percent_name(std::string_view what);
  Result<BufferId> buffer();
  // A buffer that a statement defines: a new one, or one that another statement has defined as well.
  Result<BufferId> define(const std::string& name, ElementType element, size_t rank);
  Result<Region> region();

  // Declarations ----------------------------------------------------------------------------------------------

  static std::optional<Role> role_of(std::string_view word);
  bool at_declaration() { return role_of(peek_word()) || peek_word() == "token" || peek_word() == "local"; }
  Result<void> declaration();
  Result<void> space(std::string& to);

  // Statements ------------------------------------------------------------------------------------------------

  using Rule = Result<Statement> (Parser::*)();

  // Up to the closing brace, which is consumed.
  Result<Statement> statements();
  Result<Statement> body() {
    TENON_OK(expect("{"));
    return statements();
  }
  Result<Statement> statement();
  Result<Statement> let();
  Result<Statement> allocate();
  Result<Allocation> allocation();
  Result<Statement> free();
  Result<Statement> loop();

  // [ NAME = ] SOURCE; `name` is that of the source when no other is given.
  Result<BufferId> definition(std::string& name);
  // The buffer of a view whose source has been read; a view under its source's name keeps the source's number.
  Result<BufferId> define_view(const std::string& name, BufferId source, size_t rank);
  // A list in brackets with an item or _ for each dim of the source.
  template <class T, class Item>
  Result<std::vector<std::optional<T>>> items(const Item& item) {
    std::vector<std::optional<T>> result;
    TENON_OK(expect("["));
    TENON_OK(list("]", [&]() -> Result<void> {
      if (take_word("_")) {
        result.emplace_back();
        return {};
      }
      TENON_TRY(value, item());
      result.emplace_back(std::move(value));
      return {};
    }));
    return result;
  }

  Result<Statement> crop();
  Result<Statement> slice();
  Result<Statement> transpose();
  Result<Statement> view();
  Result<Operand> operand();
  Result<KernelHandle> kernel();
  Result<Statement> call();
  Result<std::vector<Expr>> exprs();
  Result<void> tail(Expr& predicate, std::string& stage);
  Result<Copy> copy_rest();
  Result<void> padding(Copy& s);
  Result<Statement> copy();
  Result<TokenId> token();
  Result<Statement> start();
  Result<Statement> wait();
  Result<Statement> signal();
  Result<Statement> await();
  Result<Statement> prefetch();
  Result<Statement> check();

  const KernelTable& kernels_;
  int depth_ = 0;
  Program program_;
};

}  // namespace tenon::program::detail
