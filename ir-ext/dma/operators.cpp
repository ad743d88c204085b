#include <tenon-ext/dma/operators.hpp>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/constant.hpp>

namespace tenon::dma {
namespace {

Result<std::vector<Type>> infer_transfer(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  return std::vector<Type>{Type(x.element, std::move(x.shape)), Type(kBool, Shape(Dims()))};
}

// Read by nobody but the wait for this transfer.
Result<void> verify_users(const Op& op) {
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
  return verify_users(op);
}

Result<void> verify_wait(const Op& op) {
  const Op* transfer = op.operand(0) ? op.operand(0)->producer() : nullptr;
  const bool is_transfer = transfer && (isa<Load>(transfer) || isa<Store>(transfer));
  if (is_transfer && op.operand(0) == transfer->result(0) && op.operand(1) == transfer->result(1)) return {};
  return error(Code::invalid_argument, op.describe(),
               " must wait for data and token of one dma.load or dma.store, in this order");
}

Result<std::vector<Value*>> decompose_transfer(Builder& builder, const Op& op) {
  TENON_TRY(moved, builder.op(Identity::name(), {op.operand(0)}));
  return std::vector<Value*>{moved, builder.constant_scalar(kBool, 1)};
}
Result<std::vector<Value*>> decompose_wait(Builder& builder, const Op& op) {
  TENON_TRY(data, builder.op(Identity::name(), {op.operand(0)}));
  return std::vector<Value*>{data};
}

OpDef transfer(std::string_view name) {
  OpDef def{Name(name)};
  def.operand("x", "T")
      .variadic_operands("after", "bool", 0)
      .result("y", "T")
      .result("token", "bool")
      .types("T", kAnyTensor)
      .required_attribute("from", AttributeKind::text)
      .required_attribute("to", AttributeKind::text)
      .traits(Trait::pure | Trait::movement | Trait::layout_aware)
      .infer(infer_transfer)
      .verify(verify_transfer)
      .decompose(decompose_transfer);
  return def;
}

const OpRegistration kRegistered({
    transfer(Load::kName).summary("y = x in memory `to`, once the token is done; starts when all of `after` are"),
    transfer(Store::kName).summary("y = x in memory `to`, once the token is done; starts when all of `after` are"),
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
});

}  // namespace
}  // namespace tenon::dma
