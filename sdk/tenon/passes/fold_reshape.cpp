#include <algorithm>
#include <optional>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/shape.hpp>
#include <tenon/passes/local_internal.hpp>
#include <tenon/passes/rewrite.hpp>

namespace tenon {
namespace {

// The shape operand with which a Reshape from `from` gives `to`: numbers, 0 for an extent of `from` at the same
// position, and -1 once for an extent that follows from the others. Nothing if this cannot express it.
struct Target {
  std::vector<int64_t> dims;
  bool allowzero = false;
};
std::optional<Target> target_shape(const Type& from, const Type& to) {
  if (!to.is_tensor() || !to.shape().ranked()) return std::nullopt;
  if (auto dims = to.shape().static_dims()) return Target{*dims, true};
  const bool ranked = from.is_tensor() && from.shape().ranked();
  Target target;
  int open = 0;
  for (size_t i = 0; i < to.shape().dims().size(); ++i) {
    const Dim& dim = to.shape()[i];
    if (dim.is_static()) {
      // A zero would mean a copied extent, and makes -1 undetermined.
      if (dim.value() == 0) return std::nullopt;
      target.dims.push_back(dim.value());
    } else if (ranked && i < from.shape().dims().size() && dim.same_extent(from.shape()[i])) {
      target.dims.push_back(0);
    } else {
      target.dims.push_back(-1);
      ++open;
    }
  }
  // With a copied extent that is 0 at run time, -1 would be undetermined.
  const bool copies = std::find(target.dims.begin(), target.dims.end(), 0) != target.dims.end();
  return open == 0 || (open == 1 && !copies) ? std::optional(target) : std::nullopt;
}

Result<Value*> reshaped(Builder& builder, Value* value, const Type& type) {
  if (have_same_shape(value->type(), type)) return value;
  const auto target = target_shape(value->type(), type);
  if (!target) return nullptr;
  Attributes attributes;
  if (target->allowzero && std::find(target->dims.begin(), target->dims.end(), 0) != target->dims.end()) {
    attributes.set("allowzero", 1);
  }
  return builder.op(Reshape::name(), {value, builder.constant_ints(target->dims)}, attributes);
}

Result<Change> fold_reshape(Graph& graph) {
  using namespace pattern;
  const std::vector<Name> kViews = {Reshape::name(), Flatten::name(), Squeeze::name(), Unsqueeze::name()};
  const std::vector<Rewrite> rewrites = {
      // Only the last one determines the shape.
      Rewrite("chain")
          .match(op_among(kViews, {op_among(kViews, {any("x")}).and_more().shared()}).and_more())
          .with([](Builder& b, const Match& m) { return reshaped(b, m.value("x"), m.root().result()->type()); }),
      Rewrite("identity")
          .match(op_among(kViews, {any("x")}).and_more())
          .with([](Builder&, const Match& m) -> Result<Value*> {
            return have_same_shape(m.value("x")->type(), m.root().result()->type()) ? m.value("x") : nullptr;
          }),
      // A computed shape of which all extents but one are known.
      Rewrite("computed")
          .match(op(Reshape::name(), {any("x"), any("shape")}))
          .with([](Builder& b, const Match& m) -> Result<Value*> {
            if (constant_of(m.value("shape"))) return nullptr;
            return reshaped(b, m.value("x"), m.root().result()->type());
          }),
  };
  return apply_rewrites(graph, rewrites);
}

const PassRegistration kFoldReshapeRegistered({{
    .name = "fold-reshape",
    .contract =
        "Chains of Reshape, Flatten, Squeeze and Unsqueeze become one Reshape or none; computed shapes that are "
        "known,\n"
        "constants. Needs inferred types; keeps output names and types. Leaves shape arithmetic for remove-dead.",
    .run = fold_reshape,
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon
