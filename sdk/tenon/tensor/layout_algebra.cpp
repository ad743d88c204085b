// Operations that derive layouts from layouts.
#include <algorithm>
#include <numeric>

#include <tenon/tensor/layout_internal.hpp>

namespace tenon {

using detail::layout_error;
using detail::LayoutData;

namespace {

// The preconditions of an operation on digits. `moves`: it changes positions of elements, which a view does not allow.
Result<void> check_operand(const Layout& layout, std::string_view operation, bool moves) {
  if (!layout.has_digits()) {
    return layout_error("E_UNSUPPORTED", operation, " needs digits; ", layout.to_string(), " keeps its map");
  }
  if (moves && layout.is_view()) {
    return layout_error("E_UNSUPPORTED", operation, " would move elements within the buffer that ", layout.to_string(),
                        " is a view of");
  }
  return {};
}

Result<void> check_digit(const Layout& layout, size_t digit) {
  if (digit < layout.digits().size()) return {};
  return layout_error("E_UNKNOWN_DIM", "digit ", digit, " of ", layout.to_string(), ", which has ",
                      layout.digits().size());
}

bool is_dense_word(const Layout& layout) { return layout.word_bits() == layout.lanes() * layout.element_bits(); }

// The outermost digit of a variable.
size_t outermost(const Layout::Parts& parts, int v) {
  size_t best = parts.digits.size();
  for (size_t j = 0; j < parts.digits.size(); ++j) {
    if (parts.digits[j].variable != v) continue;
    if (best == parts.digits.size() || parts.digits[j].place > parts.digits[best].place) best = j;
  }
  return best;
}

}  // namespace

Result<Layout> Layout::refine(size_t j, int64_t inner) const {
  TENON_OK(check_operand(*this, "refine", false));
  TENON_OK(check_digit(*this, j));
  Parts parts = data_->parts;
  const LayoutDigit digit = parts.digits[j];
  if (inner < 1 || digit.extent % inner != 0) {
    return layout_error("E_NOT_DIVISIBLE", "digit ", j, " of ", to_string(), " has ", digit.extent,
                        " values, which do not split into groups of ", inner);
  }
  LayoutDigit low = digit, high = digit;
  low.extent = inner;
  high.place *= inner;
  high.extent /= inner;
  high.stride *= inner;
  if (digit.xor_variable >= 0) high.xor_place *= inner;
  if (data_->ragged && outermost(parts, digit.variable) == j) {
    if (digit.extent > detail::ceil_div(data_->total[static_cast<size_t>(digit.variable)], digit.place)) {
      return layout_error("E_UNSUPPORTED", "digit ", j, " of the ragged ", to_string(), " is padded");
    }
    low.tail = LayoutTail::ragged;
  }
  parts.digits[j] = high;
  parts.digits.insert(parts.digits.begin() + static_cast<std::ptrdiff_t>(j) + 1, low);
  return make(std::move(parts));
}

Result<Layout> Layout::permute(std::span<const size_t> order) const {
  TENON_OK(check_operand(*this, "permute", true));
  Parts parts = data_->parts;
  std::vector<bool> seen(parts.digits.size());
  parts.digits.clear();
  for (const size_t j : order) {
    TENON_OK(check_digit(*this, j));
    if (seen[j]) return layout_error("E_DUP_DIM", "digit ", j, " stands twice in the order");
    seen[j] = true;
    parts.digits.push_back(digits()[j]);
  }
  if (order.size() != seen.size()) {
    return layout_error("E_RANK", "an order of ", order.size(), " digits for ", to_string(), ", which has ",
                        seen.size());
  }
  parts.pitched = false;
  return make(std::move(parts));
}

Result<Layout> Layout::retag(size_t j, LayoutSpace space) const {
  TENON_OK(check_operand(*this, "retag", true));
  TENON_OK(check_digit(*this, j));
  Parts parts = data_->parts;
  LayoutDigit digit = parts.digits[j];
  digit.space = space;
  parts.digits.erase(parts.digits.begin() + static_cast<std::ptrdiff_t>(j));
  parts.digits.push_back(digit);
  if (is_dense_word(*this)) parts.word_bits = 0;
  parts.pitched = false;
  return make(std::move(parts));
}

Result<Layout> Layout::pad(char variable, int64_t before, int64_t multiple) const {
  TENON_OK(check_operand(*this, "pad", true));
  const int v = data_->find_variable(variable);
  if (v < 0) {
    return layout_error("E_UNKNOWN_DIM", "'", detail::text_of(variable), "' is no variable of ", to_string());
  }
  Parts parts = data_->parts;
  LayoutVariable& padded = parts.variables[static_cast<size_t>(v)];
  if (padded.fold) {
    return layout_error("E_UNSUPPORTED", "'", detail::text_of(variable), "' of ", to_string(),
                        " is folded, and has no end to be padded");
  }
  int64_t total = 0;
  if (before < 0 || multiple < 1 || before > detail::kMaxLayoutBits || multiple > detail::kMaxLayoutBits ||
      __builtin_add_overflow(data_->total[static_cast<size_t>(v)], before, &total) ||
      total > detail::kMaxLayoutBits - multiple) {
    return layout_error("E_BAD_EXTENT", "padding of ", before, " in front and to a multiple of ", multiple);
  }
  padded.offset += before;
  LayoutDigit& outer = parts.digits[outermost(parts, v)];
  // Never less than before: the digit may already be padded.
  outer.extent = std::max(outer.extent, detail::ceil_div(detail::round_up(total, multiple), outer.place));
  for (LayoutDigit& digit : parts.digits) {
    if (digit.variable == v && digit.tail == LayoutTail::exact) digit.tail = LayoutTail::pad;
  }
  parts.pitched = false;
  return make(std::move(parts));
}

namespace {

// Crops one variable to the values [begin, end), and finds where these start.
class Slicer {
 public:
  explicit Slicer(const Layout& layout) : layout_(layout), data_(layout.data()), parts_(data_.parts) {
    parts_.view = LayoutView{data_.base_word, data_.base_bank, data_.banks, data_.words};
  }

