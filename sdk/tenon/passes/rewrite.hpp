// Declarative rewrites: which operators to look for, and what takes their place.
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
// A rewrite says what; the framework finds it, and sees to uses, types, names, labels, and what is left over.
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

// What a value must be. Patterns are values: parts may be named and used in several.
class TENON_API Pattern {
 public:
  using Test = std::function<bool(const Value&)>;

  // Gives the value a name, for Match. A name that stands twice must be the same value both times.
  Pattern as(std::string name) &&;
  // The operand may also be absent (bound as null).
  Pattern optional() &&;
  // The operator's results may have other users too, and stay for them. The rule is: one use, by the operator above it
  // in the pattern, and none as an output or by a region.
  Pattern shared() &&;
  // Its two operands in either order; the rule is what the operator's trait `commutative` says.
  Pattern in_any_order() &&;
  Pattern in_order() &&;
  // Further operands may follow, whatever they are; the rule is that they must be absent.
  Pattern and_more() &&;
  // Result `i` of the operator; the rule is 0, with all other results unused.
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
// Every value.
TENON_API Pattern any(std::string name = "");
// The result of a Constant, wherever it stands.
TENON_API Pattern constant(std::string name = "");
// The result of an operator of one of these names on these operands, in the region of the pattern's root.
TENON_API Pattern op(Name name, std::vector<Pattern> operands);
TENON_API Pattern op(std::initializer_list<Name> names, std::vector<Pattern> operands);
// The same for a list that is made at run time: all operators of a trait.
TENON_API Pattern op_among(std::vector<Name> names, std::vector<Pattern> operands);
// The first alternative that fits, and with which the rest fits: one_of({op("Relu", {sum}), sum}).
TENON_API Pattern one_of(std::vector<Pattern> alternatives);
}  // namespace pattern

// What was found. Good until the graph changes.
class TENON_API Match {
 public:
  Op& root() const { return *root_; }
  bool has(std::string_view name) const;  // bound, and not absent
  // By the names of the pattern; a name that it does not have is a fault of the program. Null: absent.
  Value* value(std::string_view name) const;
  Op& op(std::string_view name) const;  // the operator that makes the value
  const Tensor& constant(std::string_view name) const;
  // The operators that the pattern names, the root first; constants are not among them.
  const std::vector<Op*>& ops() const { return ops_; }
  // Labels of the operators, first to last: "conv1+relu1".
  std::string joined_label() const;

 private:
  friend class Matcher;
  Op* root_ = nullptr;
  std::vector<std::pair<std::string_view, Value*>> bound_;
  std::vector<Op*> ops_;
};

class TENON_API Rewrite {
 public:
  // One value for the root's one result; null: not after all, and what was built is taken back.
  using BuildFn = std::function<Result<Value*>(Builder&, const Match&)>;
  // One value per result of the root, null where nobody uses it; none at all: not after all.
  using BuildAllFn = std::function<Result<std::vector<Value*>>(Builder&, const Match&)>;

  explicit Rewrite(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  // The pattern's outermost operator, whose results are replaced.
  Rewrite& match(Pattern root);
  Rewrite& when(std::function<bool(const Match&)> test);
  // One operator with the root's number of results, their types and names, and the labels of all. Operands are the
  // names of values in the pattern.
  Rewrite& into(Name target, std::vector<std::string> operands,
                std::function<Attributes(const Match&)> attributes = {});
  // Anything else. The builder stands before the root; operators of the match must not be changed or erased.
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

// Applies `rewrites` in all regions until none fits. Operators are tried from the last to the first, so that a large
// pattern takes what a small one would take out of its middle; at one operator the rewrites are tried in their order.
//
// Every value keeps its meaning and type; outputs keep their names. The operators of a match go when they have no uses
// left, and with them what only they used. Nothing moves from one region to another: the operators of a match are in
// one region; other values come from anywhere. Errors: a rewrite's own, with its name; a rewrite that builds what
// cannot be, or another type; rewrites that undo each other for ever are Code::internal, naming them. The graph is left
// between two rewrites then. About linear in the operators and the rewrites done.
TENON_API Result<Change> apply_rewrites(Graph& graph, const std::vector<Rewrite>& rewrites);

// A pass that does that.
TENON_API Pass rewrite_pass(std::string name, std::string contract, std::vector<Rewrite> rewrites,
                            std::vector<std::string> needs = {"infer-types"});

}  // namespace tenon
