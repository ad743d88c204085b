// The text of a job for a work group (group_tile.hpp).
#include <tenon/support/str.hpp>

#include "opencl/compute/group_tile.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

// Defines NAME_LINE(i) and NAME_K(i), the place in the panel of the i-th element that an item loads; NAME_HERE(i):
// whether that place exists; NAME_TO(i): where the element is stored, else a place of the item's own after the panel. A
// conditional store would be simpler, but LLVM 14 and 15, which PoCL uses, merge several of them into masked stores,
// some of which are then lost (OpenclGroupProducts.ItemsWithoutAPlaceHarmNobody).
void define_walk(ComputeSource& source, std::string_view name, const GroupTile& tile, int64_t lines, bool along) {
  const PanelWalk walk = PanelWalk::of(tile, lines, along);
  const std::string first = str("(own % ", walk.span, ")"), behind = str("(own / ", walk.span, ")");
  const std::string pass = str("(i) % ", walk.passes), slab = str("(i) / ", walk.passes);
  const int64_t line_step = along ? walk.stride : walk.span, step = along ? walk.span : walk.stride;
  source.define(str(name, "_LOADS"), walk.loads());
  source.define(str(name, "_PASSES"), walk.passes);
  source.define(str(name, "_LINE(i)"), str("(", along ? behind : first, " + ", pass, " * ", line_step, ")"));
  source.define(str(name, "_K(i)"), str("(", along ? first : behind, " + ", slab, " * ", step, ")"));
  std::string here;
  const auto needs = [&](bool needed, const std::string& condition) {
    if (needed) here += str(here.empty() ? "" : " && ", condition);
  };
  needs(walk.span * walk.stride != tile.group, str("own < ", walk.span * walk.stride));
  needs(walk.passes * line_step != lines, str(name, "_LINE(i) < ", lines));
  needs(walk.slabs * step != tile.depth, str(name, "_K(i) < DEPTH"));
  source.define(str(name, "_HERE(i)"), here.empty() ? std::string("1") : str("(", here, ")"));
  const std::string panel = name == "A" ? "a_panel" : "b_panel";
  const int64_t pitch = name == "A" ? tile.a_pitch() : tile.b_pitch();
  const std::string place = str(name, "_K(i) * ", pitch, " + ", name, "_LINE(i)");
  source.define(str(name, "_TO(i)"),
                str("((__local T*)", panel, ")[",
                    here.empty() ? place : str(name, "_HERE(i) ? ", place, " : DEPTH * ", pitch, " + own"), "]"));
}

// For each element that an item loads: `to` becomes `element`, or 0 beyond the extents and where `lines` clear
// `inside`.
std::string each_fetched(std::string_view name, std::string_view unroll, std::string_view to, std::string_view lines,
                         std::string_view element) {
  return str(unroll, "      for (int i = 0; i < ", name, "_LOADS; ++i) {\n        const long k = from + ", name,
             "_K(i);\n        int inside = ", name, "_HERE(i) && k < K;\n", lines, "        ", to, " = inside ? ",
             element, " : (T)0;\n      }\n");
}

std::string store(std::string_view name, std::string_view next) {
  return str("#pragma unroll\n        for (int i = 0; i < ", name, "_LOADS; ++i)\n          ", name, "_TO(i) = ", next,
             "[i];\n");
}

// Row `r` of an item, as a row of the block.
std::string row_of(const GroupTile& tile, int r) {
  return str("(", r / tile.row_lanes(), " * DOWN + down) * ROW_LANES + ", r % tile.row_lanes());
}

template <class F>
std::string each_sum(const GroupTile& tile, const F& text) {
  std::string all;
  for (int r = 0; r < tile.rows; ++r)
    for (int v = 0; v < tile.vectors; ++v) all += text(r, v);
  return all;
}

std::string multiply(const GroupTile& tile) {
  const int row_lanes = tile.row_lanes();
  std::string text = "#pragma unroll 4\n        for (int k = 0; k < DEPTH; ++k) {\n";
  for (int v = 0; v < tile.vectors; ++v)
    text += str("          const TV of_b", v, " = b_panel[k * ", tile.b_pitch() / tile.lanes, " + across + ", v,
                " * ACROSS];\n");
  for (int u = 0; u < tile.rows / row_lanes; ++u)
    text += str("          const ROW_VECTOR of_a", u, " = a_panel[k * ", tile.a_pitch() / row_lanes, " + down + ", u,
                " * DOWN];\n");
  text += each_sum(tile, [&](int r, int v) {
    const std::string element = row_lanes == 1 ? str("of_a", r) : str("of_a", r / row_lanes, ".s", r % row_lanes);
    return str("          s", r, "_", v, " = MULTIPLY_ADD((TV)", element, ", of_b", v, ", s", r, "_", v, ");\n");
  });
  return text + "        }\n";
}

// Vector `v` of an item, relative to its first column.
std::string column_of(int v) { return str(v, " * (ACROSS * LANES)"); }

