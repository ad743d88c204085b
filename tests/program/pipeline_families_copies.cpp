// Families with copies and stages: padding, transposes, broadcasts, views.
#include <program/pipeline_cases.hpp>

namespace tenon::program {

namespace {

const Expr x = var("x"), y = var("y"), z = var("z"), k = var("k"), dx = var("dx");

void contiguous(CaseRun& r) {
  Pipeline p("contiguous");
  BufferRef src = p.buffer("src", kI32, 1), mid = p.buffer("mid", kI32, 1), dst = p.buffer("dst", kI32, 0);
  p.stage("add", add_constant<int32_t>(1)).reads(src, {x}).writes(mid, {x});
  p.copy(mid, {0}, dst, {});
  Array<int32_t> a({1}), o(Index{});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index&) { return a(0) + 1; });
}

void affine_1d(CaseRun& r) {
  const int64_t step = r["S"], offset = r["DX"];
  Pipeline p("affine_1d");
  BufferRef src = p.buffer("src", kI32, 1), flat = p.buffer("flat", kI32, 1), mid = p.buffer("mid", kI32, 2),
            dst = p.buffer("dst", kI32, 2);
  p.stage("add", add_constant<int32_t>(1)).reads(src, {x}).writes(flat, {x});
  StageRef unflatten = p.copy(flat, {x + y * step + offset}, mid, {x, y});
  StageRef consumer =
      p.stage("consumer", add_constant<int32_t>(1)).reads(mid, {x, y}).writes(dst, {x, y}).loops({{y, 2}});
  unflatten.compute_at(consumer, y);
  mid.store_at(consumer, y);
  Array<int32_t> a({8 + 6 * step + offset}), o({8, 6});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a(at[0] + at[1] * step + offset) + 2; });
}

void padded(CaseRun& r) {
  const int64_t ox = r["offset_x"], oy = r["offset_y"];
  const bool permuted = r["split_y"] > 0;
  Pipeline p("padded");
  BufferRef src = p.buffer("src", kI8, 2), mid = p.buffer("mid", kI8, 2), pad = p.buffer("filler", kI8, 2),
            wide = p.buffer("wide", kI8, 2), dst = p.buffer("dst", kI8, 2);
  StageRef copy_in = p.stage("copy_in", opaque_copy<int8_t>()).reads(src, {x, y}).writes(mid, {x, y});
  if (r["compute_padding"])
    p.stage("iota", kernel<int8_t>("iota", [](const CallContext&,
                                              const Index& at) { return static_cast<int8_t>(at[1] * 2 + at[0]); }))
        .writes(pad, {x, y});
  const Windows map = permuted ? Windows{y + oy, x + ox} : Windows{x + ox, y + oy};
  p.padded_copy(mid, map, wide, {x, y}, {src.bounds(0), src.bounds(1)},
                r["compute_padding"] ? Padding::from(pad) : Padding::value(int8_t{3}));
  StageRef copy_out = p.stage("copy_out", opaque_copy<int8_t>()).reads(wide, {x, y}).writes(dst, {x, y});
  if (r["split_y"] > 0) {
    copy_in.compute_root();
    copy_out.loops({{y, r["split_y"]}});
    wide.store_at(copy_out, y);
  }
  Index mins(2), extents{8, 5};
  if (r["in_bounds"]) mins = {ox, oy};
  if (permuted) std::swap(mins[0], mins[1]), std::swap(extents[0], extents[1]);
  Array<int8_t> a(mins, extents), o({8, 5});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) {
    Index from{at[0] + ox, at[1] + oy};
    if (permuted) std::swap(from[0], from[1]);
    if (a.has(from)) return static_cast<int64_t>(a.at(from));
    return r["compute_padding"] ? at[1] * 2 + at[0] : int64_t{3};
  });
}

int64_t sum3x3(const Array<int16_t>& a, int64_t u, int64_t v) {
  int64_t sum = 0;
  for (int64_t ky = -1; ky <= 1; ++ky)
    for (int64_t kx = -1; kx <= 1; ++kx) sum += a.at({u + kx, v + ky});
  return sum;
}

