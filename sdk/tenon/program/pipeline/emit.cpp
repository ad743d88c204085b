#include <algorithm>
#include <iterator>

#include <tenon/program/pipeline/emit_internal.hpp>

namespace tenon::program {
namespace detail {

Result<Program> Emitter::run() {
  program_.name = plan_.data.name;
  program_.scalars = plan_.scalars;
  for (const int b : plan_.inputs) declare(b);
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
    if (plan_.buffer(b).role == Role::constant && !plan_.buffer(b).uses.empty()) declare(b);
  for (const int b : plan_.outputs) declare(b);
  // Memory comes first: views within loops refer to it.
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
    if (has_memory(b)) make_memory(b);
  std::vector<Statement> statements = checks();
  statements.push_back(block({}));
  program_.body = Block{std::move(statements)};
  return std::move(program_);
}

void Emitter::declare(int b) {
  ids_[static_cast<size_t>(b)] = add(plan_.buffer_spec(b), plan_.buffer_spec(b).name, plan_.buffer(b).role);
}

BufferId Emitter::add(const BufferSpec& spec, const std::string& name, Role role) {
  return program_.add_buffer({name, spec.element, spec.rank, role, spec.space});
}

BufferId Emitter::id(int b) {
  while (plan_.buffer(b).alias && plan_.buffer(b).alias->same()) b = plan_.buffer(b).alias->of;
  BufferId& found = ids_[static_cast<size_t>(b)];
  if (found < 0) found = add(plan_.buffer_spec(b), plan_.buffer_spec(b).name, Role::local);
  return found;
}

bool Emitter::is_in(int stage, const Path& path) const {
  const StagePlan& s = plan_.stage(stage);
  if (s.body_size() < path.size()) return false;
  for (size_t i = 0; i < path.size(); ++i)
    if (s.body_at(i) != path[i]) return false;
  return true;
}

std::vector<Unit> Emitter::units(const Path& path) const {
  std::vector<Unit> out;
  for (const int s : plan_.order) {
    if (!is_in(s, path)) continue;
    const StagePlan& stage = plan_.stage(s);
    if (stage.body_size() == path.size())
      out.push_back({s, -1});
    else if (const int loop = stage.body_at(path.size()); plan_.loop(loop).stage == s)
      out.push_back({-1, loop});
  }
  return out;
}

bool Emitter::touches(const Unit& unit, int stage) const {
  return unit.stage == stage || (unit.loop >= 0 && plan_.stage(stage).is_in(unit.loop));
}

bool Emitter::uses_root(const Unit& unit, int root, bool reads_only) const {
  for (const int s : plan_.order) {
    if (!touches(unit, s)) continue;
    for (const ReadSpec& read : plan_.spec(s).reads)
      if (plan_.root_of(read.buffer) == root) return true;
    for (const WriteSpec& write : plan_.spec(s).writes)
      if (!reads_only && plan_.root_of(write.buffer) == root) return true;
  }
  return false;
}

Statement Emitter::block(const Path& path) {
  const std::vector<Unit> all = units(path);
  std::vector<Shown> views = views_at(path);
  std::vector<Statement> done;
  const std::vector<Prefetch> ahead = fetched_ahead(path, all);
  for (size_t i = 0; i < all.size(); ++i) {
    std::ranges::move(portions(ahead, i, all.size()), std::back_inserter(done));
    done.push_back(with_signals(path, all, i, unit(path, all[i])));
  }
  if (!path.empty()) {
    Statement body = Block{std::move(done)};
    for (size_t i = views.size(); i-- > 0;) body = wrapped(views[i], std::move(body));
    return body;
  }
  return with_memory(all, std::move(done), std::move(views));
}

Statement Emitter::unit(const Path& path, const Unit& u) {
  if (u.stage >= 0) return stage(u.stage);
  return loop(path, u.loop);
}

Statement Emitter::loop(Path path, int l) {
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

void Emitter::bind(const std::string& symbol, const Expr& value, std::vector<std::pair<std::string, Expr>>& lets) {
  if (value.is_symbol() || value.is_constant())
    in_scope_[symbol] = value;
  else
    lets.emplace_back(symbol, value);
}

bool Emitter::hands_on(const Unit& unit, int root, int l) const {
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
    if (plan_.root_of(b) == root && std::ranges::count(plan_.buffer(b).carried_by, l) &&
        touches(unit, plan_.buffer(b).producer))
      return true;
  return false;
}

Statement Emitter::with_signals(const Path& path, const std::vector<Unit>& all, size_t i, Statement s) const {
  if (path.empty()) return s;
  const int l = path.back();
  if (!plan_.loop(l).parallel() || !plan_.loop(l).carries) return s;
  std::vector<Statement> out;
  bool signals = false;
  for (int root = 0; root < static_cast<int>(plan_.buffers.size()); ++root) {
    if (plan_.root_of(root) != root) continue;
    signals = signals || hands_on(all[i], root, l);
    // A loop may contain both the producer and the reader: it then waits for itself.
    for (size_t j = 0; j < i + (all[i].loop >= 0); ++j)
      if (hands_on(all[j], root, l) && uses_root(all[i], root, true)) out.push_back(Await{static_cast<int>(j)});
  }
  out.push_back(std::move(s));
  if (signals) out.push_back(Signal{static_cast<int>(i)});
  return Block{std::move(out)};
}

}  // namespace detail

Result<Program> emit_program(const Plan& plan) { return detail::Emitter(plan).run(); }

}  // namespace tenon::program
