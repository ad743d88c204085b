#include <algorithm>

#include <tenon/ir/op_def.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/layout.hpp>
#include <tenon/passes/assign_layouts.hpp>
#include <tenon/passes/layout_pins_internal.hpp>
#include <tenon/passes/layout_table.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

bool is_clean(const Value& value) { return !value.layout() || value.layout()->pad != PadState::dirty; }
std::string text_of(const Value& value) { return value.layout() ? value.layout()->text : "row-major"; }
using detail::is_pinned;

class LayoutVerifier {
 public:
  explicit LayoutVerifier(const AssignLayoutsOptions& options) : options_(options), table_(options.costs) {}

  Result<void> verify(const Region& body) {
    for (const Op& op : body) {
      const bool free = isa<Constant>(op) || isa<LayoutReorder>(op) || isa<LayoutScrub>(op);
      if (!free) TENON_OK(verify(op), op.describe());
    }
    for (size_t i = 0; i < body.output_count(); ++i) {
      const Value* value = body.output(i);
      if (!value || !value->layout() || is_pinned(*value)) continue;
      return error(Code::internal, "output '", body.output_name(i), "' lies in ", text_of(*value),
                   ", which nobody pinned");
    }
    return {};
  }

 private:
  Result<void> verify(const Op& op) {
    const auto kernels =
        options_.kernels && op.region_count() == 0 ? options_.kernels(op) : std::vector<LayoutKernel>();
    if (!kernels.empty()) return verify_kernels(op, kernels);
    const OpDef* def = op.def();
    if (def && def->has(Trait::layout_oblivious) && op.region_count() == 0) return verify_oblivious(op);
    return verify_row_major(op);
  }

  Result<size_t> layout_of(const Value& value) {
    const size_t type = table_.type_of(value.type());
    return value.layout() ? table_.add(type, value.layout()->text, value.layout()->dims) : LayoutTable::kRowMajor;
  }
  bool has_layout(const Value& value, const LayoutKernel::Port& port) {
    const auto wanted = table_.add(table_.type_of(value.type()), port.layout, port.dims);
    const auto got = layout_of(value);
    return wanted.ok() && got.ok() && *wanted == *got;
  }
  bool is_padded(const Value& value) {
    const auto layout = layout_of(value);
    return layout.ok() && table_.is_padded(table_.type_of(value.type()), *layout);
  }

  bool is_run_by(const Op& op, const LayoutKernel& kernel) {
    static const LayoutKernel::Port kRowMajor;
    bool reads_padding = kernel.pad == PadEffect::same, clean = true, any_padding = false;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const Value* operand = op.operand(i);
      if (!operand) continue;
      const auto& port = i < kernel.operands.size() ? kernel.operands[i] : kRowMajor;
      const bool padded = is_padded(*operand);
      if (!has_layout(*operand, port) || (port.needs_zero_pad && padded && !is_clean(*operand))) return false;
      reads_padding |= port.needs_zero_pad && padded;
      clean &= is_clean(*operand);
      any_padding |= padded;
    }
    const bool gives_zero = kernel.pad == PadEffect::zero || (kernel.pad == PadEffect::same && clean);
    for (size_t i = 0; i < op.result_count(); ++i) {
      const auto& port = i < kernel.results.size() ? kernel.results[i] : kRowMajor;
      if (!has_layout(*op.result(i), port) || (is_padded(*op.result(i)) && is_clean(*op.result(i)) && !gives_zero)) {
        return false;
      }
      any_padding |= is_padded(*op.result(i));
    }
    return op.attributes().has(Name(kLayoutKernelAttribute)) == (reads_padding && any_padding);
  }

  Result<void> verify_kernels(const Op& op, const std::vector<LayoutKernel>& kernels) {
    if (std::any_of(kernels.begin(), kernels.end(), [&](const auto& kernel) { return is_run_by(op, kernel); }))
      return {};
    std::string layouts;
    for (size_t i = 0; i < op.operand_count(); ++i) layouts += op.operand(i) ? " " + text_of(*op.operand(i)) : " -";
    layouts += " ->";
    for (size_t i = 0; i < op.result_count(); ++i) layouts += " " + text_of(*op.result(i));
    return error(Code::internal, "none of the target's ", kernels.size(), " kernels runs it in the layouts", layouts);
  }

  // An operand with the result's shape must have its layout; one that is broadcast may be row-major.
  Result<void> verify_oblivious(const Op& op) {
    if (op.result_count() == 0 || !op.def()->has(Trait::elementwise)) return {};
    const Value& result = *op.result();
    TENON_TRY(made, layout_of(result));
    bool padded = is_padded(result);
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const Value* operand = op.operand(i);
      if (!operand || table_.type_of(operand->type()) == LayoutTable::kOpaque) continue;
      padded |= is_padded(*operand);
      const bool same_shape = operand->type().shape() == result.type().shape();
      const bool same = made == LayoutTable::kRowMajor ? !operand->layout() : has_layout(*operand, port_of(result));
      if (!same && (same_shape || (operand->layout() && made == LayoutTable::kRowMajor))) {
        return error(Code::internal, "operand ", i, " lies in ", text_of(*operand), " and the result in ",
                     text_of(result), "; it takes one layout for all");
      }
    }
    if (op.attributes().has(Name(kLayoutKernelAttribute)) == padded) return {};
    return error(Code::internal, padded ? "works on padding" : "has no padding", ", and '", kLayoutKernelAttribute,
                 "' is ", padded ? "not set" : "set");
  }
  static LayoutKernel::Port port_of(const Value& value) { return {value.layout()->text, value.layout()->dims, false}; }

  static Result<void> verify_row_major(const Op& op) {
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (!op.operand(i) || !op.operand(i)->layout()) continue;
      return error(Code::internal, "operand ", i, " lies in ", text_of(*op.operand(i)), "; it takes row-major only");
    }
    for (size_t i = 0; i < op.result_count(); ++i) {
      if (!op.result(i)->layout()) continue;
      return error(Code::internal, "result ", i, " lies in ", text_of(*op.result(i)), "; it gives row-major only");
    }
    return {};
  }

  const AssignLayoutsOptions& options_;
  LayoutTable table_;
};

}  // namespace

Result<void> verify_layouts(const Graph& graph, const AssignLayoutsOptions& options) {
  return LayoutVerifier(options).verify(graph.body());
}

}  // namespace tenon
