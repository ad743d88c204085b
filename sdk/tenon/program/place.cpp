// Order, placement and boxes of stages.
#include <algorithm>

#include <tenon/program/plan.hpp>

namespace tenon::program {

namespace {

// --- order ---

enum class Mark : uint8_t { none, open, done };

Result<void> visit_stage(Plan& plan, int stage, std::vector<Mark>& marks) {
  Mark& mark = marks[static_cast<size_t>(stage)];
  if (mark == Mark::done) return {};
  if (mark == Mark::open)
    return error(Code::invalid_argument, "stage '", plan.spec(stage).name, "' needs its own results");
  mark = Mark::open;
  for (const ReadSpec& read : plan.spec(stage).reads)
    if (const int producer = plan.buffer(read.buffer).producer; producer >= 0)
      TENON_OK(visit_stage(plan, producer, marks), "in what stage '", plan.spec(stage).name, "' reads");
  mark = Mark::done;
  plan.order.push_back(stage);
  return {};
}

Result<void> find_producers(Plan& plan) {
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) {
    const StageSpec& spec = plan.spec(s);
    if (spec.writes.empty()) return error(Code::invalid_argument, "stage '", spec.name, "' writes nothing");
    for (int w = 0; w < static_cast<int>(spec.writes.size()); ++w) {
      BufferPlan& b = plan.buffer(spec.writes[static_cast<size_t>(w)].buffer);
      const std::string& name = plan.buffer_spec(spec.writes[static_cast<size_t>(w)].buffer).name;
      if (b.producer >= 0)
        return error(Code::invalid_argument, "buffer '", name, "' is written by stages '", plan.spec(b.producer).name,
                     "' and '", spec.name, "'");
      if (b.role == Role::input || b.role == Role::constant)
        return error(Code::invalid_argument, "stage '", spec.name, "' writes ", b.role == Role::input ? "input" : "constant",
                     " '", name, "'");
      b.producer = s;
      b.write = w;
    }
  }
  return {};
}

Result<void> check_stage(const Plan& plan, int s) {
  const StageSpec& spec = plan.spec(s);
  const StagePlan& stage = plan.stage(s);
  for (const LoopOver& loop : spec.loops)
    if (stage.index_of(loop.index.name()) < 0)
      return error(Code::invalid_argument, "stage '", spec.name, "' loops over '", loop.index.name(), "', which is no index of its results");
  for (const auto& [read, write] : spec.in_place)
    if (read < 0 || read >= static_cast<int>(spec.reads.size()) || write < 0 || write >= static_cast<int>(spec.writes.size()))
      return error(Code::invalid_argument, "stage '", spec.name, "' in place: read ", read, " and result ", write, " of ",
                   spec.reads.size(), " and ", spec.writes.size());
  for (const ReadSpec& read : spec.reads) {
    const BufferPlan& b = plan.buffer(read.buffer);
    if (b.producer < 0 && !plan.is_declared(read.buffer))
      return error(Code::invalid_argument, "stage '", spec.name, "' reads buffer '", plan.buffer_spec(read.buffer).name,
                   "', which is no input and which no stage writes");
  }
  return {};
}

void collect_indices(Plan& plan, int s) {
  StagePlan& stage = plan.stage(s);
  for (const WriteSpec& write : plan.spec(s).writes)
    for (const std::string& index : write.indices)
      if (stage.index_of(index) < 0) stage.indices.push_back(index);
}

}  // namespace

Result<void> order_stages(Plan& plan) {
  TENON_OK(find_producers(plan));
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) collect_indices(plan, s);
  std::vector<Mark> marks(plan.stages.size());
  for (const int output : plan.outputs) {
    if (plan.buffer(output).producer < 0)
      return error(Code::invalid_argument, "output '", plan.buffer_spec(output).name, "' is written by no stage");
    TENON_OK(visit_stage(plan, plan.buffer(output).producer, marks));
  }
  for (const int s : plan.order) {
    plan.stage(s).needed = true;
    TENON_OK(check_stage(plan, s));
    for (int r = 0; r < static_cast<int>(plan.spec(s).reads.size()); ++r)
      plan.buffer(plan.spec(s).reads[static_cast<size_t>(r)].buffer).uses.push_back({s, r});
  }
  return {};
}

