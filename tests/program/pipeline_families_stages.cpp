// Families of stages: chains, stencils, reductions, resampling.
#include <cmath>

#include <program/pipeline_cases.hpp>

namespace tenon::program {

namespace {

const Expr x = var("x"), y = var("y"), i = var("i"), j = var("j"), s = var("s"), t = var("t"), c = var("c"),
           b = var("b");

void trivial(CaseRun& r) {
  Pipeline p("trivial");
  BufferRef src = p.buffer("src", kI32, 1), dst = p.buffer("dst", kI32, 1);
  StageRef mul = p.stage("mul", times_constant<int32_t>(2)).reads(src, {x}).writes(dst, {x}).in_place();
  if (r["split"] > 0) mul.loops({{x, r["split"], r.workers()}});
  Array<int32_t> a({10}), o({10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return 2 * a.at(at); });
}

void elementwise(CaseRun& r, const Index& extents, const std::vector<Expr>& indices) {
  const int rank = static_cast<int>(extents.size());
  Pipeline p("elementwise");
  BufferRef src = p.buffer("src", kI32, rank), mid = p.buffer("mid", kI32, rank), dst = p.buffer("dst", kI32, rank);
  p.stage("mul", times_constant<int32_t>(2))
      .reads(src, {indices.begin(), indices.end()})
      .writes(mid, indices)
      .in_place();
  StageRef add = p.stage("add", add_constant<int32_t>(1))
                     .reads(mid, {indices.begin(), indices.end()})
                     .writes(dst, indices)
                     .in_place();
  if (r["split"] > 0) {
    std::vector<LoopOver> loops;
    for (const Expr& index : indices) loops.push_back({index, r["split"], r.workers()});
    add.loops(loops);
    if (r["schedule_storage"]) mid.store_at(add, indices[0]).store_in(Placement::stack);
  }
  Array<int32_t> a(extents), o(extents);
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return 2 * a.at(at) + 1; });
}
void elementwise_1d(CaseRun& r) { elementwise(r, {10}, {x}); }
void elementwise_2d(CaseRun& r) { elementwise(r, {15, 10}, {x, y}); }

void store_at_chain5(CaseRun& r) {
  r.options.alias_in_place = r["alias_in_place"] != 0;
  Pipeline p("chain5");
  BufferRef src = p.buffer("src", kI32, 2), dst = p.buffer("dst", kI32, 2);
  std::vector<BufferRef> buffers{src};
  for (int k = 1; k < 5; ++k) buffers.push_back(p.buffer("mid" + std::to_string(k), kI32, 2));
  buffers.push_back(dst);
  std::optional<StageRef> last;
  for (size_t k = 0; k < 5; ++k)
    last = p.stage("stage" + std::to_string(k), k % 2 ? add_constant<int32_t>(1) : times_constant<int32_t>(2))
               .reads(buffers[k], {x, y}).writes(buffers[k + 1], {x, y}).in_place();
  last->loops({{y, 1}});
  for (size_t k = 1; k < 5; ++k) buffers[k].store_at(*last, y).store_in(Placement::stack);
  Array<int32_t> a({15, 10}), o({15, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return 2 * (2 * (2 * a.at(at) + 1) + 1); });
}

void outside_fold(CaseRun& r) {
  Pipeline p("outside_fold");
  BufferRef src = p.buffer("src", kI32, 2), mid = p.buffer("mid", kI32, 2), dst = p.buffer("dst", kI32, 2);
  StageRef mul = p.stage("mul", times_constant<int32_t>(2)).reads(src, {x, y}).writes(mid, {x, y}).in_place();
  StageRef add = p.stage("add", add_constant<int32_t>(1)).reads(mid, {x, y}).writes(dst, {x, y}).in_place();
  mul.loops({{y, 1}}).compute_root();
  add.loops({{y, 1}});
  Array<int32_t> a({15, 10}), o({15, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return 2 * a.at(at) + 1; });
}

