// The plan as statements.
#include <algorithm>

#include <tenon/program/plan.hpp>

namespace tenon::program {

namespace {

// What one statement of a block does: a stage, or a loop with all stages in it.
struct Unit {
  int stage = -1;
  int loop = -1;
};

class Emitter {
 public:
  explicit Emitter(const Plan& plan) : plan_(plan), ids_(plan.buffers.size(), -1) {}

  Result<Program> run() {
    program_.name = plan_.data.name;
    program_.scalars = plan_.scalars;
    for (const int b : plan_.inputs) declare(b);
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
      if (plan_.buffer(b).role == Role::constant && !plan_.buffer(b).uses.empty()) declare(b);
    for (const int b : plan_.outputs) declare(b);
    // Memory comes first: views within loops speak of it.
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
      if (has_memory(b)) make_memory(b);
    std::vector<Statement> statements = checks();
    statements.push_back(block({}));
    program_.body = Block{std::move(statements)};
    return std::move(program_);
  }

 private:
  // --- buffers ---

  void declare(int b) { ids_[static_cast<size_t>(b)] = add(plan_.buffer_spec(b), plan_.buffer_spec(b).name, plan_.buffer(b).role); }

  BufferId add(const BufferSpec& spec, const std::string& name, Role role) {
    return program_.add_buffer({name, spec.element, spec.rank, role, spec.space});
  }

  // The buffer of the program that shows this buffer.
  BufferId id(int b) {
    while (plan_.buffer(b).alias && plan_.buffer(b).alias->same()) b = plan_.buffer(b).alias->of;
    BufferId& found = ids_[static_cast<size_t>(b)];
    if (found < 0) found = add(plan_.buffer_spec(b), plan_.buffer_spec(b).name, Role::local);
    return found;
  }
  std::string visible_name(int b) { return program_.buffer(id(b)).name; }

  static Expr extent(const Window& w) { return max(w.extent(), Expr(0)); }

  // The loops around that the memory of the buffer is made inside of.
  size_t level(int b) const {
    const int root = plan_.root_of(b);
    return plan_.is_declared(root) ? 0 : static_cast<size_t>(plan_.buffer(root).storage.level);
  }
  Path level_path(int b) const {
    const int root = plan_.root_of(b);
    if (plan_.is_declared(root)) return {};
    Path path = plan_.stage(plan_.buffer(root).producer).location;
    path.resize(level(b));
    return path;
  }

  // Made inside of loops: an iteration sees its box over the memory that all iterations share.
  bool moves(int b) const { return plan_.buffer(b).storage.level > 0; }

  void make_memory(int b) {
    if (moves(b))
      if (const int other = shared_memory(b); other >= 0) {
        memory_[b] = memory_.at(other);
        return;
      }
    allocations_[b] = allocation(b);
  }

  // A buffer of the same loops and size that has memory and is done before this one begins; -1: none.
  int shared_memory(int b) {
    if (!plan_.options.share_memory || !is_plain_memory(b)) return -1;
    const std::vector<Unit> all = units(level_path(b));
    for (const auto& [other, allocation] : allocations_) {
      if (!same_memory(b, other)) continue;
      std::vector<std::pair<size_t, size_t>>& taken = taken_[other];
      if (taken.empty()) taken.push_back(life(other, all));
      const auto [first, last] = life(b, all);
      if (std::ranges::any_of(taken, [&](const auto& t) { return first <= t.second && t.first <= last; })) continue;
      taken.emplace_back(first, last);
      return other;
    }
    return -1;
  }

  // No window, and no dim that has one place.
  bool is_plain_memory(int b) const {
    for (size_t d = 0; d < plan_.buffer_spec(b).dims.size(); ++d)
      if (!plan_.one_place(b, d).is_constant(0)) return false;
    return plan_.buffer(b).storage.ring_dim < 0 && !plan_.buffer(b).storage.linear;
  }

