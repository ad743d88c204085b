// Families about sharing memory, and expressions of many small stages.
#include <program/pipeline_cases.hpp>

namespace tenon::program {

namespace {

const Expr x = var("x"), y = var("y"), k = var("k"), dx = var("dx");

KernelHandle difference() {
  return pointwise2<int16_t>("sub", [](int16_t a, int16_t m) { return static_cast<int16_t>(a - m); });
}

void transpose_input(CaseRun& r) {
  Pipeline p("transpose_input");
  BufferRef src = p.buffer("src", kI32, 2), turned = p.buffer("turned", kI32, 2), dst = p.buffer("dst", kI32, 2);
  if (!r["may_alias"]) turned.stride(0, 4);
  p.copy(src, {y, x}, turned, {x, y});
  p.stage("add1", add_constant<int32_t>(1)).reads(turned, {x, y}).writes(dst, {x, y});
  Array<int32_t> a({10, 20}), o({20, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a(at[1], at[0]) + 1; });
}

void aligned(CaseRun& r) {
  Pipeline p("aligned");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), dst = p.buffer("dst", kI16, 2);
  mid.align(0, 2);
  if (r["may_alias"]) dst.align(0, 2);
  p.stage("add", add_constant<int16_t>(1)).reads(src, {x, y}).writes(mid, {x, y});
  p.copy(mid, {x, y}, dst, {x, y});
  Array<int16_t> a({20, 10}), o({20, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a.at(at) + 1; });
}

void unfolded(CaseRun& r) {
  Pipeline p("unfolded");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), dst = p.buffer("dst", kI16, 2);
  p.stage("add", add_constant<int16_t>(1)).reads(src, {x, y}).writes(mid, {x, y});
  p.copy(mid, {x, y}, dst, {x, y}).loops({{y, 2}});
  Array<int16_t> a({20, 10}), o({20, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a.at(at) + 1; });
}

void same_bounds(CaseRun& r) {
  Pipeline p("same_bounds");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), dst1 = p.buffer("dst1", kI16, 2),
            dst2 = p.buffer("dst2", kI16, 2);
  if (r["may_alias"]) dst2.has_bounds(0, dst1.bounds(0)).has_bounds(1, dst1.bounds(1));
  p.stage("add", add_constant<int16_t>(1)).reads(src, {x, y}).writes(mid, {x, y});
  p.copy(mid, {x, y}, dst1, {x, y});
  p.copy(mid, {x, y}, dst2, {x, y});
  Array<int16_t> a({20, 10}), o1({20, 10}), o2({20, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst1, dst2}, {{"src", a.argument()}, {"dst1", o1.argument()}, {"dst2", o2.argument()}});
  r.expect(o1, [&](const Index& at) { return a.at(at) + 1; });
  r.expect(o2, [&](const Index& at) { return a.at(at) + 1; });
}

void split_output(CaseRun& r) {
  Pipeline p("split_output");
  BufferRef src = p.buffer("src", kI16, 2), mid = p.buffer("mid", kI16, 2), dst1 = p.buffer("dst1", kI16, 2),
            dst2 = p.buffer("dst2", kI16, 2);
  p.stage("add", add_constant<int16_t>(1)).reads(src, {x, y}).writes(mid, {x, y});
  p.copy(mid, {x, y}, dst1, {x, y});
  p.copy(mid, {x, y + 4}, dst2, {x, y});
  Array<int16_t> a({20, 11}), o1({20, 4}), o2({20, 7});
  a.fill_pattern();
  r.run(p, {src}, {dst1, dst2}, {{"src", a.argument()}, {"dst1", o1.argument()}, {"dst2", o2.argument()}});
  r.expect(o1, [&](const Index& at) { return a.at(at) + 1; });
  r.expect(o2, [&](const Index& at) { return a(at[0], at[1] + 4) + 1; });
}

void multiple_uses(CaseRun& r) {
  Pipeline p("multiple_uses");
  BufferRef src = p.buffer("src", kI16, 2), a = p.buffer("a", kI16, 2), b = p.buffer("b", kI16, 2),
            c = p.buffer("c", kI16, 2), dst = p.buffer("dst", kI16, 2);
  p.stage("make", add_constant<int16_t>(1)).reads(src, {x, y}).writes(a, {x, y});
  StageRef a_b = p.stage("a_b", add_constant<int16_t>(2)).reads(a, {x, y}).writes(b, {x, y});
  StageRef a_c = p.stage("a_c", times_constant<int16_t>(3)).reads(a, {x, y}).writes(c, {x, y});
  (r["in_place_sel"] ? a_c : a_b).in_place();
  StageRef sub = p.stage("sub", difference()).reads(b, {x, y}).reads(c, {x, y}).writes(dst, {x, y});
  if (r["split"]) sub.loops({{y, 1}});
  Array<int16_t> v({20, 10}), o({20, 10});
  v.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", v.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return v.at(at) + 3 - 3 * (v.at(at) + 1); });
}

