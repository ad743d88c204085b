// Sizes of a layout in closed form, and the proof that no two indices share a slot.
#include <algorithm>
#include <unordered_map>

#include <tenon/tensor/layout_internal.hpp>

namespace tenon::detail {

std::vector<std::pair<int64_t, int64_t>> used_ranges(const LayoutData& data, size_t v) {
  const LayoutVariable& variable = data.parts.variables[v];
  const int64_t extent = data.extent[v], fold = variable.fold;
  if (!fold) return {{variable.offset, variable.offset + extent}};
  if (extent >= fold) return {{0, fold}};
  const int64_t begin = variable.offset % fold, end = begin + extent;
  if (end <= fold) return {{begin, end}};
  return {{begin, fold}, {0, end - fold}};
}

namespace {

// The number of indices that are tried one by one where there is no closed form.
constexpr int64_t kMaxTries = int64_t{1} << 16;

// The digits of one variable with more than one value, from the outermost inwards, with the relevant stride.
struct DigitChain {
  std::vector<int64_t> place, stride;
};

DigitChain address_chain(const LayoutData& data, size_t v) {
  DigitChain out;
  std::vector<std::pair<int64_t, int64_t>> digits;
  for (const LayoutDigit& digit : data.parts.digits) {
    if (digit.variable != static_cast<int>(v) || digit.extent <= 1) continue;
    digits.emplace_back(digit.place, digit.space == LayoutSpace::address ? digit.stride : -1);
  }
  std::ranges::sort(digits, std::greater());
  for (const auto& [place, stride] : digits) {
    out.place.push_back(place);
    out.stride.push_back(stride);
  }
  return out;
}

// The largest address for values in [begin, end) of a variable. The largest value of the outermost digit is best,
// unless its block is cropped; then the block before it is considered, too.
int64_t largest_address(const DigitChain& chain, size_t k, int64_t begin, int64_t end) {
  if (k == chain.place.size()) return 0;
  const int64_t p = chain.place[k], s = std::max<int64_t>(chain.stride[k], 0);
  const int64_t first = begin / p, last = (end - 1) / p, cut = (end - 1) % p + 1;
  const int64_t from = first == last ? begin % p : 0;
  int64_t best = s * last + largest_address(chain, k + 1, from, cut);
  if (first < last && cut < p) {
    const int64_t start = first == last - 1 ? begin % p : 0;
    best = std::max(best, s * (last - 1) + largest_address(chain, k + 1, start, p));
  }
  return best;
}

// The number of distinct slots for the values [0, count) of a variable, where digits of stride 0 repeat.
int64_t distinct_values(const DigitChain& chain, size_t k, int64_t count) {
  if (k == chain.place.size()) return 1;
  const int64_t p = chain.place[k], whole = count / p, rest = count % p;
  const int64_t last = rest ? distinct_values(chain, k + 1, rest) : 0;
  if (whole == 0) return last;
  const int64_t block = distinct_values(chain, k + 1, p);
  return chain.stride[k] == 0 ? block : whole * block + last;
}

Result<void> count_padding(LayoutData& data) {
  int64_t held = 1;
  for (size_t v = 0; v < data.extent.size(); ++v) {
    const LayoutVariable& variable = data.parts.variables[v];
    const DigitChain chain = address_chain(data, v);
    int64_t values = variable.fold ? std::min(data.extent[v], variable.fold) : data.extent[v];
    if (!data.ragged && std::ranges::find(chain.stride, 0) != chain.stride.end()) {
      if (variable.offset || variable.fold) {
        return layout_error("E_UNSUPPORTED", "stride 0 repeats the values of '", text_of(variable.name),
                            "', so off() and fold() of it have no meaning");
      }
      values = distinct_values(chain, 0, values);
    }
    data.injective = data.injective && values == data.extent[v];
    held *= values;
  }
  data.padding = data.physical - held;
  return {};
}

// The largest z_v in use.
int64_t last_value(const LayoutData& data, size_t v) {
  int64_t last = 0;
  for (const auto& [begin, end] : used_ranges(data, v)) last = std::max(last, end - 1);
  return last;
}

int64_t span_of(const LayoutData& data) {
  if (data.ragged) {
    // Slots are in the order of the digits, so the last element has the last value of every variable.
    int64_t z[kMaxLayoutRank];
    for (size_t v = 0; v < data.extent.size(); ++v) z[v] = last_value(data, v);
    return data.at(z).slot + 1;
  }
  int64_t last = data.base_word;
  if (data.has_xor) {
    if (data.valid <= kMaxTries) {
      Dims index(data.parts.shape.size());
      int64_t z[kMaxLayoutRank];
      do {
        data.variables_of(index, z);
        last = std::max(last, data.at(z).slot / data.lanes);
      } while (next_index(index, data.parts.shape));
      return last + 1;
    }
    for (const LayoutDigit& digit : data.parts.digits) {
      if (digit.space == LayoutSpace::address) last += digit.stride * (digit.extent - 1);
    }
    return last + 1;
  }
  for (size_t v = 0; v < data.extent.size(); ++v) {
    const DigitChain chain = address_chain(data, v);
    int64_t best = 0;
    for (const auto& [begin, end] : used_ranges(data, v)) {
      best = std::max(best, largest_address(chain, 0, begin, end));
    }
    last += best;
  }
  return last + 1;
}

Result<void> check_nesting(const LayoutData& data, const std::vector<uint8_t>& order) {
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const LayoutDigit &outer = data.parts.digits[order[i]], &inner = data.parts.digits[order[i + 1]];
    const int64_t needed = data.weight[order[i + 1]] * inner.extent;
    if (data.weight[order[i]] >= needed) continue;
    const std::string pair = find_collision(data);
    return layout_error("E_NOT_INVERTIBLE", "the stride ", data.weight[order[i]], " of '",
                        text_of(data.variable(outer.variable).name), "' is less than the ", needed, " that '",
                        text_of(data.variable(inner.variable).name), "' takes up", pair.empty() ? "" : "; ", pair);
  }
  return {};
}

}  // namespace

