// Names of the text form, made from any text.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>

#include <tenon/support/export.hpp>

namespace tenon::irgen {

// Gives each name once. Names are [A-Za-z_][A-Za-z0-9_]* and no word of the text form.
class TENON_API NameTable {
 public:
  // Made from `wanted`, with a number behind when that is taken.
  std::string fresh(std::string_view wanted);

 private:
  std::unordered_map<std::string, size_t> taken_;  // names, and how often each was wanted
};

}  // namespace tenon::irgen
