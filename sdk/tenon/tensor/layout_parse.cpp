#include <charconv>

#include <tenon/tensor/layout_internal.hpp>
#include <tenon/tensor/layout_text.hpp>

namespace tenon::detail {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<LayoutSpec> layout() {
    if (text_.size() > kMaxLayoutTextBytes) {
      return layout_error("E_SYNTAX", "a layout of ", text_.size(), " characters; the limit is ", kMaxLayoutTextBytes);
    }
    if (peek() == '(') {
      TENON_OK(map());
    } else {
      TENON_OK(digits());
    }
    while (accept(';')) TENON_OK(key());
    if (peek(), at_ < text_.size()) return unexpected("';' or the end");
    return std::move(spec_);
  }

 private:
  // The next character that is not a space, 0 at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) { return peek() == c && c ? (++at_, true) : false; }
  Error unexpected(std::string_view wanted) {
    const bool more = (peek(), at_ < text_.size());
    return layout_error("E_SYNTAX", "layout ", quote(text_), ", column ", at_ + 1, ": expected ", wanted, ", found ",
                        more ? quote(std::string_view(&text_[at_], 1)) : std::string("the end"));
  }
  Result<void> expect(char c) {
    if (!accept(c)) return unexpected(quote(std::string_view(&c, 1)));
    return {};
  }

  bool at_number() { return peek() >= '0' && peek() <= '9'; }
  Result<int64_t> number() {
    if (!at_number()) return unexpected("a number");
    int64_t value = 0;
    const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code != std::errc()) {
      return layout_error("E_BAD_EXTENT", "layout ", quote(text_), ", column ", at_ + 1, ": a number beyond 64 bits");
    }
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  Result<int64_t> positive() {
    const size_t column = (peek(), at_ + 1);
    TENON_TRY(value, number());
    if (value < 1) {
      return layout_error("E_BAD_EXTENT", "layout ", quote(text_), ", column ", column, ": ", value,
                          " where a number of at least 1 is needed");
    }
    return value;
  }
  Result<char> upper_name() {
    if (!is_upper(peek())) return unexpected("an upper-case dim");
    return text_[at_++];
  }

  Result<void> digit(LayoutSpace space) {
    SpecDigit digit;
    digit.space = space;
    if (peek() == '?') {
      return layout_error("E_BAD_EXTENT", "layout ", quote(text_), ", column ", at_ + 1,
                          ": '?' stands for an extent; bind it to a number first");
    }
    if (is_upper(peek())) {
      digit.name = text_[at_++];
      if (accept('/')) {
        if (peek() == '?') return this->digit(space);  // reports the error
        digit.form = SpecDigit::Form::blocks;
        TENON_TRY(blocks, positive());
        digit.extent = blocks;
      }
    } else if (is_lower(peek())) {
      digit.name = upper(text_[at_++]);
      digit.form = SpecDigit::Form::inside;
    } else if (at_number()) {
      TENON_TRY(extent, positive());
      if (!is_lower(peek())) return unexpected("a lower-case dim");
      digit.form = SpecDigit::Form::sized;
      digit.extent = extent;
      digit.name = upper(text_[at_++]);
      if (accept('@')) {
        TENON_TRY(place, positive());
        digit.place = place;
      }
      if (accept('~')) {
        digit.tail = LayoutTail::ragged;
      } else if (accept('!')) {
        digit.tail = LayoutTail::exact;
      }
    } else {
      return unexpected("a digit");
    }
    if (spec_.digits.size() == static_cast<size_t>(kMaxLayoutDigits)) {
      return layout_error("E_SYNTAX", "layout ", quote(text_), " has more than ", kMaxLayoutDigits, " digits");
    }
    spec_.digits.push_back(digit);
    return {};
  }
  bool at_digit() { return is_upper(peek()) || is_lower(peek()) || at_number() || peek() == '?'; }
  Result<void> some_digits(LayoutSpace space) {
    do {
      TENON_OK(digit(space));
    } while (at_digit());
    return {};
  }

