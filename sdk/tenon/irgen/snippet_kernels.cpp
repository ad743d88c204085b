#include <tenon/irgen/snippet_kernels.hpp>

#include <algorithm>
#include <optional>

#include <tenon/snippet/canonical.hpp>
#include <tenon/snippet/params.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::irgen {
namespace {

using program::BufferView;
using program::CallContext;

// Less work than this is not worth waking a thread for.
constexpr double kCyclesForThread = 20000;

// Where the operands of a call are.
struct Ports {
  std::vector<size_t> operands;  // of inputs, then outputs
  size_t inputs = 0;
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

// What calls of the same extents share.
struct SnippetState final : program::KernelState {
  std::vector<Dims> shapes;
  int threads = 0;
  std::optional<snippet::CallPlan> plan;
  snippet::Split split;
  int64_t chunks = 0;
  std::vector<void*> addresses;
  std::vector<int64_t> words;  // of all chunks
  AlignedBytes scratch;        // of all chunks
  size_t scratch_stride = 0;

  bool serves(const CallContext& call, const Ports& ports) const {
    if (!plan || threads != call.pool().threads()) return false;
    for (size_t i = 0; i < shapes.size(); ++i)
      if (!has_extents(call.operands[ports.operands[i]], shapes[i])) return false;
    return true;
  }

  Result<void> prepare(const CallContext& call, const Ports& ports, const SnippetCode& code) {
    shapes.clear();
    for (const size_t operand : ports.operands) shapes.push_back(extents_of(call.operands[operand]));
    TENON_TRY(made, snippet::CallPlan::make(code.body, code.kernel, shapes));
    plan.emplace(std::move(made));
    threads = call.pool().threads();
    split = plan->split(threads, static_cast<int64_t>(kCyclesForThread / std::max(code.cycles_per_element, 0.01)));
    chunks = split.chunks();
    addresses.resize(shapes.size());
    words.resize(plan->words() * static_cast<size_t>(chunks));
    scratch_stride = (plan->scratch_bytes() + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
    TENON_TRY(bytes, allocate_aligned(scratch_stride * static_cast<size_t>(chunks)));
    scratch = std::move(bytes);
    return {};
  }

  void run(const CallContext& call, const Ports& ports, const SnippetCode& code) {
    if (plan->empty()) return;
    for (size_t i = 0; i < addresses.size(); ++i) addresses[i] = call.operands[ports.operands[i]].base;
    const auto run_chunk = [this, &code](int64_t chunk) {
      const size_t count = plan->words(), at = static_cast<size_t>(chunk);
      const std::span<int64_t> mine(words.data() + at * count, count);
      plan->fill(mine, addresses, scratch.get() + at * scratch_stride, split, chunk);
      code.run(mine.data());
    };
    if (chunks == 1) return run_chunk(0);
    call.pool().run(chunks, 1, [&run_chunk](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) run_chunk(chunk);
    });
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

}  // namespace

SnippetCompiler::~SnippetCompiler() = default;

program::KernelHandle snippet_kernel(std::shared_ptr<const SnippetCode> code, std::vector<size_t> operands,
                                     size_t results) {
  Ports ports{std::move(operands), code->body.inputs.size()};
  for (size_t j = 0; j < code->body.outputs.size(); ++j) ports.operands.push_back(results + j);
  auto kernel = std::make_shared<program::Kernel>();
  kernel->name = "snippet";
  kernel->takes_dense_only = true;
  kernel->make_state = [] { return std::make_unique<SnippetState>(); };
  kernel->run = [code = std::move(code), ports = std::move(ports)](CallContext& call) -> Result<void> {
    std::optional<SnippetState> own;
    SnippetState& state = call.state ? static_cast<SnippetState&>(*call.state) : own.emplace();
    if (!state.serves(call, ports)) TENON_OK(state.prepare(call, ports, *code), "snippet '", code->body.name, "'");
    state.run(call, ports, *code);
    return {};
  };
  return kernel;
}

Result<KernelChoice> SnippetKernels::kernel(const KernelRequest& request) const {
  if (request.part) return error(Code::unsupported, "snippets are not cut into parts");
  TENON_TRY(body, snippet::make_body(request.op));
  TENON_TRY(code, compiler_->compile(body));
  const std::vector<size_t> operands = snippet::body_operands(request.op);
  // Absent operands are not passed.
  std::vector<size_t> places(request.op.operand_count());
  size_t passed = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    places[i] = passed;
    passed += request.passes(i);
  }
  std::vector<size_t> ports;
  for (const size_t operand : operands) ports.push_back(places[operand]);
  return KernelChoice{.kernel = snippet_kernel(code, std::move(ports), passed), .in_place = in_place(body, operands)};
}

}  // namespace tenon::irgen