  bool same_memory(int a, int b) const {
    const Storage &m = plan_.buffer(a).storage, &n = plan_.buffer(b).storage;
    const BufferSpec &x = plan_.buffer_spec(a), &y = plan_.buffer_spec(b);
    if (!is_plain_memory(b) || m.places != n.places || m.slots != n.slots || level_path(a) != level_path(b)) return false;
    if (x.element != y.element || x.space != y.space || x.placement != y.placement) return false;
    for (size_t d = 0; d < x.dims.size(); ++d)
      if (x.dims[d].stride != y.dims[d].stride) return false;
    return true;
  }

  // The first and last unit that touches the buffer.
  std::pair<size_t, size_t> life(int b, const std::vector<Unit>& all) const {
    std::pair<size_t, size_t> out{all.size(), 0};
    for (size_t i = 0; i < all.size(); ++i)
      if (uses_root(all[i], b, false)) out = {std::min(out.first, i), i};
    return out;
  }

  Allocation allocation(int b) {
    const BufferSpec& spec = plan_.buffer_spec(b);
    const Storage& storage = plan_.buffer(b).storage;
    Allocation a;
    a.space = spec.space;
    a.placement = spec.placement;
    a.slots = storage.slots;
    const bool slot = moves(b);
    a.buffer = slot ? add(spec, spec.name + "_memory", Role::local) : id(b);
    memory_[b] = a.buffer;
    for (int d = 0; d < spec.rank; ++d) {
      const size_t i = static_cast<size_t>(d);
      Dim dim{slot ? Expr(0) : storage.box[i].first, slot ? max(storage.places[i], Expr(0)) : extent(storage.box[i]), {}, {}};
      if (spec.dims[i].stride) dim.stride = with_known_bounds(plan_, *spec.dims[i].stride).first;
      if (!slot && d == storage.ring_dim) dim.fold = storage.ring;
      if (!slot && spec.dims[i].fold) dim.fold = spec.dims[i].fold;
      a.dims.push_back(std::move(dim));
    }
    leave_one_place(b, a);
    return a;
  }

  // Dims that repeat one element have stride 0; then the others must say theirs.
  void leave_one_place(int b, Allocation& a) const {
    const auto rank = static_cast<size_t>(plan_.buffer_spec(b).rank);
    bool any = false;
    for (size_t d = 0; d < rank; ++d) any |= !plan_.one_place(b, d).is_constant(0);
    if (!any) return;
    Expr dense = plan_.buffer_spec(b).element.bits() / 8;
    for (size_t d = 0; d < rank; ++d) {
      const Expr one = plan_.one_place(b, d);
      a.dims[d].stride = select(one, 0, dense);
      dense *= select(one, 1, max(a.dims[d].fold.value_or(a.dims[d].extent), Expr(1)));
    }
  }

  // The box of an iteration over the memory that all iterations share.
  View moving_view(int b) {
    const BufferSpec& spec = plan_.buffer_spec(b);
    const Storage& storage = plan_.buffer(b).storage;
    View view{id(b), memory_.at(b), 0, {}, {}};
    const std::string memory = program_.buffer(view.source).name;
    for (int d = 0; d < spec.rank; ++d) {
      const size_t i = static_cast<size_t>(d);
      Dim dim{here(storage.box[i].first), here(extent(storage.box[i])), stride_of(memory, d), {}};
      if (d == storage.ring_dim) dim.fold = storage.ring;
      if (storage.linear && d == storage.linear->dim) {
        dim.min = here(storage.linear->anchor);
        dim.extent = storage.linear->extent;
        view.offset = place_of_window(b) * stride_of(memory, d);
      }
      view.dims.push_back(std::move(dim));
    }
    return view;
  }

  // The place at which an iteration sees a window in one piece, as a name in its loop.
  Expr place_of_window(int b) const { return Expr::symbol(plan_.buffer_spec(b).name + "_place"); }

