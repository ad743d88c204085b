#include <tenon/program/ir/fixed_step_internal.hpp>

#include <algorithm>

namespace tenon::program {
namespace {

// The step of `e` per index, where it is a sum of multiples of symbols.
std::optional<Expr> step_of_linear(const Expr& e, const std::string& index) {
  if (e.is_constant()) return Expr(0);
  if (e.is_symbol()) return Expr(int64_t{e.name() == index});
  if (e.kind() != ExprKind::sum || !std::ranges::all_of(e.operands(), &Expr::is_symbol)) return std::nullopt;
  const auto term = std::ranges::find(e.operands(), index, &Expr::name);
  return Expr(term == e.operands().end() ? 0 : e.numbers()[static_cast<size_t>(term - e.operands().begin())]);
}

}  // namespace

std::optional<Expr> fixed_step(const Expr& e, const std::string& index, const std::vector<std::string>& indices) {
  if (auto step = step_of_linear(e, index)) return step;
  Expr step = e.substitute({{index, Expr::symbol(index) + 1}}) - e;
  const std::vector<std::string> in_step = step.symbols();
  if (std::ranges::any_of(indices, [&](const std::string& i) { return std::ranges::count(in_step, i) > 0; }))
    return std::nullopt;
  return step;
}

}  // namespace tenon::program
