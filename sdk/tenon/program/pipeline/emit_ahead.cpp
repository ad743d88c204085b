#include <algorithm>

#include <tenon/program/pipeline/emit_internal.hpp>

namespace tenon::program::detail {

bool Emitter::is_far(int b) const {
  const int root = plan_.root_of(b);
  if (plan_.is_declared(root)) return true;
  const Storage& storage = plan_.buffer(root).storage;
  return storage.level == 0 && storage.ring_dim < 0 && !storage.linear;
}

bool Emitter::is_made_in(int b, int l) const {
  const int producer = plan_.buffer(b).producer;
  return producer >= 0 && plan_.stage(producer).is_in(l);
}

bool Emitter::is_read_outside(int b, int l) const {
  if (plan_.is_declared(b)) return true;
  return std::ranges::any_of(plan_.buffer(b).uses, [&](const Use& use) { return !plan_.stage(use.stage).is_in(l); });
}

Window Emitter::in_iteration(int l, const Expr& first, const Window& w) {
  const LoopPlan& loop = plan_.loop(l);
  return substituted(w, {{loop.symbol, first}, {loop.lo, first}, {loop.hi, first + with_bounds(loop.step) - 1}});
}

Window Emitter::moved_on(int l, int64_t iterations, const Window& w) {
  const LoopPlan& loop = plan_.loop(l);
  const auto after = [&](int64_t of) { return in_iteration(l, loop.index_symbol() + of * with_bounds(loop.step), w); };
  Window later = after(iterations);
  const Window before = after(iterations - 1);
  const Expr moved = later.last - before.last;
  if (moved.is_constant() && moved.constant() > 0) later.first = max(later.first, before.last + 1);
  return later;
}

Box Emitter::later_box(int l, const std::vector<Window>& touched) {
  std::vector<Window> later;
  for (const Window& w : touched) later.push_back(moved_on(l, plan_.loop(l).ahead, w));
  return box(later);
}

Box Emitter::box_after_the_last(int around, int l, const std::vector<Window>& touched) {
  const LoopPlan& loop = plan_.loop(l);
  const Expr step = with_bounds(loop.step), end = loop.range.last + 1;
  const Expr later = loop.index_symbol() + loop.ahead * step;
  const Expr first = later - ceildiv(end - loop.begin(), step) * step;
  std::vector<Window> next;
  for (const Window& w : touched) next.push_back(moved_on(around, 1, in_iteration(l, first, w)));
  Box out = box(next);
  out.front().extent = select(less(later, here(end)), 0, out.front().extent);
  return out;
}

std::vector<Prefetch> Emitter::fetched_ahead(const Path& path, const std::vector<Unit>& all) {
  if (path.empty() || plan_.loop(path.back()).ahead < 1 || plan_.loop(path.back()).parallel()) return {};
  const int l = path.back();
  const int around = path.size() > 1 && !plan_.loop(path[path.size() - 2]).parallel() ? path[path.size() - 2] : -1;
  std::vector<Prefetch> out;
  const auto add = [&](Access access, int b, const std::vector<Window>& touched) {
    const auto moves_in = [&](int loop) {
      return std::ranges::any_of(touched, [&](const Window& w) { return depends_on_loop(plan_, w, loop); });
    };
    if (!is_far(b) || !moves_in(l)) return;
    std::vector<Box> boxes{later_box(l, touched)};
    if (around >= 0 && moves_in(around)) boxes.push_back(box_after_the_last(around, l, touched));
    for (Box& box : boxes)
      if (Prefetch hint{access, {id(b), std::move(box)}}; std::ranges::find(out, hint) == out.end())
        out.push_back(std::move(hint));
  };
  for (const Unit& unit : all) {
    if (unit.stage < 0 || plan_.stage(unit.stage).is_view) continue;
    const int s = unit.stage;
    const StageSpec& spec = plan_.spec(s);
    const std::vector<Window> indices = computed_box(plan_, s, plan_.stage(s).body_size(), Iteration::any);
    for (int r = 0; r < static_cast<int>(spec.reads.size()); ++r)
      if (const int b = spec.reads[static_cast<size_t>(r)].buffer; !is_made_in(b, l))
        add(Access::in, b, read_box(plan_, {s, r}, indices));
    for (int w = 0; !spec.writes_non_temporal && w < static_cast<int>(spec.writes.size()); ++w)
      if (const int b = spec.writes[static_cast<size_t>(w)].buffer; is_read_outside(b, l))
        add(Access::out, b, write_box(plan_, s, w, indices));
  }
  return out;
}

std::vector<Statement> Emitter::portions(const std::vector<Prefetch>& hints, size_t part, size_t parts) {
  const size_t of = std::min<size_t>(parts, kMostParts);
  if (part >= of) return {};
  std::vector<Statement> out;
  for (Prefetch hint : hints) {
    hint.part = static_cast<int>(part);
    hint.parts = static_cast<int>(of);
    out.emplace_back(std::move(hint));
  }
  return out;
}

}  // namespace tenon::program::detail
