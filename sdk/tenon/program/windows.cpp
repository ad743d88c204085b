// What each iteration computes, and what is kept for later ones.
//
// Terms, for a stage in a loop over y with step s, and an index of it that moves with y:
//   U(p)   the last index required while the loop has covered everything up to p; never falls as p grows
//   need   the first index that readers still read in this iteration; readers read no more than they compute themselves
// An iteration computes max(need, U(y - 1) + 1) .. U(y + s - 1), the first one need .. U. What readers read below
// U(y - 1) + 1 was computed by earlier iterations: the buffer carries a window, of at most U(y + s - 1) - need + 1 indices.
//
// In the first iteration windows of windows are larger than ever after: warm-up iterations before the loop's begin, which
// compute only what windows lack, keep them small.
#include <algorithm>

#include <tenon/program/plan.hpp>

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
  return at_begin == slide.initial ? slide.first : select(equal(loop.index_symbol(), loop.begin()), slide.initial, slide.first);
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
    if (own_loop) continue;  // the own loop begins there
    if (iteration == Iteration::any) w.first = first_in_any(loop, slide);
    else w.first = iteration == Iteration::first ? slide.initial : slide.first;
  }
  return box;
}

namespace {

// What a loop's symbols are worth, for the loop as it is planned so far.
struct LoopTerms {
  LoopRange range;
  Substitution by_index;  // the symbols that stand for bounds in an iteration, by its index alone
  Substitution at_start;
  explicit LoopTerms(const LoopPlan& loop)
      : range{loop.symbol, loop.begin(), loop.range.last, loop.step},
        by_index{{loop.lo, loop.index_symbol()}, {loop.hi, loop.index_symbol() + loop.step - 1}},
        at_start{{loop.lo, loop.first}, {loop.hi, min(range.first + loop.step - 1, range.last)}, {loop.symbol, range.first}} {}
};

class WindowPlanner {
 public:
  explicit WindowPlanner(Plan& plan) : plan_(plan) {}

  void run() {
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) keep_for_aliases(b);
    slide_all();
    bool warm = false;
    for (int l = 0; l < static_cast<int>(plan_.loops.size()); ++l)
      if (!plan_.loop(l).dropped && plan_.loop(l).carries) warm = warm_up(l) || warm;
    if (warm) slide_all();
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
      if (needs_memory(b)) store(b);
  }

 private:
  // Memory of a buffer is outside of loops that only one of it and of what lies in it is computed in.
  void keep_for_aliases(int b) {
    const std::optional<Alias>& alias = plan_.buffer(b).alias;
    if (!alias || plan_.buffer(b).producer < 0) return;
    const Path& mine = plan_.stage(plan_.buffer(b).producer).location;
    size_t depth = mine.size();
    if (const int other = plan_.buffer(alias->of).producer; other >= 0 && !plan_.stage(plan_.buffer(b).producer).is_view) {
      const Path& its = plan_.stage(other).location;
      depth = static_cast<size_t>(std::ranges::mismatch(mine, its).in1 - mine.begin());
    }
    size_t& keep = plan_.buffer(plan_.root_of(b)).keep_outside;
    keep = std::min(keep, depth);
  }

  // Slides of readers are known when those of a producer are sought, so that what is found holds until all are sought anew.
  void slide_all() {
    needs_.clear();
    terms_.clear();
    for (BufferPlan& b : plan_.buffers) b.carried_by.clear();
    for (size_t i = plan_.order.size(); i-- > 0;) {
      const int s = plan_.order[i];
      plan_.stage(s).slides.clear();
      for (const int loop : plan_.stage(s).location) slide(s, loop);
      for (const int l : plan_.stage(s).own) {
        LoopPlan& loop = plan_.loop(l);
        loop.first = computed_box(plan_, s, static_cast<size_t>(loop.depth), Iteration::any)[static_cast<size_t>(loop.index)].first;
      }
    }
  }

  // --- what an iteration computes ---

