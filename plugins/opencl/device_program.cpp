#include "opencl/device_program.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <tenon/irgen/shape_check.hpp>
#include <tenon/support/str.hpp>

#include "opencl/device_plan.hpp"
#include "opencl/fuse.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

constexpr int64_t kConstantAlignment = 128;

// What a launch is given in a run.
struct RunMemory {
  const RunContext& context;
  cl_mem constants;
  std::span<const RunValue> inputs;
  std::span<const RunValue> outputs;

  cl_mem at(const MemoryPlace& place) const {
    switch (place.kind) {
      case MemoryPlace::Kind::arena: return context.arena.get();
      case MemoryPlace::Kind::constants: return constants;
      case MemoryPlace::Kind::input: return cl_buffer(*inputs[place.number].device.buffer).object();
      case MemoryPlace::Kind::faults: return context.faults.get();
      case MemoryPlace::Kind::output: return cl_buffer(*outputs[place.number].device.buffer).object();
    }
    return nullptr;
  }
};

bool is_fixed(const MemoryPlace& place) {
  return place.kind != MemoryPlace::Kind::input && place.kind != MemoryPlace::Kind::output;
}

class Arguments {
 public:
  Arguments(const Api& cl, const KernelObject& kernel) : cl_(cl), kernel_(kernel) {}
  template <class T>
  Arguments& set(cl_uint index, const T& value) {
    const cl_int code = cl_.clSetKernelArg(kernel_.get(), index, sizeof value, &value);
    if (code != CL_SUCCESS && failed_ == CL_SUCCESS) failed_ = code;
    return *this;
  }
  Result<void> done() const { return check(failed_, "clSetKernelArg"); }

 private:
  const Api& cl_;
  const KernelObject& kernel_;
  cl_int failed_ = CL_SUCCESS;
};

// Where the ports of a launch begin among its arguments.
cl_uint ports_of(const Launch& launch) { return launch.chunks > 0 ? kPortsArgument : kFirstArgument + 1; }

// The kernel of a launch with the arguments that are the same in every run.
Result<KernelObject> make_kernel(const ClDevice& device, const DevicePlan& plan, const Launch& launch,
                                 const RunMemory& memory) {
  const Api& cl = device.cl();
  cl_int code = CL_SUCCESS;
  const std::string name = str(launch.kernel, launch.program->suffix);
  KernelObject kernel(cl.clCreateKernel(launch.program->program->get(), name.c_str(), &code));
  TENON_OK(check(code, "clCreateKernel"));
  Arguments arguments(cl, kernel);
  arguments.set(kWordsArgument, plan.words.get()).set(kFirstArgument, cl_long{launch.first_word});
  if (launch.chunks > 0) arguments.set(kChunksArgument, cl_long{launch.chunks});
  for (size_t i = 0; i < launch.at.size(); ++i)
    if (is_fixed(launch.at[i])) arguments.set(ports_of(launch) + static_cast<cl_uint>(i), memory.at(launch.at[i]));
  TENON_OK(arguments.done());
  return kernel;
}

Result<std::unique_ptr<RunContext>> make_context(ClDevice& device, const DevicePlan& plan, cl_mem constants) {
  auto context = std::make_unique<RunContext>();
  TENON_TRY(arena, device.allocate_memory(plan.arena_bytes), "the arena of a run");
  context->arena = std::move(arena);
  if (plan.can_fail) {
    TENON_TRY(faults, device.allocate_memory(sizeof(cl_int)), "the word of faults");
    context->faults = std::move(faults);
  }
  for (const Launch& launch : plan.launches) {
    KernelObject& kernel = context->kernels.emplace_back();
    if (!launch.program) continue;
    TENON_TRY(made, make_kernel(device, plan, launch, {*context, constants, {}, {}}), launch.stage);
    kernel = std::move(made);
  }
  return context;
}