std::string find_collision(const LayoutData& data) {
  const Layout layout(std::shared_ptr<const LayoutData>(std::shared_ptr<void>(), &data));
  std::unordered_map<int64_t, int64_t> seen;  // by bank and slot, combined
  Dims index(data.parts.shape.size()), other(index.size());
  for (int64_t number = 0; number < std::min(kMaxTries, data.valid); ++number) {
    const LayoutPosition at = layout.apply(index);
    const auto [it, fresh] = seen.emplace(at.slot * data.banks + at.bank, number);
    if (!fresh) {
      index_of(it->second, data.parts.shape, other);
      return str("indices ", other, " and ", index, " both lie in bank ", at.bank, ", slot ", at.slot);
    }
    next_index(index, data.parts.shape);
  }
  return {};
}

Result<void> set_sizes(LayoutData& data) {
  const Layout::Parts& parts = data.parts;
  for (const int64_t extent : parts.shape) {
    if (!multiply(data.valid, extent)) return layout_error("E_BAD_EXTENT", "a shape of ", parts.shape, " is too large");
  }
  if (data.valid == 0) {
    data.words = data.span = data.physical = data.padding = 0;
    return {};
  }
  data.physical = data.banks;
  int64_t bits = data.banks;
  const bool fits = multiply(data.physical, data.words) && multiply(data.physical, data.lanes) &&
                    multiply(bits, data.words) && multiply(bits, parts.word_bits);
  int64_t bytes = fits ? ceil_div(ceil_div(data.words * parts.word_bits, 8), parts.size_bytes) : 0;
  if (!fits || !multiply(bytes, parts.size_bytes) || !multiply(bytes, data.banks)) {
    return layout_error("E_BAD_EXTENT", data.banks, " banks of ", data.words, " words of ", parts.word_bits,
                        " bits go beyond 2^62 bits");
  }
  for (size_t j = 0; j < parts.digits.size() && !data.ragged; ++j) {
    const LayoutDigit& digit = parts.digits[j];
    if (digit.extent <= 1 || data.weight[j] == 0) continue;
    auto& order = digit.space == LayoutSpace::address ? data.address_order
                  : digit.space == LayoutSpace::lane  ? data.lane_order
                                                      : data.bank_order;
    order.push_back(static_cast<uint8_t>(j));
  }
  const auto weight = [&](uint8_t j) { return data.weight[j]; };
  for (auto* order : {&data.bank_order, &data.address_order, &data.lane_order}) {
    std::ranges::stable_sort(*order, std::greater(), weight);
    TENON_OK(check_nesting(data, *order));
  }
  TENON_OK(count_padding(data));
  data.span = span_of(data);
  if (data.span > data.words) {
    return layout_error("E_BAD_EXTENT", "the last element lies in word ", data.span - 1, ", the buffer has ",
                        data.words, " words");
  }
  return {};
}

}  // namespace tenon::detail