  // What a stage has written beyond the period of such a window is where the next period begins, too.
  Statement begin_of_period(int b, const std::vector<Window>& written) {
    const LinearWindow& w = *plan_.buffer(b).storage.linear;
    const BufferId memory = memory_.at(b);
    Copy copy{{memory, {}}, {memory, {}}, {}, {}, {}, 1, str("window ", plan_.buffer_spec(b).name)};
    for (int d = 0; d < plan_.buffer_spec(b).rank; ++d) {
      const Window& here_written = written[static_cast<size_t>(d)];
      const bool along = d == w.dim;
      const Expr from = along ? here(w.anchor) - place_of_window(b) : here(plan_.buffer(b).storage.box[static_cast<size_t>(d)].first);
      Range range{here(here_written.first) - from, here(here_written.last) - here(here_written.first) + 1};
      if (along) range = {max(range.min, w.period), range.min + range.extent - max(range.min, w.period)};
      copy.source.box.push_back(range);
      if (along) range.min = range.min - w.period;
      copy.destination.box.push_back(range);
      copy.indices.push_back(str("place", d));
      copy.map.push_back(Expr::symbol(copy.indices.back()) + (along ? w.period : Expr(0)));
    }
    return copy;
  }

  // The buffer as part of the one whose memory it lies in.
  View alias_view(int b) {
    const Alias& alias = *plan_.buffer(b).alias;
    const BufferPlan& buffer = plan_.buffer(b);
    const std::vector<Window> box = write_box(plan_, buffer.producer, buffer.write, computed_box(plan_, buffer.producer, level(b), Iteration::any));
    const std::string parent = visible_name(alias.of);
    Substitution at_first, at_zero;
    for (size_t d = 0; d < box.size(); ++d) {
      at_first[std::string(alias_index(static_cast<int>(d)).name())] = here(box[d].first);
      at_zero[std::string(alias_index(static_cast<int>(d)).name())] = 0;
    }
    View view{id(b), id(alias.of), 0, {}, {}};
    std::vector<Expr> strides(box.size(), Expr(0));
    std::vector<int> rings(box.size(), -1);  // the dim of the ring that a dim is
    for (size_t j = 0; j < alias.map.size(); ++j) {
      const Expr map = here(alias.map[j]);
      const int dim = static_cast<int>(j);
      const Expr stride = stride_of(parent, dim);
      const bool ring = is_ring(alias.of, dim);
      // A ring is seen whole: one of fewer indices would be none to a view of it, and its places other ones.
      if (!ring) view.offset += (map.substitute(at_first) - min_of(parent, dim)) * stride;
      for (size_t d = 0; d < box.size(); ++d) {
        Substitution at_one = at_zero;
        at_one[std::string(alias_index(static_cast<int>(d)).name())] = 1;
        const Expr steps = map.substitute(at_one) - map.substitute(at_zero);
        strides[d] += steps * stride;
        if (ring && !steps.is_constant(0)) rings[d] = dim;
      }
    }
    for (size_t d = 0; d < box.size(); ++d) {
      if (rings[d] < 0) view.dims.push_back({here(box[d].first), here(extent(box[d])), strides[d], {}});
      else view.dims.push_back({min_of(parent, rings[d]), extent_of(parent, rings[d]), strides[d], fold_of(parent, rings[d])});
    }
    return view;
  }

  // Whether the dim is that of a window.
  bool is_ring(int b, int dim) const {
    if (plan_.is_declared(b)) return false;
    const BufferPlan& buffer = plan_.buffer(b);
    if (!buffer.alias) return buffer.storage.ring_dim == dim;
    for (size_t j = 0; j < buffer.alias->map.size(); ++j)
      if (buffer.alias->map[j] == alias_index(dim) && is_ring(buffer.alias->of, static_cast<int>(j))) return true;
    return false;
  }

  // --- expressions in scope ---

