// Instances of operators that the reference runs: what a target may be asked to run, with what has to come out.
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
  std::unique_ptr<Graph> graph;  // that operator alone, its fixed operands constants
  std::vector<Datum> inputs, expected;

  const Op& op() const { return *graph->body().output(0)->producer(); }
};

// The operators that there are instances of, by name.
std::vector<std::string> sampled_operators();
// Of `op`, always the same ones: as they are drawn, with other element types, with extents of 0, 1 and more than
// registers hold, and with all operands but the first known beforehand. What the operator's rules or the reference
// refuse is left out.
std::vector<Sample> samples_of(const std::string& op);

// A model of the plugin's maker, on seeded inputs.
Result<Sample> sample_of_model(const std::string& path);

// What is too far off in an output of a target; "" for nothing. Floats as `tenon run` judges them, elementwise or by
// max|a-b| / max|b|, by 1e-3 or by four steps of narrower types; others elementwise.
std::string difference_of(const std::vector<Datum>& got, const std::vector<Datum>& expected);

}  // namespace tenon::cli
