// Calibration: determines the ranges of a float model's values from samples, and converts it to 8-bit integers.
//
//   TENON_OK(prepared.run(graph));                      // the standard passes: BatchNormalization folded
//   TENON_TRY(profile, calibrate(graph, samples, pool));
//   TENON_TRY(changed, insert_rounds(graph, profile, Method::kl));      // quant.Round: still floats, still runs
//   TENON_TRY(fused, legalise_quantised(graph));                        // integers
#pragma once
#include <vector>

#include <tenon-ext/quant/profile.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::quant {

using Samples = std::vector<std::vector<Datum>>;  // one list of a graph's inputs each

// Runs the graph on the reference and profiles the f32 values of its body. Adds to `profile`, so that samples can be
// given in several calls.
TENON_API Result<void> calibrate(const Graph& graph, const Samples& samples, Profile& profile,
                                 ParallelFor& parallel = serial());

// Inserts quant.Round, with steps from the profile, at operands and results of Conv, Gemm, MatMul with constant
// weights, Add, AveragePool, GlobalAveragePool and ReduceMean: after a Relu or Clip that is the only user of a result,
// and before operators that only move elements. The result of a product that is an output of the graph stays in floats,
// because widen-products gives it more than 8 bits. Needs: inferred types, fold-batch-norm. An error names a value that
// the profile lacks.
TENON_API Result<Change> insert_rounds(Graph& graph, const Profile& profile, Method method);

}  // namespace tenon::quant
