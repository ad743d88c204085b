// Layout: the position of each element of a tensor in memory. A value: copied, compared, hashed, printed and parsed.
//
//   TENON_TRY(nhwc, Layout::parse("NHWC<6c:8>", "NCHW", {4, 6, 8, 8}, 1));
//   nhwc.apply(Dims{0, 5, 0, 0});                            // bank 0, slot 5, bit 5
//   nhwc.inverse(0, 6, index);                               // true: index = {0, 0, 0, 1}
//
// Model.  A tensor has dims d of extent D_d and elements of w bits. Its layout has
//   variables  v, one per dim, or one for several dims (fuse: their row-major index x_v). z_v = x_v + offset, then mod
//              fold if there is one; z_v < T_v, which is D_v + offset, or the fold.
//   digits     (variable, place p, extent e, space, stride s), by space, outermost first. A digit has the value
//              q = floor(z_v / p) mod e. Sorted by place, the digits of a variable form a chain: p_0 = 1,
//              p_(k+1) = p_k * e_k, and the last reaches T_v. Hence z_v = sum of p * q, and no information is lost.
//   spaces     device, bank, address, lane: the number in each is the sum of s * q over the digits of that space.
//   words      of W bits with P = product of lane extents elements: bit = word * W + lane * w from the least
//              significant end (or word * W + W - w - lane * w: lane=msb). W = P * w (dense) unless given.
//   slots      slot = word * P + lane. Each slot of each bank is either one element or padding.
//   ragged     A ragged layout has no strides: an element's slot is its rank among the digit tuples that occur,
//              sum_j q_j * min(p_j, T_v(j)) * prod_(u != v(j)) R_u(j), where R_u(j) = T_u if no digit of u is before
//              j, else min(p', T_u - sum_(i < j, v(i) = u) p_i * q_i), p' = place of the last such digit
//              (design/layout.md, section 3; valid if the digits of each variable are in descending order of place).
//              T_u is rounded up to the splits of u that are not ragged.
//   map        A layout from an index map (LayoutMap) that has no form in digits keeps its expressions. Its inverse is
//              a table, and operations that need digits refuse it.
// Banks are numbered across devices: device d has the banks [d * n, (d + 1) * n), n = banks() / devices().
//
// Text, either form (docs/layouts.md explains it by examples):
//   layout := [ '[' [ digit* '|' ] digit* ']' ] digit* [ '{' digit+ '}' ] [ '<' digit* [ ':' W ] '>' ] { ';' key }
//   digit  := DIM [ '/' n ]  |  n dim [ '@' place ] [ '~' | '!' ]  |  dim
//   key    := stride(X)=slots | align(X)=32B | off(X)=n | fold(X)=n | fuse(K)=AB | size=128B | lane=msb | lane=lsb
//           | fill=undef | fill=bits | xor(X)=Y[@place] | view=word,bank,banks,words
//             (X in stride, align, xor: X, or X@place for a digit that is not the outermost one of its dim in
//             addresses)
//   map    := '(' names ')' '->' '(' [ '[' [ exprs '|' ] exprs ']' ] exprs [ '|' exprs ] [ ':' W ] ')' { ';' key }
//   xor: the digit X holds q_X xor (floor(z_Y / place) mod e_X); e_X is a power of two.
//
// Errors. Their message starts with one of the codes below and a colon; layout_error_code() returns it.
// Threads: a const Layout may be used from any number of threads. apply, inverse: no allocation, O(digits^2) at worst.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon {

// E_SYNTAX          text outside the grammar
// E_RANK            as many dims as extents are needed; an index of a different rank
// E_UNKNOWN_DIM     a name that is not a dim (or a digit that does not exist)
// E_DUP_DIM         a name used twice
// E_MISSING_DIM     a dim, or a part of it, that no digit covers
// E_BAD_EXTENT      a number out of its range: extents, places, element and word bits, offsets, fill
// E_NOT_DIVISIBLE   an exact split ('!') with a remainder
// E_WORD_OVERFLOW   the lanes do not fit their word
// E_ALIGN           a pitch or alignment that is not a whole number of words
// E_UNALIGNED       a slice that does not start at a block
// E_NOT_INVERTIBLE  two indices that share a slot
// E_UNSUPPORTED     an operation on a layout without the required form (digits of a map, strides of a ragged layout)
TENON_API std::string_view layout_error_code(const Error& error);  // "" for other errors

