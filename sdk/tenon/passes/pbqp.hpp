// PBQP, partitioned boolean quadratic programming: selects one option for each choice so that the sum of the costs of
// the options, alone and in pairs, is minimal. Register allocation and layout assignment are instances of it.
//
//   cost(x) = sum_c costs_c[x_c] + sum_(a, b) pair_ab[x_a][x_b]
//
// Method.  A choice with at most two neighbours is eliminated exactly: R0 takes its best option, R1 folds it into its
// neighbour, R2 into the pair of its neighbours (so chains, trees and series-parallel graphs are solved by dynamic
// programming, in linear time). Between reductions, costs are moved along the pairs until the remaining costs of the
// choices give a lower bound (sequential message passing, as in TRW-S). What the reductions leave splits into
// components. Small ones are solved by branch and bound; in large ones an initial solution is improved neighbourhood by
// neighbourhood, each solved in the same way. Effort is counted in inspected pair costs, so the result does not depend
// on the machine.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

struct PbqpProblem {
  struct Pair {
    int32_t a = 0, b = 0;       // different choices
    std::vector<double> costs;  // row-major; the rows are the options of a
  };
  std::vector<std::vector<double>> choices;  // costs of the options; infinity: not allowed
  std::vector<Pair> pairs;                   // costs of repeated pairs add up

  int32_t add_choice(std::vector<double> costs) {
    choices.push_back(std::move(costs));
    return static_cast<int32_t>(choices.size()) - 1;
  }
  void add_pair(int32_t a, int32_t b, std::vector<double> costs) { pairs.push_back({a, b, std::move(costs)}); }
  TENON_API double cost(std::span<const int32_t> options) const;
};

struct PbqpOptions {
  // Budget of pair costs that branching and improvement may inspect, beyond those for reductions and one solution
  // (about 1e9 per second): this many for each choice that the reductions leave, and at least `least_effort`.
  int64_t effort_per_choice = 10000;
  int64_t least_effort = 4'000'000;
  // Components of up to this many choices are solved by branching.
  int32_t branched_choices = 160;
  // A known solution, one option per choice; the result is no worse. Empty: none.
  std::vector<int32_t> start;
};

struct PbqpSolution {
  std::vector<int32_t> options;  // one for each choice
  double cost = 0;
  // No solution costs less. Equal to the cost, up to rounding, if the solution is proven to be optimal.
  double lower_bound = 0;
  bool proven = false;
  int32_t left = 0;  // choices that reductions alone did not decide
};

// Each choice needs at least one option; costs must be >= 0 or infinite (an error otherwise). Code::unsupported when
// every solution costs infinity.
TENON_API Result<PbqpSolution> solve_pbqp(const PbqpProblem& problem, const PbqpOptions& options = {});

}  // namespace tenon
