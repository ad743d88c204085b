#include <tenon/onnx/gradient_internal.hpp>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <tenon/ir/op_def.hpp>

namespace tenon::onnx {
namespace {

// A tensor of ones or zeros with the shape of `like`.
Result<Value*> filled_like(Builder& builder, Value* like, double number) {
  const Type& type = like->type();
  if (!type.is_tensor() || !type.element().is_float()) {
    return error(Code::unsupported, "gradients are of floating-point tensors; %", like->name(), " is ", type);
  }
  TENON_TRY(fill, Tensor::zeros(type.element(), {1}));
  fill.set_double(0, number);
  TENON_TRY(shape, builder.op("Shape", {like}));
  return builder.op("ConstantOfShape", {shape}, {{"value", std::move(fill)}});
}

// The operators between `leaves` and `y`, in order.
Result<std::vector<Op*>> operators_between(const std::unordered_set<const Value*>& leaves, const Value* y) {
  std::vector<Op*> found;
  std::unordered_set<const Op*> seen;
  std::vector<const Value*> todo = {y};
  while (!todo.empty()) {
    const Value* value = todo.back();
    todo.pop_back();
    if (!value || leaves.contains(value) || !value->producer()) continue;
    Op* op = value->producer();
    // Values that a region uses from outside are constants for the gradient inside.
    if (op->parent() != y->region() || !seen.insert(op).second) continue;
    found.push_back(op);
    for (const Value* operand : op->operands()) todo.push_back(operand);
  }
  std::sort(found.begin(), found.end(), [](const Op* a, const Op* b) { return a != b && a->is_before(*b); });
  return found;
}

class ReverseMode {
 public:
  explicit ReverseMode(Builder& builder) : builder_(builder) {}

  // `depends` is extended by the results of the operators that depend on a member.
  Result<void> run(const std::vector<Op*>& between, std::unordered_set<const Value*> depends, Value* y) {
    for (const Op* op : between) {
      const auto operands = op->operands();
      if (std::none_of(operands.begin(), operands.end(),
                       [&](const Value* operand) { return depends.contains(operand); }))
        continue;
      for (size_t i = 0; i < op->result_count(); ++i) depends.insert(op->result(i));
    }
    TENON_TRY(seed, filled_like(builder_, y, 1));
    of_[y] = seed;
    for (auto at = between.rbegin(); at != between.rend(); ++at) {
      if (depends.contains((*at)->result_count() ? (*at)->result() : nullptr))
        TENON_OK(step(**at, depends), "the gradient of ", (*at)->describe());
    }
    return {};
  }

  Result<Value*> of(Value* x) {
    if (const auto found = of_.find(x); found != of_.end()) return found->second;
    return filled_like(builder_, x, 0);
  }

 private:
  Result<void> step(const Op& op, const std::unordered_set<const Value*>& depends) {
    std::vector<Value*> results(op.result_count(), nullptr);
    bool any = false;
    for (size_t i = 0; i < results.size(); ++i) {
      const auto found = of_.find(op.result(i));
      if (found == of_.end()) continue;
      results[i] = found->second;
      any = true;
    }
    if (!any) return {};
    const OpDef* def = op.def();
    if (!def || !def->gradient_fn() || op.region_count() > 0)
      return error(Code::unsupported, "operator '", op.name(), "' has no gradient rule");
    TENON_TRY(operands, def->gradient_fn()(builder_, op, results));
    for (size_t i = 0; i < operands.size() && i < op.operand_count(); ++i) {
      if (!operands[i] || !depends.contains(op.operand(i))) continue;
      Value*& sum = of_[op.operand(i)];
      if (!sum) {
        sum = operands[i];
        continue;
      }
      TENON_TRY(more, builder_.op("Add", {sum, operands[i]}));
      sum = more;
    }
    return {};
  }

  Builder& builder_;
  std::unordered_map<const Value*, Value*> of_;
};

}  // namespace

Result<std::vector<Value*>> expand_gradient(Builder& builder, std::span<Value* const> xs,
                                            std::span<Value* const> constants, Value* y, std::span<Value* const> at) {
  std::vector<Value*> leaves(xs.begin(), xs.end());
  leaves.insert(leaves.end(), constants.begin(), constants.end());
  if (at.size() != leaves.size()) {
    return error(Code::invalid_argument, at.size(), " operands for ", xs.size(), " names in 'xs' and ",
                 constants.size(), " in 'zs'");
  }
  TENON_TRY(between, operators_between({leaves.begin(), leaves.end()}, y));
  // At other values than those in the graph: a copy of the operators on these values. They may also be constants of the
  // copy, so the variables are separate values.
  std::vector<Value*> variables(leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(xs.size()));
  if (!std::equal(leaves.begin(), leaves.end(), at.begin())) {
    ValueMap copies;
    for (size_t i = 0; i < leaves.size(); ++i) {
      TENON_TRY(own, builder.op("Identity", {at[i]}));
      copies[leaves[i]] = own;
      if (i < xs.size()) variables[i] = own;
    }
    for (Op*& op : between) op = &clone_op(*op, builder.region(), nullptr, copies);
    if (const auto found = copies.find(y); found != copies.end()) y = found->second;
  }
  ReverseMode reverse(builder);
  TENON_OK(reverse.run(between, {variables.begin(), variables.end()}, y));
  std::vector<Value*> out;
  for (Value* variable : variables) {
    TENON_TRY(gradient, reverse.of(variable));
    // Each result keeps a value, and therefore a name, of its own.
    if (std::find(out.begin(), out.end(), gradient) != out.end()) {
      TENON_TRY(copy, builder.op("Identity", {gradient}));
      gradient = copy;
    }
    out.push_back(gradient);
  }
  return out;
}

}  // namespace tenon::onnx
