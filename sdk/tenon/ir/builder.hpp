// Builder: creates operators at one place of a region; types are inferred by the operators' own rules.
//
//   Builder b(graph.body());
//   TENON_TRY(y, b.op("Conv", {x, w}, {{"strides", Attribute::Integers{2, 2}}}));
//   TENON_TRY(z, b.op("Relu", {y}));
#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

class TENON_API Builder {
 public:
  // At the end of `region`, or before `before`.
  explicit Builder(Region& region, Op* before = nullptr) : region_(&region), before_(before) {}

  Region& region() const { return *region_; }
  // Prefix for the names of the created values, such as the label of the operator that is being rewritten.
  void set_name_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  // For operators with one result. Errors: unknown operator, wrong operands or attributes, an impossible shape.
  Result<Value*> op(Name name, std::initializer_list<Value*> operands, Attributes attributes = {});
  Result<Value*> op(Name name, std::span<Value* const> operands, Attributes attributes = {});
  // For operators with `results` results.
  Result<std::vector<Value*>> ops(Name name, std::span<Value* const> operands, size_t results,
                                  Attributes attributes = {});
  // For operators with regions: created without inference; fill the regions, then call infer_result_types(op).
  Op& create(Name name, std::span<Value* const> operands, size_t results, Attributes attributes = {});

  // Puts `value` into this layout (see set_layout() in value_layout.hpp) and returns it.
  Result<Value*> layout(Value* value, std::string_view text, std::string_view dims = "");

  Value* constant(Tensor value, std::string name = "");
  Value* constant_ints(const std::vector<int64_t>& values);  // i64[n]
  Value* constant_int(int64_t value);                        // i64[]
  // A scalar of `element`, converted from double.
  Value* constant_scalar(ElementType element, double value);

 private:
  Region* region_;
  Op* before_;
  std::string prefix_;
};

// Runs the operator's shape rule with what is known statically and sets the types of its results, merged with the
// declared ones (see infer_types(op)). Errors name the operator; a missing definition is an error.
TENON_API Result<void> infer_result_types(Op& op);

// The tensor of the Constant that produces `value`, else null.
TENON_API const Tensor* constant_of(const Value* value);
// The elements of a constant integer tensor.
TENON_API std::optional<std::vector<int64_t>> constant_ints_of(const Value* value);

}  // namespace tenon
