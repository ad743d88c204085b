#include "opencl/kernel_infos.hpp"

#include <algorithm>
#include <unordered_map>

#include <tenon/irgen/from_graph.hpp>
#include <tenon/irgen/op_plan.hpp>
#include <tenon/irgen/snippet_info.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>

#include "opencl/fuse.hpp"
#include "opencl/late_program.hpp"

namespace tenon::opencl {
namespace {

double bytes_of(const Value& value) {
  const Type& type = value.type();
  const auto dims = type.shape().static_dims();
  if (!dims || type.element().is_string()) return 0;
  double bytes = type.element().bits() / 8.0;
  for (const int64_t extent : *dims) bytes *= static_cast<double>(extent);
  return bytes;
}

KernelInfo info_of(const Op& op, const Compiler& compiler) {
  if (isa<snippet::Subgraph>(op)) return irgen::kernel_info_of(op, compiler.target());
  KernelInfo info{
      .op = op.name().str(), .label = op.label(), .operators = {irgen::stage_of_op(op)}, .results = op.result_count()};
  for (const Value* operand : op.operands()) {
    if (!operand) continue;
    ++info.parameters;
    info.bytes_fused += bytes_of(*operand);
  }
  for (size_t i = 0; i < op.result_count(); ++i) info.bytes_fused += bytes_of(*op.result(i));
  info.bytes_unfused = info.bytes_fused;
  return info;
}

// The value between the two is neither written nor read.
KernelInfo info_of(const Fused& fused, const Compiler& compiler) {
  KernelInfo info = info_of(*fused.op, compiler);
  const KernelInfo behind = info_of(*fused.behind, compiler);
  const std::string stage = fused.stage();
  const irgen::OpLabel named = irgen::label_of_stage(stage);
  info.op = named.op;
  info.label = named.label;
  info.operators.insert(info.operators.end(), behind.operators.begin(), behind.operators.end());
  info.parameters += behind.parameters - 1;
  info.results = behind.results;
  info.constants += behind.constants;
  info.bytes_unfused += behind.bytes_unfused;
  info.bytes_fused += std::max(behind.bytes_fused - 2 * bytes_of(*fused.op->result()), 0.0);
  return info;
}

bool is_launched(const Op& op) { return !isa<Constant>(op) && !irgen::is_movement(op) && !is_late_movement(op); }

}  // namespace

std::vector<KernelInfo> kernel_infos(const Graph& graph, const Compiler& compiler) {
  std::vector<const Op*> ops;
  for (const Op& op : graph.body()) ops.push_back(&op);
  const std::vector<Fused> all = compiler.options().fuse ? fuse_epilogues(ops, compiler) : std::vector<Fused>();
  std::unordered_map<const Op*, const Fused*> fused;  // by either operator
  for (const Fused& one : all) fused[one.op] = fused[one.behind] = &one;
  std::vector<KernelInfo> infos;
  for (const Op* op : ops) {
    const auto both = fused.find(op);
    if (both == fused.end() && is_launched(*op)) infos.push_back(info_of(*op, compiler));
    if (both != fused.end() && both->second->behind == op) infos.push_back(info_of(*both->second, compiler));
  }
  return infos;
}

}  // namespace tenon::opencl
