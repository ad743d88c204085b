// Removes steps that are not powers of two: a value that is held as x = factor * 2^exponent * q is held as x / factor
// instead. Its producer gives x / factor, and its users multiply, in both cases by their weights.
#include <cmath>
#include <map>

#include <tenon-ext/quant/accumulator_internal.hpp>
#include <tenon-ext/quant/float_forms_internal.hpp>
#include <tenon-ext/quant/operators.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon-ext/quant/scale_families_internal.hpp>
#include <tenon/passes/change.hpp>

namespace tenon::quant {
namespace {

constexpr double kNothing = 1e-6;  // a factor this close to 1 is ignored: f32 has an error of this size anyway

class FactorFolder {
 public:
  FactorFolder(Graph& graph, std::map<std::string, double>* factors) : body_(graph.body()), factors_(factors) {}

  Result<Change> run() {
    const auto steps = family_steps(body_);
    for (const auto& [round, step] : steps) TENON_OK(open(*round, step), round->describe());
    if (scales_.empty()) return steps.empty() ? Change::no : Change::yes;
    for (Op* op : body_.ops()) TENON_OK(sink(*op), op->describe());
    for (Op* scale : before_) TENON_OK(raise(*scale), scale->describe());
    TENON_OK(drop());
    return Change::yes;
  }

 private:
  // A Mul by a constant that is to be moved into weights.
  Result<Value*> scale(Op* place, Value* x, double number) {
    Builder builder(body_, place);
    TENON_TRY(y, builder.op("Mul", {x, builder.constant_scalar(kF32, number)}));
    scales_[y->producer()] = number;
    return y;
  }
  // Its constant, if `value` is the result of one.
  const double* scale_of(const Value* value) const {
    const auto found = value && value->producer() ? scales_.find(value->producer()) : scales_.end();
    return found == scales_.end() ? nullptr : &found->second;
  }
  void note(const Value& value, double factor) {
    if (factors_ && !value.name().empty()) (*factors_)[value.name()] = factor;
  }

  // Removes the factor of a Round, and adds the missing Muls before and after it.
  Result<void> open(Op& round, const Step& step) {
    round.set_attr("exponent", step.exponent);
    round.attributes().erase("factor");
    if (std::abs(step.factor - 1) < kNothing) return {};
    note(*round.result(), step.factor);
    const std::vector<Use*> uses = round.result()->uses();
    Op* const next = round.next();
    for (Use* use : uses) {
      TENON_TRY(real, scale(next, round.result(), step.factor));
      use->user()->set_operand(use->index(), real);
    }
    TENON_TRY(held, scale(&round, round.operand(0), 1 / step.factor));
    round.set_operand(0, held);
    before_.push_back(held->producer());
    return {};
  }

  // ---- Behind a Round: on to whoever reads ----

  Result<void> sink(Op& op) {
    Value* const x = op.operand_count() > 0 ? op.operand(0) : nullptr;
    const double* const number = scale_of(x);
    if (!number || scales_.contains(&op)) return {};
    if (is_product(op) && !is_moved_by(op, x)) {
      const double factor = *number;
      op.set_operand(0, x->producer()->operand(0));
      return scale_constant(op, 1, factor);
    }
    return is_transparent(op) ? sink_through(op, *number) : Result<void>();
  }
  // If x is the weights as well, these are not constant.
  static bool is_moved_by(const Op& op, const Value* x) { return op.operand(1) == x; }

  Result<void> sink_through(Op& op, double number) {
    op.set_operand(0, op.operand(0)->producer()->operand(0));
    TENON_OK(scale_clip(op, 1 / number));
    note(*op.result(), number);
    const std::vector<Use*> uses = op.result()->uses();
    Op* const next = op.next();
    for (Use* use : uses) {
      TENON_TRY(real, scale(next, op.result(), number));
      use->user()->set_operand(use->index(), real);
      if (!body_.is_return(*use->user())) TENON_OK(sink(*use->user()));
    }
    return {};
  }

  // ---- Before a Round: back to whoever makes it ----

  Result<void> raise(Op& scale) {
    Value* const x = scale.operand(0);
    const double number = scales_.at(&scale);
    if (!takes(*x, number)) return {};
    TENON_OK(multiply(*x, number));
    scales_[&scale] = 1;
    return {};
  }

  // Whether the producer of `x` can give x * number.
  bool takes(const Value& x, double number) const {
    const Op* const op = x.producer();
    if (!op || !x.has_one_use()) return false;
    if (const double* inner = scale_of(&x)) return std::abs(*inner * number - 1) < kNothing;
    if (is_product(*op)) return true;
    if (is_transparent(*op)) return takes(*op->operand(0), number);
    if (!op->is("Add")) return false;
    for (const size_t side : {0, 1}) {
      if (!float_constant(op->operand(side)) && !takes(*op->operand(side), number)) return false;
    }
    return op->operand(0) != op->operand(1);
  }

  Result<void> multiply(Value& x, double number) {
    Op& op = *x.producer();
    if (scale_of(&x)) {
      scales_[&op] *= number;
      return {};
    }
    note(x, 1 / number);
    if (is_product(op)) {
      TENON_OK(scale_constant(op, 1, number));
      return scale_constant(op, 2, number);
    }
    if (is_transparent(op)) {
      TENON_OK(scale_clip(op, number));
      return multiply(*op.operand(0), number);
    }
    for (const size_t side : {0, 1}) {
      if (float_constant(op.operand(side)))
        TENON_OK(scale_constant(op, side, number));
      else
        TENON_OK(multiply(*op.operand(side), number));
    }
    return {};
  }

  // ---- Constants ----

  Result<void> scale_constant(Op& op, size_t operand, double number) {
    const Tensor* const tensor = float_constant(op.operand(operand));
    if (!tensor) return {};
    TENON_TRY(made, scaled(*tensor, number));
    Builder builder(body_, &op);
    op.set_operand(operand, builder.constant(std::move(made), op.operand(operand)->name()));
    return {};
  }
  Result<void> scale_clip(Op& op, double number) {
    if (!op.is("Clip")) return {};
    TENON_OK(scale_constant(op, 1, number));
    return scale_constant(op, 2, number);
  }

  // Erases those that have become trivial; those that found no weights remain as Muls.
  Result<void> drop() {
    for (const auto& [op, number] : scales_) {
      if (!op->result()->used()) continue;
      if (std::abs(number - 1) < kNothing) {
        TENON_OK(replace_value(*op->result(), *op->operand(0)));
        continue;
      }
      Builder builder(body_, op);
      op->set_operand(1, builder.constant_scalar(kF32, number));
    }
    for (const auto& [op, number] : scales_) {
      if (!op->has_uses()) op->erase();
    }
    return {};
  }

  Region& body_;
  std::map<std::string, double>* factors_;
  std::map<Op*, double> scales_;
  std::vector<Op*> before_;  // those before a Round
};

}  // namespace

Result<Change> fold_factors(Graph& graph, std::map<std::string, double>* factors) {
  return FactorFolder(graph, factors).run();
}

namespace {

const PassRegistration kFoldFactorsRegistered({{
    .name = "fold-factors",
    .contract = "Factors of quant.Round go into the weights before and behind it, so that steps between integer layers "
                "are powers of two.\nValues that are added or averaged share one factor. Needs inferred types; keeps "
                "numbers but for the steps of those.",
    .run = [](Graph& graph) { return fold_factors(graph); },
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon::quant