bool is_done(const Api& cl, const EventObject& event) {
  cl_int status = CL_COMPLETE;
  if (event) cl.clGetEventInfo(event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return status <= CL_COMPLETE;
}

// One that is idle, or that has run before on this queue, which is in order.
std::unique_ptr<RunContext> take_context(const Api& cl, DevicePlan& plan, cl_command_queue queue) {
  const std::lock_guard lock(plan.mutex);
  for (auto it = plan.idle.begin(); it != plan.idle.end(); ++it) {
    if ((*it)->queue != queue && !is_done(cl, (*it)->last_use)) continue;
    auto taken = std::move(*it);
    plan.idle.erase(it);
    return taken;
  }
  return nullptr;
}

// `done`: where an event of the launch is wanted.
Result<void> enqueue(ClStream& stream, const Launch& launch, const KernelObject& kernel, const RunMemory& memory,
                     int64_t work_group, cl_event* done) {
  const Api& cl = stream.cl_device().cl();
  if (!launch.program)
    return check(cl.clEnqueueCopyBuffer(stream.queue(), memory.at(launch.at[1]), memory.at(launch.at[0]),
                                        static_cast<size_t>(launch.from), static_cast<size_t>(launch.to),
                                        static_cast<size_t>(launch.bytes), 0, nullptr, done),
                 "clEnqueueCopyBuffer");
  Arguments arguments(cl, kernel);
  for (size_t i = 0; i < launch.at.size(); ++i)
    if (!is_fixed(launch.at[i])) arguments.set(ports_of(launch) + static_cast<cl_uint>(i), memory.at(launch.at[i]));
  TENON_OK(arguments.done());
  const auto local = static_cast<size_t>(work_group);
  const size_t global = (static_cast<size_t>(launch.items) + local - 1) / local * local;
  return check(cl.clEnqueueNDRangeKernel(stream.queue(), kernel.get(), 1, nullptr, &global, &local, 0, nullptr, done),
               "clEnqueueNDRangeKernel");
}

// Launches that can fail begin with no fault, and are waited for: a wrong index is an error of the run, not of whoever
// reads the outputs.
Result<void> clear_faults(ClStream& stream, const RunContext& context) {
  static constexpr cl_int kNone = 0;
  return stream.add([&] {
    return check(stream.cl_device().cl().clEnqueueWriteBuffer(stream.queue(), context.faults.get(), CL_FALSE, 0,
                                                              sizeof kNone, &kNone, 0, nullptr, nullptr),
                 "clEnqueueWriteBuffer");
  });
}
Result<void> check_faults(ClStream& stream, const DevicePlan& plan, const RunContext& context) {
  cl_int fault = 0;
  TENON_OK(stream.add([&] {
    return check(stream.cl_device().cl().clEnqueueReadBuffer(stream.queue(), context.faults.get(), CL_TRUE, 0,
                                                             sizeof fault, &fault, 0, nullptr, nullptr),
                 "clEnqueueReadBuffer");
  }));
  const auto launch = static_cast<size_t>(fault) - 1;
  if (fault <= 0 || launch >= plan.launches.size()) return {};
  return error(Code::invalid_argument, plan.launches[launch].stage, " has an index that is out of range");
}

// Inputs of other streams' making are ready: whoever enqueues has waited for them. One that does not begin where its
// memory does is copied, since kernels count from there.
Result<std::vector<RunValue>> aligned_inputs(ClStream& stream, std::span<const RunValue> inputs) {
  std::vector<RunValue> made(inputs.begin(), inputs.end());
  for (RunValue& value : made) {
    DeviceTensor& tensor = value.device;
    if (tensor.offset == 0) continue;
    const size_t bytes = tensor.buffer->bytes() - std::min(tensor.offset, tensor.buffer->bytes());
    TENON_TRY(copy, stream.cl_device().allocate_buffer(bytes));
    TENON_OK(stream.copy(*copy, 0, *tensor.buffer, tensor.offset, bytes));
    tensor.buffer = std::move(copy), tensor.offset = 0;
  }
  return made;
}

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
  // Made under the lock: threads that want the same extents wait for the one that plans them.
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
                                    std::span<const RunValue> given, std::span<RunValue> outputs,
                                    std::vector<OpProfile>* profile) {
  const Api& cl = device_->cl();
  TENON_TRY(inputs, aligned_inputs(stream, given));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ElementType element = lowered_.output_types[i].element();
    TENON_TRY(count, element_count(plan->output_dims[i]));
    TENON_TRY(buffer, device_->allocate_buffer(static_cast<size_t>(count * (element.bits() / 8))), "output ", i);
    outputs[i] = RunValue{{}, {element, plan->output_dims[i], std::move(buffer), 0}};
  }
  auto context = take_context(cl, *plan, stream.queue());
  if (!context) {
    TENON_TRY(made, make_context(*device_, *plan, constants_.get()));
    context = std::move(made);
  }
  const RunMemory memory{*context, constants_.get(), inputs, outputs};
  if (plan->can_fail) TENON_OK(clear_faults(stream, *context));
  cl_event last = nullptr;
  EventObject event;  // of the last launch
  for (size_t i = 0; i < plan->launches.size(); ++i) {
    const Launch& launch = plan->launches[i];
    const auto begin = std::chrono::steady_clock::now();
    cl_event* done = i + 1 == plan->launches.size() ? &last : nullptr;
    TENON_OK(stream.add([&] {
      return enqueue(stream, launch, context->kernels[i], memory, compiler_->options().work_group, done);
    }),
             launch.stage);
    if (last) event = EventObject(std::exchange(last, nullptr));
    if (!profile) continue;
    TENON_OK(stream.synchronize(), launch.stage);
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
    const auto [op, label] = irgen::label_of_stage(launch.stage);
    profile->push_back({std::string(op), std::string(label), taken.count()});
  }
  const auto faultless = plan->can_fail ? check_faults(stream, *plan, *context) : Result<void>();
  if (event) {
    TENON_OK(stream.flush());
  } else {
    TENON_TRY(mark, stream.mark());
    event = std::move(mark);
  }
  for (const RunValue& value : inputs) cl_buffer(*value.device.buffer).used_until(retained(cl, event));
  for (const RunValue& value : outputs) cl_buffer(*value.device.buffer).used_until(retained(cl, event));
  context->queue = stream.queue();
  context->last_use = retained(cl, event);
  {
    const std::lock_guard lock(plan->mutex);
    plan->idle.push_front(std::move(context));
  }
  TENON_OK(faultless);
  return stream.event_of(std::move(event));
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
