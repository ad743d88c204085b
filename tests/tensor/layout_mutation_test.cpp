// Mutants of valid layouts: one number of one digit is changed. Each is refused, or differs in points, fingerprint and
// reorder, or provably is the same.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "layout_testing.hpp"
#include "reorder_testing.hpp"

namespace tenon {
namespace {

struct Mutant {
  std::string what;
  Layout::Parts parts;
};

std::vector<Mutant> mutants_of(const Layout& layout) {
  std::vector<Mutant> out;
  const auto add = [&](std::string what, const auto& change) {
    Mutant mutant{std::move(what), layout.parts()};
    mutant.parts.pitched = true;
    change(mutant.parts);
    out.push_back(std::move(mutant));
  };
  const size_t count = layout.digits().size();
  for (size_t j = 0; j < count; ++j) {
    for (const int64_t by : {-1, 1}) {
      add(str("place of ", j), [&](Layout::Parts& p) { p.digits[j].place += by; });
      add(str("extent of ", j), [&](Layout::Parts& p) { p.digits[j].extent += by; });
      add(str("stride of ", j), [&](Layout::Parts& p) { p.digits[j].stride += by; });
    }
    add(str("twice the stride of ", j), [&](Layout::Parts& p) { p.digits[j].stride *= 2; });
    add(str("twice the place of ", j), [&](Layout::Parts& p) { p.digits[j].place *= 2; });
    for (int space = 0; space < 4; ++space) {
      if (static_cast<int>(layout.digits()[j].space) == space) continue;
      add(str("space of ", j), [&](Layout::Parts& p) { p.digits[j].space = static_cast<LayoutSpace>(space); });
    }
    for (size_t v = 0; v < layout.variables().size(); ++v) {
      add(str("variable of ", j), [&](Layout::Parts& p) { p.digits[j].variable = static_cast<int>(v); });
    }
    add(str("without ", j), [&](Layout::Parts& p) { p.digits.erase(p.digits.begin() + static_cast<long>(j)); });
    add(str("twice ", j), [&](Layout::Parts& p) { p.digits.push_back(p.digits[j]); });
    for (size_t i = 0; i < j; ++i) {
      add(str("strides of ", i, " and ", j),
          [&](Layout::Parts& p) { std::swap(p.digits[i].stride, p.digits[j].stride); });
      add(str("places of ", i, " and ", j), [&](Layout::Parts& p) { std::swap(p.digits[i].place, p.digits[j].place); });
      add(str("order of ", i, " and ", j), [&](Layout::Parts& p) { std::swap(p.digits[i], p.digits[j]); });
    }
  }
  for (size_t v = 0; v < layout.variables().size(); ++v) {
    add(str("offset of ", v), [&](Layout::Parts& p) { ++p.variables[v].offset; });
    add(str("fold of ", v), [&](Layout::Parts& p) { p.variables[v].fold = 2; });
  }
  add("order of lanes", [](Layout::Parts& p) { p.lane_msb = !p.lane_msb; });
  add("wider words", [](Layout::Parts& p) { ++p.word_bits; });
  return out;
}

// Directly from the digits, for every index: bank, word and lane. Independent of Layout::apply().
std::vector<LayoutPosition> positions(const Layout& layout) {
  std::vector<LayoutPosition> out;
  const Layout::Parts& parts = layout.parts();
  for_each_index_backwards(layout.shape(), [&](const Dims& index) {
    std::map<LayoutSpace, int64_t> number, size;
    for (size_t j = parts.digits.size(); j-- > 0;) {
      const LayoutDigit& digit = parts.digits[j];
      const LayoutVariable& variable = parts.variables[static_cast<size_t>(digit.variable)];
      int64_t z = 0;
      for (const int d : variable.dims) z = z * parts.shape[static_cast<size_t>(d)] + index[static_cast<size_t>(d)];
      z += variable.offset;
      if (variable.fold) z %= variable.fold;
      const int64_t value = z / digit.place % digit.extent;
      // Banks and lanes count compactly, the last digit fastest; addresses by strides. Devices stand before banks.
      const LayoutSpace space = digit.space == LayoutSpace::device ? LayoutSpace::bank : digit.space;
      int64_t& span = size.try_emplace(space, 1).first->second;
      number[space] += value * (space == LayoutSpace::address ? digit.stride : span);
      span *= digit.extent;
    }
    const int64_t lane = number[LayoutSpace::lane], word = number[LayoutSpace::address], w = parts.element_bits;
    const int64_t in_word = parts.lane_msb ? parts.word_bits - w - lane * w : lane * w;
    out.push_back({number[LayoutSpace::bank], word * layout.lanes() + lane, word * parts.word_bits + in_word});
  });
  return out;
}

std::vector<LayoutPosition> applied(const Layout& layout) {
  std::vector<LayoutPosition> out;
  for_each_index_backwards(layout.shape(), [&](const Dims& index) { out.push_back(layout.apply(index)); });
  return out;
}

enum class Fate { refused, other, same };

Fate fate_of(const Layout& original, const Mutant& mutant, std::mt19937_64& random) {
  const auto changed = Layout::make(mutant.parts);
  if (!changed.ok()) {
    EXPECT_NE(layout_error_code(changed.error()), "") << changed.error().to_string();
    return Fate::refused;
  }
  // What was let through is a layout: total inverse, the function of its digits, and a reorder that obeys it.
  EXPECT_TRUE(changed->verify().ok()) << changed->verify().error().to_string();
  EXPECT_EQ(applied(*changed), positions(*changed));
  if (changed->bytes() < 1 << 14) {
    EXPECT_TRUE(moves_right(original, *changed, random));
  }
  const bool same = applied(original) == applied(*changed) && original.same_sizes(*changed);
  EXPECT_EQ(original.same_function(*changed), same);
  EXPECT_EQ(original.fingerprint() == changed->fingerprint(), same);
  EXPECT_EQ(original.normal() == changed->normal() && !same, false) << "one normal form of two functions";
  EXPECT_EQ(plan(original, *changed).kind() == ReorderKind::no_op, same);
  return same ? Fate::same : Fate::other;
}

TEST(LayoutMutations, EachIsCaughtOrTheSame) {
  struct Row {
    std::string text, dims;
    Dims shape;
    int64_t bits;
  };
  const Row rows[] = {
      {"NCHW", "NCHW", {2, 3, 4, 5}, 32},         {"NHWC", "NCHW", {2, 3, 4, 5}, 8},
      {"NCHW{4c}", "NCHW", {2, 6, 3, 2}, 16},     {"OIHW{2i4o2i}", "OIHW", {5, 6, 2, 1}, 8},
      {"NHWC<6c:8>", "NCHW", {2, 7, 3, 2}, 1},    {"[2h]NCHW", "NCHW", {2, 3, 5, 2}, 32},
      {"[H/2]NChW", "NCHW", {2, 3, 5, 2}, 4},     {"RC{2r4c2r}", "RC", {8, 12}, 16},
      {"NC{4c};align(N)=32B", "NC", {3, 6}, 8},   {"NPC{3p};fuse(P)=HW", "NHWC", {2, 3, 5, 2}, 8},
      {"NCHW;fold(H)=2;off(C)=1", "NCHW", {1, 2, 5, 2}, 8}, {"NC<3c>;lane=msb", "NC", {3, 8}, 5},
  };
  std::mt19937_64 random(12);
  std::map<Fate, int> fates;
  for (const Row& row : rows) {
    const Layout original = parse_layout(row.text, row.dims, row.shape, row.bits);
    EXPECT_EQ(applied(original), positions(original)) << row.text;
    for (const Mutant& mutant : mutants_of(original)) {
      SCOPED_TRACE(str(row.text, ", ", mutant.what));
      ++fates[fate_of(original, mutant, random)];
      if (HasFailure()) return;
    }
  }
  std::printf("refused %d, another function %d, the same %d\n", fates[Fate::refused], fates[Fate::other],
              fates[Fate::same]);
  EXPECT_GT(fates[Fate::refused], 500);
  EXPECT_GT(fates[Fate::other], 100);
  EXPECT_GT(fates[Fate::same], 10);
}

}  // namespace
}  // namespace tenon
