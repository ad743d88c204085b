// What is known about an operator statically, and whether its shape rule asked for anything that is not.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <tenon/ir/infer.hpp>

namespace tenon {

class AskedContext final : public StaticInferContext {
 public:
  // A value counts as known when each of its dims is, as defined by `tells`: &Dim::known, or &Dim::is_static.
  using Tells = bool (Dim::*)() const;
  AskedContext(const Op& op, const TypeSource& source, Tells tells) : StaticInferContext(op, source), tells_(tells) {}

  const Tensor* constant(size_t i) const override {
    const Tensor* told = StaticInferContext::constant(i);
    note(i, told != nullptr);
    return told;
  }
  std::optional<std::vector<Dim>> dims_value(size_t i) const override {
    auto told = StaticInferContext::dims_value(i);
    note(i, told && std::ranges::all_of(*told, tells_));
    return told;
  }
  // The first operand whose value the rule asked for without getting it. A rule may ask in both ways; one answer is
  // enough.
  std::optional<size_t> missing() const {
    for (const auto& [operand, told] : asked_)
      if (!told) return operand;
    return std::nullopt;
  }

 private:
  void note(size_t i, bool told) const {
    if (has_operand(i)) asked_[i] = asked_[i] || told;
  }
  Tells tells_;
  mutable std::map<size_t, bool> asked_;  // operand -> whether its value was known
};

}  // namespace tenon
