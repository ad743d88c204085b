#include <tenon/program/ir/simplify.hpp>

#include <algorithm>
#include <functional>
#include <ranges>
#include <set>
#include <span>

#include <tenon/program/ir/symbolic_internal.hpp>
#include <tenon/program/ir/walk.hpp>

namespace tenon::program {
namespace {

using namespace detail;

// Which buffers are read by statements whose own results are read. A call that works in place on a buffer that nobody
// else reads is useless, and so is a chain of such calls.
class Uses {
 public:
  explicit Uses(const Program& program) : class_of_(program.buffers.size()), wanted_(program.buffers.size()) {
    for (size_t id = 0; id < class_of_.size(); ++id) class_of_[id] = static_cast<BufferId>(id);
    for_each_statement(program.body, [this](const Statement& s) { look_at(s); });
    for (size_t id = 0; id < program.buffers.size(); ++id)
      if (program.buffers[id].role == Role::output || program.buffers[id].role == Role::state)
        want(static_cast<BufferId>(id));
    for (const BufferId id : always_) want(id);
    spread();
  }
  // Whether the contents of the buffer, of its sources or of its views are read.
  bool is_read(BufferId id) const { return wanted_[root(id)]; }
  // Whether it is a call or copy whose results are not needed.
  bool is_dead(const Statement& s) const {
    if (!s.as<Call>() && !s.as<Copy>()) return false;
    bool writes = false, wanted = false;
    const auto see = [&](BufferId id, Access access) {
      if (access == Access::in) return;
      writes = true;
      wanted = wanted || is_read(id);
    };
    for_each_buffer(s, std::cref(see));
    return writes && !wanted;
  }
  bool has_dead_stores() const {
    return std::ranges::any_of(effects_, [this](const Effect& e) { return !is_wanted(e); });
  }

 private:
  // Of a call or copy: its operands are needed if its results are. For all of them, in one list: buffers read, buffers
  // written.
  struct Effect {
    size_t begin, writes, end;
  };
  std::span<const BufferId> read_by(const Effect& e) const {
    return std::span(effect_buffers_).subspan(e.begin, e.writes - e.begin);
  }
  std::span<const BufferId> written_by(const Effect& e) const {
    return std::span(effect_buffers_).subspan(e.writes, e.end - e.writes);
  }

  size_t root(BufferId id) const {
    while (class_of_[static_cast<size_t>(id)] != id) id = class_of_[static_cast<size_t>(id)];
    return static_cast<size_t>(id);
  }
  void want(BufferId id) { wanted_[root(id)] = true; }
  bool is_wanted(const Effect& e) const {
    return std::ranges::any_of(written_by(e), [this](BufferId id) { return is_read(id); });
  }

  void look_at(const Statement& s) {
    const BufferId defined = defined_buffer(s);
    reads_.clear();
    writes_.clear();
    const auto see = [&](BufferId id, Access access) {
      if (defined >= 0) {
        // A buffer shares its memory with its views: reads of one see writes to the other.
        class_of_[root(defined)] = static_cast<BufferId>(root(id));
        return;
      }
      if (access != Access::out) reads_.push_back(id);
      if (access != Access::in) writes_.push_back(id);
    };
    for_each_buffer(s, std::cref(see));
    const bool may_be_dropped = (s.as<Call>() || s.as<Copy>()) && !writes_.empty();
    std::vector<BufferId>& list = may_be_dropped ? effect_buffers_ : always_;
    const size_t begin = list.size();
    list.insert(list.end(), reads_.begin(), reads_.end());
    if (!may_be_dropped) return;
    const size_t middle = list.size();
    list.insert(list.end(), writes_.begin(), writes_.end());
    effects_.push_back({begin, middle, list.size()});
  }

  // Backward: needs are known before the statements that satisfy them are processed, except in loops.
  void spread() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Effect& e : std::views::reverse(effects_)) {
        if (!is_wanted(e)) continue;
        for (const BufferId id : read_by(e)) {
          changed |= !is_read(id);
          want(id);
        }
      }
    }
  }

  std::vector<BufferId> class_of_;  // those that share memory, as a union-find forest
  std::vector<bool> wanted_;        // by the root of the class
  std::vector<Effect> effects_;
  std::vector<BufferId> effect_buffers_, always_;  // those of effects, and those read by other statements
  std::vector<BufferId> reads_, writes_;           // of the current statement
};

