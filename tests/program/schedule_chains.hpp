// Chains of stages shared by tests of schedules and of their costs.
#pragma once
#include <optional>

#include <program/pipeline_support.hpp>

#include <tenon/program/schedule/auto_schedule.hpp>

namespace tenon::program {

inline const Expr x = var("x"), y = var("y");

struct Blurs {
  Pipeline p;
  BufferRef source, result;
  StageRef last;
  std::vector<StageRef> stages = {};
};

inline Blurs blurs(int stages) {
  Pipeline p("blurs");
  BufferRef source = p.buffer("source", kI32, 2), from = source;
  std::vector<StageRef> made;
  for (int s = 0; s < stages; ++s) {
    BufferRef to = p.buffer(s + 1 == stages ? "result" : "mid" + std::to_string(s), kI32, 2);
    made.push_back(p.stage("stage" + std::to_string(s), window_sum<int32_t>({0, -1}, {0, 1}))
                       .reads(from, {x, {y - 1, y + 1}})
                       .writes(to, {x, y}));
    from = to;
  }
  return {std::move(p), source, from, made.back(), made};
}

inline SymbolValues sizes(int64_t side) {
  return {{"result.min0", 0}, {"result.extent0", side}, {"result.min1", 0}, {"result.extent1", side}};
}

// Stages that read only the element at the same index, over x.
inline Blurs points(int stages) {
  Pipeline p("points");
  BufferRef source = p.buffer("source", kI32, 1), from = source;
  std::optional<StageRef> last;
  for (int s = 0; s < stages; ++s) {
    BufferRef to = p.buffer(s + 1 == stages ? "result" : "mid" + std::to_string(s), kI32, 1);
    last = p.stage("stage" + std::to_string(s), window_sum<int32_t>({0}, {0})).reads(from, {x}).writes(to, {x});
    from = to;
  }
  return {std::move(p), source, from, *last};
}

// Stages that read only the element at the same index, over rows.
inline Blurs rows_of_points(int stages) {
  Pipeline p("rows");
  BufferRef source = p.buffer("source", kI32, 2), from = source;
  std::vector<StageRef> made;
  for (int s = 0; s < stages; ++s) {
    BufferRef to = p.buffer(s + 1 == stages ? "result" : "mid" + std::to_string(s), kI32, 2);
    made.push_back(p.stage("stage" + std::to_string(s), window_sum<int32_t>({0, 0}, {0, 0}))
                       .reads(from, {x, y})
                       .writes(to, {x, y}));
    from = to;
  }
  return {std::move(p), source, from, made.back(), made};
}

inline CostModel model_that_fetches(double part = 0.7) {
  CostModel model = CostModel::host();
  model.fetched_part = part;
  return model;
}

}  // namespace tenon::program
