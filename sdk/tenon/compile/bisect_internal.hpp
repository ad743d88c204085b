// Shared by the two halves of bisection.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/compile/bisect.hpp>
#include <tenon/compile/pass_walk.hpp>

namespace tenon::bisecting {

// nullopt: they agree.
std::optional<ValueDifference> differs(const std::string& name, const Datum& got, const Datum& expected,
                                       const BisectOptions& options);
// The difference of a value within tolerance.
ValueDifference distance(const std::string& name, const Datum& got, const Datum& expected);

// Its text; of many elements only the first.
std::string shortened(const Op& op);

// Whether two runs on the same operands may differ.
bool is_random(const Op& op);

// The model with additional inputs, after its own, that replace the results of random operators.
struct Settled {
  std::unique_ptr<Graph> model;  // null: there are none
  std::vector<Datum> inputs;     // all
  std::vector<NotCompared> ops;
};
Result<Settled> settle_random(const Graph& model, std::span<const Datum> inputs, ParallelFor& parallel);

// Finds the first operator that is wrong on its target, and writes it, or other findings, to `report`. `placed` and
// `finished` are the graph after placement and at the end of the walk.
Result<void> find_wrong_operator(const PassWalk& walk, const WalkedGraph& placed, const WalkedGraph& finished,
                                 std::span<const Datum> inputs, const BisectOptions& options, ParallelFor& parallel,
                                 BisectReport& report);

}  // namespace tenon::bisecting
