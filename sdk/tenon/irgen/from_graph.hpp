// From a graph to a program: one call (or copy, or view) for each operator, in an order that needs little memory, with
// all values in buffers of the program.
//
//   TENON_TRY(lowered, from_graph(graph, kernels));
//   print(lowered.program)           // program @mlp(N) { input %x : f32 rank 2 ... call Gemm(in %x, ...) as "Gemm fc1"
//
// What becomes what:
//   graph inputs, outputs   input and output buffers, in the graph's order, dims reversed (dims.hpp)
//   Constant                a constant buffer over the tensor's bytes, one for each tensor
//   symbol of a shape       a scalar of the program, whose value is a dim of an input (ScalarSource)
//   value                   a local buffer, or a place in another's memory
//   view operator           no statement (Reshape, Flatten, Squeeze ...): another shape over the same bytes
//   Slice, Split, Concat    a place in the memory of the other side where that is dense, else a copy
//   Transpose, Expand ...   one copy
//   any other operator      a call of the kernel that the source gives, its stage named by stage_of_op
//   group (OpGroup)         one statement that somebody else makes
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/irgen/kernel_source.hpp>
#include <tenon/program/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::irgen {

// A dim of an input that gives a scalar its value.
struct ScalarSource {
  std::string scalar;  // in the program
  std::string symbol;  // in the graph's shapes; "" for a dim that is not named there
  size_t input = 0;
  size_t dim = 0;  // of the tensor
};

struct ProgramConstant {
  program::BufferId buffer = -1;
  Tensor tensor;
};

struct GraphProgram {
  program::Program program;
  std::vector<program::BufferId> inputs, outputs;  // by graph input and output
  std::vector<ProgramConstant> constants;
  std::vector<ScalarSource> scalars;  // one for each scalar of the program
};

// The stage of an operator's statement: its name, and its label where it has one ("Conv layer1/conv"). Errors,
// statistics, profiles and pictures name operators by it.
TENON_API std::string stage_of_op(const Op& op);
struct OpLabel {
  std::string_view op, label;
};
TENON_API OpLabel label_of_stage(std::string_view stage);

// What a group's author may do while its statement is made.
class TENON_API GroupContext {
 public:
  virtual ~GroupContext() = default;
  virtual program::Program& program() = 0;
  // The buffer of a value that comes from outside of the group or is used outside; dims reversed, dense.
  virtual program::BufferId buffer_of(const Value& value) = 0;
  // A name that no buffer has yet, made from `wanted`.
  virtual std::string fresh_name(std::string_view wanted) = 0;
  virtual const KernelSource& kernels() const = 0;
};
// Operators that are lowered together, such as a chain that runs strip by strip. Values that are made and used within
// have no buffer of the graph's program. No path leads out of the group and back.
struct OpGroup {
  std::vector<const Op*> ops;  // in an order of the graph
  std::function<Result<program::Statement>(GroupContext&)> lower;
  size_t scratch_bytes = 0;  // at most, while it runs: for the order of statements
};
// Chooses groups, disjoint, of operators that from_graph would call one by one.
using Grouping = std::function<Result<std::vector<OpGroup>>(const Graph&, const KernelSource&)>;

struct LowerOptions {
  // Each may be switched off, to see what it is good for; results are the same.
  bool order_for_memory = true;  // else the graph's order
  bool in_place = true;
  bool share_memory = true;  // Slice, Split and Concat in the memory of the other side
  Grouping grouping = {};    // none: every operator by itself
};

// Every operator must be one that a program can say: see lowerable.hpp. An error names the first that is not, with the
// reason. The graph is verified, and outlives the kernels, hence the program.
TENON_API Result<GraphProgram> from_graph(const Graph& graph, const KernelSource& kernels,
                                          const LowerOptions& options = {});

}  // namespace tenon::irgen
