#include <algorithm>

#include <tenon/program/pipeline/windows_internal.hpp>

namespace tenon::program::detail {

bool WindowPlanner::warm_up(int l) {
  LoopPlan& loop = plan_.loop(l);
  Expr longest = 0;
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) {
    if (!needs_memory(b) || !std::ranges::count(plan_.stage(plan_.buffer(b).producer).location, l)) continue;
    const int dim = moved_dim(b, l);
    if (dim < 0 || !need_of_buffer(b, static_cast<size_t>(dim), l, Iteration::later)) continue;
    const Expr last = plan_.stage(plan_.buffer(b).producer)
                          .required[static_cast<size_t>(moved_index(plan_.stage(plan_.buffer(b).producer), l))]
                          .last;
    const Expr excess = initial_extent(b, dim, l, 0) - window_extent(b, dim, l, 0);
    if (prove_le(excess, 0)) continue;
    const Slope slope = slope_of(last, loop.hi);
    if (slope.period == 0 || slope.rise <= 0) continue;
    const Expr indices = slope.period * ceildiv(max(excess, Expr(0)), slope.rise);
    longest = max(longest, indices);
  }
  if (longest.is_constant(0)) return false;
  loop.warm_up = loop.step * ceildiv(longest, loop.step);
  return true;
}

int WindowPlanner::moved_dim(int b, int l) const {
  const BufferPlan& buffer = plan_.buffer(b);
  const StagePlan& stage = plan_.stage(buffer.producer);
  const auto& indices = plan_.spec(buffer.producer).writes[static_cast<size_t>(buffer.write)].indices;
  const int index = moved_index(stage, l);
  for (size_t d = 0; d < indices.size(); ++d)
    if (stage.index_of(indices[d]) == index) return static_cast<int>(d);
  return -1;
}

const Expr& WindowPlanner::last_of(int b, int dim) const {
  const BufferPlan& buffer = plan_.buffer(b);
  const StagePlan& stage = plan_.stage(buffer.producer);
  const auto& indices = plan_.spec(buffer.producer).writes[static_cast<size_t>(buffer.write)].indices;
  return stage.required[static_cast<size_t>(stage.index_of(indices[static_cast<size_t>(dim)]))].last;
}

Expr WindowPlanner::window_extent(int b, int dim, int l, const Expr& ahead) const {
  const LoopPlan& loop = plan_.loop(l);
  const Expr behind = loop.index_symbol() - ahead * loop.step;
  const Expr need = need_of_buffer(b, static_cast<size_t>(dim), l, Iteration::later)
                        ->substitute({{loop.lo, behind}, {loop.symbol, behind}});
  return supremum_of_difference(last_of(b, dim).substitute(terms(l).by_index) + 1, need, terms(l).range);
}

Expr WindowPlanner::initial_extent(int b, int dim, int l, const Expr& ahead) const {
  const LoopPlan& loop = plan_.loop(l);
  const Expr latest = loop.begin() + (ahead + 1) * loop.step - 1;
  const Expr need = need_of_buffer(b, static_cast<size_t>(dim), l, Iteration::first)->substitute(terms(l).at_start);
  return supremum_of_difference(last_of(b, dim).substitute({{loop.hi, latest}}) + 1, need, terms(l).range);
}

Expr WindowPlanner::ring_places(int b, int dim, int l) const {
  const LoopPlan& loop = plan_.loop(l);
  const Expr ahead = loop.parallel() ? workers(loop) - 1 : Expr(0);
  return max(window_extent(b, dim, l, ahead), initial_extent(b, dim, l, ahead));
}

Expr WindowPlanner::most_places(int b, size_t d, size_t level) const {
  const BufferPlan& buffer = plan_.buffer(b);
  const Path& path = plan_.stage(buffer.producer).location;
  const auto box = [&](Iteration i) {
    return write_box(plan_, buffer.producer, buffer.write, computed_box(plan_, buffer.producer, level, i))[d];
  };
  const Window later = box(Iteration::later), first = box(Iteration::first);
  Expr most = over_loops(later, path, level);
  if (first != later) most = max(most, over_loops(first, path, level, sliding_loop(b, d, level)));
  return most;
}

int WindowPlanner::sliding_loop(int b, size_t d, size_t level) const {
  const BufferPlan& buffer = plan_.buffer(b);
  const StagePlan& stage = plan_.stage(buffer.producer);
  const int index = stage.index_of(plan_.spec(buffer.producer).writes[static_cast<size_t>(buffer.write)].indices[d]);
  int found = -1;
  for (const Slide& slide : stage.slides)
    if (slide.index == index && static_cast<size_t>(plan_.loop(slide.loop).depth) < level) found = slide.loop;
  return found;
}

Expr WindowPlanner::over_loops(const Window& w, const Path& path, size_t level, int at_first) const {
  Expr lower = w.first, upper = w.last + 1;
  for (size_t i = level; i-- > 0;) {
    const int l = path[i];
    if (l == at_first) {
      upper = upper.substitute(terms(l).at_start) - lower.substitute(terms(l).at_start);
      lower = 0;
      continue;
    }
    upper = supremum_of_difference(upper.substitute(terms(l).by_index), lower.substitute(terms(l).by_index),
                                   terms(l).range);
    lower = 0;
  }
  return level == 0 ? upper - lower : upper;
}

Expr WindowPlanner::slots(const Path& path, size_t level) const {
  Expr most = 1;
  for (size_t i = 0; i < level; ++i)
    if (const LoopPlan& loop = plan_.loop(path[i]); loop.parallel()) {
      const Window iterations(loop.begin(), loop.range.last);
      const Expr count = ceildiv(over_loops(iterations, path, i), loop.step);
      most = max(most, min(min(loop.workers, Expr::symbol(kThreadsSymbol)), count));
    }
  return most;
}

}  // namespace tenon::program::detail
