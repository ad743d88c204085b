#include "options.hpp"

#include <cstdlib>
#include <sstream>

namespace strict {

Options Options::from_environment() {
  Options options;
  const char* text = std::getenv("STRICT_VTA");
  std::istringstream words(text ? text : "");
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const auto known = options.numbers_.find(word.substr(0, equals));
    if (known == options.numbers_.end() || equals == std::string::npos) throw Fault("STRICT_VTA: '" + word + "'");
    known->second = static_cast<uint32_t>(std::strtoul(word.c_str() + equals + 1, nullptr, 10));
  }
  return options;
}

}  // namespace strict
