// Internal to the room: what a Layout derives from its parts, and the stages between text and layout.
#pragma once
#include <array>

#include <tenon/support/str.hpp>
#include <tenon/tensor/layout.hpp>

namespace tenon::detail {

template <class... Parts>
Error layout_error(std::string_view code, const Parts&... parts) {
  return error(Code::invalid_argument, code, ": ", parts...);
}

inline constexpr size_t kMaxLayoutRank = 26;  // one letter each
inline constexpr int64_t kMaxLayoutBits = int64_t{1} << 62;

// a * b into a; false beyond kMaxLayoutBits. Both >= 0.
inline bool multiply(int64_t& a, int64_t b) { return !__builtin_mul_overflow(a, b, &a) && a <= kMaxLayoutBits; }
inline int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
inline char lower(char c) { return static_cast<char>(c - 'A' + 'a'); }
inline char upper(char c) { return static_cast<char>(c - 'a' + 'A'); }
inline std::string_view text_of(const char& name) { return {&name, 1}; }
inline bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
inline bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

// For a layout that keeps its map: the slot of each index, by row-major number, and the inverse.
struct LayoutTable {
  LayoutMap map;
  std::array<std::vector<int64_t>, 4> strides;      // of the coordinates, by LayoutSpace
  std::vector<int64_t> slots;                       // bank * slots per bank + slot
  std::vector<std::pair<int64_t, int64_t>> owners;  // (slot as above, index), sorted
};

struct LayoutData {
  Layout::Parts parts;  // strides and word bits filled in
  std::shared_ptr<const LayoutTable> table;

  // Per variable: D_v, T_v, and T_v in the digits (with the rounding of padded splits in a ragged layout).
  std::vector<int64_t> extent, total, padded;
  // Per digit: its weight in the number of its space; banks and devices share one number.
  std::vector<int64_t> weight;
  // Digits with more than one value, in descending order of weight.
  std::vector<uint8_t> bank_order, address_order, lane_order;

  int64_t devices = 1, banks = 1, lanes = 1, words = 1, span = 1, valid = 1, physical = 1, padding = 0;
  int64_t base_word = 0, base_bank = 0;
  bool ragged = false, injective = true, has_xor = false;

