#include <tenon/ops/detection.hpp>

#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

InferredTypes infer_non_max_suppression(const InferContext& context) {
  TENON_TRY(boxes, context.tensor(0));
  TENON_TRY(scores, context.tensor(1));
  TENON_OK(require_rank(context, 0, 3));
  TENON_OK(require_rank(context, 1, 3));
  if (boxes.shape.ranked() && scores.shape.ranked()) {
    const bool fits = !certainly_differ(boxes.shape[2], 4) && !certainly_differ(boxes.shape[0], scores.shape[0]) &&
                      !certainly_differ(boxes.shape[1], scores.shape[2]);
    if (!fits) {
      return error(Code::invalid_argument, "boxes ", context.type(0), " and scores ", context.type(1), " of ",
                   context.op().describe(), " do not fit: [batch, boxes, 4] and [batch, classes, boxes] are wanted");
    }
  }
  return one_type(kI64, {Dim(), 3});
}

const OpRegistration kDetectionRegistered({
    OpDef(NonMaxSuppression::kName)
        .summary("The boxes of highest score that overlap no better one too much")
        .operand("boxes", "T")
        .operand("scores", "T")
        .optional_operand("max_output_boxes_per_class", "i64")
        .optional_operand("iou_threshold", "T")
        .optional_operand("score_threshold", "T")
        .result("selected_indices", "i64")
        .types("T", kFloatTypes)
        .attribute("center_point_box", int64_t{0})
        .traits(Trait::pure | Trait::data_dependent)
        .infer(infer_non_max_suppression)
        .bounds(whole_operands()),
});

}  // namespace
}  // namespace tenon