// --- repetition ---

namespace {

// 1 where `e` is the same for all values of the index.
Expr is_same_along(const Expr& e, const std::string& index) {
  if (!depends_on(e, index)) return 1;
  if (e.kind() != ExprKind::select || depends_on(e.operands()[0], index)) return 0;
  return select(e.operands()[0], is_same_along(e.operands()[1], index), is_same_along(e.operands()[2], index));
}

// Conditions are asked outside of the stage, where it has no indices.
bool mentions_any(const Expr& e, const std::vector<std::string>& indices) {
  return std::ranges::any_of(indices, [&](const std::string& i) { return depends_on(e, i); });
}

}  // namespace

void find_repeats(Plan& plan) {
  for (const int s : plan.order) {
    StagePlan& stage = plan.stage(s);
    const StageSpec& spec = plan.spec(s);
    const bool one_map = spec.is_copy() && spec.parts.size() == 1 && !spec.parts[0].part && spec.padding_read < 0;
    stage.repeats.assign(stage.indices.size(), Expr(one_map ? 1 : 0));
    for (size_t i = 0; one_map && i < stage.indices.size(); ++i) {
      for (const Expr& e : spec.parts[0].map)
        stage.repeats[i] *= is_same_along(with_known_bounds(plan, e).first, stage.indices[i]);
      if (mentions_any(stage.repeats[i], stage.indices)) stage.repeats[i] = 0;
    }
  }
}

Expr Plan::one_place(int buffer_id, size_t dim) const {
  const BufferPlan& b = buffer(buffer_id);
  if (b.role != Role::local || b.alias || b.producer < 0) return 0;
  for (const BufferSpec::DimSpec& d : buffer_spec(buffer_id).dims)
    if (d.stride || d.fold) return 0;
  const StagePlan& s = stage(b.producer);
  return s.repeats[static_cast<size_t>(s.index_of(spec(b.producer).writes[static_cast<size_t>(b.write)].indices[dim]))];
}

// --- boxes ---

Window lifted(const Plan& plan, Window w, const Path& path, size_t depth) {
  for (size_t i = path.size(); i > depth; --i) {
    const LoopPlan& loop = plan.loop(path[i - 1]);
    if (depends_on_loop(plan, w, path[i - 1])) w = substituted(w, {{loop.lo, loop.range.first}, {loop.hi, loop.range.last}});
  }
  return w;
}

bool depends_on_loop(const Plan& plan, const Window& w, int loop) {
  const LoopPlan& l = plan.loop(loop);
  for (const Expr* e : {&w.first, &w.last})
    if (depends_on(*e, l.lo) || depends_on(*e, l.hi)) return true;
  return false;
}

std::vector<Window> index_box(const Plan& plan, int s, size_t depth) {
  const StagePlan& stage = plan.stage(s);
  std::vector<Window> box = stage.required;
  if (depth < stage.location.size()) {
    for (Window& w : box) w = lifted(plan, w, stage.location, depth);
    return box;
  }
  for (size_t i = 0; i < stage.own.size() && stage.location.size() + i < depth; ++i) {
    const LoopPlan& loop = plan.loop(stage.own[i]);
    box[static_cast<size_t>(loop.index)] = {Expr::symbol(loop.lo), Expr::symbol(loop.hi)};
  }
  return box;
}

namespace {

// The indices of the stage as the read sees them.
SymbolWindows windows_of_indices(const Plan& plan, const Use& use, const std::vector<Window>& indices) {
  const StageSpec& spec = plan.spec(use.stage);
  const StagePlan& stage = plan.stage(use.stage);
  SymbolWindows symbols;
  symbols.reserve(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) symbols.emplace_back(stage.indices[i], indices[i]);
  if (spec.is_copy() && use.read != spec.padding_read)
    if (const CopyPart& part = spec.parts[static_cast<size_t>(use.read)]; part.part) {
      const int index = stage.index_of(spec.writes[0].indices[static_cast<size_t>(part.part_dim)]);
      Window& w = symbols[static_cast<size_t>(index)].second;
      w = intersected(w, *part.part);
    }
  return symbols;
}

}  // namespace

