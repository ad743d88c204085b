#include <tenon/expr/node_internal.hpp>

namespace tenon {

using detail::ExprNode;
using detail::Wide;

namespace {

// A value, or the node that has no value.
struct Evaluated {
  enum class Fault : uint8_t { none, unbound, division_by_zero, overflow };
  Wide value = 0;
  Fault fault = Fault::none;
  const ExprNode* at = nullptr;
};

Evaluated evaluate_node(const Expr& e, const SymbolValues& values, const detail::Walk<Evaluated>& done) {
  using Fault = Evaluated::Fault;
  const auto fault = [&](Fault f) { return Evaluated{0, f, ExprNode::of(e)}; };
  if (e.is_symbol()) {
    const auto it = values.find(e.name());
    return it == values.end() ? fault(Fault::unbound) : Evaluated{it->second};
  }
  const auto operands = e.operands();
  const auto numbers = e.numbers();
  if (e.kind() == ExprKind::select) {
    const Evaluated condition = done.at(operands[0]);
    return condition.fault != Fault::none ? condition : done.at(operands[condition.value != 0 ? 1 : 2]);
  }
  std::vector<Wide> v;
  for (const Expr& operand : operands) {
    const Evaluated value = done.at(operand);
    if (value.fault != Fault::none) return value;
    v.push_back(value.value);
  }
  Wide result = 0;
  bool overflow = false;
  switch (e.kind()) {
    case ExprKind::sum:
    case ExprKind::unfolded_sum:
      if (!numbers.empty()) result = numbers.back();
      for (size_t i = 0; i < v.size(); ++i) {
        Wide term = v[i];
        if (!numbers.empty()) overflow |= __builtin_mul_overflow(term, Wide{numbers[i]}, &term);
        overflow |= __builtin_add_overflow(result, term, &result);
      }
      break;
    case ExprKind::product:
    case ExprKind::unfolded_product:
      result = 1;
      for (size_t i = 0; i < v.size(); ++i)
        for (int64_t k = numbers.empty() ? 1 : numbers[i]; k > 0; --k)
          overflow |= __builtin_mul_overflow(result, v[i], &result);
      break;
    case ExprKind::floordiv:
    case ExprKind::mod:
      if (v[1] == 0) return fault(Fault::division_by_zero);
      if (v[1] == -1) {  // the one division that can overflow
        overflow = e.kind() == ExprKind::floordiv && __builtin_sub_overflow(Wide{0}, v[0], &result);
        break;
      }
      result = e.kind() == ExprKind::floordiv ? detail::floor_div(v[0], v[1]) : detail::floor_mod(v[0], v[1]);
      break;
    case ExprKind::min: result = *std::min_element(v.begin(), v.end()); break;
    case ExprKind::max: result = *std::max_element(v.begin(), v.end()); break;
    case ExprKind::at_least_0: result = v[0] >= 0; break;
    case ExprKind::is_0: result = v[0] == 0; break;
    case ExprKind::constant:
    case ExprKind::symbol:
    case ExprKind::select: break;
  }
  return overflow ? fault(Fault::overflow) : Evaluated{result};
}

}  // namespace

Result<int64_t> Expr::evaluate(const SymbolValues& values) const {
  if (!node_) return value_;
  detail::Walk<Evaluated> walk([](int64_t value) { return Evaluated{value}; },
                               [&](const Expr& e, const auto& done) { return evaluate_node(e, values, done); });
  Evaluated result = walk(*this);
  if (result.fault == Evaluated::Fault::none && !detail::fits(result.value))
    result = {0, Evaluated::Fault::overflow, node_};
  if (result.fault == Evaluated::Fault::none) return static_cast<int64_t>(result.value);
  result.at->references.fetch_add(1, std::memory_order_relaxed);
  const Expr at(result.at);
  switch (result.fault) {
    case Evaluated::Fault::unbound:
      return error(Code::not_found, "symbol '", at.name(), "' of ", *this, " has no value; give it one");
    case Evaluated::Fault::division_by_zero:
      return error(Code::invalid_argument, "division by zero: ", at.operands()[1], " is 0 in ", at);
    default:
      return error(Code::invalid_argument, "the value of ", at, " is outside the range of a 64-bit integer, [",
                   INT64_MIN, ", ", INT64_MAX, "]");
  }
}

}  // namespace tenon
