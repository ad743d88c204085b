#include <tenon/ops/loss.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>

namespace tenon {
namespace {

// The shape of one loss per position: that of the scores without the classes, as far as the shapes are known.
Result<Shape> places_of(const InferContext& context, const Shape& scores, const Shape& classes) {
  if (!scores.ranked()) return classes;
  if (scores.rank() < 2) {
    return error(Code::invalid_argument, context.op().describe(),
                 ": the scores need a dim of places and one of classes, ", "they have shape ", scores);
  }
  std::vector<Dim> places = scores.dims();
  places.erase(places.begin() + 1);
  return merge(Shape(std::move(places)), classes);
}

Result<std::vector<Type>> infer_loss(const InferContext& context) {
  TENON_TRY(scores, context.tensor(0));
  TENON_TRY(classes, context.tensor(1));
  TENON_TRY(places, places_of(context, scores.shape, classes.shape), "scores and classes of ", context.op().describe());
  if (context.has_operand(2) && context.type(2).is_tensor()) {
    const Dim count = scores.shape.ranked() ? scores.shape[1] : Dim();
    TENON_OK(merge(context.type(2).shape(), Shape{count}), "the weights of ", context.op().describe());
  }
  const bool one = context.attr<std::string>("reduction", "mean") != "none";
  std::vector<Type> types{Type(scores.element, one ? Shape(Dims()) : std::move(places))};
  if (context.op().result_count() > 1) types.push_back(Type(scores));
  return types;
}

// The loss at a position reads its scores and its class; a sum over positions reads all of them. The logarithms of
// probabilities, result 1, read only scores; the classes are cropped as well because the operator runs on both.
Result<Bounds> loss_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const size_t rank = query.box.size();
  if (query.result == 1) {
    std::vector<int> places = each_dim(rank);
    places.erase(places.begin() + 1);
    bounds.operands[0] = follow(query, 0, each_dim(rank, {1}));
    bounds.operands[1] = inexact(follow(query, 1, places));
    bounds.splits[1] = false;
  } else if (query.context.attr<std::string>("reduction", "mean") == "none") {
    std::vector<int> scores = each_dim(rank);
    scores.insert(scores.begin() + 1, kWhole);
    bounds.operands[0] = inexact(follow(query, 0, scores));
    bounds.operands[1] = follow(query, 1, each_dim(rank));
  }
  return bounds;
}

OpDef loss(Name name, std::string summary, std::string scores, std::string classes, std::string weights) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand(std::move(scores), "T")
      .operand(std::move(classes), "Tind")
      .optional_operand(std::move(weights), "T")
      .result("loss", "T")
      .types("T", kFloatTypes)
      .types("Tind", kIndexTypes)
      .optional_attribute("ignore_index", AttributeKind::integer)
      .attribute("reduction", "mean")
      .one_of({"none", "sum", "mean"})
      .traits(Trait::pure | Trait::layout_aware)
      .infer(infer_loss)
      .bounds({loss_bounds, runs_as_it_is()});
}

const OpRegistration kLossRegistered({
    loss(NegativeLogLikelihoodLoss::kName, "-weight[target] * input[target], reduced", "input", "target", "weight"),
    loss(SoftmaxCrossEntropyLoss::kName, "-weights[labels] * LogSoftmax(scores)[labels], reduced", "scores", "labels",
         "weights")
        .result("log_prob", "T", Arity::optional),
});

}  // namespace
}  // namespace tenon
