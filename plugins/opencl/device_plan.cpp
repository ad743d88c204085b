#include "opencl/device_plan.hpp"

#include <algorithm>

#include <tenon/snippet/body/params.hpp>
#include <tenon/support/str.hpp>

#include "opencl/assemble.hpp"
#include "opencl/move.hpp"
#include "opencl/plan_memory.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using program::FlatOperand;
using program::FlatProgram;
using program::FlatStep;

// The least work for another work item on a CPU, where an item is a function call.
constexpr double kCyclesOfItem = 20000;
// Items for each compute unit. On a CPU several, for load balance; elsewhere enough to hide latencies.
constexpr int64_t kItemsOfCpuUnit = 4, kItemsOfUnit = 512;

Dims extents_of(const FlatOperand& operand) {
  Dims dims;
  for (size_t d = operand.dims.size(); d-- > 0;) dims.push_back(operand.dims[d].extent);
  return dims;
}

class Planner {
 public:
  Planner(const PlanSources& sources, const FlatProgram& flat) : from_(sources), flat_(flat), memory_(sources, flat) {}

  Result<std::shared_ptr<DevicePlan>> run(ClStream& stream) {
    stream_ = &stream;
    TENON_OK(memory_.find_roots());
    TENON_OK(make_calls());
    memory_.plan_arena_of(*plan_);
    for (size_t i = 0; i < flat_.steps.size(); ++i) {
      TENON_OK(add(i), flat_.steps[i].stage);
    }
    TENON_OK(build_programs());
    TENON_OK(upload_words(stream));
    return std::move(plan_);
  }

 private:
  // A call's division into chunks, and the scratch memory of one.
  struct Call {
    std::optional<snippet::CallPlan> plan;  // none: a copy
    snippet::Split split;
    size_t scratch = 0;  // number of its scratch memory in memory_
  };
  Result<void> make_calls() {
    for (size_t i = 0; i < flat_.steps.size(); ++i) {
      Call& call = calls_.emplace_back();
      const FlatStep& step = flat_.steps[i];
      if (!step.kernel) continue;
      const DeviceKernel& kernel = kernel_of(step);
      if (!kernel.forms.empty()) continue;
      std::vector<Dims> shapes;
      for (const size_t operand : kernel.operands) shapes.push_back(extents_of(step.operands[operand]));
      TENON_TRY(plan, snippet::CallPlan::make(kernel.code->body, kernel.code->kernel, shapes), step.stage);
      call.split = split_of(plan, *kernel.code);
      call.scratch = memory_.add_scratch(i, plan.scratch_bytes(), static_cast<size_t>(call.split.chunks()));
      call.plan = std::move(plan);
    }
    return {};
  }

  // On a CPU: chunks that are worth a call. Elsewhere: enough chunks for all items, with several lanes for each.
  snippet::Split split_of(const snippet::CallPlan& plan, const CompiledSnippet& code) const {
    const int64_t units = from_.device.info().compute_units;
    if (from_.compiler.options().work_group > 1)
      return plan.split(units * std::max<int64_t>(kItemsOfUnit / code.form.items, 1), code.kernel.lanes);
    const double least = kCyclesOfItem / std::max(code.cycles_per_element, 0.01);
    return plan.split(units * kItemsOfCpuUnit, static_cast<int64_t>(least));
  }

  static const DeviceKernel& kernel_of(const FlatStep& step) { return static_cast<const DeviceKernel&>(*step.kernel); }

  Result<void> add(size_t i) {
    const FlatStep& step = flat_.steps[i];
    if (!step.kernel) return add_move(step);
    return kernel_of(step).forms.empty() ? add_snippet(i) : add_compute(step);
  }

  // Work items for `pieces` independent pieces of work.
  int64_t items_for(int64_t pieces) const {
    const int64_t of_unit = from_.compiler.options().work_group > 1 ? kItemsOfUnit : kItemsOfCpuUnit;
    return std::min(pieces, int64_t{from_.device.info().compute_units} * of_unit);
  }

  Result<CallShapes> shapes_of(const FlatStep& step) const {
    const DeviceKernel& kernel = kernel_of(step);
    const ComputeKernel& form = *kernel.forms.front();
    CallShapes shapes;
    size_t operand = 0;
    for (const bool there : form.operands)
      shapes.operands.push_back(there ? extents_of(step.operands[operand++]) : Dims());
    std::vector<Dims>& rest = form.others > 0 ? shapes.others : shapes.results;
    for (; operand < step.operands.size(); ++operand) rest.push_back(extents_of(step.operands[operand]));
    if (form.others == 0) return shapes;
    Dims result;
    for (const Dim& dim : kernel.result.shape().dims()) {
      TENON_TRY(extent, dim.expr().evaluate(from_.scalars));
      result.push_back(extent);
    }
    shapes.results.push_back(std::move(result));
    return shapes;
  }

  // The number of the form to run.
  Result<size_t> form_of(const FlatStep& step, const CallShapes& shapes) {
    const ComputeForms& forms = kernel_of(step).forms;
    if (forms.size() == 1) return 0;
    FormCall call{step.stage,
                  forms,
                  shapes,
                  {},
                  [this](int64_t pieces) { return items_for(pieces); },
                  from_.compiler.options().work_group};
    for (const FlatOperand& operand : step.operands) {
      TENON_TRY(count, element_count(extents_of(operand)));
      call.port_bytes.push_back(static_cast<size_t>(count * (operand.element.bits() / 8)));
    }
    return fastest_form(*stream_, call);
  }