  void slide(int s, int l) {
    StagePlan& stage = plan_.stage(s);
    const LoopPlan& loop = plan_.loop(l);
    const int index = moved_index(stage, l);
    if (index < 0) return;
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

  // The one index that moves with the loop, and with no loop further in; -1 if there is none. An index that follows a loop
  // further in moves with this one where the range of that loop does.
  int moved_index(const StagePlan& stage, int l) const {
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

  bool is_monotone(const Window& required, const LoopPlan& loop) const {
    return !depends_on(required.first, loop.hi) && !depends_on(required.last, loop.lo) &&
           is_non_decreasing_in(required.first, loop.lo) && is_non_decreasing_in(required.last, loop.hi);
  }

  // Whether memory of all results is the same in all iterations of the loop.
  bool may_carry(int s, int l) const {
    const size_t depth = static_cast<size_t>(plan_.loop(l).depth);
    for (const WriteSpec& write : plan_.spec(s).writes) {
      if (store_depth(write.buffer) > depth || store_depth(plan_.root_of(write.buffer)) > depth) return false;
    }
    return true;
  }

  // Memory is inside of so many loops, by the author's word.
  size_t store_depth(int buffer) const {
    const std::optional<LoopName>& at = plan_.buffer_spec(buffer).store_at;
    if (!at || at->stage < 0 || plan_.buffer(buffer).producer < 0) return 0;
    const StagePlan& owner = plan_.stage(at->stage);
    size_t depth = owner.location.size();
    const auto& stated = plan_.spec(at->stage).loops;
    const auto position = std::ranges::find_if(stated, [&](const LoopOver& o) { return o.index.name() == at->index; }) - stated.begin();
    for (const int l : owner.own)
      if (plan_.loop(l).stated >= position) depth = static_cast<size_t>(plan_.loop(l).depth) + 1;
    return std::min(depth, plan_.stage(plan_.buffer(buffer).producer).location.size());
  }

  // The first index of the stage that anyone reads in an iteration.
  std::optional<Expr> need(int s, int index, int l, Iteration iteration) const {
    std::optional<Expr> first;
    for (const WriteSpec& write : plan_.spec(s).writes)
      for (size_t d = 0; d < write.indices.size(); ++d)
        if (plan_.stage(s).index_of(write.indices[d]) == index)
          if (const auto n = need_of_buffer(write.buffer, d, l, iteration)) first = first ? min(*first, *n) : *n;
    return first;
  }

  std::optional<Expr> need_of_buffer(int buffer, size_t d, int l, Iteration iteration) const {
    const auto [it, unknown] = needs_.try_emplace({buffer, d, l, iteration});
    if (unknown) it->second = find_need(buffer, d, l, iteration);
    return it->second;
  }
  std::optional<Expr> find_need(int buffer, size_t d, int l, Iteration iteration) const {
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

  void find_carried(int s, int index, int l, const Expr& previous) {
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

  static Expr first_of(const LoopPlan& loop, const Expr& need, const Expr& next) {
    if (!loop.warm_up.is_constant(0)) return max(need, next);
    const Expr here = need.substitute({{loop.lo, loop.index_symbol()}});
    if (prove_le(next, here)) return need;
    if (prove_le(here, next)) return next;
    return max(need, next);
  }

  // --- warm-up ---

  bool warm_up(int l) {
    LoopPlan& loop = plan_.loop(l);
    Expr longest = 0;
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) {
      if (!needs_memory(b) || !std::ranges::count(plan_.stage(plan_.buffer(b).producer).location, l)) continue;
      const int dim = moved_dim(b, l);
      if (dim < 0 || !need_of_buffer(b, static_cast<size_t>(dim), l, Iteration::later)) continue;
      const Expr last = plan_.stage(plan_.buffer(b).producer).required[static_cast<size_t>(moved_index(plan_.stage(plan_.buffer(b).producer), l))].last;
      const Expr excess = initial_extent(b, dim, l) - window_extent(b, dim, l, 0);
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

  int moved_dim(int b, int l) const {
    const BufferPlan& buffer = plan_.buffer(b);
    const StagePlan& stage = plan_.stage(buffer.producer);
    const auto& indices = plan_.spec(buffer.producer).writes[static_cast<size_t>(buffer.write)].indices;
    const int index = moved_index(stage, l);
    for (size_t d = 0; d < indices.size(); ++d)
      if (stage.index_of(indices[d]) == index) return static_cast<int>(d);
    return -1;
  }

  const Expr& last_of(int b, int dim) const {
    const BufferPlan& buffer = plan_.buffer(b);
    const StagePlan& stage = plan_.stage(buffer.producer);
    const auto& indices = plan_.spec(buffer.producer).writes[static_cast<size_t>(buffer.write)].indices;
    return stage.required[static_cast<size_t>(stage.index_of(indices[static_cast<size_t>(dim)]))].last;
  }

  // Indices kept in any iteration but the first, with `ahead` more iterations under way.
  Expr window_extent(int b, int dim, int l, const Expr& ahead) const {
    const LoopPlan& loop = plan_.loop(l);
    const Expr behind = loop.index_symbol() - ahead * loop.step;
    const Expr need = need_of_buffer(b, static_cast<size_t>(dim), l, Iteration::later)
                          ->substitute({{loop.lo, behind}, {loop.symbol, behind}});
    return supremum_of_difference(last_of(b, dim).substitute(terms(l).by_index) + 1, need, terms(l).range);
  }
  Expr initial_extent(int b, int dim, int l) const {
    const LoopPlan& loop = plan_.loop(l);
    const Expr need = need_of_buffer(b, static_cast<size_t>(dim), l, Iteration::first)->substitute(terms(l).at_start);
    return supremum_of_difference(last_of(b, dim).substitute({{loop.hi, loop.begin() + loop.step - 1}}) + 1, need, terms(l).range);
  }

  // --- memory ---

  bool needs_memory(int b) const {
    const BufferPlan& buffer = plan_.buffer(b);
    return buffer.role == Role::local && !buffer.alias && buffer.producer >= 0 && plan_.stage(buffer.producer).needed;
  }

  void store(int b) {
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
    storage.box = write_box(plan_, buffer.producer, buffer.write, computed_box(plan_, buffer.producer, level, Iteration::any));
    const std::vector<Window> whole = whole_box(plan_, b);
    for (size_t d = 0; d < whole.size(); ++d) {
      const bool moves = std::ranges::any_of(path, [&](int l) { return static_cast<size_t>(plan_.loop(l).depth) < level && (depends_on_loop(plan_, storage.box[d], l) || depends_on(storage.box[d].first, plan_.loop(l).symbol)); });
      storage.moves.push_back(moves);
      storage.places.push_back(moves ? min(most_places(b, d, level), max(whole[d].extent(), Expr(0))) : storage.box[d].extent());
    }
    if (storage.ring_dim >= 0) {
      Expr& places = storage.places[static_cast<size_t>(storage.ring_dim)];
      storage.ring = max(min(places, over_loops(ring_places(b, storage.ring_dim, storage.carried_by), path, level)), Expr(1));
      places = storage.ring;
    }
    if (storage.linear) storage.places[static_cast<size_t>(storage.linear->dim)] = storage.linear->places;
    storage.slots = slots(path, storage.linear ? 0 : level);
    for (size_t i = level; i < path.size(); ++i) make_serial_if_shared(b, path[i]);
    buffer.storage = std::move(storage);
  }

  // Iterations that may write the same elements of memory that they share take turns.
  void make_serial_if_shared(int b, int l) {
    const StagePlan& stage = plan_.stage(plan_.buffer(b).producer);
    LoopPlan& loop = plan_.loop(l);
    if (!loop.parallel()) return;
    const int index = moved_index(stage, l);
    if (index < 0 || (!is_carried(b, l) && !is_disjoint(stage.required[static_cast<size_t>(index)], loop))) loop.workers = 1;
  }

  // Whether no two iterations require the same index.
  bool is_disjoint(const Window& required, const LoopPlan& loop) const {
    return is_monotone(required, loop) && prove_lt(required.last.substitute({{loop.hi, loop.index_symbol() - 1}}),
                                                   required.first.substitute({{loop.lo, loop.index_symbol()}}));
  }

  bool is_carried(int b, int l) const {
    const BufferPlan& buffer = plan_.buffer(b);
    return std::ranges::count(buffer.carried_by, l) > 0;
  }

  // A ring where all who see the buffer take one, else a window in one piece; else all indices are kept.
  void keep_window(int b, int l, Storage& storage) const {
    const int dim = moved_dim(b, l);
    if (!takes_rings(plan_, b)) {
      storage.linear = linear_window(b, dim, l);
      if (storage.linear) storage.level = 1;
    } else if (may_be_ring(b, dim)) {
      storage.carried_by = l;
      storage.ring_dim = dim;
    }
  }

  static Substitution next_of(const LoopPlan& loop) { return {{loop.symbol, loop.index_symbol() + loop.step}}; }

  std::optional<LinearWindow> linear_window(int b, int dim, int l) const {
    const LoopPlan& loop = plan_.loop(l);
    const StagePlan& producer = plan_.stage(plan_.buffer(b).producer);
    if (loop.depth > 0 || producer.is_view || producer.pads_only || holds_sources(b)) return {};
    const Expr need = need_of_buffer(b, static_cast<size_t>(dim), l, Iteration::later)->substitute({{loop.lo, loop.index_symbol()}});
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

  // Whether other stages write into the memory of the buffer.
  bool holds_sources(int b) const {
    for (int a = 0; a < static_cast<int>(plan_.buffers.size()); ++a)
      if (a != b && plan_.root_of(a) == b && !plan_.stage(plan_.buffer(a).producer).is_view) return true;
    return false;
  }

  // A view of a ring sees it where each index of the view is the index of the ring.
  bool may_be_ring(int b, int dim) const {
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

  Expr ring_places(int b, int dim, int l) const {
    const LoopPlan& loop = plan_.loop(l);
    const Expr ahead = loop.parallel() ? workers(loop) - 1 : Expr(0);
    return max(window_extent(b, dim, l, ahead), initial_extent(b, dim, l));
  }

  static Expr workers(const LoopPlan& loop) {
    return max(min(min(loop.workers, Expr::symbol(kThreadsSymbol)), ceildiv(loop.range.last - loop.begin() + 1, loop.step)), Expr(1));
  }

  // The most places that the box takes in any iteration of the loops around.
  Expr most_places(int b, size_t d, size_t level) const {
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

  // The innermost loop of which an iteration but the first begins elsewhere in the dim.
  int sliding_loop(int b, size_t d, size_t level) const {
    const BufferPlan& buffer = plan_.buffer(b);
    const StagePlan& stage = plan_.stage(buffer.producer);
    const int index = stage.index_of(plan_.spec(buffer.producer).writes[static_cast<size_t>(buffer.write)].indices[d]);
    int found = -1;
    for (const Slide& slide : stage.slides)
      if (slide.index == index && static_cast<size_t>(plan_.loop(slide.loop).depth) < level) found = slide.loop;
    return found;
  }

  // `at_first`: a loop that is in its first iteration.
  Expr over_loops(const Window& w, const Path& path, size_t level, int at_first = -1) const {
    Expr lower = w.first, upper = w.last + 1;
    for (size_t i = level; i-- > 0;) {
      const int l = path[i];
      if (l == at_first) {
        upper = upper.substitute(terms(l).at_start) - lower.substitute(terms(l).at_start);
        lower = 0;
        continue;
      }
      upper = supremum_of_difference(upper.substitute(terms(l).by_index), lower.substitute(terms(l).by_index), terms(l).range);
      lower = 0;
    }
    return level == 0 ? upper - lower : upper;
  }
  Expr over_loops(const Expr& places, const Path& path, size_t level) const {
    return over_loops(Window(0, places - 1), path, level);
  }

  // One for each worker that is in an iteration of its own.
  Expr slots(const Path& path, size_t level) const {
    Expr most = 1;
    for (size_t i = 0; i < level; ++i)
      if (const LoopPlan& loop = plan_.loop(path[i]); loop.parallel()) {
        const Window iterations(loop.begin(), loop.range.last);
        const Expr count = ceildiv(over_loops(iterations, path, i), loop.step);
        most = max(most, min(min(loop.workers, Expr::symbol(kThreadsSymbol)), count));
      }
    return most;
  }

  const LoopTerms& terms(int l) const { return terms_.try_emplace(l, plan_.loop(l)).first->second; }

  Plan& plan_;
  mutable std::map<std::tuple<int, size_t, int, Iteration>, std::optional<Expr>> needs_;  // of need_of_buffer
  mutable std::map<int, LoopTerms> terms_;
};

}  // namespace

void plan_windows(Plan& plan) { WindowPlanner(plan).run(); }

}  // namespace tenon::program
