#include <tenon/ops/ml.hpp>

#include <array>
#include <optional>

#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon::ml {
namespace {

// ---- LabelEncoder ----

// Element type and number of the entries in one of the attributes PREFIX_tensor, PREFIX_strings ...
struct Entries {
  ElementType element;
  int64_t count;
};
std::optional<Entries> entries_of(const Op& op, const std::string& prefix) {
  const auto find = [&]<class T>(const char* suffix) {
    const Attribute* attribute = op.attributes().find(prefix + suffix);
    return attribute ? attribute->get_if<T>() : nullptr;
  };
  const auto size = [](const auto* list) { return static_cast<int64_t>(list->size()); };
  if (const auto* tensor = find.operator()<Tensor>("_tensor")) return Entries{tensor->element(), size(tensor)};
  if (const auto* texts = find.operator()<Attribute::Texts>("_strings")) return Entries{kString, size(texts)};
  if (const auto* integers = find.operator()<Attribute::Integers>("_int64s")) return Entries{kI64, size(integers)};
  if (const auto* reals = find.operator()<Attribute::Reals>("_floats")) return Entries{kF32, size(reals)};
  return std::nullopt;
}

Result<void> verify_label_encoder(const Op& op) {
  const auto keys = entries_of(op, "keys"), values = entries_of(op, "values");
  if (!keys || !values) {
    return error(Code::invalid_argument, op.describe(),
                 " needs keys and values: one each of the attributes keys_tensor, keys_strings, "
                 "keys_int64s, keys_floats, and values_...");
  }
  if (keys->count == values->count) return {};
  return error(Code::invalid_argument, op.describe(), " has ", keys->count, " keys and ", values->count, " values");
}

InferredTypes infer_label_encoder(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  const auto keys = entries_of(context.op(), "keys"), values = entries_of(context.op(), "values");
  if (keys && x.element.valid() && keys->element != x.element) {
    return error(Code::invalid_argument, "the keys of ", context.op().describe(), " are ", keys->element,
                 ", its operand is ", context.type(0));
  }
  return one_type(values ? values->element : ElementType(), x.shape);
}

// ---- The others ----

InferredTypes infer_extractor(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(y, context.tensor(1));
  if (!x.shape.ranked()) return one_type(x.element, Shape());
  TENON_OK(require_rank_at_least(context, 0, 1));
  std::vector<Dim> dims = x.shape.dims();
  if (dims.size() == 1) dims.insert(dims.begin(), 1);
  dims.back() = y.shape.ranked() ? product_of(y.shape.dims()) : Dim();
  return one_type(x.element, Shape(std::move(dims)));
}

InferredTypes infer_trees(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  TENON_OK(require_rank(context, 0, 2));
  return one_type(x.element, {x.shape.ranked() ? x.shape[0] : Dim(), context.attr<int64_t>("n_targets", 1)});
}

// The selected features depend on data.
Result<Bounds> extractor_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const size_t last = query.box.size() - 1;
  const Shape* x = ranked_shape(query.context, 0);
  if (x && x->rank() == query.shape.rank()) bounds.operands[0] = inexact(follow(query, 0, each_dim(last + 1, {last})));
  bounds.operands[1] = follow(query, 1, {static_cast<int>(last)});
  return bounds;
}

// All targets of a row come from one traversal of the trees.
Result<Bounds> trees_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  bounds.operands[0] = inexact(follow(query, 0, {0, kWhole}));
  bounds.splits[1] = false;
  return bounds;
}

// The number of elements of a tensor attribute; 0 if it is absent.
int64_t tensor_size(const Op& op, const char* name) { return op.attr<Tensor>(name).size(); }

