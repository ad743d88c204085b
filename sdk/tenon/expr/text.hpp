// The text form of Expr: parse_expr(e.to_string()) == e.
//
//   expr     := sum [ ("<=" | "<" | "==") sum ]
//   sum      := term { ("+" | "-") term }
//   term     := factor { ("*" | "floordiv" | "ceildiv" | "mod") factor }        from left to right, one precedence
//   factor   := { "-" } ( integer | symbol | "(" expr ")"
//                       | ("min" | "max") "(" expr { "," expr } ")" | "select" "(" expr "," expr "," expr ")" )
//   symbol   := [A-Za-z_][A-Za-z0-9_.]* that is no word of the grammar, or a name in double quotes, escaped as
//               quote() does (support/str.hpp)
#pragma once
#include <string_view>

#include <tenon/expr/expr.hpp>

namespace tenon {

inline constexpr size_t kMaxExprTextBytes = size_t{1} << 18;
// Depth of nested brackets.
inline constexpr int kMaxExprTextDepth = 200;

// Fails (Code::parse, with the column) on text outside the grammar or with an integer outside int64, and
// (Code::resource_exhausted) on text beyond the two limits.
TENON_API Result<Expr> parse_expr(std::string_view text);

}  // namespace tenon
