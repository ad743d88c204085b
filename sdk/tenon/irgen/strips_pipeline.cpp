#include <tenon/irgen/strips_pipeline_internal.hpp>

#include <algorithm>
#include <map>
#include <set>

#include <tenon/irgen/from_graph.hpp>
#include <tenon/program/exec/interpreter.hpp>
#include <tenon/program/pipeline/pipeline.hpp>

namespace tenon::irgen {

namespace {

using program::BufferRef;
using program::Pipeline;
using program::Window;
using program::Windows;

// The index of dim d of any result.
Expr index_of(size_t d) { return Expr::symbol(str("at", d)); }

class PipelineMaker {
 public:
  PipelineMaker(const Chain& chain, const ChainShape& shape, const NameOf& names)
      : chain_(chain), shape_(shape), names_(names), pipeline_("strips") {}

  Result<program::Program> run(const std::vector<program::KernelHandle>& kernels, int64_t workers) {
    std::vector<BufferRef> inputs;
    for (const Value* value : shape_.inputs) inputs.push_back(declare(*value));
    for (size_t i = 0; i < chain_.ops.size(); ++i) add_stage(i, kernels[i], workers);
    return pipeline_.build(inputs, {buffers_.at(&chain_.value())});
  }

 private:
  Dims dims_of(const Value& value) const { return shape_.dims_of(value); }
  BufferRef buffer(const Value& value) {
    const BufferRef made =
        pipeline_.buffer(names_(value), shape_.types.at(&value).element(), static_cast<int>(dims_of(value).size()));
    return buffers_.emplace(&value, made).first->second;
  }
  BufferRef declare(const Value& value) {
    BufferRef made = buffer(value);
    const Dims dims = dims_of(value);
    for (size_t d = 0; d < dims.size(); ++d)
      made.has_bounds(static_cast<int>(dims.size() - 1 - d), Window(0, dims[d] - 1));
    return made;
  }

  void add_stage(size_t i, const program::KernelHandle& kernel, int64_t workers) {
    const ChainOp& op = chain_.ops[i];
    const bool is_last = i + 1 == chain_.ops.size();
    program::StageRef stage = pipeline_.stage(stage_of_op(*op.op), kernel);
    for (const size_t operand : shape_.passed[i])
      stage.reads(buffers_.at(op.op->operand(operand)), windows(op, op.reads.operands[operand]));
    const Value& result = op.value();
    std::vector<Expr> indices;
    for (size_t d = dims_of(result).size(); d-- > 0;) indices.push_back(index_of(d));
    stage.writes(is_last ? declare(result) : buffer(result), indices);
    if (!is_last) return;
    std::vector<program::LoopOver> loops;
    for (size_t l = chain_.loops.size(); l-- > 0;)
      loops.push_back({index_of(static_cast<size_t>(chain_.loops[l].dim)), chain_.loops[l].step, l == 0 ? workers : 1});
    stage.loops(loops);
  }

  static Windows windows(const ChainOp& op, const std::vector<StripWindow>& dims) {
    Substitution symbols;
    for (size_t l = 0; l < op.dims.size(); ++l)
      symbols[std::string(strip_symbol(l).name())] = index_of(static_cast<size_t>(op.dims[l]));
    Windows windows;
    for (size_t d = dims.size(); d-- > 0;)
      windows.push_back({dims[d].first.substitute(symbols), dims[d].last.substitute(symbols)});
    return windows;
  }

  const Chain& chain_;
  const ChainShape& shape_;
  const NameOf& names_;
  Pipeline pipeline_;
  std::map<const Value*, BufferRef> buffers_;
};

StaticBox box_of(const program::BufferView& view) {
  StaticBox box;
  for (size_t d = view.dims.size(); d-- > 0;) box.push_back({view.dims[d].min, view.dims[d].max()});
  return box;
}

}  // namespace

ChainShape ChainShape::of(const Chain& chain, const TypeSource& types) {
  ChainShape shape;
  std::set<const Value*> known;
  const auto add = [&](const Value& value) {
    shape.types.emplace(&value, types.type_of(value));
    return known.insert(&value).second;
  };
  for (const ChainOp& op : chain.ops) add(op.value());
  for (const ChainOp& op : chain.ops) {
    std::vector<size_t>& passed = shape.passed.emplace_back();
    for (size_t i = 0; i < op.op->operand_count(); ++i) {
      if (!op.op->operand(i)) continue;
      passed.push_back(i);
      if (add(*op.op->operand(i))) shape.inputs.push_back(op.op->operand(i));
    }
  }
  return shape;
}

Result<program::Program> chain_program(const Chain& chain, const ChainShape& shape, const NameOf& names,
                                       const std::vector<program::KernelHandle>& kernels, int64_t workers) {
  return PipelineMaker(chain, shape, names).run(kernels, workers);
}

Result<ChainTrace> trace_chain(const Chain& chain, const ChainShape& shape, int64_t workers) {
  ChainTrace trace;
  trace.calls.resize(chain.ops.size());
  std::vector<std::set<std::vector<int64_t>>> seen(chain.ops.size());
  std::vector<program::KernelHandle> recorders;
  for (size_t i = 0; i < chain.ops.size(); ++i)
    recorders.push_back(program::make_kernel(
        "record",
        [&trace, &seen, i](program::CallContext& c) -> Result<void> {
          StageCall call;
          for (size_t r = 0; r + 1 < c.operands.size(); ++r) call.reads.push_back(box_of(c.operands[r]));
          call.result = box_of(c.operands.back());
          std::vector<int64_t> key;
          for (const StaticRange& range : call.result) key.insert(key.end(), {range.min, range.max});
          if (seen[i].insert(std::move(key)).second) trace.calls[i].push_back(std::move(call));
          return {};
        },
        true));
  std::map<const Value*, std::string> names;
  const NameOf name_of = [&](const Value& value) {
    return names.try_emplace(&value, str("v", names.size())).first->second;
  };
  TENON_TRY(made, chain_program(chain, shape, name_of, recorders, workers));
  // No elements are accessed: all of them may share one.
  std::byte element[64];
  program::Arguments arguments;
  for (const program::Buffer& buffer : made.buffers) {
    if (buffer.role == program::Role::local) continue;
    const auto value = std::ranges::find_if(names, [&](const auto& n) { return n.second == buffer.name; });
    program::BufferArgument& argument = arguments.buffers[buffer.name];
    argument.data = element;
    for (const int64_t extent : shape.dims_of(*value->first))
      argument.dims.insert(argument.dims.begin(), {0, extent, 0, 0});
  }
  program::RunStatistics statistics;
  TENON_OK(program::interpret(made, arguments, {.threads = workers}, &statistics));
  trace.peak_bytes = statistics.heap_peak + statistics.stack_peak;
  return trace;
}

}  // namespace tenon::irgen
