#include <tenon/passes/layout_table.hpp>

#include <algorithm>

#include <tenon/ir/value_layout.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

bool same(const Layout& a, const Layout& b) { return a.fill() == b.fill() && a.same_sizes(b) && a.same_function(b); }

}  // namespace

LayoutTable::LayoutTable(BandwidthTable bandwidth) : bandwidth_(std::move(bandwidth)) {
  types_.push_back({{}, 1, {{"", "", Layout()}}, {{{"", ""}, kRowMajor}}});
}

size_t LayoutTable::type_of(const Type& type) {
  if (!type.is_tensor() || !type.element().valid() || type.element().is_string()) return kOpaque;
  auto dims = type.shape().static_dims();
  if (!dims || dims->empty() || std::find(dims->begin(), dims->end(), 0) != dims->end()) return kOpaque;
  const auto [found, added] = by_type_.try_emplace({*dims, type.element().bits()}, types_.size());
  if (!added) return found->second;
  auto row_major = Layout::row_major(*dims, type.element().bits());
  if (!row_major.ok()) return found->second = kOpaque;  // too large for one buffer
  types_.push_back({*std::move(dims), type.element().bits(), {{"", "", *std::move(row_major)}}, {}});
  return found->second;
}

Result<size_t> LayoutTable::add(size_t type, std::string_view text, std::string_view dims) {
  if (text.empty()) return kRowMajor;
  TypeEntry& entry = types_[type];
  const std::pair<std::string, std::string> key{text, dims};
  if (const auto found = entry.by_text.find(key); found != entry.by_text.end()) return found->second;
  if (type == kOpaque) return error(Code::unsupported, "only tensors of numbers and static shape have layouts");
  std::string names(dims);
  if (names.empty()) {
    TENON_TRY(usual, default_layout_dims(text, entry.dims.size()));
    names = std::move(usual);
  }
  TENON_TRY(layout, Layout::parse(text, names, entry.dims, entry.element_bits));
  if (!layout.injective() || layout.is_view()) {
    return error(Code::unsupported, "layout ", quote(text), " has no slot of its own for each element");
  }
  size_t at = 0;
  while (at < entry.entries.size() && !same(entry.entries[at].layout, layout)) ++at;
  if (at == entry.entries.size()) entry.entries.push_back({std::string(text), names, std::move(layout)});
  entry.by_text.emplace(key, at);
  return at;
}

bool LayoutTable::is_padded(size_t type, size_t layout) const {
  return type != kOpaque && entry(type, layout).layout.padding() > 0;
}

std::string LayoutTable::name(size_t type, size_t layout) const {
  const std::string& text = entry(type, layout).text;
  return text.empty() ? "row-major" : text;
}

int64_t LayoutTable::pad_bytes(size_t type, size_t layout) const {
  const Layout& of = entry(type, layout).layout;
  return (of.padding() * of.element_bits() + 7) / 8;
}

Result<LayoutCosts> LayoutTable::costs_of(const TypeEntry& type) const {
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
    costs.pads.push_back({layout.padding() > 0, scrub + bandwidth_.setup_seconds, layout.fill() == uint64_t{0}});
  }
  return costs;
}

Result<std::vector<LayoutCosts>> LayoutTable::costs() const {
  std::vector<LayoutCosts> all = {{{{}}, {0}}};
  for (size_t type = 1; type < types_.size(); ++type) {
    TENON_TRY(costs, costs_of(types_[type]), "the reorders of tensors of shape ", types_[type].dims);
    all.push_back(std::move(costs));
  }
  return all;
}

}  // namespace tenon
