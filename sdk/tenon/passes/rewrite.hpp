// Declarative rewrites: which operators to match, and what replaces them.
//
//   using namespace tenon::pattern;
//   const std::vector<Rewrite> kFuse = {
//       Rewrite("conv-bias-act-pool")
//           .match(op("MaxPool", {op({"Relu", "Clip"}, {op("Add", {op("Conv", {any("x"), constant("w")}).as("conv"),
//                                                                  constant("b")})}).as("act")}).as("pool"))
//           .when([](const Match& m) { return m.op("conv").attr<int64_t>("group", 1) == 1; })
//           .into("fused.ConvActPool", {"x", "w", "b"}, [](const Match& m) {
//             Attributes attributes = m.op("conv").attributes();
//             attributes.set("act", m.op("act").name().str());
//             return attributes;
//           }),
//   };
//   TENON_TRY(change, apply_rewrites(graph, kFuse));
//
// A rewrite is declarative; the framework finds matches and handles uses, types, names, labels and dead operators.
#pragma once
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// A condition on a value. Patterns are values: parts may be named and reused.
class TENON_API Pattern {
 public:
  using Test = std::function<bool(const Value&)>;

  // Names the value for Match. A name that occurs twice must be the same value both times.
  Pattern as(std::string name) &&;
  // The operand may also be absent (bound as null).
  Pattern optional() &&;
  // The operator's results may have other users as well, which keep them. By default, the only use must be the operator
  // above it in the pattern, and the result must not be an output or be used by a region.
  Pattern shared() &&;
  // Matches its two operands in either order; by default, this depends on the operator's trait `commutative`.
  Pattern in_any_order() &&;
  Pattern in_order() &&;
  // Any further operands may follow; by default, these must be absent.
  Pattern and_more() &&;
  // Matches result `i` of the operator; by default result 0, with all other results unused.
  Pattern result(size_t i) &&;
  // A further condition on the value (for an operator: on its result).
  Pattern where(Test test) &&;

 private:
  friend class Matcher;
  friend class Rewrite;
  friend class Rewriter;
  friend struct PatternMaker;
  enum class Kind : uint8_t { any, constant, op, one_of };
  enum class Order : uint8_t { by_trait, either, fixed };
  Kind kind_ = Kind::any;
  Order order_ = Order::by_trait;
  bool optional_ = false, shared_ = false, and_more_ = false;
  size_t result_ = 0;
  std::string name_;
  std::vector<Name> ops_;
  std::vector<Pattern> parts_;  // operands, or alternatives
  std::vector<Test> tests_;
};

namespace pattern {
// Matches every value.
TENON_API Pattern any(std::string name = "");
// Matches the result of any Constant, wherever it is.
TENON_API Pattern constant(std::string name = "");
// Matches the result of an operator with one of these names and operands, in the region of the pattern's root.
TENON_API Pattern op(Name name, std::vector<Pattern> operands);
TENON_API Pattern op(std::initializer_list<Name> names, std::vector<Pattern> operands);
// The same for a list that is made at run time, such as all operators with a trait.
TENON_API Pattern op_among(std::vector<Name> names, std::vector<Pattern> operands);
// Takes the first alternative that matches together with the rest of the pattern: one_of({op("Relu", {sum}), sum}).
TENON_API Pattern one_of(std::vector<Pattern> alternatives);
}  // namespace pattern

// A match. Valid until the graph changes.
class TENON_API Match {
 public:
  Op& root() const { return *root_; }
  bool has(std::string_view name) const;  // bound, and not absent
  // By name in the pattern; using an unknown name is a programming error. Null: absent.
  Value* value(std::string_view name) const;
  Op& op(std::string_view name) const;  // the operator that produces the value
  const Tensor& constant(std::string_view name) const;
  // The operators that the pattern names, the root first; constants are not included.
  const std::vector<Op*>& ops() const { return ops_; }
  // Labels of the operators, joined from first to last: "conv1+relu1".
  std::string joined_label() const;

 private:
  friend class Matcher;
  Op* root_ = nullptr;
  std::vector<std::pair<std::string_view, Value*>> bound_;
  std::vector<Op*> ops_;
};

class TENON_API Rewrite {
 public:
  // Returns a value for the root's only result; null cancels the rewrite and removes what was built.
  using BuildFn = std::function<Result<Value*>(Builder&, const Match&)>;
  // Returns one value per result of the root, null for unused ones; an empty vector cancels the rewrite.
  using BuildAllFn = std::function<Result<std::vector<Value*>>(Builder&, const Match&)>;

  explicit Rewrite(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  // The pattern's outermost operator, whose results are replaced.
  Rewrite& match(Pattern root);
  Rewrite& when(std::function<bool(const Match&)> test);
  // Replaces the match by one operator with as many results as the root, their types and names, and the labels of all.
  // Operands are names of values in the pattern.
  Rewrite& into(Name target, std::vector<std::string> operands,
                std::function<Attributes(const Match&)> attributes = {});
  // Replaces it by anything else. The builder is before the root; operators of the match must not be changed or erased.
  Rewrite& with(BuildFn build);
  Rewrite& with_all(BuildAllFn build);

 private:
  friend class Matcher;
  friend class Rewriter;
  std::string name_;
  Pattern root_;
  std::vector<std::function<bool(const Match&)>> tests_;
  BuildAllFn build_;
};

// Applies `rewrites` in all regions until none matches. Operators are tried from the last to the first, so that a large
// pattern has precedence over a small one inside it; for one operator, rewrites are tried in their order.
//
// Every value keeps its meaning and type; outputs keep their names. The operators of a match are erased when they
// become unused, together with what only they used. Nothing moves between regions: the operators of a match are in one
// region; other values may come from anywhere. Errors: a rewrite's own, with its name; a rewrite that builds something
// invalid or of another type; rewrites that undo each other for ever are Code::internal, naming them. The graph is then
// in the state between two rewrites. Roughly linear in the number of operators and of applied rewrites.
TENON_API Result<Change> apply_rewrites(Graph& graph, const std::vector<Rewrite>& rewrites);

// apply_rewrites as a pass.
TENON_API Pass rewrite_pass(std::string name, std::string contract, std::vector<Rewrite> rewrites,
                            std::vector<std::string> needs = {"infer-types"});

}  // namespace tenon
