#include "opencl/device_program.hpp"

#include <algorithm>
#include <utility>

#include <tenon/irgen/shape_check.hpp>
#include <tenon/support/str.hpp>

#include "opencl/device_plan.hpp"
#include "opencl/device_run.hpp"
#include "opencl/fuse.hpp"

namespace tenon::opencl {
namespace {

constexpr int64_t kConstantAlignment = 128;

}  // namespace

DeviceProgram::~DeviceProgram() = default;

Result<std::unique_ptr<DeviceProgram>> DeviceProgram::make(const Graph& graph, std::shared_ptr<ClDevice> device,
                                                           std::shared_ptr<const Compiler> compiler) {
  std::unique_ptr<DeviceProgram> made(new DeviceProgram);
  made->device_ = std::move(device), made->compiler_ = std::move(compiler);
  const DeviceKernels kernels(made->compiler_);
  made->types_ = std::make_unique<irgen::GraphTypes>(irgen::GraphTypes::of(graph));
  made->plans_ = irgen::plan_ops(graph, *made->types_, kernels);
  for (const Op& op : graph.body())
    if (const irgen::OpPlan& plan = made->plans_.at(&op); plan.form == irgen::OpForm::host)
      return error(Code::unsupported, op.describe(), ": ", plan.why_not);
  made->part_ = irgen::whole_graph(graph);
  irgen::LowerOptions options;
  if (made->compiler_->options().fuse) options.grouping = epilogue_grouping(*made->compiler_);
  TENON_TRY(lowered, irgen::lower_part(made->part_, *made->types_, made->plans_, kernels, options));
  made->lowered_ = std::move(lowered);
  return made;
}

Result<void> DeviceProgram::upload_constants(ClStream& stream) {
  if (constants_) return {};
  int64_t bytes = 0;
  constant_offsets_.clear();
  for (const irgen::ProgramConstant& constant : lowered_.constants) {
    constant_offsets_.push_back(bytes);
    const auto size = static_cast<int64_t>(constant.tensor.bytes());
    bytes += (size + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
  }
  TENON_TRY(memory, device_->allocate_memory(static_cast<size_t>(bytes), CL_MEM_READ_ONLY), "the constants");
  for (size_t i = 0; i < lowered_.constants.size(); ++i) {
    const Tensor& tensor = lowered_.constants[i].tensor;
    if (tensor.bytes() == 0) continue;
    TENON_OK(stream.add([&] {
      return check(device_->cl().clEnqueueWriteBuffer(stream.queue(), memory.get(), CL_TRUE,
                                                      static_cast<size_t>(constant_offsets_[i]), tensor.bytes(),
                                                      tensor.data(), 0, nullptr, nullptr),
                   "clEnqueueWriteBuffer");
    }));
  }
  constants_ = std::move(memory);
  return {};
}

Result<std::shared_ptr<DevicePlan>> DeviceProgram::make_plan(ClStream& stream, const SymbolValues& scalars) {
  if (!lowered_.program.scalars.empty())
    if (auto held = irgen::check_shapes(part_, *types_, plans_, scalars); !held.ok())
      return error(Code::unsupported, held.error().message());
  TENON_OK(upload_constants(stream));
  TENON_TRY(arguments, irgen::arguments_of(lowered_, scalars));
  TENON_TRY(flat, program::flatten(lowered_.program, arguments));
  TENON_TRY(plan, plan_launches({*device_, *compiler_, lowered_, constant_offsets_, scalars}, flat, stream));
  for (size_t i = 0; i < lowered_.outputs.size(); ++i) {
    TENON_TRY(dims, irgen::dims_of_output(lowered_, i, scalars));
    plan->output_dims.push_back(std::move(dims));
  }
  return plan;
}

Result<std::shared_ptr<DevicePlan>> DeviceProgram::plan(ClStream& stream, std::span<const RunValue> inputs) {
  std::vector<Dims> dims;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DeviceTensor& tensor = inputs[i].device;
    if (tensor.element != lowered_.input_types[i].element())
      return error(Code::unsupported, "input ", i, " is of ", tensor.element, " instead of ",
                   lowered_.input_types[i].element());
    dims.push_back(tensor.dims);
  }
  auto scalars = irgen::scalars_of(lowered_, dims);
  if (!scalars.ok()) return error(Code::unsupported, scalars.error().message());
  // Planned with the lock held, so that threads that need the same extents wait for the one that plans them.
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(kept_, [&](const auto& entry) { return entry.first == *scalars; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    return known->second;
  }
  TENON_TRY(made, make_plan(stream, *scalars));
  kept_.emplace_front(*std::move(scalars), made);
  if (kept_.size() > kMostPlans) kept_.pop_back();
  return made;
}

Result<EventPtr> DeviceProgram::run(ClStream& stream, const std::shared_ptr<DevicePlan>& plan,
                                    std::span<const RunValue> inputs, std::span<RunValue> outputs,
                                    std::vector<OpProfile>* profile) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ElementType element = lowered_.output_types[i].element();
    TENON_TRY(count, element_count(plan->output_dims[i]));
    TENON_TRY(buffer, device_->allocate_buffer(static_cast<size_t>(count * (element.bits() / 8))), "output ", i);
    outputs[i] = RunValue{{}, {element, plan->output_dims[i], std::move(buffer), 0}};
  }
  return DeviceRun(stream, *plan, constants_.get(), profile).run(inputs, outputs);
}

size_t DeviceProgram::arena_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t most = 0;
  for (const auto& [scalars, plan] : kept_) most = std::max(most, plan->arena_bytes);
  return most;
}

size_t DeviceProgram::arena_lower_bound_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t most = 0;
  for (const auto& [scalars, plan] : kept_) most = std::max(most, plan->arena_lower_bound_bytes);
  return most;
}

}  // namespace tenon::opencl
