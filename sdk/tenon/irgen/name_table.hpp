// Unique names of the text form, derived from arbitrary text.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>

#include <tenon/support/export.hpp>

namespace tenon::irgen {

// Returns each name once. Names match [A-Za-z_][A-Za-z0-9_]* and are not keywords of the text form.
class TENON_API NameTable {
 public:
  // Derived from `wanted`, with a number appended when that is taken.
  std::string fresh(std::string_view wanted);

 private:
  std::unordered_map<std::string, size_t> taken_;  // names, and how often each was requested
};

}  // namespace tenon::irgen
