// Converts the text of a layout to digits over extents, which may be symbolic.
#include <algorithm>

#include <tenon/tensor/layout_internal.hpp>

namespace tenon::detail {
namespace {

Error unknown_dim(char name, std::string_view dims) {
  return layout_error("E_UNKNOWN_DIM", "'", text_of(name), "' is neither one of the dims ", quote(dims),
                      " nor fused from them");
}

int find(const ResolvedLayout& layout, char name) {
  for (size_t v = 0; v < layout.variables.size(); ++v) {
    if (layout.variables[v].name == name) return static_cast<int>(v);
  }
  return -1;
}

Result<std::vector<LayoutVariable>> fuse(const LayoutSpec& spec, std::string_view dims) {
  std::vector<bool> taken(dims.size());
  std::vector<LayoutVariable> out;
  for (const auto& [name, fused] : spec.fuses) {
    LayoutVariable variable{.name = name};
    for (const char dim : fused) {
      const size_t d = dims.find(dim);
      if (d == std::string_view::npos) return unknown_dim(dim, dims);
      if (taken[d]) return layout_error("E_DUP_DIM", "dim '", text_of(dim), "' is fused twice");
      taken[d] = true;
      variable.dims.push_back(static_cast<int>(d));
    }
    out.push_back(std::move(variable));
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!taken[d]) out.push_back({.name = dims[d], .dims = {static_cast<int>(d)}});
  }
  std::ranges::sort(out, {}, [](const LayoutVariable& v) { return *std::ranges::min_element(v.dims); });
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (out[i].name == out[k].name) {
        return layout_error("E_DUP_DIM", "fuse(", text_of(out[i].name), ") takes the name of another dim");
      }
    }
  }
  return out;
}

// Positions of the digits of one variable in the text.
struct Occurrences {
  std::vector<size_t> sized;  // right to left
  std::optional<size_t> outer, inside;
};

Result<Occurrences> occurrences_of(const LayoutSpec& spec, char name) {
  Occurrences out;
  for (size_t j = spec.digits.size(); j-- > 0;) {
    const SpecDigit& digit = spec.digits[j];
    if (digit.name != name) continue;
    if (digit.form == SpecDigit::Form::sized) {
      out.sized.push_back(j);
      continue;
    }
    std::optional<size_t>& place = digit.form == SpecDigit::Form::inside ? out.inside : out.outer;
    if (place) return layout_error("E_DUP_DIM", "dim '", text_of(name), "' stands twice in the layout");
    place = j;
  }
  if (out.sized.empty() && !out.outer) {
    return layout_error("E_MISSING_DIM", "dim '", text_of(name), "' does not stand in the layout",
                        out.inside ? ", only the inside of its blocks" : "");
  }
  if (out.inside && (!out.outer || spec.digits[*out.outer].form != SpecDigit::Form::blocks)) {
    const char inside = lower(name);
    return layout_error("E_MISSING_DIM", "'", text_of(inside), "' is the inside of blocks, but there is no '",
                        text_of(name), "/n'");
  }
  return out;
}

// Assigns places to sized digits without one, from the right, skipping those that have one.
Result<int64_t> set_places(const LayoutSpec& spec, const Occurrences& at, std::vector<int64_t>& places, char name) {
  int64_t next = 1;
  const auto grow = [&](int64_t extent) -> Result<void> {
    if (multiply(next, extent)) return {};
    return layout_error("E_BAD_EXTENT", "the digits of '", text_of(name), "' go beyond 2^62 values");
  };
  const auto jump = [&]() -> Result<void> {
    for (bool again = true; again;) {
      again = false;
      for (const size_t j : at.sized) {
        const SpecDigit& digit = spec.digits[j];
        if (digit.place != next || digit.extent == 1) continue;
        TENON_OK(grow(digit.extent));
        again = true;
      }
    }
    return {};
  };
  for (const size_t j : at.sized) {
    if (spec.digits[j].place) {
      places[j] = *spec.digits[j].place;
      continue;
    }
    TENON_OK(jump());
    places[j] = next;
    TENON_OK(grow(spec.digits[j].extent));
  }
  TENON_OK(jump());
  return next;
}

