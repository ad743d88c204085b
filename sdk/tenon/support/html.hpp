// Text in HTML pages.
#pragma once
#include <string>
#include <string_view>

#include <tenon/support/hash.hpp>
#include <tenon/support/str.hpp>

namespace tenon {

// `text`, escaped for element content and for quoted attributes.
inline std::string html_escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default: safe += c;
    }
  }
  return safe;
}

// The same name has the same colour in every picture.
inline std::string html_colour(std::string_view name) { return str("hsl(", fnv1a(name) % 360, ",60%,75%)"); }

}  // namespace tenon