  Expr here(const Expr& e) const { return in_scope_.empty() ? e : e.substitute(in_scope_); }
  Range range(const Window& w) const { return {here(w.first), here(w.last) - here(w.first) + 1}; }
  Box box(const std::vector<Window>& windows) const {
    Box out;
    for (const Window& w : windows) out.push_back(range(w));
    return out;
  }
  Expr with_bounds(const Expr& e) const { return here(with_known_bounds(plan_, e).first); }

  // --- blocks ---

  bool is_in(int stage, const Path& path) const {
    const StagePlan& s = plan_.stage(stage);
    if (s.body_size() < path.size()) return false;
    for (size_t i = 0; i < path.size(); ++i)
      if (s.body_at(i) != path[i]) return false;
    return true;
  }

  // A loop stands where its stage does: what is in it comes earlier in the order, and has no reader outside of it.
  std::vector<Unit> units(const Path& path) const {
    std::vector<Unit> out;
    for (const int s : plan_.order) {
      if (!is_in(s, path)) continue;
      const StagePlan& stage = plan_.stage(s);
      if (stage.body_size() == path.size()) out.push_back({s, -1});
      else if (const int loop = stage.body_at(path.size()); plan_.loop(loop).stage == s) out.push_back({-1, loop});
    }
    return out;
  }

  bool touches(const Unit& unit, int stage) const {
    return unit.stage == stage || (unit.loop >= 0 && plan_.stage(stage).is_in(unit.loop));
  }

  bool uses_root(const Unit& unit, int root, bool reads_only) const {
    for (const int s : plan_.order) {
      if (!touches(unit, s)) continue;
      for (const ReadSpec& read : plan_.spec(s).reads)
        if (plan_.root_of(read.buffer) == root) return true;
      for (const WriteSpec& write : plan_.spec(s).writes)
        if (!reads_only && plan_.root_of(write.buffer) == root) return true;
    }
    return false;
  }

  Statement block(const Path& path) {
    const std::vector<Unit> all = units(path);
    std::vector<Views> views = views_at(path);
    std::vector<Statement> done;
    for (size_t i = 0; i < all.size(); ++i) done.push_back(with_signals(path, all, i, unit(path, all[i])));
    if (!path.empty()) {
      Statement body = Block{std::move(done)};
      for (size_t i = views.size(); i-- > 0;) body = wrapped(views[i], std::move(body));
      return body;
    }
    return with_memory(all, std::move(done), std::move(views));
  }

  using Views = std::variant<View, Allocation>;

  static Statement wrapped(const Views& what, Statement body) {
    if (const View* v = std::get_if<View>(&what)) {
      View view = *v;
      view.body = std::move(body);
      return view;
    }
    return Allocate{std::get<Allocation>(what), std::move(body)};
  }

  // What becomes visible in the block, in order.
  std::vector<Views> views_at(const Path& path) {
    std::vector<Views> out;
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
      if (has_memory(b) && moves(b) && level_path(b) == path) out.emplace_back(moving_view(b));
    for (const int b : aliases_in_order())
      if (level_path(b) == path) out.emplace_back(alias_view(b));
    return out;
  }

  bool has_memory(int b) const {
    const BufferPlan& buffer = plan_.buffer(b);
    return buffer.role == Role::local && !buffer.alias && buffer.producer >= 0 && plan_.stage(buffer.producer).needed;
  }

  // Those that need a view, parents first.
  std::vector<int> aliases_in_order() const {
    std::vector<std::pair<int, int>> found;
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) {
      const BufferPlan& buffer = plan_.buffer(b);
      if (!buffer.alias || buffer.alias->same() || buffer.producer < 0 || !plan_.stage(buffer.producer).needed) continue;
      int depth = 0;
      for (int a = b; plan_.buffer(a).alias; a = plan_.buffer(a).alias->of) ++depth;
      found.emplace_back(depth, b);
    }
    std::ranges::sort(found);
    std::vector<int> out;
    for (const auto& [depth, b] : found) out.push_back(b);
    return out;
  }