void copied_output(CaseRun& r) {
  const int64_t ox = r["offset_x"], oy = r["offset_y"];
  Pipeline p("copied_output");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), dst = p.buffer("dst", kI16, 2);
  StageRef stencil = p.stage("stencil", window_sum<int16_t>({-1, -1}, {1, 1}))
                         .reads(src, {{x - 1, x + 1}, {y - 1, y + 1}})
                         .writes(mid, {x, y});
  StageRef copied = p.copy(mid, {x + ox, y + oy}, dst, {x, y});
  if (r["schedule"] > 0) copied.loops({{y, 1}});
  if (r["schedule"] == 1) stencil.compute_root();
  Array<int16_t> a({ox - 1, oy - 1}, {22, 12}), o({20, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return sum3x3(a, at[0] + ox, at[1] + oy); });
}

void copied_input(CaseRun& r) {
  const int64_t ox = r["offset_x"], oy = r["offset_y"];
  Pipeline p("copied_input");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), dst = p.buffer("dst", kI16, 2);
  StageRef copied = p.copy(src, {x + ox, y + oy}, mid, {x, y});
  StageRef stencil = p.stage("stencil", window_sum<int16_t>({-1, -1}, {1, 1}))
                         .reads(mid, {{x - 1, x + 1}, {y - 1, y + 1}})
                         .writes(dst, {x, y});
  if (r["schedule"] > 0) stencil.loops({{y, 1}});
  if (r["schedule"] == 1) copied.compute_root();
  Array<int16_t> a({ox - 1, oy - 1}, {22, 12}), o({20, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return sum3x3(a, at[0] + ox, at[1] + oy); });
}

// Dims of the source are the indices `order` of the destination; extents to match.
struct Permuted {
  std::vector<Expr> map;
  Index extents;
};
Permuted permuted(CaseRun& r, const std::vector<Expr>& indices, const Index& extents) {
  Permuted out;
  for (const char* name : {"p0", "p1", "p2"}) {
    out.map.push_back(indices[static_cast<size_t>(r[name])]);
    out.extents.push_back(extents[static_cast<size_t>(r[name])]);
  }
  return out;
}
Index picked(CaseRun& r, const Index& at) {
  return {at[static_cast<size_t>(r["p0"])], at[static_cast<size_t>(r["p1"])], at[static_cast<size_t>(r["p2"])]};
}

void transposed_output(CaseRun& r) {
  r.options.alias_copies = !r["no_alias"];
  Pipeline p("transposed_output");
  BufferRef src = p.buffer("src", kI16, 3), mid = p.buffer("mid", kI16, 3), dst = p.buffer("dst", kI16, 3);
  const Index extents{20, 4, 7};
  const Permuted from = permuted(r, {x, y, z}, extents);
  p.stage("add", add_constant<int16_t>(1)).reads(src, {x, y, z}).writes(mid, {x, y, z});
  p.copy(mid, {from.map.begin(), from.map.end()}, dst, {x, y, z});
  Array<int16_t> a(from.extents), o(extents);
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a.at(picked(r, at)) + 1; });
}

