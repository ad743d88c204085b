// The parts of a layout, its function and the inverse. Sizes: layout_size.cpp.
#include <algorithm>
#include <numeric>

#include <tenon/support/hash.hpp>
#include <tenon/tensor/layout_internal.hpp>

namespace tenon {

using detail::LayoutData;

std::string_view layout_error_code(const Error& error) {
  const std::string_view message = error.message();
  if (!message.starts_with("E_")) return {};
  return message.substr(0, std::min(message.find(':'), message.size()));
}

std::string_view layout_space_name(LayoutSpace space) {
  constexpr std::string_view kNames[] = {"dev", "bank", "addr", "lane"};
  return kNames[static_cast<size_t>(space)];
}

namespace detail {

int LayoutData::find_variable(char name) const {
  for (size_t v = 0; v < parts.variables.size(); ++v) {
    if (parts.variables[v].name == name) return static_cast<int>(v);
  }
  return -1;
}

namespace {

// The rank among the digit tuples that occur (see layout.hpp, "ragged"), from the outermost digit inwards. `step` gets
// each digit with the number of slots that one step of it skips, and returns its value.
template <class Step>
void walk_ragged(const LayoutData& data, const Step& step) {
  int64_t rest[kMaxLayoutRank], prefix[kMaxLayoutRank] = {};
  std::ranges::copy(data.padded, rest);
  for (const LayoutDigit& digit : data.parts.digits) {
    if (digit.extent <= 1) continue;
    const auto v = static_cast<size_t>(digit.variable);
    int64_t weight = std::min(digit.place, data.padded[v]);
    for (size_t u = 0; u < data.padded.size(); ++u) {
      if (u != v) weight *= rest[u];
    }
    prefix[v] += digit.place * step(digit, weight);
    rest[v] = std::min(digit.place, data.padded[v] - prefix[v]);
  }
}

int64_t combine(const LayoutData& data, const int64_t* z, LayoutSpace from, LayoutSpace to) {
  int64_t sum = 0;
  for (size_t j = 0; j < data.parts.digits.size(); ++j) {
    const LayoutDigit& digit = data.parts.digits[j];
    if (digit.space >= from && digit.space <= to) sum += data.weight[j] * data.digit_value(digit, z);
  }
  return sum;
}

}  // namespace

int64_t LayoutData::digit_value(const LayoutDigit& digit, const int64_t* z) const {
  const int64_t q = z[digit.variable] / digit.place % digit.extent;
  return digit.xor_variable < 0 ? q : q ^ (z[digit.xor_variable] / digit.xor_place & (digit.extent - 1));
}

LayoutPosition LayoutData::position(int64_t bank, int64_t slot) const {
  const int64_t word = slot / lanes, lane = slot % lanes, w = parts.element_bits;
  const int64_t at = parts.lane_msb ? parts.word_bits - w - lane * w : lane * w;
  return {bank, slot, word * parts.word_bits + at};
}

LayoutPosition LayoutData::at(const int64_t* z) const {
  if (ragged) {
    int64_t slot = 0;
    walk_ragged(*this, [&](const LayoutDigit& digit, int64_t weight) {
      const int64_t q = z[digit.variable] / digit.place % digit.extent;
      slot += q * weight;
      return q;
    });
    return position(base_bank, (base_word * lanes) + slot);
  }
  const int64_t bank = base_bank + combine(*this, z, LayoutSpace::device, LayoutSpace::bank);
  const int64_t word = base_word + combine(*this, z, LayoutSpace::address, LayoutSpace::address);
  return position(bank, word * lanes + combine(*this, z, LayoutSpace::lane, LayoutSpace::lane));
}

void LayoutData::variables_of(std::span<const int64_t> index, int64_t* z) const {
  for (size_t v = 0; v < parts.variables.size(); ++v) {
    const LayoutVariable& variable = parts.variables[v];
    int64_t x = 0;
    for (const int d : variable.dims) {
      const auto dim = static_cast<size_t>(d);
      TENON_CHECK(index[dim] >= 0 && index[dim] < parts.shape[dim], "index ", index, " outside of shape ", parts.shape);
      x = x * parts.shape[dim] + index[dim];
    }
    z[v] = x + variable.offset;
    if (variable.fold) z[v] %= variable.fold;
  }
}

bool next_index(std::span<int64_t> index, std::span<const int64_t> begin, std::span<const int64_t> end) {
  for (size_t d = index.size(); d-- > 0;) {
    if (++index[d] < end[d]) return true;
    index[d] = begin[d];
  }
  return false;
}

bool next_index(std::span<int64_t> index, std::span<const int64_t> shape) {
  constexpr int64_t kZeros[kMaxLayoutRank] = {};
  return next_index(index, std::span(kZeros).first(index.size()), shape);
}

void index_of(int64_t number, std::span<const int64_t> shape, std::span<int64_t> index) {
  for (size_t d = index.size(); d-- > 0;) {
    index[d] = number % shape[d];
    number /= shape[d];
  }
}

uint64_t fnv_u64(uint64_t state, uint64_t value) {
  char bytes[8];
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xff);
    value >>= 8;
  }
  return fnv1a({bytes, sizeof bytes}, state);
}

}  // namespace detail

