// Index maps: coordinates from digits, and digits from coordinates.
#include <algorithm>

#include <tenon/expr/text.hpp>
#include <tenon/tensor/layout_internal.hpp>

namespace tenon {

using detail::layout_error;
using detail::LayoutData;

namespace detail {

Error map_arity_error(size_t parameters, size_t rank) {
  return layout_error("E_RANK", "the map has ", parameters, " parameters, the shape has rank ", rank);
}

const std::vector<Expr>& coordinates_of(const LayoutMap& map, size_t space) {
  const std::vector<Expr>* const kSpaces[] = {&map.devices, &map.banks, &map.address, &map.lanes};
  return *kSpaces[space];
}

Expr variable_expr(const LayoutData& data, int v) {
  const LayoutVariable& variable = data.variable(v);
  Expr x = 0;
  for (const int d : variable.dims) {
    const char symbol = lower(data.parts.dims[static_cast<size_t>(d)]);
    x = x * data.parts.shape[static_cast<size_t>(d)] + Expr::symbol({&symbol, 1});
  }
  return x + variable.offset;
}

Expr digit_expr(const LayoutData& data, const LayoutDigit& digit) {
  const Expr q = floordiv(variable_expr(data, digit.variable), digit.place);
  const int64_t total = data.total[static_cast<size_t>(digit.variable)];
  return digit.extent == ceil_div(total, digit.place) ? q : mod(q, digit.extent);
}

Expr rank_expr(const std::vector<RankedDigit>& digits, const std::vector<Expr>& totals, const std::vector<Expr>& z) {
  std::vector<Expr> rest = totals;
  Expr rank = 0;
  for (const RankedDigit& digit : digits) {
    const auto v = static_cast<size_t>(digit.variable);
    Expr term = digit.value * min(digit.place, totals[v]);
    for (size_t u = 0; u < rest.size(); ++u) {
      if (u != v) term *= rest[u];
    }
    rank += term;
    rest[v] = min(digit.place, totals[v] - floordiv(z[v], digit.place) * digit.place);
  }
  return rank;
}

namespace {

Expr folded_expr(const LayoutData& data, int v) {
  const int64_t fold = data.variable(v).fold;
  return fold ? mod(variable_expr(data, v), fold) : variable_expr(data, v);
}

// q xor (floor(z / place) mod extent), bit by bit.
Expr swizzled_expr(const LayoutData& data, const LayoutDigit& digit) {
  const Expr z = floordiv(folded_expr(data, digit.variable), digit.place);
  const bool reduced = digit.place * digit.extent >= data.total[static_cast<size_t>(digit.variable)];
  const Expr q = reduced ? z : mod(z, digit.extent);
  if (digit.xor_variable < 0) return q;
  const Expr with = floordiv(folded_expr(data, digit.xor_variable), digit.xor_place);
  Expr out = 0;
  for (int64_t bit = 1; bit < digit.extent; bit *= 2) {
    out += mod(floordiv(q, bit) + floordiv(with, bit), 2) * bit;
  }
  return out;
}

Expr number_expr(const LayoutData& data, LayoutSpace from, LayoutSpace to) {
  Expr out = 0;
  for (size_t j = 0; j < data.parts.digits.size(); ++j) {
    const LayoutDigit& digit = data.parts.digits[j];
    if (digit.space >= from && digit.space <= to) out += swizzled_expr(data, digit) * data.weight[j];
  }
  if (data.table) {
    for (auto s = static_cast<size_t>(from); s <= static_cast<size_t>(to); ++s) {
      const auto& coordinates = coordinates_of(data.table->map, s);
      for (size_t i = 0; i < coordinates.size(); ++i) out += coordinates[i] * data.table->strides[s][i];
    }
  }
  return out;
}

// A digit in a coordinate: floor(base / place) mod extent, extent 0 for "no mod"; `base` is linear.
struct Atom {
  Expr base;
  int64_t place = 1, extent = 0;
};

std::optional<int64_t> constant_operand(const Expr& e) {
  const Expr& divisor = e.operands()[1];
  if (!divisor.is_constant() || divisor.constant() < 1) return std::nullopt;
  return divisor.constant();
}

// `depth`: of nested divisions; digits have fewer than one for each bit of a place.
std::optional<Atom> atom_of(const Expr& e, int depth = 0) {
  if (e.is_symbol() || e.kind() == ExprKind::sum) return Atom{e};
  if (e.kind() != ExprKind::mod && e.kind() != ExprKind::floordiv) return std::nullopt;
  const auto by = constant_operand(e);
  if (!by || depth > 64) return std::nullopt;
  auto atom = atom_of(e.operands()[0], depth + 1);
  if (!atom) return std::nullopt;
  if (e.kind() == ExprKind::mod) {
    if (atom->extent && atom->extent % *by != 0) return std::nullopt;
    atom->extent = *by;
    return atom;
  }
  if (atom->extent && atom->extent % *by != 0) return std::nullopt;
  atom->extent /= *by;
  if (!multiply(atom->place, *by)) return std::nullopt;
  return atom;
}

// The coordinate as a sum of coefficient * atom. One symbol with a constant is an atom: an offset.
std::optional<std::vector<std::pair<int64_t, Atom>>> atoms_of(const Expr& e) {
  std::vector<std::pair<int64_t, Atom>> out;
  if (e.is_constant()) return e.constant() == 0 ? std::optional(out) : std::nullopt;
  const bool offset =
      e.kind() == ExprKind::sum && e.operands().size() == 1 && e.operands()[0].is_symbol() && e.numbers()[0] == 1;
  if (e.kind() != ExprKind::sum || offset) {
    auto atom = atom_of(e);
    if (!atom) return std::nullopt;
    out.emplace_back(1, *atom);
    return out;
  }
  if (e.numbers().back() != 0) return std::nullopt;
  for (size_t i = 0; i < e.operands().size(); ++i) {
    auto atom = atom_of(e.operands()[i]);
    if (!atom || e.numbers()[i] < 1) return std::nullopt;
    out.emplace_back(e.numbers()[i], *atom);
  }
  std::ranges::sort(out, std::greater(), [](const auto& term) { return term.first; });
  return out;
}

// Finds digits in the coordinates of a map.
class Matcher {
 public:
  Matcher(std::string_view dims, const Dims& shape, const LayoutSpec& spec) : dims_(dims), shape_(shape), spec_(spec) {}