void input_output(CaseRun& r) {
  Pipeline p("input_output");
  BufferRef src = p.buffer("src", kI16, 2), a = p.buffer("a", kI16, 2), b = p.buffer("b", kI16, 2),
            c = p.buffer("c", kI16, 2);
  p.stage("make", add_constant<int16_t>(1)).reads(src, {x, y}).writes(a, {x, y});
  StageRef a_b = p.stage("a_b", add_constant<int16_t>(2)).reads(a, {x, y}).writes(b, {x, y});
  StageRef b_c = p.stage("b_c", times_constant<int16_t>(3)).reads(b, {x, y}).writes(c, {x, y});
  (r["in_place_sel"] ? b_c : a_b).in_place();
  Array<int16_t> v({20, 10}), oa({20, 10}), oc({20, 10});
  v.fill_pattern();
  r.run(p, {src}, {a, c}, {{"src", v.argument()}, {"a", oa.argument()}, {"c", oc.argument()}});
  r.expect(oa, [&](const Index& at) { return v.at(at) + 1; });
  r.expect(oc, [&](const Index& at) { return 3 * (v.at(at) + 3); });
}

void reused_in_loop(CaseRun& r) {
  Pipeline p("reused_in_loop");
  BufferRef src = p.buffer("src", kI32, 2), sum = p.buffer("sum", kI32, 1), sum1 = p.buffer("sum1", kI32, 1),
            dst = p.buffer("dst", kI32, 2);
  p.stage("sum_y", kernel<int32_t>("sum_y", [](const CallContext& c, const Index& at) {
             const auto in = c.elements<const int32_t>(0);
             int32_t total = 0;
             for (int64_t v = in.min(1); v <= in.max(1); ++v) total += in(at[0], v);
             return total;
           })).reads(src, {x, src.bounds(1)}).writes(sum, {x}).compute_root();
  p.stage("add_1", add_constant<int32_t>(1)).reads(sum, {x}).writes(sum1, {x}).in_place();
  p.stage("sub", kernel<int32_t>("sub", [](const CallContext& c, const Index& at) {
             return c.elements<const int32_t>(0).at(at) - c.elements<const int32_t>(1)(at[0]);
           })).reads(src, {x, y}).reads(sum1, {x}).writes(dst, {x, y}).in_place().loops({{x, 1}});
  Array<int32_t> a({20, 10}), o({20, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) {
    int32_t total = 1;
    for (int64_t v = 0; v < 10; ++v) total += a(at[0], v);
    return a.at(at) - total;
  });
}

void multiple_producers(CaseRun& r) {
  Pipeline p("multiple_producers");
  BufferRef src1 = p.buffer("src1", kI16, 2), src2 = p.buffer("src2", kI16, 2), a = p.buffer("a", kI16, 2),
            b = p.buffer("b", kI16, 2), c = p.buffer("c", kI16, 2), d = p.buffer("d", kI16, 2);
  p.stage("make_a", add_constant<int16_t>(1)).reads(src1, {x, y}).writes(a, {x, y});
  p.stage("make_b", add_constant<int16_t>(2)).reads(src2, {x, y}).writes(b, {x, y});
  const Expr h = src1.extent(1);
  p.concatenate({a, b}, c, {x, y}, 1, {0, h, h + src2.extent(1)});
  p.stage("make_d", add_constant<int16_t>(3)).reads(c, {x, y}).writes(d, {x, y});
  Array<int16_t> v1({20, 5}), v2({20, 5}), o({20, 10});
  v1.fill_pattern(1), v2.fill_pattern(2);
  r.run(p, {src1, src2}, {d}, {{"src1", v1.argument()}, {"src2", v2.argument()}, {"d", o.argument()}});
  r.expect(o, [&](const Index& at) { return at[1] < 5 ? v1(at[0], at[1]) + 4 : v2(at[0], at[1] - 5) + 5; });
}

