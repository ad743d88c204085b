#include <algorithm>

#include <tenon/tensor/layout_internal.hpp>

namespace tenon {
namespace {

using detail::LayoutData;
using detail::lower;

// The notation of each digit.
class Printer {
 public:
  explicit Printer(const LayoutData& data) : data_(data), digits_(data.parts.digits), texts_(digits_.size()) {}

  std::string layout() {
    sized_.assign(digits_.size(), true);
    for (size_t v = 0; v < data_.total.size(); ++v) write_variable(static_cast<int>(v));
    std::string out;
    const std::string devices = of_space(LayoutSpace::device), banks = of_space(LayoutSpace::bank);
    if (!devices.empty()) {
      out = str('[', devices, '|', banks, ']');
    } else if (!banks.empty()) {
      out = str('[', banks, ']');
    }
    append_addresses(out);
    const std::string lanes = of_space(LayoutSpace::lane);
    if (data_.parts.word_bits != data_.lanes * data_.parts.element_bits) {
      out += str('<', lanes, ':', data_.parts.word_bits, '>');
    } else if (!lanes.empty()) {
      out += str('<', lanes, '>');
    }
    return out + keys();
  }

  // All keys.
  std::string keys() {
    const Layout::Parts& parts = data_.parts;
    std::string out;
    for (const LayoutVariable& variable : parts.variables) {
      const std::string_view name(&variable.name, 1);
      if (variable.dims.size() != 1 || variable.name != parts.dims[static_cast<size_t>(variable.dims[0])]) {
        out += str(";fuse(", name, ")=");
        for (const int d : variable.dims) out += parts.dims[static_cast<size_t>(d)];
      }
      if (variable.offset && !is_map_) out += str(";off(", name, ")=", variable.offset);
      if (variable.fold) out += str(";fold(", name, ")=", variable.fold);
    }
    out += strides();
    for (size_t j = 0; j < digits_.size(); ++j) {
      const LayoutDigit& digit = digits_[j];
      if (digit.xor_variable < 0) continue;
      const char with = data_.variable(digit.xor_variable).name;
      out += str(";xor(", name_of(j, false), ")=", with);
      if (digit.xor_place != 1) out += str('@', digit.xor_place);
    }
    return out + whole_keys();
  }

  // Keys of the whole layout.
  std::string whole_keys() const {
    const Layout::Parts& parts = data_.parts;
    std::string out;
    if (parts.size_bytes != 1) out += str(";size=", parts.size_bytes, 'B');
    if (parts.lane_msb) out += ";lane=msb";
    if (!parts.fill) {
      out += ";fill=undef";
    } else if (*parts.fill) {
      out += str(";fill=", *parts.fill);
    }
    if (parts.view) {
      const LayoutView& view = *parts.view;
      out += str(";view=", view.base_word, ',', view.base_bank, ',', view.banks, ',', view.words_per_bank);
    }
    return out;
  }

  void set_map() { is_map_ = true; }

 private:
  // The positions of a variable's digits, from the outermost inwards.
  std::vector<size_t> chain(int v) const {
    std::vector<size_t> out;
    for (size_t j = 0; j < digits_.size(); ++j) {
      if (digits_[j].variable == v) out.push_back(j);
    }
    std::ranges::stable_sort(out, std::ranges::greater(), [&](size_t j) { return digits_[j].place; });
    return out;
  }
  int64_t reach(const std::vector<size_t>& chain, size_t from) const {
    int64_t out = 1;
    for (size_t i = from; i < chain.size(); ++i) out *= std::max<int64_t>(1, digits_[chain[i]].extent);
    return out;
  }

  // As "X/n" and a single "x" inside, "X/n", or "X": whichever is parsed as the same digits.
  void write_outer(int v, const std::vector<size_t>& chain) {
    const LayoutDigit& outer = digits_[chain[0]];
    const std::string name(1, data_.variable(v).name);
    const int64_t total = data_.total[static_cast<size_t>(v)];
    const bool is_rest = outer.place == reach(chain, 1) && outer.extent == detail::ceil_div(total, outer.place);
    if (outer.extent >= 1 && chain.size() > 1) {
      const LayoutDigit& inside = digits_[chain[1]];
      const int64_t below = reach(chain, 2);
      const int64_t blocks = std::max<int64_t>(1, detail::ceil_div(detail::ceil_div(total, outer.extent), below));
      const bool reads_back = inside.tail == LayoutTail::pad && inside.place == below && inside.extent == blocks &&
                              outer.place == blocks * below;
      const bool outside = outer.space != inside.space && outer.space <= LayoutSpace::bank;
      if (reads_back && (outside || !is_rest)) {
        set(chain[0], str(name, '/', outer.extent));
        set(chain[1], std::string(1, lower(name[0])));
        return;
      }
    }
    if (is_rest) {
      set(chain[0], name);
    } else if (outer.extent >= 1 && outer.place == reach(chain, 1)) {
      set(chain[0], str(name, '/', outer.extent));
    }
  }
  void set(size_t digit, std::string text) {
    texts_[digit] = std::move(text);
    sized_[digit] = false;
  }

