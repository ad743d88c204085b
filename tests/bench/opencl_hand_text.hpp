// Fragments of the text of hand-written kernels (opencl_by_hand.hpp).
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/support/str.hpp>

namespace tenon::opencl::by_hand {

inline constexpr int64_t kLanes = 16;

inline constexpr std::string_view kHead = R"(
#pragma OPENCL FP_CONTRACT OFF
#define NEAR(p) (((__global struct __attribute__((packed)) { float16 v; }*)(p))->v)
#define NEAR_LOCAL(p) (((__local struct __attribute__((packed)) { float16 v; }*)(p))->v)
#define NEAR8(p) (((__global struct __attribute__((packed)) { float8 v; }*)(p))->v)
#define NEAR_LOCAL8(p) (((__local struct __attribute__((packed)) { float8 v; }*)(p))->v)
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
)";

template <class Text>
std::string each(int64_t count, const Text& text) {
  std::string all;
  for (int64_t i = 0; i < count; ++i) all += text(i);
  return all;
}

// One step of rows times vectors of sums: s0_0 += a(0) * b0 ...
inline std::string step_of(int64_t rows, int64_t vectors) {
  return each(rows, [&](int64_t r) {
    return str("{ const float16 w = (float16)A(", r, "); ",
               each(vectors, [&](int64_t v) { return str("s", r, "_", v, " = fma(w, b", v, ", s", r, "_", v, "); "); }),
               "}\n");
  });
}

inline std::string each_place(int64_t rows, int64_t vectors, const auto& text) {
  return each(rows, [&](int64_t r) { return each(vectors, [&](int64_t v) { return text(r, v); }); });
}
inline std::string each_sum(int64_t rows, int64_t vectors, const std::string& before, const auto& text) {
  return each_place(rows, vectors, [&](int64_t r, int64_t v) { return str(before, "s", r, "_", v, text(r, v)); });
}

inline std::string defines(const std::vector<std::pair<std::string_view, int64_t>>& numbers) {
  std::string text;
  for (const auto& [name, value] : numbers) text += str("#define ", name, " ", value, "l\n");
  return text;
}

struct Tile {
  int64_t rows, vectors;
};
inline std::string tile_name(Tile tile) { return str(tile.rows, "x", tile.vectors); }

}  // namespace tenon::opencl::by_hand
