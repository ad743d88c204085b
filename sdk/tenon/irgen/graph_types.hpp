// What a program may rely on: the types of a graph's values that follow from its inputs and constants by the operators'
// own rules, and which operators a program can say.
//
// What a model declares of inner values is not trusted, with one exception: values that the host makes on the way (a
// data-dependent shape, the result of a loop) are taken as declared, dims that are not numbers as symbols of their own.
// A run holds them against what was made before any program sees them (graph_runner.hpp).
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/irgen/name_table.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/pointer_map.hpp>

namespace tenon::irgen {

// The graph is verified, and outlives this.
class TENON_API GraphTypes final : public TypeSource {
 public:
  static GraphTypes of(const Graph& graph);

  // Unknown where nothing is trusted. Symbols are names of scalars of a program: is_name() of program/ir/text.hpp.
  const Type& type_of(const Value& value) const override;
  // Why no program has the operator, "" when one can: regions, types that only a run shows, elements that do not fill
  // bytes, layouts. Kernels are not asked. Of operators of the body.
  const std::string& why_not(const Op& op) const;
  // Names that symbols have; a program's buffers have others.
  const NameTable& names() const { return names_; }

 private:
  Type boundary(const Type& type);
  Dim boundary_dim(const Dim& dim);
  const std::string& symbol(const std::string& text);
  std::string visit(const Op& op);
  std::string infer(const Op& op, std::vector<Type>& types) const;

  PointerMap<Value, Type> types_;
  std::unordered_map<const Op*, std::string> why_not_;
  std::unordered_map<std::string, std::string> symbols_;  // text -> name
  NameTable names_;
};

// May a buffer hold it: a tensor of byte-addressable elements, of known rank and extents?
TENON_API bool fits_buffer(const Type& type);

}  // namespace tenon::irgen
