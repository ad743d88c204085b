#include "opencl/compiler.hpp"

#include <algorithm>

#include <tenon/irgen/snippet_info.hpp>
#include <tenon/irgen/snippet_kernels.hpp>
#include <tenon/snippet/body/emitters.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/specialise.hpp>
#include <tenon/snippet/linear/allocate.hpp>
#include <tenon/snippet/linear/emit.hpp>
#include <tenon/snippet/lower/lower.hpp>
#include <tenon/support/str.hpp>

#include "opencl/assemble.hpp"
#include "opencl/compute/group_tile.hpp"
#include "opencl/device_info.hpp"

namespace tenon::opencl {
namespace {

// Copies of a vector loop's body; rows are processed one at a time. A device's compiler unrolls as well, and long
// sources take it long.
constexpr int kUnroll = 2;

bool is_wide(const snippet::Body& body) {
  return std::any_of(body.values.begin(), body.values.end(),
                     [](const snippet::BodyValue& value) { return value.element.bits() == 64; });
}

}  // namespace

bool Compiler::can_emit(const codegen::Signature& signature) const {
  return snippet::can_emit_node(signature, table_, target_);
}

bool Compiler::can_access(ElementType element) const {
  const ElementType lane = codegen::lane_type(element);
  return lane.valid() && (lane != kF64 || target_.has_feature(kFp64));
}

std::string Compiler::why_not(const snippet::Body& body) const {
  if (body.has_cuts()) return "an input or output is a part of a tensor with gaps";
  const size_t ports = body.inputs.size() + body.outputs.size();
  if (ports > options_.max_ports)
    return str(ports, " operands and results are more than the ", options_.max_ports, " that a kernel may have");
  for (const std::vector<snippet::BodyPort>* list : {&body.inputs, &body.outputs})
    for (const snippet::BodyPort& port : *list)
      if (!can_access(port.element)) return str("the device has no ", port.element);
  return snippet::why_not_emit(body, table_, target_);
}

Result<Compiler::Lowered> Compiler::lower(const snippet::Body& body) const {
  if (std::string reason = why_not(body); !reason.empty()) return error(Code::unsupported, reason);
  const auto cycles = [this](const snippet::Body& of, const snippet::BodyNode& node) {
    return snippet::cycles_of_node(of, node, table_, target_);
  };
  const int lanes = is_wide(body) ? options_.lanes / 2 : options_.lanes;
  GroupForm form{.items = items_of_chunk(body, lanes, options_.work_group), .sub_groups = sub_groups()};
  form.group = options_.work_group / form.items * form.items;
  TENON_TRY(kernel,
            snippet::lower(body, {.lanes = lanes * form.items, .unroll = kUnroll, .rows = 1, .cycles = cycles}));
  TENON_OK(snippet::allocate(kernel, variables_of(kernel), snippet::needs_of(table_, target_)));
  if (form.items > 1 && exchange_of(kernel).any()) form.group = form.items;
  return Lowered{std::move(kernel), form};
}

Result<std::string> Compiler::write(const snippet::Body& body, const Lowered& lowered, bool comments) const {
  const size_t ports = body.inputs.size() + body.outputs.size();
  return assemble(lowered.kernel, {ports, lowered.form, comments}, table_, target_);
}

Result<std::shared_ptr<const CompiledSnippet>> Compiler::compile(const snippet::Body& body) const {
  TENON_TRY(lowered, lower(body), "compiling snippet '", body.name, "' for ", target_.name);
  TENON_TRY(source, write(body, lowered, false), "compiling snippet '", body.name, "' for ", target_.name);
  const double cycles = snippet::cycles_per_element(body, lowered.kernel.lanes, table_, target_);
  return std::make_shared<const CompiledSnippet>(
      CompiledSnippet{body, std::move(lowered.kernel), lowered.form, std::move(source), cycles});
}

Result<std::string> Compiler::listing(const snippet::Body& body) const {
  TENON_TRY(lowered, lower(body), "compiling snippet '", body.name, "' for ", target_.name);
  return write(body, lowered, true);
}

namespace {

Result<std::shared_ptr<const ComputeKernel>> compute_kernel_for(const irgen::KernelRequest& request,
                                                                const ComputeTarget& target,
                                                                const std::optional<Epilogue>& epilogue) {
  return epilogue ? compute_kernel(request, target, *epilogue) : compute_kernel(request, target);
}

}  // namespace

Result<ComputeForms> Compiler::forms(const irgen::KernelRequest& request,
                                     const std::optional<Epilogue>& epilogue) const {
  ComputeTarget target = compute_target();
  TENON_TRY(first, compute_kernel_for(request, target, epilogue));
  ComputeForms made{std::move(first)};
  if (!options_.search || !takes_epilogue(request.op)) return made;
  const auto others = works_in_groups(target) ? other_group_tilings : other_tilings;
  for (const Tiling& tiling : others(options_.tiling)) {
    target.tiling = tiling;
    TENON_TRY(form, compute_kernel_for(request, target, epilogue));
    const auto same = [&](const auto& known) { return known->source == form->source; };
    if (std::none_of(made.begin(), made.end(), same)) made.push_back(std::move(form));
  }
  return made;
}

Result<std::string> Compiler::listing(const Op& op, const std::optional<Epilogue>& epilogue) const {
  ComputeTarget target = compute_target();
  target.comments = true;
  const auto made = compute_kernel_for(irgen::request_for(op), target, epilogue);
  if (made.ok()) return (*made)->source;
  if (made.error().code() == Code::unsupported) return std::string();
  return made.error();
}

std::string Compiler::why_not(const Op& op) const {
  const auto body = snippet::usual_body(op);
  const std::string reason = body.ok() ? why_not(*body) : irgen::without_label(op, body.error().message());
  if (reason.empty()) return {};
  const std::string other = why_no_compute(op, compute_target());
  if (other.empty()) return {};
  return has_compute_kernel(op) ? other : reason;
}

std::shared_ptr<DeviceKernel> device_kernel(std::string name) {
  auto kernel = std::make_shared<DeviceKernel>();
  kernel->name = std::move(name);
  kernel->takes_dense_only = true;
  kernel->run = [](program::CallContext& context) -> Result<void> {
    return error(Code::unsupported, "the kernel of ", context.stage, " runs on an OpenCL device only");
  };
  return kernel;
}

Result<irgen::KernelChoice> DeviceKernels::snippet(const irgen::KernelRequest& request,
                                                   const snippet::Body& body) const {
  TENON_TRY(code, compiler_->compile(body));
  irgen::SnippetPorts ports = irgen::snippet_ports(request, body);
  auto kernel = device_kernel("snippet");
  kernel->code = std::move(code);
  kernel->operands = std::move(ports.operands);
  for (size_t j = 0; j < body.outputs.size(); ++j) kernel->operands.push_back(ports.results + j);
  return irgen::KernelChoice{.kernel = std::move(kernel), .in_place = std::move(ports.in_place)};
}

Result<irgen::KernelChoice> DeviceKernels::kernel(const irgen::KernelRequest& request) const {
  if (request.part) return error(Code::unsupported, "operators are not cut into parts");
  const auto body = snippet::make_body(request.op);
  if (body.ok() && compiler_->why_not(*body).empty()) return snippet(request, *body);
  auto forms = compiler_->forms(request, std::nullopt);
  if (!forms.ok()) return has_compute_kernel(request.op) || body.ok() ? forms.error() : body.error();
  auto kernel = device_kernel(request.op.name().str());
  kernel->forms = *std::move(forms);
  return irgen::KernelChoice{.kernel = std::move(kernel)};
}

}  // namespace tenon::opencl
