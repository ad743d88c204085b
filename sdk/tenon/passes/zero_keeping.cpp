#include <tenon/passes/zero_keeping.hpp>

#include <algorithm>

#include <tenon/reference/interpreter.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

std::string key_of(const Op& op, const std::vector<const Tensor*>& known) {
  std::string key = str(op.name(), " ", op.result_count());
  for (const auto& [name, attribute] : op.attributes()) key += str(" ", name, "=", attribute.hash());
  for (size_t i = 0; i < op.operand_count(); ++i) {
    key += op.operand(i) ? str(" ", op.operand(i)->type().element()) : " _";
    if (known[i]) key.append(reinterpret_cast<const char*>(known[i]->data()), known[i]->bytes());
  }
  return key;
}

bool is_all_zero(const Tensor& tensor) {
  return std::all_of(tensor.data(), tensor.data() + tensor.bytes(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

bool gives_zero(const Op& op, const std::vector<const Tensor*>& known) {
  std::vector<Datum> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!op.operand(i)) {
      operands.emplace_back();
      continue;
    }
    auto zero = known[i] ? known[i]->reshaped(Dims()) : Tensor::zeros(op.operand(i)->type().element(), Dims());
    if (!zero.ok()) return false;
    operands.emplace_back(*std::move(zero));
  }
  const auto results = evaluate(op.name(), std::move(operands), op.attributes(), op.result_count());
  return results.ok() && std::all_of(results->begin(), results->end(), [](const Datum& result) {
           return result.is_tensor() && is_all_zero(result.tensor());
         });
}

}  // namespace

bool ZeroKeeping::keeps(const Op& op, const std::vector<const Tensor*>& known) {
  const auto [answer, added] = answers_.try_emplace(key_of(op, known), false);
  if (added) answer->second = gives_zero(op, known);
  return answer->second;
}

}  // namespace tenon
