// Prints attributes and tensors as text.
#include <bit>
#include <cmath>
#include <cstring>

#include <tenon/ir/text_internal.hpp>
#include <tenon/tensor/splat.hpp>

namespace tenon::text {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

void append_hex(std::string& out, std::span<const std::byte> bytes) {
  const size_t start = out.size();
  out.resize(start + 2 * bytes.size());
  char* to = out.data() + start;
  for (const std::byte b : bytes) {
    const auto byte = static_cast<unsigned>(b);
    *to++ = kHexDigits[byte >> 4];
    *to++ = kHexDigits[byte & 15];
  }
}

// nan(0x7fc00001): the bits, most significant first.
void append_nan(std::string& out, uint64_t bits, int width) {
  out += "nan(0x";
  for (int digit = (width + 3) / 4; digit-- > 0;) out += kHexDigits[(bits >> (4 * digit)) & 15];
  out += ')';
}

// The shortest text that parses to the same value and is distinct from an integer.
template <class T>
void append_real(std::string& out, T value) {
  const size_t start = out.size();
  append_text(out, value);
  if (out.find_first_not_of("-0123456789", start) == std::string::npos) out += ".0";
}

void append_float_bits(std::string& out, ElementType format, uint64_t bits) {
  if (format == kF64 && !std::isnan(std::bit_cast<double>(bits))) return append_real(out, std::bit_cast<double>(bits));
  const double value = decode_float(format, bits);
  if (std::isnan(value)) return append_nan(out, bits, format.bits());
  append_real(out, static_cast<float>(value));
}

void append_int_bits(std::string& out, ElementType format, uint64_t bits) {
  if (format.is_unsigned_int()) return append_text(out, bits);
  const int unused = 64 - format.bits();
  append_text(out, static_cast<int64_t>(bits << unused) >> unused);
}

void append_element(std::string& out, const Tensor& tensor, int64_t i) {
  const ElementType element = tensor.element();
  if (element.is_string()) {
    out += quote(tensor.as<std::string>()[static_cast<size_t>(i)]);
  } else if (element.is_complex()) {
    const ElementType part(ElementKind::ieee, static_cast<uint8_t>(element.bits() / 2));
    out += '(';
    append_float_bits(out, part, load_bits(tensor.data(), part.bits(), 2 * i));
    out += ", ";
    append_float_bits(out, part, load_bits(tensor.data(), part.bits(), 2 * i + 1));
    out += ')';
  } else {
    const uint64_t bits = load_bits(tensor.data(), element.bits(), i);
    if (element.is_float())
      append_float_bits(out, element, bits);
    else if (element.is_bool())
      append_text(out, bits != 0);
    else
      append_int_bits(out, element, bits);
  }
}

// Booleans are 0 or 1 by contract, but external bytes may have any value; only hex preserves them.
bool has_odd_booleans(const Tensor& tensor) {
  if (!tensor.element().is_bool()) return false;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (load_bits(tensor.data(), 8, i) > 1) return true;
  }
  return false;
}

// The bits after the last element are not part of the value.
void append_hex_elements(std::string& out, const Tensor& tensor) {
  const auto used = static_cast<uint64_t>(tensor.size()) * static_cast<uint64_t>(tensor.element().bits()) % 8;
  if (used == 0) return append_hex(out, {tensor.data(), tensor.bytes()});
  append_hex(out, {tensor.data(), tensor.bytes() - 1});
  const std::byte last = tensor.data()[tensor.bytes() - 1] & static_cast<std::byte>((1u << used) - 1);
  append_hex(out, {&last, 1});
}

void append_value(std::string& out, int64_t value, const PrintOptions&) { append_text(out, value); }
void append_value(std::string& out, const std::string& value, const PrintOptions&) { out += quote(value); }
void append_value(std::string& out, const Tensor& value, const PrintOptions& options) {
  append_tensor(out, value, options);
}
void append_value(std::string& out, const Type& value, const PrintOptions&) {
  out += "type<";
  append_text(out, value);
  out += '>';
}
void append_value(std::string& out, float value, const PrintOptions&) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (bits == 0x7fc00000u)
    out += "nan";
  else if (std::isnan(value))
    append_nan(out, bits, 32);
  else
    append_real(out, value);
}

// The word that states the kind of an empty list.
constexpr std::string_view list_word(const Attribute::Integers&) { return ""; }
constexpr std::string_view list_word(const Attribute::Reals&) { return "reals"; }
constexpr std::string_view list_word(const Attribute::Texts&) { return "texts"; }
constexpr std::string_view list_word(const Attribute::Tensors&) { return "tensors"; }

template <class T>
void append_value(std::string& out, const std::vector<T>& values, const PrintOptions& options) {
  if (values.empty()) out += list_word(values);
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ", ";
    append_value(out, values[i], options);
  }
  out += ']';
}

template <class... Kinds>
void append_first(std::string& out, const Attribute& attribute, const PrintOptions& options) {
  const auto append_if = [&](const auto* value) {
    if (value) append_value(out, *value, options);
    return value != nullptr;
  };
  (void)(append_if(attribute.get_if<Kinds>()) || ...);
}

}  // namespace

void append_name(std::string& out, std::string_view name) {
  if (is_plain_name(name))
    out += name;
  else
    out += quote(name);
}

void append_tensor(std::string& out, const Tensor& tensor, const PrintOptions& options) {
  if (!tensor.valid()) {
    out += "dense<>";
    return;
  }
  const int64_t count = tensor.size();
  const bool odd = has_odd_booleans(tensor);
  const bool splat = !odd && is_splat(tensor);
  const bool elided = !splat && options.elide_beyond >= 0 && count > options.elide_beyond;
  const bool hex = odd || (!splat && !elided && count > kMaxListedElements && !tensor.element().is_string());
  out += elided ? "elided<" : hex ? "hex<" : splat ? "splat<" : "dense<";
  append_text(out, tensor.type());
  if (!elided) out += ": ";
  if (hex) {
    append_hex_elements(out, tensor);
  } else if (!elided) {
    for (int64_t i = 0; i < (splat ? 1 : count); ++i) {
      if (i > 0) out += ", ";
      append_element(out, tensor, i);
    }
  }
  out += '>';
}

void append_attribute(std::string& out, const Attribute& attribute, const PrintOptions& options) {
  append_first<int64_t, float, std::string, Tensor, Type, Attribute::Integers, Attribute::Reals, Attribute::Texts,
               Attribute::Tensors>(out, attribute, options);
}

}  // namespace tenon::text
