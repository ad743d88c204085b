#include "opencl/compute/group_tile.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include <tenon/support/str.hpp>

#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

// Steps of a panel: loading an element costs a store, an address and a share of two barriers, whatever the depth.
constexpr int64_t kMostDepth = 16;
// Adjacent elements along the inner extent: 32 bytes of f32, the least that a memory transaction covers.
constexpr int64_t kAlong = 8;

int64_t ceil2(int64_t x) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x))); }
int64_t parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

int64_t odd_vectors(int64_t elements, int64_t lanes) { return (parts(elements, lanes) | 1) * lanes; }

int64_t bytes_of(ElementType work) { return static_cast<int64_t>(work.bits()) / 8; }

// Cost of a step for an item, in multiply-adds, with loads from local memory overlapped. A unit that does 128
// multiply-adds a cycle reads 32 words of local memory a cycle; loading an element takes a load, a store and their
// addresses.
double step_cost(const GroupTile& tile, ElementType work, double of_fetched) {
  constexpr double kOfWord = 4;
  const double words = static_cast<double>(bytes_of(work)) / 4, columns = tile.vectors * tile.lanes;
  const double adds = tile.rows * columns, read = (tile.rows + columns) * words * kOfWord;
  const auto fetched = static_cast<double>(tile.block_rows() + tile.columns()) / static_cast<double>(tile.group);
  return std::max(adds, read) + of_fetched * words * fetched;
}

// Time of the whole product, in steps. Extents known only to a run are assumed to be large.
double cost_of(const GroupTile& tile, const ProductExtents& extents, int64_t matrices, ElementType work,
               double of_fetched, const ComputeTarget& target) {
  constexpr int64_t kMany = 1 << 12;
  // Groups that a unit runs at once, to be busy while some of them wait: fewer take as long as these.
  constexpr int64_t kGroupsOfUnit = 4;
  const int64_t jobs = tile.jobs(extents.m.value_or(kMany), extents.n.value_or(kMany), matrices);
  const int64_t of_unit = std::max(parts(jobs, std::max<int64_t>(target.compute_units, 1)), kGroupsOfUnit);
  return static_cast<double>(of_unit) * step_cost(tile, work, of_fetched);
}

// For a thread: sums and prefetched elements must fit registers of `lanes` elements.
bool fits_ahead(const GroupTile& tile, const Tiling& tiling) {
  const int64_t fetched =
      parts(tile.depth * tile.block_rows(), tile.group) + parts(tile.depth * tile.columns(), tile.group);
  return int64_t{tile.rows} * tile.vectors * tile.lanes + fetched <= int64_t{tiling.registers} * tile.lanes;
}

// Prefers deep panels with prefetching, then shallower ones with it, then no prefetching.
void choose_depth(GroupTile& tile, const std::optional<int64_t>& k, ElementType work, const ComputeTarget& target) {
  const int64_t wanted = std::clamp<int64_t>(ceil2(k.value_or(kMostDepth)), 1, kMostDepth);
  tile.depth = std::min(wanted, floor2(target.tiling.depth));
  // Half of the local memory, so that a unit can run at least one other group.
  while (tile.depth > 1 && tile.local_bytes(work) > target.local_bytes / 2) tile.depth /= 2;
  const int64_t deep = tile.depth;
  tile.ahead = fits_ahead(tile, target.tiling);
  if (tile.ahead || deep < kMostDepth) return;
  tile.depth = deep / 2;
  tile.ahead = fits_ahead(tile, target.tiling);
  if (!tile.ahead) tile.depth = deep;
}

}  // namespace

int64_t floor2(int64_t x) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(x, 1))));
}

int64_t GroupTile::a_pitch() const { return odd_vectors(block_rows(), row_lanes()); }
int64_t GroupTile::b_pitch() const { return odd_vectors(columns(), lanes); }
int64_t GroupTile::spare() const {
  const int64_t vectors = int64_t{row_lanes()} * lanes;
  return parts(group, vectors) * vectors;
}
int64_t GroupTile::local_bytes(ElementType work) const {
  return (depth * (a_pitch() + b_pitch()) + 2 * spare()) * bytes_of(work);
}
int64_t GroupTile::jobs(int64_t m, int64_t n, int64_t matrices) const {
  return parts(m, block_rows()) * parts(n, columns()) * matrices;
}

bool works_in_groups(const ComputeTarget& target) { return target.work_group > 1 && target.tiling.local; }

GroupTile choose_group_tile(const ProductExtents& extents, int64_t matrices, ElementType work,
                            const ComputeTarget& target, double of_fetched) {
  const Tiling& tiling = target.tiling;
  GroupTile tile, chosen;
  tile.lanes = lanes_of(work, target), tile.group = target.work_group;
  chosen = tile;
  double best = std::numeric_limits<double>::infinity();
  const auto consider = [&](int rows, int vectors) {
    tile.rows = rows, tile.vectors = vectors;
    for (tile.across = 1; tile.across <= tile.group; tile.across *= 2) {
      tile.down = static_cast<int>(tile.group / tile.across);
      tile.depth = 1;
      if (tile.local_bytes(work) > target.local_bytes / 2) continue;
      const double cost = cost_of(tile, extents, matrices, work, of_fetched, target);
      if (cost < best) best = cost, chosen = tile;
    }
  };
  if (tiling.exact) consider(tiling.rows, tiling.vectors);
  for (int vectors = 1; !tiling.exact && vectors <= tiling.vectors; vectors *= 2)
    for (int rows = 1; rows <= tiling.rows && rows * vectors <= tiling.registers; rows *= 2) consider(rows, vectors);
  choose_depth(chosen, extents.k, work, target);
  return chosen;
}

std::vector<Tiling> other_group_tilings(const Tiling& tiling) {
  constexpr std::pair<int, int> kRowsAndVectors[] = {{8, 2}, {4, 2}, {4, 1}, {8, 1}, {2, 1}, {4, 4}, {16, 1}};
  std::vector<Tiling> made;
  for (const auto& [rows, vectors] : kRowsAndVectors) {
    if (rows * vectors > tiling.registers) continue;
    Tiling& other = made.emplace_back(tiling);
    other.rows = rows, other.vectors = vectors, other.exact = true;
  }
  return made;
}

PanelWalk PanelWalk::of(const GroupTile& tile, int64_t lines, bool along) {
  PanelWalk made{.along = along};
  const int64_t most = floor2(tile.group);
  made.span = along ? std::min({tile.depth, kAlong, most}) : std::min(ceil2(lines), most);
  made.stride = tile.group / made.span;
  made.passes = parts(lines, along ? made.stride : made.span);
  made.slabs = parts(tile.depth, along ? made.span : made.stride);
  return made;
}

}  // namespace tenon::opencl
