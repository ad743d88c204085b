#include <algorithm>

#include <tenon/ir/text_internal.hpp>

namespace tenon::text {

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_name_char);
}
bool is_all_digits(std::string_view name) { return !name.empty() && std::all_of(name.begin(), name.end(), is_digit); }

void Cursor::skip() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

bool Cursor::more_on_line() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  return at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '#';
}

bool Cursor::at_end() {
  skip();
  return at_ == text_.size();
}

char Cursor::peek() { return at_end() ? '\0' : text_[at_]; }

bool Cursor::eat(std::string_view token) {
  skip();
  if (!rest().starts_with(token)) return false;
  at_ += token.size();
  return true;
}

Result<void> Cursor::expect(std::string_view token, std::string_view what) {
  if (eat(token)) return {};
  return fail("expected '", token, "' ", what, ", found ", found());
}

std::string_view Cursor::bare_name() {
  skip();
  const size_t begin = at_;
  while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

Result<std::string> Cursor::quoted() {
  skip();
  std::string_view remaining = rest();
  auto text = unquote(remaining);
  if (!text) return fail("this string does not end, or has an escape other than \\\" \\\\ \\n \\t \\xNN");
  at_ = text_.size() - remaining.size();
  return *std::move(text);
}

Result<std::string> Cursor::name(std::string_view what) {
  if (peek() == '"') return quoted();
  const std::string_view bare = bare_name();
  if (bare.empty()) return fail("expected ", what, ", found ", found());
  return std::string(bare);
}

bool Cursor::eat_word(std::string_view word) {
  const size_t before = at_;
  if (bare_name() == word) return true;
  at_ = before;
  return false;
}

Result<Type> Cursor::type() {
  skip();
  const size_t begin = at_;
  while (at_ < text_.size() && (is_name_char(text_[at_]) || text_[at_] == '?')) ++at_;
  // The brackets after the word, with everything inside them; parse_type checks the content.
  int depth = 0;
  size_t end = at_;
  while (end < text_.size()) {
    const char c = text_[end];
    if (depth == 0 && c != '[' && c != '(') break;
    if (c == '"') {
      std::string_view remaining = text_.substr(end);
      if (!unquote(remaining)) break;
      end = text_.size() - remaining.size();
      continue;
    }
    depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    ++end;
    if (depth == 0) break;
  }
  if (begin == end) return fail("expected a type such as f32[2,3], found ", found());
  const std::string_view spelled = text_.substr(begin, end - begin);
  const auto known = types_.find(spelled);
  if (known != types_.end()) {
    at_ = end;
    return known->second;
  }
  auto parsed = depth == 0 ? parse_type(spelled) : error(Code::parse, "the brackets of this type are not closed");
  if (!parsed.ok()) return placed(begin, parsed.error());
  types_.emplace(spelled, *parsed);
  at_ = end;
  return parsed;
}

Error Cursor::placed(size_t offset, const Error& error) const {
  Error out(error.code(), str(position(offset), ": ", error.message()));
  for (const auto& frame : error.frames()) out = std::move(out).with_frame(frame);
  return out;
}

std::string Cursor::position(size_t offset) const {
  const std::string_view before = text_.substr(0, offset);
  const size_t line_start = before.rfind('\n') + 1;  // 0 when there is none: npos + 1
  return str(where_, ":", std::count(before.begin(), before.end(), '\n') + 1, ":", offset - line_start + 1);
}

std::string Cursor::found() {
  if (at_end()) return "the end of the text";
  const std::string_view here = rest();
  size_t length = 1;
  while (length < here.size() && length < 24 && is_name_char(here[0]) && is_name_char(here[length])) ++length;
  return str("'", here.substr(0, length), "'");
}

}  // namespace tenon::text
