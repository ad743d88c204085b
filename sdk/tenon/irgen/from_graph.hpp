// Lowering from a graph to a program: one call (or copy, or view) per operator, in an order that needs little memory,
// with all values in buffers of the program.
//
//   TENON_TRY(lowered, from_graph(graph, kernels));
//   print(lowered.program)           // program @mlp(N) { input %x : f32 rank 2 ... call Gemm(in %x, ...) as "Gemm fc1"
//
// Correspondence:
//   graph inputs, outputs   input and output buffers, in the graph's order, dims reversed (dims.hpp)
//   Constant                a constant buffer over the tensor's bytes, one per tensor
//   symbol of a shape       a scalar of the program, whose value is a dim of an input (scalars_of)
//   value                   a local buffer, or a part of another's memory
//   view operator           no statement (Reshape, Flatten, Squeeze ...): another shape over the same bytes
//   Slice, Split, Concat    a part of the other side's memory where that part is dense, else a copy
//   Transpose, Expand       one copy, or no statement where the bytes are the same
//   any other operator      a call of the kernel that the source gives, its stage named by stage_of_op
//   group (OpGroup)         one statement, made by the group's author
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/irgen/graph_types.hpp>
#include <tenon/irgen/kernel_source.hpp>
#include <tenon/irgen/op_plan.hpp>
#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::irgen {

struct ProgramConstant {
  program::BufferId buffer = -1;
  Tensor tensor;
};

struct GraphProgram {
  program::Program program;
  // By graph input and output, with their types: symbols of shapes are scalars of the program.
  std::vector<program::BufferId> inputs, outputs;
  std::vector<Type> input_types, output_types;
  std::vector<ProgramConstant> constants;
};

// The values of scalars that inputs of these extents imply. A dim that is a single symbol defines its value; all other
// dims are checked against their expressions. Errors name the input and dim.
TENON_API Result<SymbolValues> scalars_of(const GraphProgram& program, const std::vector<Dims>& inputs);
// Extents of inputs and outputs.
TENON_API Result<Dims> dims_of_input(const GraphProgram& program, size_t input, const SymbolValues& scalars);
TENON_API Result<Dims> dims_of_output(const GraphProgram& program, size_t output, const SymbolValues& scalars);
// The arguments of BoundProgram::bind and interpret(), without the data of inputs and outputs; constants have theirs.
TENON_API Result<program::Arguments> arguments_of(const GraphProgram& program, const SymbolValues& scalars);

// The stage of an operator's statement: the operator's name, and its label where it has one ("Conv layer1/conv").
// Errors, statistics, profiles and pictures identify operators by it.
TENON_API std::string stage_of_op(const Op& op);
struct OpLabel {
  std::string_view op, label;
};
TENON_API OpLabel label_of_stage(std::string_view stage);

// A part of a graph's body that becomes one program. The operators are in the graph's order, without constants.
// `inputs` are the values that they use from outside, without constants; `outputs` are the values among theirs, or
// among the inputs, that others use.
struct GraphPart {
  std::string name;
  std::vector<const Op*> ops;
  std::vector<const Value*> inputs, outputs;
  std::vector<std::string> input_names, output_names;
};

// What a group's author may use while the group's statement is made.
class TENON_API GroupContext {
 public:
  virtual ~GroupContext() = default;
  virtual program::Program& program() = 0;
  // The buffer of a value that is defined outside of the group or used outside; dims reversed, dense.
  virtual program::BufferId buffer_of(const Value& value) = 0;
  // A name that no buffer has yet, derived from `wanted`.
  virtual std::string fresh_name(std::string_view wanted) = 0;
  virtual const KernelSource& kernels() const = 0;
};
// Operators that are lowered together, such as a chain that runs strip by strip. Values that are both defined and used
// inside have no buffer in the graph's program. No path leads out of the group and back.
struct OpGroup {
  std::vector<const Op*> ops;  // in an order of the graph
  std::function<Result<program::Statement>(GroupContext&)> lower;
  size_t scratch_bytes = 0;  // upper bound while it runs; used to choose the order of statements
};
// Chooses disjoint groups among those operators of a part, given in the graph's order, that from_graph would lower to
// single calls. Values have the given types, whatever a model declares for them.
using Grouping =
    std::function<Result<std::vector<OpGroup>>(std::span<const Op* const>, const KernelSource&, const TypeSource&)>;

struct LowerOptions {
  // Each can be switched off, to measure its effect; results are the same.
  bool order_for_memory = true;  // else the graph's order
  bool in_place = true;
  bool share_memory = true;  // Slice, Split and Concat in the memory of the other side
  // unneeded statements are dropped, and copies of copies read where the first copy has read
  bool simplify = true;
  Grouping grouping = {};  // none: every operator separately
};

TENON_API GraphPart whole_graph(const Graph& graph);

// Every operator must be one that a program can express (op_plan.hpp). An error names the first that is not, with the
// reason. The graph is verified, and must outlive the kernels and hence the program.
TENON_API Result<GraphProgram> from_graph(const Graph& graph, const KernelSource& kernels,
                                          const LowerOptions& options = {});
// The same for a part, whose operators are planned.
TENON_API Result<GraphProgram> lower_part(const GraphPart& part, const GraphTypes& types, const OpPlans& plans,
                                          const KernelSource& kernels, const LowerOptions& options = {});

}  // namespace tenon::irgen