void stacked_output(CaseRun& r) {
  Pipeline p("stacked_output");
  BufferRef src1 = p.buffer("src1", kI16, 2), src2 = p.buffer("src2", kI16, 2), mid1 = p.buffer("mid1", kI16, 2),
            mid2 = p.buffer("mid2", kI16, 2), dst = p.buffer("dst", kI16, 3);
  p.stage("add1", add_constant<int16_t>(1)).reads(src1, {x, y}).writes(mid1, {x, y});
  p.stage("add2", add_constant<int16_t>(1)).reads(src2, {x, y}).writes(mid2, {x, y});
  p.stack({mid1, mid2}, dst, {x, y, z}, 2);
  Array<int16_t> a({20, 8}), a2({20, 8}), o({20, 8, 2});
  a.fill_pattern(1), a2.fill_pattern(2);
  r.run(p, {src1, src2}, {dst}, {{"src1", a.argument()}, {"src2", a2.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return (at[2] ? a2 : a)(at[0], at[1]) + 1; });
}

void broadcast(CaseRun& r, bool constant) {
  r.options.alias_copies = !r["no_alias"];
  Pipeline p("broadcast");
  BufferRef src1 = p.buffer("src1", kI32, 2), wide = p.buffer("wide", kI32, 2), dst = p.buffer("dst", kI32, 2);
  BufferRef src2 = constant ? p.constant("src2", kI32, 2) : p.buffer("src2", kI32, 2);
  p.broadcast(src2, wide, {x, y});
  StageRef f = p.stage("sub", pointwise2<int32_t>("sub", [](int32_t a, int32_t m) { return a - m; }))
                   .reads(src1, {x, y})
                   .reads(wide, {x, y})
                   .writes(dst, {x, y});
  if (r["split_y"] > 0) f.loops({{y, r["split_y"]}});
  Index extents{20, 4};
  extents[static_cast<size_t>(r["broadcast_dim"])] = 1;
  // What a constant holds is known when the program is built.
  for (int d = 0; constant && d < 2; ++d) src2.has_bounds(d, {0, extents[static_cast<size_t>(d)] - 1});
  Array<int32_t> a({20, 4}), m(extents), o({20, 4});
  a.fill_pattern(1), m.fill_pattern(2);
  std::vector<BufferRef> inputs{src1};
  if (!constant) inputs.push_back(src2);
  r.run(p, inputs, {dst}, {{"src1", a.argument()}, {"src2", m.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) {
    Index from = at;
    from[static_cast<size_t>(r["broadcast_dim"])] = 0;
    return a.at(at) - m.at(from);
  });
}
void broadcast_input(CaseRun& r) { broadcast(r, false); }
void broadcast_constant(CaseRun& r) { broadcast(r, true); }

void constrained_transpose(CaseRun& r) {
  r.options.alias_copies = !r["no_alias"];
  constexpr int64_t kW = 20, kH = 4, kD = 7;
  Pipeline p("constrained_transpose");
  BufferRef src = p.buffer("src", kI16, 3), mid1 = p.buffer("mid1", kI16, 3), mid2 = p.buffer("mid2", kI16, 3),
            dst = p.buffer("dst", kI16, 3);
  const auto fix = [&](BufferRef& b) { b.stride(0, 2).stride(1, 2 * kW).stride(2, 2 * kW * kW); };
  if (r["fix1"]) fix(mid1);
  if (r["fix2"]) fix(mid2);
  p.stage("add1", add_constant<int16_t>(1)).reads(src, {x, y, z}).writes(mid1, {x, y, z});
  StageRef transposed = p.copy(mid1, {x, z, y}, mid2, {x, y, z});
  p.stage("add2", add_constant<int16_t>(1)).reads(mid2, {x, y, z}).writes(dst, {x, y, z});
  if (r["with_loops"]) {
    transposed.loops({{y, 1}});
    mid1.store_at(transposed, y);
  }
  Array<int16_t> a({kW, kD, kH}), o({kW, kH, kD});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a(at[0], at[2], at[1]) + 2; });
}

void constrained_transpose_broadcast(CaseRun& r) {
  r.options.alias_copies = !r["no_alias"];
  const size_t one = static_cast<size_t>(r["broadcast_dim"]);
  Index extents{20, 4, 5};
  extents[one] = 1;
  Pipeline p("constrained_transpose_broadcast");
  BufferRef src = p.buffer("src", kI16, 3), mid1 = p.buffer("mid1", kI16, 3), mid2 = p.buffer("mid2", kI16, 3),
            dst = p.buffer("dst", kI16, 3);
  int64_t stride = 2;
  for (size_t d = 0; d < 3; ++d) {
    mid2.stride(static_cast<int>(d), d == one ? 0 : stride);
    stride *= extents[d];
  }
  p.stage("add1", add_constant<int16_t>(1)).reads(src, {x, y, z}).writes(mid1, {x, y, z});
  p.copy(mid1, {x, z, y}, mid2, {x, y, z});
  p.stage("add2", add_constant<int16_t>(1)).reads(mid2, {x, y, z}).writes(dst, {x, y, z});
  Array<int16_t> a({extents[0], extents[2], extents[1]}), o(extents);
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a(at[0], at[2], at[1]) + 2; });
}

