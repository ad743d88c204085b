// Selection of boxes.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// For each batch entry and class, boxes in the order of descending scores, except those whose intersection over union
// with a box selected before exceeds iou_threshold (0 when absent), or whose score does not exceed score_threshold; at
// most max_output_boxes_per_class (0 when absent). Boxes: [batch, boxes, 4], two opposite corners (y1, x1, y2, x2) in
// any order, or with center_point_box (x, y, width, height); scores: [batch, classes, boxes].
// Result: i64[chosen, 3], rows of (batch, class, box).
struct NonMaxSuppression : OpView<NonMaxSuppression> {
  static constexpr std::string_view kName = "NonMaxSuppression";
  using OpView::OpView;
  Value* boxes() const { return operand(0); }
  Value* scores() const { return operand(1); }
  Value* max_output_boxes_per_class() const { return operand(2); }  // may be null
  Value* iou_threshold() const { return operand(3); }               // may be null
  Value* score_threshold() const { return operand(4); }             // may be null
  bool center_point_box() const { return attr<int64_t>("center_point_box", 0) != 0; }
};

}  // namespace tenon
