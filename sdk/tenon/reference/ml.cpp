#include <tenon/ops/ml.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>

#include <tenon/reference/elements.hpp>
#include <tenon/reference/evaluator.hpp>

namespace tenon::ml {
namespace {

// ---- LabelEncoder ----

// The given attribute of PREFIX_tensor, PREFIX_strings ... as a tensor; invalid if there is none.
Tensor entries_of(const Op& op, const std::string& prefix) {
  const auto list = [&]<class T, class Element>(const std::string& suffix) {
    const Attribute* attribute = op.attributes().find(prefix + suffix);
    const T* values = attribute ? attribute->get_if<T>() : nullptr;
    return values ? Tensor::of<Element>({static_cast<int64_t>(values->size())}, *values) : Tensor();
  };
  if (Tensor tensor = op.attr<Tensor>(prefix + "_tensor"); tensor.valid()) return tensor;
  if (Tensor texts = list.operator()<Attribute::Texts, std::string>("_strings"); texts.valid()) return texts;
  if (Tensor integers = list.operator()<Attribute::Integers, int64_t>("_int64s"); integers.valid()) return integers;
  return list.operator()<Attribute::Reals, float>("_floats");
}

// The lookup key of an element: the string, or the number as text, in which all NaN are equal and -0 is 0.
std::string key_of(const Tensor& tensor, int64_t i) {
  if (tensor.element().is_string()) return tensor.as<std::string>()[static_cast<size_t>(i)];
  if (!tensor.element().is_float()) return str(tensor.int_at(i));
  const double value = tensor.double_at(i);
  return std::isnan(value) ? "nan" : str(value == 0 ? 0.0 : value);
}

Result<Tensor> default_of(const Op& op, ElementType element) {
  if (Tensor given = op.attr<Tensor>("default_tensor"); given.valid()) {
    if (given.element() == element && given.size() == 1) return given;
    return error(Code::invalid_argument, "attribute 'default_tensor' of ", op.describe(), " is ", given, ", one ",
                 element, " is wanted");
  }
  if (element.is_string()) return Tensor::scalar(op.attr<std::string>("default_string", "_Unused"));
  TENON_TRY(number, Tensor::allocate(element, {}));
  if (element.is_int())
    number.set_int(0, op.attr<int64_t>("default_int64", -1));
  else
    number.set_double(0, op.attr<float>("default_float", -0.0f));
  return number;
}

Result<void> label_encoder(EvalContext& context) {
  const Tensor keys = entries_of(context.op(), "keys");
  TENON_TRY(values, spread(entries_of(context.op(), "values")));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  TENON_TRY(fallback, default_of(context.op(), entries_of(context.op(), "values").element()));
  TENON_TRY(otherwise, spread(fallback));
  std::unordered_map<std::string, int64_t> places;
  for (int64_t i = 0; i < keys.size(); ++i) places.emplace(key_of(keys, i), i);
  const Tensor& x = context.tensor(0);
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto found = places.find(key_of(x, i));
    if (found == places.end())
      copy_run(otherwise, 0, out.tensor(), i, 1);
    else
      copy_run(values, found->second, out.tensor(), i, 1);
  }
  return out.close();
}

// ---- Features ----

Result<void> array_feature_extractor(EvalContext& context) {
  TENON_TRY(x, spread(context.tensor(0)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const std::vector<int64_t> picked = context.tensor(1).to_ints();
  const int64_t features = x.dims().back(), width = static_cast<int64_t>(picked.size());
  for (size_t k = 0; k < picked.size(); ++k) {
    if (picked[k] >= 0 && picked[k] < features) continue;
    return error(Code::invalid_argument, "feature ", picked[k], " (number ", k, ") is outside [0, ", features - 1, "]");
  }
  for (int64_t row = 0; width > 0 && row < out.tensor().size() / width; ++row) {
    for (int64_t k = 0; k < width; ++k)
      copy_run(x, row * features + picked[static_cast<size_t>(k)], out.tensor(), row * width + k, 1);
  }
  return out.close();
}

Result<void> binarizer(EvalContext& context) {
  TENON_TRY(out, context.output(0));
  const Tensor& x = context.tensor(0);
  const double threshold = context.attr<float>("threshold", 0.0f);
  for (int64_t i = 0; i < x.size(); ++i) out->set_double(i, x.double_at(i) > threshold ? 1 : 0);
  return {};
}

// ---- Trees ----

enum class Mode : uint8_t { less_equal, less, greater_equal, greater, equal, not_equal, member };
enum class Aggregate : uint8_t { average, sum, min, max };
enum class PostTransform : uint8_t { none, softmax, logistic, softmax_zero };

struct Branch {
  bool leaf;
  size_t id;
};
struct Node {
  Mode mode;
  int64_t feature;
  double split;
  bool nan_is_true;
  std::vector<double> members;
  Branch yes, no;

  bool holds(double value) const {
    if (std::isnan(value) && nan_is_true) return true;
    switch (mode) {
      case Mode::less_equal: return value <= split;
      case Mode::less: return value < split;
      case Mode::greater_equal: return value >= split;
      case Mode::greater: return value > split;
      case Mode::equal: return value == split;
      case Mode::not_equal: return value != split;
      case Mode::member: return std::find(members.begin(), members.end(), value) != members.end();
    }
    return false;
  }
};

Result<std::vector<Node>> nodes_of(const Op& op) {
  const auto integers = [&](const char* name) { return op.attr<Attribute::Integers>(name); };
  const auto features = integers("nodes_featureids"), tracks = integers("nodes_missing_value_tracks_true");
  const auto yes = integers("nodes_truenodeids"), no = integers("nodes_falsenodeids");
  const auto yes_leafs = integers("nodes_trueleafs"), no_leafs = integers("nodes_falseleafs");
  const Tensor modes = op.attr<Tensor>("nodes_modes"), splits = op.attr<Tensor>("nodes_splits");
  const Tensor members = op.attr<Tensor>("membership_values");
  std::vector<Node> nodes;
  int64_t next_member = 0;
  for (size_t i = 0; i < features.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const int64_t mode = modes.int_at(at);
    if (mode < 0 || mode > static_cast<int64_t>(Mode::member)) {
      return error(Code::invalid_argument, "mode ", mode, " of node ", i, " is outside [0, 6]");
    }
    Node node{static_cast<Mode>(mode),
              features[i],
              splits.double_at(at),
              !tracks.empty() && tracks[i] != 0,
              {},
              {yes_leafs[i] != 0, static_cast<size_t>(yes[i])},
              {no_leafs[i] != 0, static_cast<size_t>(no[i])}};
    while (node.mode == Mode::member && next_member < members.size()) {
      const double value = members.double_at(next_member++);
      if (std::isnan(value)) break;
      node.members.push_back(value);
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// Descends from a root. A path longer than the number of nodes is a cycle.
Result<size_t> leaf_of(const std::vector<Node>& nodes, size_t root, const double* row) {
  Branch at{false, root};
  for (size_t steps = 0; !at.leaf; ++steps) {
    if (steps > nodes.size())
      return error(Code::invalid_argument, "the tree from node ", root, " on leads back into itself");
    const Node& node = nodes[at.id];
    at = node.holds(row[node.feature]) ? node.yes : node.no;
  }
  return at.id;
}

void transform(PostTransform post, std::span<double> scores) {
  if (post == PostTransform::logistic) {
    for (double& score : scores) score = 1 / (1 + std::exp(-score));
  } else if (post == PostTransform::softmax || post == PostTransform::softmax_zero) {
    const double highest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) {
      const bool stays = post == PostTransform::softmax_zero && score == 0;
      score = stays ? 0 : std::exp(score - highest);
      sum += score;
    }
    for (double& score : scores) score /= sum == 0 ? 1 : sum;
  }
}

Result<void> tree_ensemble(EvalContext& context) {
  const Op& op = context.op();
  const Tensor& x = context.tensor(0);
  TENON_TRY(nodes, nodes_of(op));
  const auto aggregate = context.attr<int64_t>("aggregate_function", 1),
             post = context.attr<int64_t>("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || post < 0 || post > 3) {
    return error(Code::unsupported, op.describe(), " asks for aggregate_function ", aggregate, " and post_transform ",
                 post, "; known are 0 to 3 of both");
  }
  for (const Node& node : nodes) {
    if (node.feature >= 0 && node.feature < x.dim(1)) continue;
    return error(Code::invalid_argument, "a node looks at feature ", node.feature, ", rows have ", x.dim(1));
  }
  const auto roots = context.attr<Attribute::Integers>("tree_roots"),
             targets = context.attr<Attribute::Integers>("leaf_targetids");
  const Tensor weights = op.attr<Tensor>("leaf_weights");
  TENON_TRY(out, context.output(0));
  const auto kind = static_cast<Aggregate>(aggregate);
  const auto columns = static_cast<size_t>(out->dim(1));
  std::vector<double> row(static_cast<size_t>(x.dim(1)));
  for (int64_t n = 0; n < x.dim(0); ++n) {
    for (int64_t f = 0; f < x.dim(1); ++f) row[static_cast<size_t>(f)] = x.double_at(n * x.dim(1) + f);
    std::vector<double> scores(columns);
    std::vector<bool> reached(columns);
    for (const int64_t root : roots) {
      TENON_TRY(leaf, leaf_of(nodes, static_cast<size_t>(root), row.data()));
      const auto target = static_cast<size_t>(targets[leaf]);
      const double weight = weights.double_at(static_cast<int64_t>(leaf));
      double& score = scores[target];
      if (!reached[target])
        score = weight;
      else if (kind == Aggregate::min)
        score = std::min(score, weight);
      else if (kind == Aggregate::max)
        score = std::max(score, weight);
      else
        score += weight;
      reached[target] = true;
    }
    if (kind == Aggregate::average) {
      for (double& score : scores) score /= static_cast<double>(roots.size());
    }
    transform(static_cast<PostTransform>(post), scores);
    for (size_t t = 0; t < columns; ++t) out->set_double(n * out->dim(1) + static_cast<int64_t>(t), scores[t]);
  }
  return {};
}

const EvaluatorRegistration kMlRegistered({
    {LabelEncoder::kName, label_encoder},
    {ArrayFeatureExtractor::kName, array_feature_extractor},
    {Binarizer::kName, binarizer},
    {TreeEnsemble::kName, tree_ensemble},
});

}  // namespace
}  // namespace tenon::ml
