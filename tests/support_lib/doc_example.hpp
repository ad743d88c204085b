// The examples in docs/*.md, for tests that use them as readers do.
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace tenon::test {

// The first code block of `page`, a file in docs, with the language `language`: the text between ```yaml and ```.
inline std::string doc_example(const std::string& page, std::string_view language) {
  std::ifstream file(TENON_SOURCE_DIR "/docs/" + page, std::ios::binary);
  EXPECT_TRUE(file) << page;
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string open = "```" + std::string(language) + "\n";
  const size_t begin = text.find(open), end = text.find("```", begin + open.size());
  EXPECT_NE(end, std::string::npos) << page << " has no example in " << language;
  return begin < end && end != std::string::npos ? text.substr(begin + open.size(), end - begin - open.size()) : "";
}

}  // namespace tenon::test
