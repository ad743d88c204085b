// Internal to the room: groups of variables that both layouts share, and the loops over each group.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <tenon/tensor/layout_internal.hpp>
#include <tenon/tensor/reorder_internal.hpp>

namespace tenon::detail {

// The most nests of a plan; with more, rows of elements are copied.
inline constexpr size_t kMaxNests = 4096;

// Distance in bits between neighbouring values of a digit.
struct BitDigit {
  int64_t place = 1, extent = 1, bits = 0;
};

// What one variable of a layout adds to the bit offset, as a function of the values x of a group of dims: z = (x / div
// mod size) + offset, mod fold, then its digits.
struct Term {
  int variable = 0;
  int64_t div = 1, size = 1, offset = 0, fold = 0;
  std::vector<BitDigit> digits;  // by ascending place, the first one at 1

  int64_t at(int64_t x) const;
  // Whether the offset may advance from x - 1 to x by something other than the stride of the first digit.
  bool is_border(int64_t x) const;
};

// One side of a group: its variables, outermost first. Their offsets add up.
struct Side {
  std::vector<Term> terms;

  int64_t at(int64_t x) const;
  bool is_border(int64_t x) const;
  // at(x + period) - at(x) is the same for all x. 0: beyond `limit`.
  int64_t period(int64_t limit) const;
  // Places in x, if they are a radix chain of x.
  std::optional<std::vector<int64_t>> places() const;
};

// Dims that a variable of either layout combines, with x as their row-major index.
struct Group {
  std::string name;
  std::vector<int> dims;
  int64_t extent = 1;
  Side from, to;
};
// Nothing if the fused dims of the two layouts overlap only partly.
std::optional<std::vector<Group>> groups_of(const Layout& from, const Layout& to);
// If several indices share a slot of `to`, the least one counts: drops values after the last such one of each group.
// False: those that count are not in front.
bool keep_least(const Layout& to, std::vector<Group>& groups);

// A part of a group's values: base offsets and loops.
struct Part {
  int64_t from = 0, to = 0;
  std::vector<NestLoop> loops;
  // Its only loop is followed by this many padding slots that continue with its stride in the destination, one element.
  int64_t zeros = 0;
};

// The union of both radix chains below the extent, if each place divides the next one.
std::optional<std::vector<int64_t>> common_places(const Group& group);
std::vector<Part> nested_parts(const Group& group, const std::vector<int64_t>& places, int64_t element_bits);
// Nothing if the period is too long.
std::optional<std::vector<Part>> piecewise_parts(const Group& group, ReorderPieces& pieces);

// For ragged or swizzled layouts. Nothing if more than kMaxNests would be needed.
std::optional<std::vector<Nest>> box_nests(const Layout& from, const Layout& to, const std::vector<Group>& groups);

// The digits of a variable with more than one value, with those merged that continue with the same stride. Never empty;
// the last one has room for every value.
std::vector<BitDigit> digits_of(const LayoutData& data, int64_t bank_bits, int variable);

}  // namespace tenon::detail