  // Nothing when the map does not consist of digits.
  std::optional<ResolvedLayout> match(const LayoutMap& map) {
    std::vector<std::vector<std::vector<std::pair<int64_t, Atom>>>> spaces(4);
    for (size_t s = 0; s < 4; ++s) {
      for (const Expr& coordinate : coordinates_of(map, s)) {
        auto atoms = atoms_of(coordinate);
        if (!atoms) return std::nullopt;
        for (const auto& [coefficient, atom] : *atoms) {
          if (!add_variable(atom.base)) return std::nullopt;
        }
        spaces[s].push_back(*std::move(atoms));
      }
    }
    if (!finish_variables()) return std::nullopt;
    for (size_t s = 0; s < 4; ++s) {
      if (!add_digits(spaces[s], static_cast<LayoutSpace>(s))) return std::nullopt;
    }
    return std::move(out_);
  }

 private:
  // `base` is a symbol, symbol + offset, or the row-major index of several + offset.
  bool add_variable(const Expr& base) {
    if (std::ranges::find(bases_, base) != bases_.end()) return true;
    std::vector<std::pair<int64_t, int>> terms;
    LayoutVariable variable;
    const auto dim_of = [&](const Expr& symbol) { return static_cast<int>(dims_.find(upper(symbol.name()[0]))); };
    if (base.is_symbol()) {
      terms.emplace_back(1, dim_of(base));
    } else {
      variable.offset = base.numbers().back();
      for (size_t i = 0; i < base.operands().size(); ++i) {
        if (!base.operands()[i].is_symbol()) return false;
        terms.emplace_back(base.numbers()[i], dim_of(base.operands()[i]));
      }
    }
    if (variable.offset < 0) return false;
    std::ranges::stable_sort(terms, std::greater(), [](const auto& term) { return term.first; });
    int64_t mixed = 1;
    for (size_t i = terms.size(); i-- > 0;) {
      if (terms[i].first != mixed || !multiply(mixed, shape_[static_cast<size_t>(terms[i].second)])) return false;
    }
    for (const auto& [coefficient, d] : terms) variable.dims.push_back(d);
    bases_.push_back(base);
    out_.variables.push_back(std::move(variable));
    return true;
  }

  bool finish_variables() {
    std::vector<bool> seen(dims_.size());
    std::string names(dims_);
    for (LayoutVariable& variable : out_.variables) {
      for (const int d : variable.dims) {
        if (seen[static_cast<size_t>(d)]) return false;
        seen[static_cast<size_t>(d)] = true;
      }
      variable.name =
          variable.dims.size() == 1 ? dims_[static_cast<size_t>(variable.dims[0])] : fused_name(variable, names);
      if (!variable.name) return false;
      for (const auto& [name, fold] : spec_.folds) {
        if (name == variable.name) variable.fold = fold;
      }
    }
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (seen[d]) continue;
      out_.variables.push_back({.name = dims_[d], .dims = {static_cast<int>(d)}});
      bases_.emplace_back(0);
    }
    set_totals(out_, {shape_.begin(), shape_.end()});
    return true;
  }

  // The name that a fuse key gives to these dims, else an unused letter.
  char fused_name(const LayoutVariable& variable, std::string& taken) const {
    std::string fused;
    for (const int d : variable.dims) fused += dims_[static_cast<size_t>(d)];
    for (const auto& [name, dims] : spec_.fuses) {
      if (dims == fused) return name;
    }
    for (const char name : std::string_view("PQRSTUVWXYZABCDEFGHIJKLMNO")) {
      if (taken.find(name) != std::string::npos) continue;
      taken += name;
      return name;
    }
    return 0;
  }

  bool add_digits(const std::vector<std::vector<std::pair<int64_t, Atom>>>& coordinates, LayoutSpace space) {
    const size_t first = out_.digits.size();
    for (const auto& atoms : coordinates) {
      for (const auto& [coefficient, atom] : atoms) {
        const auto v = static_cast<size_t>(std::ranges::find(bases_, atom.base) - bases_.begin());
        const Expr extent = atom.extent ? Expr(atom.extent) : ceildiv(out_.totals[v], atom.place);
        out_.digits.push_back({.variable = static_cast<int>(v),
                               .place = atom.place,
                               .extent = extent,
                               .stride = coefficient,
                               .space = space});
      }
    }
    // Strides: that of the coordinate times the coefficient in it.
    Expr running = 1;
    size_t end = out_.digits.size();
    for (size_t i = coordinates.size(); i-- > 0;) {
      Expr width = 1;
      for (size_t k = 0; k < coordinates[i].size(); ++k) {
        ResolvedDigit& digit = out_.digits[--end];
        width = max(width, digit.stride * max(digit.extent, 1));
        digit.stride *= running;
      }
      running *= width;
    }
    return end == first && running.is_constant();
  }

  std::string_view dims_;
  const Dims& shape_;
  const LayoutSpec& spec_;
  ResolvedLayout out_;
  std::vector<Expr> bases_;  // one per variable
};

// The layout in digits, or nothing if the map has none; an error if the keys or the word contradict them.
Result<std::optional<Layout>> digits_of_map(std::string_view dims, const Dims& shape, int64_t element_bits,
                                            const LayoutMap& map, const LayoutSpec& spec) {
  auto matched = Matcher(dims, shape, spec).match(map);
  if (!matched || matched->digits.size() > static_cast<size_t>(kMaxLayoutDigits)) return std::optional<Layout>();
  const std::vector<ResolvedDigit> given = matched->digits;
  TENON_OK(set_strides(*matched, spec, element_bits));
  const bool pitches = !spec.strides.empty() || !spec.aligns.empty();
  for (size_t j = 0; j < given.size(); ++j) {
    if (given[j].space == LayoutSpace::address && !pitches) {
      matched->digits[j].stride = given[j].stride;
    } else if (given[j].space != LayoutSpace::address && !(matched->digits[j].stride == given[j].stride)) {
      return std::optional<Layout>();
    }
  }
  TENON_OK(set_xors(*matched, spec));
  auto parts = parts_of(*matched, spec, dims, shape, element_bits);
  if (!parts.ok()) return std::optional<Layout>();
  auto layout = Layout::make(*std::move(parts));
  if (layout.ok()) return std::optional<Layout>(*std::move(layout));
  for (const std::string_view code : {"E_MISSING_DIM", "E_BAD_EXTENT", "E_NOT_INVERTIBLE"}) {
    if (layout_error_code(layout.error()) == code) return std::optional<Layout>();
  }
  return std::move(layout).error();
}

}  // namespace

Result<Layout> layout_of_map(std::string_view dims, const Dims& shape, int64_t element_bits, const LayoutMap& map,
                             const LayoutSpec& spec) {
  std::string symbols;
  for (const char name : dims) symbols += lower(name);
  for (size_t s = 0; s < 4; ++s) {
    for (const Expr& coordinate : coordinates_of(map, s)) {
      for (const std::string& symbol : coordinate.symbols()) {
        if (symbol.size() == 1 && symbols.find(symbol) != std::string::npos) continue;
        return layout_error("E_UNKNOWN_DIM", "the coordinate ", coordinate, " speaks of '", symbol,
                            "', which is no dim");
      }
    }
  }
  TENON_TRY(digits, digits_of_map(dims, shape, element_bits, map, spec));
  if (digits) return *std::move(digits);
  return table_of_map(dims, shape, element_bits, map, spec);
}

Result<Layout> layout_of_map_text(const LayoutSpec& spec, std::string_view dims, const Dims& shape,
                                  int64_t element_bits) {
  if (spec.index_names.size() != dims.size()) {
    return layout_error("E_RANK", "the map has ", spec.index_names.size(), " indices, the shape has ", dims.size());
  }
  if (!spec.offsets.empty()) {
    return layout_error("E_SYNTAX", "an offset is part of the expression in a map: write (x + 1), not off(X)=1");
  }
  // Names may coincide with those of other dims, so all are changed at once.
  Substitution names;
  for (size_t d = 0; d < dims.size(); ++d) {
    TENON_TRY(name, [&]() -> Result<Expr> {
      auto symbol = parse_expr(spec.index_names[d]);
      if (symbol.ok() && symbol->is_symbol()) return symbol;
      return layout_error("E_SYNTAX", quote(spec.index_names[d]), " is no name of an index");
    }());
    const char to = lower(dims[d]);
    if (!names.emplace(name.name(), Expr::symbol({&to, 1})).second) {
      return layout_error("E_DUP_DIM", "two indices are named ", quote(spec.index_names[d]));
    }
  }
  LayoutMap map;
  map.word_bits = spec.word_bits;
  std::vector<Expr>* const kSpaces[] = {&map.devices, &map.banks, &map.address, &map.lanes};
  for (size_t s = 0; s < 4; ++s) {
    for (const std::string& text : spec.coordinates[s]) {
      auto parsed = parse_expr(text);
      if (!parsed.ok()) return layout_error("E_SYNTAX", "coordinate ", quote(text), ": ", parsed.error().message());
      for (const std::string& symbol : parsed->symbols()) {
        if (!names.contains(symbol)) {
          return layout_error("E_UNKNOWN_DIM", "coordinate ", quote(text), " speaks of '", symbol,
                              "', which is no index of the map");
        }
      }
      kSpaces[s]->push_back(parsed->substitute(names));
    }
  }
  return layout_of_map(dims, shape, element_bits, map, spec);
}

}  // namespace detail

