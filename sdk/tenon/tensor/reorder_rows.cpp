// Elements of whole bytes along the rows of one dim, with tables of offsets: for what is not a nest of loops.
#include <algorithm>
#include <cstring>

#include <tenon/tensor/layout_internal.hpp>
#include <tenon/tensor/reorder_rows_internal.hpp>
#include <tenon/tensor/reorder_vectors_internal.hpp>

namespace tenon::detail {
namespace {

// The most entries in the tables of one layout.
constexpr int64_t kMaxTable = kMaxMapElements;

int64_t byte_offset(const Layout& layout, int64_t bank, int64_t slot) {
  return bank * layout.bytes_per_bank() + layout.data().position(0, slot).bit / 8;
}

}  // namespace

bool RowOffsets::serves(const Layout& layout) {
  const LayoutData& data = layout.data();
  if (layout.element_bits() % 8 != 0 || layout.word_bits() % 8 != 0 || layout.shape().empty()) return false;
  if (data.table) return true;
  int64_t entries = 0;
  for (const int64_t extent : data.extent) entries += extent;
  return !data.ragged && !data.has_xor && entries <= kMaxTable;
}

RowOffsets::RowOffsets(const Layout& layout) {
  const LayoutData& data = layout.data();
  if (data.table) {
    const int64_t slots = data.words * data.lanes;
    Table& all = tables_.emplace_back();
    for (size_t d = 0; d < layout.shape().size(); ++d) all.dims.push_back(static_cast<int>(d));
    for (const int64_t slot : data.table->slots) all.bytes.push_back(byte_offset(layout, slot / slots, slot % slots));
  } else {
    add_variables(layout);
  }
  for (Table& table : tables_) {
    for (const int dim : table.dims) table.extents.push_back(layout.shape()[static_cast<size_t>(dim)]);
  }
}

void RowOffsets::add_variables(const Layout& layout) {
  const LayoutData& data = layout.data();
  std::vector<int64_t> z(data.extent.size());
  const auto offset = [&] {
    const LayoutPosition at = data.at(z.data());
    return at.bank * layout.bytes_per_bank() + at.bit / 8;
  };
  const int64_t origin = offset();
  for (size_t v = 0; v < z.size(); ++v) {
    const LayoutVariable& variable = data.parts.variables[v];
    Table& table = tables_.emplace_back();
    table.dims = variable.dims;
    for (int64_t x = 0; x < data.extent[v]; ++x) {
      z[v] = x + variable.offset;
      if (variable.fold) z[v] %= variable.fold;
      table.bytes.push_back(offset() - (v == 0 ? 0 : origin));
    }
    z[v] = 0;
  }
}

void RowOffsets::fill(std::span<const int64_t> index, size_t dim, std::span<int64_t> out) const {
  int64_t base = 0, first = 0, step = 0;
  const Table* along = nullptr;
  for (const Table& table : tables_) {
    int64_t number = 0, stride = 0;
    for (size_t i = 0; i < table.dims.size(); ++i) {
      const bool here = static_cast<size_t>(table.dims[i]) == dim;
      number = number * table.extents[i] + (here ? 0 : index[static_cast<size_t>(table.dims[i])]);
      stride = here ? 1 : stride * table.extents[i];
    }
    if (stride == 0) {
      base += table.bytes[static_cast<size_t>(number)];
    } else {
      along = &table;
      first = number;
      step = stride;
    }
  }
  const int64_t* bytes = along->bytes.data() + first;
  for (size_t i = 0; i < out.size(); ++i) out[i] = base + bytes[static_cast<int64_t>(i) * step];
}

namespace {

// Elements of kSize bytes; 0: of `size`.
template <int64_t kSize>
void copy_row(std::span<const int64_t> from, std::span<const int64_t> to, int64_t size, const std::byte* source,
              std::byte* destination) {
  if constexpr (kSize > 0) size = kSize;
  for (size_t i = 0; i < to.size();) {
    size_t stop = i + 1;
    while (stop < to.size() && to[stop] == to[stop - 1] + size && from[stop] == from[stop - 1] + size) ++stop;
    const auto bytes = static_cast<int64_t>(stop - i) * size;
    if (kSize > 0 && stop == i + 1) {
      std::memcpy(destination + to[i], source + from[i], static_cast<size_t>(kSize));
    } else if (bytes <= kShortRun) {
      copy_short(destination + to[i], source + from[i], bytes);
    } else {
      std::memcpy(destination + to[i], source + from[i], static_cast<size_t>(bytes));
    }
    i = stop;
  }
}

auto row_copier(int64_t size) {
  switch (size) {
    case 1: return copy_row<1>;
    case 2: return copy_row<2>;
    case 4: return copy_row<4>;
    case 8: return copy_row<8>;
    default: return copy_row<0>;
  }
}

}  // namespace

void copy_rows(const RowTables& tables, const RowLoop& loop, const std::byte* source, std::byte* destination,
               int64_t begin, int64_t end) {
  const auto length = static_cast<size_t>(loop.domain[loop.dim]);
  std::vector<int64_t> from(length), to(length);
  Dims outer = loop.domain;
  outer[loop.dim] = 1;
  Dims index(outer.size());
  index_of(begin, outer, index);
  const auto copy = row_copier(loop.element_bytes);
  for (int64_t row = begin; row < end; ++row) {
    tables.from.fill(index, loop.dim, from);
    tables.to.fill(index, loop.dim, to);
    copy(from, to, loop.element_bytes, source, destination);
    next_index(index, outer);
  }
}

}  // namespace tenon::detail