KernelHandle matmul() {
  return kernel<int32_t>("matmul", [](const CallContext& k, const Index& at) {
    const auto a = k.elements<const int32_t>(0), m = k.elements<const int32_t>(1);
    int32_t sum = 0;
    for (int64_t n = a.min(1); n <= a.max(1); ++n) sum += a(at[0], n) * m(n, at[1]);
    return sum;
  });
}

void matmuls(CaseRun& r) {
  Pipeline p("matmuls");
  BufferRef a = p.buffer("a", kI32, 2), m = p.buffer("m", kI32, 2), n = p.buffer("n", kI32, 2);
  BufferRef am = p.buffer("am", kI32, 2), dst = p.buffer("dst", kI32, 2);
  am.stride(1, 4).stride(0, 4 * am.extent(1));
  p.stage("first", matmul()).reads(a, {i, a.bounds(1)}).reads(m, {a.bounds(1), j}).writes(am, {i, j});
  StageRef second =
      p.stage("second", matmul()).reads(am, {i, n.bounds(0)}).reads(n, {n.bounds(0), j}).writes(dst, {i, j});
  if (r["split"] > 0) second.loops({{i, r["split"], r.workers()}});
  if (r["split"] > 0 && r.workers() != 1) am.store_at(second, i);
  Array<int32_t> va({10, 10}), vm({10, 10}), vn({10, 10}), o({10, 10});
  va.fill_pattern(1), vm.fill_pattern(2), vn.fill_pattern(3);
  r.run(p, {a, m, n}, {dst}, {{"a", va.argument()}, {"m", vm.argument()}, {"n", vn.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) {
    int32_t sum = 0;
    for (int64_t k = 0; k < 10; ++k)
      for (int64_t l = 0; l < 10; ++l) sum += va(at[0], l) * vm(l, k) * vn(k, at[1]);
    return sum;
  });
}

int64_t sum_around(const Array<int16_t>& a, const Index& at, int64_t radius, int64_t plus) {
  int64_t sum = 0;
  for (int64_t dy = -radius; dy <= radius; ++dy)
    for (int64_t dx = -radius; dx <= radius; ++dx) sum += a.at({at[0] + dx, at[1] + dy}) + plus;
  return sum;
}

void stencil3x3(CaseRun& r) {
  Pipeline p("stencil");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), dst = p.buffer("dst", kI16, 2);
  StageRef add = p.stage("add", add_constant<int16_t>(1)).reads(src, {s, t}).writes(mid, {s, t});
  StageRef stencil = p.stage("stencil", window_sum<int16_t>({-1, -1}, {1, 1}))
                         .reads(mid, {{x - 1, x + 1}, {y - 1, y + 1}})
                         .writes(dst, {x, y});
  if (r["split"] > 0) stencil.loops({{y, r["split"], r.workers()}});
  if (r["split_intermediate"] > 0) add.loops({{t, r["split_intermediate"]}});
  Array<int16_t> a({-1, -1}, {22, 32}), o({20, 30});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return sum_around(a, at, 1, 1); });
}

