#include <tenon/program/ir/walk.hpp>

namespace tenon::program {
namespace {

// The parts of a statement, defined by overloads of parts(statement, visitor): one place for reading and for changing,
// since `S` may be const or not.
// v.expr(Expr&)  v.buffer(BufferId&, Access)  v.defined(BufferId&)  v.child(Statement&)

template <class S, class V>
void box_parts(S& box, V& v) {
  for (auto& range : box) {
    v.expr(range.min);
    v.expr(range.extent);
  }
}
template <class S, class V>
void region_parts(S& region, Access access, V& v) {
  v.buffer(region.buffer, access);
  box_parts(region.box, v);
}
template <class S, class V>
void dims_parts(S& dims, V& v) {
  for (auto& d : dims) {
    v.expr(d.min);
    v.expr(d.extent);
    if (d.stride) v.expr(*d.stride);
    if (d.fold) v.expr(*d.fold);
  }
}
template <class S, class V>
void view_parts(S& s, V& v) {
  v.buffer(s.source, Access::in);
  v.defined(s.buffer);
  v.child(s.body);
}
template <class S, class V>
void copy_parts(S& s, V& v) {
  region_parts(s.destination, Access::out, v);
  region_parts(s.source, Access::in, v);
  for (auto& e : s.map) v.expr(e);
  if (auto* region = std::get_if<Region>(&s.padding)) region_parts(*region, Access::in, v);
  v.expr(s.predicate);
}

template <class S, class T>
concept Is = std::same_as<std::remove_const_t<S>, T>;

template <class S, class V>
void parts(S& s, V& v) {
  if constexpr (Is<S, Block>) {
    for (auto& child : s.statements) v.child(child);
  } else if constexpr (Is<S, Let>) {
    v.expr(s.value);
    v.child(s.body);
  } else if constexpr (Is<S, Allocate>) {
    dims_parts(s.allocation.dims, v);
    v.expr(s.allocation.slots);
    v.defined(s.allocation.buffer);
    v.child(s.body);
  } else if constexpr (Is<S, Free>) {
    v.defined(s.buffer);
  } else if constexpr (Is<S, Loop>) {
    for (auto* e : {&s.begin, &s.end, &s.step, &s.workers}) v.expr(*e);
    v.child(s.body);
  } else if constexpr (Is<S, Crop>) {
    for (auto& range : s.box)
      if (range) {
        v.expr(range->min);
        v.expr(range->extent);
      }
    view_parts(s, v);
  } else if constexpr (Is<S, Slice>) {
    for (auto& at : s.at)
      if (at) v.expr(*at);
    view_parts(s, v);
  } else if constexpr (Is<S, Transpose>) {
    view_parts(s, v);
  } else if constexpr (Is<S, View>) {
    v.expr(s.offset);
    dims_parts(s.dims, v);
    view_parts(s, v);
  } else if constexpr (Is<S, Call>) {
    for (auto& operand : s.operands) region_parts(operand.region, operand.access, v);
    for (auto& e : s.scalars) v.expr(e);
    v.expr(s.predicate);
  } else if constexpr (Is<S, Copy>) {
    copy_parts(s, v);
  } else if constexpr (Is<S, DmaStart>) {
    copy_parts(s.copy, v);
  } else if constexpr (Is<S, Prefetch>) {
    region_parts(s.region, Access::in, v);  // the hint must not count as a store
  } else if constexpr (Is<S, Check>) {
    v.expr(s.condition);
  } else {
    static_assert(Is<S, DmaWait> || Is<S, Signal> || Is<S, Await>, "every statement has its parts told here");
  }
}

struct Ignore {
  void expr(const Expr&) {}
  void buffer(const BufferId&, Access) {}
  void defined(const BufferId&) {}
  void child(const Statement&) {}
};

template <class V>
void read(const Statement& statement, V& visitor) {
  if (!statement.empty()) statement.visit([&](const auto& s) { parts(s, visitor); });
}

// A copy of the statement whose parts the visitor may change; the same node when the visitor reports no change.
template <class V>
Statement change(const Statement& statement, V& visitor) {
  if (statement.empty()) return statement;
  return statement.visit([&](auto s) {
    parts(s, visitor);
    return visitor.changed ? Statement(std::move(s)) : statement;
  });
}

bool has_children(const Statement& statement) {
  struct : Ignore {
    bool found = false;
    void child(const Statement&) { found = true; }
  } v;
  read(statement, v);
  return v.found;
}

struct Unchanged {
  bool changed = false;
  void expr(Expr&) {}
  void buffer(BufferId&, Access) {}
  void defined(BufferId&) {}
  void child(Statement&) {}
};

const Statement kNothing;

}  // namespace

void for_each_expr(const Statement& statement, const std::function<void(const Expr&)>& visit) {
  struct : Ignore {
    const std::function<void(const Expr&)>* visit = nullptr;
    void expr(const Expr& e) { (*visit)(e); }
  } v;
  v.visit = &visit;
  read(statement, v);
}

void for_each_child(const Statement& statement, const std::function<void(const Statement&)>& visit) {
  struct : Ignore {
    const std::function<void(const Statement&)>* visit = nullptr;
    void child(const Statement& s) { (*visit)(s); }
  } v;
  v.visit = &visit;
  read(statement, v);
}

void for_each_buffer(const Statement& statement, const std::function<void(BufferId, Access)>& visit) {
  struct : Ignore {
    const std::function<void(BufferId, Access)>* visit = nullptr;
    void buffer(const BufferId& id, Access access) { (*visit)(id, access); }
  } v;
  v.visit = &visit;
  read(statement, v);
}

void for_each_statement(const Statement& statement, const std::function<void(const Statement&)>& visit) {
  if (statement.empty()) return;
  visit(statement);
  for_each_child(statement, [&](const Statement& child) { for_each_statement(child, visit); });
}

Statement with_children(const Statement& statement, const std::function<Statement(const Statement&)>& changed_child) {
  struct : Unchanged {
    const std::function<Statement(const Statement&)>* visit = nullptr;
    void child(Statement& s) {
      Statement after = (*visit)(s);
      changed |= !after.is(s);
      s = std::move(after);
    }
  } v;
  v.visit = &changed_child;
  return has_children(statement) ? change(statement, v) : statement;
}

Statement with_exprs(const Statement& statement, const std::function<Expr(const Expr&)>& changed_expr) {
  struct : Unchanged {
    const std::function<Expr(const Expr&)>* visit = nullptr;
    void expr(Expr& e) {
      Expr after = (*visit)(e);
      changed |= after != e;
      e = std::move(after);
    }
  } v;
  v.visit = &changed_expr;
  return change(statement, v);
}

Statement with_buffers(const Statement& statement, const std::function<BufferId(BufferId)>& changed_buffer) {
  struct : Unchanged {
    const std::function<BufferId(BufferId)>* visit = nullptr;
    void defined(BufferId& id) {
      const BufferId after = (*visit)(id);
      changed |= after != id;
      id = after;
    }
    void buffer(BufferId& id, Access) { defined(id); }
  } v;
  v.visit = &changed_buffer;
  return change(statement, v);
}

Statement substitute(const Statement& statement, const Substitution& map) {
  const Statement outer = with_exprs(statement, [&](const Expr& e) { return e.substitute(map); });
  return with_children(outer, [&](const Statement& child) { return substitute(child, map); });
}

BufferId defined_buffer(const Statement& statement) {
  if (const auto* a = statement.as<Allocate>()) return a->allocation.buffer;
  if (const auto* c = statement.as<Crop>()) return c->buffer;
  if (const auto* s = statement.as<Slice>()) return s->buffer;
  if (const auto* t = statement.as<Transpose>()) return t->buffer;
  if (const auto* v = statement.as<View>()) return v->buffer;
  return -1;
}

const Statement& body_of(const Statement& statement) {
  if (statement.empty()) return kNothing;
  return statement.visit([](const auto& s) -> const Statement& {
    if constexpr (requires { s.body; })
      return s.body;
    else
      return kNothing;
  });
}

}  // namespace tenon::program
