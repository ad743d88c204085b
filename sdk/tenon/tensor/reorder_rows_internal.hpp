// Internal to the room: rows of elements whose offsets are looked up in tables.
#pragma once
#include <span>
#include <vector>

#include <tenon/tensor/layout.hpp>

namespace tenon::detail {

// Byte offsets as sums over tables: one per variable, or one of all indices for a layout that keeps its map.
class RowOffsets {
 public:
  // True for elements and words of whole bytes; not for ragged and swizzled layouts, nor beyond a size.
  static bool serves(const Layout& layout);
  explicit RowOffsets(const Layout& layout);
  // The offsets of the elements 0, 1, ... of the row along `dim` through `index`.
  void fill(std::span<const int64_t> index, size_t dim, std::span<int64_t> out) const;

 private:
  struct Table {
    std::vector<int> dims;
    Dims extents;
    std::vector<int64_t> bytes;  // by the row-major index of the dims
  };
  void add_variables(const Layout& layout);

  std::vector<Table> tables_;
};

struct RowTables {
  RowOffsets from, to;
};

// All indices below `domain`, as rows along `dim`.
struct RowLoop {
  Dims domain;
  size_t dim = 0;
  int64_t element_bytes = 1;
};
// Copies the rows [begin, end), numbered row-major over the other dims. Rows share no byte of the destination.
void copy_rows(const RowTables& tables, const RowLoop& loop, const std::byte* source, std::byte* destination,
               int64_t begin, int64_t end);

}  // namespace tenon::detail