// Whether the statement names the buffer or its metadata.
bool uses_buffer(const Program& program, const Statement& s, BufferId id) {
  bool found = false;
  for_each_statement(s, [&](const Statement& inner) {
    for_each_buffer(inner, [&](BufferId used, Access) { found |= used == id; });
    for_each_expr(inner, [&](const Expr& e) {
      for (const std::string& symbol : e.symbols())
        if (const auto meta = parse_meta(symbol)) found |= meta->buffer == program.buffer(id).name;
    });
  });
  return found;
}

bool uses_symbol(const Statement& s, const std::string& symbol) {
  bool found = false;
  for_each_statement(s, [&](const Statement& inner) {
    for_each_expr(inner, [&](const Expr& e) {
      const auto symbols = e.symbols();
      found |= std::binary_search(symbols.begin(), symbols.end(), symbol);
    });
  });
  return found;
}

// Of the pipelined loop whose body the statement is.
bool has_stages(const Statement& s) {
  bool found = false;
  for_each_statement(s, [&](const Statement& inner) { found |= inner.as<Signal>() || inner.as<Await>(); });
  return found;
}

// By BufferId.
using BufferSet = std::vector<bool>;

Statement without_frees(const Statement& s, const BufferSet& of) {
  if (const Free* f = s.as<Free>(); f && of[static_cast<size_t>(f->buffer)]) return {};
  return with_children(s, [&of](const Statement& child) { return without_frees(child, of); });
}

// All buffers that statements name, directly or by metadata, except to free them.
BufferSet named_buffers(const Program& program) {
  BufferSet named(program.buffers.size());
  std::set<std::string> in_metadata;
  for_each_statement(program.body, [&](const Statement& s) {
    for_each_buffer(s, [&](BufferId id, Access) { named[static_cast<size_t>(id)] = true; });
    for_each_expr(s, [&](const Expr& e) {
      if (e.is_constant()) return;
      for (const std::string& symbol : e.symbols())
        if (const auto meta = parse_meta(symbol)) in_metadata.emplace(meta->buffer);
    });
  });
  for (size_t id = 0; id < named.size() && !in_metadata.empty(); ++id)
    if (in_metadata.contains(program.buffers[id].name)) named[id] = true;
  return named;
}

void drop_unused_locals(Program& program) {
  if (program.locals.empty()) return;
  const BufferSet named = named_buffers(program);
  BufferSet unused(program.buffers.size());
  const size_t dropped = std::erase_if(program.locals, [&](const Allocation& a) {
    const auto id = static_cast<size_t>(a.buffer);
    if (!named[id]) unused[id] = true;
    return !named[id];
  });
  if (dropped > 0) program.body = without_frees(program.body, unused);
}

// Removes calls and copies whose results nobody reads, and statements that contain only such.
Statement without_dead_stores(const Statement& s, const Uses& uses) {
  if (uses.is_dead(s)) return {};
  if (const Block* block = s.as<Block>()) {
    Block left;
    for (const Statement& child : block->statements)
      if (Statement kept = without_dead_stores(child, uses); !kept.empty()) left.statements.push_back(std::move(kept));
    return left.statements.empty() ? Statement() : Statement(std::move(left));
  }
  Statement left = with_children(s, [&uses](const Statement& child) { return without_dead_stores(child, uses); });
  return body_of(left).empty() && !body_of(s).empty() ? Statement() : left;
}

class Simplifier {
 public:
  explicit Simplifier(const Program& program) : program_(program), uses_(program), scope_(program) {
    scope_.declare_unknown();
    for (const Allocation& a : program.locals) scope_.exchange(a.buffer, scope_.allocation(a));
  }

  Statement run(const Statement& s) {
    if (s.empty()) return s;
    // The map of a copy has symbols of its own, about which nothing is known.
    const Statement known = with_exprs(s, [this](const Expr& e) { return scope_.simplified(e); });
    return known.visit([&](const auto& statement) { return rewrite(statement, known); });
  }

