#include <tenon/irgen/name_table.hpp>

#include <algorithm>
#include <cctype>

#include <tenon/program/ir/text.hpp>
#include <tenon/support/str.hpp>

namespace tenon::irgen {
namespace {

std::string spelled(std::string_view wanted) {
  std::string name(wanted);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name.insert(0, "v");
  return program::is_name(name) ? name : name + "_";
}

}  // namespace

std::string NameTable::fresh(std::string_view wanted) {
  const auto [entry, fresh] = taken_.try_emplace(spelled(wanted), 1);
  const std::string& base = entry->first;
  if (fresh) return base;
  size_t& number = entry->second;
  number = std::max<size_t>(number, 1);  // derived from another name, and not requested so far
  std::string name;
  do name = str(base, "_", ++number);
  while (!taken_.try_emplace(name, 0).second);
  return name;
}

}  // namespace tenon::irgen
