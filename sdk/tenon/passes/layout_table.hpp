// The layouts that the values of a graph may have, numbered per type, and the costs of conversions between them.
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
  // The type of all values that can only be row-major: no tensors, or tensors of strings, of unknown rank, without
  // elements or of rank 0.
  static constexpr size_t kOpaque = 0;
  struct Entry {
    std::string text, dims;  // as first given; both empty: row-major
    Layout layout;
  };

  explicit LayoutTable(BandwidthTable bandwidth);

  // An extent known only at run time counts as a number that no block divides, the same one for each symbol.
  size_t type_of(const Type& type);
  const Dims& dims(size_t type) const { return types_[type].dims; }
  // Equivalent layouts get the same number; an empty text is row-major, empty dims are default_layout_dims(). The error
  // says why the text is not a layout for the type.
  Result<size_t> add(size_t type, std::string_view text, std::string_view dims);
  const Entry& entry(size_t type, size_t layout) const { return types_[type].entries[layout]; }
  // Whether it has padding, or may have for some extents.
  bool is_padded(size_t type, size_t layout) const;
  // "row-major" or its text.
  std::string name(size_t type, size_t layout) const;
  int64_t bytes(size_t type, size_t layout) const { return entry(type, layout).layout.bytes(); }
  int64_t pad_bytes(size_t type, size_t layout) const;
  // For all types so far.
  Result<std::vector<LayoutCosts>> costs() const;

 private:
  struct TypeEntry {
    Dims dims;
    int64_t element_bits = 1;
    bool open = false;  // some extents are unknown
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
