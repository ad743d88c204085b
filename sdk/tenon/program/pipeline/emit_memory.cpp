#include <algorithm>

#include <tenon/program/pipeline/emit_internal.hpp>

namespace tenon::program::detail {

size_t Emitter::level(int b) const {
  const int root = plan_.root_of(b);
  return plan_.is_declared(root) ? 0 : static_cast<size_t>(plan_.buffer(root).storage.level);
}

Path Emitter::level_path(int b) const {
  const int root = plan_.root_of(b);
  if (plan_.is_declared(root)) return {};
  Path path = plan_.stage(plan_.buffer(root).producer).location;
  path.resize(level(b));
  return path;
}

void Emitter::make_memory(int b) {
  if (moves(b))
    if (const int other = shared_memory(b); other >= 0) {
      memory_[b] = memory_.at(other);
      return;
    }
  allocations_[b] = allocation(b);
}

int Emitter::shared_memory(int b) {
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

bool Emitter::is_plain_memory(int b) const {
  for (size_t d = 0; d < plan_.buffer_spec(b).dims.size(); ++d)
    if (!plan_.one_place(b, d).is_constant(0)) return false;
  return plan_.buffer(b).storage.ring_dim < 0 && !plan_.buffer(b).storage.linear;
}

bool Emitter::same_memory(int a, int b) const {
  const Storage &m = plan_.buffer(a).storage, &n = plan_.buffer(b).storage;
  const BufferSpec &x = plan_.buffer_spec(a), &y = plan_.buffer_spec(b);
  if (!is_plain_memory(b) || m.places != n.places || m.slots != n.slots || level_path(a) != level_path(b)) return false;
  if (x.element != y.element || x.space != y.space || x.placement != y.placement) return false;
  for (size_t d = 0; d < x.dims.size(); ++d)
    if (x.dims[d].stride != y.dims[d].stride) return false;
  return true;
}

std::pair<size_t, size_t> Emitter::life(int b, const std::vector<Unit>& all) const {
  std::pair<size_t, size_t> out{all.size(), 0};
  for (size_t i = 0; i < all.size(); ++i)
    if (uses_root(all[i], b, false)) out = {std::min(out.first, i), i};
  return out;
}

Allocation Emitter::allocation(int b) {
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
    Dim dim{
        slot ? Expr(0) : storage.box[i].first, slot ? max(storage.places[i], Expr(0)) : extent(storage.box[i]), {}, {}};
    if (spec.dims[i].stride) dim.stride = with_known_bounds(plan_, *spec.dims[i].stride).first;
    if (!slot && d == storage.ring_dim) dim.fold = storage.ring;
    if (!slot && spec.dims[i].fold) dim.fold = spec.dims[i].fold;
    a.dims.push_back(std::move(dim));
  }
  leave_one_place(b, a);
  if (!slot) begin_rows_at_lines(b, a);
  return a;
}

// Kernels take up to 1.4 times as long for rows that are not aligned to cache lines. For short rows the padding would
// be too large.
void Emitter::begin_rows_at_lines(int b, Allocation& a) const {
  constexpr int64_t kLineBytes = 64, kShortestRow = 1024;
  if (a.dims.size() < 2 || a.dims[0].stride || a.dims[1].stride || a.dims[0].fold) return;
  const auto takes_gaps = [&](int stage) {
    const StageSpec& spec = plan_.spec(stage);
    return !spec.is_copy() && !spec.kernel->takes_dense_only;
  };
  const BufferPlan& buffer = plan_.buffer(b);
  if (!takes_gaps(buffer.producer)) return;
  if (!std::ranges::all_of(buffer.uses, takes_gaps, &Use::stage)) return;
  if (holds_others_[static_cast<size_t>(b)]) return;
  const Expr dense = plan_.buffer_spec(b).element.bits() / 8 * max(a.dims[0].extent, Expr(1));
  a.dims[1].stride = select(less(dense, kShortestRow), dense, ceildiv(dense, kLineBytes) * kLineBytes);
}

void Emitter::leave_one_place(int b, Allocation& a) const {
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

bool Emitter::has_memory(int b) const {
  const BufferPlan& buffer = plan_.buffer(b);
  return buffer.role == Role::local && !buffer.alias && buffer.producer >= 0 && plan_.stage(buffer.producer).needed;
}

Statement Emitter::with_memory(const std::vector<Unit>& all, std::vector<Statement> done, std::vector<Shown> views) {
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
      if (life.last == i && i + 1 < all.size() && plan_.options.share_memory)
        statements.push_back(Free{memory_.at(life.buffer)});
    statements.push_back(std::move(rest));
    rest = Block{std::move(statements)};
    for (size_t v = views.size(); v-- > 0;)
      if (first_use(lives_root(views[v]), all) == i) rest = wrapped(views[v], std::move(rest));
    for (const Life& life : lives)
      if (life.first == i) rest = Allocate{allocations_.at(life.buffer), std::move(rest)};
  }
  return rest;
}

int Emitter::lives_root(const Shown& view) const {
  const BufferId shown = std::get<View>(view).buffer;
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
    if (ids_[static_cast<size_t>(b)] == shown) return plan_.root_of(b);
  return -1;
}

size_t Emitter::first_use(int root, const std::vector<Unit>& all) const {
  if (plan_.is_declared(root)) return 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (uses_root(all[i], root, false)) return i;
  return 0;
}

}  // namespace tenon::program::detail