Layout::Layout() {
  static const std::shared_ptr<const LayoutData> kScalar = [] {
    auto data = std::make_shared<LayoutData>();
    data->parts.word_bits = 1;
    data->parts.pitched = true;
    return data;
  }();
  data_ = kScalar;
}

LayoutPosition Layout::apply(std::span<const int64_t> index) const {
  const LayoutData& data = *data_;
  TENON_CHECK(index.size() == data.parts.shape.size(), "index ", index, " for shape ", data.parts.shape);
  if (data.table) {
    int64_t number = 0;
    for (size_t d = 0; d < index.size(); ++d) number = number * data.parts.shape[d] + index[d];
    TENON_CHECK(number >= 0 && number < data.valid, "index ", index, " outside of shape ", data.parts.shape);
    const int64_t slots = data.words * data.lanes, slot = data.table->slots[static_cast<size_t>(number)];
    return data.position(slot / slots, slot % slots);
  }
  int64_t z[detail::kMaxLayoutRank];
  data.variables_of(index, z);
  return data.at(z);
}

LayoutPosition Layout::apply_padded(std::span<const int64_t> z) const {
  TENON_CHECK(has_digits() && z.size() == data_->padded.size(), "values ", z, " for a layout of ", data_->padded.size(),
              " variables");
  return data_->at(z.data());
}

namespace {

// Decomposes a number into digit values, added to z; false when no digits give this number. Swizzled digits go to
// `raw`.
bool take_apart(const LayoutData& data, const std::vector<uint8_t>& order, int64_t number, int64_t* z, int64_t* raw) {
  if (number < 0) return false;
  for (const uint8_t j : order) {
    const LayoutDigit& digit = data.parts.digits[j];
    const int64_t q = number / data.weight[j];
    if (q >= digit.extent) return false;
    number -= q * data.weight[j];
    if (digit.xor_variable < 0) {
      z[digit.variable] += q * digit.place;
    } else {
      raw[j] = q;
    }
  }
  return number == 0;
}

bool take_apart(const LayoutData& data, int64_t bank, int64_t slot, int64_t* z) {
  if (data.ragged) {
    detail::walk_ragged(data, [&](const LayoutDigit& digit, int64_t weight) {
      const int64_t q = slot / weight;
      slot -= q * weight;
      z[digit.variable] += q * digit.place;
      return q;
    });
    return slot == 0;
  }
  int64_t raw[kMaxLayoutDigits] = {};
  if (!take_apart(data, data.bank_order, bank, z, raw) ||
      !take_apart(data, data.address_order, slot / data.lanes, z, raw) ||
      !take_apart(data, data.lane_order, slot % data.lanes, z, raw)) {
    return false;
  }
  if (!data.has_xor) return true;
  // The variables that swizzle have no swizzled digits, so they are complete by now.
  int64_t fixed[detail::kMaxLayoutRank];
  std::copy_n(z, data.padded.size(), fixed);
  for (size_t j = 0; j < data.parts.digits.size(); ++j) {
    const LayoutDigit& digit = data.parts.digits[j];
    if (digit.xor_variable < 0) continue;
    z[digit.variable] += digit.place * (raw[j] ^ (fixed[digit.xor_variable] / digit.xor_place & (digit.extent - 1)));
  }
  return true;
}

}  // namespace