void padded_constant(CaseRun& r) {
  Pipeline p("padded_constant");
  BufferRef c = p.constant("c", kI8, 2), wide = p.buffer("wide", kI8, 2), dst = p.buffer("dst", kI8, 2);
  p.padded_copy(c, {x, y}, wide, {x, y}, {}, Padding::value(int8_t{3}));
  p.stage("copy_out", opaque_copy<int8_t>()).reads(wide, {x, y}).writes(dst, {x, y});
  Array<int8_t> a({1, 1}, {8, 5}), o({10, 7});
  a.fill_pattern();
  r.run(p, {}, {dst}, {{"c", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a.has(at) ? a.at(at) : int8_t{3}; });
}

void constrained_stencil(CaseRun& r) {
  const int64_t step = r["S_index"] ? 5 : 1;
  Pipeline p("constrained_stencil");
  BufferRef src = p.buffer("src", kI16, 1), copied = p.buffer("copied", kI16, 1),
            stencil = p.buffer("stencil", kI16, 2), dst = p.buffer("dst", kI16, 2);
  stencil.stride(0, 2).stride(1, 2 * stencil.extent(0));
  p.stage("copy_in", opaque_copy<int16_t>()).reads(src, {x}).writes(copied, {x});
  p.copy(copied, {x * step + dx}, stencil, {dx, x});
  p.stage("copy_out", opaque_copy<int16_t>()).reads(stencil, {x, y}).writes(dst, {x, y});
  Array<int16_t> a({9 * step + 5}), o({5, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a(at[1] * step + at[0]); });
}

void padded_stencil(CaseRun& r) {
  Pipeline p("padded_stencil");
  BufferRef src = p.buffer("src", kI16, 1), copied = p.buffer("copied", kI16, 1), wide = p.buffer("wide", kI16, 1),
            stencil = p.buffer("stencil", kI16, 2), dst = p.buffer("dst", kI16, 1);
  p.copy(src, {y}, copied, {y}).compute_root();
  StageRef pad = p.padded_copy(copied, {y}, wide, {y}, {src.bounds(0)}, Padding::value(int16_t{0}));
  StageRef taps = p.copy(wide, {y + k - 1}, stencil, {y, k});
  StageRef reduce = p.stage("reduce", kernel<int16_t>("reduce", [](const CallContext& c, const Index& at) {
                              const auto in = c.elements<const int16_t>(0);
                              return static_cast<int16_t>(in(at[0], 0) + in(at[0], 1) + in(at[0], 2));
                            })).reads(stencil, {y, {0, 2}}).writes(dst, {y}).loops({{y, 1}});
  for (StageRef* s : {&pad, &taps}) s->compute_at(reduce, y);
  wide.store_at(reduce, y), stencil.store_at(reduce, y);
  Array<int16_t> a({30}), o({30});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) {
    int64_t sum = 0;
    for (int64_t v = at[0] - 1; v <= at[0] + 1; ++v) sum += a.has({v}) ? a(v) : 0;
    return sum;
  });
}

void stride_propagation(CaseRun& r) {
  Pipeline p("stride_propagation");
  BufferRef src = p.buffer("src", kI32, 2), mid1 = p.buffer("mid1", kI32, 2), mid2 = p.buffer("mid2", kI32, 2),
            dst = p.buffer("dst", kI32, 2);
  mid1.stride(0, 4);
  if (r["constrain_outer"]) mid1.stride(1, 4 * mid1.extent(0));
  p.stage("add", add_constant<int32_t>(1)).reads(src, {x, y}).writes(mid1, {x, y});
  p.padded_copy(mid1, {x - 1, y - 1}, mid2, {x, y}, {src.bounds(0), src.bounds(1)}, Padding::value(int32_t{0}));
  p.copy(mid2, {x, y}, dst, {x, y});
  Array<int32_t> a({8, 8}), o({10, 10});
  a.fill_pattern();
  r.run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", o.argument()}});
  r.expect(o, [&](const Index& at) { return a.has({at[0] - 1, at[1] - 1}) ? a(at[0] - 1, at[1] - 1) + 1 : 0; });
}

// --- one stage per operation of an expression ---

class ExprPipeline {
 public:
  ExprPipeline(Pipeline& p, const std::vector<std::pair<BufferRef, const Array<int32_t>*>>& inputs) : p_(p) {
    for (const auto& [buffer, array] : inputs)
      values_.push_back({buffer, [array](int64_t at) { return array->at({at}); }});
  }
  struct Value {
    BufferRef buffer;
    std::function<int32_t(int64_t)> at;
  };
  const Value& input(size_t i) const { return values_[i]; }