// For blocks that are whole: code for each vector, so that the sums stay in registers.
std::string finish_whole(const GroupTile& tile) {
  std::string text = "      if (row0 + BLOCK_ROWS <= M && column0 + BLOCK_COLUMNS <= N) {\n";
  for (int r = 0; r < tile.rows; ++r) {
    const std::string row = str("row0 + ", row_of(tile, r)), line = str("line_", r), place = str("place_", r);
    text += str("        const long ", line, " = LINE(", row, ") + first;\n        PLACE(", place, ", ", line, ");\n");
    for (int v = 0; v < tile.vectors; ++v) {
      const std::string sum = str("s", r, "_", v);
      text += str("        AFTER(", sum, ", ", row, ", first + ", column_of(v), ", LANES);\n        FINISH(", place,
                  ", ", line, ", ", column_of(v), ", LANES, ", sum, ");\n");
    }
  }
  return text + "      } else\n";
}

std::string finish(const GroupTile& tile, bool copies) {
  return str("    if (own < ACROSS * DOWN) {\n      const long first = column0 + across * LANES;\n",
             copies ? finish_whole(tile) : "", "      {\n        const TV sums[ROWS * VECTORS] = {",
             each_sum(tile, [](int r, int v) { return str(r + v ? ", " : "", "s", r, "_", v); }), R"(};
        for (int r = 0; r < ROWS; ++r) {
          const long row = row0 + (r / ROW_LANES * DOWN + down) * ROW_LANES + r % ROW_LANES;
          if (row >= M || first >= N) continue;
          const long line = LINE(row) + first;
          PLACE(place, line);
          for (int v = 0; v < VECTORS; ++v) {
            const long at = first + v * (ACROSS * LANES);
            if (at >= N) break;
            const int count = (int)min((long)LANES, N - at);
            TV x = sums[r * VECTORS + v];
            AFTER(x, row, at, count);
            FINISH(place, line, v * (ACROSS * LANES), count, x);
          }
        }
      }
    }
)");
}

}  // namespace

void define_group_tile(ComputeSource& source, const GroupTile& tile, ElementType work, bool a_along, bool b_along) {
  define_tile(source, {.rows = tile.rows, .vectors = tile.vectors, .lanes = tile.lanes}, work);
  source.define("BLOCK_COLUMNS", tile.columns());
  source.define("BLOCK_ROWS", tile.block_rows());
  source.define("ACROSS", tile.across);
  source.define("DOWN", tile.down);
  source.define("DEPTH", tile.depth);
  const int row_lanes = tile.row_lanes();
  source.define("ROW_LANES", row_lanes);
  source.define("ROW_VECTOR", row_lanes == 1 ? std::string(scalar_name(work)) : lanes_name(work, row_lanes));
  define_walk(source, "A", tile, tile.block_rows(), a_along);
  define_walk(source, "B", tile, tile.columns(), b_along);
  source.local(str("  __local ROW_VECTOR a_panel[DEPTH * ", tile.a_pitch() / row_lanes, " + ",
                   tile.spare() / row_lanes, "];\n"));
  source.local(str("  __local TV b_panel[DEPTH * ", tile.b_pitch() / tile.lanes, " + ", tile.spare() / tile.lanes,
                   "];\n"));
  source.of_group();
}

std::string group_product_body(const GroupTile& tile, const GroupPanels& panels, bool copies) {
  std::string text = "    const int across = own % ACROSS, down = min(own / ACROSS, DOWN - 1);\n";
  for (int r = 0; r < tile.rows; ++r) {
    text += "    TV ";
    for (int v = 0; v < tile.vectors; ++v) text += str(v ? ", s" : "s", r, "_", v);
    text += ";\n    ";
    for (int v = 0; v < tile.vectors; ++v) text += str("s", r, "_", v, " = ");
    text += str("(TV)START(min(row0 + ", row_of(tile, r), ", M - 1));\n");
  }
  const auto fetches = [&](std::string_view unroll, std::string_view to_a, std::string_view to_b) {
    return str(each_fetched("A", unroll, to_a, {}, panels.a),
               each_fetched("B", unroll, to_b, panels.b_inside, panels.b));
  };
  const std::string_view prepare = panels.prepare;
  const std::string multiplies = multiply(tile);
  if (tile.ahead) {
    // The first iteration only loads.
    text += str("    T next_a[A_LOADS], next_b[B_LOADS];\n    for (long from = 0; from < K + DEPTH; from += DEPTH) {\n",
                "      if (from > 0) {\n", store("A", "next_a"), store("B", "next_b"), "      }\n", prepare,
                "      SYNC;\n", fetches("#pragma unroll\n", "next_a[i]", "next_b[i]"), "      if (from > 0) {\n",
                multiplies, "      }\n      SYNC;\n    }\n");
  } else {
    text += str("    for (long from = 0; from < K; from += DEPTH) {\n", prepare, prepare.empty() ? "" : "      SYNC;\n",
                fetches("#pragma unroll 4\n", "A_TO(i)", "B_TO(i)"), "      SYNC;\n      {\n",
                multiplies, "      }\n      SYNC;\n    }\n");
  }
  return text + finish(tile, copies);
}

}  // namespace tenon::opencl
