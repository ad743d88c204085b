#include <tenon/ops/detection.hpp>

#include <algorithm>
#include <array>
#include <numeric>

#include <tenon/reference/evaluator.hpp>

namespace tenon {
namespace {

struct Box {
  double low_y, low_x, high_y, high_x;
  double area() const { return (high_y - low_y) * (high_x - low_x); }
};

Box box_at(const Tensor& boxes, int64_t index, bool by_center) {
  std::array<double, 4> v;
  for (int64_t i = 0; i < 4; ++i) v[static_cast<size_t>(i)] = boxes.double_at(index * 4 + i);
  if (by_center) return {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
  return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
}

double intersection_over_union(const Box& a, const Box& b) {
  const double height = std::min(a.high_y, b.high_y) - std::max(a.low_y, b.low_y);
  const double width = std::min(a.high_x, b.high_x) - std::max(a.low_x, b.low_x);
  if (height <= 0 || width <= 0) return 0;
  return height * width / (a.area() + b.area() - height * width);
}

double number(const EvalContext& context, size_t i, double fallback) {
  const bool given = context.has_operand(i) && context.tensor(i).size() > 0;
  return given ? context.tensor(i).double_at(0) : fallback;
}

Result<void> non_max_suppression(EvalContext& context) {
  const Tensor &boxes = context.tensor(0), &scores = context.tensor(1);
  const auto most = static_cast<size_t>(std::max(0.0, number(context, 2, 0)));
  const double overlap = number(context, 3, 0), least = number(context, 4, 0);
  const bool by_center = context.attr<int64_t>("center_point_box", 0) != 0;
  const int64_t batches = scores.dim(0), classes = scores.dim(1), count = scores.dim(2);
  std::vector<int64_t> rows;
  for (int64_t line = 0; line < batches * classes; ++line) {
    const auto score = [&](int64_t box) { return scores.double_at(line * count + box); };
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), int64_t{0});
    if (context.has_operand(4)) std::erase_if(order, [&](int64_t box) { return !(score(box) > least); });
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score(a) > score(b); });
    std::vector<Box> chosen;
    for (const int64_t index : order) {
      if (chosen.size() >= most) break;
      const Box box = box_at(boxes, line / classes * count + index, by_center);
      const bool free = std::none_of(chosen.begin(), chosen.end(),
                                     [&](const Box& better) { return intersection_over_union(box, better) > overlap; });
      if (!free) continue;
      chosen.push_back(box);
      rows.insert(rows.end(), {line / classes, line % classes, index});
    }
  }
  TENON_TRY(out, context.output(0, kI64, {static_cast<int64_t>(rows.size()) / 3, 3}));
  std::copy(rows.begin(), rows.end(), out->mutable_as<int64_t>().begin());
  return {};
}

const EvaluatorRegistration kDetectionRegistered({{NonMaxSuppression::kName, non_max_suppression}});

}  // namespace
}  // namespace tenon
