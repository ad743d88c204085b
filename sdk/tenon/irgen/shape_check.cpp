#include <tenon/irgen/shape_check.hpp>

#include <algorithm>

#include <tenon/irgen/number_types_internal.hpp>

namespace tenon::irgen {
namespace {

bool is_empty(const Type& type) {
  return std::ranges::any_of(type.shape().dims(), [](const Dim& d) { return d.is_static() && d.value() == 0; });
}

}  // namespace

Result<void> check_shapes(const GraphPart& part, const GraphTypes& types, const OpPlans& plans,
                          const SymbolValues& scalars) {
  const detail::NumberTypes numbers(types, scalars);
  for (const Op* op : part.ops) {
    TENON_TRY(inferred, infer_types(StaticInferContext(*op, numbers)));
    for (size_t r = 0; r < op->result_count(); ++r) {
      const Type& planned = numbers.type_of(*op->result(r));
      if (inferred[r] != planned)
        return error(Code::invalid_argument, "result ", r, " of ", op->describe(), " is planned as ", planned,
                     ", and its shape rule gives ", inferred[r]);
      // A call whose result is empty is omitted.
      if (plans.at(op).form == OpForm::call && is_empty(planned) != is_empty(numbers.type_of(*op->result(0))))
        return error(Code::unsupported, "some results of ", op->describe(), " are empty, and others are not");
    }
  }
  return {};
}

}  // namespace tenon::irgen