void outer_product(CaseRun& r) {
  Pipeline p("outer_product");
  BufferRef a = p.buffer("a", kI32, 1), m = p.buffer("m", kI32, 1), dst = p.buffer("dst", kI32, 2);
  BufferRef mid_a = p.buffer("mid_a", kI32, 1), mid_m = p.buffer("mid_m", kI32, 1);
  p.stage("add_a", add_constant<int32_t>(1)).reads(a, {i}).writes(mid_a, {i});
  p.stage("add_b", add_constant<int32_t>(1)).reads(m, {i}).writes(mid_m, {i});
  StageRef outer = p.stage("outer", kernel<int32_t>("outer", [](const CallContext& k, const Index& at) {
                             return k.elements<const int32_t>(0)(at[0]) * k.elements<const int32_t>(1)(at[1]);
                           })).reads(mid_a, {i}).reads(mid_m, {j}).writes(dst, {i, j});
  std::vector<LoopOver> loops;
  if (r["split_i"]) loops.push_back({i, r["split_i"], r.workers()});
  if (r["split_j"]) loops.push_back({j, r["split_j"], r.workers()});
  outer.loops(loops);
  Array<int32_t> va({20}), vm({10}), o({20, 10});
  va.fill_pattern(1), vm.fill_pattern(2);
  r.run(p, {a, m}, {dst}, {{"a", va.argument()}, {"m", vm.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return (va(at[0]) + 1) * (vm(at[1]) + 1); });
}

void unrelated(CaseRun& r) {
  Pipeline p("unrelated");
  BufferRef src1 = p.buffer("src1", kI16, 2), mid1 = p.buffer("mid1", kI16, 2), dst1 = p.buffer("dst1", kI16, 2);
  BufferRef src2 = p.buffer("src2", kI32, 1), mid2 = p.buffer("mid2", kI32, 1), dst2 = p.buffer("dst2", kI32, 1);
  p.stage("add1", add_constant<int16_t>(1)).reads(src1, {x, y}).writes(mid1, {x, y});
  p.stage("stencil1", window_sum<int16_t>({-1, -1}, {1, 1}))
      .reads(mid1, {{x - 1, x + 1}, {y - 1, y + 1}})
      .writes(dst1, {x, y})
      .loops({{y, 2}});
  p.stage("mul2", times_constant<int32_t>(2)).reads(src2, {x}).writes(mid2, {x}).in_place();
  p.stage("add2", add_constant<int32_t>(1)).reads(mid2, {x}).writes(dst2, {x}).in_place();
  Array<int16_t> a({-1, -1}, {22, 12}), o({20, 10});
  Array<int32_t> a2({30}), o2({30});
  a.fill_pattern(), a2.fill_pattern();
  r.run(p, {src1, src2}, {dst1, dst2},
        {{"src1", a.argument()}, {"dst1", o.argument()}, {"src2", a2.argument()}, {"dst2", o2.argument()}});
  r.expect(o, [&](const Index& at) { return sum_around(a, at, 1, 1); });
  r.expect(o2, [&](const Index& at) { return 2 * a2.at(at) + 1; });
}

void padded_stencil(CaseRun& r) {
  Pipeline p("padded_stencil");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), padded = p.buffer("padded", kI16, 2),
            dst = p.buffer("dst", kI16, 2);
  p.stage("add", add_constant<int16_t>(1)).reads(src, {x, y}).writes(mid, {x, y});
  StageRef pad = p.padded_copy(mid, {x, y}, padded, {x, y}, {src.bounds(0), src.bounds(1)}, Padding::value(int16_t{6}));
  StageRef stencil = p.stage("stencil", window_sum<int16_t>({-1, -1}, {1, 1}))
                         .reads(padded, {{x - 1, x + 1}, {y - 1, y + 1}})
                         .writes(dst, {x, y});
  if (r["schedule"] > 0) stencil.loops({{y, 1}});
  if (r["schedule"] == 1) pad.compute_root();
  Array<int16_t> a({20, 30}), o({20, 30});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) {
    int64_t sum = 0;
    for (int64_t dy = -1; dy <= 1; ++dy)
      for (int64_t dx = -1; dx <= 1; ++dx) {
        const Index from{at[0] + dx, at[1] + dy};
        sum += a.has(from) ? a.at(from) + 1 : 6;
      }
    return sum;
  });
}