  Result<void> add_compute(const FlatStep& step) {
    TENON_TRY(shapes, shapes_of(step));
    TENON_TRY(form, form_of(step, shapes));
    const ComputeKernel& kernel = *kernel_of(step).forms[form];
    const size_t operand = step.operands.size();
    TENON_TRY(work, kernel.launch(shapes));
    if (work.items <= 0) return {};
    Launch launch{.stage = step.stage, .kernel = kComputeKernel};
    launch.source = kernel.source;
    launch.first_word = static_cast<int64_t>(words_.size());
    launch.group = from_.compiler.options().work_group;
    launch.items = items_for(work.items * (kernel.of_group ? launch.group : 1));
    for (size_t i = 0; i < operand; ++i) {
      words_.push_back(memory_.offset(step.operands[i]));
      launch.at.push_back(memory_.place(step.operands[i]));
    }
    if (kernel.can_fail) {
      launch.at.push_back({MemoryPlace::Kind::faults, 0});
      plan_->can_fail = true;
    }
    words_.push_back(static_cast<int64_t>(plan_->launches.size()) + 1);
    words_.push_back(work.items);
    words_.insert(words_.end(), work.numbers.begin(), work.numbers.end());
    plan_->launches.push_back(std::move(launch));
    return {};
  }

  Result<void> add_snippet(size_t i) {
    const FlatStep& step = flat_.steps[i];
    const Call& call = calls_[i];
    if (call.plan->empty()) return {};
    const DeviceKernel& kernel = kernel_of(step);
    Launch launch{.stage = step.stage, .kernel = kSnippetKernel};
    launch.source = kernel.code->source;
    launch.first_word = static_cast<int64_t>(words_.size());
    launch.chunks = call.split.chunks();
    launch.items = launch.chunks * kernel.code->form.items;
    launch.group = kernel.code->form.group;
    // Addresses are offsets, to which the kernel adds its ports.
    std::vector<void*> addresses;
    for (const size_t operand : kernel.operands) {
      addresses.push_back(reinterpret_cast<void*>(memory_.offset(step.operands[operand])));
      launch.at.push_back(memory_.place(step.operands[operand]));
    }
    if (!kernel.code->kernel.scratch.empty()) launch.at.push_back({});
    const size_t count = call.plan->words();
    words_.resize(words_.size() + count * static_cast<size_t>(launch.chunks));
    for (int64_t chunk = 0; chunk < launch.chunks; ++chunk) {
      const size_t scratch = memory_.scratch(call.scratch, static_cast<size_t>(chunk));
      const std::span<int64_t> words(words_.data() + launch.first_word + chunk * static_cast<int64_t>(count), count);
      call.plan->fill(words, addresses, reinterpret_cast<void*>(scratch), call.split, chunk);
    }
    plan_->launches.push_back(std::move(launch));
    return {};
  }

  Result<void> add_move(const FlatStep& step) {
    FlatOperand to = step.operands[0], from = step.operands[1];
    to.offset_bytes = memory_.offset(to), from.offset_bytes = memory_.offset(from);
    MovePlan move = plan_move(to, from);
    Launch launch{.stage = step.stage, .at = {memory_.place(to), memory_.place(from)}};
    launch.bytes = move.bytes, launch.to = move.to, launch.from = move.from;
    if (move.bytes == 0) {
      launch.group = from_.compiler.options().work_group;
      launch.source = move_source(move.unit_bytes, launch.group);
      launch.kernel = kMoveKernel;
      launch.first_word = static_cast<int64_t>(words_.size());
      launch.items = items_for(move.pieces(launch.group));
      words_.insert(words_.end(), move.table.begin(), move.table.end());
    }
    plan_->launches.push_back(std::move(launch));
    return {};
  }

  // Builds all programs that the plan needs and the process does not have, at once.
  Result<void> build_programs() {
    std::vector<WantedProgram> wanted;
    std::vector<Launch*> launches;
    for (Launch& launch : plan_->launches) {
      if (launch.source.empty()) continue;
      wanted.push_back({&launch.source, str("the kernel of ", launch.stage)});
      launches.push_back(&launch);
    }
    if (wanted.empty()) return {};
    TENON_TRY(programs, from_.device.programs());
    TENON_TRY(built, programs->get_all(wanted));
    for (size_t i = 0; i < built.size(); ++i) {
      launches[i]->program = std::move(built[i]);
      launches[i]->source.clear();
    }
    return {};
  }

  Result<void> upload_words(ClStream& stream) {
    const size_t bytes = words_.size() * sizeof(int64_t);
    TENON_TRY(memory, from_.device.allocate_memory(bytes, CL_MEM_READ_ONLY));
    plan_->words = std::move(memory);
    if (bytes == 0) return {};
    return stream.add([&] {
      return check(from_.device.cl().clEnqueueWriteBuffer(stream.queue(), plan_->words.get(), CL_TRUE, 0, bytes,
                                                          words_.data(), 0, nullptr, nullptr),
                   "clEnqueueWriteBuffer");
    });
  }

  const PlanSources& from_;
  ClStream* stream_ = nullptr;
  const FlatProgram& flat_;
  std::shared_ptr<DevicePlan> plan_ = std::make_shared<DevicePlan>();
  PlanMemory memory_;
  std::vector<Call> calls_;
  std::vector<int64_t> words_;
};

}  // namespace

Result<std::shared_ptr<DevicePlan>> plan_launches(const PlanSources& sources, const FlatProgram& flat,
                                                  ClStream& stream) {
  return Planner(sources, flat).run(stream);
}

}  // namespace tenon::opencl
