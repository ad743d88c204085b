#include "opencl/compute/tile.hpp"

#include <algorithm>
#include <limits>

#include <tenon/support/str.hpp>

#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

// Candidate row counts of tiles. Few, because each makes another source, whose compilation takes a second.
constexpr int kTileRows[] = {1, 2, 3, 4, 6, 8, 12};
// More jobs than this do not improve the load balance.
constexpr int64_t kMostJobsOfUnit = 32;

}  // namespace

// The columns and rows computed for each useful one, times the cost of a step beyond its multiply-adds: loads of
// `vectors` of the panel, and of `rows` elements that are broadcast.
double cycles_of(const ProductTile& tile, const ProductExtents& extents) {
  const auto waste = [](const std::optional<int64_t>& extent, int64_t step) {
    if (!extent || *extent <= 0) return 1.0;
    return static_cast<double>((*extent + step - 1) / step * step) / static_cast<double>(*extent);
  };
  const double adds = static_cast<double>(tile.rows) * tile.vectors;
  // Two loads and two multiply-adds a cycle; fewer sums than the latency of two units requires cause stalls.
  const double cycles =
      std::max({adds / 2, (tile.rows + tile.vectors) / 2.0, 4.0}) + 0.125 * (tile.rows + tile.vectors);
  return waste(extents.m, tile.rows) * waste(extents.n, tile.columns()) * cycles / adds;
}

int lanes_of(ElementType work, const ComputeTarget& target) {
  return std::max(target.lanes * 32 / std::max<int>(static_cast<int>(work.bits()), 32), 1);
}

ProductTile choose_tile(const ProductExtents& extents, ElementType work, const ComputeTarget& target) {
  const Tiling& tiling = target.tiling;
  ProductTile tile;
  tile.lanes = lanes_of(work, target);
  double best = std::numeric_limits<double>::infinity();
  ProductTile chosen = tile;
  const int registers = tiling.registers;
  if (tiling.exact) chosen.vectors = tiling.vectors, chosen.rows = tiling.rows, best = 0;
  for (tile.vectors = 1; tile.vectors <= tiling.vectors; ++tile.vectors)
    for (const int rows : kTileRows) {
      tile.rows = rows;
      const double cost = cycles_of(tile, extents);
      if (rows > tiling.rows || rows * tile.vectors > registers || cost >= best) continue;
      best = cost;
      chosen = tile;
    }
  // Packing does not pay for a panel that one row tile reads.
  if (!tiling.local || extents.k == 0 || (extents.m && *extents.m <= 2 * chosen.rows)) return chosen;
  // Independent of extents, so that kernels of networks share sources.
  const int64_t row_bytes = chosen.columns() * static_cast<int64_t>(work.bits() / 8);
  chosen.depth = std::max<int64_t>(std::min(tiling.depth, target.local_bytes / 2 / row_bytes), 1);
  const int64_t most_rows = std::min(tiling.block_rows, target.local_bytes / 4 / row_bytes);
  chosen.block_rows = std::max<int64_t>(most_rows / chosen.rows, 1) * chosen.rows;
  return chosen;
}

std::vector<Tiling> other_tilings(const Tiling& tiling) {
  constexpr std::pair<int, int> kRowsAndVectors[] = {{12, 2}, {8, 3}, {6, 4}, {5, 4}, {4, 4}, {13, 1}};
  std::vector<Tiling> made;
  for (const auto& [rows, vectors] : kRowsAndVectors) {
    if (rows > tiling.rows + 1 || vectors > tiling.vectors || rows * vectors > tiling.registers) continue;
    Tiling& other = made.emplace_back(tiling);
    other.rows = rows, other.vectors = vectors, other.exact = true;
  }
  return made;
}