  // The outermost block: memory lives from the first unit that touches it to the last.
  Statement with_memory(const std::vector<Unit>& all, std::vector<Statement> done, std::vector<Views> views) {
    struct Life {
      int buffer;
      size_t first, last;
    };
    std::vector<Life> lives;
    for (const auto& [b, allocation] : allocations_) {
      const auto [first, last] = life(b, all);
      lives.push_back({b, first, last});
    }
    Statement rest;
    for (size_t i = all.size(); i-- > 0;) {
      std::vector<Statement> statements{std::move(done[i])};
      for (const Life& life : lives)
        if (life.last == i && i + 1 < all.size() && plan_.options.share_memory) statements.push_back(Free{memory_.at(life.buffer)});
      statements.push_back(std::move(rest));
      rest = Block{std::move(statements)};
      for (size_t v = views.size(); v-- > 0;)
        if (first_use(lives_root(views[v]), all) == i) rest = wrapped(views[v], std::move(rest));
      for (const Life& life : lives)
        if (life.first == i) rest = Allocate{allocations_.at(life.buffer), std::move(rest)};
    }
    return rest;
  }
  int lives_root(const Views& view) const {
    const BufferId shown = std::get<View>(view).buffer;
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
      if (ids_[static_cast<size_t>(b)] == shown) return plan_.root_of(b);
    return -1;
  }
  size_t first_use(int root, const std::vector<Unit>& all) const {
    if (plan_.is_declared(root)) return 0;
    for (size_t i = 0; i < all.size(); ++i)
      if (uses_root(all[i], root, false)) return i;
    return 0;
  }

  // --- units ---

  Statement unit(const Path& path, const Unit& u) {
    if (u.stage >= 0) return stage(u.stage);
    return loop(path, u.loop);
  }

  Statement loop(Path path, int l) {
    const LoopPlan& plan = plan_.loop(l);
    path.push_back(l);
    Loop loop;
    loop.symbol = plan.symbol;
    loop.begin = here(plan.begin());
    const Expr end = here(plan.range.last) + 1;
    loop.end = end;
    loop.step = with_bounds(plan.step);
    loop.workers = with_bounds(plan.workers);
    if (plan.parallel()) loop.kind = plan.carries ? LoopKind::pipelined : LoopKind::parallel;
    const Substitution outside = in_scope_;
    const Expr index = plan.index_symbol();
    std::vector<std::pair<std::string, Expr>> lets;
    bind(plan.lo, plan.warm_up.is_constant(0) ? index : max(index, here(plan.first)), lets);
    bind(plan.hi, plan.step.is_constant(1) ? index : min(index + loop.step, end) - 1, lets);
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
      if (const auto& w = plan_.buffer(b).storage.linear; w && w->loop == l)
        lets.emplace_back(place_of_window(b).name(), mod(here(w->anchor - w->origin), w->period));
    loop.body = block(path);
    for (size_t i = lets.size(); i-- > 0;) loop.body = Let{lets[i].first, lets[i].second, std::move(loop.body)};
    in_scope_ = outside;
    return loop;
  }

  // The symbol means the value from here on: by its name when the value is worth a name.
  void bind(const std::string& symbol, const Expr& value, std::vector<std::pair<std::string, Expr>>& lets) {
    if (value.is_symbol() || value.is_constant()) in_scope_[symbol] = value;
    else lets.emplace_back(symbol, value);
  }