enum class LayoutSpace : uint8_t { device, bank, address, lane };
enum class LayoutTail : uint8_t { pad, exact, ragged };
TENON_API std::string_view layout_space_name(LayoutSpace space);

inline constexpr int kMaxLayoutDigits = 64;
inline constexpr int64_t kMaxElementBits = 128;
inline constexpr size_t kMaxLayoutTextBytes = 1 << 14;
// The most elements of a layout that keeps its map, because of the table.
inline constexpr int64_t kMaxMapElements = int64_t{1} << 22;

struct LayoutVariable {
  char name = 0;               // upper case
  std::vector<int> dims = {};  // positions of the dims; several: fused, row-major
  int64_t offset = 0;          // slots of padding in front
  int64_t fold = 0;            // 0: none
  bool operator==(const LayoutVariable&) const = default;
};

struct LayoutDigit {
  int variable = 0;
  int64_t place = 1;
  int64_t extent = 1;
  LayoutSpace space = LayoutSpace::address;
  LayoutTail tail = LayoutTail::pad;  // how the variable ends within blocks of place * extent
  int64_t stride = 0;                 // in words for an address; 0 in every digit of a ragged layout
  int xor_variable = -1;              // -1: none
  int64_t xor_place = 1;
  bool operator==(const LayoutDigit&) const = default;
};

struct LayoutPosition {
  int64_t bank = 0;
  int64_t slot = 0;
  int64_t bit = 0;  // of the element's lowest bit, within the bank
  bool operator==(const LayoutPosition&) const = default;
};

// A part of a larger buffer of this size, in which the digits start at this word and bank. Slots without an element
// belong to others and must not be written.
struct LayoutView {
  int64_t base_word = 0;
  int64_t base_bank = 0;
  int64_t banks = 1;
  int64_t words_per_bank = 0;
  bool operator==(const LayoutView&) const = default;
};

// A range of values of each variable, [begin, end).
struct LayoutBox {
  Dims begin, end;
  bool operator==(const LayoutBox&) const = default;
};

// Coordinates as expressions of the index, outermost first.
struct LayoutMap {
  std::vector<Expr> devices, banks, address, lanes;
  int64_t word_bits = 0;  // 0: dense
};

class Layout;
namespace detail {
struct LayoutData;
}

class TENON_API Layout {
 public:
  // The row-major layout of a scalar of one bit.
  Layout();
  // `dims`: one upper-case letter per extent of `shape`.
  static Result<Layout> parse(std::string_view text, std::string_view dims, const Dims& shape, int64_t element_bits);
  // Row-major, the dims named A, B, C ...
  static Result<Layout> row_major(const Dims& shape, int64_t element_bits);
  // `map` gets the index as symbols and returns the coordinates; extents follow from the bounds of each coordinate.
  // What consists of terms (e floordiv p) mod m becomes digits. Otherwise every index is evaluated; two in the same
  // slot are E_NOT_INVERTIBLE, which names them.
  using MapFunction = std::function<LayoutMap(std::span<const Expr>)>;
  static Result<Layout> from_function(std::string_view dims, const Dims& shape, int64_t element_bits,
                                      const MapFunction& map);
  // The same with one parameter per dim: [](Expr n, Expr c) { return LayoutMap{.address = {c, n}}; }
  template <class F>
  static Result<Layout> from_map(std::string_view dims, const Dims& shape, int64_t element_bits, F&& map);
  // From digits. With `pitched`, the strides of addresses are used as given; otherwise, and in all other spaces,
  // strides are compact. `lane_msb`, `word_bits` as in the text form.
  struct Parts {
    std::string dims;
    Dims shape;
    int64_t element_bits = 1;
    std::vector<LayoutVariable> variables;
    std::vector<LayoutDigit> digits;
    bool pitched = false;
    int64_t word_bits = 0;  // 0: dense
    bool lane_msb = false;
    int64_t size_bytes = 1;            // the size of a bank is a multiple of this
    std::optional<uint64_t> fill = 0;  // nothing: undefined
    std::optional<LayoutView> view;
    bool operator==(const Parts&) const = default;
  };
  static Result<Layout> make(Parts parts);

