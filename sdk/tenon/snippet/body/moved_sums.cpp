#include <tenon/snippet/body/moved_sums_internal.hpp>

#include <algorithm>
#include <limits>

namespace tenon::snippet {
namespace {

// Finds the values to which sums are relative.
class Finder {
 public:
  Finder(const Body& body, std::span<const BodyNode* const> makers, std::span<const BodyNode* const> firsts)
      : body_(body), makers_(makers), firsts_(firsts) {}

  std::optional<MovedSum> find(const BodyNode& fold) const {
    if (fold.op != "ReduceSum" || !of(fold.result).is_float() || !begins_with(fold, 0)) return std::nullopt;
    const BodyNode* term = makers_[index(fold.operands[0])];
    if (!term || (term->op != "Exp" && term->op != "Mul")) return std::nullopt;
    const BodyNode* difference = node_of(term->operands[0], "Sub");
    if (!difference) return std::nullopt;
    const ValueId x = difference->operands[0], by = difference->operands[1];
    const bool squares = term->op == "Mul" && term->operands[1] == difference->result && is_mean(by, x);
    const bool powers = term->op == "Exp" && is_greatest(by, x);
    if (!squares && !powers) return std::nullopt;
    return MovedSum{.fold = &fold, .term = term, .difference = difference, .by = by, .squares = squares};
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  ElementType of(ValueId id) const { return body_.values[index(id)].element; }
  bool begins_with(const BodyNode& fold, double value) const {
    const auto initial = static_cast<uint64_t>(*fold.attributes.find("initial")->get_if<int64_t>());
    return initial == lane_bits(of(fold.result), value);
  }
  const BodyNode* node_of(ValueId id, Name op) const {
    const BodyNode* node = makers_[index(id)];
    return node && node->op == op ? node : nullptr;
  }
  // Whether `id` is a first fold of `x` by `op` from `initial` on.
  bool folds(ValueId id, Name op, ValueId x, double initial) const {
    const BodyNode* fold = node_of(id, op);
    return fold && std::ranges::find(firsts_, fold) != firsts_.end() && fold->operands[0] == x &&
           begins_with(*fold, initial);
  }
  bool is_number(ValueId id, double number) const {
    const BodyNode* node = node_of(id, "Scalar");
    return node &&
           static_cast<uint64_t>(*node->attributes.find("bits")->get_if<int64_t>()) == lane_bits(of(id), number);
  }
  // Whether it is the maximum of x, or that with 0 where it is not finite.
  bool is_greatest(ValueId id, ValueId x) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (folds(id, "ReduceMax", x, -kInfinity)) return true;
    const BodyNode* choice = node_of(id, "Where");
    if (!choice || !is_number(choice->operands[1], 0)) return false;
    const BodyNode* infinite = node_of(choice->operands[0], "Equal");
    const BodyNode* magnitude = infinite ? node_of(infinite->operands[0], "Abs") : nullptr;
    const ValueId greatest = choice->operands[2];
    return magnitude && magnitude->operands[0] == greatest && is_number(infinite->operands[1], kInfinity) &&
           folds(greatest, "ReduceMax", x, -kInfinity);
  }
  bool is_mean(ValueId id, ValueId x) const {
    const BodyNode* quotient = node_of(id, "Div");
    return quotient && folds(quotient->operands[0], "ReduceSum", x, 0) &&
           node_of(quotient->operands[1], "ReducedCount");
  }

  const Body& body_;
  const std::span<const BodyNode*const> makers_, firsts_;
};

}  // namespace

std::optional<MovedSum> moved_sum(const Body& body, std::span<const BodyNode* const> makers, const BodyNode& fold,
                                  std::span<const BodyNode* const> firsts) {
  return Finder(body, makers, firsts).find(fold);
}

ValueId Appender::scalar(ElementType element, double number) {
  body_.nodes.push_back(body_.make_scalar(element, lane_bits(element, number), label_));
  return made_.emplace_back(body_.nodes.back().result);
}

ValueId Appender::node(Name op, std::vector<ValueId> operands, Attributes attributes) {
  const ElementType element = op == "Equal" ? kBool : of(operands.back());
  DimSet varies = 0;
  for (const ValueId id : operands) varies |= body_.values[static_cast<size_t>(id)].varies;
  return made_.emplace_back(
      body_.append({.op = op, .attributes = std::move(attributes), .operands = std::move(operands), .label = label_},
                   {element, varies}, body_.nodes));
}

// Equal infinities have no difference; a zero sum, and one that vanishes relative to `to`, stay zero, whatever the
// factor.
ValueId move_powers(Appender& a, ValueId sum, ValueId from, ValueId to) {
  const ValueId zero = a.scalar(a.of(sum), 0);
  const ValueId factor = a.node("Exp", {a.node("Sub", {from, to})});
  const ValueId product = a.node("Where", {a.node("Equal", {factor, zero}), zero, a.node("Mul", {sum, factor})});
  const ValueId as_it_is = a.node("Or", {a.node("Equal", {from, to}), a.node("Equal", {sum, zero})});
  return a.node("Where", {as_it_is, sum, product});
}

Moments move_moments(Appender& a, const Moments& sums, ValueId from, ValueId to, bool squares_alone) {
  const ValueId zero = a.scalar(a.of(from), 0), by = a.node("Sub", {from, to});
  const ValueId more = a.node("Mul", {sums.count, by});
  const ValueId factor = a.node("Add", {a.node("Add", {sums.first, sums.first}), more});
  const ValueId square = a.node("Add", {sums.second, a.node("Mul", {by, factor})});
  const ValueId as_it_is = a.node("Or", {a.node("Equal", {from, to}), a.node("Equal", {sums.count, zero})});
  const ValueId first = squares_alone ? -1 : a.node("Where", {as_it_is, sums.first, a.node("Add", {sums.first, more})});
  return {sums.count, first, a.node("Where", {as_it_is, sums.second, square})};
}

}  // namespace tenon::snippet