RowBlocks row_blocks(const ProductTile& tile, int64_t m, int64_t other_jobs, bool waits, const ComputeTarget& target) {
  constexpr double kPacked = 4;  // packing a panel takes as long as this many rows of a tile
  const int64_t tiles = std::max<int64_t>((m + tile.rows - 1) / tile.rows, 1);
  const int64_t most = waits ? std::max<int64_t>(tile.block_rows / tile.rows, 1) : tiles;
  const int64_t units = std::max<int64_t>(target.compute_units, 1), others = std::max<int64_t>(other_jobs, 1);
  RowBlocks made;
  double best = std::numeric_limits<double>::infinity();
  for (int64_t blocks = (tiles + most - 1) / most; blocks <= tiles; ++blocks) {
    const int64_t of_block = (tiles + blocks - 1) / blocks, jobs = others * ((tiles + of_block - 1) / of_block);
    const double job = static_cast<double>(of_block) + (tile.packs() ? kPacked / tile.rows : 0);
    const double cost = static_cast<double>((jobs + units - 1) / units) * job;
    if (cost < 0.98 * best) best = cost, made = {of_block * tile.rows, jobs / others};
    if (jobs >= kMostJobsOfUnit * units) break;
  }
  return made;
}

void define_tile(ComputeSource& source, const ProductTile& tile, ElementType work) {
  source.define("T", scalar_name(work));
  source.define("TV", lanes_name(work, tile.lanes));
  source.define("MULTIPLY_ADD(a, b, c)", work.is_float() ? "fma((a), (b), (c))" : "((a) * (b) + (c))");
  source.define("ROWS", tile.rows);
  source.define("VECTORS", tile.vectors);
  source.define("LANES", tile.lanes);
  source.define("COLUMNS", tile.columns());
  source.define("VLOAD", str("vload", tile.lanes));
  if (!tile.packs()) return;
  source.define("DEPTH", tile.depth);
  source.define("PANEL(k, v)", "panel[(k) * VECTORS + (v)]");
  source.local("  __local TV panel[DEPTH * VECTORS];\n");
  source.define("BLOCK_ROWS", tile.block_rows);
  source.define("PARTIAL(row, v)", "partial[(row) * VECTORS + (v)]");
  source.local("  __local TV partial[BLOCK_ROWS * VECTORS];\n");
}

void define_lane_numbers(ComputeSource& source, int lanes, ElementType work) {
  source.define("IV", str(scalar_name(work.bits() == 64 ? kI64 : kI32), lanes));
  std::string numbers;
  for (int lane = 0; lane < lanes; ++lane) numbers += str(lane == 0 ? "(IV)(" : ", ", lane);
  source.define("LANE_NUMBERS", numbers + ")");
}

void define_transpose(ComputeSource& source, int lanes) {
  // Each stage interleaves the elements of vectors i and i + lanes / 2.
  std::string text = "do { TV u[LANES]; ";
  bool back = false;
  for (int stage = 1; stage < lanes; stage *= 2, back = !back) {
    const std::string_view from = back ? "u" : "(t)", to = back ? "(t)" : "u";
    for (int i = 0; i < lanes / 2; ++i)
      for (const auto& [part, half] : {std::pair(2 * i, "lo"), std::pair(2 * i + 1, "hi")})
        text += str(to, "[", part, "].even = ", from, "[", i, "].", half, "; ", to, "[", part, "].odd = ", from, "[",
                    i + lanes / 2, "].", half, "; ");
  }
  if (back) text += "for (int i = 0; i < LANES; ++i) (t)[i] = u[i]; ";
  source.define("TRANSPOSE(t)", str(text, "} while (0)"));
}