  Statement stage(int s) {
    if (plan_.stage(s).is_view) return {};
    const StagePlan& stage = plan_.stage(s);
    std::vector<Window> indices = computed_box(plan_, s, stage.body().size(), Iteration::any);
    std::vector<std::pair<std::string, Expr>> lets;
    for (size_t i = 0; i < indices.size(); ++i) {
      name(indices[i].first, str(stage.indices[i], "_", s, "_first"), lets);
      name(indices[i].last, str(stage.indices[i], "_", s, "_last"), lets);
    }
    std::vector<Statement> done{plan_.spec(s).is_copy() ? copies(s, indices) : call(s, indices)};
    for (int w = 0; w < static_cast<int>(plan_.spec(s).writes.size()); ++w)
      if (const int b = plan_.spec(s).writes[static_cast<size_t>(w)].buffer; plan_.buffer(b).storage.linear)
        done.push_back(begin_of_period(b, write_box(plan_, s, w, indices)));
    Statement out = Block{std::move(done)};
    for (size_t i = lets.size(); i-- > 0;) out = Let{lets[i].first, lets[i].second, std::move(out)};
    return out;
  }

  static void name(Expr& e, const std::string& as, std::vector<std::pair<std::string, Expr>>& lets, const Expr& value) {
    lets.emplace_back(as, value);
    e = Expr::symbol(as);
  }
  void name(Expr& e, const std::string& as, std::vector<std::pair<std::string, Expr>>& lets) const {
    const Expr value = here(e);
    const bool simple = value.operands().empty() ||
                        (value.kind() == ExprKind::sum && std::ranges::all_of(value.operands(), [](const Expr& t) { return t.is_symbol(); }));
    if (simple) e = value;
    else name(e, as, lets, value);
  }

  Statement call(int s, const std::vector<Window>& indices) {
    const StageSpec& spec = plan_.spec(s);
    Call call{spec.kernel, {}, {}, 1, spec.name};
    for (int r = 0; r < static_cast<int>(spec.reads.size()); ++r)
      call.operands.push_back({Access::in, {id(spec.reads[static_cast<size_t>(r)].buffer), box(read_box(plan_, {s, r}, indices))}});
    for (int w = 0; w < static_cast<int>(spec.writes.size()); ++w)
      call.operands.push_back({Access::out, {id(spec.writes[static_cast<size_t>(w)].buffer), box(write_box(plan_, s, w, indices))}});
    for (const Expr& scalar : spec.scalars) call.scalars.push_back(with_bounds(scalar));
    return call;
  }

  Statement copies(int s, const std::vector<Window>& indices) {
    const StageSpec& spec = plan_.spec(s);
    std::vector<Statement> out;
    for (int r = 0; r < static_cast<int>(spec.parts.size()); ++r) {
      const CopyPart& part = spec.parts[static_cast<size_t>(r)];
      const int source = spec.reads[static_cast<size_t>(r)].buffer;
      if (const auto& alias = plan_.buffer(source).alias; alias && alias->of == spec.writes[0].buffer && !spec.has_padding()) continue;
      Copy copy;
      std::vector<Window> destination = write_box(plan_, s, 0, indices);
      for (size_t d = 0; d < destination.size(); ++d) {
        const Window all = destination[d];
        destination[d].last = select(plan_.one_place(spec.writes[0].buffer, d), min(all.first, all.last), all.last);
      }
      if (part.part) {
        Window& w = destination[static_cast<size_t>(part.part_dim)];
        w = intersected(w, with_known_bounds(plan_, *part.part));
      }
      copy.destination = {id(spec.writes[0].buffer), box(destination)};
      copy.source = {id(source), box(read_box(plan_, {s, r}, indices))};
      copy.indices = spec.writes[0].indices;
      for (const Expr& e : part.map) copy.map.push_back(with_bounds(e));
      if (!spec.padding.empty()) copy.padding = spec.padding;
      if (spec.padding_read >= 0)
        copy.padding = Region{id(spec.reads[static_cast<size_t>(spec.padding_read)].buffer), box(read_box(plan_, {s, spec.padding_read}, indices))};
      copy.stage = spec.name;
      out.push_back(std::move(copy));
    }
    return Block{std::move(out)};
  }

  // --- stages of overlapping iterations ---

