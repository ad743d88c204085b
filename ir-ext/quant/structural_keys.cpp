#include <map>

#include <tenon-ext/quant/profile.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/support/hash.hpp>
#include <tenon/support/str.hpp>

namespace tenon::quant {
namespace {

// Fewer numbers than this are parameters (bounds of a Clip, axes, a shape), not weights that distinguish operators.
constexpr int64_t kFewNumbers = 8;

bool is_weights(const Tensor& tensor) { return tensor.element().is_float() && tensor.size() >= kFewNumbers; }

uint64_t hash_constant(const Tensor& tensor, uint64_t state) {
  // Shapes contain the batch size.
  if (tensor.element() == kI64) return hash_mix(state, 1);
  return hash_bytes({tensor.data(), tensor.bytes()}, hash_mix(state, fnv1a(tensor.type().to_string())));
}

std::string hex(uint64_t number) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; number >>= 4) out[i] = kDigits[number & 15];
  return out;
}

class Keys {
 public:
  explicit Keys(const Graph& graph, const std::unordered_map<size_t, std::string>& inputs) {
    const Region& body = graph.body();
    for (size_t i = 0; i < body.input_count(); ++i) {
      const auto given = inputs.find(i);
      keys_[body.input(i)] =
          given == inputs.end() ? unique(str("input-", hex(of_input(*body.input(i))))) : given->second;
    }
    for (const Op& op : body) {
      if (!isa<Constant>(op)) add(op);
    }
  }
  std::unordered_map<const Value*, std::string> take() { return std::move(keys_); }

 private:
  // Element type and all extents except the batch size.
  static uint64_t of_input(const Value& value) {
    const Type& type = value.type();
    if (!type.is_tensor()) return 0;
    uint64_t state = fnv1a(type.element().to_string());
    for (size_t d = 1; type.shape().ranked() && d < type.shape().dims().size(); ++d) {
      state = fnv1a(str(type.shape()[d]), state);
    }
    return state;
  }

  static bool has_weights(const Op& op) {
    for (const Value* operand : op.operands()) {
      const Tensor* tensor = constant_of(operand);
      if (tensor && is_weights(*tensor)) return true;
    }
    return false;
  }

  void add(const Op& op) {
    uint64_t state = fnv1a(op.name().str());
    for (const auto& [name, attribute] : op.attributes()) {
      state = hash_mix(fnv1a(name.str(), state), attribute.hash());
    }
    const bool anchored = has_weights(op);
    for (const Value* operand : op.operands()) {
      const Tensor* tensor = constant_of(operand);
      if (tensor) state = hash_constant(*tensor, state);
      if (const auto known = keys_.find(operand); !anchored && known != keys_.end())
        state = fnv1a(known->second, state);
    }
    for (size_t i = 0; i < op.result_count(); ++i) {
      keys_[op.result(i)] = unique(str(op.name(), "-", hex(hash_mix(state, i))));
    }
  }

  // Distinguishes weights that are used twice by their order.
  std::string unique(std::string key) {
    const int times = ++seen_[key];
    return times == 1 ? key : str(key, "#", times);
  }

  std::unordered_map<const Value*, std::string> keys_;
  std::map<std::string, int> seen_;
};

}  // namespace

std::unordered_map<const Value*, std::string> structural_keys(const Graph& graph,
                                                              const std::unordered_map<size_t, std::string>& inputs) {
  return Keys(graph, inputs).take();
}

}  // namespace tenon::quant
