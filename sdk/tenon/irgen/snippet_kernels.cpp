#include <tenon/irgen/snippet_kernels.hpp>

#include <algorithm>
#include <unordered_map>

#include <tenon/irgen/snippet_call_internal.hpp>
#include <tenon/irgen/snippet_check_internal.hpp>
#include <tenon/irgen/staged_call_internal.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/specialise.hpp>

namespace tenon::irgen {
namespace {

using program::BufferView;
using program::CallContext;

// Shared by all calls of a kernel.
struct SnippetWork {
  std::shared_ptr<const SnippetCode> code;
  std::vector<size_t> operands;                              // of a call: those of inputs, then outputs
  bool read_again = false;                                   // of its results
  std::unique_ptr<detail::StagesOnDemand> stages = nullptr;  // null: folds are never cut
};

Dims extents_of(const BufferView& view) {
  Dims dims;
  for (size_t d = view.dims.size(); d-- > 0;) dims.push_back(view.dims[d].extent);
  return dims;
}

class SnippetState final : public program::KernelState, public program::SettlingState {
 public:
  explicit SnippetState(std::shared_ptr<const SnippetWork> work) : work_(std::move(work)) {}

  Result<void> run(CallContext& context) {
    TENON_OK(look_at(context));
    if (staged_)
      staged_->run(addresses_, context.pool());
    else
      call_.run(*work_->code, addresses_, context.pool());
    return {};
  }
  Result<bool> settle(const CallContext& context, std::vector<SettledCall>& calls) override {
    TENON_OK(look_at(context));
    return !staged_ && call_.settle(*work_->code, addresses_, calls);
  }

 private:
  Result<void> look_at(const CallContext& context) {
    const int threads = context.pool().threads();
    if (threads_ != threads || !has_seen(context)) [[unlikely]]
      TENON_OK(prepare(context, threads));
    // Written only where they change: another core that reads a line that was just written waits .2 us.
    for (size_t i = 0; i < addresses_.size(); ++i)
      if (std::byte* const base = context.operands[work_->operands[i]].base; addresses_[i] != base)
        addresses_[i] = base;
    return {};
  }
  bool has_seen(const CallContext& context) const {
    const int64_t* seen = extents_.data();
    for (const size_t operand : work_->operands)
      for (const program::DimView& d : context.operands[operand].dims)
        if (*seen++ != d.extent) return false;
    return true;
  }
  Result<void> prepare(const CallContext& context, int threads) {
    threads_ = 0;
    extents_.clear();
    std::vector<Dims> shapes;
    for (const size_t operand : work_->operands) {
      for (const program::DimView& d : context.operands[operand].dims) extents_.push_back(d.extent);
      shapes.push_back(extents_of(context.operands[operand]));
    }
    addresses_.resize(shapes.size());
    TENON_OK(plan(shapes, {.threads = threads, .read_again = work_->read_again}), "snippet '", work_->code->body.name,
             "'");
    threads_ = threads;
    return {};
  }
  Result<void> plan(std::span<const Dims> shapes, const detail::CallOptions& options) {
    const SnippetCode& code = *work_->code;
    staged_.reset();
    TENON_TRY(extents, snippet::space_extents(code.body, shapes));
    if (const auto cut = work_->stages ? detail::fold_cut_for(code, extents, options.threads) : std::nullopt) {
      TENON_TRY(stages, work_->stages->get(cut->dim));
      if (stages) return staged_.emplace().prepare(std::move(stages), extents, cut->parts, options);
    }
    return call_.prepare(code, std::move(extents), options);
  }

