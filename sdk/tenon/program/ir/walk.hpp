// Visiting and rewriting statements.
#pragma once
#include <functional>
#include <type_traits>
#include <vector>

#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>

namespace tenon::program {

// Calls visit(expr) for each expression of the statement itself, not for those of statements inside it. The statement's
// own symbols, such as the indices of a copy, are treated like any others.
TENON_API void for_each_expr(const Statement& statement, const std::function<void(const Expr&)>& visit);
// Calls visit(inner) for each statement directly in this one, in order.
TENON_API void for_each_child(const Statement& statement, const std::function<void(const Statement&)>& visit);
// Calls visit(id, access) for each buffer that the statement itself reads, writes, or makes a view of (`in`), but not
// for those that it defines, nor for metadata in expressions.
TENON_API void for_each_buffer(const Statement& statement, const std::function<void(BufferId, Access)>& visit);
// Calls visit(s) for the statement and all statements in it, outer ones first.
TENON_API void for_each_statement(const Statement& statement, const std::function<void(const Statement&)>& visit);

// The statement with `change` applied to each statement directly inside it. Returns the same node when nothing changes.
TENON_API Statement with_children(const Statement& statement, const std::function<Statement(const Statement&)>& change);
// The statement with `change` applied to each of its own expressions; statements inside it are unchanged.
TENON_API Statement with_exprs(const Statement& statement, const std::function<Expr(const Expr&)>& change);
// The statement with `change` applied to each buffer that it names itself, including those it defines; metadata in
// expressions are unchanged.
TENON_API Statement with_buffers(const Statement& statement, const std::function<BufferId(BufferId)>& change);

// The statement with symbols replaced in all statements inside it. Symbols bound inside must not occur in the map.
TENON_API Statement substitute(const Statement& statement, const Substitution& map);

// The buffer that the statement defines for its body, -1 for none.
TENON_API BufferId defined_buffer(const Statement& statement);
// The statement's body; the empty statement for those that have none (a Block has none).
TENON_API const Statement& body_of(const Statement& statement);

}  // namespace tenon::program