std::vector<Window> read_box(const Plan& plan, const Use& use, const std::vector<Window>& indices) {
  const SymbolWindows symbols = windows_of_indices(plan, use, indices);
  std::vector<Window> box;
  for (const Window& w : plan.spec(use.stage).reads[static_cast<size_t>(use.read)].windows) box.push_back(image(w, symbols));
  return box;
}

Expr first_read(const Plan& plan, const Use& use, const std::vector<Window>& indices, size_t dim) {
  return first_of_image(plan.spec(use.stage).reads[static_cast<size_t>(use.read)].windows[dim], windows_of_indices(plan, use, indices));
}

Window with_known_bounds(const Plan& plan, Window w) {
  // Bounds may be given by other bounds; a chain of them ends.
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Window next = substituted(w, plan.known_bounds);
    if (next == w) break;
    w = next;
  }
  return w;
}

std::vector<Window> write_box(const Plan& plan, int s, int write, const std::vector<Window>& indices) {
  std::vector<Window> box;
  for (const std::string& index : plan.spec(s).writes[static_cast<size_t>(write)].indices)
    box.push_back(indices[static_cast<size_t>(plan.stage(s).index_of(index))]);
  return box;
}

std::vector<Window> whole_box(const Plan& plan, int buffer) {
  const BufferPlan& b = plan.buffer(buffer);
  const BufferSpec& spec = plan.buffer_spec(buffer);
  if (b.role == Role::local) return write_box(plan, b.producer, b.write, index_box(plan, b.producer, 0));
  std::vector<Window> box;
  for (int d = 0; d < spec.rank; ++d)
    box.push_back(with_known_bounds(plan, {min_of(spec.name, d), max_of(spec.name, d)}));
  return box;
}

// --- placement ---

namespace {

Path common(const Path& a, const Path& b) {
  const auto [end, other] = std::ranges::mismatch(a, b);
  return {a.begin(), end};
}

class Placer {
 public:
  explicit Placer(Plan& plan) : plan_(plan) {}

  Result<void> run() {
    for (size_t i = plan_.order.size(); i-- > 0;)
      TENON_OK(place(plan_.order[i]), "in stage '", plan_.spec(plan_.order[i]).name, "'");
    if (!plan_.known_bounds.empty()) insert_known_bounds();
    return {};
  }

 private:
  Result<void> place(int s) {
    StagePlan& stage = plan_.stage(s);
    TENON_TRY(location, location_of(s));
    stage.location = std::move(location);
    TENON_OK(require(s));
    if (!plan_.spec(s).compute_at) leave_needless_loops(stage);
    make_loops(s);
    return {};
  }

  // The loops that everyone who reads the results is in.
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

  // How many loops of the path there are down to the named one. A loop that is not there, since it was dropped or the
  // schedule has none, has one iteration, as it were.
  Result<size_t> depth_of(const LoopName& name, const Path& path) const {
    const Path body = plan_.stage(name.stage).body();
    const std::vector<LoopOver>& stated = plan_.spec(name.stage).loops;
    const auto position = std::ranges::find_if(stated, [&](const LoopOver& l) { return l.index.name() == name.index; }) - stated.begin();
    size_t depth = plan_.stage(name.stage).location.size();
    while (depth < body.size() && plan_.loop(body[depth]).stated >= position) ++depth;
    if (plan_.stage(name.stage).needed && common(body, path).size() >= depth) return depth;
    return error(Code::invalid_argument, "the loop of stage '", plan_.spec(name.stage).name, "' over '", name.index,
                 "' is not around all readers");
  }

  Result<void> require(int s) {
    StagePlan& stage = plan_.stage(s);
    std::vector<std::optional<Window>> required(stage.indices.size());
    const auto add = [&](int index, const Window& w) {
      std::optional<Window>& r = required[static_cast<size_t>(index)];
      r = r ? united(*r, w) : w;
    };
    for (const WriteSpec& write : plan_.spec(s).writes) {
      std::vector<std::optional<Window>> box(write.indices.size());
      require_of_buffer(write.buffer, stage.location, box);
      for (size_t d = 0; d < box.size(); ++d)
        if (box[d]) add(stage.index_of(write.indices[d]), aligned(plan_.buffer_spec(write.buffer).dims[d].alignment, *box[d]));
    }
    stage.required.clear();
    for (size_t i = 0; i < required.size(); ++i) {
      if (!required[i])
        return error(Code::invalid_argument, "nothing says which indices '", stage.indices[i], "' are needed");
      stage.required.push_back(*required[i]);
    }
    resolve_bounds(s);
    return {};
  }

