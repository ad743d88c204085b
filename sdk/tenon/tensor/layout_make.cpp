// Makes a layout from parts: checks them, and brings them into a canonical form, so that equal layouts have equal
// parts.
#include <algorithm>
#include <numeric>

#include <tenon/tensor/layout_internal.hpp>

namespace tenon {

using detail::layout_error;
using detail::LayoutData;
using detail::text_of;

namespace {

Result<void> check_variables(LayoutData& data) {
  const Layout::Parts& parts = data.parts;
  std::vector<bool> seen(parts.shape.size());
  for (size_t v = 0; v < parts.variables.size(); ++v) {
    const LayoutVariable& variable = parts.variables[v];
    if (!detail::is_upper(variable.name)) {
      return layout_error("E_SYNTAX", "variable ", v, " is named '", text_of(variable.name),
                          "', not by one upper-case letter");
    }
    if (data.find_variable(variable.name) != static_cast<int>(v)) {
      return layout_error("E_DUP_DIM", "two variables '", text_of(variable.name), "'");
    }
    if (variable.offset < 0 || variable.fold < 0) {
      return layout_error("E_BAD_EXTENT", "variable '", text_of(variable.name), "' has offset ", variable.offset,
                          " and fold ", variable.fold, "; neither can be below 0");
    }
    int64_t extent = 1;
    for (const int d : variable.dims) {
      if (d < 0 || static_cast<size_t>(d) >= seen.size()) {
        return layout_error("E_UNKNOWN_DIM", "variable '", text_of(variable.name), "' is of dim ", d, " of ",
                            seen.size());
      }
      if (seen[static_cast<size_t>(d)]) return layout_error("E_DUP_DIM", "dim ", d, " is in two variables");
      seen[static_cast<size_t>(d)] = true;
      if (!detail::multiply(extent, parts.shape[static_cast<size_t>(d)])) {
        return layout_error("E_BAD_EXTENT", "variable '", text_of(variable.name), "' goes beyond 2^62 values");
      }
    }
    int64_t total = variable.fold;
    if (!total && (__builtin_add_overflow(extent, variable.offset, &total) || total > detail::kMaxLayoutBits)) {
      return layout_error("E_BAD_EXTENT", "off(", text_of(variable.name), ")=", variable.offset,
                          " goes beyond 2^62 values");
    }
    data.extent.push_back(extent);
    data.total.push_back(total);
  }
  for (size_t d = 0; d < seen.size(); ++d) {
    if (!seen[d]) return layout_error("E_MISSING_DIM", "dim '", text_of(parts.dims[d]), "' is in no variable");
  }
  return {};
}

// Variables in the order of their first dim.
void sort_variables(LayoutData& data) {
  std::vector<size_t> order(data.parts.variables.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto first_dim = [&](size_t v) {
    const std::vector<int>& dims = data.parts.variables[v].dims;
    return dims.empty() ? -1 : *std::ranges::min_element(dims);
  };
  std::ranges::stable_sort(order, {}, first_dim);
  if (std::ranges::is_sorted(order)) return;
  std::vector<int> number(order.size());
  LayoutData sorted = data;
  for (size_t i = 0; i < order.size(); ++i) {
    number[order[i]] = static_cast<int>(i);
    sorted.parts.variables[i] = data.parts.variables[order[i]];
    sorted.extent[i] = data.extent[order[i]];
    sorted.total[i] = data.total[order[i]];
  }
  for (LayoutDigit& digit : sorted.parts.digits) {
    digit.variable = number[static_cast<size_t>(digit.variable)];
    if (digit.xor_variable >= 0) digit.xor_variable = number[static_cast<size_t>(digit.xor_variable)];
  }
  data = std::move(sorted);
}

Result<void> check_digit(const LayoutData& data, const LayoutDigit& digit) {
  const auto variables = static_cast<int>(data.parts.variables.size());
  if (digit.variable < 0 || digit.variable >= variables || digit.xor_variable >= variables) {
    return layout_error("E_UNKNOWN_DIM", "a digit of variable ", digit.variable, " of ", variables);
  }
  const char name = data.variable(digit.variable).name;
  const int64_t total = data.total[static_cast<size_t>(digit.variable)];
  int64_t reach = digit.place;
  if (digit.place < 1 || digit.extent < (total == 0 ? 0 : 1) || digit.stride < 0 || digit.xor_place < 1 ||
      !detail::multiply(reach, std::max<int64_t>(digit.extent, 1))) {
    return layout_error("E_BAD_EXTENT", "a digit of '", text_of(name), "' has place ", digit.place, ", extent ",
                        digit.extent, ", stride ", digit.stride);
  }
  if (digit.tail == LayoutTail::exact && total % reach != 0) {
    return layout_error("E_NOT_DIVISIBLE", "the ", total, " values of '", text_of(name),
                        "' do not split exactly into blocks of ", reach);
  }
  return {};
}

// Positions of a variable's digits, from the outermost inwards.
std::vector<size_t> chain_of(const Layout::Parts& parts, size_t v) {
  std::vector<size_t> out;
  for (size_t j = 0; j < parts.digits.size(); ++j) {
    if (parts.digits[j].variable == static_cast<int>(v)) out.push_back(j);
  }
  std::ranges::stable_sort(out, std::ranges::greater(), [&](size_t j) { return parts.digits[j].place; });
  return out;
}

Result<void> check_chain(LayoutData& data, size_t v) {
  const char name = data.parts.variables[v].name;
  const int64_t total = data.total[v];
  int64_t reach = 1;
  const std::vector<size_t> chain = chain_of(data.parts, v);
  for (size_t i = chain.size(); i-- > 0;) {
    const LayoutDigit& digit = data.parts.digits[chain[i]];
    if (digit.extent <= 1) continue;
    if (digit.place != reach) {
      return layout_error("E_BAD_EXTENT", "the digits of '", text_of(name), "' are no chain: one of place ",
                          digit.place, " follows digits that hold the values below ", reach);
    }
    reach *= digit.extent;  // fits: check_digit
  }
  if (reach < total) {
    return layout_error("E_MISSING_DIM", "the digits of '", text_of(name), "' hold ", reach, " of its ", total,
                        " values");
  }
  data.padded.push_back(total == 0 ? 0 : reach);
  return {};
}

// A variable with a single value needs no digit, but a text must name it.
void name_all_variables(LayoutData& data) {
  auto& digits = data.parts.digits;
  for (size_t v = data.total.size(); v-- > 0;) {
    if (data.total[v] > 1 || !chain_of(data.parts, v).empty()) continue;
    digits.insert(digits.begin(), {.variable = static_cast<int>(v), .extent = data.total[v]});
  }
}

// Whether the outermost digit of a variable is ragged has no meaning, because there are no blocks around it.
void make_tails_uniform(LayoutData& data) {
  for (size_t v = 0; v < data.total.size(); ++v) {
    const std::vector<size_t> chain = chain_of(data.parts, v);
    if (chain.empty()) continue;
    LayoutDigit& outer = data.parts.digits[chain[0]];
    if (outer.tail == LayoutTail::ragged)
      outer.extent = std::max<int64_t>(1, detail::ceil_div(data.total[v], outer.place));
    outer.tail = LayoutTail::pad;
  }
}

Result<void> prepare_ragged(LayoutData& data) {
  Layout::Parts& parts = data.parts;
  data.ragged = std::ranges::any_of(parts.digits, [](const LayoutDigit& d) { return d.tail == LayoutTail::ragged; });
  if (!data.ragged) return {};
  for (size_t v = 0; v < data.total.size(); ++v) {
    std::vector<size_t> chain = chain_of(parts, v);
    int64_t whole = 1;
    for (size_t i = 1; i < chain.size(); ++i) {
      const LayoutDigit& digit = parts.digits[chain[i]];
      if (digit.tail != LayoutTail::ragged && digit.extent > 1) whole = std::max(whole, digit.place * digit.extent);
    }
    // An outermost digit with more values than it needs is explicit padding.
    const bool asked =
        !chain.empty() && parts.digits[chain[0]].extent > detail::ceil_div(data.total[v], parts.digits[chain[0]].place);
    if (!asked) data.padded[v] = detail::round_up(data.total[v], whole);
    std::erase_if(chain, [&](size_t j) { return parts.digits[j].extent <= 1; });
    if (!std::ranges::is_sorted(chain)) {
      return layout_error("E_UNSUPPORTED", "a ragged layout needs the digits of '", text_of(parts.variables[v].name),
                          "' in falling order of place");
    }
  }
  for (LayoutDigit& digit : parts.digits) {
    if (digit.space != LayoutSpace::address || digit.xor_variable >= 0) {
      return layout_error("E_UNSUPPORTED",
                          "a ragged layout has all its digits in addresses, without swizzles: it has no strides");
    }
    digit.stride = 0;
  }
  return {};
}

Result<void> check_xors(LayoutData& data) {
  auto& digits = data.parts.digits;
  for (LayoutDigit& digit : digits) {
    if (digit.xor_variable < 0) continue;
    if (digit.extent <= 1) {
      digit.xor_variable = -1;
      digit.xor_place = 1;
      continue;
    }
    data.has_xor = true;
    const char name = data.variable(digit.variable).name, with = data.variable(digit.xor_variable).name;
    if (digit.extent & (digit.extent - 1)) {
      return layout_error("E_BAD_EXTENT", "xor(", text_of(name), "): the digit of place ", digit.place, " has ",
                          digit.extent, " values, which is no power of two; name another one as ", text_of(name),
                          "@place");
    }
    const bool swizzled = std::ranges::any_of(
        digits, [&](const LayoutDigit& d) { return d.variable == digit.xor_variable && d.xor_variable >= 0; });
    const bool repeated = std::ranges::any_of(digits, [&](const LayoutDigit& d) {
      return d.space == LayoutSpace::address && d.stride == 0 && d.extent > 1 &&
             (d.variable == digit.variable || d.variable == digit.xor_variable);
    });
    if (swizzled || repeated) {
      return layout_error("E_UNSUPPORTED", "xor(", text_of(name), ")=", text_of(with), ": digits of '", text_of(with),
                          "' are ", swizzled ? "swizzled themselves" : "repeated");
    }
  }
  return {};
}

// Sets the strides of lanes, banks and devices, and those of addresses unless they are given. Strides of a digit of
// extent 1 that no key could name are irrelevant and made uniform.
Result<void> set_weights(LayoutData& data) {
  auto& digits = data.parts.digits;
  int64_t running[4] = {1, 1, 1, 1};
  const auto grow = [](int64_t& value, int64_t extent) -> Result<void> {
    if (detail::multiply(value, std::max<int64_t>(extent, 1))) return {};
    return layout_error("E_BAD_EXTENT", "the layout goes beyond 2^62 slots");
  };
  for (size_t j = digits.size(); j-- > 0;) {
    LayoutDigit& digit = digits[j];
    int64_t& count = running[static_cast<size_t>(digit.space)];
    if (digit.space != LayoutSpace::address) {
      digit.stride = count;
      TENON_OK(grow(count, digit.extent));
      continue;
    }
    if (data.ragged) continue;
    const auto is_it = [&](const LayoutDigit& d) {
      return d.variable == digit.variable && d.space == LayoutSpace::address;
    };
    if (!data.parts.pitched ||
        (digit.extent <= 1 && (digit.stride == 0 || detail::find_digit(digits, is_it, digit.place) != j))) {
      digit.stride = count;
    }
    int64_t end = digit.stride;
    TENON_OK(grow(end, digit.extent));
    count = std::max(count, end);
  }
  data.parts.pitched = true;
  data.devices = running[static_cast<size_t>(LayoutSpace::device)];
  const int64_t banks = running[static_cast<size_t>(LayoutSpace::bank)];
  data.banks = data.devices;
  TENON_OK(grow(data.banks, banks));
  data.words = running[static_cast<size_t>(LayoutSpace::address)];
  data.lanes = running[static_cast<size_t>(LayoutSpace::lane)];
  if (data.ragged) {
    data.words = 1;
    for (const int64_t extent : data.padded) TENON_OK(grow(data.words, extent));
  }
  for (const LayoutDigit& digit : digits) {
    data.weight.push_back(digit.space == LayoutSpace::device ? digit.stride * banks : digit.stride);
  }
  return {};
}

Result<void> set_view(LayoutData& data) {
  if (!data.parts.view) return {};
  const LayoutView& view = *data.parts.view;
  const int64_t needed_words = data.words, needed_banks = data.banks;
  int64_t last_word = 0, last_bank = 0;
  if (view.base_word < 0 || view.base_bank < 0 || view.words_per_bank < 0 ||
      __builtin_add_overflow(view.base_word, needed_words, &last_word) ||
      __builtin_add_overflow(view.base_bank, needed_banks, &last_bank) || last_bank > view.banks ||
      view.banks > detail::kMaxLayoutBits || view.words_per_bank > detail::kMaxLayoutBits) {
    return layout_error("E_BAD_EXTENT", "a view of ", needed_banks, " banks from bank ", view.base_bank, " and ",
                        needed_words, " words from word ", view.base_word, ", in a buffer of ", view.banks,
                        " banks of ", view.words_per_bank, " words");
  }
  data.base_word = view.base_word;
  data.base_bank = view.base_bank;
  data.banks = view.banks;
  data.words = view.words_per_bank;
  return {};
}

}  // namespace

namespace detail {

Result<void> set_word(Layout::Parts& parts, int64_t lanes) {
  int64_t needed = lanes;
  if (parts.word_bits < 0 || !multiply(needed, parts.element_bits)) {
    return layout_error("E_BAD_EXTENT", "words of ", parts.word_bits, " bits for ", lanes, " lanes");
  }
  if (parts.word_bits == 0) parts.word_bits = needed;
  if (parts.word_bits < needed) {
    return layout_error("E_WORD_OVERFLOW", lanes, " lanes of ", parts.element_bits, " bits need ", needed,
                        " bits, the word has ", parts.word_bits);
  }
  if (parts.size_bytes < 1) return layout_error("E_BAD_EXTENT", "a size in multiples of ", parts.size_bytes, " bytes");
  if (parts.fill && parts.element_bits < 64 && *parts.fill >> parts.element_bits != 0) {
    return layout_error("E_BAD_EXTENT", "the fill ", *parts.fill, " does not fit an element of ", parts.element_bits,
                        " bits");
  }
  return {};
}

}  // namespace detail

Result<Layout> Layout::make(Parts parts) {
  TENON_OK(detail::check_dims(parts.dims, parts.shape.size(), parts.element_bits));
  for (const int64_t extent : parts.shape) {
    if (extent < 0) return layout_error("E_BAD_EXTENT", "a shape of ", parts.shape, " with an extent below 0");
  }
  auto data = std::make_shared<LayoutData>();
  data->parts = std::move(parts);
  TENON_OK(check_variables(*data));
  for (const LayoutDigit& digit : data->parts.digits) TENON_OK(check_digit(*data, digit));
  sort_variables(*data);
  name_all_variables(*data);
  if (data->parts.digits.size() > static_cast<size_t>(kMaxLayoutDigits)) {
    return layout_error("E_SYNTAX", "a layout of ", data->parts.digits.size(), " digits; the limit is ",
                        kMaxLayoutDigits);
  }
  // The order between spaces has no meaning.
  std::ranges::stable_sort(data->parts.digits, {}, &LayoutDigit::space);
  make_tails_uniform(*data);
  for (size_t v = 0; v < data->total.size(); ++v) TENON_OK(check_chain(*data, v));
  TENON_OK(prepare_ragged(*data));
  TENON_OK(check_xors(*data));
  TENON_OK(set_weights(*data));
  TENON_OK(detail::set_word(data->parts, data->lanes));
  TENON_OK(set_view(*data));
  TENON_OK(detail::set_sizes(*data));
  return Layout(std::shared_ptr<const LayoutData>(std::move(data)));
}

}  // namespace tenon