void constant(CaseRun& r) {
  Pipeline p("constant");
  BufferRef k = p.constant("k", kI16, 2), dst = p.buffer("dst", kI16, 2);
  p.stage("add", add_constant<int16_t>(1)).reads(k, {x, y}).writes(dst, {x, y});
  Array<int16_t> a({20, 10}), o({20, 10});
  a.fill_pattern();
  r.run(p, {}, {dst}, {{"k", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a.at(at) + 1; });
}

void diamond_stencils(CaseRun& r) {
  Pipeline p("diamond");
  BufferRef src = p.buffer("src", kI16, 2), mid2 = p.buffer("mid2", kI16, 2), mid3 = p.buffer("mid3", kI16, 2),
            mid4 = p.buffer("mid4", kI16, 2), dst = p.buffer("dst", kI16, 2);
  StageRef mul2 = p.stage("mul2", times_constant<int16_t>(2)).reads(src, {x, y}).writes(mid2, {x, y});
  StageRef stencil1 = p.stage("stencil1", window_sum<int16_t>({-1, -1}, {1, 1}))
                          .reads(mid2, {{x - 1, x + 1}, {y - 1, y + 1}})
                          .writes(mid3, {x, y});
  StageRef stencil2 = p.stage("stencil2", window_sum<int16_t>({-2, -2}, {2, 2}))
                          .reads(mid2, {{x - 2, x + 2}, {y - 2, y + 2}})
                          .writes(mid4, {x, y});
  StageRef diff =
      p.stage("diff", pointwise2<int16_t>("sub", [](int16_t a, int16_t m) { return static_cast<int16_t>(a - m); }))
          .reads(mid3, {x, y})
          .reads(mid4, {x, y})
          .writes(dst, {x, y});
  const int64_t schedule = r["schedule"];
  if (schedule > 0) diff.loops({{y, 1, schedule == 4 ? kAllWorkers : 1}});
  if (schedule == 2 || schedule == 3) stencil1.loops({{y, 2}}), stencil2.loops({{y, 2}});
  if (schedule == 3) mul2.compute_root();
  Array<int16_t> a({-2, -2}, {24, 14}), o({20, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return 2 * (sum_around(a, at, 1, 0) - sum_around(a, at, 2, 0)); });
}

void fork(CaseRun& r) {
  Pipeline p("fork");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), dst1 = p.buffer("dst1", kI16, 2),
            dst2 = p.buffer("dst2", kI16, 2);
  p.stage("mul2", times_constant<int16_t>(2)).reads(src, {x, y}).writes(mid, {x, y});
  p.stage("add1", add_constant<int16_t>(1)).reads(mid, {x, y}).writes(dst1, {x, y});
  p.stage("add2", add_constant<int16_t>(1)).reads(mid, {x, y}).writes(dst2, {x, y}).loops({{y, 1}});
  Array<int16_t> a({32, 32}), o1({32, 32}), o2({32, 32});
  a.fill_pattern();
  r.run(p, {src}, {dst1, dst2}, {{"src", a.argument()}, {"dst1", o1.argument()}, {"dst2", o2.argument()}});
  r.expect(o1, [&](const Index& at) { return 2 * a.at(at) + 1; });
  r.expect(o2, [&](const Index& at) { return 2 * a.at(at) + 1; });
}

KernelHandle difference() {
  return pointwise2<int16_t>("sub", [](int16_t a, int16_t m) { return static_cast<int16_t>(a - m); });
}

void split(CaseRun& r) {
  Pipeline p("split");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), mid1 = p.buffer("mid1", kI16, 2),
            mid2 = p.buffer("mid2", kI16, 2), dst = p.buffer("dst", kI16, 2);
  const Expr w = dst.extent(0);
  p.stage("add_in", add_constant<int16_t>(1)).reads(src, {x, y}).writes(mid, {x, y});
  p.stage("add1", add_constant<int16_t>(1)).reads(mid, {x, y}).writes(mid1, {x, y}).in_place();
  p.stage("add2", kernel<int16_t>("add_shifted", [](const CallContext& k, const Index& at) {
             const auto in = k.elements<const int16_t>(0);
             const auto out = k.elements<int16_t>(1);
             return static_cast<int16_t>(in(at[0] - out.min(0) + in.min(0), at[1]) + 1);
           })).reads(mid, {x + w, y}).writes(mid2, {x, y});
  p.stage("sum_out", difference()).reads(mid1, {x, y}).reads(mid2, {x, y}).writes(dst, {x, y}).in_place(1);
  Array<int16_t> a({32, 32}), o({16, 32});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a.at(at) - a(at[0] + 16, at[1]); });
}