void padded_stencil_alias(CaseRun& r) {
  Pipeline p("padded_stencil_alias");
  BufferRef src = p.buffer("src", kI16, 2), added = p.buffer("added", kI16, 2), wide = p.buffer("wide", kI16, 2),
            stencil = p.buffer("stencil", kI16, 3), dst = p.buffer("dst", kI16, 2);
  p.stage("add", add_constant<int16_t>(1)).reads(src, {x, y}).writes(added, {x, y});
  p.padded_copy(added, {x, y}, wide, {x, y}, {src.bounds(0), src.bounds(1)}, Padding::value(int16_t{0}));
  p.copy(wide, {x, y + k - 1}, stencil, {x, y, k});
  p.stage("reduce", kernel<int16_t>("reduce", [](const CallContext& c, const Index& at) {
             const auto in = c.elements<const int16_t>(0);
             return static_cast<int16_t>(in(at[0], at[1], 0) + in(at[0], at[1], 1) + in(at[0], at[1], 2));
           })).reads(stencil, {x, y, {0, 2}}).writes(dst, {x, y});
  Array<int16_t> a({20, 30}), o({20, 30});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) {
    int64_t sum = 0;
    for (int64_t v = at[1] - 1; v <= at[1] + 1; ++v) sum += a.has({at[0], v}) ? a(at[0], v) + 1 : 0;
    return sum;
  });
}

void padded_transposed(CaseRun& r) {
  Pipeline p("padded_transposed");
  BufferRef src = p.buffer("src", kI16, 3), mid = p.buffer("mid", kI16, 3), wide = p.buffer("wide", kI16, 3),
            dst = p.buffer("dst", kI16, 3);
  const Index extents{8, 5, 3};
  const Permuted from = permuted(r, {x, y, z}, extents);
  p.stage("add", add_constant<int16_t>(1)).reads(src, {x, y, z}).writes(mid, {x, y, z});
  p.padded_copy(mid, {from.map.begin(), from.map.end()}, wide, {x, y, z}, {src.bounds(0), src.bounds(1), src.bounds(2)},
                Padding::value(int16_t{0}));
  p.stage("copy_out", opaque_copy<int16_t>()).reads(wide, {x, y, z}).writes(dst, {x, y, z});
  Array<int16_t> a(from.extents), o(extents);
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a.at(picked(r, at)) + 1; });
}

void broadcast_new_dim(CaseRun& r) {
  Pipeline p("broadcast_new_dim");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), deep = p.buffer("deep", kI16, 3),
            sliced = p.buffer("sliced", kI16, 2), dst = p.buffer("dst", kI16, 2);
  p.stage("add", add_constant<int16_t>(1)).reads(src, {x, y}).writes(mid, {x, y});
  p.copy(mid, {x, y}, deep, {x, y, z});
  p.slice(deep, sliced, {x, y}, 2, 3);
  p.stage("copy_out", opaque_copy<int16_t>()).reads(sliced, {x, y}).writes(dst, {x, y});
  Array<int16_t> a({8, 5}), o({8, 5});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a.at(at) + 1; });
}

void multiple_shared_aliases(CaseRun& r) {
  Pipeline p("multiple_shared_aliases");
  BufferRef src = p.buffer("src", kI32, 1), mid = p.buffer("mid", kI32, 1), mid1 = p.buffer("mid1", kI32, 1),
            mid2 = p.buffer("mid2", kI32, 1), dst = p.buffer("dst", kI32, 1);
  p.stage("producer", add_constant<int32_t>(1)).reads(src, {x}).writes(mid, {x}).loops({{x, 1}});
  StageRef copy1 = p.padded_copy(mid, {x - 6}, mid1, {x}, {{0, 1}}, Padding::value(int32_t{0}));
  StageRef copy2 = p.padded_copy(mid, {x - 4}, mid2, {x}, {{0, 1}}, Padding::value(int32_t{0}));
  StageRef consumer = p.stage("consumer", pointwise2<int32_t>("sub", [](int32_t a, int32_t m) { return a - m; }))
                          .reads(mid1, {x})
                          .reads(mid2, {x})
                          .writes(dst, {x})
                          .loops({{x, 1}});
  copy1.compute_at(consumer, x), copy2.compute_at(consumer, x);
  mid1.store_at(consumer, x), mid2.store_at(consumer, x);
  Array<int32_t> a({2}), o({12});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  const auto at_or_0 = [&](int64_t u) { return a.has({u}) ? a(u) + 1 : 0; };
  r.expect(o, [&](const Index& at) { return at_or_0(at[0] - 6) - at_or_0(at[0] - 4); });
}

