// What a program may rely on: the types of a graph's values that follow from its inputs and constants by the operators'
// own rules, and which operators a program can express.
//
// Types that a model declares for inner values are not trusted, with one exception: values that the host computes on
// the way (a data-dependent shape, the result of a loop) are taken as declared, where dims that are not numbers become
// symbols of their own. A run checks such values against the declarations before a program uses them
// (graph_runner.hpp).
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

// The graph is verified, and must outlive this object.
class TENON_API GraphTypes final : public TypeSource {
 public:
  static GraphTypes of(const Graph& graph);

  // Unknown where nothing is trusted. Symbols are names of a program's scalars: is_name() of program/ir/text.hpp.
  const Type& type_of(const Value& value) const override;
  // Why no program can express the operator, "" when one can: regions, types known only to a run, elements that are not
  // whole bytes, layouts. Kernels are not asked. For operators of the body.
  const std::string& why_not(const Op& op) const;
  // Names of symbols; buffers of a program get different names.
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

// Whether a buffer can hold it: a tensor of byte-addressable elements, of known rank and extents.
TENON_API bool fits_buffer(const Type& type);

}  // namespace tenon::irgen