  // Whether a later iteration reads what the unit writes.
  bool hands_on(const Unit& unit, int root, int l) const {
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
      if (plan_.root_of(b) == root && std::ranges::count(plan_.buffer(b).carried_by, l) && touches(unit, plan_.buffer(b).producer)) return true;
    return false;
  }

  Statement with_signals(const Path& path, const std::vector<Unit>& all, size_t i, Statement s) const {
    if (path.empty()) return s;
    const int l = path.back();
    if (!plan_.loop(l).parallel() || !plan_.loop(l).carries) return s;
    std::vector<Statement> out;
    bool signals = false;
    for (int root = 0; root < static_cast<int>(plan_.buffers.size()); ++root) {
      if (plan_.root_of(root) != root) continue;
      signals = signals || hands_on(all[i], root, l);
      // A loop may hold both who hands on and who reads: then it waits for itself.
      for (size_t j = 0; j < i + (all[i].loop >= 0); ++j)
        if (hands_on(all[j], root, l) && uses_root(all[i], root, true)) out.push_back(Await{static_cast<int>(j)});
    }
    out.push_back(std::move(s));
    if (signals) out.push_back(Signal{static_cast<int>(i)});
    return Block{std::move(out)};
  }

  // --- what the caller must give ---

  std::vector<Statement> checks() {
    std::vector<Statement> out(plan_.checks.begin(), plan_.checks.end());
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) {
      if (!plan_.is_declared(b) || ids_[static_cast<size_t>(b)] < 0) continue;
      const BufferSpec& spec = plan_.buffer_spec(b);
      for (int d = 0; d < spec.rank; ++d) {
        check_covered(b, d, out);
        const BufferSpec::DimSpec& dim = spec.dims[static_cast<size_t>(d)];
        const auto require = [&](const Expr& a, const Expr& e, std::string_view what) {
          out.push_back(Check{equal(a, e), str(what, " of dim ", d, " of '", spec.name, "' must be ", e.to_string())});
        };
        if (dim.stride) require(stride_of(spec.name, d), *dim.stride, "the stride");
        if (dim.alignment > 1) {
          require(mod(min_of(spec.name, d), dim.alignment), 0, str("the min modulo ", dim.alignment));
          require(mod(extent_of(spec.name, d), dim.alignment), 0, str("the extent modulo ", dim.alignment));
        }
        if (dim.bounds) require(min_of(spec.name, d), dim.bounds->first, "the min");
        if (dim.bounds) require(max_of(spec.name, d), dim.bounds->last, "the last index");
      }
    }
    return out;
  }

  void check_covered(int b, int d, std::vector<Statement>& out) {
    const BufferPlan& buffer = plan_.buffer(b);
    const std::string& name = plan_.buffer_spec(b).name;
    std::optional<Window> read;
    for (const Use& use : buffer.uses) {
      const Window w = read_box(plan_, use, index_box(plan_, use.stage, 0))[static_cast<size_t>(d)];
      read = read ? united(*read, w) : w;
    }
    if (!read) return;
    const Expr inside = less_equal(min_of(name, d), read->first) * less_equal(read->last, max_of(name, d));
    const Expr condition = select(less(read->last, read->first), 1, inside);
    if (condition.is_constant(1)) return;
    out.push_back(Check{condition, str("'", name, "' is read from ", read->first.to_string(), " to ", read->last.to_string(), " in dim ", d, ", beyond its bounds")});
  }

  const Plan& plan_;
  Program program_;
  std::vector<BufferId> ids_;
  std::map<int, BufferId> memory_;
  std::map<int, Allocation> allocations_;
  std::map<int, std::vector<std::pair<size_t, size_t>>> taken_;  // of memory that several buffers share: when it is in use
  Substitution in_scope_;
};

}  // namespace

Result<Program> emit_program(const Plan& plan) { return Emitter(plan).run(); }

}  // namespace tenon::program
