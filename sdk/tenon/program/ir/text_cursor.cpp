#include <tenon/program/ir/text_cursor_internal.hpp>

#include <algorithm>
#include <charconv>

#include <tenon/program/ir/text.hpp>

namespace tenon::program::detail {

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

Error TextCursor::fail_at(size_t at, const std::string& what) const {
  const std::string_view before = text_.substr(0, std::min(at, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  return error(Code::parse, where_, ":", line, ":", at - start + 1, ": ", what);
}

void TextCursor::skip_blanks() {
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '#')
      at_ = std::min(text_.find('\n', at_), text_.size() - 1);
    else if (!std::isspace(static_cast<unsigned char>(text_[at_])))
      return;
  }
}

bool TextCursor::take(std::string_view mark) {
  if (!peek(mark)) return false;
  at_ += mark.size();
  return true;
}

Result<void> TextCursor::expect(std::string_view mark) {
  if (take(mark)) return {};
  return fail(str("'", mark, "' is expected"));
}

std::string_view TextCursor::word_at(size_t at) const {
  size_t end = at;
  while (end < text_.size() && is_word_char(text_[end])) ++end;
  return text_.substr(at, end - at);
}

bool TextCursor::take_word(std::string_view word) {
  if (peek_word() != word) return false;
  at_ += word.size();
  return true;
}

Result<void> TextCursor::expect_word(std::string_view word) {
  if (take_word(word)) return {};
  return fail(str("'", word, "' is expected"));
}

Result<std::string> TextCursor::simple_name(std::string_view what) {
  const std::string word(peek_word());
  if (!is_name(word)) return fail(str("the name of ", what, " is expected, not '", word, "'"));
  at_ += word.size();
  return word;
}

Result<std::string> TextCursor::dotted_name(std::string_view what) {
  skip_blanks();
  const size_t start = at_;
  while (at_ < text_.size() && (is_word_char(text_[at_]) || text_[at_] == '.')) ++at_;
  if (start == at_ || std::isdigit(static_cast<unsigned char>(text_[start]))) return fail(str(what, " is expected"));
  return std::string(text_.substr(start, at_ - start));
}

Result<int64_t> TextCursor::integer() {
  skip_blanks();
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (status != std::errc()) return fail("an integer is expected");
  at_ = static_cast<size_t>(end - text_.data());
  return value;
}

Result<int> TextCursor::small_integer(int64_t low, int64_t high) {
  skip_blanks();
  const size_t start = at_;
  TENON_TRY(value, integer());
  if (value < low || value > high) return fail_at(start, str(value, " is outside of ", low, " .. ", high));
  return static_cast<int>(value);
}

Result<std::string> TextCursor::string() {
  skip_blanks();
  std::string_view rest = text_.substr(at_);
  auto value = unquote(rest);
  if (!value) return fail("a string in double quotes is expected");
  at_ = text_.size() - rest.size();
  return *std::move(value);
}

Result<ElementType> TextCursor::element() {
  const std::string word(peek_word());
  const auto type = ElementType::parse(word);
  if (!type) return fail(str("an element type is expected, not '", word, "'"));
  at_ += word.size();
  return *type;
}

}  // namespace tenon::program::detail
