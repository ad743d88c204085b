#include <tenon/ir/verify.hpp>

#include <algorithm>
#include <set>
#include <unordered_set>

#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/signature_internal.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/support/caught.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {
namespace {

using signature::fully_known;
using signature::wrong;

Error unknown_op(const Op& op) {
  std::vector<std::string> names;
  for (const OpDef* def : all_ops()) names.push_back(def->name().str());
  return error(Code::not_found, op.describe(), ": no operator '", op.name(), "' is defined",
               signature::hint(op.name().view(), names));
}

Result<void> check_shape_rule(const Op& op, const OpDef& def) {
  if (!def.infer_fn() || op.result_count() == 0) return {};
  TENON_TRY(inferred, infer_types(op));
  for (size_t i = 0; i < op.result_count(); ++i) {
    const Type& declared = op.result(i)->type();
    if (auto merged = merge_at(op, inferred[i], declared); !merged.ok()) {
      return wrong(op, "result ", i, " is declared ", declared, ", its shape rule gives ", inferred[i], ": ",
                   merged.error().message());
    }
  }
  return {};
}

Result<void> check_op(const Op& op, const VerifyOptions& options) {
  if (options.require_types) {
    for (size_t i = 0; i < op.result_count(); ++i) {
      const Type& type = op.result(i)->type();
      if (!fully_known(type)) return wrong(op, "the type of result ", i, " is not known: ", type);
    }
  }
  for (size_t i = 0; i < op.result_count(); ++i) TENON_OK(check_layout(*op.result(i)), op.describe());
  const OpDef* def = op.def();
  if (!def) {
    if (options.allow_unknown_ops) return {};
    return unknown_op(op);
  }
  TENON_OK(signature::check(op, *def));
  TENON_OK(signature::check_type_vars(op, *def));
  if (def->verify_fn()) TENON_OK(caught([&] { return def->verify_fn()(op); }, "its verifier"), op.describe());
  return check_shape_rule(op, *def);
}

// Users multiply extents in 64 bits to plan memory or loops, including those beside an extent of 0.
Result<void> check_size(const Value& value) {
  const Type& type = value.type();
  if (!type.is_tensor() || !type.shape().ranked()) return {};
  Dims extents;
  for (const Dim& dim : type.shape().dims()) extents.push_back(dim.is_static() ? std::max<int64_t>(dim.value(), 1) : 1);
  TENON_TRY(count, element_count(extents), "value '", value.name(), "' of type ", type);
  if (type.element().valid()) TENON_OK(storage_bytes(type.element(), count), "value '", value.name(), "'");
  return {};
}

// ---- The wiring ----

class GraphVerifier {
 public:
  GraphVerifier(const Graph& graph, const VerifyOptions& options) : graph_(graph), options_(options) {}

  Result<void> run() {
    const Region& body = graph_.body();
    visible_.reserve(body.input_count() + body.op_count());
    TENON_OK(check_region(body));
    if (slots_ != listed_) {
      return error(Code::internal, "the use lists hold ", listed_, " uses, the operators have ", slots_, " operands");
    }
    return check_output_names(body);
  }

 private:
  Result<void> check_output_names(const Region& body) const {
    std::set<std::string_view> names;
    for (size_t i = 0; i < body.output_count(); ++i) {
      const std::string& name = body.output_name(i);
      if (name.empty()) return error(Code::invalid_argument, "output ", i, " has no name");
      if (!names.insert(name).second) return error(Code::invalid_argument, "two outputs are named '", name, "'");
    }
    return {};
  }

  Result<void> check_region(const Region& region) {
    std::vector<const Value*> defined;
    for (size_t i = 0; i < region.input_count(); ++i) {
      const Value* input = region.input(i);
      if (options_.require_types && !fully_known(input->type())) {
        return error(Code::invalid_argument, "the type of input ", i, " ('", input->name(),
                     "') is not known: ", input->type());
      }
      TENON_OK(check_layout(*input));
      TENON_OK(define(*input, defined));
    }
    for (const Op& op : region) {
      TENON_OK(check_operands(op, region));
      for (size_t i = 0; i < op.region_count(); ++i) {
        TENON_OK(check_region(op.region(i)), "region ", i, " of ", op.describe());
      }
      TENON_OK(check_op(op, options_));
      for (size_t i = 0; i < op.result_count(); ++i) TENON_OK(define(*op.result(i), defined));
    }
    TENON_OK(check_outputs(region));
    for (const Value* value : defined) visible_.erase(value);
    return {};
  }

  // Makes the value usable from here on, and checks its use list.
  Result<void> define(const Value& value, std::vector<const Value*>& defined) {
    TENON_OK(check_size(value));
    visible_.insert(&value);
    defined.push_back(&value);
    for (const Use* use = value.first_use(); use; use = use->next()) {
      ++listed_;
      const Op* user = use->user();
      if (use->value() != &value || use->index() >= user->operand_count() || &user->operand_use(use->index()) != use) {
        return error(Code::internal, "the use list of %", value.name(), " is damaged at ", user->describe());
      }
    }
    return {};
  }

  Result<void> check_operands(const Op& op, const Region& region) {
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const Value* operand = op.operand(i);
      if (!operand) continue;
      ++slots_;
      if (!visible_.contains(operand)) return wrong(op, "operand ", i, " is ", invisible(*operand, region));
    }
    return {};
  }

  Result<void> check_outputs(const Region& region) {
    for (size_t i = 0; i < region.output_count(); ++i) {
      const Value* output = region.output(i);
      const auto name = [&] { return str("output ", i, " ('", region.output_name(i), "')"); };
      if (!output) return error(Code::invalid_argument, name(), " has no value");
      ++slots_;
      if (!visible_.contains(output)) {
        return error(Code::invalid_argument, name(), " is ", invisible(*output, region));
      }
    }
    return {};
  }

  // The reason why `value` is not visible in `region`.
  static std::string invisible(const Value& value, const Region& region) {
    const std::string by = value.producer() ? value.producer()->describe() : str("input '", value.name(), "'");
    if (&value.region()->graph() != &region.graph()) return str("made by ", by, " of another graph");
    for (const Region* around = &region; around; around = around->outer()) {
      if (value.region() == around)
        return str("made by ", by, ", which stands behind it; sort_topologically() mends that");
    }
    return str("made by ", by, " inside a region that does not hold it; pass it out as an output of that region");
  }

  const Graph& graph_;
  const VerifyOptions& options_;
  std::unordered_set<const Value*> visible_;
  size_t slots_ = 0, listed_ = 0;
};

}  // namespace

Result<void> verify(const Graph& graph, const VerifyOptions& options) {
  TENON_OK(GraphVerifier(graph, options).run(), "graph ", quote(graph.name()));
  return {};
}

Result<void> verify(const Op& op, const VerifyOptions& options) {
  for (size_t i = 0; i < op.region_count(); ++i) {
    for (const Op& inner : op.region(i)) TENON_OK(verify(inner, options), "region ", i, " of ", op.describe());
  }
  return check_op(op, options);
}

}  // namespace tenon
