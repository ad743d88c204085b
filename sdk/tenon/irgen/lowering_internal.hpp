// Inside the room: a part of a graph while it is lowered to a program.
#pragma once
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <tenon/irgen/from_graph.hpp>
#include <tenon/irgen/places_internal.hpp>
#include <tenon/support/inline_vector.hpp>

namespace tenon::irgen::detail {

// An operand or result of a node. Its users state which aspect they mean: the value, for its type and place, or the
// storage that it was put into, for lifetimes; the root of the storage is what this has become a part of since.
struct NodeValue {
  const Value* value = nullptr;  // never null in a node
  StorageId storage = kNever;
};

// An entry of the order: an operator, a group, or an output that is a copy of a value stored elsewhere.
struct Node {
  const Op* op = nullptr;
  const OpPlan* plan = nullptr;  // of `op`
  const OpGroup* group = nullptr;
  size_t output = kNever;  // of a copy
  // For a call that writes results as parts of others: replaces the plan's choice.
  std::optional<KernelChoice> writes_parts = {};
  InlineVector<NodeValue, 2> operands;
  InlineVector<NodeValue, 1> results;

  const KernelChoice& choice() const { return writes_parts ? *writes_parts : plan->choice; }
};

// The steps of from_graph, in order; each is a function of the results of earlier ones.
class Lowering {
 public:
  Lowering(const GraphPart& part, const GraphTypes& types, const OpPlans& plans, const KernelSource& kernels,
           const LowerOptions& options);
  Result<GraphProgram> run();

 private:
  friend class StatementMaker;

  // Declares inputs and outputs.
  void declare();
  // One node for each operator that is neither a view nor in a group, and one for each group. Views get their places.
  Result<void> make_nodes();
  Result<void> choose_groups();
  void add_op_node(const Op& op);
  void put_group_results(const OpGroup& group);
  void add_group_node(const OpGroup& group);
  void add_operand(Node& node, const Value& value);
  void put_view(const Op& op);
  // The storage of a value that is defined outside of the part.
  void put_boundary(const Value& value);

  // Outputs with a storage of their own get the caller's memory; others get a node that copies. (places)
  void place_outputs();
  // (order)
  Result<void> order_nodes();
  void number_uses();
  // Slice, Split and Concat in the memory of the other side, where the peak does not grow. (sharing)
  void share_memory();
  void share_crop(const Node& node, LiveBytes& live);
  void share_concat(const Node& node, LiveBytes& live);
  void share_part(const Value& part, const Value& whole, const std::vector<Expr>& begin, LiveBytes& live);
  // The place of the box of `whole` that begins at `begin`.
  Place place_of_part(const Value& whole, const std::vector<Expr>& begin, const Shape& box) const;
  // Where operand `i` of a Concat begins in its result.
  static std::vector<Expr> begin_of(const OpPlan& concat, size_t rank, size_t i);
  // Puts values that only a Concat reads into its result, with gaps: results of calls whose kernels write parts, and of
  // other Concats. (parts)
  void share_with_gaps(LiveBytes& live);
  std::optional<Place> place_in_concat(const Value& part) const;
  void write_parts(Node& node, LiveBytes& live);
  // Puts a result into the memory of an operand without later readers. (sharing)
  void write_in_place();
  bool may_write_in_place(const Node& node, size_t position, const Value& operand, const Value& result);

  // Emits statements in order, locals and frees. (statements)
  Result<void> emit();

  const GraphPart& part_;
  const GraphTypes& types_;
  const OpPlans& plans_;
  const KernelSource& kernels_;
  const LowerOptions& options_;
  GraphProgram made_;
  NameTable names_;
  Places places_;
  std::vector<OpGroup> groups_;
  std::unordered_map<const Op*, const OpGroup*> group_of_;
  std::vector<Node> nodes_;    // in the graph's order
  std::vector<size_t> order_;  // of nodes
  std::vector<const Value*> output_values_;
  std::unordered_set<const Value*> is_output_;
  std::unordered_map<const std::byte*, StorageId> constants_;  // by data
};

// Where a dense box begins in a dense tensor, in elements; empty when the box has gaps. By dims of the graph.
std::optional<Expr> dense_offset(const Shape& whole, const std::vector<Expr>& begin, const Shape& box);

}  // namespace tenon::irgen::detail
