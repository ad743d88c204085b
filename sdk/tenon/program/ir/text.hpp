// The text form. parse_program(print(p)) == renumbered(p). docs/program.md shows each statement.
//
//   program  := "program" "@" name "(" [ name { "," name } ] ")" "{" { declaration } { statement } "}"
//   declaration := ("input" | "constant" | "output" | "state") buffer ":" type "rank" integer [ "in" space ]
//                | "token" token
//                | "local" buffer ":" type dims memory
//   statement := "let" name "=" expr body
//     | "allocate" buffer ":" type dims memory body
//     | "free" buffer
//     | "for" name "in" "[" expr "," expr ")" [ "step" expr ] [ ("parallel" | "pipelined") expr ] body
//     | "crop" [ buffer "=" ] buffer "[" ( "_" | range ) ... "]" body
//     | "slice" [ buffer "=" ] buffer "[" ( "_" | expr ) ... "]" body
//     | "transpose" [ buffer "=" ] buffer "[" integer ... "]" body
//     | "view" buffer ":" type "=" buffer "at" expr dims body
//     | "call" kernel "(" [ operand { "," operand } ] [ ";" expr { "," expr } ] ")" tail
//     | copy | "start" token copy | "wait" token | "signal" integer | "await" integer
//     | "prefetch" ("in" | "out") region [ "part" integer "of" integer ]
//     | "check" expr ":" string
//   memory   := [ "in" space ] [ "align" integer ] [ "heap" | "stack" ] [ "slots" expr ]
//   copy     := "copy" region "(" [ name ... ] ")" "=" region "(" [ expr ... ] ")" [ "pad" ( bytes | region ) ] tail
//   tail     := [ "if" expr ] [ "as" string ]
//   operand  := ("in" | "out" | "inout") region
//   region   := buffer [ "[" range ... "]" ]          all of the buffer, or a box of it
//   range    := expr "+:" expr                        min and extent
//   dims     := "[" [ dim { "," dim } ] "]"           dim := range [ "stride" expr ] [ "fold" expr ]
//   body     := "{" { statement } "}"
//   buffer, token := "%" name;  bytes := "0x" and two digits for each byte, in memory order
//
// Expressions are as in expr/text.hpp and end at the line's end at the latest. Comments run from # to the end of the
// line. A name is [A-Za-z_][A-Za-z0-9_]*. Scalars and symbols, which also occur in expressions, may not be a word that
// ends an expression (such as step) or is part of one (such as min). Names of programs, kernels and memories may
// contain dots.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

TENON_API std::string print(const Program& program);
// One statement and what is in it, with the names of the program's buffers.
TENON_API std::string print(const Program& program, const Statement& statement);

using KernelTable = std::map<std::string, KernelHandle, std::less<>>;

// Errors carry `where`:line:column. Kernels are taken from the table. The program is not verified (verify.hpp).
TENON_API Result<Program> parse_program(std::string_view text, const KernelTable& kernels,
                                        std::string_view where = "text");

// The deepest nesting of statements that the text form, the verifier and the executors accept.
inline constexpr int kMaxDepth = 400;

// Whether a name is valid in the text form for a scalar or a symbol; for a buffer or a token.
TENON_API bool is_name(std::string_view text);
TENON_API bool is_buffer_name(std::string_view text);

// The same program with declared buffers first, then local ones in the order in which statements name them; local
// buffers that no statement names are left out.
TENON_API Program renumbered(const Program& program);

}  // namespace tenon::program