  Result<void> digits() {
    if (accept('[')) {
      // These are devices only if a bar follows.
      while (at_digit()) TENON_OK(digit(LayoutSpace::bank));
      const bool first_empty = spec_.digits.empty();
      bool second_empty = first_empty;
      if (accept('|')) {
        for (SpecDigit& digit : spec_.digits) digit.space = LayoutSpace::device;
        second_empty = first_empty;
        if (first_empty || at_digit()) {
          TENON_OK(some_digits(LayoutSpace::bank));
          second_empty = false;
        }
      }
      if (second_empty) return unexpected("a digit");
      TENON_OK(expect(']'));
    }
    while (at_digit()) TENON_OK(digit(LayoutSpace::address));
    if (accept('{')) {
      TENON_OK(some_digits(LayoutSpace::address));
      TENON_OK(expect('}'));
    }
    if (accept('<')) {
      if (peek() != ':') TENON_OK(some_digits(LayoutSpace::lane));
      if (accept(':')) {
        TENON_TRY(bits, positive());
        spec_.word_bits = bits;
      }
      TENON_OK(expect('>'));
    }
    return {};
  }

  // Texts up to one of `ends` outside of brackets, split at commas.
  Result<std::vector<std::string>> expressions(std::string_view ends) {
    std::vector<std::string> out;
    int depth = 0;
    size_t from = (peek(), at_);
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && (c == ',' || ends.find(c) != std::string_view::npos)) {
        const std::string_view piece = trim(text_.substr(from, at_ - from));
        if (piece.empty() && (c == ',' || !out.empty())) return unexpected("an expression");
        if (!piece.empty()) out.emplace_back(piece);
        if (c != ',') return out;
        from = at_ + 1;
      } else if (c == '(') {
        ++depth;
      } else if (c == ')' && --depth < 0) {
        break;
      }
    }
    return unexpected(str("an expression and one of '", ends, "'"));
  }
  std::vector<std::string>& coordinates(LayoutSpace space) { return spec_.coordinates[static_cast<size_t>(space)]; }

  Result<void> map() {
    spec_.is_map = true;
    TENON_OK(expect('('));
    TENON_TRY(names, expressions(")"));
    TENON_OK(expect(')'));
    spec_.index_names = std::move(names);
    if (!accept('-')) return unexpected("'->'");
    TENON_OK(expect('>'));
    TENON_OK(expect('('));
    if (accept('[')) {
      TENON_TRY(first, expressions("|]"));
      if (accept('|')) {
        coordinates(LayoutSpace::device) = std::move(first);
        TENON_TRY(banks, expressions("]"));
        coordinates(LayoutSpace::bank) = std::move(banks);
      } else {
        coordinates(LayoutSpace::bank) = std::move(first);
      }
      TENON_OK(expect(']'));
      accept(',');
    }
    TENON_TRY(address, expressions("|:)"));
    coordinates(LayoutSpace::address) = std::move(address);
    if (accept('|')) {
      TENON_TRY(lanes, expressions(":)"));
      if (lanes.empty()) return unexpected("an expression");
      coordinates(LayoutSpace::lane) = std::move(lanes);
    }
    if (accept(':')) {
      TENON_TRY(bits, positive());
      spec_.word_bits = bits;
    }
    return expect(')');
  }

  Result<DigitName> digit_name() {
    DigitName out;
    TENON_TRY(name, upper_name());
    out.name = name;
    if (accept('@')) {
      TENON_TRY(place, positive());
      out.place = place;
    }
    return out;
  }
  Result<DigitName> digit_in_brackets() {
    TENON_OK(expect('('));
    TENON_TRY(name, digit_name());
    TENON_OK(expect(')'));
    TENON_OK(expect('='));
    return name;
  }
  Result<char> dim_in_brackets() {
    TENON_TRY(name, digit_in_brackets());
    if (name.place) {
      return layout_error("E_SYNTAX", "layout ", quote(text_), ": this key speaks of all of ", text_of(name.name),
                          "; '@' has no meaning here");
    }
    return name.name;
  }
  Result<int64_t> byte_count() {
    TENON_TRY(count, positive());
    if (!accept('B')) return unexpected("'B' (bytes)");
    return count;
  }
  std::string_view word() {
    const size_t from = (peek(), at_);
    while (at_ < text_.size() && is_lower(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }
  // Keys of the whole layout must not be repeated.
  Result<void> once(bool& seen, std::string_view name) {
    if (seen) return layout_error("E_SYNTAX", "layout ", quote(text_), " has two keys '", name, "'");
    seen = true;
    return expect('=');
  }

  Result<void> fill() {
    TENON_OK(once(fill_seen_, "fill"));
    if (is_lower(peek())) {
      if (word() != "undef") return unexpected("'undef' or a number");
      spec_.fill.reset();
      return {};
    }
    if (!at_number()) return unexpected("'undef' or a number");
    const bool hex = text_.substr(at_).starts_with("0x");
    if (hex) at_ += 2;
    uint64_t bits = 0;
    const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), bits, hex ? 16 : 10);
    if (code == std::errc::result_out_of_range) {
      return layout_error("E_BAD_EXTENT", "layout ", quote(text_), ": a fill of more than 64 bits");
    }
    if (code != std::errc()) return unexpected("hexadecimal digits");
    at_ = static_cast<size_t>(end - text_.data());
    spec_.fill = bits;
    return {};
  }

  Result<void> view() {
    TENON_OK(once(view_seen_, "view"));
    int64_t numbers[4] = {};
    for (int i = 0; i < 4; ++i) {
      if (i) TENON_OK(expect(','));
      TENON_TRY(value, number());
      numbers[i] = value;
    }
    spec_.view = LayoutView{numbers[0], numbers[1], numbers[2], numbers[3]};
    return {};
  }

  Result<void> key() {
    const size_t from = (peek(), at_);
    const std::string_view name = word();
    if (name == "stride") {
      TENON_TRY(of, digit_in_brackets());
      TENON_TRY(slots, number());
      spec_.strides.emplace_back(of, slots);
    } else if (name == "align") {
      TENON_TRY(of, digit_in_brackets());
      TENON_TRY(bytes, byte_count());
      spec_.aligns.emplace_back(of, bytes);
    } else if (name == "off") {
      TENON_TRY(of, dim_in_brackets());
      TENON_TRY(slots, number());
      spec_.offsets.emplace_back(of, slots);
    } else if (name == "fold") {
      TENON_TRY(of, dim_in_brackets());
      TENON_TRY(extent, positive());
      spec_.folds.emplace_back(of, extent);
    } else if (name == "fuse") {
      TENON_TRY(of, dim_in_brackets());
      std::string dims;
      while (is_upper(peek())) dims += text_[at_++];
      if (dims.empty()) return unexpected("the dims to fuse");
      spec_.fuses.emplace_back(of, dims);
    } else if (name == "xor") {
      TENON_TRY(of, digit_in_brackets());
      TENON_TRY(with, digit_name());
      spec_.xors.emplace_back(of, with);
    } else if (name == "size") {
      TENON_OK(once(size_seen_, name));
      TENON_TRY(bytes, byte_count());
      spec_.size_bytes = bytes;
    } else if (name == "lane") {
      TENON_OK(once(lane_seen_, name));
      const std::string_view order = word();
      if (order != "msb" && order != "lsb") return unexpected("'msb' or 'lsb'");
      spec_.lane_msb = order == "msb";
    } else if (name == "fill") {
      return fill();
    } else if (name == "view") {
      return view();
    } else {
      at_ = from;
      return unexpected("one of the keys stride, align, off, fold, fuse, xor, size, lane, fill, view");
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  LayoutSpec spec_;
  bool size_seen_ = false, lane_seen_ = false, fill_seen_ = false, view_seen_ = false;
};

}  // namespace

Result<LayoutSpec> parse_spec(std::string_view text) { return Parser(text).layout(); }

}  // namespace tenon::detail

namespace tenon {

Result<void> check_layout_text(std::string_view text) {
  TENON_OK(detail::parse_spec(text));
  return {};
}

}  // namespace tenon
