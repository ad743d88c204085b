// Inside the room: the position of a text parser, and the words that it reads there.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include <tenon/support/result.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon::program::detail {

// Words that end an expression, and those that begin a statement; they are reserved.
inline constexpr std::array<std::string_view, 14> kAfterExpr = {"stride", "fold",  "step", "parallel", "pipelined",
                                                                "in",     "align", "heap", "stack",    "slots",
                                                                "if",     "as",    "pad",  "at"};

bool is_word_char(char c);

class TextCursor {
 protected:
  // `where`: the name of the text in errors.
  TextCursor(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  // Characters ------------------------------------------------------------------------------------------------

  Error fail(const std::string& what) const { return fail_at(at_, what); }
  Error fail_at(size_t at, const std::string& what) const;

  void skip_blanks();
  bool peek(std::string_view mark) {
    skip_blanks();
    return text_.substr(at_).starts_with(mark);
  }
  bool take(std::string_view mark);
  Result<void> expect(std::string_view mark);

  // Words -----------------------------------------------------------------------------------------------------

  std::string_view word_at(size_t at) const;
  std::string_view peek_word() {
    skip_blanks();
    return word_at(at_);
  }
  bool take_word(std::string_view word);
  Result<void> expect_word(std::string_view word);
  Result<std::string> simple_name(std::string_view what);
  // Parts with dots between them.
  Result<std::string> dotted_name(std::string_view what);
  Result<int64_t> integer();
  Result<int> small_integer(int64_t low, int64_t high);
  Result<std::string> string();
  Result<ElementType> element();

  // item {"," item} and the closing mark; the mark alone is an empty list.
  template <class Item>
  Result<void> list(std::string_view close, const Item& item) {
    if (take(close)) return {};
    do TENON_OK(item());
    while (take(","));
    return expect(close);
  }

  std::string_view text_;
  std::string_view where_;
  size_t at_ = 0;
};

}  // namespace tenon::program::detail