  // Properties.
  const std::string& dims() const;  // names
  const Dims& shape() const;
  int64_t element_bits() const;
  bool has_digits() const;  // false: it keeps its map
  const std::vector<LayoutVariable>& variables() const;
  const std::vector<LayoutDigit>& digits() const;  // empty for a map
  bool is_ragged() const;
  int64_t variable_extent(int variable) const;  // D_v: the number of values of x_v
  int64_t padded_extent(int variable) const;    // the number of values that z_v can take in the digits
  const Parts& parts() const;

  // Sizes.
  int64_t devices() const;
  int64_t banks() const;  // of all devices
  int64_t lanes() const;  // P
  int64_t word_bits() const;
  bool lane_msb() const;
  int64_t words_per_bank() const;  // whole pitches: the size to allocate
  int64_t span_words() const;      // highest word in use + 1 (with swizzles of > 65536 an upper bound)
  int64_t valid_elements() const;  // elements of the tensor
  int64_t physical_elements() const;  // slots of all banks
  int64_t padding() const;            // slots that hold no element
  int64_t bytes_per_bank() const;
  int64_t bytes() const;  // banks * bytes_per_bank()
  std::optional<uint64_t> fill() const;
  bool injective() const;  // false: broadcast or folded, several indices share a slot
  bool is_view() const;

  // Evaluation. `index` must have an entry in [0, D_d) per dim; anything else is a bug of the caller. Only for
  // valid_elements > 0.
  LayoutPosition apply(std::span<const int64_t> index) const;
  // The same for values of the variables in [0, padded_extent): reaches padding, too. Not for maps, and not for padding
  // that a ragged layout lacks.
  LayoutPosition apply_padded(std::span<const int64_t> z) const;
  // True, and the index (`rank` numbers) that is in the slot; false: padding, or a bank or slot that does not exist. If
  // several indices share the slot, the least one.
  bool inverse(int64_t bank, int64_t slot, std::span<int64_t> index) const;
  // Checks that each slot is one element or padding, and that each element has a slot of its own (a shared one if not
  // injective()). Checks every slot and index up to `exhaustive` of them; beyond, a sample, and the chain of places and
  // the nesting of strides, which prove it.
  Result<void> verify(int64_t exhaustive = int64_t{1} << 16) const;

  // Operations. Each returns a new layout.
  // Splits digit (p, e) into (p * inner, e / inner) and (p, inner); the function is the same. Fails if inner does not
  // divide e.
  Result<Layout> refine(size_t digit, int64_t inner) const;
  // Reorders the digits: place i of the result has digit order[i]; strides become compact.
  Result<Layout> permute(std::span<const size_t> order) const;
  // Moves the digit to another space, at its end; strides become compact.
  Result<Layout> retag(size_t digit, LayoutSpace space) const;
  // Adds `before` slots in front of the variable, and pads its end to a multiple of `multiple`; strides become compact.
  Result<Layout> pad(char variable, int64_t before, int64_t multiple = 1) const;
  // The layout of the part [begin, end) of the tensor, in the same memory: a view. E_UNALIGNED unless the part starts
  // at a block and crosses no other border.
  Result<Layout> slice(const Dims& begin, const Dims& end) const;
  // The normal form: digits of extent 1 removed, adjacent digits of a variable merged where nothing is between them,
  // dense lanes as addresses; sorted by stride. Maps and slots are unchanged.
  Layout normal() const;
  // Whether both give the same bank and bit for every index, and have the same sizes. Beyond 65536 elements, by the
  // normal forms: false may then mean "not known to be the same".
  bool same_function(const Layout& other) const;
  bool same_sizes(const Layout& other) const;

  // Queries.
  struct Run {
    std::string variable;  // "" when there is only one element
    int64_t length = 1;
  };
  // The longest run of contiguous indices along one variable.
  Run run() const;
  // The largest number of bits that divides every bit offset at which a row of the variable starts: its outermost digit
  // and all digits outside of it at any value, those inside 0. 0: always at the very start of a bank.
  int64_t alignment(char variable) const;
  bool is_dense() const;  // no padding, no slack bits, no broadcast, no view
  int64_t lanes_along(char variable) const;
  // All z that digits reach and that no element has, without pitch gaps and slack bits. Empty for ragged layouts
  // without padded splits.
  std::vector<LayoutBox> pad_boxes() const;
  // Whether two iterations of a loop over the variable, with `step` indices each, may access the same unit of
  // `unit_bits` (0: the word). False is a proof.
  bool shares_word(char variable, int64_t step = 1, int64_t unit_bits = 0) const;
  // The largest number of accesses to one bank when the elements at index + delta, for all deltas, are read at once;
  // the same word counts once. Over all indices, or a seeded sample of 65536 if there are more.
  int64_t bank_conflicts(std::span<const Dims> deltas) const;