namespace {

std::string whole_tile(const ProductTile& tile) {
  std::string text =
      "      int whole = row + ROWS <= row1 && column + COLUMNS <= N;\n"
      "      const long line_0 = LINE(row) + column;\n      PLACE(place_0, line_0);\n";
  for (int r = 0; r < tile.rows; ++r) {
    if (r > 0)
      text += str("      const long line_", r, " = line_", r - 1, " + N;\n      PLACE_BEHIND(place_", r, ", place_",
                  r - 1, ", line_", r - 1, ", N);\n");
    text += str("      whole = whole && IN_LINE(place_", r, ", COLUMNS);\n");
  }
  text += "      if (whole) {\n";
  for (int r = 0; r < tile.rows; ++r)
    for (int v = 0; v < tile.vectors; ++v) {
      const std::string sum = str("s", r, "_", v), at = str(v, " * LANES");
      text += str("        AFTER(", sum, ", row + ", r, ", column + ", at, ", LANES);\n        FINISH_WHOLE(place_", r,
                  ", line_", r, ", ", at, ", ", sum, ");\n");
    }
  return text + "        continue;\n      }\n";
}

constexpr std::string_view kPartOfTile = R"(
      for (int r = 0; r < ROWS && row + r < row1; ++r) {
        const long line = LINE(row + r) + column;
        PLACE(place, line);
        for (int v = 0; v < VECTORS; ++v) {
          const long at = column + v * LANES;
          const int count = (int)min((long)LANES, N - at);
          if (count <= 0) break;
          TV x = sums[r * VECTORS + v];
          AFTER(x, row + r, at, count);
          FINISH(place, line, v * LANES, count, x);
        }
      }
)";

}  // namespace

std::string each_step(std::string_view steps) {
  return str("      for (long k1 = 0; k1 < ", steps, "; k1 += 256)\n      for (long k = k1, k2 = min(k1 + 256, (long)",
             steps, "); k < k2; ++k) {\n");
}

std::string_view finished_rows() { return kPartOfTile; }

std::string packed_rows(const ProductTile& tile, bool copies) {
  const auto each = [&](auto text) {
    std::string all;
    for (int r = 0; r < tile.rows; ++r)
      for (int v = 0; v < tile.vectors; ++v) all += text(r, v);
    return all;
  };
  std::string text = "    for (long row = row0 + LOCAL_ID * ROWS; row < row1; row += LOCAL_SIZE * ROWS) {\n";
  for (int r = 0; r < tile.rows; ++r)
    text += str("      A_TYPE row_", r, " = A_AT(ROW_OF_A(min(row + ", r, ", row1 - 1)) + k0 * A_STEP);\n");
  text += str("      TV ", each([](int r, int v) { return str(r + v ? ", " : "", "s", r, "_", v); }), ";\n");
  text += str("      if (k0 > 0) {\n", each([](int r, int v) {
                return str("        s", r, "_", v, " = PARTIAL(row - row0 + ", r, ", ", v, ");\n");
              }),
              "      } else {\n");
  for (int r = 0; r < tile.rows; ++r) {
    text += "        ";
    for (int v = 0; v < tile.vectors; ++v) text += str("s", r, "_", v, " = ");
    text += str("(TV)START(min(row + ", r, ", row1 - 1));\n");
  }
  text += "      }\n";
  text += each_step("depth");
  for (int v = 0; v < tile.vectors; ++v) text += str("        const TV b", v, " = PANEL(k, ", v, ");\n");
  text += "        TV repeated;\n";
  for (int r = 0; r < tile.rows; ++r) {
    text += str("        repeated = (TV)A_FROM(row_", r, ", k * A_STEP);\n");
    for (int v = 0; v < tile.vectors; ++v)
      text += str("        s", r, "_", v, " = MULTIPLY_ADD(repeated, b", v, ", s", r, "_", v, ");\n");
  }
  text += "      }\n";
  text += str("      if (k0 + depth < K) {\n", each([](int r, int v) {
                return str("        PARTIAL(row - row0 + ", r, ", ", v, ") = s", r, "_", v, ";\n");
              }),
              "        continue;\n      }\n");
  // Whole tiles know their number of elements; if the epilogue is short, they have a copy for each vector.
  if (copies) text += whole_tile(tile);
  return str(text, "      const TV sums[ROWS * VECTORS] = {",
             each([](int r, int v) { return str(r + v ? ", " : "", "s", r, "_", v); }), "};\n", kPartOfTile, "    }\n");
}

}  // namespace tenon::opencl
