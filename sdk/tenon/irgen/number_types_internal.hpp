// Inside the room: the types of a graph in one run.
#pragma once
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/irgen/graph_types.hpp>

namespace tenon::irgen::detail {

// Symbols are replaced by their numbers; those without one stay. Not thread-safe.
class NumberTypes final : public TypeSource {
 public:
  NumberTypes(const GraphTypes& types, const SymbolValues& scalars) : types_(types), scalars_(scalars) {}

  const Type& type_of(const Value& value) const override {
    const auto [known, fresh] = made_.try_emplace(&value);
    if (fresh) known->second = with_numbers(types_.type_of(value));
    return known->second;
  }

 private:
  Type with_numbers(const Type& type) const {
    if (!type.is_tensor() || !type.shape().ranked() || type.shape().is_static()) return type;
    std::vector<Dim> dims;
    for (const Dim& dim : type.shape().dims()) {
      const auto extent = dim.known() ? dim.expr().evaluate(scalars_) : Result<int64_t>(error(Code::not_found, "?"));
      dims.push_back(extent.ok() ? Dim(*extent) : dim);
    }
    return Type(type.element(), Shape(std::move(dims)));
  }

  const GraphTypes& types_;
  const SymbolValues& scalars_;
  mutable std::unordered_map<const Value*, Type> made_;
};

}  // namespace tenon::irgen::detail
