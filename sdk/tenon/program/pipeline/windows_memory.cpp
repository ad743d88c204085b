#include <algorithm>

#include <tenon/program/pipeline/windows_internal.hpp>

namespace tenon::program::detail {

bool WindowPlanner::needs_memory(int b) const {
  const BufferPlan& buffer = plan_.buffer(b);
  return buffer.role == Role::local && !buffer.alias && buffer.producer >= 0 && plan_.stage(buffer.producer).needed;
}

void WindowPlanner::store(int b) {
  BufferPlan& buffer = plan_.buffer(b);
  const Path& path = plan_.stage(buffer.producer).location;
  Storage storage;
  storage.level = static_cast<int>(std::min(path.size(), buffer.keep_outside));
  for (size_t i = 0; i < static_cast<size_t>(storage.level); ++i)
    if (is_carried(b, path[i])) {
      storage.level = static_cast<int>(i);
      keep_window(b, path[i], storage);
      break;
    }
  const size_t level = static_cast<size_t>(storage.level);
  storage.box =
      write_box(plan_, buffer.producer, buffer.write, computed_box(plan_, buffer.producer, level, Iteration::any));
  const std::vector<Window> whole = whole_box(plan_, b);
  for (size_t d = 0; d < whole.size(); ++d) {
    const bool moves = std::ranges::any_of(path, [&](int l) {
      return static_cast<size_t>(plan_.loop(l).depth) < level &&
             (depends_on_loop(plan_, storage.box[d], l) || depends_on(storage.box[d].first, plan_.loop(l).symbol));
    });
    storage.moves.push_back(moves);
    storage.places.push_back(moves ? min(most_places(b, d, level), max(whole[d].extent(), Expr(0)))
                                   : storage.box[d].extent());
  }
  if (storage.ring_dim >= 0) {
    Expr& places = storage.places[static_cast<size_t>(storage.ring_dim)];
    storage.ring =
        max(min(places, over_loops(ring_places(b, storage.ring_dim, storage.carried_by), path, level)), Expr(1));
    places = storage.ring;
  }
  if (storage.linear) storage.places[static_cast<size_t>(storage.linear->dim)] = storage.linear->places;
  storage.slots = slots(path, storage.linear ? 0 : level);
  for (size_t i = level; i < path.size(); ++i) make_serial_if_shared(b, path[i]);
  if (!storage.slots.is_constant(1)) make_serial_within(b, level);
  buffer.storage = std::move(storage);
}

void WindowPlanner::make_serial_within(int b, size_t level) {
  const auto touches = [&](int buffer) { return plan_.root_of(buffer) == b; };
  for (const int s : plan_.order) {
    const StageSpec& spec = plan_.spec(s);
    if (!std::ranges::any_of(spec.reads, touches, &ReadSpec::buffer) &&
        !std::ranges::any_of(spec.writes, touches, &WriteSpec::buffer))
      continue;
    for (const int l : plan_.stage(s).body())
      if (static_cast<size_t>(plan_.loop(l).depth) >= level) plan_.loop(l).workers = 1;
  }
}

void WindowPlanner::make_serial_if_shared(int b, int l) {
  const StagePlan& stage = plan_.stage(plan_.buffer(b).producer);
  LoopPlan& loop = plan_.loop(l);
  if (!loop.parallel()) return;
  const int index = moved_index(stage, l);
  if (index < 0 || (!is_carried(b, l) && !is_disjoint(stage.required[static_cast<size_t>(index)], loop)))
    loop.workers = 1;
}

bool WindowPlanner::is_disjoint(const Window& required, const LoopPlan& loop) const {
  return is_monotone(required, loop) && prove_lt(required.last.substitute({{loop.hi, loop.index_symbol() - 1}}),
                                                 required.first.substitute({{loop.lo, loop.index_symbol()}}));
}

bool WindowPlanner::is_carried(int b, int l) const {
  const BufferPlan& buffer = plan_.buffer(b);
  return std::ranges::count(buffer.carried_by, l) > 0;
}

void WindowPlanner::keep_window(int b, int l, Storage& storage) const {
  const int dim = moved_dim(b, l);
  if (!takes_rings(plan_, b)) {
    storage.linear = linear_window(b, dim, l);
    if (storage.linear) storage.level = 1;
  } else if (may_be_ring(b, dim)) {
    storage.carried_by = l;
    storage.ring_dim = dim;
  }
}

std::optional<LinearWindow> WindowPlanner::linear_window(int b, int dim, int l) const {
  const LoopPlan& loop = plan_.loop(l);
  const StagePlan& producer = plan_.stage(plan_.buffer(b).producer);
  if (loop.depth > 0 || producer.is_view || producer.pads_only || holds_sources(b)) return {};
  const Expr need =
      need_of_buffer(b, static_cast<size_t>(dim), l, Iteration::later)->substitute({{loop.lo, loop.index_symbol()}});
  const Expr step = need.substitute(next_of(loop)) - need;
  Assumptions known;  // steps are at least 1, or the run ends with an error
  if (loop.step.is_symbol()) known[std::string(loop.step.name())] = {1, std::nullopt};
  if (depends_on(step, loop.symbol) || !prove_lt(0, step, known)) return {};
  const Expr initial = need_of_buffer(b, static_cast<size_t>(dim), l, Iteration::first)->substitute(terms(l).at_start);
  const Expr need_at_begin = need.substitute({{loop.symbol, loop.begin()}});
  LinearWindow w{l, dim, {}, {}, {}, {}, {}};
  const Expr early = max(need_at_begin - initial, Expr(0));
  const Window whole = whole_box(plan_, b)[static_cast<size_t>(dim)];
  w.origin = whole.first;
  w.anchor = max(need - early, w.origin);
  w.extent = max(min(window_extent(b, dim, l, 0) + early, whole.extent()), Expr(1));
  const Expr ahead = loop.parallel() ? workers(loop) - 1 : Expr(0);
  w.period = step * (ceildiv(w.extent, step) + ahead);
  // The last anchor of a period is a step before its end, or less where the first one is not at the origin.
  const Expr rest = mod(need_at_begin - early - w.origin, step);
  w.places = max(min(w.period - step + rest + w.extent, whole.extent()), Expr(1));
  return w;
}

bool WindowPlanner::holds_sources(int b) const {
  for (int a = 0; a < static_cast<int>(plan_.buffers.size()); ++a)
    if (a != b && plan_.root_of(a) == b && !plan_.stage(plan_.buffer(a).producer).is_view) return true;
  return false;
}

bool WindowPlanner::may_be_ring(int b, int dim) const {
  for (int a = 0; a < static_cast<int>(plan_.buffers.size()); ++a) {
    const std::optional<Alias>& alias = plan_.buffer(a).alias;
    if (!alias || plan_.root_of(a) != b) continue;
    if (alias->of != b) return false;
    const Expr& e = alias->map[static_cast<size_t>(dim)];
    if (!e.is_symbol() || !e.name().starts_with("alias.")) return false;
    for (size_t other = 0; other < alias->map.size(); ++other)
      if (static_cast<int>(other) != dim && depends_on(alias->map[other], e.name())) return false;
  }
  return true;
}

}  // namespace tenon::program::detail
