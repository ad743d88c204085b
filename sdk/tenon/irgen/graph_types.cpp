#include <tenon/irgen/graph_types.hpp>

#include <algorithm>
#include <optional>

#include <tenon/ir/asked_context.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/program/ir/kernel.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>

namespace tenon::irgen {
namespace {

bool known(const std::vector<Dim>& dims) { return std::ranges::all_of(dims, &Dim::known); }

std::string what_does_not_fit(const Type& type) {
  if (!type.is_tensor()) return type.known() ? str("is a ", type, ", no tensor") : "has no type before a run";
  if (!type.element().valid()) return "has no element type before a run";
  if (type.element().is_string() || !type.element().byte_addressable())
    return str("has elements of ", type.element(), ", which do not fill 1, 2, 4, 8 or 16 bytes");
  if (!type.shape().ranked()) return "has no rank before a run";
  if (type.shape().rank() > program::kMaxRank) return str("has rank ", type.shape().rank());
  return known(type.shape().dims()) ? "" : str("has a shape that only a run shows: ", type.shape().to_string());
}

}  // namespace

bool fits_buffer(const Type& type) { return what_does_not_fit(type).empty(); }

GraphTypes GraphTypes::of(const Graph& graph) {
  GraphTypes types;
  const Region& body = graph.body();
  size_t values = body.input_count();
  for (const Op& op : body) values += op.result_count();
  types.types_.reserve(values);  // type_of() returns references
  for (size_t i = 0; i < body.input_count(); ++i) types.types_[body.input(i)] = types.boundary(body.input(i)->type());
  for (const Op& op : body)
    if (std::string reason = types.visit(op); !reason.empty()) types.why_not_.emplace(&op, std::move(reason));
  return types;
}

const Type& GraphTypes::type_of(const Value& value) const {
  static const Type unknown;
  const Type* const found = types_.find(&value);
  return found ? *found : unknown;
}

const std::string& GraphTypes::why_not(const Op& op) const {
  static const std::string none;
  const auto found = why_not_.find(&op);
  return found == why_not_.end() ? none : found->second;
}

const std::string& GraphTypes::symbol(const std::string& text) {
  const auto [entry, fresh] = symbols_.try_emplace(text);
  if (fresh) entry->second = names_.fresh(text);
  return entry->second;
}

Dim GraphTypes::boundary_dim(const Dim& dim) {
  if (dim.is_static()) return dim;
  if (!dim.known()) return Expr::symbol(names_.fresh("n"));
  Substitution names;
  bool all_known = true;
  for (const std::string& s : dim.expr().symbols()) {
    all_known = all_known && (dim.expr().is_symbol() || symbols_.contains(s));
    if (all_known) names.emplace(s, Expr::symbol(symbol(s)));
  }
  return all_known ? dim.expr().substitute(names) : Expr::symbol(symbol(dim.to_string()));
}

// For a value that is computed outside of any program.
Type GraphTypes::boundary(const Type& type) {
  if (!type.is_tensor() || !type.element().valid() || !type.shape().ranked()) return type;
  std::vector<Dim> dims;
  for (const Dim& dim : type.shape().dims()) dims.push_back(boundary_dim(dim));
  return Type(type.element(), Shape(std::move(dims)));
}

std::string GraphTypes::visit(const Op& op) {
  if (isa<Constant>(op)) {
    types_[op.result()] = Type(constant_of(op.result())->type());
    return what_does_not_fit(types_[op.result()]);
  }
  std::vector<Type> inferred;
  std::string reason = infer(op, inferred);
  for (size_t i = 0; i < op.result_count(); ++i) {
    const bool told = i < inferred.size() && inferred[i].is_tensor() && inferred[i].shape().ranked();
    Type type = told ? std::move(inferred[i]) : op.result(i)->type();
    types_[op.result(i)] = reason.empty() ? std::move(type) : boundary(type);
  }
  return reason;
}

// Fills in the types that follow from the shape rule.
std::string GraphTypes::infer(const Op& op, std::vector<Type>& types) const {
  // A snippet is one kernel, whatever its region contains.
  if (op.region_count() > 0 && !isa<snippet::Subgraph>(op)) return "it runs graphs of its own";
  const OpDef* def = op.def();
  if (!def || !def->infer_fn()) return "it has no definition";
  const AskedContext context(op, *this, &Dim::known);
  auto inferred = infer_types(context);
  if (!inferred.ok()) return str("its shape rule refuses it: ", inferred.error().message());
  types = *std::move(inferred);
  if (def->has(Trait::data_dependent)) return "the shape of its result depends on data";
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!op.operand(i)) continue;
    if (op.operand(i)->layout()) return str("operand ", i, " lies in a layout");
    if (std::string why = what_does_not_fit(type_of(*op.operand(i))); !why.empty()) return str("operand ", i, " ", why);
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    if (op.result(i)->layout()) return str("result ", i, " lies in a layout");
    if (std::string why = what_does_not_fit(types[i]); !why.empty()) return str("result ", i, " ", why);
  }
  if (const auto missing = context.missing())
    return str("its shapes depend on the value of operand ", *missing, ", which only a run shows");
  return "";
}

}  // namespace tenon::irgen
