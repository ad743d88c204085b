#include <tenon-ext/dma/operators.hpp>

#include <tenon/ir/op_def.hpp>

#include <tenon-ext/dma/part_internal.hpp>

namespace tenon::dma {
namespace {

Result<std::vector<Type>> results_of(const InferContext& context, Type data) {
  std::vector<Type> types{std::move(data)};
  if (context.op().result_count() > 1) types.push_back(Type(kBool, Shape(Dims())));
  return types;
}

Result<std::vector<Type>> infer_load(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(shape, loaded_shape(context.op(), x.shape));
  return results_of(context, Type(x.element, std::move(shape)));
}

Result<std::vector<Type>> infer_store(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  if (!context.has_operand(1)) return results_of(context, Type(x.element, std::move(x.shape)));
  TENON_TRY(into, context.tensor(1));
  TENON_OK(check_stored_part(context.op(), x.shape, into.shape));
  return results_of(context, Type(into.element, std::move(into.shape)));
}

// Checks that only the wait for this transfer reads the result, if there is a token.
Result<void> verify_users(const Op& op) {
  if (op.result_count() < 2) return {};
  for (const Use* use : op.result(0)->uses()) {
    const Op& user = *use->user();
    if (isa<Wait>(user) && use->index() == 0 && user.operand(1) == op.result(1)) continue;
    return error(Code::invalid_argument, user.describe(), " reads the result of ", op.describe(),
                 " before the transfer is over; let it read the dma.wait for its token");
  }
  return {};
}

Result<void> verify_transfer(const Op& op) {
  const auto from = op.attr<std::string>("from"), to = op.attr<std::string>("to");
  if (from.empty() || to.empty() || from == to) {
    return error(Code::invalid_argument, op.describe(), " goes from memory ", quote(from), " to memory ", quote(to),
                 "; it needs two that differ");
  }
  for (const std::string_view name : {"slot", "at"})
    if (const auto value = op.attr<int64_t>(Name(name), 0); value < 0)
      return error(Code::invalid_argument, op.describe(), " has the ", name, " ", value, ", which is negative");
  return verify_users(op);
}

Result<void> verify_wait(const Op& op) {
  const Op* transfer = op.operand(0) ? op.operand(0)->producer() : nullptr;
  const bool has_token = transfer && (isa<Load>(transfer) || isa<Store>(transfer)) && transfer->result_count() > 1;
  if (has_token && op.operand(0) == transfer->result(0) && op.operand(1) == transfer->result(1)) return {};
  return error(Code::invalid_argument, op.describe(),
               " must wait for data and token of one dma.load or dma.store, in this order");
}

Result<std::vector<Type>> infer_alloc(const InferContext& context) {
  Type declared = context.declared(0);
  if (declared.is_tensor() && declared.shape().ranked()) return std::vector<Type>{std::move(declared)};
  return error(Code::invalid_argument, context.op().describe(), " states no type of the tensor that it makes");
}

Result<std::vector<Value*>> decompose_wait(Builder& builder, const Op& op) {
  TENON_TRY(data, builder.op("Identity", {op.operand(0)}));
  return std::vector<Value*>{data};
}

OpDef transfer(std::string_view name) {
  OpDef def{Name(name)};
  def.operand("x", "T")
      .types("T", kAnyTensor)
      .required_attribute("from", AttributeKind::text)
      .required_attribute("to", AttributeKind::text)
      .optional_attribute("begin", AttributeKind::integers)
      .optional_attribute("slot", AttributeKind::integer)
      .optional_attribute("at", AttributeKind::integer)
      .traits(Trait::pure | Trait::movement | Trait::layout_aware)
      .verify(verify_transfer);
  return def;
}

OpDef load() {
  OpDef def = transfer(Load::kName);
  def.summary("y = x, or a part of it with zeros around, in memory `to`; starts when all of `after` are done")
      .variadic_operands("after", "bool", 0)
      .result("y", "T")
      .result("token", "bool", Arity::optional)
      .optional_attribute("extent", AttributeKind::integers)
      .optional_attribute("steps", AttributeKind::integers)
      .optional_attribute("pads", AttributeKind::integers)
      .infer(infer_load)
      .decompose(decompose_load);
  return def;
}

OpDef store() {
  OpDef def = transfer(Store::kName);
  def.summary("y = x in memory `to`, or `into` with x from `begin` on; starts when all of `after` are done")
      .optional_operand("into", "T")
      .variadic_operands("after", "bool", 0)
      .result("y", "T")
      .result("token", "bool", Arity::optional)
      .infer(infer_store)
      .decompose(decompose_store);
  return def;
}

const OpRegistration kOperatorsRegistered({
    load(),
    store(),
    OpDef(Wait::kName)
        .summary("y = the data of a transfer, once its token is done")
        .operand("data", "T")
        .operand("token", "bool")
        .result("y", "T")
        .types("T", kAnyTensor)
        .traits(Trait::pure | Trait::movement | Trait::layout_aware)
        .infer(same_as_operand(0))
        .verify(verify_wait)
        .decompose(decompose_wait),
    OpDef(Alloc::kName)
        .summary("y = a tensor of its declared type in `memory`, whose elements are not defined before they are stored")
        .result("y", "T")
        .types("T", kAnyTensor)
        .required_attribute("memory", AttributeKind::text)
        .traits(Trait::none)
        .infer(infer_alloc)
        .decompose(decompose_alloc),
});

}  // namespace
}  // namespace tenon::dma