Result<void> resolve_variable(ResolvedLayout& out, const LayoutSpec& spec, size_t v, std::vector<int64_t>& places) {
  const char name = out.variables[v].name;
  TENON_TRY(at, occurrences_of(spec, name));
  TENON_TRY(inner, set_places(spec, at, places, name));
  const Expr& total = out.totals[v];
  for (const size_t j : at.sized) {
    const SpecDigit& digit = spec.digits[j];
    int64_t block = places[j];
    if (!multiply(block, digit.extent)) {
      return layout_error("E_BAD_EXTENT", "a digit of '", text_of(name), "' goes beyond 2^62 values");
    }
    const Expr rest = mod(total, block);
    if (digit.tail == LayoutTail::exact && rest.is_constant() && rest.constant() != 0) {
      return layout_error("E_NOT_DIVISIBLE", "the ", total, " values of '", text_of(name),
                          "' do not split exactly into blocks of ", block, ": ", rest, " are left");
    }
    out.digits[j].place = places[j];
    out.digits[j].extent = digit.extent;
    out.digits[j].tail = digit.tail;
  }
  if (!at.outer) return {};
  ResolvedDigit& outer = out.digits[*at.outer];
  if (spec.digits[*at.outer].form == SpecDigit::Form::rest) {
    outer.place = inner;
    outer.extent = ceildiv(total, inner);
    return {};
  }
  const int64_t blocks = spec.digits[*at.outer].extent;
  outer.place = inner;
  outer.extent = blocks;
  if (at.inside) {
    ResolvedDigit& inside = out.digits[*at.inside];
    inside.place = inner;
    inside.extent = max(ceildiv(ceildiv(total, blocks), inner), 1);
    outer.place = inside.extent * inner;
  }
  return {};
}

Result<std::optional<size_t>> target_of(const ResolvedLayout& layout, const DigitName& name, bool address_only,
                                        std::string_view key) {
  const int v = find(layout, name.name);
  const auto is_it = [&](const ResolvedDigit& digit) {
    return digit.variable == v && (!address_only || digit.space == LayoutSpace::address);
  };
  const auto found = v < 0 ? std::nullopt : find_digit(layout.digits, is_it, name.place);
  if (!found) {
    return layout_error("E_UNKNOWN_DIM", key, "(", text_of(name.name), name.place ? str("@", *name.place) : "",
                        "): the layout has no such ", address_only ? "address " : "", "digit");
  }
  return found;
}

// The number of words that a pitch must be a multiple of for this alignment.
Result<int64_t> words_of_alignment(int64_t bytes, const Expr& word_bits) {
  int64_t bits = bytes;
  if (!word_bits.is_constant() || !multiply(bits, 8)) {
    return layout_error("E_ALIGN", "an alignment to ", bytes, " bytes of words of ", word_bits, " bits");
  }
  if (bits % word_bits.constant() == 0) return bits / word_bits.constant();
  if (word_bits.constant() % bits == 0) return int64_t{1};
  return layout_error("E_ALIGN", "an alignment to ", bytes, " bytes is no whole number of words of ", word_bits,
                      " bits");
}

struct Pitch {
  std::optional<int64_t> words;
  int64_t align_words = 1;
  bool aligned = false;
};

Result<std::vector<Pitch>> pitches_of(const ResolvedLayout& layout, const LayoutSpec& spec, const Expr& word_bits) {
  std::vector<Pitch> out(layout.digits.size());
  for (const auto& [name, slots] : spec.strides) {
    TENON_TRY(j, target_of(layout, name, true, "stride"));
    if (out[*j].words) return layout_error("E_DUP_DIM", "two strides for one digit of '", text_of(name.name), "'");
    if (!layout.lanes.is_constant() || slots % layout.lanes.constant() != 0) {
      return layout_error("E_ALIGN", "stride(", text_of(name.name), ")=", slots, " is no whole number of words of ",
                          layout.lanes, " slots");
    }
    out[*j].words = slots / layout.lanes.constant();
  }
  for (const auto& [name, bytes] : spec.aligns) {
    TENON_TRY(j, target_of(layout, name, true, "align"));
    if (out[*j].aligned) return layout_error("E_DUP_DIM", "two alignments of one digit of '", text_of(name.name), "'");
    TENON_TRY(words, words_of_alignment(bytes, word_bits));
    out[*j].aligned = true;
    out[*j].align_words = words;
    if (out[*j].words && *out[*j].words % words != 0) {
      return layout_error("E_ALIGN", "stride(", text_of(name.name), ") of ", *out[*j].words,
                          " words does not keep the alignment to ", bytes, " bytes (", words, " words)");
    }
  }
  return out;
}

}  // namespace