Result<void> verify_trees(const Op& op) {
  const auto integers = [&](const char* name) { return op.attr<Attribute::Integers>(name); };
  const auto nodes = static_cast<int64_t>(integers("nodes_featureids").size());
  for (const char* name : {"nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs"}) {
    if (static_cast<int64_t>(integers(name).size()) == nodes) continue;
    return error(Code::invalid_argument, "attribute '", name, "' of ", op.describe(), " has ", integers(name).size(),
                 " elements, nodes_featureids ", nodes);
  }
  for (const char* name : {"nodes_modes", "nodes_splits"}) {
    if (tensor_size(op, name) == nodes) continue;
    return error(Code::invalid_argument, "attribute '", name, "' of ", op.describe(), " has ", tensor_size(op, name),
                 " elements, nodes_featureids ", nodes);
  }
  const auto tracks = static_cast<int64_t>(integers("nodes_missing_value_tracks_true").size());
  if (tracks != 0 && tracks != nodes) {
    return error(Code::invalid_argument, "attribute 'nodes_missing_value_tracks_true' of ", op.describe(), " has ",
                 tracks, " elements, nodes_featureids ", nodes);
  }
  const auto targets = integers("leaf_targetids");
  const auto leaves = static_cast<int64_t>(targets.size());
  if (tensor_size(op, "leaf_weights") != leaves) {
    return error(Code::invalid_argument, op.describe(), " has ", leaves, " leaf_targetids and ",
                 tensor_size(op, "leaf_weights"), " leaf_weights");
  }
  const int64_t target_count = op.attr<int64_t>("n_targets", 1);
  for (const int64_t target : targets) {
    if (target >= 0 && target < target_count) continue;
    return error(Code::invalid_argument, "leaf target ", target, " of ", op.describe(), " is outside its ",
                 target_count, " targets");
  }
  const std::array<std::array<const char*, 2>, 2> branches{
      {{"nodes_truenodeids", "nodes_trueleafs"}, {"nodes_falsenodeids", "nodes_falseleafs"}}};
  for (const auto& [ids_name, leafs_name] : branches) {
    const auto ids = integers(ids_name), leafs = integers(leafs_name);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= 0 && ids[i] < (leafs[i] ? leaves : nodes)) continue;
      return error(Code::invalid_argument, "attribute '", ids_name, "' of ", op.describe(), " leads from node ", i,
                   " to ", leafs[i] ? "leaf " : "node ", ids[i], ", there are ", leafs[i] ? leaves : nodes);
    }
  }
  for (const int64_t root : integers("tree_roots")) {
    if (root >= 0 && root < nodes) continue;
    return error(Code::invalid_argument, "tree root ", root, " of ", op.describe(), " is none of its ", nodes,
                 " nodes");
  }
  return {};
}

OpDef with_entries(OpDef def, const std::string& prefix) {
  return def.optional_attribute(prefix + "_tensor", AttributeKind::tensor)
      .optional_attribute(prefix + "_strings", AttributeKind::texts)
      .optional_attribute(prefix + "_int64s", AttributeKind::integers)
      .optional_attribute(prefix + "_floats", AttributeKind::reals);
}

const OpRegistration kMlRegistered({
    with_entries(with_entries(OpDef(LabelEncoder::kName), "keys"), "values")
        .summary("The value that belongs to each key, or the default")
        .operand("X", "T1")
        .result("Y", "T2")
        .types("T1", kAnyTensor)
        .types("T2", kAnyTensor)
        .optional_attribute("default_tensor", AttributeKind::tensor)
        .attribute("default_string", "_Unused")
        .attribute("default_int64", int64_t{-1})
        .attribute("default_float", -0.0f)
        .traits(Trait::pure | Trait::elementwise)
        .infer(infer_label_encoder)
        .bounds(pointwise())
        .verify(verify_label_encoder),
    OpDef(ArrayFeatureExtractor::kName)
        .summary("The features `Y` along the last axis of `X`")
        .operand("X", "T")
        .operand("Y", "i64")
        .result("Z", "T")
        .types("T", kAnyTensor)
        .traits(Trait::pure | Trait::movement)
        .infer(infer_extractor)
        .bounds({extractor_bounds, runs_as_it_is()}),
    OpDef(Binarizer::kName)
        .summary("1 where x > threshold, else 0")
        .operand("X", "T")
        .result("Y", "T")
        .types("T", kNumberTypes)
        .attribute("threshold", 0.0f)
        .traits(Trait::pure | Trait::elementwise | Trait::layout_oblivious)
        .infer(same_as_operand(0))
        .bounds(pointwise()),
    OpDef(TreeEnsemble::kName)
        .summary("The weights of the leaves that each row reaches in the trees, aggregated by target")
        .operand("X", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .attribute("aggregate_function", int64_t{1})
        .required_attribute("leaf_targetids", AttributeKind::integers)
        .required_attribute("leaf_weights", AttributeKind::tensor)
        .optional_attribute("membership_values", AttributeKind::tensor)
        .attribute("n_targets", int64_t{1})
        .required_attribute("nodes_falseleafs", AttributeKind::integers)
        .required_attribute("nodes_falsenodeids", AttributeKind::integers)
        .required_attribute("nodes_featureids", AttributeKind::integers)
        .optional_attribute("nodes_hitrates", AttributeKind::tensor)
        .optional_attribute("nodes_missing_value_tracks_true", AttributeKind::integers)
        .required_attribute("nodes_modes", AttributeKind::tensor)
        .required_attribute("nodes_splits", AttributeKind::tensor)
        .required_attribute("nodes_trueleafs", AttributeKind::integers)
        .required_attribute("nodes_truenodeids", AttributeKind::integers)
        .attribute("post_transform", int64_t{0})
        .required_attribute("tree_roots", AttributeKind::integers)
        .infer(infer_trees)
        .bounds({trees_bounds, runs_as_it_is()})
        .verify(verify_trees),
});

}  // namespace
}  // namespace tenon::ml
