#include <tenon/passes/layout_table.hpp>

#include <algorithm>

#include <tenon/ir/value_layout.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

// Extents that no common block size divides.
constexpr int64_t kAssumed[] = {31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97};

bool same(const Layout& a, const Layout& b) { return a.fill() == b.fill() && a.same_sizes(b) && a.same_function(b); }

// Whether it is only a permutation of the dims, and therefore never padded.
bool is_order(const Layout& layout) {
  if (!layout.has_digits() || layout.padding() > 0 || layout.digits().size() != layout.shape().size()) return false;
  return std::ranges::all_of(layout.variables(), [](const LayoutVariable& variable) {
    return variable.dims.size() == 1 && variable.offset == 0 && variable.fold == 0;
  });
}

}  // namespace

LayoutTable::LayoutTable(BandwidthTable bandwidth) : bandwidth_(std::move(bandwidth)) {
  types_.push_back({{}, 1, false, {{"", "", Layout()}}, {{{"", ""}, kRowMajor}}});
}

std::optional<Dims> LayoutTable::assumed_dims(const Shape& shape) {
  Dims dims;
  for (size_t d = 0; d < shape.dims().size(); ++d) {
    if (!shape[d].known()) {
      dims.push_back(kAssumed[d % std::size(kAssumed)]);
      continue;
    }
    for (const std::string& symbol : shape[d].expr().symbols()) {
      symbols_.try_emplace(symbol, kAssumed[symbols_.size() % std::size(kAssumed)]);
    }
    const auto extent = shape[d].expr().evaluate(symbols_);
    if (!extent.ok() || *extent < 1) return std::nullopt;
    dims.push_back(*extent);
  }
  return dims;
}

size_t LayoutTable::type_of(const Type& type) {
  if (!type.is_tensor() || !type.element().valid() || type.element().is_string() || !type.shape().ranked()) {
    return kOpaque;
  }
  const auto [found, added] = by_type_.try_emplace({type.shape().to_string(), type.element().bits()}, types_.size());
  if (!added) return found->second;
  auto dims = assumed_dims(type.shape());
  if (!dims || dims->empty()) return found->second = kOpaque;
  auto row_major = Layout::row_major(*dims, type.element().bits());
  if (!row_major.ok()) return found->second = kOpaque;  // too large for one buffer
  types_.push_back(
      {*std::move(dims), type.element().bits(), !type.shape().is_static(), {{"", "", *std::move(row_major)}}, {}});
  return found->second;
}

Result<size_t> LayoutTable::add(size_t type, std::string_view text, std::string_view dims) {
  if (text.empty()) return kRowMajor;
  TypeEntry& entry = types_[type];
  const std::pair<std::string, std::string> key{text, dims};
  if (const auto found = entry.by_text.find(key); found != entry.by_text.end()) return found->second;
  if (type == kOpaque) return error(Code::unsupported, "only tensors of numbers and known rank have layouts");
  std::string names(dims);
  if (names.empty()) {
    TENON_TRY(usual, default_layout_dims(text, entry.dims.size()));
    names = std::move(usual);
  }
  auto parsed = Layout::parse(text, names, entry.dims, entry.element_bits);
  // An exact split, or a map that is one to one for other extents than the assumed ones: known only at run time.
  static constexpr std::string_view kOfExtents[] = {"E_NOT_DIVISIBLE", "E_NOT_INVERTIBLE"};
  const bool run_will_see = !parsed.ok() && entry.open &&
                            std::ranges::find(kOfExtents, layout_error_code(parsed.error())) != std::end(kOfExtents);
  if (run_will_see) parsed = entry.entries[kRowMajor].layout;
  TENON_TRY(layout, std::move(parsed));
  if (!layout.injective() || layout.is_view()) {
    return error(Code::unsupported, "layout ", quote(text), " has no slot of its own for each element");
  }
  size_t at = run_will_see ? entry.entries.size() : 0;
  while (at < entry.entries.size() && !same(entry.entries[at].layout, layout)) ++at;
  if (at == entry.entries.size()) entry.entries.push_back({std::string(text), names, std::move(layout)});
  entry.by_text.emplace(key, at);
  return at;
}

bool LayoutTable::is_padded(size_t type, size_t layout) const {
  if (type == kOpaque || layout == kRowMajor) return false;
  const Layout& of = entry(type, layout).layout;
  return of.padding() > 0 || (types_[type].open && !is_order(of));
}

std::string LayoutTable::name(size_t type, size_t layout) const {
  const std::string& text = entry(type, layout).text;
  return text.empty() ? "row-major" : text;
}

int64_t LayoutTable::pad_bytes(size_t type, size_t layout) const {
  const Layout& of = entry(type, layout).layout;
  return (of.padding() * of.element_bits() + 7) / 8;
}

Result<LayoutCosts> LayoutTable::costs_of(size_t number) const {
  const TypeEntry& type = types_[number];
  LayoutCosts costs;
  for (const Entry& from : type.entries) {
    for (const Entry& to : type.entries) {
      if (&from == &to) {
        costs.reorders.push_back(0);
        continue;
      }
      TENON_TRY(cost, reorder_cost(from.layout, to.layout, bandwidth_));
      costs.reorders.push_back(cost);
    }
    const Layout& layout = from.layout;
    const auto pad_bytes = static_cast<double>((layout.padding() * layout.element_bits() + 7) / 8);
    const double scrub =
        pad_bytes / bandwidth_.at(std::max<int64_t>(layout.run().length * layout.element_bits() / 8, 1));
    const bool padded = is_padded(number, static_cast<size_t>(&from - type.entries.data()));
    costs.pads.push_back({padded, scrub + bandwidth_.setup_seconds, layout.fill() == uint64_t{0}});
  }
  return costs;
}

Result<std::vector<LayoutCosts>> LayoutTable::costs() const {
  std::vector<LayoutCosts> all = {{{{}}, {0}}};
  for (size_t type = 1; type < types_.size(); ++type) {
    TENON_TRY(costs, costs_of(type), "the reorders of tensors of shape ", types_[type].dims);
    all.push_back(std::move(costs));
  }
  return all;
}

}  // namespace tenon
