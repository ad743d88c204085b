// Families of a single copy.
#include <program/pipeline_cases.hpp>

namespace tenon::program {

namespace {

// destination(indices) = source(map(indices)), with expected values by `from`; padding outside the source.
template <class T>
struct OneCopy {
  std::vector<Expr> indices;
  Windows map;
  Array<T> source, destination;
  std::function<Index(const Index&)> from;
  std::optional<T> padding = {};
  Windows keep = {};
  std::vector<LoopOver> loops = {};
};

template <class T>
void run_copy(CaseRun& r, OneCopy<T> c) {
  Pipeline p("one_copy");
  const ElementType element = element_of<T>();
  BufferRef src = p.buffer("src", element, static_cast<int>(c.source.extents().size()));
  BufferRef dst = p.buffer("dst", element, static_cast<int>(c.destination.extents().size()));
  StageRef copy = c.padding ? p.padded_copy(src, c.map, dst, c.indices, c.keep, Padding::value(*c.padding))
                            : p.copy(src, c.map, dst, c.indices);
  copy.loops(c.loops);
  c.source.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", c.source.argument()}, {"dst", c.destination.argument()}});
  r.expect(c.destination, [&](const Index& at) {
    const Index from = c.from(at);
    bool kept = !c.padding || c.source.has(from);
    for (size_t d = 0; d < c.keep.size(); ++d)
      kept = kept && from[d] >= c.keep[d].first.constant() && from[d] <= c.keep[d].last.constant();
    return kept ? c.source.at(from) : *c.padding;
  });
}

const Expr x = var("x"), y = var("y"), z = var("z"), dx = var("dx"), dy = var("dy");

// im2col views with their indices in any order, at any position in the output.
void stencil_only(CaseRun& r, const std::vector<Expr>& indices) {
  const int64_t stride = r["S"], dilation = r["D"], taps = r["K"];
  const int64_t kMins[] = {0, 2, -3};
  for (int run = 0; run < 81; ++run) {
    Index mins, extents;
    std::map<std::string, size_t> at;
    for (size_t d = 0, rest = static_cast<size_t>(run); d < 4; ++d, rest /= 3) {
      const std::string name(indices[d].name());
      at[name] = d;
      mins.push_back(kMins[rest % 3]);
      extents.push_back(name == "x" ? 10 : name == "y" ? 5 : taps);
    }
    const auto low = [&](const char* a, const char* b) { return mins[at[a]] * stride + mins[at[b]] * dilation; };
    const Index source_mins{low("x", "dx"), low("y", "dy")};
    const Index source_extents{9 * stride + (taps - 1) * dilation + 1, 4 * stride + (taps - 1) * dilation + 1};
    run_copy<int16_t>(
        r, {indices,
            {x * stride + dx * dilation, y * stride + dy * dilation},
            Array<int16_t>(source_mins, source_extents),
            Array<int16_t>(mins, extents),
            [=](const Index& i) mutable {
              return Index{i[at["x"]] * stride + i[at["dx"]] * dilation, i[at["y"]] * stride + i[at["dy"]] * dilation};
            }});
  }
}
void stencil_x_dx(CaseRun& r) { stencil_only(r, {x, dx, y, dy}); }
void stencil_dx_x(CaseRun& r) { stencil_only(r, {dx, x, dy, y}); }
void stencil_x_y_dx_dy(CaseRun& r) { stencil_only(r, {x, y, dx, dy}); }

void stencil_variable(CaseRun& r) {
  for (int64_t s = 1; s <= 3; ++s)
    for (int64_t d = 1; d <= 3; ++d)
      for (const int64_t min_x : {0, 2, -3})
        for (const int64_t min_dx : {0, 2, -3}) {
          Pipeline p("stencil_variable");
          const Expr vs = p.scalar("s"), vd = p.scalar("d");
          BufferRef src = p.buffer("src", kI16, 1), dst = p.buffer("dst", kI16, 2);
          p.copy(src, {x * max(Expr(1), vs) + dx * max(Expr(1), vd)}, dst, {x, dx});
          Array<int16_t> a({min_x * s + min_dx * d}, {9 * s + 4 * d + 1}), o({min_x, min_dx}, {10, 5});
          a.fill_pattern();
          r.scalars = {{"s", s}, {"d", d}};
          r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
          r.expect(o, [&](const Index& at) { return a(at[0] * s + at[1] * d); });
        }
}

std::vector<LoopOver> loop_over(CaseRun& r, const Expr& index) {
  if (r["split"] == 0) return {};
  return {{index, r["split"]}};
}

void flip_x(CaseRun& r) {
  run_copy<int8_t>(
      r, {{x}, {-x}, Array<int8_t>({-9}, {10}), Array<int8_t>({10}), [](const Index& i) { return Index{-i[0]}; }});
}
void flip_y(CaseRun& r) {
  run_copy<int8_t>(r, {{x, y, z}, {x, -y, z}, Array<int8_t>({0, -19, 0}, {10, 20, 10}), Array<int8_t>({10, 20, 10}),
                       [](const Index& i) { return Index{i[0], -i[1], i[2]}; }, {}, {}, loop_over(r, y)});
}
void upsample_y(CaseRun& r) {
  run_copy<int8_t>(r, {{x, y}, {x, floordiv(y, 2)}, Array<int8_t>({10, 10}), Array<int8_t>({10, 20}),
                       [](const Index& i) { return Index{i[0], i[1] / 2}; }, {}, {}, loop_over(r, y)});
}
void downsample_y(CaseRun& r) {
  run_copy<int8_t>(r, {{x, y}, {x, 2 * y}, Array<int8_t>({10, 40}), Array<int8_t>({10, 20}),
                       [](const Index& i) { return Index{i[0], 2 * i[1]}; }, {}, {}, loop_over(r, y)});
}

void concatenate(CaseRun& r) {
  const int64_t h1 = r["H1"], h2 = r["H2"];
  Pipeline p("concatenate");
  BufferRef src1 = p.buffer("src1", kI8, 3), src2 = p.buffer("src2", kI8, 3), dst = p.buffer("dst", kI8, 3);
  p.concatenate({src1, src2}, dst, {x, y, z}, 1, {0, src1.extent(1), src1.extent(1) + src2.extent(1)});
  Array<int8_t> a({8, h1, 3}), a2({8, h2, 3}), o({8, h1 + h2, 3});
  a.fill_pattern(1), a2.fill_pattern(2);
  r.run(p, {src1, src2}, {dst}, {{"src1", a.argument()}, {"src2", a2.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return at[1] < h1 ? a.at(at) : a2(at[0], at[1] - h1, at[2]); });
}

void stack(CaseRun& r) {
  // The file's dims are 0, 1, 2, 3 and 6, of which two are beyond the rank: the last one then.
  const int dim = static_cast<int>(std::min<int64_t>(r["dim_index"], 2));
  Pipeline p("stack");
  BufferRef src1 = p.buffer("src1", kI8, 2), src2 = p.buffer("src2", kI8, 2), dst = p.buffer("dst", kI8, 3);
  p.stack({src1, src2}, dst, {x, y, z}, dim);
  Index extents{8, 5};
  extents.insert(extents.begin() + dim, 2);
  Array<int8_t> a({8, 5}), a2({8, 5}), o(extents);
  a.fill_pattern(1), a2.fill_pattern(2);
  r.run(p, {src1, src2}, {dst}, {{"src1", a.argument()}, {"src2", a2.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](Index at) {
    const bool second = at[static_cast<size_t>(dim)] == 1;
    at.erase(at.begin() + dim);
    return (second ? a2 : a).at(at);
  });
}

void tile(CaseRun& r) {
  const Expr xi = var("xi"), yi = var("yi"), xo = var("xo"), yo = var("yo");
  run_copy<int32_t>(r, {{xi, yi, xo, yo},
                        {4 * xo + xi, 4 * yo + yi},
                        Array<int32_t>({12, 8}),
                        Array<int32_t>({4, 4, 3, 2}),
                        [](const Index& i) {
                          return Index{4 * i[2] + i[0], 4 * i[3] + i[1]};
                        },
                        {},
                        {},
                        loop_over(r, xo)});
}

// The 6 permutations, then maps that use an index twice or omit one.
void transpose(CaseRun& r) {
  std::vector<std::vector<size_t>> maps{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (size_t a = 0; a < 3; ++a)
    for (size_t b = 0; b < 3; ++b) maps.push_back({a, b});
  for (size_t a = 0; a < 3; ++a) maps.push_back({a});
  maps.push_back({1, 1, 0});
  const std::vector<size_t> map = maps[static_cast<size_t>(r.number())];
  const Index extents{10, 20, 10};
  Index from;
  Windows windows;
  for (const size_t d : map) {
    from.push_back(extents[d]);
    windows.emplace_back(std::vector<Expr>{x, y, z}[d]);
  }
  run_copy<int32_t>(r, {{x, y, z}, windows, Array<int32_t>(from), Array<int32_t>(extents), [map](const Index& i) {
                          Index out;
                          for (const size_t d : map) out.push_back(i[d]);
                          return out;
                        }});
}

void broadcast_dim(CaseRun& r, bool sliced, bool optional) {
  const size_t dim = static_cast<size_t>(r["dim"]);
  Index from{8, 5, 3};
  Windows map{x, y, z};
  from[dim] = 1;
  map[dim] = Window(0);
  if (sliced)
    from.erase(from.begin() + static_cast<ptrdiff_t>(dim)), map.erase(map.begin() + static_cast<ptrdiff_t>(dim));
  if (optional)
    for (int d = 0; d < 3; ++d)
      map[static_cast<size_t>(d)] =
          select(equal(extent_of("src", d), 1), min_of("src", d), std::vector<Expr>{x, y, z}[static_cast<size_t>(d)]);
  run_copy<int8_t>(r, {{x, y, z}, map, Array<int8_t>(from), Array<int8_t>({8, 5, 3}), [dim, sliced](Index i) {
                         i[dim] = 0;
                         if (sliced) i.erase(i.begin() + static_cast<ptrdiff_t>(dim));
                         return i;
                       }});
}
void broadcast(CaseRun& r) { broadcast_dim(r, false, false); }
void broadcast_sliced(CaseRun& r) { broadcast_dim(r, true, false); }
void broadcast_optional(CaseRun& r) { broadcast_dim(r, false, true); }

void trivial(CaseRun& r) {
  const size_t rank = static_cast<size_t>(r.number());
  const Index full{10, 20, 5};
  const std::vector<Expr> all{x, y, z};
  Index extents(full.begin(), full.begin() + static_cast<ptrdiff_t>(rank));
  std::vector<Expr> indices(all.begin(), all.begin() + static_cast<ptrdiff_t>(rank));
  const auto same = [](const Index& i) { return i; };
  run_copy<int32_t>(
      r, {indices, Windows(indices.begin(), indices.end()), Array<int32_t>(extents), Array<int32_t>(extents), same});
  if (rank != 1 && rank != 2) return;
  for (const int64_t offset : {-2, 3}) {
    Windows map;
    for (const Expr& index : indices) map.emplace_back(index + offset);
    run_copy<int32_t>(r, {indices, map, Array<int32_t>(extents), Array<int32_t>(extents), [offset](Index i) {
                            for (int64_t& v : i) v += offset;
                            return i;
                          }, int32_t{77}});
  }
}

void padded(CaseRun& r) {
  run_copy<int8_t>(r, {{x, y}, {x - 3, y - 2}, Array<int8_t>({7, 10}), Array<int8_t>({13, 14}),
                       [](const Index& i) { return Index{i[0] - 3, i[1] - 2}; }, int8_t{0}});
}
void custom_pad(CaseRun& r) {
  run_copy<int8_t>(r, {{x, y},
                       {x, y},
                       Array<int8_t>({10, 10}),
                       Array<int8_t>({7, 10}),
                       [](const Index& i) { return i; },
                       int8_t{0},
                       {{1, 8}, {2, 4}}});
}

void batch_reshape(CaseRun& r) {
  const Expr flat = var("flat"), n = var("n");
  if (r["opaque"] == 0) {
    run_copy<int32_t>(r, {{flat, n},
                          {mod(flat, 8), mod(floordiv(flat, 8), 5), floordiv(flat, 40), n},
                          Array<int32_t>({8, 5, 3, 3}),
                          Array<int32_t>({120, 3}),
                          [](const Index& i) {
                            return Index{i[0] % 8, i[0] / 8 % 5, i[0] / 40, i[1]};
                          }});
    return;
  }
  Pipeline p("batch_reshape");
  BufferRef src = p.buffer("src", kI32, 4), dst = p.buffer("dst", kI32, 2);
  p.stage("reshape", kernel<int32_t>("reshape", [](const CallContext& c, const Index& i) {
             return c.elements<const int32_t>(0)(i[0] % 8, i[0] / 8 % 5, i[0] / 40, i[1]);
           })).reads(src, {src.bounds(0), src.bounds(1), src.bounds(2), n}).writes(dst, {flat, n});
  Array<int32_t> a({8, 5, 3, 3}), o({120, 3});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& i) { return a(i[0] % 8, i[0] / 8 % 5, i[0] / 40, i[1]); });
}

}  // namespace

void add_copy_only_families(Families& f) {
  f["stencil_only_copy.x_dx"] = stencil_x_dx;
  f["stencil_only_copy.dx_x"] = stencil_dx_x;
  f["stencil_only_copy.x_y_dx_dy"] = stencil_x_y_dx_dy;
  f["stencil_only_copy.variable"] = stencil_variable;
  f["copyop.flip_x"] = flip_x;
  f["copyop.flip_y"] = flip_y;
  f["copyop.upsample_y"] = upsample_y;
  f["copyop.downsample_y"] = downsample_y;
  f["copyop.concatenate"] = concatenate;
  f["copyop.stack"] = stack;
  f["copyop.tile"] = tile;
  f["copyop.transpose"] = transpose;
  f["copyop.broadcast"] = broadcast;
  f["copyop.broadcast_copy_sliced"] = broadcast_sliced;
  f["copyop.broadcast_optional"] = broadcast_optional;
  f["copyop.trivial"] = trivial;
  f["copyop.padded"] = padded;
  f["copyop.custom_pad"] = custom_pad;
  f["copyop.batch_reshape"] = batch_reshape;
}

}  // namespace tenon::program
