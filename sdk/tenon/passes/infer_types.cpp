#include <tenon/ir/infer.hpp>
#include <tenon/passes/local_internal.hpp>
#include <tenon/passes/pass_manager.hpp>

namespace tenon {

Result<Change> infer_op(Op& op) {
  // As in the verifier: operators without results or without a rule keep their declared types.
  if (op.result_count() == 0 || !op.def() || !op.def()->infer_fn()) return Change::no;
  TENON_TRY(types, infer_types(op));
  Change change = Change::no;
  for (size_t i = 0; i < op.result_count(); ++i) {
    Value& result = *op.result(i);
    if (types[i] == result.type()) continue;
    TENON_TRY(merged, merge_at(op, types[i], result.type()), "result ", i, " of ", op.describe(),
              ": inferred against declared type");
    if (merged == result.type()) continue;
    result.set_type(std::move(merged));
    change = Change::yes;
  }
  return change;
}

namespace {

Result<Change> infer_region(Region& region) {
  Change change = Change::no;
  for (Op& op : region) {
    for (size_t i = 0; i < op.region_count(); ++i) {
      TENON_TRY(inside, infer_region(op.region(i)), "region ", i, " of ", op.describe());
      if (inside == Change::yes) change = Change::yes;
    }
    TENON_TRY(here, infer_op(op));
    if (here == Change::yes) change = Change::yes;
  }
  return change;
}

const PassRegistration kInferTypesRegistered({{
    .name = "infer-types",
    .contract = "Asks every operator's shape rule again and keeps what is new, merged with what was declared.\n"
                "Needs nothing; leaves operators, values and names as they are. Operators without a definition are "
                "passed over.",
    .run = [](Graph& graph) { return infer_region(graph.body()); },
}});

}  // namespace
}  // namespace tenon
