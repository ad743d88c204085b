// Instances of operators that the reference runs: what a target may be asked to run, and the expected results.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::cli {

struct Sample {
  std::string text;              // "Conv (f32[1,3,5,5], constant f32[4,3,3,3])"
  std::unique_ptr<Graph> graph;  // that operator alone, its fixed operands as constants
  std::vector<Datum> inputs, expected;

  const Op& op() const { return *graph->body().output(0)->producer(); }
};

// The names of the operators with instances.
std::vector<std::string> sampled_operators();
// Instances of `op`, always the same ones: as drawn, with other element types, with extents of 0, 1 and more than
// registers hold, and with all operands but the first known at compile time. Instances that the operator's rules or the
// reference refuse are left out.
std::vector<Sample> samples_of(const std::string& op);

// A model of the plugin's vendor, with seeded inputs.
Result<Sample> sample_of_model(const std::string& path);

// The first excessive difference in a target's outputs; "" if there is none. Floats are compared as by `tenon run`,
// elementwise or by max|a-b| / max|b|, with 1e-3 or four steps of narrower types; others elementwise.
std::string difference_of(const std::vector<Datum>& got, const std::vector<Datum>& expected);

}  // namespace tenon::cli