  // Coordinates and offsets as expressions of the index; symbols are the dims in lower case.
  LayoutMap map() const;
  Expr bank_expr() const;
  Expr word_expr() const;
  Expr lane_expr() const;

  // parse(to_string(), dims(), shape(), element_bits()) gives an equal layout.
  std::string to_string() const;
  // The long form, which parses to a layout with the same function and sizes. E_UNSUPPORTED for a ragged layout.
  Result<std::string> to_map_string() const;
  bool operator==(const Layout& other) const;
  uint64_t hash() const;
  // FNV-1a over u64le(bank), u64le(bit) of every index in row-major order.
  uint64_t fnv1a64() const;
  // For artefacts, so that both sides can detect a mismatch. Up to 65536 elements: of fnv1a64() and the sizes; beyond,
  // of the normal form and a sample. Equal for equal functions with equal sizes.
  uint64_t fingerprint() const;

  // Internal to the room.
  explicit Layout(std::shared_ptr<const detail::LayoutData> data) : data_(std::move(data)) {}
  const detail::LayoutData& data() const { return *data_; }

 private:
  std::shared_ptr<const detail::LayoutData> data_;
};

// The layout that stores inner's digits in the order of `outer`: the dims of `outer`, in their order, are the digits of
// `inner`, whose own strides and spaces are ignored. The result has digits if every radix of `outer` divides the digit
// that it splits; otherwise it is a map.
TENON_API Result<Layout> compose(const Layout& outer, const Layout& inner);

// A layout of a shape with symbolic extents. Places and sized extents are numbers (except for n blocks of a symbolic
// extent), so offsets remain closed-form expressions.
class TENON_API SymbolicLayout {
 public:
  // Short form only. `?` as an extent in the text is replaced by the next of `sizes`.
  static Result<SymbolicLayout> parse(std::string_view text, std::string_view dims, const std::vector<Expr>& shape,
                                      int64_t element_bits, std::span<const int64_t> sizes = {});
  // With numbers for all symbols.
  Result<Layout> bind(const SymbolValues& values) const;
  // Functions of index symbols, which are the dims in lower case. `word` is the slot in a ragged layout.
  const Expr& bank() const { return bank_; }
  const Expr& word() const { return word_; }
  const Expr& lane() const { return lane_; }
  const Expr& words_per_bank() const { return words_per_bank_; }
  const Expr& banks() const { return banks_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_, dims_;
  std::vector<Expr> shape_;
  int64_t element_bits_ = 1;
  Expr bank_, word_, lane_, words_per_bank_, banks_;
};

// The text with every '?' replaced by the next of `sizes`, of which there must be as many.
TENON_API Result<std::string> bind_layout_text(std::string_view text, std::span<const int64_t> sizes);

namespace detail {
template <class F>
struct ArityOf : ArityOf<decltype(&F::operator())> {};
template <class R, class C, class... A>
struct ArityOf<R (C::*)(A...) const> : std::integral_constant<size_t, sizeof...(A)> {};
template <class R, class C, class... A>
struct ArityOf<R (C::*)(A...)> : std::integral_constant<size_t, sizeof...(A)> {};
TENON_API Error map_arity_error(size_t parameters, size_t rank);
}  // namespace detail

template <class F>
Result<Layout> Layout::from_map(std::string_view dims, const Dims& shape, int64_t element_bits, F&& map) {
  constexpr size_t kArity = detail::ArityOf<std::remove_cvref_t<F>>::value;
  if (shape.size() != kArity) return detail::map_arity_error(kArity, shape.size());
  return from_function(dims, shape, element_bits, [&map](std::span<const Expr> index) -> LayoutMap {
    return [&]<size_t... I>(std::index_sequence<I...>) { return map(index[I]...); }
    (std::make_index_sequence<kArity>());
  });
}

}  // namespace tenon

template <>
struct std::hash<tenon::Layout> {
  size_t operator()(const tenon::Layout& layout) const { return layout.hash(); }
};