  void require_of_buffer(int buffer, const Path& location, std::vector<std::optional<Window>>& box) {
    const BufferPlan& b = plan_.buffer(buffer);
    const BufferSpec& spec = plan_.buffer_spec(buffer);
    const auto add = [&](size_t d, const Window& w) { box[d] = box[d] ? united(*box[d], w) : w; };
    if (b.role == Role::output) {
      // All that the caller has room for; a run checks that nobody reads more.
      for (int d = 0; d < spec.rank; ++d) add(static_cast<size_t>(d), whole_box(plan_, buffer)[static_cast<size_t>(d)]);
      return;
    }
    for (const Use& use : b.uses) {
      const std::vector<Window> read = read_box(plan_, use, index_box(plan_, use.stage, location.size()));
      for (size_t d = 0; d < read.size(); ++d)
        if (!mentions_bounds_of(read[d], spec)) add(d, read[d]);
    }
  }

  // Reading "all of a buffer" asks for no more of it than others do.
  static bool mentions_bounds_of(const Window& w, const BufferSpec& spec) {
    for (int d = 0; d < spec.rank; ++d)
      for (const Expr& e : {min_of(spec.name, d), extent_of(spec.name, d)})
        if (depends_on(w.first, e.name()) || depends_on(w.last, e.name())) return true;
    return false;
  }

  // Boxes were found before the bounds that they speak of were.
  void insert_known_bounds() {
    for (const int s : plan_.order)
      for (Window& w : plan_.stage(s).required) w = with_known_bounds(plan_, w);
    for (LoopPlan& loop : plan_.loops)
      if (!loop.dropped) {
        loop.range = with_known_bounds(plan_, loop.range);
        loop.first = loop.range.first;
      }
  }

  Window aligned(int64_t to, const Window& w) const {
    if (to == 1 || is_aligned(to, w)) return w;
    return {to * floordiv(w.first, to), to * floordiv(w.last, to) + (to - 1)};
  }

  // Whether it is all of a declared buffer whose bounds are so aligned.
  bool is_aligned(int64_t to, const Window& w) const {
    for (const int b : plan_.outputs) {
      const BufferSpec& spec = plan_.buffer_spec(b);
      for (int d = 0; d < spec.rank; ++d)
        if (spec.dims[static_cast<size_t>(d)].alignment % to == 0 && w == whole_box(plan_, b)[static_cast<size_t>(d)]) return true;
    }
    return false;
  }

  // Bounds of buffers that the caller does not give: all that is computed of them.
  void resolve_bounds(int s) {
    for (const WriteSpec& write : plan_.spec(s).writes) {
      if (plan_.is_declared(write.buffer)) continue;
      const std::vector<Window> whole = whole_box(plan_, write.buffer);
      const std::string& name = plan_.buffer_spec(write.buffer).name;
      for (size_t d = 0; d < whole.size(); ++d) {
        plan_.known_bounds[std::string(min_of(name, static_cast<int>(d)).name())] = whole[d].first;
        plan_.known_bounds[std::string(extent_of(name, static_cast<int>(d)).name())] = whole[d].extent();
      }
    }
  }

  // Nothing is computed once more for each iteration of a loop that does not move it.
  void leave_needless_loops(StagePlan& stage) {
    size_t depth = 0;
    const auto moves = [&](int loop) {
      for (size_t i = 0; i < stage.required.size(); ++i)
        if (!stage.repeats[i].is_constant(1) && depends_on_loop(plan_, stage.required[i], loop)) return true;
      return false;
    };
    while (depth < stage.location.size() && moves(stage.location[depth])) ++depth;
    for (Window& w : stage.required) w = lifted(plan_, w, stage.location, depth);
    stage.location.resize(depth);
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
    return std::ranges::any_of(plan_.loops, [&](const LoopPlan& l) { return l.dropped && l.stage == s && l.stated == stated; });
  }

  Plan& plan_;
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

// A serial loop around one call does what the call does by itself.
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