Result<Layout> Layout::from_function(std::string_view dims, const Dims& shape, int64_t element_bits,
                                     const MapFunction& map) {
  TENON_OK(detail::check_dims(dims, shape.size(), element_bits));
  for (const int64_t extent : shape) {
    if (extent < 0) return layout_error("E_BAD_EXTENT", "a shape of ", shape, " with an extent below 0");
  }
  std::vector<Expr> index;
  for (const char dim : dims) {
    const char symbol = detail::lower(dim);
    index.push_back(Expr::symbol({&symbol, 1}));
  }
  const LayoutMap coordinates = map(index);
  detail::LayoutSpec spec;
  spec.word_bits = coordinates.word_bits;
  return detail::layout_of_map(dims, shape, element_bits, coordinates, spec);
}

LayoutMap Layout::map() const {
  if (data_->table) return data_->table->map;
  LayoutMap out;
  std::vector<Expr>* const kSpaces[] = {&out.devices, &out.banks, &out.address, &out.lanes};
  for (const LayoutDigit& digit : data_->parts.digits) {
    kSpaces[static_cast<size_t>(digit.space)]->push_back(detail::digit_expr(*data_, digit));
  }
  out.word_bits = data_->parts.word_bits;
  return out;
}

Expr Layout::bank_expr() const {
  return detail::number_expr(*data_, LayoutSpace::device, LayoutSpace::bank) + data_->base_bank;
}
Expr Layout::word_expr() const {
  if (!data_->ragged) {
    return detail::number_expr(*data_, LayoutSpace::address, LayoutSpace::address) + data_->base_word;
  }
  std::vector<detail::RankedDigit> digits;
  for (const LayoutDigit& digit : data_->parts.digits) {
    if (digit.extent > 1) digits.push_back({digit.variable, digit.place, detail::swizzled_expr(*data_, digit)});
  }
  std::vector<Expr> z;
  for (size_t v = 0; v < data_->total.size(); ++v) z.push_back(detail::folded_expr(*data_, static_cast<int>(v)));
  return detail::rank_expr(digits, {data_->padded.begin(), data_->padded.end()}, z) + data_->base_word;
}
Expr Layout::lane_expr() const { return detail::number_expr(*data_, LayoutSpace::lane, LayoutSpace::lane); }

}  // namespace tenon
