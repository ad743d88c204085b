#include "vta/executable.hpp"

#include <fstream>

#include <tenon/ir/serialize.hpp>
#include <tenon/plugin/host_executable.hpp>
#include <tenon/support/log.hpp>

namespace tenon::vta {
namespace {

// Collects the trace of one run's operators, in sequence.
class Trace {
 public:
  void add(const RunResult& result, const std::vector<StreamEntry>& entries) {
    for (Span span : result.spans) {
      span.instruction += static_cast<uint32_t>(stream_.size());
      span.begin += end_, span.end += end_;
      all_.spans.push_back(span);
    }
    for (const StreamEntry& entry : entries) stream_.push_back(entry.instruction);
    end_ += result.counters.cycles;
  }
  Result<void> write(const std::string& path, uint64_t clock_hz) const {
    std::ofstream file(path, std::ios::trunc);
    file << chrome_trace(all_, stream_, clock_hz);
    if (file.good()) return {};
    return error(Code::io, "cannot write the trace '", path, "'");
  }

 private:
  RunResult all_;
  std::vector<Instruction> stream_;
  int64_t end_ = 0;
};

std::vector<std::pair<std::string, int64_t>> counters_of(const StepReport& step) {
  std::vector<std::pair<std::string, int64_t>> list{{"instructions", step.instructions}};
  if (!step.counters) return list;
  const RunCounters& c = *step.counters;
  list.insert(list.end(), {{"cycles", c.cycles},
                           {"gemm_cycles", c.gemm_cycles},
                           {"alu_cycles", c.alu_cycles},
                           {"dram_cycles", c.dram_cycles},
                           {"overlap_cycles", c.overlap_cycles},
                           {"dram_bytes", c.dram_bytes()},
                           {"stored_bytes", c.stored_bytes}});
  for (const Memory memory : {Memory::uop, Memory::wgt, Memory::inp, Memory::acc, Memory::acc8})
    list.emplace_back(str("loaded_bytes_", memory_name(memory)), c.loaded_bytes[static_cast<size_t>(memory)]);
  for (const UnitId unit : {UnitId::load, UnitId::compute, UnitId::store}) {
    list.emplace_back(str(unit_name(unit), "_busy_cycles"), c.of(unit).busy_cycles);
    list.emplace_back(str(unit_name(unit), "_stall_cycles"),
                      c.of(unit).token_stall_cycles + c.of(unit).fetch_stall_cycles);
  }
  return list;
}

class VtaExecutable final : public HostExecutable {
 public:
  static Result<std::unique_ptr<Executable>> make(std::unique_ptr<Graph> graph, const Hardware& hardware,
                                                  std::shared_ptr<Driver> driver, const ExecutableOptions& options) {
    TENON_OK(check_outputs(*graph));
    TENON_TRY(program, DeviceProgram::of(*graph, hardware));
    std::unique_ptr<VtaExecutable> made(new VtaExecutable(std::move(graph), options));
    made->driver_ = std::move(driver);
    const std::lock_guard lock(made->driver_->lock());
    TENON_TRY(loaded, LoadedProgram::load(program, made->driver_));
    made->loaded_ = std::move(loaded);
    made->say();
    return std::unique_ptr<Executable>(std::move(made));
  }
  ~VtaExecutable() override {
    const std::lock_guard lock(driver_->lock());
    loaded_.reset();
  }

  size_t arena_bytes() const override { return program().activation_bytes(); }
  size_t arena_lower_bound_bytes() const override { return program().activation_bound_bytes(); }
  Result<std::string> serialize() const override { return tenon::serialize(*graph_); }
  Result<std::string> listing() const override { return program().listing(); }

  Result<void> run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                   const RunOptions& options) const override {
    std::vector<const Tensor*> from;
    for (const Datum* input : inputs) from.push_back(&input->tensor());
    TENON_TRY(to, places_of(outputs));
    std::vector<StepReport> report;
    Trace trace;
    const std::lock_guard lock(driver_->lock());
    const auto step_done = [&](const DeviceProgram::Step& step) {
      if (const auto last = driver_->last_run(); last && !options_.trace_file.empty()) trace.add(*last, step.entries);
    };
    TENON_OK(loaded_->run(from, to, options.profile ? &report : nullptr, step_done));
    if (!options_.trace_file.empty()) TENON_OK(trace.write(options_.trace_file, program().hardware().clock_hz));
    for (const StepReport& step : report) add_profile(step, *options.profile);
    return {};
  }

 private:
  VtaExecutable(std::unique_ptr<Graph> graph, const ExecutableOptions& options)
      : HostExecutable(*graph), graph_(std::move(graph)), options_(options) {}

  const DeviceProgram& program() const { return loaded_->program(); }

  void say() const {
    int64_t instructions = 0, micro_ops = 0;
    for (const DeviceProgram::Step& step : program().steps()) {
      instructions += static_cast<int64_t>(step.entries.size());
      micro_ops += static_cast<int64_t>(step.micro_ops);
    }
    log(LogLevel::info, "graph '", graph_->name(), "' on ", program().hardware().name, ": ", program().steps().size(),
        " operators, ", instructions, " instructions, ", micro_ops, " micro-ops, ", program().activation_bytes(),
        " bytes of activations in DRAM, on driver ", quote(driver_->name()));
  }

  // The tensors for the outputs: the given ones, where they fit.
  Result<std::vector<Tensor*>> places_of(std::span<Datum* const> outputs) const {
    std::vector<Tensor*> places;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const DeviceProgram::Port& port = program().outputs()[i];
      Datum& place = *outputs[i];
      if (!place.is_tensor() || place.tensor().element() != kI8 || place.tensor().dims() != port.dims) {
        TENON_TRY(tensor, Tensor::allocate(kI8, port.dims));
        place = Datum(std::move(tensor));
      }
      places.push_back(&place.tensor());
    }
    return places;
  }

  // Microseconds on the device, by its clock; 0 where the driver does not count cycles.
  void add_profile(const StepReport& step, std::vector<OpProfile>& profile) const {
    OpProfile entry{.op = step.op, .label = step.label};
    if (step.counters)
      entry.microseconds =
          1e6 * static_cast<double>(step.counters->cycles) / static_cast<double>(program().hardware().clock_hz);
    entry.counters = counters_of(step);
    profile.push_back(std::move(entry));
  }

  std::unique_ptr<Graph> graph_;
  ExecutableOptions options_;
  std::shared_ptr<Driver> driver_;
  std::unique_ptr<LoadedProgram> loaded_;
};

}  // namespace

Result<std::unique_ptr<Executable>> make_executable(std::unique_ptr<Graph> graph, const Hardware& hardware,
                                                    std::shared_ptr<Driver> driver, const ExecutableOptions& options) {
  return VtaExecutable::make(std::move(graph), hardware, std::move(driver), options);
}

}  // namespace tenon::vta
