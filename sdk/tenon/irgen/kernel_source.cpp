#include <tenon/irgen/kernel_source.hpp>

#include <algorithm>

#include <tenon/ir/builder.hpp>
#include <tenon/irgen/dims.hpp>

namespace tenon::irgen {
namespace {

bool has_static_shape(const Type& type) { return !type.is_tensor() || type.shape().is_static(); }

}  // namespace

KernelSource::~KernelSource() = default;
std::optional<size_t> KernelSource::late_operand(const Op&) const { return std::nullopt; }

bool KernelRequest::is_static() const {
  return std::ranges::all_of(operands, has_static_shape) && std::ranges::all_of(results, has_static_shape);
}

KernelRequest request_for(const Op& op, const TypeSource& types) {
  KernelRequest request{.op = op, .operands = {}, .results = {}};
  request.operands.reserve(op.operand_count());
  request.results.reserve(op.result_count());
  for (size_t i = 0; i < op.operand_count(); ++i)
    request.operands.push_back(op.operand(i) ? types.type_of(*op.operand(i)) : Type());
  for (size_t i = 0; i < op.result_count(); ++i) request.results.push_back(types.type_of(*op.result(i)));
  return request;
}

namespace {

// Derives the results by applying the operator's own shape rule to the crops. A pool that rounds up may have a last
// window that no crop can have.
Result<void> infer_results(KernelRequest& request) {
  Graph graph("part");
  Region& body = graph.body();
  std::vector<Value*> operands;
  Builder builder(body);
  for (size_t i = 0; i < request.operands.size(); ++i) {
    const auto replaced = request.part->replaced.find(i);
    const bool is_constant = replaced != request.part->replaced.end();
    const Tensor* constant = is_constant             ? &replaced->second
                             : request.op.operand(i) ? constant_of(request.op.operand(i))
                                                     : nullptr;
    if (constant && Shape(constant->dims()) == request.operands[i].shape())
      operands.push_back(builder.constant(*constant));
    else
      operands.push_back(request.passes(i) ? body.add_input(str("operand", i), request.operands[i]) : nullptr);
  }
  Op& op = body.create(request.op.name(), operands, std::vector<Type>(request.results.size()), request.attributes());
  const TypeSource types;
  TENON_TRY(inferred, infer_types(StaticInferContext(op, types)));
  inferred.resize(request.results.size());  // rules give types for optional results, too
  request.results = std::move(inferred);
  return {};
}

}  // namespace

Result<KernelRequest> request_for_part(const Op& op, const SubBoxOp& part, const StaticBox& box, size_t result,
                                       const TypeSource& types) {
  KernelRequest request = request_for(op);
  request.part = &part;
  request.operands.resize(std::max(request.operands.size(), part.operands.size()));
  for (size_t i = 0; i < part.operands.size(); ++i) {
    if (!op.operand(i) || !types.type_of(*op.operand(i)).is_tensor()) continue;
    request.operands[i] = Type(types.type_of(*op.operand(i)).element(), Shape(extents_of(part.operands[i])));
  }
  for (const auto& [i, tensor] : part.replaced) {
    if (i >= request.operands.size()) request.operands.resize(i + 1);
    request.operands[i] = Type(tensor.type());
  }
  const Type wanted(types.type_of(*op.result(result)).element(), Shape(extents_of(box)));
  TENON_OK(infer_results(request));
  for (const Type& type : request.results)
    if (!type.is_tensor() || !type.shape().is_static())
      return error(Code::unsupported, "the part of ", op.describe(), " has a result of type ", type);
  if (request.results[result] == wanted) return request;
  return error(Code::unsupported, "the part of ", op.describe(), " has the type ", request.results[result],
               " in place of ", wanted);
}

}  // namespace tenon::irgen
