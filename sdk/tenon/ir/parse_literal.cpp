// Parses attributes and tensors from text.
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include <tenon/ir/text_internal.hpp>

namespace tenon::text {
namespace {

// The value of each hex digit, 255 for other bytes.
constexpr auto kHexValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(255);
  for (int i = 0; i < 10; ++i) values[static_cast<size_t>('0' + i)] = static_cast<uint8_t>(i);
  for (int i = 0; i < 6; ++i) {
    values[static_cast<size_t>('a' + i)] = values[static_cast<size_t>('A' + i)] = static_cast<uint8_t>(10 + i);
  }
  return values;
}();

// Values that are too large are not accepted as finite; a short text of a power of two may parse slightly off it.
constexpr ConvertOptions kExact = {.saturate = false, .e8m0_rounding = ConvertOptions::Rounding::nearest};

// A word of a number: digits, sign, point, exponent, inf, nan.
std::string_view number_word(Cursor& cursor) {
  cursor.skip();
  const std::string_view rest = cursor.rest();
  size_t length = 0;
  while (length < rest.size() && (is_name_char(rest[length]) || rest[length] == '+')) ++length;
  cursor.advance(length);
  return rest.substr(0, length);
}

bool spells_integer(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  return is_all_digits(word);
}

template <class T>
std::optional<T> whole(std::string_view word, int base = 10) {
  T value{};
  const char* end = word.data() + word.size();
  std::from_chars_result result{};
  if constexpr (std::is_floating_point_v<T>)
    result = std::from_chars(word.data(), end, value);
  else
    result = std::from_chars(word.data(), end, value, base);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

// The bits of nan(0x...), after the word.
Result<uint64_t> read_nan_bits(Cursor& cursor, int width) {
  const size_t begin = cursor.offset();
  TENON_OK(cursor.expect("(", "behind 'nan'"));
  const std::string_view word = cursor.bare_name();
  const auto bits = word.starts_with("0x") ? whole<uint64_t>(word.substr(2), 16) : std::nullopt;
  if (!bits || (width < 64 && *bits >> width != 0)) {
    return cursor.fail_at(begin, "expected the ", width, " bits of a NaN as in nan(0x7fc00000)");
  }
  TENON_OK(cursor.expect(")", "behind the bits of a NaN"));
  return *bits;
}

// Parses any float format as bits. Text that rounds to infinity without stating infinity is an error.
Result<uint64_t> read_float_bits(Cursor& cursor, ElementType format) {
  cursor.skip();
  const size_t begin = cursor.offset();
  const std::string_view word = number_word(cursor);
  if (word == "nan" && cursor.rest().starts_with("(")) {
    TENON_TRY(bits, read_nan_bits(cursor, format.bits()));
    if (!std::isnan(decode_float(format, bits))) return cursor.fail_at(begin, "these bits are no NaN of ", format);
    return bits;
  }
  const auto bad = [&] {
    return cursor.fail_at(begin, "expected a number that ", format, " holds, found ", quote(word.substr(0, 40)));
  };
  if (format == kF32) {
    const auto value = whole<float>(word);
    if (!value) return bad();
    return uint64_t{std::bit_cast<uint32_t>(*value)};
  }
  const auto value = whole<double>(word);
  if (!value) return bad();
  if (format == kF64) return std::bit_cast<uint64_t>(*value);
  const uint64_t bits = encode_float(format, *value, kExact);
  if (std::isfinite(*value) != std::isfinite(decode_float(format, bits))) return bad();
  return bits;
}

Result<uint64_t> read_int_bits(Cursor& cursor, ElementType format) {
  cursor.skip();
  const size_t begin = cursor.offset();
  const std::string_view word = number_word(cursor);
  const int unused = 64 - format.bits();
  if (format.is_unsigned_int()) {
    const auto value = whole<uint64_t>(word);
    if (value && *value << unused >> unused == *value) return *value;
  } else if (const auto value = whole<int64_t>(word)) {
    const uint64_t bits = static_cast<uint64_t>(*value) << unused;
    if (static_cast<int64_t>(bits) >> unused == *value) return bits >> unused;
  }
  return cursor.fail_at(begin, "expected an integer that ", format, " holds, found ", quote(word.substr(0, 40)));
}

Result<void> read_element(Cursor& cursor, Tensor& tensor, int64_t i) {
  const ElementType element = tensor.element();
  std::byte* data = tensor.mutable_data();
  if (element.is_string()) {
    TENON_TRY(text, cursor.quoted());
    tensor.mutable_as<std::string>()[static_cast<size_t>(i)] = std::move(text);
  } else if (element.is_complex()) {
    const ElementType part(ElementKind::ieee, static_cast<uint8_t>(element.bits() / 2));
    TENON_OK(cursor.expect("(", "before a complex number"));
    TENON_TRY(real, read_float_bits(cursor, part));
    TENON_OK(cursor.expect(",", "between real and imaginary part"));
    TENON_TRY(imaginary, read_float_bits(cursor, part));
    TENON_OK(cursor.expect(")", "behind a complex number"));
    store_bits(data, part.bits(), 2 * i, real);
    store_bits(data, part.bits(), 2 * i + 1, imaginary);
  } else if (element.is_bool()) {
    const bool yes = cursor.eat_word("true");
    if (!yes && !cursor.eat_word("false")) return cursor.fail("expected true or false, found ", cursor.found());
    store_bits(data, 8, i, yes ? 1 : 0);
  } else {
    TENON_TRY(bits, element.is_float() ? read_float_bits(cursor, element) : read_int_bits(cursor, element));
    store_bits(data, element.bits(), i, bits);
  }
  return {};
}

Result<void> read_hex(Cursor& cursor, Tensor& tensor) {
  cursor.skip();
  const std::string_view digits = cursor.rest().substr(0, 2 * tensor.bytes());
  auto* to = reinterpret_cast<uint8_t*>(tensor.mutable_data());
  for (size_t i = 0; i < tensor.bytes(); ++i) {
    const uint8_t high = kHexValues[static_cast<uint8_t>(digits[2 * i])];
    const uint8_t low = kHexValues[static_cast<uint8_t>(digits[2 * i + 1])];
    if ((high | low) > 15) {
      return cursor.fail_at(cursor.offset() + 2 * i, "expected ", digits.size(), " hex digits for ",
                            tensor.to_string());
    }
    to[i] = static_cast<uint8_t>(high << 4 | low);
  }
  cursor.advance(digits.size());
  const auto used = static_cast<uint64_t>(tensor.size()) * static_cast<uint64_t>(tensor.element().bits()) % 8;
  if (used != 0 && to[tensor.bytes() - 1] >> used != 0) {
    return cursor.fail("the bits behind the last element of ", tensor.to_string(), " must be zero");
  }
  return {};
}

Result<void> read_list(Cursor& cursor, Tensor& tensor) {
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (i > 0 && !cursor.eat(","))
      return cursor.fail(tensor.to_string(), " has ", tensor.size(), " elements, found ", i);
    TENON_OK(read_element(cursor, tensor, i));
  }
  return {};
}

// Copies element 0 to all the others.
void spread_first(Tensor& tensor) {
  const ElementType element = tensor.element();
  if (element.is_string()) {
    auto texts = tensor.mutable_as<std::string>();
    for (size_t i = 1; i < texts.size(); ++i) texts[i] = texts[0];
  } else if (element.byte_addressable()) {
    const size_t step = static_cast<size_t>(element.bits()) / 8;
    std::byte* data = tensor.mutable_data();
    for (size_t i = step; i < tensor.bytes(); ++i) data[i] = data[i - step];
  } else {
    const uint64_t bits = load_bits(tensor.data(), element.bits(), 0);
    for (int64_t i = 1; i < tensor.size(); ++i) store_bits(tensor.mutable_data(), element.bits(), i, bits);
  }
}

// The length of the remaining text bounds the size of a listed tensor, so that no memory is requested for a shape that
// the text cannot fill.
Result<void> check_enough_text(Cursor& cursor, std::string_view form, ElementType element, const Dims& dims) {
  TENON_TRY(count, element_count(dims));
  TENON_TRY(bytes, storage_bytes(element, count));
  const size_t least = form == "hex" ? bytes : form == "dense" ? static_cast<size_t>(count) : 0;
  if (least <= cursor.rest().size()) return {};
  return error(Code::parse, "the text ends before the ", count, " elements of ", element, dims);
}

// Parses what follows the word `form`.
Result<Tensor> read_tensor(Cursor& cursor, std::string_view form) {
  TENON_OK(cursor.expect("<", str("behind '", form, "'")));
  cursor.skip();
  const size_t begin = cursor.offset();
  if (form == "elided") return cursor.fail("an elided tensor cannot be read back; print without elide_beyond");
  if (form == "dense" && cursor.eat(">")) return Tensor();
  TENON_TRY(type, cursor.type());
  const auto dims = type.is_tensor() ? type.shape().static_dims() : std::nullopt;
  if (!dims || !type.element().valid()) {
    return cursor.fail_at(begin, "a tensor needs an element type and numbers for dims, ", type, " has none");
  }
  if (form == "hex" && type.element().is_string()) return cursor.fail_at(begin, "strings have no hex form");
  TENON_OK(cursor.expect(":", "behind the type of a tensor"));
  auto tensor = [&]() -> Result<Tensor> {
    TENON_OK(check_enough_text(cursor, form, type.element(), *dims));
    return Tensor::zeros(type.element(), *dims);
  }();
  if (!tensor.ok()) return cursor.placed(begin, tensor.error());
  if (form == "hex") {
    TENON_OK(read_hex(cursor, *tensor));
  } else if (form == "dense") {
    TENON_OK(read_list(cursor, *tensor));
  } else {
    if (tensor->size() == 0) return cursor.fail_at(begin, "a splat of no elements; write dense<", type, ": >");
    TENON_OK(read_element(cursor, *tensor, 0));
    spread_first(*tensor);
  }
  TENON_OK(cursor.expect(">", str("behind the elements of ", tensor->to_string())));
  return *std::move(tensor);
}

Result<Attribute> read_number(Cursor& cursor) {
  cursor.skip();
  const size_t begin = cursor.offset();
  const std::string_view word = number_word(cursor);
  if (spells_integer(word)) {
    if (const auto value = whole<int64_t>(word)) return Attribute(*value);
    return cursor.fail_at(begin, word.substr(0, 40), " does not fit 64 bits; write a real number with a point");
  }
  cursor.move_to(begin);
  TENON_TRY(bits, read_float_bits(cursor, kF32));
  return Attribute(std::bit_cast<float>(static_cast<uint32_t>(bits)));
}

Result<Attribute> read_word(Cursor& cursor) {
  cursor.skip();
  const size_t begin = cursor.offset();
  const std::string_view word = cursor.bare_name();
  if (word == "dense" || word == "splat" || word == "hex" || word == "elided") {
    TENON_TRY(tensor, read_tensor(cursor, word));
    return Attribute(std::move(tensor));
  }
  if (word == "type") {
    TENON_OK(cursor.expect("<", "behind 'type'"));
    TENON_TRY(type, cursor.type());
    TENON_OK(cursor.expect(">", "behind a type"));
    return Attribute(std::move(type));
  }
  for (const auto& [list, empty] : {std::pair<std::string_view, Attribute>{"reals", Attribute::Reals()},
                                    {"texts", Attribute::Texts()},
                                    {"tensors", Attribute::Tensors()}}) {
    if (word != list) continue;
    TENON_OK(cursor.expect("[", "of an empty list"));
    TENON_OK(cursor.expect("]", "of an empty list; the word is for empty lists only"));
    return empty;
  }
  cursor.move_to(begin);
  return cursor.fail("expected a number, a \"string\", a list, type<...>, dense<...>, splat<...> or hex<...>, found ",
                     cursor.found());
}

Result<Attribute> read_scalar(Cursor& cursor) {
  const char first = cursor.peek();
  if (first == '"') {
    TENON_TRY(text, cursor.quoted());
    return Attribute(std::move(text));
  }
  const std::string_view rest = cursor.rest();
  if (is_digit(first) || first == '-' || rest.starts_with("inf") || rest.starts_with("nan")) return read_number(cursor);
  return read_word(cursor);
}

template <class T>
Attribute to_list(std::vector<Attribute>& items) {
  std::vector<T> values;
  values.reserve(items.size());
  for (Attribute& item : items) values.push_back(*item.get_if<T>());
  return Attribute(std::move(values));
}

Result<Attribute> read_attribute_list(Cursor& cursor) {
  const size_t begin = cursor.offset();
  TENON_OK(cursor.expect("[", "before a list"));
  std::vector<Attribute> items;
  while (!cursor.eat("]")) {
    if (!items.empty()) TENON_OK(cursor.expect(",", "or ']' behind a list's element"));
    cursor.skip();
    const size_t at = cursor.offset();
    TENON_TRY(item, read_scalar(cursor));
    if (!items.empty() && item.kind() != items[0].kind()) {
      return cursor.fail_at(at, "a list holds one kind of value; this one began with ",
                            attribute_kind_name(items[0].kind()), " and goes on with ",
                            attribute_kind_name(item.kind()));
    }
    items.push_back(std::move(item));
  }
  if (items.empty()) return Attribute(Attribute::Integers());
  switch (items[0].kind()) {
    case AttributeKind::integer: return to_list<int64_t>(items);
    case AttributeKind::real: return to_list<float>(items);
    case AttributeKind::text: return to_list<std::string>(items);
    case AttributeKind::tensor: return to_list<Tensor>(items);
    default: return cursor.fail_at(begin, "there are no lists of ", attribute_kind_name(items[0].kind()));
  }
}

}  // namespace

Result<Attribute> read_attribute(Cursor& cursor) {
  return cursor.peek() == '[' ? read_attribute_list(cursor) : read_scalar(cursor);
}

}  // namespace tenon::text