int64_t floor_half(int64_t v) { return v >= 0 ? v / 2 : -((1 - v) / 2); }

void upsample(CaseRun& r) {
  Pipeline p("upsample");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), dst = p.buffer("dst", kI16, 2);
  p.stage("add", add_constant<int16_t>(1)).reads(src, {x, y}).writes(mid, {x, y});
  StageRef up = p.stage("upsample", kernel<int16_t>("upsample", [](const CallContext& k, const Index& at) {
                          return k.elements<const int16_t>(0)(floor_half(at[0]), floor_half(at[1]));
                        })).reads(mid, {floordiv(x, 2), floordiv(y, 2)}).writes(dst, {x, y});
  if (r["split"] > 0) up.loops({{y, r["split"], r.workers()}});
  Array<int16_t> a({10, 15}), o({20, 30});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a(at[0] / 2, at[1] / 2) + 1; });
}

void add_slices(CaseRun& r) {
  Pipeline p("add_slices");
  BufferRef src = p.buffer("src", kI16, 3), src0 = p.buffer("src0", kI16, 2), src1 = p.buffer("src1", kI16, 2),
            dst = p.buffer("dst", kI16, 2);
  p.slice(src, src0, {x, y}, 1, 0);
  p.slice(src, src1, {x, y}, 1, 1);
  p.stage("sub", difference()).reads(src0, {x, y}).reads(src1, {x, y}).writes(dst, {x, y});
  Array<int16_t> a({20, 2, 30}), o({20, 30});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a(at[0], 0, at[1]) - a(at[0], 1, at[1]); });
}

