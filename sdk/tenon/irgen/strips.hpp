// Strips: chains of operators (chains.hpp) as groups of from_graph, each one loop over strips of its last result.
//
//   StripReport report;
//   TENON_TRY(lowered, from_graph(graph, kernels, {.grouping = strip_grouping({.model = strip_model(target)},
//                                                                             &report)}));
//   report.to_string()    // which operators run in strips of what size, bytes moved, memory
//
// In a strip, each operator runs on crops of its operands with the attributes that sub_box_op gives: the first strip of
// a padded convolution is padded above, the last one below. Values that pass from strip to strip are kept in windows,
// so nothing is computed twice, and every element has the same bits as in the whole operator. Kernels that take only
// dense operands get packed copies of crops with gaps.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/irgen/chains.hpp>
#include <tenon/irgen/from_graph.hpp>
#include <tenon/support/export.hpp>

namespace tenon::irgen {

class ChainKernels;

// A chain that runs in strips, with a kernel for every strip of every operator.
class TENON_API StripChain {
 public:
  // Code::unsupported with the reason when an operator has no kernel for some strip; `op` is then set to that operator.
  static Result<StripChain> make(Chain chain, const KernelSource& kernels, int64_t workers, const Op** op = nullptr,
                                 const TypeSource& types = TypeSource());

  const Chain& chain() const { return *chain_; }
  // In the graph's order, each once.
  std::vector<const Op*> ops() const;
  // "16 of 112 in dim 2".
  std::string describe() const;
  // Of windows and workspace, for one worker.
  int64_t peak_bytes() const;
  // Number of kernels made for parts of operators.
  size_t kernel_count() const;
  // The loop over strips, in a program that has buffers for the chain's inputs and result.
  Result<program::Statement> lower(GroupContext& context) const;

 private:
  StripChain() = default;
  std::shared_ptr<const Chain> chain_;
  std::shared_ptr<const ChainKernels> kernels_;
};

struct TENON_API StripReport {
  struct Row {
    std::vector<std::string> ops;
    std::string strips;          // "16 of 112 in dim 2"
    StripCost whole, in_strips;  // predicted
    int64_t peak_bytes = 0;      // of the actual strips, with workspaces of kernels
    size_t kernels = 0;          // made for parts
  };
  std::vector<Row> rows;
  std::vector<std::pair<std::string, std::string>> whole;  // operators that are not in strips, and why
  CostModel model;
  // Adds the report of another part of the graph, made with the same model.
  void add(StripReport part);
  std::string to_string() const;
};

// Chains of the operators, as find_chains() takes them, for which the source has kernels. An operator without a kernel
// for some part stays whole, and the search is repeated without it.
TENON_API std::vector<StripChain> plan_strips(std::span<const Op* const> ops, const KernelSource& kernels,
                                              const StripOptions& options = {}, StripReport* report = nullptr,
                                              const TypeSource& types = TypeSource());

// For LowerOptions::grouping. `report` outlives the lowering, and gets the result for each part; null: none.
TENON_API Grouping strip_grouping(StripOptions options = {}, StripReport* report = nullptr);

}  // namespace tenon::irgen
