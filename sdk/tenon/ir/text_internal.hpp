// Shared by the writer and the readers of the text form: names, literals and the cursor. The grammar is in text.hpp and
// docs/text-form.md.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tenon/ir/attribute.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon::text {

// Nesting depth of regions; the readers and the verifier recurse.
inline constexpr int kMaxRegionDepth = 256;
// Tensors of more elements than this are written as hex.
inline constexpr int64_t kMaxListedElements = 32;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.' || c == '$' ||
         c == '-';
}
// Whether the name needs no quotes.
bool is_plain_name(std::string_view name);
bool is_all_digits(std::string_view name);

void append_name(std::string& out, std::string_view name);
void append_attribute(std::string& out, const Attribute& attribute, const PrintOptions& options);
// Appends the value's layout with a blank in front; nothing when it has none.
void append_layout(std::string& out, const Value& value, const PrintOptions& options);
void append_tensor(std::string& out, const Tensor& tensor, const PrintOptions& options);

// A position in a text. Tokens are separated by blanks, line ends and comments, which every reading function skips.
class Cursor {
 public:
  Cursor(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  std::string_view rest() const { return text_.substr(at_); }
  std::string_view since(size_t offset) const { return text_.substr(offset, at_ - offset); }
  size_t offset() const { return at_; }
  void advance(size_t count) { at_ += count; }
  void move_to(size_t offset) { at_ = offset; }
  void skip();
  // Skips blanks only; true when something else follows on this line.
  bool more_on_line();
  bool at_end();
  // The next character, '\0' at the end.
  char peek();
  bool eat(std::string_view token);
  // `what` completes "expected ...".
  Result<void> expect(std::string_view token, std::string_view what);
  // The longest run of name characters, empty when there is none.
  std::string_view bare_name();
  Result<std::string> quoted();
  // Reads a bare or a quoted name.
  Result<std::string> name(std::string_view what);
  // Reads a bare name equal to `word`.
  bool eat_word(std::string_view word);
  // Equal texts are parsed only once.
  Result<Type> type();

  // where:line:column: parts...
  template <class... Parts>
  Error fail(const Parts&... parts) const {
    return fail_at(at_, parts...);
  }
  template <class... Parts>
  Error fail_at(size_t offset, const Parts&... parts) const {
    return error(Code::parse, position(offset), ": ", parts...);
  }
  // The same error with the position in front.
  Error placed(size_t offset, const Error& error) const;
  std::string position(size_t offset) const;
  // The text at the current position, quoted and shortened, for messages.
  std::string found();

 private:
  std::string_view text_, where_;
  size_t at_ = 0;
  std::unordered_map<std::string_view, Type> types_;
};

Result<Attribute> read_attribute(Cursor& cursor);
// Reads what follows a type: `in "NHWC" ...` on the same line; null when nothing does.
Result<std::shared_ptr<const ValueLayout>> read_layout(Cursor& cursor, const Type& type);

}  // namespace tenon::text
