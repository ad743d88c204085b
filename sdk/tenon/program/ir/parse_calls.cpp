#include <algorithm>
#include <charconv>

#include <tenon/expr/text.hpp>
#include <tenon/program/ir/parse_internal.hpp>

namespace tenon::program::detail {

Result<Operand> Parser::operand() {
  Operand o;
  if (take_word("in"))
    o.access = Access::in;
  else if (take_word("out"))
    o.access = Access::out;
  else if (take_word("inout"))
    o.access = Access::inout;
  else
    return fail("an operand is expected: in, out or inout, and a buffer");
  TENON_TRY(r, region());
  o.region = std::move(r);
  return o;
}

Result<KernelHandle> Parser::kernel() {
  skip_blanks();
  const size_t start = at_;
  TENON_TRY(name, dotted_name("the name of a kernel"));
  if (const auto it = kernels_.find(name); it != kernels_.end()) return it->second;
  std::vector<std::string> known;
  for (const auto& [known_name, handle] : kernels_) known.push_back(known_name);
  const std::string hint = nearest(name, known);
  return fail_at(start, str("no kernel is called '", name, "'", hint.empty() ? "" : "; did you mean '" + hint + "'?"));
}

Result<Statement> Parser::call() {
  Call s;
  TENON_TRY(called, kernel());
  s.kernel = called;
  TENON_OK(expect("("));
  while (!peek(";") && !peek(")")) {
    if (!s.operands.empty()) TENON_OK(expect(","));
    TENON_TRY(o, operand());
    s.operands.push_back(std::move(o));
  }
  if (take(";")) {
    TENON_TRY(scalars, exprs());
    s.scalars = std::move(scalars);
  } else {
    TENON_OK(expect(")"));
  }
  TENON_OK(tail(s.predicate, s.stage));
  return Statement(std::move(s));
}

Result<void> Parser::tail(Expr& predicate, std::string& stage) {
  if (take_word("if")) {
    TENON_TRY(e, expr());
    predicate = e;
  }
  if (take_word("as")) {
    TENON_TRY(name, string());
    stage = name;
  }
  return {};
}

Result<Copy> Parser::copy_rest() {
  Copy s;
  TENON_TRY(destination, region());
  s.destination = std::move(destination);
  TENON_OK(expect("("));
  TENON_OK(list(")", [&]() -> Result<void> {
    TENON_TRY(index, simple_name("an index"));
    s.indices.push_back(index);
    return {};
  }));
  TENON_OK(expect("="));
  TENON_TRY(source, region());
  s.source = std::move(source);
  TENON_OK(expect("("));
  TENON_TRY(map, exprs());
  s.map = std::move(map);
  if (take_word("pad")) TENON_OK(padding(s));
  TENON_OK(tail(s.predicate, s.stage));
  return s;
}

Result<void> Parser::padding(Copy& s) {
  if (peek("%")) {
    TENON_TRY(from, region());
    s.padding = std::move(from);
    return {};
  }
  TENON_OK(expect("0x"));
  const std::string_view digits = word_at(at_);
  Copy::Element bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned value = 0;
    const auto [end, status] = std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    if (status != std::errc() || end != digits.data() + i + 2) return fail("bytes in hexadecimal digits are expected");
    bytes.push_back(static_cast<std::byte>(value));
  }
  if (digits.empty() || digits.size() % 2 != 0) return fail("two hexadecimal digits for each byte are expected");
  at_ += digits.size();
  s.padding = std::move(bytes);
  return {};
}

Result<Statement> Parser::copy() {
  TENON_TRY(s, copy_rest());
  return Statement(std::move(s));
}

Result<TokenId> Parser::token() {
  TENON_TRY(name, percent_name("a token"));
  const auto it = std::find(program_.tokens.begin(), program_.tokens.end(), name);
  if (it == program_.tokens.end()) return fail(str("no token '", name, "' is declared"));
  return static_cast<TokenId>(it - program_.tokens.begin());
}

Result<Statement> Parser::start() {
  TENON_TRY(id, token());
  TENON_OK(expect_word("copy"));
  TENON_TRY(s, copy_rest());
  return Statement(DmaStart{id, std::move(s)});
}

Result<Statement> Parser::wait() {
  TENON_TRY(id, token());
  return Statement(DmaWait{id});
}

Result<Statement> Parser::signal() {
  TENON_TRY(stage, small_integer(0, kMostStages));
  return Statement(Signal{stage});
}

Result<Statement> Parser::await() {
  TENON_TRY(stage, small_integer(0, kMostStages));
  return Statement(Await{stage});
}

Result<Statement> Parser::prefetch() {
  TENON_TRY(o, operand());
  Prefetch s{o.access, std::move(o.region)};
  if (take_word("part")) {
    TENON_TRY(part, small_integer(0, kMostParts - 1));
    TENON_OK(expect_word("of"));
    TENON_TRY(parts, small_integer(1, kMostParts));
    s.part = part;
    s.parts = parts;
  }
  return Statement(std::move(s));
}

}  // namespace tenon::program::detail
