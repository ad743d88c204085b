#include <algorithm>

#include <tenon/program/pipeline/windows_internal.hpp>

namespace tenon::program {

bool takes_rings(const Plan& plan, int b) {
  const auto takes = [&](int stage) { return plan.spec(stage).is_copy() || plan.spec(stage).kernel->takes_folded; };
  for (int a = 0; a < static_cast<int>(plan.buffers.size()); ++a) {
    const BufferPlan& buffer = plan.buffer(a);
    if (plan.root_of(a) != b) continue;
    if (buffer.producer >= 0 && !takes(buffer.producer)) return false;
    for (const Use& use : buffer.uses)
      if (!takes(use.stage)) return false;
  }
  return true;
}

namespace {

Expr first_in_any(const LoopPlan& loop, const Slide& slide) {
  const Expr at_begin = slide.first.substitute({{loop.symbol, loop.begin()}, {loop.lo, loop.first}});
  return at_begin == slide.initial ? slide.first
                                   : select(equal(loop.index_symbol(), loop.begin()), slide.initial, slide.first);
}

}  // namespace

std::vector<Window> computed_box(const Plan& plan, int s, size_t depth, Iteration iteration) {
  const StagePlan& stage = plan.stage(s);
  std::vector<Window> box = index_box(plan, s, depth);
  for (const Slide& slide : stage.slides) {
    const LoopPlan& loop = plan.loop(slide.loop);
    if (static_cast<size_t>(loop.depth) >= depth) continue;
    Window& w = box[static_cast<size_t>(slide.index)];
    const bool own_loop = depth > stage.location.size() && std::ranges::any_of(stage.own, [&](int l) {
                            return plan.loop(l).index == slide.index && static_cast<size_t>(plan.loop(l).depth) < depth;
                          });
    if (own_loop) continue;  // its own loop begins there
    if (iteration == Iteration::any)
      w.first = first_in_any(loop, slide);
    else
      w.first = iteration == Iteration::first ? slide.initial : slide.first;
  }
  return box;
}

namespace detail {

void WindowPlanner::run() {
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) keep_for_aliases(b);
  slide_all();
  bool warm = false;
  for (int l = 0; l < static_cast<int>(plan_.loops.size()); ++l)
    if (!plan_.loop(l).dropped && plan_.loop(l).carries) warm = warm_up(l) || warm;
  if (warm) slide_all();
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
    if (needs_memory(b)) store(b);
}

void WindowPlanner::keep_for_aliases(int b) {
  const std::optional<Alias>& alias = plan_.buffer(b).alias;
  if (!alias || plan_.buffer(b).producer < 0) return;
  const Path& mine = plan_.stage(plan_.buffer(b).producer).location;
  size_t depth = mine.size();
  if (const int other = plan_.buffer(alias->of).producer;
      other >= 0 && !plan_.stage(plan_.buffer(b).producer).is_view) {
    const Path& its = plan_.stage(other).location;
    depth = static_cast<size_t>(std::ranges::mismatch(mine, its).in1 - mine.begin());
  }
  size_t& keep = plan_.buffer(plan_.root_of(b)).keep_outside;
  keep = std::min(keep, depth);
}

void WindowPlanner::slide_all() {
  needs_.clear();
  terms_.clear();
  for (BufferPlan& b : plan_.buffers) b.carried_by.clear();
  for (size_t i = plan_.order.size(); i-- > 0;) {
    const int s = plan_.order[i];
    plan_.stage(s).slides.clear();
    for (const int loop : plan_.stage(s).location) slide(s, loop);
    for (const int l : plan_.stage(s).own) {
      LoopPlan& loop = plan_.loop(l);
      loop.first =
          computed_box(plan_, s, static_cast<size_t>(loop.depth), Iteration::any)[static_cast<size_t>(loop.index)]
              .first;
    }
  }
}

void WindowPlanner::slide(int s, int l) {
  StagePlan& stage = plan_.stage(s);
  const LoopPlan& loop = plan_.loop(l);
  const int index = moved_index(stage, l);
  if (index < 0 || is_band(l)) return;
  const Window& required = stage.required[static_cast<size_t>(index)];
  const std::optional<Expr> later = need(s, index, l, Iteration::later), initial = need(s, index, l, Iteration::first);
  if (!later || !initial) return;
  Slide slide{l, index, *later, initial->substitute({{loop.lo, loop.first}, {loop.symbol, loop.begin()}})};
  const Expr previous = required.last.substitute({{loop.hi, loop.index_symbol() - 1}});
  if (may_carry(s, l) && is_monotone(required, loop)) {
    find_carried(s, index, l, previous);
    if (!stage.is_view) slide.first = first_of(loop, *later, previous + 1);
  }
  if (slide.first != required.first || !loop.warm_up.is_constant(0)) stage.slides.push_back(std::move(slide));
}

bool WindowPlanner::is_band(int l) const {
  const LoopPlan& band = plan_.loop(l);
  return std::ranges::any_of(plan_.loops, [&](const LoopPlan& loop) {
    return !loop.dropped && loop.stage == band.stage && loop.index == band.index && loop.depth > band.depth;
  });
}

int WindowPlanner::moved_index(const StagePlan& stage, int l) const {
  int found = -1;
  const auto inside = static_cast<size_t>(plan_.loop(l).depth) + 1;
  for (size_t i = 0; i < stage.required.size(); ++i) {
    if (!depends_on_loop(plan_, lifted(plan_, stage.required[i], stage.location, inside), l)) continue;
    for (const int other : stage.location)
      if (plan_.loop(other).depth > plan_.loop(l).depth && depends_on_loop(plan_, stage.required[i], other)) return -1;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

bool WindowPlanner::is_monotone(const Window& required, const LoopPlan& loop) const {
  return !depends_on(required.first, loop.hi) && !depends_on(required.last, loop.lo) &&
         is_non_decreasing_in(required.first, loop.lo) && is_non_decreasing_in(required.last, loop.hi);
}

bool WindowPlanner::may_carry(int s, int l) const {
  const size_t depth = static_cast<size_t>(plan_.loop(l).depth);
  for (const WriteSpec& write : plan_.spec(s).writes) {
    if (store_depth(write.buffer) > depth || store_depth(plan_.root_of(write.buffer)) > depth) return false;
  }
  return true;
}

size_t WindowPlanner::store_depth(int buffer) const {
  const std::optional<LoopName>& at = plan_.buffer_spec(buffer).store_at;
  if (!at || at->stage < 0 || plan_.buffer(buffer).producer < 0) return 0;
  const StagePlan& owner = plan_.stage(at->stage);
  size_t depth = owner.location.size();
  const auto& stated = plan_.spec(at->stage).loops;
  const auto position =
      std::ranges::find_if(stated, [&](const LoopOver& o) { return o.index.name() == at->index; }) - stated.begin();
  for (const int l : owner.own)
    if (plan_.loop(l).stated >= position) depth = static_cast<size_t>(plan_.loop(l).depth) + 1;
  return std::min(depth, plan_.stage(plan_.buffer(buffer).producer).location.size());
}

std::optional<Expr> WindowPlanner::need(int s, int index, int l, Iteration iteration) const {
  std::optional<Expr> first;
  for (const WriteSpec& write : plan_.spec(s).writes)
    for (size_t d = 0; d < write.indices.size(); ++d)
      if (plan_.stage(s).index_of(write.indices[d]) == index)
        if (const auto n = need_of_buffer(write.buffer, d, l, iteration)) first = first ? min(*first, *n) : *n;
  return first;
}

std::optional<Expr> WindowPlanner::need_of_buffer(int buffer, size_t d, int l, Iteration iteration) const {
  const auto [it, unknown] = needs_.try_emplace({buffer, d, l, iteration});
  if (unknown) it->second = find_need(buffer, d, l, iteration);
  return it->second;
}

std::optional<Expr> WindowPlanner::find_need(int buffer, size_t d, int l, Iteration iteration) const {
  const LoopPlan& loop = plan_.loop(l);
  std::optional<Expr> first;
  for (const Use& use : plan_.buffer(buffer).uses) {
    const std::vector<Window> indices = computed_box(plan_, use.stage, static_cast<size_t>(loop.depth) + 1, iteration);
    const Expr n = first_read(plan_, use, indices, d);
    first = first ? min(*first, n) : n;
  }
  const int64_t to = plan_.buffer_spec(buffer).dims[d].alignment;
  if (first && to > 1) first = to * floordiv(*first, to);
  return first;
}

void WindowPlanner::find_carried(int s, int index, int l, const Expr& previous) {
  const Substitution here = {{plan_.loop(l).lo, plan_.loop(l).index_symbol()}};
  for (const WriteSpec& write : plan_.spec(s).writes)
    for (size_t d = 0; d < write.indices.size(); ++d) {
      if (plan_.stage(s).index_of(write.indices[d]) != index) continue;
      const auto n = need_of_buffer(write.buffer, d, l, Iteration::later);
      if (!n || prove_lt(previous.substitute(here), n->substitute(here))) continue;
      plan_.buffer(write.buffer).carried_by.push_back(l);
      plan_.loop(l).carries = true;
    }
}

Expr WindowPlanner::first_of(const LoopPlan& loop, const Expr& need, const Expr& next) {
  if (!loop.warm_up.is_constant(0)) return max(need, next);
  const Expr here = need.substitute({{loop.lo, loop.index_symbol()}});
  if (prove_le(next, here)) return need;
  if (prove_le(here, next)) return next;
  return max(need, next);
}

}  // namespace detail

void plan_windows(Plan& plan) { detail::WindowPlanner(plan).run(); }

}  // namespace tenon::program
