// Expresses older operators in terms of the newest, by a table of rules, each from one version of an operator to the
// next that differs.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

namespace tenon::onnx {

inline constexpr int64_t kNewestOpset = 28;

// A node before it is added to the graph. A rule changes the name, the operands or the attributes; or it builds the
// results itself, from operators of the newest version, and stores them in `made` (null for unused results).
struct UpgradeNode {
  Name op;
  int64_t version = kNewestOpset;  // of the operator's domain
  std::vector<Value*> operands;
  Attributes attributes;
  size_t results = 1;  // up to the last named one
  size_t outputs = 1;  // that the node lists, named or not
  Builder& builder;
  std::vector<Value*> made = {};

  Value* operand(size_t i) const { return i < operands.size() ? operands[i] : nullptr; }
  template <class T>
  T attr(Name name, T fallback = T()) const {
    const Attribute* found = attributes.find(name);
    const T* value = found ? found->get_if<T>() : nullptr;
    return value ? *value : fallback;
  }
  // Removes and returns the attribute; nullopt when it is absent or of another kind.
  template <class T>
  std::optional<T> take(Name name) {
    const Attribute* found = attributes.find(name);
    const T* value = found ? found->get_if<T>() : nullptr;
    if (!value) return std::nullopt;
    T out = *value;
    attributes.erase(name);
    return out;
  }
  void set_operand(size_t i, Value* value) {
    if (operands.size() <= i) operands.resize(i + 1, nullptr);
    operands[i] = value;
  }
};

// Applies the rules of the node's operator that are newer than its version.
Result<void> upgrade(UpgradeNode& node);
// The newest name of an operator that the newest version lacks (Upsample: Resize); others keep their name.
std::string_view newest_name(std::string_view op);
// Converts attributes that a file states as the number of an element type to types, where the operator's definition
// requires a type; 0 means none.
Result<void> numbers_to_types(Name op, Attributes& attributes);

}  // namespace tenon::onnx
