// The pass assign-layouts: chooses the layout of every value of a graph so that the total cost of the target's kernels
// and of the conversions between layouts is minimal.
//
//   LayoutReport report;
//   TENON_TRY(report, assign_layouts(graph, {.kernels = [&](const Op& op) { return target.layout_kernels(op); },
//                                            .costs = target.layout_costs()}));
//
// Operators.  With kernels: one of these is chosen. Trait::layout_oblivious, elementwise: any layout of a kernel nearby
// or of a user, the same for all operands and results (a broadcast operand has the remaining part of it). All others,
// those with regions, those inside regions, and values of unknown rank: row-major. Inputs and outputs of the graph are
// row-major unless pinned. A pinned value has its layout for its producer and all its users. Extents known only at run
// time count as a number that no block divides, in costs and in the report's bytes.
//
// Constants cost nothing in any layout: there is a Constant for each layout that is needed.
//
// Results of the pass: a ValueLayout on every value that is not row-major, with the state of its padding;
// layout.Reorder and layout.Scrub where they are needed, before the first operator that needs them; the attribute
// "layout.kernel" = "padded" on operators that also compute on padding. No other attribute changes, because operators
// refer to logical dims. Reorders, scrubs and unpinned layouts of an earlier run are removed first, so the pass is
// idempotent. Names of inputs and outputs are kept, and so are those of pinned values.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/layout_kernel.hpp>
#include <tenon/ir/layout_report.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/passes/pbqp.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/reorder.hpp>

namespace tenon {

struct AssignLayoutsOptions {
  // As TargetBackend::layout_kernels. Null: no operator has kernels.
  std::function<std::vector<LayoutKernel>(const Op&)> kernels;
  BandwidthTable costs;  // empty: costs are the bytes of both sides
  PbqpOptions solver;
};

// The graph needs inferred types. Errors name the operator and the layouts: a kernel whose layout does not fit its
// operand's type, or that has too many operands; an operator for which no kernel fits.
TENON_API Result<LayoutReport> assign_layouts(Graph& graph, const AssignLayoutsOptions& options = {});

// Checks that each operator of the body can run with the layouts of its values: one of its kernels takes and produces
// them, with the required padding; oblivious operators have a single layout; all others, and outputs, are row-major;
// "layout.kernel" is set where padding is computed on. A run cannot show such faults, because the reference reads every
// layout anywhere.
TENON_API Result<void> verify_layouts(const Graph& graph, const AssignLayoutsOptions& options = {});

// Whether any value has a pinned layout.
TENON_API bool has_pinned_layouts(const Graph& graph);

// assign_layouts as a pass. `report` may be null. The pass of this name in the registry knows no kernels; it adapts the
// neighbours of pinned values.
TENON_API Pass assign_layouts_pass(AssignLayoutsOptions options, std::shared_ptr<LayoutReport> report = nullptr);

}  // namespace tenon
