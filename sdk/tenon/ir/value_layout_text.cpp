// Layouts after types in the text form: in "NCHW{16c}" dims "NCHW" pad value 0x7f pinned map 0x60b6fcecbe8634e5.
#include <charconv>

#include <tenon/ir/text_internal.hpp>
#include <tenon/ir/value_layout.hpp>

namespace tenon::text {
namespace {

bool has_usual_dims(const ValueLayout& layout, const Type& type) {
  if (layout.dims.empty() || !type.is_tensor() || !type.shape().ranked()) return layout.dims.empty();
  const auto usual = default_layout_dims(layout.text, static_cast<size_t>(type.shape().rank()));
  return usual.ok() && *usual == layout.dims;
}

std::string hex(uint64_t value) {
  char buffer[16];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, 16).ptr;
  return str("0x", std::string_view(buffer, static_cast<size_t>(end - buffer)));
}

// The fingerprint on which both sides must agree; nothing for a shape that is known only at run time.
std::optional<uint64_t> fingerprint_of(const ValueLayout& layout, const Type& type) {
  if (!type.is_tensor() || !type.element().valid() || type.element().is_string()) return std::nullopt;
  const auto dims = type.shape().static_dims();
  if (!dims) return std::nullopt;
  const auto resolved = resolve_layout(layout, *dims, type.element().bits());
  if (!resolved.ok()) return std::nullopt;
  return resolved->fingerprint();
}

Result<uint64_t> read_hex(Cursor& cursor, std::string_view what) {
  const size_t begin = (cursor.skip(), cursor.offset());
  const std::string_view word = cursor.bare_name();
  uint64_t value = 0;
  const std::string_view digits = word.starts_with("0x") ? word.substr(2) : std::string_view();
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.empty() || status != std::errc() || end != digits.data() + digits.size()) {
    return cursor.fail_at(begin, "expected ", what, " such as 0x7f, found ", quote(word));
  }
  return value;
}

Result<void> read_pad(Cursor& cursor, ValueLayout& layout) {
  const size_t begin = (cursor.skip(), cursor.offset());
  const std::string_view word = cursor.bare_name();
  for (const PadState state : {PadState::none, PadState::zero, PadState::value, PadState::dirty}) {
    if (word != pad_state_name(state)) continue;
    layout.pad = state;
    if (state != PadState::value) return {};
    TENON_TRY(bits, read_hex(cursor, "the bits of the padding"));
    layout.pad_bits = bits;
    return {};
  }
  return cursor.fail_at(begin, "expected none, zero, value or dirty behind 'pad', found ", quote(word));
}

Result<void> check_fingerprint(Cursor& cursor, size_t begin, const ValueLayout& layout, const Type& type,
                               uint64_t told) {
  const auto actual = fingerprint_of(layout, type);
  if (actual == told) return {};
  return cursor.fail_at(begin, "the layout ", quote(layout.text), " of ", type, " has the map ",
                        actual ? hex(*actual) : std::string("of no layout"), " here and ", hex(told),
                        " where this was written; write it again with this version");
}

// Reads a word on this line only: the next line is the next operator's.
bool eat_word_on_line(Cursor& cursor, std::string_view word) { return cursor.more_on_line() && cursor.eat_word(word); }

Result<void> read_dims(Cursor& cursor, size_t begin, const Type& type, ValueLayout& layout) {
  if (eat_word_on_line(cursor, "dims")) {
    TENON_TRY(dims, cursor.name("the names of the dims, such as NCHW"));
    layout.dims = std::move(dims);
    return {};
  }
  if (!type.is_tensor() || !type.shape().ranked()) return {};
  auto usual = default_layout_dims(layout.text, static_cast<size_t>(type.shape().rank()));
  if (!usual.ok()) return cursor.placed(begin, usual.error());
  layout.dims = *std::move(usual);
  return {};
}

}  // namespace

void append_layout(std::string& out, const Value& value, const PrintOptions& options) {
  const ValueLayout* layout = value.layout();
  if (!layout) return;
  out += " in " + quote(layout->text);
  if (!has_usual_dims(*layout, value.type())) {
    out += " dims ";
    append_name(out, layout->dims);
  }
  if (layout->pad != PadState::dirty) out += str(" pad ", pad_state_name(layout->pad));
  if (layout->pad == PadState::value) out += " " + hex(layout->pad_bits);
  if (layout->pinned) out += " pinned";
  const auto print_map = options.layout_maps ? fingerprint_of(*layout, value.type()) : std::nullopt;
  if (print_map) out += " map " + hex(*print_map);
}

Result<std::shared_ptr<const ValueLayout>> read_layout(Cursor& cursor, const Type& type) {
  if (!eat_word_on_line(cursor, "in")) return nullptr;
  const size_t begin = (cursor.skip(), cursor.offset());
  if (cursor.peek() != '"')
    return cursor.fail("expected a layout such as \"NHWC\" behind 'in', found ", cursor.found());
  ValueLayout layout;
  TENON_TRY(text, cursor.quoted());
  layout.text = std::move(text);
  if (layout.text.size() > kMaxLayoutTextBytes) {
    return cursor.fail_at(begin, "a layout of ", layout.text.size(), " characters; at most ", kMaxLayoutTextBytes);
  }
  TENON_OK(read_dims(cursor, begin, type, layout));
  if (eat_word_on_line(cursor, "pad")) TENON_OK(read_pad(cursor, layout));
  layout.pinned = eat_word_on_line(cursor, "pinned");
  if (eat_word_on_line(cursor, "map")) {
    TENON_TRY(told, read_hex(cursor, "the fingerprint of the layout"));
    TENON_OK(check_fingerprint(cursor, begin, layout, type, told));
  }
  return std::make_shared<const ValueLayout>(std::move(layout));
}

}  // namespace tenon::text
