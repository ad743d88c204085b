#include <tenon/irgen/name_table.hpp>

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
  const std::string base = spelled(wanted);
  size_t& next = next_[base];
  std::string name = next++ == 0 ? base : str(base, "_", next);
  while (!taken_.insert(name).second) name = str(base, "_", ++next);
  return name;
}

}  // namespace tenon::irgen
