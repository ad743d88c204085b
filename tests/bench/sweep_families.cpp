#include "sweep_families.hpp"

#include <algorithm>
#include <random>

#include <support_lib/environment.hpp>

namespace tenon::program::bench {

namespace {

std::string named(std::initializer_list<std::string> parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}
std::string stages_of(int stages) { return std::to_string(stages) + " stages"; }
std::string size_of(int64_t width, int64_t rows) { return std::to_string(width) + " x " + std::to_string(rows); }

// The most elements of a case, so that a sweep takes minutes.
constexpr int64_t kMostElements = int64_t{1} << 22;
int64_t rows_for(int64_t width) { return std::min<int64_t>(2048, kMostElements / width); }

std::vector<Case> points() {
  std::vector<Case> out;
  for (const int stages : {3, 5, 8, 16})
    for (const int64_t floats : {1 << 16, 1 << 18, 1 << 20, 1 << 22})
      out.push_back({named({stages_of(stages), std::to_string(floats)}), [=] { return scales(stages); }, {floats}});
  return out;
}

// A few long rows, and many short ones.
std::vector<Case> rows_of_points() {
  std::vector<Case> out;
  for (const int stages : {3, 8})
    for (const auto& [width, rows] :
         {std::pair<int64_t, int64_t>{1 << 20, 1}, {1 << 19, 4}, {1 << 14, 128}, {1 << 10, 2048}, {64, 1 << 14}})
      out.push_back(
          {named({stages_of(stages), size_of(width, rows)}), [=] { return scales(stages, 2); }, {width, rows}});
  return out;
}

std::vector<Case> stencils() {
  std::vector<Case> out;
  for (const int stages : {3, 6, 12})
    for (const int64_t width : {256, 512, 1000, 2048, 4096, 8192})
      out.push_back({named({stages_of(stages), size_of(width, rows_for(width))}),
                     [=] { return blurs(stages); },
                     {width, rows_for(width)},
                     stages});
  return out;
}

std::vector<Case> boxes() {
  std::vector<Case> out;
  for (const int stages : {3, 6, 12})
    for (const int64_t width : {256, 1000, 2048, 8192})
      out.push_back({named({stages_of(stages), size_of(width, rows_for(width))}),
                     [=] {
                       return chain(stages, box(true), kF32, 2, {{x - 1, x + 1}, {y - 1, y + 1}});
                     },
                     {width, rows_for(width)},
                     stages});
  return out;
}

// Downsampling by two `levels` times, each time after a blur, and upsampling, each time combined with the earlier
// value.
Pair pyramid(int levels) {
  Pipeline p("pyramid");
  std::vector<StageRef> stages;
  const std::vector<Expr> indices{x, y};
  BufferRef source = p.buffer("source", kF32, 2), from = source;
  std::vector<BufferRef> down;
  const auto made = [&](const std::string& name) { return p.buffer(name, kF32, 2); };
  for (int l = 0; l < levels; ++l) {
    const std::string n = std::to_string(l);
    BufferRef smooth = made("smooth" + n), half = made("half" + n);
    stages.push_back(p.stage("blur" + n, blur(true)).reads(from, {x, {y - 1, y + 1}}).writes(smooth, indices));
    stages.push_back(
        p.stage("halve" + n, halve()).reads(smooth, {{2 * x, 2 * x + 1}, {2 * y, 2 * y + 1}}).writes(half, indices));
    down.push_back(smooth);
    from = half;
  }
  for (int l = levels; l-- > 0;) {
    const std::string n = std::to_string(l);
    BufferRef large = made("large" + n), sum = made(l == 0 ? "result" : "sum" + n);
    stages.push_back(
        p.stage("twice" + n, twice()).reads(from, {floordiv(x, 2), floordiv(y, 2)}).writes(large, indices));
    stages.push_back(p.stage("combine" + n, combine())
                         .reads(down[static_cast<size_t>(l)], {x, y})
                         .reads(large, {x, y})
                         .writes(sum, indices));
    from = sum;
  }
  return {std::move(p), source, from, stages.back(), stages};
}
std::vector<Case> pyramids() {
  std::vector<Case> out;
  for (const int levels : {1, 2, 3})
    for (const int64_t width : {512, 2048, 4096})
      out.push_back({named({std::to_string(levels) + " levels", size_of(width, rows_for(width))}),
                     [=] { return pyramid(levels); },
                     {width, rows_for(width)},
                     4 << levels});
  return out;
}

// Each value is blurred, and what the blur has removed is added back: every value has two readers, one of them later.
Pair sharpened(int times) {
  Pipeline p("sharpened");
  std::vector<StageRef> stages;
  BufferRef source = p.buffer("source", kF32, 2), from = source;
  for (int t = 0; t < times; ++t) {
    const std::string n = std::to_string(t);
    BufferRef smooth = p.buffer("smooth" + n, kF32, 2), smoother = p.buffer("smoother" + n, kF32, 2),
              sharp = p.buffer(t + 1 == times ? "result" : "sharp" + n, kF32, 2);
    stages.push_back(p.stage("blur" + n, blur(true)).reads(from, {x, {y - 1, y + 1}}).writes(smooth, {x, y}));
    stages.push_back(p.stage("again" + n, blur(true)).reads(smooth, {x, {y - 1, y + 1}}).writes(smoother, {x, y}));
    stages.push_back(
        p.stage("sharpen" + n, combine()).reads(from, {x, y}).reads(smoother, {x, y}).writes(sharp, {x, y}));
    from = sharp;
  }
  return {std::move(p), source, from, stages.back(), stages};
}
std::vector<Case> sharpenings() {
  std::vector<Case> out;
  for (const int times : {1, 2, 4})
    for (const int64_t width : {512, 2048, 8192})
      out.push_back({named({std::to_string(times) + " times", size_of(width, rows_for(width))}),
                     [=] { return sharpened(times); },
                     {width, rows_for(width)},
                     2 * times});
  return out;
}

// Held out: kinds, stages and sizes that nothing was tuned for. TENON_FUZZ_FIRST: the first seed.
std::vector<Case> drawn() {
  constexpr uint32_t kSeeds = 12;
  const uint32_t first = testing::first_seed();
  std::vector<Case> out;
  for (uint32_t seed = first; seed < first + kSeeds; ++seed) {
    std::mt19937 random(seed);
    const int stages = std::uniform_int_distribution(2, 14)(random);
    const int64_t width = std::uniform_int_distribution<int64_t>(100, 12000)(random), rows = rows_for(width);
    const std::string size = named({"seed " + std::to_string(seed), stages_of(stages), size_of(width, rows)});
    switch (random() % 3) {
      case 0: out.push_back({size + ", points", [=] { return scales(stages, 2); }, {width, rows}}); break;
      case 1: out.push_back({size + ", stencils", [=] { return blurs(stages); }, {width, rows}, stages}); break;
      default: {
        const int times = (stages + 2) / 3;
        out.push_back({size + ", sharpened", [=] { return sharpened(times); }, {width, rows}, 2 * times});
      }
    }
  }
  return out;
}

}  // namespace

const std::vector<Family>& sweep_families() {
  static const std::vector<Family> all = {{"points", &points}, {"rows", &rows_of_points}, {"stencils", &stencils},
                                          {"boxes", &boxes},   {"pyramids", &pyramids},   {"sharpenings", &sharpenings},
                                          {"drawn", &drawn}};
  return all;
}

}  // namespace tenon::program::bench