Result<void> check_dims(std::string_view dims, size_t rank, int64_t element_bits) {
  if (dims.size() != rank) {
    return layout_error("E_RANK", "dims ", quote(dims), " name ", dims.size(), " dims, the shape has ", rank);
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!is_upper(dims[i])) {
      return layout_error("E_SYNTAX", "dims ", quote(dims), ": a dim is one upper-case letter");
    }
    if (dims.find(dims[i]) != i) return layout_error("E_DUP_DIM", "dims ", quote(dims), " name one dim twice");
  }
  if (element_bits < 1 || element_bits > kMaxElementBits) {
    return layout_error("E_BAD_EXTENT", "elements of ", element_bits, " bits; there are 1 to ", kMaxElementBits);
  }
  return {};
}

void set_totals(ResolvedLayout& layout, const std::vector<Expr>& shape) {
  for (const LayoutVariable& variable : layout.variables) {
    Expr extent = 1;
    for (const int d : variable.dims) extent *= shape[static_cast<size_t>(d)];
    layout.extents.push_back(extent);
    layout.totals.push_back(variable.fold ? Expr(variable.fold) : extent + variable.offset);
  }
}

Result<ResolvedLayout> resolve_variables(const LayoutSpec& spec, std::string_view dims,
                                         const std::vector<Expr>& shape) {
  ResolvedLayout out;
  TENON_TRY(variables, fuse(spec, dims));
  out.variables = std::move(variables);
  for (const auto& [name, offset] : spec.offsets) {
    const int v = find(out, name);
    if (v < 0) return unknown_dim(name, dims);
    if (std::exchange(out.variables[static_cast<size_t>(v)].offset, offset) != 0) {
      return layout_error("E_DUP_DIM", "two keys off(", text_of(name), ")");
    }
  }
  for (const auto& [name, fold] : spec.folds) {
    const int v = find(out, name);
    if (v < 0) return unknown_dim(name, dims);
    if (std::exchange(out.variables[static_cast<size_t>(v)].fold, fold) != 0) {
      return layout_error("E_DUP_DIM", "two keys fold(", text_of(name), ")");
    }
  }
  set_totals(out, shape);
  return out;
}

Result<ResolvedLayout> resolve(const LayoutSpec& spec, std::string_view dims, const std::vector<Expr>& shape) {
  TENON_TRY(out, resolve_variables(spec, dims, shape));
  for (const SpecDigit& digit : spec.digits) {
    const int v = find(out, digit.name);
    if (v < 0) return unknown_dim(digit.name, dims);
    out.digits.push_back({.variable = v, .space = digit.space});
  }
  std::vector<int64_t> places(spec.digits.size(), 1);
  for (size_t v = 0; v < out.variables.size(); ++v) TENON_OK(resolve_variable(out, spec, v, places));
  return out;
}

Result<void> set_strides(ResolvedLayout& layout, const LayoutSpec& spec, int64_t element_bits) {
  Expr running[4] = {1, 1, 1, 1};
  const auto is_address = [](const ResolvedDigit& digit) { return digit.space == LayoutSpace::address; };
  for (size_t j = layout.digits.size(); j-- > 0;) {
    ResolvedDigit& digit = layout.digits[j];
    if (is_address(digit)) continue;
    Expr& count = running[static_cast<size_t>(digit.space)];
    digit.stride = count;
    count *= digit.extent;
  }
  layout.devices = running[static_cast<size_t>(LayoutSpace::device)];
  layout.banks = running[static_cast<size_t>(LayoutSpace::bank)];
  layout.lanes = running[static_cast<size_t>(LayoutSpace::lane)];
  const bool ragged =
      std::ranges::any_of(layout.digits, [](const ResolvedDigit& d) { return d.tail == LayoutTail::ragged; });
  if (ragged && !(spec.strides.empty() && spec.aligns.empty())) {
    return layout_error("E_UNSUPPORTED", "a ragged layout has no strides, so stride() and align() say nothing");
  }
  TENON_TRY(pitches, pitches_of(layout, spec, spec.word_bits ? Expr(spec.word_bits) : layout.lanes * element_bits));
  Expr words = 1;
  for (size_t j = layout.digits.size(); j-- > 0;) {
    ResolvedDigit& digit = layout.digits[j];
    if (!is_address(digit)) continue;
    const Pitch& pitch = pitches[j];
    digit.stride = pitch.words ? Expr(*pitch.words) : ceildiv(words, pitch.align_words) * pitch.align_words;
    // An empty digit takes as much room as one value, so that strides remain positive.
    const Expr end = digit.stride * (digit.extent.is_constant(0) ? Expr(1) : digit.extent);
    words = pitch.words ? max(words, end) : end;
  }
  layout.words = words;
  return {};
}