void stencil_1d(CaseRun& r) {
  r.options.alias_copies = !r["no_alias"];
  const int64_t stride = r["S"], dilation = r["D"], taps = r["K"];
  Pipeline p("stencil_1d");
  BufferRef src = p.buffer("src", kI16, 1), stencil = p.buffer("stencil", kI16, 2), dst = p.buffer("dst", kI16, 1);
  p.copy(src, {x * stride + dx * dilation}, stencil, {x, dx});
  StageRef reduce = p.stage("reduce", kernel<int16_t>("reduce", [](const CallContext& c, const Index& at) {
                              const auto in = c.elements<const int16_t>(0);
                              int16_t sum = 0;
                              for (int64_t u = in.min(1); u <= in.max(1); ++u)
                                sum = static_cast<int16_t>(sum + in(at[0], u));
                              return sum;
                            })).reads(stencil, {x, {0, taps - 1}}).writes(dst, {x});
  if (r["split"] > 0) reduce.loops({{x, r["split"]}});
  Array<int16_t> a({9 * stride + (taps - 1) * dilation + 1}), o({10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) {
    int64_t sum = 0;
    for (int64_t u = 0; u < taps; ++u) sum += a(at[0] * stride + u * dilation);
    return sum;
  });
}

void stencil_variable_run(CaseRun& r, int64_t stride, int64_t dilation, int64_t taps) {
  Pipeline p("stencil_variable");
  const Expr s = p.scalar("s"), d = p.scalar("d"), n = p.scalar("n");
  BufferRef src = p.buffer("src", kI16, 1), stencil = p.buffer("stencil", kI16, 2), dst = p.buffer("dst", kI16, 1);
  p.copy(src, {x * max(Expr(1), s) + dx * max(Expr(1), d)}, stencil, {x, dx});
  StageRef reduce = p.stage("reduce", kernel<int16_t>("reduce", [](const CallContext& c, const Index& at) {
                              const auto in = c.elements<const int16_t>(0);
                              int16_t sum = 0;
                              for (int64_t u = 0; u < c.scalars[0]; ++u) sum = static_cast<int16_t>(sum + in(at[0], u));
                              return sum;
                            })).reads(stencil, {x, {0, n - 1}}).writes(dst, {x}).scalars({n});
  if (r["split"] > 0) reduce.loops({{x, r["split"]}});
  Array<int16_t> a({9 * stride + (taps - 1) * dilation + 1}), o({10});
  a.fill_pattern();
  r.scalars = {{"s", stride}, {"d", dilation}, {"n", taps}};
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) {
    int64_t sum = 0;
    for (int64_t u = 0; u < taps; ++u) sum += a(at[0] * stride + u * dilation);
    return sum;
  });
}

// Without aliases each case is one of the 27 runs; with them a case is all.
void stencil_variable(CaseRun& r) {
  r.options.alias_copies = !r["no_alias"];
  // Cases in the file: two with aliases, then 27 without a split and 27 with one, less one of each that is shared.
  if (!r["no_alias"]) {
    for (int64_t s = 1; s <= 3; ++s)
      for (int64_t d = 1; d <= 3; ++d)
        for (int64_t n = 1; n <= 3; ++n) stencil_variable_run(r, s, d, n);
    return;
  }
  const int64_t run = (r.number() - 2) % 27;
  stencil_variable_run(r, run / 9 + 1, run / 3 % 3 + 1, run % 3 + 1);
}

}  // namespace

void add_copy_families(Families& f) {
  f["copy.contiguous"] = contiguous;
  f["copy.affine_1d"] = affine_1d;
  f["copy.padded"] = padded;
  f["copy.copied_output"] = copied_output;
  f["copy.copied_input"] = copied_input;
  f["copy.transposed_output"] = transposed_output;
  f["copy.stacked_output"] = stacked_output;
  f["copy.broadcast_input"] = broadcast_input;
  f["copy.broadcast_constant"] = broadcast_constant;
  f["copy.constrained_transpose"] = constrained_transpose;
  f["copy.constrained_transpose_broadcast"] = constrained_transpose_broadcast;
  f["copy.padded_stencil_alias"] = padded_stencil_alias;
  f["copy.padded_transposed"] = padded_transposed;
  f["copy.broadcast_new_dim"] = broadcast_new_dim;
  f["copy.multiple_shared_aliases"] = multiple_shared_aliases;
  f["stencil_copy.1d"] = stencil_1d;
  f["stencil_copy.variable"] = stencil_variable;
}

}  // namespace tenon::program