void pyramid(CaseRun& r) {
  Pipeline p("pyramid");
  BufferRef src = p.buffer("src", kI32, 2), mid = p.buffer("mid", kI32, 2), dst = p.buffer("dst", kI32, 2);
  p.stage("down", kernel<int32_t>("down", [](const CallContext& k, const Index& at) {
             const auto in = k.elements<const int32_t>(0);
             const int64_t u = 2 * at[0], v = 2 * at[1];
             return in(u, v) + in(u + 1, v) + in(u, v + 1) + in(u + 1, v + 1);
           })).reads(src, {{2 * x, 2 * x + 1}, {2 * y, 2 * y + 1}}).writes(mid, {x, y});
  StageRef up = p.stage("up", kernel<int32_t>("up",
                                              [](const CallContext& k, const Index& at) {
                                                const auto m = k.elements<const int32_t>(1);
                                                const int64_t u = floor_half(at[0]), v = floor_half(at[1]),
                                                              u1 = floor_half(at[0] + 1), v1 = floor_half(at[1] + 1);
                                                return k.elements<const int32_t>(0).at(at) + m(u, v) + m(u1, v) +
                                                       m(u, v1) + m(u1, v1);
                                              }))
                    .reads(src, {x, y})
                    .reads(mid, {{floordiv(x, 2), floordiv(x + 1, 2)}, {floordiv(y, 2), floordiv(y + 1, 2)}})
                    .writes(dst, {x, y});
  up.loops({{y, 1, r["mode_index"] ? kAllWorkers : 1}});
  Array<int32_t> a({12, 12}), o({10, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  const auto down = [&](int64_t u, int64_t v) {
    return a(2 * u, 2 * v) + a(2 * u + 1, 2 * v) + a(2 * u, 2 * v + 1) + a(2 * u + 1, 2 * v + 1);
  };
  r.expect(o, [&](const Index& at) {
    const int64_t u = at[0] / 2, v = at[1] / 2, u1 = (at[0] + 1) / 2, v1 = (at[1] + 1) / 2;
    return a.at(at) + down(u, v) + down(u1, v) + down(u, v1) + down(u1, v1);
  });
}

void softmax(CaseRun& r) {
  constexpr int64_t kD = 30, kB = 20;
  Pipeline p("softmax");
  BufferRef src = p.buffer("src", kF32, 2), softmax_in = p.buffer("softmax_in", kF32, 2),
            exp_in = p.buffer("exp_in", kF32, 2), softmax_out = p.buffer("softmax_out", kF32, 2),
            add_out = p.buffer("add_out", kF32, 2), dst = p.buffer("dst", kF32, 2),
            max_in = p.buffer("max_in", kF32, 1), sum_exp = p.buffer("sum_exp", kF32, 1);
  const Window all = dst.bounds(0);
  StageRef producer = p.stage("producer", add_constant<float>(1)).reads(src, {c, b}).writes(softmax_in, {c, b});
  StageRef max_dim0 = p.stage("max_dim0", kernel<float>("max", [](const CallContext& k, const Index& at) {
                                const auto in = k.elements<const float>(0);
                                float most = -INFINITY;
                                for (int64_t u = in.min(0); u <= in.max(0); ++u) most = std::max(most, in(u, at[0]));
                                return most;
                              })).reads(softmax_in, {all, b}).writes(max_in, {b});
  p.stage("exp_in", make_kernel(
                        "exp",
                        [](CallContext& k) -> Result<void> {
                          const auto in = k.elements<const float>(0), most = k.elements<const float>(1);
                          const auto e = k.elements<float>(2), sum = k.elements<float>(3);
                          for (int64_t v = sum.min(0); v <= sum.max(0); ++v) {
                            float total = 0;
                            for (int64_t u = e.min(0); u <= e.max(0); ++u)
                              total += e(u, v) = std::exp(in(u, v) - most(v));
                            sum(v) = total;
                          }
                          return {};
                        },
                        true))
      .reads(softmax_in, {c, b})
      .reads(max_in, {b})
      .writes(exp_in, {c, b})
      .writes(sum_exp, {b})
      .in_place(0, 0);
  p.stage("normalize", kernel<float>("normalize", [](const CallContext& k, const Index& at) {
             return k.elements<const float>(0).at(at) / k.elements<const float>(1)(at[1]);
           })).reads(exp_in, {all, b}).reads(sum_exp, {b}).writes(softmax_out, {c, b});
  const bool copies = r["copy_at_the_end"] != 0;
  StageRef consumer =
      p.stage("consumer", add_constant<float>(1)).reads(softmax_out, {c, b}).writes(copies ? add_out : dst, {c, b});
  if (r["copy_at_the_end"] == 1) p.copy(add_out, {c, b}, dst, {c, b});
  if (r["copy_at_the_end"] == 2)
    p.copy(add_out, {select(equal(dst.extent(0), 1), dst.min(0), c), select(equal(dst.extent(1), 1), dst.min(1), b)},
           dst, {c, b});
  std::vector<LoopOver> loops;
  if (r["split_c"]) loops.push_back({c, r["split_c"]});
  if (r["split_b"]) loops.push_back({b, r["split_b"]});
  producer.loops(loops), consumer.loops(loops);
  if (r["use_compute_at"]) max_dim0.compute_at(consumer, b);
  if (r["use_compute_at"] == 2) max_in.store_at(consumer, b).store_in(Placement::stack);
  Array<float> a({kD, kB}), o({kD, kB});
  a.fill([](const Index& at) { return static_cast<double>((at[0] * 7 + at[1] * 3) % 11) / 5; });
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) {
    double most = -1e30, sum = 0;
    for (int64_t u = 0; u < kD; ++u) most = std::max<double>(most, a(u, at[1]));
    for (int64_t u = 0; u < kD; ++u) sum += std::exp(a(u, at[1]) - most);
    return std::exp(a.at(at) - most) / sum + 1;
  });
}

