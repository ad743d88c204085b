// Nests of loops: merging, sorting, and the choice of the kernel.
#include <algorithm>

#include <tenon/tensor/layout_internal.hpp>
#include <tenon/tensor/reorder_fields_internal.hpp>
#include <tenon/tensor/reorder_internal.hpp>
#include <tenon/tensor/reorder_tiles_internal.hpp>

namespace tenon::detail {
namespace {

// Sorts loops by destination stride, from the outermost inwards, and merges them.
void sort_and_join(Nest& nest) {
  std::vector<NestLoop> out;
  std::erase_if(nest.loops, [](const NestLoop& loop) { return loop.count == 1; });
  for (NestLoop& loop : nest.loops) {
    if (loop.to >= 0) continue;
    nest.from_base += loop.from * (loop.count - 1);
    nest.to_base += loop.to * (loop.count - 1);
    loop.from = -loop.from;
    loop.to = -loop.to;
  }
  std::ranges::stable_sort(nest.loops, std::greater(), &NestLoop::to);
  for (const NestLoop& loop : nest.loops) {
    if (!out.empty() && out.back().from == loop.from * loop.count && out.back().to == loop.to * loop.count) {
      out.back() = {out.back().count * loop.count, loop.from, loop.to};
    } else {
      out.push_back(loop);
    }
  }
  nest.loops = std::move(out);
}

bool is_whole_bytes(const Nest& nest) {
  const auto whole = [](int64_t bits) { return bits % 8 == 0; };
  return whole(nest.unit) && whole(nest.from_base) && whole(nest.to_base) &&
         std::ranges::all_of(nest.loops, [&](const NestLoop& loop) { return whole(loop.from) && whole(loop.to); });
}

// The number of outer loops that may be divided among threads: the bits of one byte must belong to one iteration.
size_t count_disjoint(const Nest& nest) {
  const int64_t start = nest.to_base % 8;
  int64_t span = nest.unit;  // the extent of the loops inside
  size_t disjoint = nest.loops.size();
  for (size_t i = nest.loops.size(); i-- > 0;) {
    const NestLoop& loop = nest.loops[i];
    if (loop.to % 8 != 0 || loop.to < round_up(start + span, 8)) disjoint = i;
    span += loop.to * (loop.count - 1);
  }
  return disjoint;
}

void prepare_bits(Nest& nest) {
  nest.kind = Nest::Kind::bits;
  nest.disjoint = count_disjoint(nest);
  if (nest.unit > kMaxFieldBits || nest.loops.size() < 2 || nest.loops.back().to != nest.unit) return;
  const auto reader = std::ranges::find(nest.loops, nest.unit, &NestLoop::from);
  if (reader >= nest.loops.end() - 1) return;
  nest.kind = Nest::Kind::fields;
  // Loops keep their order, except for the one that reads; those of a tile stay together.
  const bool moves = reader + 2 < nest.loops.end();
  nest.disjoint =
      std::min(nest.disjoint, moves ? static_cast<size_t>(reader - nest.loops.begin()) : nest.loops.size() - 1);
  std::rotate(reader, reader + 1, nest.loops.end() - 1);
}

}  // namespace

void prepare(Nest& nest) {
  sort_and_join(nest);
  if (!nest.loops.empty() && nest.loops.back().from == nest.unit && nest.loops.back().to == nest.unit) {
    nest.unit *= nest.loops.back().count;
    nest.loops.pop_back();
  }
  if (!is_whole_bytes(nest)) return prepare_bits(nest);
  nest.unit /= 8;
  nest.from_base /= 8;
  nest.to_base /= 8;
  for (NestLoop& loop : nest.loops) {
    loop.from /= 8;
    loop.to /= 8;
  }
  nest.disjoint = nest.loops.size();
  if (!can_transpose(nest.unit) || nest.loops.size() < 2 || nest.loops.back().to != nest.unit) return;
  const auto reader = std::ranges::find(nest.loops, nest.unit, &NestLoop::from);
  if (reader == nest.loops.end()) return;
  nest.kind = Nest::Kind::transpose;
  std::rotate(reader, reader + 1, nest.loops.end() - 1);
}

bool write_zeros_behind(Nest& nest, int64_t count, int64_t zeros, int64_t element_bits) {
  const int64_t element = element_bits / 8;
  if (nest.kind == Nest::Kind::bits || nest.kind == Nest::Kind::fields) return false;
  if (nest.kind == Nest::Kind::transpose) {
    if (nest.unit != element || nest.loops.back().count != count || !has_zero_rows(element)) return false;
    nest.zeros = zeros * element;
    return true;
  }
  if (nest.unit != count * element) return false;
  nest.zeros = zeros * element;
  const auto reader = std::ranges::find(nest.loops, nest.unit, &NestLoop::from);
  if (count == 1 && has_zero_rows(element) && reader != nest.loops.end()) {
    // One row, and rows of zeros.
    nest.kind = Nest::Kind::transpose;
    std::rotate(reader, reader + 1, nest.loops.end());
    nest.loops.push_back({1, 0, element});
    nest.disjoint = nest.loops.size();
  }
  return true;
}

}  // namespace tenon::detail