bool Layout::inverse(int64_t bank, int64_t slot, std::span<int64_t> index) const {
  const LayoutData& data = *data_;
  TENON_CHECK(index.size() == data.parts.shape.size(), "an index of ", index.size(), " numbers for shape ",
              data.parts.shape);
  const int64_t slots = data.words * data.lanes;
  if (data.valid == 0 || bank < 0 || bank >= data.banks || slot < 0 || slot >= slots) return false;
  if (data.table) {
    const auto& owners = data.table->owners;
    const auto it = std::ranges::lower_bound(owners, std::pair{bank * slots + slot, int64_t{0}});
    if (it == owners.end() || it->first != bank * slots + slot) return false;
    detail::index_of(it->second, data.parts.shape, index);
    return true;
  }
  int64_t z[detail::kMaxLayoutRank] = {};
  slot -= data.base_word * data.lanes;
  if (slot < 0 || !take_apart(data, bank - data.base_bank, slot, z)) return false;
  for (size_t v = 0; v < data.parts.variables.size(); ++v) {
    const LayoutVariable& variable = data.parts.variables[v];
    int64_t x = z[v] - variable.offset;
    if (variable.fold) {
      if (z[v] >= variable.fold) return false;
      x = ((x % variable.fold) + variable.fold) % variable.fold;
    }
    if (x < 0 || x >= data.extent[v]) return false;
    for (size_t i = variable.dims.size(); i-- > 0;) {
      const auto d = static_cast<size_t>(variable.dims[i]);
      index[d] = x % data.parts.shape[d];
      x /= data.parts.shape[d];
    }
  }
  return true;
}

const std::string& Layout::dims() const { return data_->parts.dims; }
const Dims& Layout::shape() const { return data_->parts.shape; }
int64_t Layout::element_bits() const { return data_->parts.element_bits; }
bool Layout::has_digits() const { return !data_->table; }
const std::vector<LayoutVariable>& Layout::variables() const { return data_->parts.variables; }
const std::vector<LayoutDigit>& Layout::digits() const { return data_->parts.digits; }
bool Layout::is_ragged() const { return data_->ragged; }
int64_t Layout::variable_extent(int variable) const { return data_->extent[static_cast<size_t>(variable)]; }
int64_t Layout::padded_extent(int variable) const { return data_->padded[static_cast<size_t>(variable)]; }
const Layout::Parts& Layout::parts() const { return data_->parts; }
int64_t Layout::devices() const { return data_->devices; }
int64_t Layout::banks() const { return data_->banks; }
int64_t Layout::lanes() const { return data_->lanes; }
int64_t Layout::word_bits() const { return data_->parts.word_bits; }
bool Layout::lane_msb() const { return data_->parts.lane_msb; }
int64_t Layout::words_per_bank() const { return data_->words; }
int64_t Layout::span_words() const { return data_->span; }
int64_t Layout::valid_elements() const { return data_->valid; }
int64_t Layout::physical_elements() const { return data_->physical; }
int64_t Layout::padding() const { return data_->padding; }
int64_t Layout::bytes_per_bank() const {
  return detail::round_up(detail::ceil_div(data_->words * data_->parts.word_bits, 8), data_->parts.size_bytes);
}
int64_t Layout::bytes() const { return data_->banks * bytes_per_bank(); }
std::optional<uint64_t> Layout::fill() const { return data_->parts.fill; }
bool Layout::injective() const { return data_->injective; }
bool Layout::is_view() const { return data_->parts.view.has_value(); }

bool Layout::operator==(const Layout& other) const {
  if (data_ == other.data_) return true;
  if (data_->parts != other.data_->parts || !data_->table != !other.data_->table) return false;
  if (!data_->table) return true;
  const LayoutMap &a = data_->table->map, &b = other.data_->table->map;
  return a.devices == b.devices && a.banks == b.banks && a.address == b.address && a.lanes == b.lanes;
}

}  // namespace tenon
