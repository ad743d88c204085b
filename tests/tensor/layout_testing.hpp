// Shared by tests of layouts; also random layouts in text form.
#pragma once
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <tenon/support/str.hpp>
#include <tenon/tensor/layout.hpp>

namespace tenon {

inline Layout parse_layout(std::string_view text, std::string_view dims, const Dims& shape, int64_t bits = 32) {
  auto layout = Layout::parse(text, dims, shape, bits);
  EXPECT_TRUE(layout.ok()) << text << ": " << layout.error().to_string();
  return layout.ok() ? *std::move(layout) : Layout();
}

// "ok", or the code of the error.
inline std::string code_of(const Result<Layout>& layout) {
  return layout.ok() ? "ok" : std::string(layout_error_code(layout.error()));
}
inline std::string code_of(std::string_view text, std::string_view dims, const Dims& shape, int64_t bits = 32) {
  return code_of(Layout::parse(text, dims, shape, bits));
}

struct RandomLayout {
  std::string text, dims;
  Dims shape;
  int64_t element_bits = 1;

  std::string to_string() const { return str(text, " on ", dims, shape, " of ", element_bits, " bits"); }
  Result<Layout> parse() const { return Layout::parse(text, dims, shape, element_bits); }
};

class LayoutGenerator {
 public:
  explicit LayoutGenerator(uint64_t seed) : random_(seed) {}

  RandomLayout next() {
    RandomLayout out;
    bank_.clear(), main_.clear(), inner_.clear(), lane_.clear(), keys_.clear();
    lanes_ = 1;
    const auto rank = static_cast<size_t>(below(5));
    out.element_bits = 1 + below(64);
    for (size_t d = 0; d < rank; ++d) {
      out.dims += "NCHWDE"[d];
      out.shape.push_back(1 + below(9));
    }
    const bool ragged = rank > 0 && chance(8);
    size_t first = 0;
    if (rank > 2 && chance(6)) {
      keys_ += str(";fuse(P)=", out.dims.substr(0, 2));
      first = 2;
      add_variable('P', out.shape[0] * out.shape[1], ragged);
    }
    for (size_t d = first; d < rank; ++d) add_variable(out.dims[d], out.shape[d], ragged);
    for (auto* part : {&bank_, &main_, &inner_, &lane_}) std::shuffle(part->begin(), part->end(), random_);
    if (!bank_.empty()) {
      out.text += chance(4) ? str('[', bank_[0], '|', text(bank_, 1), ']') : str('[', text(bank_), ']');
    }
    out.text += text(main_);
    if (!inner_.empty()) out.text += str('{', text(inner_), '}');
    add_word(out);
    if (!ragged && rank > 0 && chance(5)) {
      keys_ += str(";align(", out.dims.back(), ")=", 1 + below(4), "B");
    }
    if (!ragged && rank > 0 && chance(8)) keys_ += str(";stride(", out.dims[0], ")=", below(40));
    if (chance(8)) keys_ += str(";size=", 1 + below(9), "B");
    if (chance(4)) keys_ += ";lane=msb";
    if (chance(4)) keys_ += chance(2) ? ";fill=undef" : ";fill=1";
    if (!ragged && rank > 1 && chance(4)) keys_ += str(";xor(", out.dims[rank - 1], ")=", out.dims[rank - 2]);
    out.text += keys_;
    return out;
  }

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t one_in) { return below(one_in) == 0; }

 private:
  static std::string text(const std::vector<std::string>& parts, size_t from = 0) {
    std::string out;
    for (size_t i = from; i < parts.size(); ++i) {
      // "N/2" and "3h" must not run together.
      if (!out.empty() && out.back() <= '9' && parts[i][0] <= '9') out += ' ';
      out += parts[i];
    }
    return out;
  }

  void add_variable(char name, int64_t extent, bool ragged) {
    const std::string lower(1, static_cast<char>(name - 'A' + 'a'));
    if (!ragged && chance(5)) {
      (chance(2) ? bank_ : main_).push_back(str(name, '/', 1 + below(extent + 2)));
      main_.push_back(lower);
    } else {
      (!ragged && chance(8) ? bank_ : main_).push_back(std::string(1, name));
    }
    for (int64_t splits = below(3); splits > 0; --splits) {
      const int64_t block = 1 + below(5);
      const std::string digit = str(block, lower);
      if (ragged) {
        inner_.push_back(digit + (chance(3) ? "" : "~"));
      } else if (chance(5)) {
        bank_.push_back(digit);
      } else if (chance(3)) {
        lane_.push_back(digit);
        lanes_ *= block;
      } else {
        inner_.push_back(digit);
      }
    }
    if (chance(6)) keys_ += str(";off(", name, ")=", 1 + below(4));
    if (!ragged && chance(10)) keys_ += str(";fold(", name, ")=", 1 + below(10));
  }

  // Dense, or in words of 8 to 128 bits.
  void add_word(RandomLayout& out) {
    int64_t word = 8 << below(5);
    while (word < lanes_ * out.element_bits) word *= 2;
    const bool dense = chance(2);
    if (!lane_.empty()) out.text += dense ? str('<', text(lane_), '>') : str('<', text(lane_), ':', word, '>');
    if (lane_.empty() && !dense) out.text += str("<:", word, '>');
  }

  std::mt19937_64 random_;
  std::vector<std::string> bank_, main_, inner_, lane_;
  std::string keys_;
  int64_t lanes_ = 1;
};

}  // namespace tenon
