#include <tenon/irgen/reference_kernels.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/irgen/evaluator_call_internal.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::irgen {
namespace {

using detail::EvaluatorCall;
using detail::EvaluatorWork;

// A name of the text form: [A-Za-z_][A-Za-z0-9_.]*
std::string kernel_name(const Op& op) {
  std::string name = op.name().str();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  }
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "_" + name : name;
}

// The operator with a part's attributes and constants, in a graph of its own.
Result<std::shared_ptr<EvaluatorWork>> work_of_part(const KernelRequest& request) {
  auto work = std::make_shared<EvaluatorWork>();
  work->own = std::make_unique<Graph>("part");
  Region& body = work->own->body();
  std::vector<Value*> operands;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    const auto replaced = request.part->replaced.find(i);
    const bool constant = replaced != request.part->replaced.end();
    work->from.push_back(constant            ? EvaluatorWork::From::constant
                         : request.passes(i) ? EvaluatorWork::From::call
                                             : EvaluatorWork::From::absent);
    work->constants.push_back(constant ? replaced->second : Tensor());
    operands.push_back(work->from[i] == EvaluatorWork::From::absent
                           ? nullptr
                           : body.add_input(str("operand", i), request.operands[i]));
  }
  Op& op = body.create(request.op.name(), operands, request.results, request.attributes());
  op.set_label(request.op.label());
  for (size_t i = 0; i < op.result_count(); ++i) {
    if (request.op.result(i)->used()) body.add_output(op.result(i), str("result", i));
  }
  work->op = &op;
  work->packs = true;
  return work;
}

Result<std::shared_ptr<EvaluatorWork>> work_of(const KernelRequest& request) {
  if (request.part) return work_of_part(request);
  auto work = std::make_shared<EvaluatorWork>();
  work->op = &request.op;
  for (size_t i = 0; i < request.op.operand_count(); ++i)
    work->from.push_back(request.op.operand(i) ? EvaluatorWork::From::call : EvaluatorWork::From::absent);
  return work;
}

Result<Expr> dense_bytes(const Type& type) {
  Expr bytes = type.element().bits() / 8;
  for (const Dim& d : type.shape().dims()) bytes = bytes * d.expr();
  return ceildiv(bytes, static_cast<int64_t>(kAlignBytes)) * static_cast<int64_t>(kAlignBytes);
}

Result<Expr> workspace_of(const KernelRequest& request, const EvaluatorWork& work) {
  Expr bytes = 0;
  if (!work.packs) return bytes;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    if (work.from[i] != EvaluatorWork::From::call || request.is_dense_operand(i)) continue;
    TENON_TRY(more, dense_bytes(request.operands[i]));
    bytes += more;
  }
  for (size_t i = 0; i < request.results.size(); ++i) {
    if (request.is_dense_result(i)) continue;
    TENON_TRY(more, dense_bytes(request.results[i]));
    bytes += more;
  }
  return bytes;
}

// Elementwise evaluators read an element of each operand before they write that of the result.
std::vector<InPlace> in_place_of(const KernelRequest& request) {
  std::vector<InPlace> pairs;
  const OpDef* def = request.op.def();
  if (!def || !def->has(Trait::elementwise) || request.part) return pairs;
  for (size_t r = 0; r < request.results.size(); ++r) {
    const Type& result = request.results[r];
    for (size_t o = 0; o < request.operands.size(); ++o) {
      const Type& operand = request.operands[o];
      const bool fits = request.passes(o) && operand.is_tensor() && operand.shape() == result.shape() &&
                        operand.element().bits() == result.element().bits();
      if (fits) pairs.push_back({r, o});
    }
  }
  return pairs;
}

class ReferenceKernels final : public KernelSource {
 public:
  std::string_view name() const override { return "reference"; }

  Result<KernelChoice> kernel(const KernelRequest& request) const override {
    const EvaluatorFn evaluate = find_evaluator(request.op.name());
    if (!evaluate) return error(Code::unsupported, "the reference has no evaluator for ", request.op.name());
    if (request.op.region_count() > 0) return error(Code::unsupported, request.op.name(), " runs graphs of its own");
    TENON_TRY(work, work_of(request));
    work->evaluate = evaluate;
    TENON_TRY(workspace, workspace_of(request, *work));
    const std::shared_ptr<const EvaluatorWork> shared = std::move(work);
    auto kernel = std::make_shared<program::Kernel>();
    kernel->name = kernel_name(request.op);
    kernel->takes_folded = shared->packs;
    kernel->takes_dense_only = !shared->packs;
    kernel->workspaces = shared->packs ? 1 : 0;
    kernel->make_state = [shared] { return std::make_unique<EvaluatorCall>(*shared); };
    kernel->run_in_state = [](program::CallContext& call) {
      return static_cast<EvaluatorCall*>(call.state)->run(call);
    };
    kernel->run = [shared](program::CallContext& call) {
      return call.state ? static_cast<EvaluatorCall*>(call.state)->run(call) : EvaluatorCall(*shared).run(call);
    };
    return KernelChoice{.kernel = std::move(kernel),
                        .workspace_bytes = workspace,
                        .in_place = in_place_of(request),
                        .takes_strided = shared->packs};
  }
};

}  // namespace

const KernelSource& reference_kernels() {
  static const ReferenceKernels kernels;
  return kernels;
}

}  // namespace tenon::irgen
