#include <tenon/ops/compare_logic.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/elementwise_dims.hpp>

namespace tenon {
namespace {

constexpr Trait kBroadcasting = kElementwise | Trait::broadcasting;
constexpr Trait kSymmetric = kBroadcasting | Trait::commutative;

// ---- Shape arithmetic: truth as 0, 1 or unknown ----

using Row = std::vector<Dim>;

// Whether a < b for all extents, for none, or unknown.
Dim less(const Dim& a, const Dim& b) {
  if (!a.known() || !b.known()) return {};
  if (never_negative(b - a - Dim(1))) return 1;
  if (never_negative(a - b)) return 0;
  return {};
}

Dim equal_dims(const Dim& a, const Dim& b) {
  if (a.same_extent(b)) return 1;
  const Dim below = less(a, b), above = less(b, a);
  const auto is_one = [](const Dim& dim) { return dim.is_static() && dim.value() == 1; };
  return is_one(below) || is_one(above) ? Dim(0) : Dim();
}

Dim negated(const Dim& truth) { return truth.known() ? Dim(1) - truth : truth; }

template <class F>
InferDimsFn pairs(F f) {
  return [f](const InferContext& context) { return zip_dims(context, [&](const Row& at) { return f(at[0], at[1]); }); };
}

Dim chosen(const Row& at) {
  if (at[1].same_extent(at[2])) return at[1];
  if (!at[0].is_static()) return {};
  return at[0].value() != 0 ? at[1] : at[2];
}

// ---- Definitions ----

OpDef predicate(Name name, std::string summary, const TypeSet& types) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("X", "T")
      .result("Y", "bool")
      .types("T", types)
      .traits(kElementwise)
      .infer(broadcast_operands_to(kBool))
      .bounds(pointwise());
}

OpDef comparison(Name name, std::string summary, const TypeSet& types, Trait traits = kBroadcasting) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("A", "T")
      .operand("B", "T")
      .result("C", "bool")
      .types("T", types)
      .traits(traits)
      .infer(broadcast_operands_to(kBool))
      .bounds(pointwise());
}

Result<std::vector<Type>> infer_where(const InferContext& context) {
  TENON_TRY(condition, context.tensor(0));
  TENON_TRY(x, context.tensor(1));
  TENON_TRY(y, context.tensor(2));
  TENON_TRY(values, broadcast(x.shape, y.shape), "X and Y of ", context.op().describe());
  TENON_TRY(shape, broadcast(condition.shape, values), "the condition of ", context.op().describe());
  return std::vector<Type>{Type(x.element, std::move(shape))};
}

constexpr Trait kLogic = kSymmetric | Trait::associative;

const OpRegistration kCompareLogicRegistered({
    comparison(Equal::kName, "A == B", kAnyTensor, kSymmetric).infer_dims(pairs(equal_dims)),
    comparison(Less::kName, "A < B", kNumberTypes).infer_dims(pairs(less)),
    comparison(LessOrEqual::kName, "A <= B", kNumberTypes).infer_dims(pairs([](const Dim& a, const Dim& b) {
      return negated(less(b, a));
    })),
    comparison(Greater::kName, "A > B", kNumberTypes).infer_dims(pairs([](const Dim& a, const Dim& b) {
      return less(b, a);
    })),
    comparison(GreaterOrEqual::kName, "A >= B", kNumberTypes).infer_dims(pairs([](const Dim& a, const Dim& b) {
      return negated(less(a, b));
    })),
    comparison(And::kName, "A and B", kBoolType, kLogic),
    comparison(Or::kName, "A or B", kBoolType, kLogic),
    comparison(Xor::kName, "A or B but not both", kBoolType, kLogic),
    predicate(Not::kName, "True where X is false", kBoolType).infer_dims([](const InferContext& context) {
      return zip_dims(context, [](const Row& at) { return negated(at[0]); });
    }),
    OpDef(Where::kName)
        .summary("condition ? X : Y")
        .operand("condition", "bool")
        .operand("X", "T")
        .operand("Y", "T")
        .result("output", "T")
        .types("T", kAnyTensor)
        .traits(kBroadcasting)
        .infer(infer_where)
        .bounds(pointwise())
        .infer_dims([](const InferContext& context) { return zip_dims(context, chosen); }),
    predicate(IsNaN::kName, "True where X is not a number", kFloatTypes),
    predicate(IsInf::kName, "True where X is infinite, of the signs asked for", kFloatTypes)
        .attribute("detect_negative", int64_t{1})
        .attribute("detect_positive", int64_t{1}),
});

}  // namespace
}  // namespace tenon