 private:
  Statement inside(const Statement& s) {
    return with_children(s, [this](const Statement& child) { return run(child); });
  }
  bool proved(const Expr& e) const {
    const Expr value = scope_.simplified(scope_.resolve(e));
    return value.is_constant() && value.constant() != 0;
  }
  bool proved_le(const Expr& a, const Expr& b) const {
    return prove_le(scope_.resolve(a), scope_.resolve(b), scope_.assumptions());
  }

  template <class T>
  Statement rewrite(const T&, const Statement& s) {
    return inside(s);
  }

  Statement rewrite(const Let& let, const Statement&) {
    if (let.value.is_constant() || let.value.is_symbol() || !uses_symbol(let.body, let.symbol))
      return run(substitute(let.body, {{let.symbol, let.value}}));
    scope_.define(let.symbol, scope_.resolve(let.value));
    const Statement body = run(let.body);
    scope_.erase(let.symbol);
    return Let{let.symbol, let.value, body};
  }

  Statement rewrite(const Allocate& a, const Statement&) {
    const BufferId id = a.allocation.buffer;
    auto before = scope_.exchange(id, scope_.allocation(a.allocation));
    const Statement body = run(a.body);
    scope_.exchange(id, std::move(before));
    BufferSet own(program_.buffers.size());
    own[static_cast<size_t>(id)] = true;
    const Statement freed_nowhere = without_frees(body, own);
    if (!uses_buffer(program_, freed_nowhere, id)) return freed_nowhere;
    return Allocate{a.allocation, body};
  }

  template <class T>
  Statement rewrite_view(const T& view, SymbolicBuffer made) {
    auto before = scope_.exchange(view.buffer, std::move(made));
    T changed = view;
    changed.body = run(view.body);
    scope_.exchange(view.buffer, std::move(before));
    if (!uses_buffer(program_, changed.body, view.buffer)) return changed.body;
    return changed;
  }
  Statement rewrite(const Crop& s, const Statement&) { return rewrite_view(s, scope_.crop(s)); }
  Statement rewrite(const Slice& s, const Statement&) { return rewrite_view(s, scope_.slice(s)); }
  Statement rewrite(const Transpose& s, const Statement&) { return rewrite_view(s, scope_.transpose(s)); }
  Statement rewrite(const View& s, const Statement&) { return rewrite_view(s, scope_.view(s)); }

  Statement rewrite(const Loop& loop, const Statement&) {
    if (loop.body.empty() || proved_le(loop.end, loop.begin)) return {};
    const bool once = proved_le(loop.begin + 1, loop.end) && proved_le(loop.end, loop.begin + loop.step);
    if (once && proved_le(1, loop.step) && !has_stages(loop.body)) return run(Let{loop.symbol, loop.begin, loop.body});
    const Expr begin = scope_.resolve(loop.begin), end = scope_.resolve(loop.end);
    scope_.define(loop.symbol, Expr::symbol(loop.symbol));
    scope_.assumptions()[loop.symbol] = {bounds(begin, scope_.assumptions()).lower,
                                         bounds(end - 1, scope_.assumptions()).upper};
    Loop changed = loop;
    changed.body = run(loop.body);
    scope_.assumptions().erase(loop.symbol);
    scope_.erase(loop.symbol);
    return changed.body.empty() ? Statement() : Statement(std::move(changed));
  }

  Statement rewrite(const Call& call, const Statement& s) {
    return call.predicate.is_constant(0) || uses_.is_dead(s) ? Statement() : s;
  }
  Statement rewrite(const Copy& copy, const Statement& s) {
    return copy.predicate.is_constant(0) || uses_.is_dead(s) ? Statement() : s;
  }
  Statement rewrite(const Check& check, const Statement& s) { return proved(check.condition) ? Statement() : s; }

  const Program& program_;
  Uses uses_;
  Scope scope_;
};

}  // namespace

Program simplify(Program program) {
  for (;;) {
    const Statement body = Simplifier(program).run(program.body);
    if (body == program.body) return program;
    program.body = body;
    drop_unused_locals(program);
  }
}

Program without_dead_stores(Program program) {
  const Uses uses(program);
  if (!uses.has_dead_stores()) return program;
  program.body = without_dead_stores(program.body, uses);
  drop_unused_locals(program);
  return program;
}

}  // namespace tenon::program
