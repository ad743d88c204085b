// In which loops stages are computed.
#include <algorithm>

#include <tenon/program/pipeline/required_indices_internal.hpp>

namespace tenon::program {

namespace {

Path common(const Path& a, const Path& b) {
  const auto [end, other] = std::ranges::mismatch(a, b);
  return {a.begin(), end};
}

class Placer {
 public:
  explicit Placer(Plan& plan) : plan_(plan), required_(plan) {}

  Result<void> run() {
    for (size_t i = plan_.order.size(); i-- > 0;)
      TENON_OK(place(plan_.order[i]), "in stage '", plan_.spec(plan_.order[i]).name, "'");
    if (!plan_.known_bounds.empty()) required_.insert_known_bounds();
    return {};
  }

 private:
  Result<void> place(int s) {
    StagePlan& stage = plan_.stage(s);
    TENON_TRY(location, location_of(s));
    stage.location = std::move(location);
    TENON_OK(required_.find(s));
    if (!plan_.spec(s).compute_at) leave_needless_loops(stage);
    make_loops(s);
    return {};
  }

  // The loops that contain all readers of the results.
  Path shared_by_readers(int s) const {
    std::optional<Path> shared;
    for (const WriteSpec& write : plan_.spec(s).writes) {
      const BufferPlan& b = plan_.buffer(write.buffer);
      if (b.role == Role::output) return {};
      for (const Use& use : b.uses)
        if (!shared)
          shared = plan_.stage(use.stage).body();
        else
          shared = common(*shared, plan_.stage(use.stage).body());
    }
    return shared.value_or(Path{});
  }

  Result<Path> location_of(int s) const {
    Path shared = shared_by_readers(s);
    const std::optional<LoopName>& at = plan_.spec(s).compute_at;
    if (!at) return shared;
    if (at->stage < 0) return Path{};
    TENON_TRY(depth, depth_of(*at, shared));
    shared.resize(depth);
    return shared;
  }

  // The depth of the named loop in the path. A loop that does not exist, since it was dropped or the schedule has none,
  // counts as one iteration.
  Result<size_t> depth_of(const LoopName& name, const Path& path) const {
    const Path body = plan_.stage(name.stage).body();
    const std::vector<LoopOver>& stated = plan_.spec(name.stage).loops;
    const auto position =
        std::ranges::find_if(stated, [&](const LoopOver& l) { return l.index.name() == name.index; }) - stated.begin();
    size_t depth = plan_.stage(name.stage).location.size();
    while (depth < body.size() && plan_.loop(body[depth]).stated >= position) ++depth;
    if (plan_.stage(name.stage).needed && common(body, path).size() >= depth) return depth;
    return error(Code::invalid_argument, "the loop of stage '", plan_.spec(name.stage).name, "' over '", name.index,
                 "' is not around all readers");
  }

  // Moves the stage out of loops that do not move it, so that nothing is recomputed in each of their iterations.
  void leave_needless_loops(StagePlan& stage) {
    size_t depth = 0;
    const auto moves = [&](int loop) {
      for (size_t i = 0; i < stage.required.size(); ++i)
        if (!stage.repeats[i].is_constant(1) && depends_on_loop(plan_, stage.required[i], loop)) return true;
      return false;
    };
    while (depth < stage.location.size() &&
           (moves(stage.location[depth]) || std::ranges::any_of(strips_of(stage.location, depth), moves)))
      ++depth;
    for (Window& w : stage.required) w = lifted(plan_, w, stage.location, depth);
    stage.location.resize(depth);
  }

  // For a loop over bands: the inner loops that iterate over the same index of the same stage, strip by strip.
  Path strips_of(const Path& path, size_t depth) const {
    const LoopPlan& band = plan_.loop(path[depth]);
    Path strips;
    for (size_t i = depth + 1; i < path.size(); ++i)
      if (const LoopPlan& loop = plan_.loop(path[i]); loop.stage == band.stage && loop.index == band.index)
        strips.push_back(path[i]);
    return strips;
  }

  void make_loops(int s) {
    StagePlan& stage = plan_.stage(s);
    const std::vector<LoopOver>& stated = plan_.spec(s).loops;
    stage.own.clear();
    for (size_t i = stated.size(); i-- > 0;) {
      const LoopOver& loop = stated[i];
      const int index = stage.index_of(loop.index.name());
      if (is_dropped(s, static_cast<int>(i))) continue;
      LoopPlan l;
      l.stage = s;
      l.index = index;
      l.stated = static_cast<int>(i);
      l.step = loop.step;
      l.workers = loop.workers;
      l.ahead = loop.ahead;
      l.symbol = str(loop.index.name(), "_", plan_.loops.size());
      l.lo = l.symbol + "_lo";
      l.hi = l.symbol + "_hi";
      l.depth = static_cast<int>(stage.location.size() + stage.own.size());
      l.range = index_box(plan_, s, static_cast<size_t>(l.depth))[static_cast<size_t>(index)];
      l.first = l.range.first;
      plan_.loops.push_back(std::move(l));
      stage.own.push_back(static_cast<int>(plan_.loops.size()) - 1);
    }
  }
  bool is_dropped(int s, int stated) const {
    return std::ranges::any_of(plan_.loops,
                               [&](const LoopPlan& l) { return l.dropped && l.stage == s && l.stated == stated; });
  }

  Plan& plan_;
  RequiredIndices required_;
};

// --- loops around one call ---

int calls_in(const Plan& plan, int loop) {
  int calls = 0;
  for (const int s : plan.order) {
    const StagePlan& stage = plan.stage(s);
    if (!stage.is_view && stage.is_in(loop)) ++calls;
  }
  return calls;
}

// Drops serial loops around a single call, which does the same on its own.
bool drop_loops(Plan& plan) {
  bool dropped = false;
  for (int l = 0; l < static_cast<int>(plan.loops.size()); ++l) {
    LoopPlan& loop = plan.loop(l);
    if (loop.dropped || loop.parallel() || calls_in(plan, l) > 1) continue;
    loop.dropped = dropped = true;
  }
  return dropped;
}

}  // namespace

Result<void> place_stages(Plan& plan) {
  do {
    std::erase_if(plan.loops, [](const LoopPlan& loop) { return !loop.dropped; });
    TENON_OK(Placer(plan).run());
  } while (drop_loops(plan));
  return {};
}

}  // namespace tenon::program