Result<void> set_xors(ResolvedLayout& layout, const LayoutSpec& spec) {
  for (const auto& [target, with] : spec.xors) {
    TENON_TRY(j, target_of(layout, target, false, "xor"));
    const int v = find(layout, with.name);
    if (v < 0) {
      return layout_error("E_UNKNOWN_DIM", "xor(", text_of(target.name), ")=", text_of(with.name),
                          ": there is no such dim");
    }
    if (layout.digits[*j].xor_variable >= 0) {
      return layout_error("E_DUP_DIM", "two keys xor for one digit of '", text_of(target.name), "'");
    }
    layout.digits[*j].xor_variable = v;
    layout.digits[*j].xor_place = with.place.value_or(1);
  }
  return {};
}

Result<Layout::Parts> parts_of(const ResolvedLayout& layout, const LayoutSpec& spec, std::string_view dims,
                               const Dims& shape, int64_t element_bits) {
  Layout::Parts parts;
  parts.dims = dims;
  parts.shape = shape;
  parts.element_bits = element_bits;
  parts.variables = layout.variables;
  parts.pitched = true;
  parts.word_bits = spec.word_bits;
  parts.lane_msb = spec.lane_msb;
  parts.size_bytes = spec.size_bytes;
  parts.fill = spec.fill;
  parts.view = spec.view;
  for (const ResolvedDigit& digit : layout.digits) {
    if (!digit.place.is_constant() || !digit.extent.is_constant() || !digit.stride.is_constant()) {
      return layout_error("E_BAD_EXTENT", "the layout goes beyond 2^62 slots");
    }
    parts.digits.push_back({.variable = digit.variable,
                            .place = digit.place.constant(),
                            .extent = digit.extent.constant(),
                            .space = digit.space,
                            .tail = digit.tail,
                            .stride = digit.stride.constant(),
                            .xor_variable = digit.xor_variable,
                            .xor_place = digit.xor_place});
  }
  return parts;
}

}  // namespace tenon::detail

namespace tenon {

Result<Layout> Layout::parse(std::string_view text, std::string_view dims, const Dims& shape, int64_t element_bits) {
  TENON_TRY(spec, detail::parse_spec(text));
  TENON_OK(detail::check_dims(dims, shape.size(), element_bits));
  for (const int64_t extent : shape) {
    if (extent < 0) return detail::layout_error("E_BAD_EXTENT", "a shape of ", shape, " with an extent below 0");
  }
  if (spec.is_map) return detail::layout_of_map_text(spec, dims, shape, element_bits);
  TENON_TRY(resolved, detail::resolve(spec, dims, std::vector<Expr>(shape.begin(), shape.end())));
  TENON_OK(detail::set_strides(resolved, spec, element_bits));
  TENON_OK(detail::set_xors(resolved, spec));
  TENON_TRY(parts, detail::parts_of(resolved, spec, dims, shape, element_bits));
  return make(std::move(parts));
}

Result<Layout> Layout::row_major(const Dims& shape, int64_t element_bits) {
  if (shape.size() > detail::kMaxLayoutRank) {
    return detail::layout_error("E_RANK", "a shape of rank ", shape.size(), "; dims have names up to rank ",
                                detail::kMaxLayoutRank);
  }
  std::string dims;
  for (size_t d = 0; d < shape.size(); ++d) dims += static_cast<char>('A' + d);
  return parse(dims, dims, shape, element_bits);
}

Result<std::string> bind_layout_text(std::string_view text, std::span<const int64_t> sizes) {
  std::string out;
  size_t used = 0;
  for (const char c : text) {
    if (c != '?') {
      out += c;
    } else if (used++ < sizes.size()) {
      append_text(out, sizes[used - 1]);
    }
  }
  if (used != sizes.size()) {
    return detail::layout_error("E_BAD_EXTENT", "layout ", quote(text), " has ", used, " '?', ", sizes.size(),
                                " numbers are given");
  }
  return out;
}

}  // namespace tenon
