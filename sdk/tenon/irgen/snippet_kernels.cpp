#include <tenon/irgen/snippet_kernels.hpp>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <tenon/irgen/snippet_call_internal.hpp>
#include <tenon/snippet/canonical.hpp>
#include <tenon/snippet/specialise.hpp>

namespace tenon::irgen {
namespace {

using program::BufferView;
using program::CallContext;

// Where the operands of a call are.
struct Ports {
  std::vector<size_t> operands;  // of inputs, then outputs
};

bool has_extents(const BufferView& view, const Dims& dims) {
  if (view.dims.size() != dims.size()) return false;
  for (size_t d = 0; d < dims.size(); ++d)
    if (view.dims[dims.size() - 1 - d].extent != dims[d]) return false;
  return true;
}

Dims extents_of(const BufferView& view) {
  Dims dims;
  for (size_t d = view.dims.size(); d-- > 0;) dims.push_back(view.dims[d].extent);
  return dims;
}

struct SnippetState final : program::KernelState {
  std::vector<Dims> shapes;
  std::vector<void*> addresses;
  int threads = 0;  // 0: not prepared
  detail::SnippetCall call;

  bool serves(const CallContext& context, const Ports& ports) const {
    if (threads != context.pool().threads()) return false;
    for (size_t i = 0; i < shapes.size(); ++i)
      if (!has_extents(context.operands[ports.operands[i]], shapes[i])) return false;
    return true;
  }
  Result<void> prepare(const CallContext& context, const Ports& ports, const SnippetCode& code, bool read_again) {
    threads = 0;
    shapes.clear();
    for (const size_t operand : ports.operands) shapes.push_back(extents_of(context.operands[operand]));
    addresses.resize(shapes.size());
    TENON_OK(call.prepare(code, shapes, {.threads = context.pool().threads(), .read_again = read_again}), "snippet '",
             code.body.name, "'");
    threads = context.pool().threads();
    return {};
  }
};

// A result may lie on an operand that it is read with, element for element.
std::vector<InPlace> in_place(const snippet::Body& body, const std::vector<size_t>& operands) {
  std::vector<InPlace> pairs;
  if (body.reduces()) return pairs;
  const auto same = [&](const snippet::BodyPort& a, const snippet::BodyPort& b) {
    const auto varies = [&](const snippet::BodyPort& port) {
      return body.values[static_cast<size_t>(port.value)].varies;
    };
    return a.element.bits() == b.element.bits() && varies(a) == varies(b);
  };
  for (size_t j = 0; j < body.outputs.size(); ++j)
    for (size_t i = 0; i < body.inputs.size(); ++i)
      if (same(body.outputs[j], body.inputs[i])) pairs.push_back({.result = j, .operand = operands[i]});
  return pairs;
}

// By another operator, rather than by whoever runs the graph.
bool is_read_again(const Op& op) {
  for (size_t i = 0; i < op.result_count(); ++i)
    for (const Use* use : op.result(i)->uses())
      if (!use->user()->parent()->is_return(*use->user())) return true;
  return false;
}

}  // namespace

SnippetCompiler::~SnippetCompiler() = default;

program::KernelHandle snippet_kernel(std::shared_ptr<const SnippetCode> code, std::vector<size_t> operands,
                                     size_t results, bool read_again) {
  Ports ports{std::move(operands)};
  for (size_t j = 0; j < code->body.outputs.size(); ++j) ports.operands.push_back(results + j);
  auto kernel = std::make_shared<program::Kernel>();
  kernel->name = "snippet";
  kernel->takes_dense_only = true;
  kernel->make_state = [] { return std::make_unique<SnippetState>(); };
  kernel->run = [code = std::move(code), ports = std::move(ports), read_again](CallContext& context) -> Result<void> {
    std::optional<SnippetState> own;
    SnippetState& state = context.state ? static_cast<SnippetState&>(*context.state) : own.emplace();
    if (!state.serves(context, ports)) TENON_OK(state.prepare(context, ports, *code, read_again));
    for (size_t i = 0; i < state.addresses.size(); ++i) state.addresses[i] = context.operands[ports.operands[i]].base;
    state.call.run(*code, state.addresses, context.pool());
    return {};
  };
  return kernel;
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

// Types that a request states.
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

}  // namespace

Result<KernelChoice> SnippetKernels::kernel(const KernelRequest& request) const {
  if (request.part) return error(Code::unsupported, "snippets are not cut into parts");
  if (request.op.region_count() == 0 && !has_types_of_graph(request)) {
    // By the types of the request: those of the graph may leave extents open.
    TENON_TRY(alone, snippet::with_types(request.op, RequestTypes(request)));
    const KernelRequest better{
        .op = snippet::only_op(*alone), .operands = request.operands, .results = request.results};
    if (has_types_of_graph(better)) return kernel(better);
  }
  TENON_TRY(body, snippet::make_body(request.op));
  TENON_TRY(code, compiler_->compile(body));
  SnippetPorts ports = snippet_ports(request, body);
  const bool read_again = is_read_again(request.op);
  return KernelChoice{.kernel = snippet_kernel(code, std::move(ports.operands), ports.results, read_again),
                      .in_place = std::move(ports.in_place)};
}

std::optional<size_t> SnippetKernels::late_operand(const Op& op) const {
  const auto operand = snippet::unknown_operand(op);
  return operand && snippet::usual_body(op).ok() ? operand : std::nullopt;
}

}  // namespace tenon::irgen
