// Layouts over symbolic extents.
#include <algorithm>

#include <tenon/tensor/layout_internal.hpp>

namespace tenon {

using detail::layout_error;

namespace {

// T_v in a ragged layout: whole blocks of the splits that are not ragged.
std::vector<Expr> ragged_totals(const detail::ResolvedLayout& layout) {
  std::vector<Expr> out = layout.totals;
  for (size_t v = 0; v < out.size(); ++v) {
    Expr whole = 1;
    for (const detail::ResolvedDigit& digit : layout.digits) {
      // An extent that depends on a symbol belongs to the outermost digit.
      if (digit.variable != static_cast<int>(v) || digit.tail == LayoutTail::ragged || !digit.extent.is_constant() ||
          !digit.place.is_constant() || digit.place * digit.extent == layout.totals[v]) {
        continue;
      }
      whole = max(whole, digit.place * digit.extent);
    }
    out[v] = ceildiv(out[v], whole) * whole;
  }
  return out;
}

}  // namespace

Result<SymbolicLayout> SymbolicLayout::parse(std::string_view text, std::string_view dims,
                                             const std::vector<Expr>& shape, int64_t element_bits,
                                             std::span<const int64_t> sizes) {
  TENON_TRY(bound, bind_layout_text(text, sizes));
  TENON_TRY(spec, detail::parse_spec(bound));
  TENON_OK(detail::check_dims(dims, shape.size(), element_bits));
  if (spec.is_map || !spec.xors.empty() || spec.view) {
    return layout_error("E_UNSUPPORTED", "layout ", quote(text),
                        " of a symbolic shape: maps, swizzles and views need numbers");
  }
  TENON_TRY(layout, detail::resolve(spec, dims, shape));
  TENON_OK(detail::set_strides(layout, spec, element_bits));
  SymbolicLayout out;
  out.text_ = bound;
  out.dims_ = dims;
  out.shape_ = shape;
  out.element_bits_ = element_bits;
  std::vector<Expr> z;
  for (const LayoutVariable& variable : layout.variables) {
    Expr x = 0;
    for (const int d : variable.dims) {
      const char symbol = detail::lower(dims[static_cast<size_t>(d)]);
      x = x * shape[static_cast<size_t>(d)] + Expr::symbol({&symbol, 1});
    }
    x += variable.offset;
    z.push_back(variable.fold ? mod(x, variable.fold) : x);
  }
  const bool ragged = std::ranges::any_of(layout.digits, [](const auto& d) { return d.tail == LayoutTail::ragged; });
  std::vector<detail::RankedDigit> ranked;
  for (const detail::ResolvedDigit& digit : layout.digits) {
    const auto v = static_cast<size_t>(digit.variable);
    const bool whole = digit.extent == ceildiv(layout.totals[v], digit.place);
    const Expr quotient = floordiv(z[v], digit.place);
    const Expr q = whole ? quotient : mod(quotient, digit.extent);
    Expr& number = digit.space == LayoutSpace::address ? out.word_
                   : digit.space == LayoutSpace::lane  ? out.lane_
                                                       : out.bank_;
    number += q * (digit.space == LayoutSpace::device ? digit.stride * layout.banks : digit.stride);
    if (!(digit.extent == 1)) ranked.push_back({digit.variable, digit.place, q});
  }
  out.words_per_bank_ = layout.words;
  out.banks_ = layout.banks * layout.devices;
  if (ragged) {
    const std::vector<Expr> totals = ragged_totals(layout);
    out.word_ = detail::rank_expr(ranked, totals, z);
    out.words_per_bank_ = product(totals);
  }
  return out;
}

Result<Layout> SymbolicLayout::bind(const SymbolValues& values) const {
  Dims shape;
  for (const Expr& extent : shape_) {
    TENON_TRY(value, extent.evaluate(values), "an extent of layout ", text_);
    shape.push_back(value);
  }
  return Layout::parse(text_, dims_, shape, element_bits_);
}

}  // namespace tenon
