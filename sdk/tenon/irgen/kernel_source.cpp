#include <tenon/irgen/kernel_source.hpp>

#include <algorithm>

namespace tenon::irgen {
namespace {

bool has_static_shape(const Type& type) { return !type.is_tensor() || type.shape().is_static(); }

Dims extents_of(const StaticBox& box) {
  Dims dims;
  for (const StaticRange& range : box) dims.push_back(range.extent());
  return dims;
}

}  // namespace

KernelSource::~KernelSource() = default;
std::optional<size_t> KernelSource::late_operand(const Op&) const { return std::nullopt; }

bool KernelRequest::is_static() const {
  return std::ranges::all_of(operands, has_static_shape) && std::ranges::all_of(results, has_static_shape);
}

KernelRequest request_for(const Op& op) {
  KernelRequest request{.op = op, .operands = {}, .results = {}};
  for (size_t i = 0; i < op.operand_count(); ++i)
    request.operands.push_back(op.operand(i) ? op.operand(i)->type() : Type());
  for (size_t i = 0; i < op.result_count(); ++i) request.results.push_back(op.result(i)->type());
  return request;
}

Result<KernelRequest> request_for_part(const Op& op, const SubBoxOp& part, const StaticBox& box) {
  if (op.result_count() != 1)
    return error(Code::unsupported, op.describe(), " has ", op.result_count(), " results, parts have one");
  KernelRequest request = request_for(op);
  request.part = &part;
  request.operands.resize(std::max(request.operands.size(), part.operands.size()));
  for (size_t i = 0; i < part.operands.size(); ++i) {
    if (!op.operand(i) || !op.operand(i)->type().is_tensor()) continue;
    request.operands[i] = Type(op.operand(i)->type().element(), Shape(extents_of(part.operands[i])));
  }
  for (const auto& [i, tensor] : part.replaced) {
    if (i >= request.operands.size()) request.operands.resize(i + 1);
    request.operands[i] = Type(tensor.type());
  }
  request.results[0] = Type(op.result()->type().element(), Shape(extents_of(box)));
  return request;
}

}  // namespace tenon::irgen
