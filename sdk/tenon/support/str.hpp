// Text from values, without streams or locale.
#pragma once
#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tenon/support/export.hpp>

namespace tenon {

// Shortest text that reads back as the same value; "inf", "-inf", "nan", "-nan".
TENON_API void append_double(std::string& out, double value);
TENON_API void append_float(std::string& out, float value);

inline void append_text(std::string& out, std::string_view text) { out += text; }
inline void append_text(std::string& out, const char* text) { out += text; }
inline void append_text(std::string& out, char c) { out += c; }
// A template, so that pointers are not converted to bool.
template <std::same_as<bool> T>
void append_text(std::string& out, T b) {
  out += b ? "true" : "false";
}
inline void append_text(std::string& out, double v) { append_double(out, v); }
inline void append_text(std::string& out, float v) { append_float(out, v); }
template <std::integral T>
requires(!std::same_as<T, bool>) void append_text(std::string& out, T v) {
  char buffer[24];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  out.append(buffer, end);
}
template <class T>
concept HasToString = requires(const T& t) {
  { t.to_string() } -> std::convertible_to<std::string>;
};
template <HasToString T>
void append_text(std::string& out, const T& v) {
  out += v.to_string();
}
// A range of printable elements that has no text form of its own: "[a, b, c]".
template <class R>
requires(std::ranges::input_range<const R> && !std::convertible_to<const R&, std::string_view> &&
         !HasToString<R>) void append_text(std::string& out, const R& range) {
  out += '[';
  bool first = true;
  for (const auto& item : range) {
    if (!first) out += ", ";
    first = false;
    append_text(out, item);
  }
  out += ']';
}

// str("dim ", 3, " of ", shape): the concatenated text.
template <class... Args>
std::string str(const Args&... args) {
  std::string out;
  (append_text(out, args), ...);
  return out;
}

// Splits `text` at every `separator`; an empty text gives one empty piece. The pieces borrow from `text`.
TENON_API std::vector<std::string_view> split(std::string_view text, char separator);
TENON_API std::string_view trim(std::string_view text);
// Double-quoted, with \" \\ \n \t and \xNN for control bytes; other bytes are unchanged.
TENON_API std::string quote(std::string_view text);
// Reads what quote() wrote from the front of `text` and removes it there. For malformed text (no opening or closing
// quote, an unknown escape) returns nothing and leaves `text` unchanged.
TENON_API std::optional<std::string> unquote(std::string_view& text);
// True when `text` is valid UTF-8.
TENON_API bool is_utf8(std::string_view text);
// The candidate nearest to `word` by edit distance, "" when none is near: for "did you mean" hints.
TENON_API std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace tenon
