// Properties of a layout.
#include <algorithm>
#include <numeric>
#include <random>

#include <tenon/tensor/layout_internal.hpp>

namespace tenon {

using detail::LayoutData;

namespace {

// Digits with more than one value and their distances in bits, in ascending order.
struct BitDigit {
  const LayoutDigit* digit = nullptr;
  int64_t stride = 0;
};

std::vector<BitDigit> bit_digits(const LayoutData& data) {
  std::vector<BitDigit> out;
  for (size_t j = data.parts.digits.size(); j-- > 0;) {
    const LayoutDigit& digit = data.parts.digits[j];
    if (digit.extent <= 1) continue;
    if (digit.space == LayoutSpace::lane) out.push_back({&digit, data.weight[j] * data.parts.element_bits});
    if (digit.space == LayoutSpace::address) out.push_back({&digit, data.weight[j] * data.parts.word_bits});
  }
  std::ranges::stable_sort(out, {}, &BitDigit::stride);
  return out;
}

// The longest part of [offset, offset + extent) within one block.
int64_t longest_piece(int64_t offset, int64_t extent, int64_t block) {
  const int64_t first = std::min(block - offset % block, extent);
  return std::max(first, std::min(block, extent - first));
}

Layout::Run ragged_run(const LayoutData& data) {
  const auto& digits = data.parts.digits;
  for (size_t j = digits.size(); j-- > 0;) {
    const auto v = static_cast<size_t>(digits[j].variable);
    if (digits[j].extent <= 1 || digits[j].place >= data.padded[v]) continue;
    Layout::Run run{std::string(1, data.parts.variables[v].name), 1};
    if (digits[j].place == 1 && data.parts.word_bits == data.parts.element_bits) {
      run.length = longest_piece(data.parts.variables[v].offset, data.extent[v], digits[j].extent);
    }
    return run;
  }
  return {};
}

Layout::Run map_run(const Layout& layout) {
  Layout::Run best;
  const Dims& shape = layout.shape();
  for (size_t d = 0; d < shape.size() && layout.valid_elements() > 0; ++d) {
    Dims index(shape.size());
    do {
      if (index[d] != 0) continue;
      Dims row = index;
      LayoutPosition last = layout.apply(row);
      int64_t length = 1;
      while (++row[d] < shape[d]) {
        const LayoutPosition next = layout.apply(row);
        length = next.bank == last.bank && next.bit == last.bit + layout.element_bits() ? length + 1 : 1;
        if (length > best.length) best = {std::string(1, layout.dims()[d]), length};
        last = next;
      }
    } while (detail::next_index(index, shape));
  }
  return best;
}

}  // namespace

Layout::Run Layout::run() const {
  const LayoutData& data = *data_;
  if (data.table) return map_run(*this);
  if (data.ragged) return ragged_run(data);
  const std::vector<BitDigit> digits = bit_digits(data);
  if (digits.empty()) return {};
  const auto v = static_cast<size_t>(digits[0].digit->variable);
  Run run{std::string(1, data.parts.variables[v].name), 1};
  const bool swizzled = digits[0].digit->xor_variable >= 0;
  if (digits[0].digit->place != 1 || digits[0].stride != element_bits() || swizzled || (lane_msb() && lanes() > 1)) {
    return run;
  }
  int64_t block = digits[0].digit->extent;
  for (size_t i = 1; i < digits.size(); ++i) {
    const LayoutDigit& digit = *digits[i].digit;
    if (digit.variable != digits[0].digit->variable || digit.place != block || digit.xor_variable >= 0 ||
        digits[i].stride != block * element_bits()) {
      break;
    }
    block *= digit.extent;
  }
  // Swizzling by this variable moves what follows.
  for (const LayoutDigit& digit : data.parts.digits) {
    if (digit.xor_variable == static_cast<int>(v)) block = std::gcd(block, digit.xor_place);
  }
  const LayoutVariable& variable = data.parts.variables[v];
  const int64_t begin = variable.fold ? variable.offset % variable.fold : variable.offset;
  const int64_t first = variable.fold ? std::min(variable.fold - begin, data.extent[v]) : data.extent[v];
  run.length = longest_piece(begin, first, block);
  if (first < data.extent[v]) {  // round the fold
    run.length = std::max(run.length, longest_piece(0, std::min(data.extent[v] - first, variable.fold), block));
  }
  return run;
}

int64_t Layout::alignment(char name) const {
  const LayoutData& data = *data_;
  if (data.table) return 1;
  const int v = data.find_variable(name);
  if (data.ragged || v < 0) return word_bits();
  const std::vector<BitDigit> digits = bit_digits(data);
  const auto outermost =
      std::ranges::find_if(digits.rbegin(), digits.rend(), [&](const BitDigit& d) { return d.digit->variable == v; });
  int64_t divisor = data.base_word * word_bits();
  const auto first = outermost == digits.rend() ? digits.begin() : outermost.base() - 1;
  for (auto it = first; it != digits.end(); ++it) divisor = std::gcd(divisor, it->stride);
  return divisor;
}

bool Layout::is_dense() const {
  return injective() && padding() == 0 && word_bits() == lanes() * element_bits() && !is_view();
}

int64_t Layout::lanes_along(char name) const {
  int64_t out = 1;
  for (const LayoutDigit& digit : digits()) {
    if (digit.space == LayoutSpace::lane && data_->variable(digit.variable).name == name) out *= digit.extent;
  }
  return out;
}

std::vector<LayoutBox> Layout::pad_boxes() const {
  const LayoutData& data = *data_;
  std::vector<LayoutBox> out;
  if (data.table || data.valid == 0) return out;
  // For each variable its unused values, with the used ones of the variables before it and all values of those after
  // it.
  std::vector<LayoutBox> used{LayoutBox{}};
  for (size_t v = 0; v < data.padded.size(); ++v) {
    const bool repeated = std::ranges::any_of(data.parts.digits, [&](const LayoutDigit& digit) {
      return !data.ragged && digit.variable == static_cast<int>(v) && digit.space == LayoutSpace::address &&
             digit.stride == 0 && digit.extent > 1;
    });
    auto ranges = detail::used_ranges(data, v);
    if (repeated) ranges = {{0, data.padded[v]}};
    std::ranges::sort(ranges);
    std::vector<LayoutBox> next;
    for (const LayoutBox& box : used) {
      int64_t from = 0;
      const auto add = [&](int64_t begin, int64_t end, std::vector<LayoutBox>& to, bool whole) {
        if (begin >= end) return;
        LayoutBox part = box;
        part.begin.push_back(begin);
        part.end.push_back(end);
        for (size_t u = v + 1; u < data.padded.size() && whole; ++u) {
          part.begin.push_back(0);
          part.end.push_back(data.padded[u]);
        }
        to.push_back(std::move(part));
      };
      for (const auto& [begin, end] : ranges) {
        add(from, begin, out, true);
        add(begin, end, next, false);
        from = end;
      }
      add(from, data.padded[v], out, true);
    }
    used = std::move(next);
  }
  return out;
}

namespace {

// Whether a unit holds elements of two iterations, by trying all elements.
bool shares_word_tried(const Layout& layout, size_t v, int64_t step, int64_t unit_bits) {
  const LayoutVariable& variable = layout.variables()[v];
  const Dims& shape = layout.shape();
  std::vector<std::array<int64_t, 3>> touched;  // bank, unit, iteration
  Dims index(shape.size());
  do {
    int64_t x = 0;
    for (const int d : variable.dims) x = x * shape[static_cast<size_t>(d)] + index[static_cast<size_t>(d)];
    const LayoutPosition at = layout.apply(index);
    for (int64_t unit = at.bit / unit_bits; unit <= (at.bit + layout.element_bits() - 1) / unit_bits; ++unit) {
      touched.push_back({at.bank, unit, x / step});
    }
  } while (detail::next_index(index, shape));
  std::ranges::sort(touched);
  for (size_t i = 1; i < touched.size(); ++i) {
    const auto &a = touched[i - 1], &b = touched[i];
    if (a[0] == b[0] && a[1] == b[1] && a[2] != b[2]) return true;
  }
  return false;
}

}  // namespace

bool Layout::shares_word(char name, int64_t step, int64_t unit_bits) const {
  constexpr int64_t kTries = int64_t{1} << 16;
  const LayoutData& data = *data_;
  const int v = data.find_variable(name);
  TENON_CHECK(v >= 0 && step >= 1 && unit_bits >= 0, "shares_word of '", detail::text_of(name), "', step ", step,
              ", unit ", unit_bits, " bits");
  if (unit_bits == 0) unit_bits = word_bits();
  if (data.valid == 0 || data.extent[static_cast<size_t>(v)] <= step) return false;
  if (data.valid <= kTries) return shares_word_tried(*this, static_cast<size_t>(v), step, unit_bits);
  const LayoutVariable& variable = data.variable(v);
  if (!has_digits() || data.ragged || data.has_xor || variable.fold || variable.offset || !injective()) return true;
  // Each digit either advances by whole units, or stays within one unit and belongs to one iteration. The unit is then
  // determined by the first kind alone, and determines the iteration.
  int64_t within = element_bits();
  if (lane_msb()) within = word_bits();
  for (const BitDigit& d : bit_digits(data)) {
    const bool lane = d.digit->space == LayoutSpace::lane;
    if (d.stride % unit_bits == 0 && !(lane && lane_msb())) continue;
    const bool of_iteration = d.digit->variable == v && (d.digit->place >= step || step % d.digit->place != 0 ||
                                                         step < d.digit->place * d.digit->extent);
    if (of_iteration) return true;
    if (!(lane && lane_msb())) within += d.stride * (d.digit->extent - 1);
  }
  return within > unit_bits || (data.base_word * word_bits()) % unit_bits != 0;
}

int64_t Layout::bank_conflicts(std::span<const Dims> deltas) const {
  constexpr int64_t kTries = int64_t{1} << 16;
  std::mt19937_64 random(1);
  Dims index(shape().size()), at(index.size());
  int64_t worst = 0;
  std::vector<std::pair<int64_t, int64_t>> accesses;  // bank, word
  const int64_t tries = std::min(kTries, valid_elements());
  for (int64_t i = 0; i < tries; ++i) {
    accesses.clear();
    for (const Dims& delta : deltas) {
      TENON_CHECK(delta.size() == index.size(), "delta ", delta, " for shape ", shape());
      bool inside = true;
      for (size_t d = 0; d < index.size(); ++d) {
        at[d] = index[d] + delta[d];
        inside = inside && at[d] >= 0 && at[d] < shape()[d];
      }
      if (!inside) continue;
      const LayoutPosition position = apply(at);
      accesses.emplace_back(position.bank, position.slot / lanes());
    }
    std::ranges::sort(accesses);
    accesses.erase(std::unique(accesses.begin(), accesses.end()), accesses.end());
    for (size_t a = 0; a < accesses.size();) {
      size_t b = a;
      while (b < accesses.size() && accesses[b].first == accesses[a].first) ++b;
      worst = std::max(worst, static_cast<int64_t>(b - a));
      a = b;
    }
    if (valid_elements() <= kTries) {
      detail::next_index(index, shape());
    } else {
      for (size_t d = 0; d < index.size(); ++d) {
        index[d] = static_cast<int64_t>(random() % static_cast<uint64_t>(shape()[d]));
      }
    }
  }
  return worst;
}

}  // namespace tenon
