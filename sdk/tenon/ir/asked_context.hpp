// What can be told of an operator without a run, and whether that was all that its shape rule wanted to know.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <tenon/ir/infer.hpp>

namespace tenon {

class AskedContext final : public StaticInferContext {
 public:
  // A value is told when each of its dims is, as `tells` sees it: &Dim::known, or &Dim::is_static.
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
  // The first operand whose value was asked for and could not be told. A rule may ask in both ways; one answer will do.
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
  mutable std::map<size_t, bool> asked_;  // operand -> told
};

}  // namespace tenon
