#include "opencl/device_run.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <tenon/support/str.hpp>

#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

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

// The index of a launch's first port among its arguments.
cl_uint ports_of(const Launch& launch) { return launch.chunks > 0 ? kPortsArgument : kFirstArgument + 1; }

cl_mem fixed_memory(const MemoryPlace& place, const RunContext& context, cl_mem constants) {
  if (place.kind == MemoryPlace::Kind::arena) return context.arena.get();
  return place.kind == MemoryPlace::Kind::constants ? constants : context.faults.get();
}

// The kernel of a launch, with the arguments that are the same in every run.
Result<KernelObject> make_kernel(const ClDevice& device, const DevicePlan& plan, const Launch& launch,
                                 const RunContext& context, cl_mem constants) {
  const Api& cl = device.cl();
  cl_int code = CL_SUCCESS;
  const std::string name = str(launch.kernel, launch.program->suffix);
  KernelObject kernel(cl.clCreateKernel(launch.program->program->get(), name.c_str(), &code));
  TENON_OK(check(code, "clCreateKernel"));
  Arguments arguments(cl, kernel);
  arguments.set(kWordsArgument, plan.words.get()).set(kFirstArgument, cl_long{launch.first_word});
  if (launch.chunks > 0) arguments.set(kChunksArgument, cl_long{launch.chunks});
  for (size_t i = 0; i < launch.at.size(); ++i)
    if (is_fixed(launch.at[i]))
      arguments.set(ports_of(launch) + static_cast<cl_uint>(i), fixed_memory(launch.at[i], context, constants));
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
    TENON_TRY(made, make_kernel(device, plan, launch, *context, constants), launch.stage);
    kernel = std::move(made);
  }
  return context;
}

// A context that is idle, or whose last run was on this queue, which is in order.
std::unique_ptr<RunContext> take_context(const Api& cl, DevicePlan& plan, cl_command_queue queue) {
  const std::lock_guard lock(plan.mutex);
  for (auto it = plan.idle.begin(); it != plan.idle.end(); ++it) {
    if ((*it)->queue != queue && status_of(cl, (*it)->last_use.get()) > CL_COMPLETE) continue;
    auto taken = std::move(*it);
    plan.idle.erase(it);
    return taken;
  }
  return nullptr;
}

void give_context(DevicePlan& plan, std::unique_ptr<RunContext> context, cl_command_queue queue, EventObject event) {
  context->queue = queue;
  context->last_use = std::move(event);
  const std::lock_guard lock(plan.mutex);
  plan.idle.push_front(std::move(context));
}

// Returns the events that an enqueuing function has to wait for and leaves none for the next, since the queue is in
// order.
Result<WaitList> taken(const Api& cl, WaitList& waits) {
  TENON_OK(check(waits.failed(), "what made the inputs"));
  return std::exchange(waits, WaitList(cl));
}

}  // namespace

cl_mem DeviceRun::at(const MemoryPlace& place) const {
  if (is_fixed(place)) return fixed_memory(place, *context_, constants_);
  const std::span<const RunValue> values = place.kind == MemoryPlace::Kind::input ? inputs_ : outputs_;
  return cl_buffer(*values[place.number].device.buffer).object();
}

std::vector<cl_mem> DeviceRun::objects_of(std::span<const RunValue> values) {
  std::vector<cl_mem> objects;
  for (const RunValue& value : values) objects.push_back(cl_buffer(*value.device.buffer).object());
  return objects;
}

Result<void> DeviceRun::place(std::span<const RunValue> inputs) {
  inputs_.assign(inputs.begin(), inputs.end());
  const bool in_place = stream_.cl_device().info().shares_memory != CL_FALSE;
  for (RunValue& value : inputs_) {
    DeviceTensor& tensor = value.device;
    const ClBuffer& buffer = cl_buffer(*tensor.buffer);
    if (tensor.offset == 0 && (in_place || !buffer.is_pinned())) {
      if (buffer.is_pinned() && std::ranges::find(lent_, &buffer) == lent_.end()) lent_.push_back(&buffer);
      continue;
    }
    const size_t bytes = buffer.bytes() - std::min(tensor.offset, buffer.bytes());
    TENON_TRY(copy, stream_.cl_device().allocate_buffer(bytes));
    TENON_OK(stream_.copy(*copy, 0, buffer, tensor.offset, bytes));
    tensor.buffer = std::move(copy), tensor.offset = 0;
  }
  return {};
}

// Before launches that can fail: clears the fault word. Such runs are waited for, because an invalid index is an error
// of the run, not of whoever reads the outputs.
Result<void> DeviceRun::clear_faults(WaitList& waits) {
  static constexpr cl_int kNone = 0;
  const Api& cl = stream_.cl_device().cl();
  TENON_TRY(before, taken(cl, waits));
  return check(cl.clEnqueueWriteBuffer(stream_.queue(), context_->faults.get(), CL_FALSE, 0, sizeof kNone, &kNone,
                                       before.count(), before.data(), nullptr),
               "clEnqueueWriteBuffer");
}

