#include <algorithm>
#include <charconv>

#include <tenon/expr/text.hpp>
#include <tenon/program/ir/parse_internal.hpp>

namespace tenon::program::detail {

Result<Statement> Parser::statements() {
  if (++depth_ > kMaxDepth) return fail(str("more than ", kMaxDepth, " statements within one another"));
  Block block;
  while (!take("}")) {
    TENON_TRY(s, statement());
    block.statements.push_back(std::move(s));
  }
  --depth_;
  return Statement(std::move(block));
}

Result<Statement> Parser::statement() {
  static constexpr std::pair<std::string_view, Rule> kRules[] = {{"let", &Parser::let},
                                                                 {"allocate", &Parser::allocate},
                                                                 {"free", &Parser::free},
                                                                 {"for", &Parser::loop},
                                                                 {"crop", &Parser::crop},
                                                                 {"slice", &Parser::slice},
                                                                 {"transpose", &Parser::transpose},
                                                                 {"view", &Parser::view},
                                                                 {"call", &Parser::call},
                                                                 {"copy", &Parser::copy},
                                                                 {"start", &Parser::start},
                                                                 {"wait", &Parser::wait},
                                                                 {"signal", &Parser::signal},
                                                                 {"await", &Parser::await},
                                                                 {"prefetch", &Parser::prefetch},
                                                                 {"check", &Parser::check}};
  for (const auto& [word, rule] : kRules)
    if (take_word(word)) return (this->*rule)();
  return fail(str("a statement or '}' is expected, not '", peek_word(), "'"));
}

Result<Statement> Parser::let() {
  TENON_TRY(name, simple_name("a symbol"));
  TENON_OK(expect("="));
  TENON_TRY(value, expr());
  TENON_TRY(inner, body());
  return Statement(Let{name, value, inner});
}

Result<Statement> Parser::allocate() {
  TENON_TRY(a, allocation());
  TENON_TRY(inner, body());
  return Statement(Allocate{std::move(a), inner});
}

Result<Allocation> Parser::allocation() {
  Allocation a;
  TENON_TRY(name, percent_name("a buffer"));
  TENON_OK(expect(":"));
  TENON_TRY(type, element());
  TENON_TRY(of, dims());
  a.dims = std::move(of);
  TENON_TRY(id, define(name, type, a.dims.size()));
  a.buffer = id;
  TENON_OK(space(a.space));
  if (take_word("align")) {
    TENON_TRY(align, integer());
    a.align_bytes = align;
  }
  if (take_word("heap")) a.placement = Placement::heap;
  if (take_word("stack")) a.placement = Placement::stack;
  if (take_word("slots")) {
    TENON_TRY(slots, expr());
    a.slots = slots;
  }
  return a;
}

Result<Statement> Parser::free() {
  TENON_TRY(id, buffer());
  return Statement(Free{id});
}

Result<Statement> Parser::loop() {
  Loop s;
  TENON_TRY(name, simple_name("a symbol"));
  s.symbol = name;
  TENON_OK(expect_word("in"));
  TENON_OK(expect("["));
  TENON_TRY(begin, expr());
  TENON_OK(expect(","));
  TENON_TRY(end, expr());
  TENON_OK(expect(")"));
  s.begin = begin;
  s.end = end;
  if (take_word("step")) {
    TENON_TRY(step, expr());
    s.step = step;
  }
  if (take_word("parallel")) s.kind = LoopKind::parallel;
  if (s.kind == LoopKind::serial && take_word("pipelined")) s.kind = LoopKind::pipelined;
  if (s.kind != LoopKind::serial) {
    TENON_TRY(workers, expr());
    s.workers = workers;
  }
  TENON_TRY(inner, body());
  s.body = inner;
  return Statement(std::move(s));
}

Result<BufferId> Parser::definition(std::string& name) {
  TENON_TRY(first, percent_name("a buffer"));
  name = first;
  if (take("=")) return buffer();
  const auto id = program_.find_buffer(name);
  if (!id) return fail(str("no buffer is called '", name, "' up to here"));
  return *id;
}

Result<BufferId> Parser::define_view(const std::string& name, BufferId source, size_t rank) {
  const Buffer& of = program_.buffer(source);
  if (name == of.name) return source;
  return define(name, of.element, rank);
}

Result<Statement> Parser::crop() {
  std::string name;
  TENON_TRY(source, definition(name));
  TENON_TRY(box, items<Range>([this] { return range(); }));
  TENON_TRY(id, define_view(name, source, box.size()));
  TENON_TRY(inner, body());
  return Statement(Crop{id, source, std::move(box), inner});
}

Result<Statement> Parser::slice() {
  std::string name;
  TENON_TRY(source, definition(name));
  TENON_TRY(at, items<Expr>([this] { return expr(); }));
  const auto left = std::count(at.begin(), at.end(), std::nullopt);
  TENON_TRY(id, define_view(name, source, static_cast<size_t>(left)));
  TENON_TRY(inner, body());
  return Statement(Slice{id, source, std::move(at), inner});
}

Result<Statement> Parser::transpose() {
  std::string name;
  TENON_TRY(source, definition(name));
  std::vector<int> order;
  TENON_OK(expect("["));
  TENON_OK(list("]", [&]() -> Result<void> {
    TENON_TRY(d, small_integer(0, kMaxRank - 1));
    order.push_back(d);
    return {};
  }));
  TENON_TRY(id, define_view(name, source, order.size()));
  TENON_TRY(inner, body());
  return Statement(Transpose{id, source, std::move(order), inner});
}

Result<Statement> Parser::view() {
  TENON_TRY(name, percent_name("a buffer"));
  TENON_OK(expect(":"));
  TENON_TRY(type, element());
  TENON_OK(expect("="));
  TENON_TRY(source, buffer());
  TENON_OK(expect_word("at"));
  TENON_TRY(offset, expr());
  TENON_TRY(of, dims());
  TENON_TRY(id, define(name, type, of.size()));
  TENON_TRY(inner, body());
  return Statement(View{id, source, std::move(offset), std::move(of), inner});
}

Result<Statement> Parser::check() {
  TENON_TRY(condition, expr());
  TENON_OK(expect(":"));
  TENON_TRY(message, string());
  return Statement(Check{condition, message});
}

}  // namespace tenon::program::detail