void conditional_parallel(CaseRun& r) {
  Pipeline p("conditional_parallel");
  const Expr workers_x = p.scalar("workers_x"), workers_y = p.scalar("workers_y");
  BufferRef src = p.buffer("src", kI32, 2), mid = p.buffer("mid", kI32, 2), dst = p.buffer("dst", kI32, 2);
  p.stage("mul", times_constant<int32_t>(2)).reads(src, {x, y}).writes(mid, {x, y});
  p.stage("add", add_constant<int32_t>(1))
      .reads(mid, {x, y})
      .writes(dst, {x, y})
      .loops({{x, 2, workers_x}, {y, 1, workers_y}});
  r.scalars = {{"workers_x", r.number() & 2 ? kAllWorkers : 1}, {"workers_y", r.number() & 1 ? kAllWorkers : 1}};
  Array<int32_t> a({10, 10}), o({10, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return 2 * a.at(at) + 1; });
}

void auto_stack_threshold(CaseRun& r) {
  constexpr int64_t kSplits[] = {1, 100, 1000, 10000};
  Pipeline p("auto_stack");
  const Expr step = p.scalar("chunk");
  BufferRef src = p.buffer("src", kU8, 1), mid = p.buffer("mid", kU8, 1), dst = p.buffer("dst", kU8, 1);
  p.stage("a", add_constant<uint8_t>(1)).reads(src, {x}).writes(mid, {x});
  p.stage("b", add_constant<uint8_t>(1)).reads(mid, {x}).writes(dst, {x}).loops({{x, step}});
  r.stack_bytes = 512;
  r.scalars = {{"chunk", kSplits[r.number()]}};
  Array<uint8_t> a({16384}), o({16384});
  a.fill([](const Index& at) { return at[0]; });
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a.at(at) + 2; });
}

void aligned_producer(CaseRun& r) {
  const int64_t alignment = r["alignment"];
  Pipeline p("aligned_producer");
  BufferRef mid = p.buffer("mid", kI32, 2), dst = p.buffer("dst", kI32, 2);
  mid.align(0, alignment).store_in(Placement::stack);
  p.stage("producer", make_kernel("producer", [alignment](CallContext& k) -> Result<void> {
             const auto out = k.elements<int32_t>(0);
             if (out.min(0) % alignment != 0 || out.extent(0) % alignment != 0)
               return error(Code::invalid_argument, "from ", out.min(0), ", ", out.extent(0), " indices");
             for (int64_t v = out.min(1); v <= out.max(1); ++v)
               for (int64_t u = out.min(0); u <= out.max(0); ++u) out(u, v) = static_cast<int32_t>(v * 1000 + u);
             return {};
           }, true)).writes(mid, {x, y});
  StageRef consumer = p.stage("consumer", add_constant<int32_t>(1)).reads(mid, {x, y}).writes(dst, {x, y});
  if (r["split"] > 0) consumer.loops({{x, r["split"]}});
  if (r["schedule_storage"] && r["split"] > 0) mid.store_at(consumer, x);
  Array<int32_t> o({100, 5});
  r.run(p, {}, {dst}, {{"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return at[1] * 1000 + at[0] + 1; });
}

}  // namespace

void add_stage_families(Families& f) {
  f["trivial"] = trivial;
  f["elementwise_1d"] = elementwise_1d;
  f["elementwise_2d"] = elementwise_2d;
  f["store_at_chain5"] = store_at_chain5;
  f["outside_fold"] = outside_fold;
  f["matmuls"] = matmuls;
  f["stencil3x3"] = stencil3x3;
  f["outer_product"] = outer_product;
  f["unrelated"] = unrelated;
  f["padded_stencil"] = padded_stencil;
  f["constant"] = constant;
  f["diamond_stencils"] = diamond_stencils;
  f["fork"] = fork;
  f["split"] = split;
  f["upsample"] = upsample;
  f["add_slices"] = add_slices;
  f["pyramid"] = pyramid;
  f["softmax"] = softmax;
  f["conditional_parallel"] = conditional_parallel;
  f["auto_stack_threshold"] = auto_stack_threshold;
  f["aligned_producer"] = aligned_producer;
}

}  // namespace tenon::program