  Result<void> cut(size_t v, int64_t begin, int64_t end) {
    LayoutVariable& variable = parts_.variables[v];
    if (variable.fold) return unaligned(v, begin, end, "the dim is folded");
    for (const LayoutDigit& digit : parts_.digits) {
      if (digit.xor_variable >= 0 &&
          (digit.variable == static_cast<int>(v) || digit.xor_variable == static_cast<int>(v))) {
        return unaligned(v, begin, end, "the dim is swizzled");
      }
      if (digit.variable == static_cast<int>(v) && digit.space == LayoutSpace::address && digit.stride == 0 &&
          digit.extent > 1) {
        return unaligned(v, begin, end, "the dim is repeated");
      }
    }
    int64_t first = begin + variable.offset, last = end - 1 + variable.offset;
    variable.offset = 0;
    for (LayoutDigit* digit : chain(v)) {
      const int64_t q = first / digit->place;
      const bool aligned = first % digit->place == 0;
      if (!aligned && q != last / digit->place) {
        return unaligned(v, begin, end, str("it crosses a block of ", digit->place, " from within"));
      }
      if (digit->space == LayoutSpace::lane && (q != 0 || !aligned)) {
        return unaligned(v, begin, end, "it starts or ends within a word");
      }
      TENON_OK(move(*digit, v, q, last / digit->place - q + 1, begin, end));
      if (aligned) return {};
      first %= digit->place;
      last %= digit->place;
    }
    return {};
  }

  Layout::Parts& parts() { return parts_; }

 private:
  std::vector<LayoutDigit*> chain(size_t v) {
    std::vector<LayoutDigit*> out;
    for (LayoutDigit& digit : parts_.digits) {
      if (digit.variable == static_cast<int>(v) && digit.extent > 1) out.push_back(&digit);
    }
    std::ranges::sort(out, std::greater(), &LayoutDigit::place);
    return out;
  }