Result<void> DeviceRun::check_faults() {
  cl_int fault = 0;
  TENON_OK(stream_.add([&] {
    return check(stream_.cl_device().cl().clEnqueueReadBuffer(stream_.queue(), context_->faults.get(), CL_TRUE, 0,
                                                              sizeof fault, &fault, 0, nullptr, nullptr),
                 "clEnqueueReadBuffer");
  }));
  const auto launch = static_cast<size_t>(fault) - 1;
  if (fault <= 0 || launch >= plan_.launches.size()) return {};
  return error(Code::invalid_argument, plan_.launches[launch].stage, " has an index that is out of range");
}

Result<void> DeviceRun::enqueue(size_t number, WaitList& waits) {
  const Api& cl = stream_.cl_device().cl();
  const Launch& launch = plan_.launches[number];
  const KernelObject& kernel = context_->kernels[number];
  cl_event event = nullptr;
  cl_event* done = number + 1 == plan_.launches.size() ? &event : nullptr;
  TENON_TRY(before, taken(cl, waits));
  cl_int code = CL_SUCCESS;
  if (launch.program) {
    Arguments arguments(cl, kernel);
    for (size_t i = 0; i < launch.at.size(); ++i)
      if (!is_fixed(launch.at[i])) arguments.set(ports_of(launch) + static_cast<cl_uint>(i), at(launch.at[i]));
    TENON_OK(arguments.done());
    const auto local = static_cast<size_t>(launch.group);
    const size_t global = (static_cast<size_t>(launch.items) + local - 1) / local * local;
    code = cl.clEnqueueNDRangeKernel(stream_.queue(), kernel.get(), 1, nullptr, &global, &local, before.count(),
                                     before.data(), done);
  } else {
    code = cl.clEnqueueCopyBuffer(stream_.queue(), at(launch.at[1]), at(launch.at[0]), static_cast<size_t>(launch.from),
                                  static_cast<size_t>(launch.to), static_cast<size_t>(launch.bytes), before.count(),
                                  before.data(), done);
  }
  if (event) last_ = EventObject(event);
  return check(code, launch.program ? "clEnqueueNDRangeKernel" : "clEnqueueCopyBuffer");
}

Result<void> DeviceRun::enqueue_all(WaitList& waits) {
  if (plan_.can_fail) TENON_OK(stream_.add([&] { return clear_faults(waits); }));
  const cl_mem arena = context_->arena.get();
  if (plan_.guards) TENON_OK(plan_.guards->begin(stream_, arena, plan_.arena_bytes, objects_of(inputs_), waits));
  for (size_t i = 0; i < plan_.launches.size(); ++i) {
    const std::string& stage = plan_.launches[i].stage;
    const auto begin = std::chrono::steady_clock::now();
    TENON_OK(stream_.add([&] { return enqueue(i, waits); }), stage);
    if (profile_) {
      TENON_OK(stream_.synchronize(), stage);
      const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
      const auto [op, label] = irgen::label_of_stage(stage);
      profile_->push_back({std::string(op), std::string(label), taken.count()});
    }
    if (plan_.guards) TENON_OK(plan_.guards->check(stream_, arena, plan_.arena_bytes, stage));
  }
  return plan_.guards ? plan_.guards->end(stream_, arena, objects_of(outputs_)) : Result<void>();
}

Result<void> DeviceRun::take_back() {
  if (lent_.empty()) return {};
  TENON_TRY(event, stream_.take_back(lent_));
  last_ = std::move(event);
  return {};
}

Result<void> DeviceRun::begin(const WaitList& waits) {
  if (last_) return stream_.flush();
  TENON_TRY(mark, stream_.mark(waits));
  last_ = std::move(mark);
  return {};
}

void DeviceRun::used(const EventObject& event) {
  const Api& cl = stream_.cl_device().cl();
  const auto note = [&](std::span<const RunValue> values, Access access) {
    for (const RunValue& value : values)
      cl_buffer(*value.device.buffer).used(access, stream_.queue(), retained(cl, event.get()));
  };
  note(inputs_, Access::read), note(outputs_, Access::write);
}

Result<EventPtr> DeviceRun::run(std::span<const RunValue> inputs, std::span<const RunValue> outputs) {
  ClDevice& device = stream_.cl_device();
  outputs_ = outputs;
  TENON_OK(place(inputs));
  context_ = take_context(device.cl(), plan_, stream_.queue());
  if (!context_) {
    TENON_TRY(made, make_context(device, plan_, constants_), "device '", device.name(), "'");
    context_ = std::move(made);
  }
  WaitList waits(device.cl());
  for (const RunValue& value : inputs_) cl_buffer(*value.device.buffer).before(Access::read, stream_.queue(), waits);
  TENON_OK(stream_.lend(lent_, waits));
  auto done = enqueue_all(waits);
  if (auto back = take_back(); done.ok()) done = std::move(back);
  if (done.ok()) done = begin(waits);
  if (!done.ok()) {
    stream_.drain();  // memory that kernels may still write must not be reused
    return std::move(done).error();
  }
  used(last_);
  const auto faultless = plan_.can_fail ? check_faults() : Result<void>();
  give_context(plan_, std::move(context_), stream_.queue(), retained(device.cl(), last_.get()));
  TENON_OK(faultless);
  return stream_.event_of(std::move(last_));
}

}  // namespace tenon::opencl
