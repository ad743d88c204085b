// The layouts that the values of a graph may have, by type, as numbers; and what it costs to go from one to another.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/passes/layout_problem.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/reorder.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon {

class LayoutTable {
 public:
  static constexpr size_t kRowMajor = 0;
  // Of all values that have no other layout than row-major: no tensor, or one of strings, of a rank that is not known,
  // without elements or of rank 0.
  static constexpr size_t kOpaque = 0;
  struct Entry {
    std::string text, dims;  // as they were given first; both empty: row-major
    Layout layout;
  };

  explicit LayoutTable(BandwidthTable bandwidth);

  // An extent that only a run shows is taken for a number that no block divides, the same one for each symbol.
  size_t type_of(const Type& type);
  const Dims& dims(size_t type) const { return types_[type].dims; }
  // Layouts that do the same are one; an empty text is row-major, empty dims are default_layout_dims(). The error says
  // why the text is no layout of the type.
  Result<size_t> add(size_t type, std::string_view text, std::string_view dims);
  const Entry& entry(size_t type, size_t layout) const { return types_[type].entries[layout]; }
  // Or may be, for some extents.
  bool is_padded(size_t type, size_t layout) const;
  // "row-major" or its text.
  std::string name(size_t type, size_t layout) const;
  int64_t bytes(size_t type, size_t layout) const { return entry(type, layout).layout.bytes(); }
  int64_t pad_bytes(size_t type, size_t layout) const;
  // Of all types, as they are now.
  Result<std::vector<LayoutCosts>> costs() const;

 private:
  struct TypeEntry {
    Dims dims;
    int64_t element_bits = 1;
    bool open = false;  // some extents are not known
    std::vector<Entry> entries;
    std::map<std::pair<std::string, std::string>, size_t> by_text;
  };
  Result<LayoutCosts> costs_of(size_t type) const;
  std::optional<Dims> assumed_dims(const Shape& shape);

  BandwidthTable bandwidth_;
  std::vector<TypeEntry> types_;
  std::map<std::pair<std::string, int64_t>, size_t> by_type_;  // shape as text, element bits
  SymbolValues symbols_;
};

}  // namespace tenon
