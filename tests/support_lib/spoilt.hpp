// Corrupted texts and files, for testing readers: for any bytes, the answer is a value or an error.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <support_lib/environment.hpp>
#include <tenon/support/str.hpp>

namespace tenon::testing {

// What stands between blanks.
inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const auto word : split(text, ' ')) words.emplace_back(word);
  return words;
}

// The material for such texts: valid ones, and tokens of the format, which a change may insert anywhere.
struct Spoilt {
  std::vector<std::string> good;
  std::vector<std::string> pieces = {"\xff\xff\xff\xff\xff\xff\xff\x7f", std::string("\0\0\0\0\0\0\0\0", 8)};

  // A valid text with one to four changes.
  std::string text_of(uint32_t seed) const {
    std::mt19937 random(seed);
    const auto below = [&](size_t bound) { return bound == 0 ? 0 : random() % bound; };
    std::string text = good[below(good.size())];
    for (size_t changes = 1 + below(4); changes > 0 && !text.empty(); --changes) {
      const size_t at = below(text.size()), length = 1 + below(12);
      switch (below(10)) {
        case 0: text.resize(at); break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(at, text.substr(below(text.size()), below(80))); break;
        case 3: {
          const std::string& other = good[below(good.size())];
          text.insert(at, other.substr(below(other.size()), below(80)));
          break;
        }
        case 4: text[at] = static_cast<char>(random()); break;
        case 5: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
        case 6: text[at] = static_cast<char>(text[at] + (below(2) ? 1 : -1)); break;
        case 7: std::swap(text[at], text[below(text.size())]); break;
        case 8: text.replace(at, length, pieces[below(pieces.size())]); break;
        default: text.insert(at, pieces[below(pieces.size())]);
      }
    }
    return text;
  }
};

// Calls read(text), which returns whether it accepted the text, TENON_FUZZ_SEEDS times from seed TENON_FUZZ_FIRST on.
// Some texts must be accepted and some refused, otherwise the test is useless.
template <class Read>
void read_spoilt(const Spoilt& spoilt, uint32_t usual_seeds, Read read) {
  const uint32_t first = first_seed(), count = seeds(usual_seeds);
  uint32_t taken = 0;
  for (uint32_t i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(str("TENON_FUZZ_FIRST=", first + i, " TENON_FUZZ_SEEDS=1"));
    if (read(spoilt.text_of(first + i))) ++taken;
  }
  std::printf("%u of %u spoilt ones are taken\n", taken, count);
  if (count < usual_seeds || ::testing::Test::HasFailure()) return;
  EXPECT_GT(taken, 0u);
  EXPECT_LT(taken, count);
}

}  // namespace tenon::testing
