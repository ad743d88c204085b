#include <tenon/irgen/shape_check.hpp>

#include <algorithm>

namespace tenon::irgen {
namespace {

// The types of a graph with numbers for symbols; where a symbol has none, as they are.
class NumberTypes final : public TypeSource {
 public:
  NumberTypes(const GraphTypes& types, const SymbolValues& scalars) : types_(types), scalars_(scalars) {}

  const Type& type_of(const Value& value) const override {
    const auto [known, fresh] = made_.try_emplace(&value);
    if (fresh) known->second = with_numbers(types_.type_of(value));
    return known->second;
  }

 private:
  Type with_numbers(const Type& type) const {
    if (!type.is_tensor() || !type.shape().ranked() || type.shape().is_static()) return type;
    std::vector<Dim> dims;
    for (const Dim& dim : type.shape().dims()) {
      const auto extent = dim.known() ? dim.expr().evaluate(scalars_) : Result<int64_t>(error(Code::not_found, "?"));
      dims.push_back(extent.ok() ? Dim(*extent) : dim);
    }
    return Type(type.element(), Shape(std::move(dims)));
  }

  const GraphTypes& types_;
  const SymbolValues& scalars_;
  mutable std::unordered_map<const Value*, Type> made_;
};

bool is_empty(const Type& type) {
  return std::ranges::any_of(type.shape().dims(), [](const Dim& d) { return d.is_static() && d.value() == 0; });
}

}  // namespace

Result<void> check_shapes(const GraphPart& part, const GraphTypes& types, const OpPlans& plans,
                          const SymbolValues& scalars) {
  const NumberTypes numbers(types, scalars);
  for (const Op* op : part.ops) {
    TENON_TRY(inferred, infer_types(StaticInferContext(*op, numbers)));
    for (size_t r = 0; r < op->result_count(); ++r) {
      const Type& planned = numbers.type_of(*op->result(r));
      if (inferred[r] != planned)
        return error(Code::invalid_argument, "result ", r, " of ", op->describe(), " is planned as ", planned,
                     ", and its shape rule gives ", inferred[r]);
      // A call whose result is empty is left out.
      if (plans.at(op).form == OpForm::call && is_empty(planned) != is_empty(numbers.type_of(*op->result(0))))
        return error(Code::unsupported, "some results of ", op->describe(), " are empty, and others are not");
    }
  }
  return {};
}

}  // namespace tenon::irgen