  std::shared_ptr<const SnippetWork> work_;
  int threads_ = 0;               // 0: not prepared
  std::vector<int64_t> extents_;  // of all operands, for which it is prepared; ranks never change
  std::vector<std::byte*> addresses_;
  detail::SnippetCall call_;
  std::optional<detail::StagedCall> staged_;  // used instead, where folds are cut
};

// A result may share the memory of an operand that is read at the same index. Values that vary over less than the whole
// space may not: they are computed once, before the loops over the rest, which read the operand again.
std::vector<InPlace> in_place(const snippet::Body& body, const std::vector<size_t>& operands) {
  std::vector<InPlace> pairs;
  if (body.reduces()) return pairs;
  const snippet::DimSet space = body.all_dims();
  const auto same = [&](const snippet::BodyPort& a, const snippet::BodyPort& b) {
    const auto varies = [&](const snippet::BodyPort& port) {
      return body.values[static_cast<size_t>(port.value)].varies;
    };
    return a.element.bits() == b.element.bits() && varies(a) == space && varies(b) == space;
  };
  // Nor may a result share a tensor that is also read in parts, or one that is written as a part.
  const auto in_parts = [&](size_t operand) {
    for (size_t i = 0; i < body.inputs.size(); ++i)
      if (operands[i] == operand && !body.inputs[i].cuts.empty()) return true;
    return false;
  };
  for (size_t j = 0; j < body.outputs.size(); ++j)
    for (size_t i = 0; i < body.inputs.size(); ++i)
      if (same(body.outputs[j], body.inputs[i]) && body.outputs[j].cuts.empty() && !in_parts(operands[i]))
        pairs.push_back({.result = j, .operand = operands[i]});
  return pairs;
}

// By another operator, rather than by the caller of the graph.
bool is_read_again(const Op& op) {
  for (size_t i = 0; i < op.result_count(); ++i)
    for (const Use* use : op.result(i)->uses())
      if (!use->user()->parent()->is_return(*use->user())) return true;
  return false;
}

}  // namespace

program::KernelHandle snippet_kernel(std::shared_ptr<const SnippetCode> code, std::vector<size_t> operands,
                                     size_t results, bool read_again, std::shared_ptr<SnippetCompiler> compiler) {
  for (size_t j = 0; j < code->body.outputs.size(); ++j) operands.push_back(results + j);
  auto stages = compiler ? std::make_unique<detail::StagesOnDemand>(code->body, std::move(compiler)) : nullptr;
  const auto work = std::make_shared<const SnippetWork>(
      SnippetWork{std::move(code), std::move(operands), read_again, std::move(stages)});
  auto kernel = std::make_shared<program::Kernel>();
  kernel->name = "snippet";
  kernel->takes_dense_only = true;
  kernel->keeps_gaps = work->code->body.has_cuts();
  kernel->make_state = [work] { return std::make_unique<SnippetState>(work); };
  kernel->run_in_state = [](CallContext& context) { return static_cast<SnippetState*>(context.state)->run(context); };
  kernel->run = [work](CallContext& context) {
    return context.state ? static_cast<SnippetState*>(context.state)->run(context) : SnippetState(work).run(context);
  };
  return kernel;
}

Result<std::vector<std::shared_ptr<const SnippetCode>>> stages_of_calls(const SnippetCode& code,
                                                                        SnippetCompiler& compiler, int threads) {
  std::vector<std::shared_ptr<const SnippetCode>> none;
  Dims extents;
  for (const snippet::BodyDim& dim : code.body.dims) {
    if (!dim.extent.is_constant()) return none;
    extents.push_back(dim.extent.constant());
  }
  const auto cut = detail::fold_cut_for(code, extents, threads);
  if (!cut) return none;
  TENON_TRY(staged, detail::make_stages(code.body, compiler, cut->dim));
  return staged ? staged->codes : none;
}

SnippetPorts snippet_ports(const KernelRequest& request, const snippet::Body& body) {
  SnippetPorts ports;
  // Absent operands are not passed.
  std::vector<size_t> places(request.op.operand_count());
  for (size_t i = 0; i < places.size(); ++i) {
    places[i] = ports.results;
    ports.results += request.passes(i);
  }
  const std::vector<size_t> operands = snippet::body_operands(request.op);
  for (const size_t operand : operands) ports.operands.push_back(places[operand]);
  ports.in_place = in_place(body, operands);
  return ports;
}

namespace {

// The types that a request states.
class RequestTypes final : public TypeSource {
 public:
  explicit RequestTypes(const KernelRequest& request) {
    for (size_t i = 0; i < request.operands.size(); ++i)
      if (const Value* value = request.op.operand(i)) types_[value] = request.operands[i];
  }
  const Type& type_of(const Value& value) const override { return types_.at(&value); }