  // The sized digits whose place a parser would not find: it goes from right to left and skips those with a place.
  std::vector<bool> digits_to_place(int v) const {
    std::vector<bool> placed(digits_.size());
    for (bool again = true; again;) {
      again = false;
      int64_t next = 1;
      for (size_t j = digits_.size(); j-- > 0 && !again;) {
        if (digits_[j].variable != v || !sized_[j] || placed[j]) continue;
        for (size_t k = 0; k < digits_.size(); ++k) {
          const bool jump = placed[k] && digits_[k].place == next && digits_[k].extent > 1;
          if (!jump) continue;
          next *= digits_[k].extent;
          k = 0;
        }
        again = digits_[j].place != next;
        placed[j] = again;
        next *= digits_[j].extent;
      }
    }
    return placed;
  }

  void write_variable(int v) {
    const std::vector<size_t> chain = this->chain(v);
    if (chain.empty()) return;
    write_outer(v, chain);
    const std::vector<bool> placed = digits_to_place(v);
    for (const size_t j : chain) {
      if (!sized_[j]) continue;
      texts_[j] = str(digits_[j].extent, lower(data_.variable(v).name));
      if (placed[j]) texts_[j] += str('@', digits_[j].place);
      if (digits_[j].tail == LayoutTail::ragged) texts_[j] += '~';
      if (digits_[j].tail == LayoutTail::exact) texts_[j] += '!';
    }
  }

  // Separates a place from a number after it.
  static void append(std::string& out, const std::string& text) {
    const auto is_number = [](char c) { return c >= '0' && c <= '9'; };
    if (!out.empty() && is_number(out.back()) && is_number(text[0])) out += ' ';
    out += text;
  }
  std::string of_space(LayoutSpace space) const {
    std::string out;
    for (size_t j = 0; j < digits_.size(); ++j) {
      if (digits_[j].space == space) append(out, texts_[j]);
    }
    return out;
  }

  // The sized digits at the end are written in braces.
  void append_addresses(std::string& out) const {
    std::vector<size_t> addresses;
    for (size_t j = 0; j < digits_.size(); ++j) {
      if (digits_[j].space == LayoutSpace::address) addresses.push_back(j);
    }
    size_t inner = addresses.size();
    while (inner > 0 && sized_[addresses[inner - 1]]) --inner;
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (i == inner && i > 0) out += '{';
      append(out, texts_[addresses[i]]);
    }
    if (inner > 0 && inner < addresses.size()) out += '}';
  }

  std::string name_of(size_t j, bool address_only) const {
    const auto is_it = [&](const LayoutDigit& digit) {
      return digit.variable == digits_[j].variable && (!address_only || digit.space == LayoutSpace::address);
    };
    std::string out(1, data_.variable(digits_[j].variable).name);
    if (detail::find_digit(digits_, is_it, std::nullopt) != j) out += str('@', digits_[j].place);
    return out;
  }

  std::string strides() const {
    if (data_.ragged) return {};
    std::string out;
    int64_t running = 1;
    for (size_t j = digits_.size(); j-- > 0;) {
      const LayoutDigit& digit = digits_[j];
      if (digit.space != LayoutSpace::address) continue;
      if (digit.stride != running) out += str(";stride(", name_of(j, true), ")=", digit.stride * data_.lanes);
      running = std::max(running, digit.stride * std::max<int64_t>(1, digit.extent));
    }
    return out;
  }

  const LayoutData& data_;
  const std::vector<LayoutDigit>& digits_;
  std::vector<std::string> texts_;
  std::vector<bool> sized_;
  bool is_map_ = false;
};

std::string joined(const std::vector<Expr>& expressions) {
  std::string out;
  for (const Expr& e : expressions) out += str(out.empty() ? "" : ", ", e);
  return out;
}

std::string map_text(const LayoutData& data, const LayoutMap& map) {
  std::string out = "(";
  for (size_t d = 0; d < data.parts.dims.size(); ++d) out += str(d ? ", " : "", lower(data.parts.dims[d]));
  out += ") -> (";
  if (!map.devices.empty()) {
    out += str('[', joined(map.devices), " | ", joined(map.banks), "] ");
  } else if (!map.banks.empty()) {
    out += str('[', joined(map.banks), "] ");
  }
  out += joined(map.address);
  if (!map.lanes.empty()) out += str(" | ", joined(map.lanes));
  if (data.parts.word_bits != data.lanes * data.parts.element_bits) out += str(" : ", data.parts.word_bits);
  return out + ')';
}

}  // namespace

std::string Layout::to_string() const {
  Printer printer(*data_);
  if (!has_digits()) return map_text(*data_, data_->table->map) + printer.whole_keys();
  return printer.layout();
}

Result<std::string> Layout::to_map_string() const {
  if (!has_digits()) return to_string();
  if (data_->ragged) {
    return detail::layout_error("E_UNSUPPORTED", "the ragged layout ", to_string(), " has no coordinates with strides");
  }
  Printer printer(*data_);
  printer.set_map();
  const std::string text = map_text(*data_, map()) + printer.keys();
  TENON_TRY(read, parse(text, dims(), shape(), element_bits()), "reading back the long form of ", to_string());
  if (!read.same_function(*this)) {
    return detail::layout_error("E_UNSUPPORTED", "the long form ", text, " cannot say all that ", to_string(), " says");
  }
  return text;
}

}  // namespace tenon
