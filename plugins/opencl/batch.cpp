#include "opencl/batch.hpp"

#include <cctype>
#include <set>

#include <tenon/support/str.hpp>

namespace tenon::opencl {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The name before the first "(" in the head of a function, or that of a struct; empty for other lines.
std::string defined_in(std::string_view line) {
  constexpr std::string_view kStruct = "struct ";
  if (line.starts_with(kStruct) && line.ends_with(";"))
    return std::string(line.substr(kStruct.size(), line.find(" {") - kStruct.size()));
  const size_t end = line.find('(');
  if (line.empty() || !is_word(line[0]) || line.starts_with("__kernel") || end == std::string_view::npos) return {};
  size_t begin = end;
  while (begin > 0 && is_word(line[begin - 1])) --begin;
  return std::string(line.substr(begin, end - begin));
}

std::string macro_in(std::string_view line) {
  constexpr std::string_view kDefine = "#define ";
  if (!line.starts_with(kDefine)) return {};
  size_t end = kDefine.size();
  while (end < line.size() && is_word(line[end])) ++end;
  return std::string(line.substr(kDefine.size(), end - kDefine.size()));
}

}  // namespace

std::string batch_suffix(size_t number) { return str("_", number); }

std::string batch(std::span<const std::string* const> sources) {
  std::string all;
  for (size_t number = 0; number < sources.size(); ++number) {
    std::set<std::string> names, macros;
    std::string_view rest = *sources[number];
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      names.insert(defined_in(line)), macros.insert(macro_in(line));
    }
    names.erase(""), macros.erase("");
    for (const std::string& name : names) all += str("#define ", name, " ", name, batch_suffix(number), "\n");
    all += str(*sources[number], "\n");
    for (const std::string& name : names) all += str("#undef ", name, "\n");
    for (const std::string& name : macros) all += str("#undef ", name, "\n");
  }
  return all;
}

}  // namespace tenon::opencl
