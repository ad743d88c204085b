// What each operator of a graph becomes in a program, decided before memory is planned: a call, a view, a copy, or
// nothing that a program can express.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/irgen/graph_types.hpp>
#include <tenon/irgen/kernel_source.hpp>
#include <tenon/support/export.hpp>

namespace tenon::irgen {

enum class OpForm : uint8_t {
  host,       // in no program; OpPlan::why_not gives the reason
  late,       // programs made during runs, one per value of OpPlan::late_operand; why_not gives the reason
  constant,   // existing bytes
  view,       // result 0 is operand 0 with another shape
  crop,       // results are boxes of operand 0: Slice with steps of 1, Split
  concat,     // operands are boxes of the result
  transpose,  // one copy
  expand,     // one copy, indices of extents 1 repeated
  call,       // a kernel
};

struct OpPlan {
  OpForm form = OpForm::host;
  std::string why_not;                // the end of a sentence: "its shapes depend on ..."
  KernelChoice choice;                // of a call
  std::vector<std::vector<Expr>> at;  // of a crop: where each result begins in operand 0, by dim of the graph
  std::vector<Expr> starts;           // of a Concat: where each operand begins along `axis`
  size_t axis = 0;
  size_t late_operand = 0;

  // Whether it is part of programs that are made before the first run.
  bool in_program() const { return form != OpForm::host && form != OpForm::late; }
};

// Whether the operator, with the types in the graph, is a view, crop, concat, transpose or expand, which programs
// express without a kernel.
TENON_API bool is_movement(const Op& op);

// By operator of the body.
using OpPlans = std::unordered_map<const Op*, OpPlan>;
TENON_API OpPlans plan_ops(const Graph& graph, const GraphTypes& types, const KernelSource& kernels);

}  // namespace tenon::irgen
