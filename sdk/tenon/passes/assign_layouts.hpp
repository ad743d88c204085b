// The pass assign-layouts: which layout every value of a graph has, so that the target's kernels and what it takes to
// get from one layout to another cost least together.
//
//   LayoutReport report;
//   TENON_TRY(report, assign_layouts(graph, {.kernels = [&](const Op& op) { return target.layout_kernels(op); },
//                                            .costs = target.layout_costs()}));
//
// Operators.  With kernels: one of them. Of Trait::layout_oblivious, elementwise: any layout that a kernel nearby or a
// user brings in, the same for all operands and results (an operand that is broadcast has what is left of it). All
// others, those that hold regions, those inside regions, and values of unknown rank: row-major. Inputs and outputs of
// the graph are row-major, unless pinned. A pinned value lies in its layout, whoever makes it and whoever reads it.
// Extents that only a run shows count as some number that no block divides, in costs and in the report's bytes.
//
// Constants come in every layout for nothing: there is a Constant for each layout that is wanted of them.
//
// What it leaves: a ValueLayout on every value that is not row-major, with the state of its padding; layout.Reorder and
// layout.Scrub where they are needed, before the first operator that does; the attribute "layout.kernel" = "padded" on
// operators that work on padding, too. No other attribute changes, for operators speak of logical dims. Reorders,
// scrubs and layouts of an earlier run that no user has pinned are taken out first: to run twice is to run once. Names
// of inputs and outputs stay; pinned values keep theirs.
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
  // As TargetBackend::layout_kernels. Null: no operator has any.
  std::function<std::vector<LayoutKernel>(const Op&)> kernels;
  BandwidthTable costs;  // empty: the bytes of both sides
  PbqpOptions solver;
};

// The graph needs inferred types. Errors name operator and layouts: a kernel whose layout is none of its operand's
// type, or that has an operand more than the operator; an operator none of whose kernels fits.
TENON_API Result<LayoutReport> assign_layouts(Graph& graph, const AssignLayoutsOptions& options = {});

// That the layouts of values are such that each operator of the body can run: one of its kernels takes and gives them,
// with the padding that it needs; oblivious operators have one layout; all others, and outputs, row-major;
// "layout.kernel" stands where padding is worked on. What a run cannot show, since the reference reads every layout
// anywhere.
TENON_API Result<void> verify_layouts(const Graph& graph, const AssignLayoutsOptions& options = {});

// Does any value have a pinned layout?
TENON_API bool has_pinned_layouts(const Graph& graph);

// The same as a pass. `report` may be null. The pass of this name in the registry knows no kernels: it makes the
// neighbours of pinned values fit.
TENON_API Pass assign_layouts_pass(AssignLayoutsOptions options, std::shared_ptr<LayoutReport> report = nullptr);

}  // namespace tenon