  // The digit now starts at q and ends at `values`.
  Result<void> move(LayoutDigit& digit, size_t v, int64_t q, int64_t values, int64_t begin, int64_t end) {
    const auto j = static_cast<size_t>(&digit - parts_.digits.data());
    if (digit.space == LayoutSpace::lane) return {};  // the lanes are kept, some of them empty
    if (digit.space == LayoutSpace::address) {
      parts_.view->base_word += data_.weight[j] * q;
    } else {
      // Banks are numbered without gaps, so only the outermost bank digit may lose values.
      if (data_.bank_order.front() != j) return unaligned(v, begin, end, "banks would be left out in between");
      parts_.view->base_bank += data_.weight[j] * q;
    }
    digit.extent = values;
    return {};
  }

  Error unaligned(size_t v, int64_t begin, int64_t end, std::string_view why) const {
    return layout_error("E_UNALIGNED", "the part [", begin, ", ", end, ") of '",
                        detail::text_of(parts_.variables[v].name), "' in ", layout_.to_string(),
                        " is no layout of digits: ", why);
  }

  const Layout& layout_;
  const LayoutData& data_;
  Layout::Parts parts_;
};

}  // namespace

Result<Layout> Layout::slice(const Dims& begin, const Dims& end) const {
  TENON_OK(check_operand(*this, "slice", false));
  if (data_->ragged) {
    return layout_error("E_UNSUPPORTED", "slice needs strides, which the ragged ", to_string(), " has not");
  }
  if (begin.size() != shape().size() || end.size() != shape().size()) {
    return layout_error("E_RANK", "the part from ", begin, " to ", end, " of shape ", shape());
  }
  for (size_t d = 0; d < begin.size(); ++d) {
    if (begin[d] < 0 || begin[d] >= end[d] || end[d] > shape()[d]) {
      return layout_error("E_BAD_EXTENT", "the part from ", begin, " to ", end, " of shape ", shape(),
                          " is empty or outside");
    }
  }
  Slicer slicer(*this);
  Parts& parts = slicer.parts();
  for (size_t v = 0; v < parts.variables.size(); ++v) {
    const std::vector<int>& dims = parts.variables[v].dims;
    const auto whole = [&](int d) {
      return begin[static_cast<size_t>(d)] == 0 && end[static_cast<size_t>(d)] == shape()[static_cast<size_t>(d)];
    };
    if (std::ranges::all_of(dims, whole)) continue;
    if (!std::all_of(dims.begin() + 1, dims.end(), whole)) {
      return layout_error("E_UNALIGNED", "only the first of the fused dims '", detail::text_of(parts.variables[v].name),
                          "' can be cut");
    }
    const auto d = static_cast<size_t>(dims[0]);
    const int64_t inner = data_->extent[v] / shape()[d];
    TENON_OK(slicer.cut(v, begin[d] * inner, end[d] * inner));
  }
  for (size_t d = 0; d < begin.size(); ++d) parts.shape[d] = end[d] - begin[d];
  for (LayoutDigit& digit : parts.digits) {
    if (digit.tail == LayoutTail::exact) digit.tail = LayoutTail::pad;
  }
  return make(std::move(parts));
}

Layout Layout::normal() const {
  if (!has_digits()) return *this;
  Parts parts = data_->parts;
  const bool exact = std::ranges::all_of(parts.digits, [&](const LayoutDigit& digit) {
    return digit.tail != LayoutTail::ragged ||
           data_->padded[static_cast<size_t>(digit.variable)] % (digit.place * digit.extent) == 0;
  });
  for (LayoutDigit& digit : parts.digits) {
    if (exact || digit.tail == LayoutTail::exact) digit.tail = LayoutTail::pad;
  }
  if (data_->ragged && exact) {
    // Whole blocks only: the strides are compact. Outermost digits keep their extents, which are then exact.
    parts.pitched = false;
    auto compact = make(parts);
    TENON_CHECK(compact.ok(), compact.error().to_string());
    if (compact->same_sizes(*this)) return compact->normal();
    parts = data_->parts;
  }
  if (!parts.lane_msb || data_->lanes == 1) {
    if (is_dense_word(*this)) {
      for (LayoutDigit& digit : parts.digits) {
        if (digit.space == LayoutSpace::address) digit.stride *= data_->lanes;
        if (digit.space == LayoutSpace::lane) digit.space = LayoutSpace::address;
      }
      if (parts.view) {
        parts.view->base_word *= data_->lanes;
        parts.view->words_per_bank *= data_->lanes;
      }
      parts.word_bits = parts.element_bits;
      parts.lane_msb = false;
    }
  }
  int64_t words = 1;
  std::vector<int64_t> outer_places;
  for (size_t v = 0; v < data_->padded.size(); ++v) {
    outer_places.push_back(parts.digits[outermost(parts, static_cast<int>(v))].place);
  }
  for (LayoutDigit& digit : parts.digits) {
    const int64_t values = data_->padded[static_cast<size_t>(digit.variable)];
    if (data_->ragged) digit.extent = std::min(digit.extent, detail::ceil_div(values, digit.place));
    if (digit.space == LayoutSpace::address && digit.extent > 1) words = std::max(words, digit.stride * digit.extent);
  }
  std::erase_if(parts.digits, [&](const LayoutDigit& digit) {
    // An outermost digit determines where the padded blocks end; an inner one may have a single value only where they
    // are cropped.
    if (data_->ragged) {
      const auto v = static_cast<size_t>(digit.variable);
      return digit.place < outer_places[v] && (digit.extent <= 1 || digit.place >= data_->padded[v]);
    }
    // A digit of extent 1 may have a pitch that alone determines the size.
    return digit.extent <= 1 && (digit.space != LayoutSpace::address || digit.stride <= words);
  });
  if (data_->ragged) {
    parts.pitched = false;  // it may no longer be ragged
  } else {
    std::ranges::stable_sort(parts.digits, [](const LayoutDigit& a, const LayoutDigit& b) {
      return std::pair(a.space, -a.stride) < std::pair(b.space, -b.stride);
    });
  }
  for (size_t j = 0; j + 1 < parts.digits.size();) {
    LayoutDigit &a = parts.digits[j], &b = parts.digits[j + 1];
    const bool joined = a.variable == b.variable && a.space == b.space && a.place == b.place * b.extent &&
                        a.stride == b.stride * b.extent && a.tail == b.tail && a.xor_variable < 0 &&
                        b.xor_variable < 0 && !data_->ragged;
    if (!joined) {
      ++j;
      continue;
    }
    b.extent *= a.extent;
    parts.digits.erase(parts.digits.begin() + static_cast<std::ptrdiff_t>(j));
    if (j > 0) --j;
  }
  auto out = make(std::move(parts));
  TENON_CHECK(out.ok(), "the normal form of ", to_string(), ": ", out.error().to_string());
  // The remaining digits may have only whole blocks, or a single value, and are then normalised again.
  return data_->ragged && *out != *this ? out->normal() : *std::move(out);
}

bool Layout::same_sizes(const Layout& other) const {
  return shape() == other.shape() && element_bits() == other.element_bits() && banks() == other.banks() &&
         devices() == other.devices() && words_per_bank() * word_bits() == other.words_per_bank() * other.word_bits() &&
         bytes() == other.bytes();
}

bool Layout::same_function(const Layout& other) const {
  if (!same_sizes(other)) return false;
  if (*this == other || valid_elements() == 0) return true;
  constexpr int64_t kTries = int64_t{1} << 16;
  if (valid_elements() <= kTries || !has_digits() || !other.has_digits()) {
    Dims index(shape().size());
    do {
      const LayoutPosition a = apply(index), b = other.apply(index);
      if (a.bank != b.bank || a.bit != b.bit) return false;
    } while (detail::next_index(index, shape()));
    return true;
  }
  const Layout a = normal(), b = other.normal();
  const auto telling = [](const Layout& layout) {
    std::vector<std::pair<LayoutDigit, LayoutVariable>> out;
    for (LayoutDigit digit : layout.digits()) {
      LayoutVariable variable = layout.variables()[static_cast<size_t>(digit.variable)];
      // Numbers and names of variables are only labels.
      variable.name = 0;
      digit.variable = 0;
      if (digit.xor_variable >= 0) {
        digit.xor_variable = layout.variables()[static_cast<size_t>(digit.xor_variable)].dims[0];
      }
      if (digit.extent > 1) out.emplace_back(digit, variable);
    }
    return out;
  };
  return a.word_bits() == b.word_bits() && a.lane_msb() == b.lane_msb() && a.is_ragged() == b.is_ragged() &&
         a.parts().view == b.parts().view && telling(a) == telling(b);
}

Result<Layout> compose(const Layout& outer, const Layout& inner) {
  TENON_OK(check_operand(inner, "compose", false));
  Dims extents;
  for (const LayoutDigit& digit : inner.digits()) extents.push_back(digit.extent);
  if (outer.shape() != extents || outer.element_bits() != inner.element_bits()) {
    return layout_error("E_RANK", "the outer layout is of shape ", outer.shape(), " and ", outer.element_bits(),
                        "-bit elements, the digits of ", inner.to_string(), " have the extents ", extents, " and ",
                        inner.element_bits(), "-bit elements");
  }
  const auto swizzled = [](const LayoutDigit& digit) { return digit.xor_variable >= 0; };
  const auto folded = [](const LayoutVariable& variable) { return variable.fold != 0; };
  if (std::ranges::any_of(inner.digits(), swizzled) || std::ranges::any_of(inner.variables(), folded)) {
    return layout_error("E_UNSUPPORTED", "the digits of ", inner.to_string(), " are swizzled or folded");
  }
  Layout::Parts parts = outer.parts();
  parts.dims = inner.dims();
  parts.shape = inner.shape();
  parts.variables = inner.variables();
  bool plain = outer.has_digits();
  for (LayoutDigit& digit : parts.digits) {
    const LayoutVariable& variable = outer.variables()[static_cast<size_t>(digit.variable)];
    if (variable.dims.size() != 1 || variable.offset || variable.fold || swizzled(digit) || outer.is_ragged()) {
      plain = false;
      break;
    }
    const LayoutDigit& cut = inner.digits()[static_cast<size_t>(variable.dims[0])];
    digit.variable = cut.variable;
    if (!detail::multiply(digit.place, cut.place)) plain = false;
    digit.tail = LayoutTail::pad;
  }
  if (plain) {
    auto digits = Layout::make(std::move(parts));
    if (digits.ok()) return digits;
  }
  Substitution values;
  for (size_t j = 0; j < inner.digits().size(); ++j) {
    const char symbol = detail::lower(outer.dims()[j]);
    values.emplace(std::string(1, symbol), detail::digit_expr(inner.data(), inner.digits()[j]));
  }
  LayoutMap map;
  map.word_bits = outer.word_bits();
  if (outer.banks() > 1) map.banks = {outer.bank_expr().substitute(values)};
  map.address = {outer.word_expr().substitute(values)};
  if (outer.lanes() > 1) map.lanes = {outer.lane_expr().substitute(values)};
  detail::LayoutSpec spec;
  spec.word_bits = outer.word_bits();
  spec.lane_msb = outer.lane_msb();
  spec.fill = outer.fill();
  spec.size_bytes = outer.parts().size_bytes;
  return detail::layout_of_map(inner.dims(), inner.shape(), inner.element_bits(), map, spec);
}

}  // namespace tenon