  const LayoutVariable& variable(int v) const { return parts.variables[static_cast<size_t>(v)]; }
  // The index of the variable with this name, or -1.
  int find_variable(char name) const;
  int64_t digit_value(const LayoutDigit& digit, const int64_t* z) const;
  LayoutPosition at(const int64_t* z) const;
  LayoutPosition position(int64_t bank, int64_t slot) const;
  void variables_of(std::span<const int64_t> index, int64_t* z) const;
};

// The digits of a short-form text before the shape is known.
struct SpecDigit {
  enum class Form : uint8_t { rest, blocks, inside, sized };
  char name = 0;  // upper case
  Form form = Form::rest;
  int64_t extent = 0;  // for blocks and sized
  std::optional<int64_t> place;
  LayoutTail tail = LayoutTail::pad;
  LayoutSpace space = LayoutSpace::address;
};
struct DigitName {
  char name = 0;
  std::optional<int64_t> place;
};
struct LayoutSpec {
  std::vector<SpecDigit> digits;
  int64_t word_bits = 0;
  std::vector<std::pair<DigitName, int64_t>> strides, aligns;  // slots, bytes
  std::vector<std::pair<char, int64_t>> offsets, folds;
  std::vector<std::pair<char, std::string>> fuses;
  std::vector<std::pair<DigitName, DigitName>> xors;
  int64_t size_bytes = 1;
  bool lane_msb = false;
  std::optional<uint64_t> fill = 0;
  std::optional<LayoutView> view;
  // For the long form: names of the index and texts of the coordinates.
  bool is_map = false;
  std::vector<std::string> index_names;
  std::array<std::vector<std::string>, 4> coordinates;  // by LayoutSpace
};
Result<LayoutSpec> parse_spec(std::string_view text);

// Digits over extents that are numbers or expressions.
struct ResolvedDigit {
  int variable = 0;
  Expr place = 1, extent = 1, stride = 0;
  LayoutSpace space = LayoutSpace::address;
  LayoutTail tail = LayoutTail::pad;
  int xor_variable = -1;
  int64_t xor_place = 1;
};
struct ResolvedLayout {
  std::vector<LayoutVariable> variables;
  std::vector<Expr> extents;  // D_v
  std::vector<Expr> totals;   // T_v
  std::vector<ResolvedDigit> digits;
  Expr words, lanes, banks, devices;  // banks: of one device
};
// Sets D_v and T_v of the variables.
void set_totals(ResolvedLayout& layout, const std::vector<Expr>& shape);
Result<void> check_dims(std::string_view dims, size_t rank, int64_t element_bits);
// Variables in the order of their first dim.
Result<ResolvedLayout> resolve_variables(const LayoutSpec& spec, std::string_view dims, const std::vector<Expr>& shape);
Result<ResolvedLayout> resolve(const LayoutSpec& spec, std::string_view dims, const std::vector<Expr>& shape);
// Sets the strides of all spaces: compact, except for the pitches of `spec`. Also sets the sizes.
Result<void> set_strides(ResolvedLayout& layout, const LayoutSpec& spec, int64_t element_bits);
Result<void> set_xors(ResolvedLayout& layout, const LayoutSpec& spec);
// All parts of the spec except the digits.
Result<Layout::Parts> parts_of(const ResolvedLayout& layout, const LayoutSpec& spec, std::string_view dims,
                               const Dims& shape, int64_t element_bits);
// The digit that a key refers to: the one with this place, or the outermost; of several, the one with more than one
// value.
template <class Digits, class IsIt>
std::optional<size_t> find_digit(const Digits& digits, const IsIt& is_it, std::optional<int64_t> place) {
  std::optional<size_t> found;
  for (size_t j = 0; j < digits.size(); ++j) {
    if (!is_it(digits[j]) || (place && !(digits[j].place == *place))) continue;
    const bool better =
        !found || digits[*found].place < digits[j].place ||
        (digits[*found].place == digits[j].place && digits[*found].extent == 1 && !(digits[j].extent == 1));
    if (better) found = j;
  }
  return found;
}

// From coordinates over the lower-case dims.
Result<Layout> layout_of_map(std::string_view dims, const Dims& shape, int64_t element_bits, const LayoutMap& map,
                             const LayoutSpec& spec);
Result<Layout> layout_of_map_text(const LayoutSpec& spec, std::string_view dims, const Dims& shape,
                                  int64_t element_bits);
// z_v and digit values as expressions of the index.
Expr variable_expr(const LayoutData& data, int variable);
// Without its swizzle; not reduced modulo its extent where it cannot exceed it.
Expr digit_expr(const LayoutData& data, const LayoutDigit& digit);
// The rank in a ragged layout, from digits as (variable, place, value), and totals and values of the variables.
struct RankedDigit {
  int variable = 0;
  Expr place, value;
};
Expr rank_expr(const std::vector<RankedDigit>& digits, const std::vector<Expr>& totals, const std::vector<Expr>& z);
const std::vector<Expr>& coordinates_of(const LayoutMap& map, size_t space);

// The layout that keeps `map`, after every index has been evaluated.
Result<Layout> table_of_map(std::string_view dims, const Dims& shape, int64_t element_bits, const LayoutMap& map,
                            const LayoutSpec& spec);

// Sets the word bits, if they are not given, and checks that the lanes fit them and that the fill fits an element.
Result<void> set_word(Layout::Parts& parts, int64_t lanes);
// Sets the sizes of a layout whose parts are checked and whose weights are set.
Result<void> set_sizes(LayoutData& data);
// The values of z_v in use, as one or two ranges.
std::vector<std::pair<int64_t, int64_t>> used_ranges(const LayoutData& data, size_t v);
// Two indices that share a slot, as text; "" when none is found.
std::string find_collision(const LayoutData& data);
// Advances a row-major index; false after the last one.
bool next_index(std::span<int64_t> index, std::span<const int64_t> shape);
bool next_index(std::span<int64_t> index, std::span<const int64_t> begin, std::span<const int64_t> end);
// The index with this row-major number.
void index_of(int64_t number, std::span<const int64_t> shape, std::span<int64_t> index);
uint64_t fnv_u64(uint64_t state, uint64_t value);

}  // namespace tenon::detail