 private:
  std::unordered_map<const Value*, Type> types_;
};

bool has_types_of_graph(const KernelRequest& request) {
  for (size_t i = 0; i < request.operands.size(); ++i)
    if (request.op.operand(i) && request.op.operand(i)->type() != request.operands[i]) return false;
  for (size_t i = 0; i < request.results.size(); ++i)
    if (request.op.result(i)->type() != request.results[i]) return false;
  return true;
}

// `kernel`, with its results checked after each call.
program::KernelHandle checked(const program::KernelHandle& kernel, std::shared_ptr<const SnippetCode> code,
                              std::shared_ptr<const detail::SnippetCheck> check) {
  auto made = std::make_shared<program::Kernel>(*kernel);
  made->run_in_state = nullptr;
  made->run = [kernel, code = std::move(code), check = std::move(check)](CallContext& context) -> Result<void> {
    TENON_OK(kernel->run(context));
    return check->check(*code, context.operands);
  };
  return made;
}

// Dims that are cut, as far as strides are concerned: those inside one with several indices.
Result<snippet::ResultCuts> result_cuts(const KernelRequest& request) {
  snippet::ResultCuts cuts(request.result_wholes.size());
  for (size_t r = 0; r < cuts.size(); ++r) {
    const Shape &whole = request.result_wholes[r], &part = request.results[r].shape();
    if (!whole.ranked()) continue;
    const auto several =
        std::ranges::find_if(part.dims(), [](const Dim& d) { return !d.is_static() || d.value() != 1; });
    const auto first = static_cast<size_t>(several - part.dims().begin());
    for (size_t d = part.dims().size(); d-- > first + 1;) {
      if (whole[d].same_extent(part[d])) continue;
      if (!whole[d].is_static() || !part[d].is_static() || part[d].value() == 0)
        return error(Code::unsupported, "dim ", d, " of result ", r, " of ", request.op.describe(), " is ",
                     part[d].to_string(), " of ", whole[d].to_string(), ", which are no numbers");
      cuts[r].push_back({.dim = d, .begin = 0, .box = part[d].value(), .whole = whole[d].value()});
    }
  }
  return cuts;
}

}  // namespace

Result<KernelChoice> SnippetKernels::kernel(const KernelRequest& request) const {
  if (request.part) return error(Code::unsupported, "snippets are not cut into parts");
  if (request.op.region_count() == 0 && !has_types_of_graph(request)) {
    // By the types of the request: those of the graph may leave extents open.
    TENON_TRY(alone, snippet::with_types(request.op, RequestTypes(request)));
    const KernelRequest better{.op = snippet::only_op(*alone),
                               .operands = request.operands,
                               .results = request.results,
                               .result_wholes = request.result_wholes};
    if (has_types_of_graph(better)) return kernel(better);
  }
  TENON_TRY(cuts, result_cuts(request));
  TENON_TRY(body, snippet::make_body(request.op, cuts));
  TENON_TRY(code, compiler_->compile(body));
  SnippetPorts ports = snippet_ports(request, body);
  auto made = snippet_kernel(code, ports.operands, ports.results, is_read_again(request.op), compiler_);
  KernelChoice choice{.writes_parts = compiler_->writes_parts()};
  if (!options_.self_check) {
    choice.kernel = std::move(made);
    choice.in_place = std::move(ports.in_place);
  } else {
    TENON_TRY(check, detail::SnippetCheck::make(request, ports, compiler_));
    choice.kernel = checked(made, std::move(code), std::move(check));
  }
  return choice;
}

std::optional<size_t> SnippetKernels::late_operand(const Op& op) const {
  const auto operand = snippet::unknown_operand(op);
  return operand && snippet::usual_body(op).ok() ? operand : std::nullopt;
}

}  // namespace tenon::irgen
