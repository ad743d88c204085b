#include <tenon/tensor/element_type.hpp>

#include <charconv>

#include <tenon/support/str.hpp>

namespace tenon {
namespace {

struct Named {
  std::string_view name;
  ElementType element;
};
constexpr Named kNamed[] = {
    {"f64", kF64},           {"f32", kF32},
    {"f16", kF16},           {"bf16", kBF16},
    {"f8e4m3fn", kF8E4M3FN}, {"f8e4m3fnuz", kF8E4M3FNUZ},
    {"f8e5m2", kF8E5M2},     {"f8e5m2fnuz", kF8E5M2FNUZ},
    {"f8e8m0", kF8E8M0},     {"f4e2m1", kF4E2M1},
    {"bool", kBool},         {"str", kString},
    {"c64", kC64},           {"c128", kC128},
};

}  // namespace

std::string ElementType::to_string() const {
  if (is_int()) return str(is_signed_int() ? 'i' : 'u', bits());
  for (const auto& [name, element] : kNamed) {
    if (element == *this) return std::string(name);
  }
  return "none";
}

std::optional<ElementType> ElementType::parse(std::string_view text) {
  for (const auto& [name, element] : kNamed) {
    if (name == text) return element;
  }
  if (text.size() < 2 || text.size() > 3 || (text[0] != 'i' && text[0] != 'u') || text[1] == '0') return std::nullopt;
  uint8_t bits = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data() + 1, end, bits);
  if (failure != std::errc() || stop != end || bits > 64) return std::nullopt;
  return ElementType(text[0] == 'i' ? ElementKind::sint : ElementKind::uint, bits);
}

}  // namespace tenon
