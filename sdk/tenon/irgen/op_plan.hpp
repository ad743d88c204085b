// What each operator of a graph becomes in a program, decided before anything is placed: a call, a view, a copy, or
// nothing that a program can say.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/irgen/graph_types.hpp>
#include <tenon/irgen/kernel_source.hpp>
#include <tenon/support/export.hpp>

namespace tenon::irgen {

enum class OpForm : uint8_t {
  host,       // no program: OpPlan::why_not
  late,       // programs that are made at runs, one for each value of OpPlan::late_operand; why_not says why
  constant,   // bytes that are there
  view,       // result 0 is operand 0 under another shape
  crop,       // results are boxes of operand 0: Slice with steps of 1, Split
  concat,     // operands are boxes of the result
  transpose,  // one copy
  expand,     // one copy, indices of extents 1 repeated
  call,       // a kernel
};

struct OpPlan {
  OpForm form = OpForm::host;
  std::string why_not;                // a sentence's end: "its shapes depend on ..."
  KernelChoice choice;                // of a call
  std::vector<std::vector<Expr>> at;  // of a crop: where each result begins in operand 0, by dim of the graph
  std::vector<Expr> starts;           // of a concat: where each operand begins along `axis`
  size_t axis = 0;
  size_t late_operand = 0;

  // Is it part of programs that are made before the first run?
  bool in_program() const { return form != OpForm::host && form != OpForm::late; }
};

// Is the operator a view, crop, concat, transpose or expand with the types that stand in the graph: something that
// programs say without a kernel?
TENON_API bool is_movement(const Op& op);

// By operator of the body.
using OpPlans = std::unordered_map<const Op*, OpPlan>;
TENON_API OpPlans plan_ops(const Graph& graph, const GraphTypes& types, const KernelSource& kernels);

}  // namespace tenon::irgen