  Value binary(const Value& a, const Value& b, int32_t (*f)(int32_t, int32_t)) {
    BufferRef out = p_.buffer("t" + std::to_string(count_++), kI32, 1).store_in(Placement::stack);
    last_ = p_.stage("op", pointwise2<int32_t>("op", f))
                .reads(a.buffer, {x})
                .reads(b.buffer, {x})
                .writes(out, {x})
                .in_place(0)
                .in_place(1);
    return {out, [=](int64_t at) { return f(a.at(at), b.at(at)); }};
  }
  Value unary(const Value& a, int32_t (*f)(int32_t)) {
    BufferRef out = p_.buffer("t" + std::to_string(count_++), kI32, 1).store_in(Placement::stack);
    last_ = p_.stage("op", pointwise<int32_t>("op", f)).reads(a.buffer, {x}).writes(out, {x}).in_place();
    return {out, [=](int64_t at) { return f(a.at(at)); }};
  }
  Value add(const Value& a, const Value& b) { return binary(a, b, [](int32_t u, int32_t v) { return u + v; }); }
  Value mul(const Value& a, const Value& b) { return binary(a, b, [](int32_t u, int32_t v) { return u * v; }); }
  Value add1(const Value& a) { return unary(a, [](int32_t u) { return u + 1; }); }
  Value relu(const Value& a) { return unary(a, [](int32_t u) { return std::max(u, 0); }); }
  // 1 + v + v^2 ... + v^n
  Value powers(const Value& v, int n) {
    Value sum = add1(v);
    for (int k = 2; k <= n; ++k) {
      Value power = mul(v, v);
      for (int m = 2; m < k; ++m) power = mul(power, v);
      sum = add(sum, power);
    }
    return sum;
  }
  Value horner(const Value& v, int n) {
    Value out = add1(v);
    for (int k = 1; k < n; ++k) out = add1(mul(out, v));
    return out;
  }
  StageRef& last() { return *last_; }

 private:
  Pipeline& p_;
  std::vector<Value> values_;
  std::optional<StageRef> last_;
  int count_ = 0;
};

void elementwise_expr(CaseRun& r) {
  Pipeline p("elementwise_expr");
  std::vector<Array<int32_t>> arrays(3, Array<int32_t>({5}));
  std::vector<std::pair<BufferRef, const Array<int32_t>*>> inputs;
  std::map<std::string, BufferArgument, std::less<>> arguments;
  std::vector<BufferRef> refs;
  for (size_t i = 0; i < 3; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    arrays[i].fill([i](const Index& at) { return (at[0] + static_cast<int64_t>(i)) % 3 - 1; });
    inputs.emplace_back(p.buffer(name, kI32, 1), &arrays[i]);
    refs.push_back(inputs.back().first);
    arguments[name] = arrays[i].argument();
  }
  ExprPipeline e(p, inputs);
  const auto &u = e.input(0), &v = e.input(1), &w = e.input(2);
  const int form = static_cast<int>(r.number() / 3);
  constexpr int kDegrees[] = {2, 3, 4, 8};
  ExprPipeline::Value result = form == 0   ? e.add(u, v)
                               : form == 1 ? e.add(e.mul(u, v), w)
                               : form == 2 ? e.mul(e.relu(e.add(u, v)), w)
                               : form == 3 ? e.add1(u)
                               : form < 8  ? e.powers(u, kDegrees[form - 4])
                                           : e.horner(u, kDegrees[form - 8]);
  if (r["split"] > 0) e.last().loops({{x, r["split"]}});
  Array<int32_t> o({5});
  arguments[result.buffer.name()] = o.argument();
  r.run(p, refs, {result.buffer}, arguments);
  r.expect(o, [&](const Index& at) { return result.at(at[0]); });
}

}  // namespace

void add_alias_families(Families& f) {
  f["alias.transpose_input"] = transpose_input;
  f["alias.aligned"] = aligned;
  f["alias.unfolded"] = unfolded;
  f["alias.same_bounds"] = same_bounds;
  f["alias.split_output"] = split_output;
  f["alias.multiple_uses.cannot_alias"] = multiple_uses;
  f["alias.multiple_uses.cannot_alias_input_output"] = input_output;
  f["alias.reused_in_loop"] = reused_in_loop;
  f["alias.multiple_producers"] = multiple_producers;
  f["alias.padded_constant"] = padded_constant;
  f["alias.constrained_stencil"] = constrained_stencil;
  f["alias.padded_stencil"] = padded_stencil;
  f["alias.stride_propagation.padded"] = stride_propagation;
  f["elementwise_expr"] = elementwise_expr;
}

}  // namespace tenon::program
