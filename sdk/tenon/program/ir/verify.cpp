#include <set>

#include <tenon/program/ir/text.hpp>
#include <tenon/program/ir/verify_internal.hpp>
#include <tenon/program/ir/walk.hpp>

namespace tenon::program {
namespace detail {

Result<void> Verifier::verify() {
  TENON_OK(declarations());
  scope_.declare_unknown();
  for (size_t id = 0; id < program_.buffers.size(); ++id)
    written_[id] = program_.buffers[id].role != Role::output && program_.buffers[id].role != Role::local;
  TENON_OK(locals());
  TENON_OK(check(program_.body));
  return tokens_are_done("the program");
}

Result<void> Verifier::declarations() {
  std::set<std::string> taken;
  const auto take = [&](const std::string& what, const std::string& text) -> Result<void> {
    if (!(what == "scalar" ? is_name(text) : is_buffer_name(text)))
      return wrong("'", text, "' cannot be the name of a ", what, ": see program/ir/text.hpp");
    if (!taken.insert(text).second) return wrong("the name '", text, "' is taken twice");
    return {};
  };
  for (const std::string& scalar : program_.scalars) TENON_OK(take("scalar", scalar));
  for (const std::string& token : program_.tokens) TENON_OK(take("token", token));
  for (const Buffer& b : program_.buffers) {
    TENON_OK(take("buffer", b.name));
    if (b.rank < 0 || b.rank > kMaxRank)
      return wrong("buffer '", b.name, "' has rank ", b.rank, ", 0 to ", kMaxRank, " are possible");
    if (!b.element.byte_addressable())
      return error(
          Code::unsupported, "buffer '", b.name, "' has elements of ", b.element.to_string(),
          ", which do not fill 1, 2, 4, 8 or 16 bytes: declare it as u8, with as many as the packed elements fill");
  }
  return {};
}

Result<void> Verifier::locals() {
  std::vector<std::pair<BufferId, SymbolicBuffer>> made;
  for (const Allocation& a : program_.locals) {
    TENON_OK(check_id(a.buffer), "a local");
    TENON_OK(check_allocation(a), "local '", name(a.buffer), "'");
    if (!ever_defined_.insert(a.buffer).second) return wrong("'", name(a.buffer), "' is a local twice");
    made.emplace_back(a.buffer, scope_.allocation(a));
  }
  for (auto& [id, buffer] : made) scope_.exchange(id, std::move(buffer));
  return {};
}

Result<void> Verifier::check(const Statement& s) {
  if (s.empty()) return {};
  if (++depth_ > kMaxDepth)
    return error(Code::resource_exhausted, "more than ", kMaxDepth, " statements within one another");
  Result<void> result;
  for_each_expr(s, [&](const Expr& e) {
    if (result.ok() && !s.as<Copy>() && !s.as<DmaStart>() && !s.as<Allocate>()) result = check_expr(e);
  });
  if (result.ok()) result = s.visit([this](const auto& statement) { return check(statement); });
  --depth_;
  TENON_OK(std::move(result), "", head_of(s));
  return {};
}

std::string Verifier::head_of(const Statement& s) const {
  if (s.as<Block>()) return "a block";
  const Statement alone = with_children(s, [](const Statement&) { return Statement(); });
  std::string text;
  if (names_exist(alone)) text = print(program_, alone);
  return str("'", trim(text.substr(0, text.find('\n'))), "'");
}

bool Verifier::names_exist(const Statement& s) const {
  bool exist = true;
  const auto see = [&](BufferId id) { exist &= check_id(id).ok(); };
  for_each_buffer(s, [&](BufferId id, Access) { see(id); });
  if (const BufferId id = defined_buffer(s); s.as<Allocate>() || id != -1) see(id);
  if (const auto* f = s.as<Free>()) see(f->buffer);
  if (const auto* c = s.as<Call>()) exist &= c->kernel != nullptr;
  if (const auto* t = s.as<DmaStart>()) exist &= check_token(t->token).ok();
  if (const auto* t = s.as<DmaWait>()) exist &= check_token(t->token).ok();
  return exist;
}

Result<void> Verifier::check(const Block& block) {
  for (const Statement& s : block.statements)
    // No frame for blocks, which have no line of text.
    if (auto result = check(s); !result.ok()) return result;
  return {};
}

Result<void> Verifier::check_symbol(const std::string& symbol) const {
  if (!is_name(symbol)) return wrong("'", symbol, "' cannot be the name of a symbol: see program/ir/text.hpp");
  if (scope_.has(symbol)) return wrong("the symbol ", symbol, " is bound again where it is visible");
  return {};
}

Result<void> Verifier::check(const Let& let) {
  TENON_OK(check_symbol(let.symbol));
  scope_.define(let.symbol, scope_.resolve(let.value));
  TENON_OK(check(let.body));
  scope_.erase(let.symbol);
  return {};
}

Result<void> Verifier::with_buffer(BufferId id, SymbolicBuffer made, const Statement& body) {
  ever_defined_.insert(id);
  auto before = scope_.exchange(id, std::move(made));
  TENON_OK(check(body));
  scope_.exchange(id, std::move(before));
  return {};
}

}  // namespace detail

Result<void> verify(const Program& program) {
  TENON_OK(detail::Verifier(program).verify(), "program '", program.name, "'");
  return {};
}

}  // namespace tenon::program
