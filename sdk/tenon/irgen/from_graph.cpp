#include <tenon/irgen/from_graph.hpp>

#include <tenon/irgen/dims.hpp>
#include <tenon/irgen/lowering_internal.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/program/ir/simplify.hpp>
#include <tenon/program/ir/walk.hpp>
#include <tenon/program/pipeline/forward_copies.hpp>

namespace tenon::irgen {

std::string stage_of_op(const Op& op) { return op.label().empty() ? op.name().str() : str(op.name(), " ", op.label()); }

OpLabel label_of_stage(std::string_view stage) {
  const size_t space = stage.find(' ');
  if (space == std::string_view::npos) return {stage, {}};
  return {stage.substr(0, space), stage.substr(space + 1)};
}

GraphPart whole_graph(const Graph& graph) {
  GraphPart part;
  const Region& body = graph.body();
  part.name = graph.name();
  for (const Op& op : body)
    if (!isa<Constant>(op)) part.ops.push_back(&op);
  for (size_t i = 0; i < body.input_count(); ++i) {
    part.inputs.push_back(body.input(i));
    part.input_names.push_back(body.input(i)->name());
  }
  for (size_t i = 0; i < body.output_count(); ++i) {
    part.outputs.push_back(body.output(i));
    part.output_names.push_back(body.output_name(i));
  }
  return part;
}

namespace {

bool has_loops(const program::Program& program) {
  bool found = false;
  program::for_each_statement(program.body,
                              [&](const program::Statement& s) { found = found || s.as<program::Loop>(); });
  return found;
}

}  // namespace

Result<GraphProgram> lower_part(const GraphPart& part, const GraphTypes& types, const OpPlans& plans,
                                const KernelSource& kernels, const LowerOptions& options) {
  for (const auto* values : {&part.inputs, &part.outputs})
    for (const Value* value : *values)
      if (!value || !fits_buffer(types.type_of(*value)))
        return error(Code::unsupported, "value '", value ? value->name() : "", "' of '", part.name,
                     "' is no tensor that a buffer can hold: ", value ? types.type_of(*value) : Type());
  TENON_TRY(lowered, detail::Lowering(part, types, plans, kernels, options).run());
  if (!options.simplify) return lowered;
  lowered.program = program::forward_copies(std::move(lowered.program));
  // Only groups have loops, and expressions that are not yet simplified.
  lowered.program = has_loops(lowered.program) ? program::simplify(std::move(lowered.program))
                                               : program::without_dead_stores(std::move(lowered.program));
  return lowered;
}

Result<GraphProgram> from_graph(const Graph& graph, const KernelSource& kernels, const LowerOptions& options) {
  const GraphTypes types = GraphTypes::of(graph);
  const OpPlans plans = plan_ops(graph, types, kernels);
  TENON_TRY(lowered, lower_part(whole_graph(graph), types, plans, kernels, options), "graph '", graph.name(), "'");
  return lowered;
}

// ---- Bound to shapes ----

Result<SymbolValues> scalars_of(const GraphProgram& program, const std::vector<Dims>& inputs) {
  if (inputs.size() != program.input_types.size())
    return error(Code::invalid_argument, "program '", program.program.name, "' has ", program.input_types.size(),
                 " inputs, ", inputs.size(), " are given");
  SymbolValues values;
  const auto name = [&](size_t i) -> const std::string& { return program.program.buffer(program.inputs[i]).name; };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = program.input_types[i].shape();
    if (static_cast<size_t>(shape.rank()) != inputs[i].size())
      return error(Code::invalid_argument, "input '", name(i), "' has rank ", shape.rank(), ", and ", inputs[i],
                   " is given");
    for (size_t d = 0; d < inputs[i].size(); ++d)
      if (shape[d].expr().is_symbol()) values.emplace(shape[d].expr().name(), inputs[i][d]);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t d = 0; d < inputs[i].size(); ++d) {
      const Expr& extent = program.input_types[i].shape()[d].expr();
      TENON_TRY(value, extent.evaluate(values), "dim ", d, " of input '", name(i), "'");
      if (value != inputs[i][d])
        return error(Code::invalid_argument, "dim ", d, " of input '", name(i), "' is ", extent, " = ", value, ", and ",
                     inputs[i][d], " is given");
    }
  }
  return values;
}

namespace {

Result<Dims> dims_of(const Shape& shape, const SymbolValues& scalars) {
  Dims dims;
  for (const Dim& d : shape.dims()) {
    TENON_TRY(extent, d.expr().evaluate(scalars));
    if (extent < 0) return error(Code::invalid_argument, "the extent ", d.expr(), " is ", extent);
    dims.push_back(extent);
  }
  return dims;
}

Result<program::BufferArgument> argument(const Type& type, const SymbolValues& scalars, const std::byte* data) {
  TENON_TRY(dims, dims_of(type.shape(), scalars));
  return program::BufferArgument::dense(const_cast<std::byte*>(data), type.element(), Dims(dims.rbegin(), dims.rend()));
}

}  // namespace

Result<Dims> dims_of_input(const GraphProgram& program, size_t input, const SymbolValues& scalars) {
  return dims_of(program.input_types[input].shape(), scalars);
}
Result<Dims> dims_of_output(const GraphProgram& program, size_t output, const SymbolValues& scalars) {
  return dims_of(program.output_types[output].shape(), scalars);
}

Result<program::Arguments> arguments_of(const GraphProgram& program, const SymbolValues& scalars) {
  program::Arguments made;
  made.scalars = scalars;
  const auto add = [&](program::BufferId id, const Type& type, const std::byte* data) -> Result<void> {
    const std::string& name = program.program.buffer(id).name;
    TENON_TRY(of, argument(type, scalars, data), "buffer '", name, "'");
    made.buffers.emplace(name, std::move(of));
    return {};
  };
  for (size_t i = 0; i < program.inputs.size(); ++i) TENON_OK(add(program.inputs[i], program.input_types[i], nullptr));
  for (size_t i = 0; i < program.outputs.size(); ++i)
    TENON_OK(add(program.outputs[i], program.output_types[i], nullptr));
  for (const ProgramConstant& c : program.constants) TENON_OK(add(c.buffer, c.tensor.type(), c.tensor.data()));
  return made;
}

}  // namespace tenon::irgen
