#include <tenon/model/compiled_model.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_set>

#include <tenon/support/str.hpp>

namespace tenon {

// ---- Placement ----

double PlacementReport::coverage(std::string_view target) const {
  if (entries.empty()) return 1;
  const auto there = std::count_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.target == target; });
  return static_cast<double>(there) / static_cast<double>(entries.size());
}

std::string PlacementReport::to_string() const {
  std::map<std::string, std::map<std::string, int>> operators;          // target -> operator -> count
  std::map<std::string, std::map<std::string, std::vector<std::string>>> refused;  // target -> reason -> labels
  for (const auto& entry : entries) {
    ++operators[entry.target][entry.op];
    for (const auto& [target, reason] : entry.refusals) {
      refused[target][reason].push_back(entry.label.empty() ? entry.op : entry.label);
    }
  }
  std::string out;
  for (const auto& [target, counts] : operators) {
    int total = 0;
    for (const auto& [op, count] : counts) total += count;
    out += str(target, ": ", total, " of ", entries.size(), " operators\n ");
    for (const auto& [op, count] : counts) out += str(" ", op, count > 1 ? str(" x", count) : std::string());
    out += "\n";
  }
  for (const auto& [target, reasons] : refused) {
    out += str("refused by ", target, ":\n");
    for (const auto& [reason, labels] : reasons) {
      out += str("  ", reason, " (", labels.size(), ": ", labels[0], labels.size() > 1 ? ", ..." : "", ")\n");
    }
  }
  return out;
}

// ---- CompiledModel ----

namespace {

// A value on its way through the segments, and the work that fills it.
struct Slot {
  RunValue value;
  EventPtr ready;  // null: ready
};

using Streams = std::vector<std::unique_ptr<Stream>>;

}  // namespace

struct CompiledModel::Impl {
  Parts parts;
  // Stream numbers: segments of one device share a stream, so that their order needs no events.
  std::vector<size_t> stream_of;     // per segment
  std::vector<Device*> devices;      // per stream
  std::vector<std::vector<size_t>> dead;  // per segment: slots that nothing later reads
  // Per segment and input, and per output: the value goes along instead of a copy, since nobody else needs it.
  std::vector<std::vector<bool>> takes;
  std::vector<bool> takes_output;
  std::vector<bool> given;                // slots of inputs and constants, whose bytes others hold
  std::mutex mutex;
  std::vector<Streams> idle;

  Result<Streams> acquire() {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        Streams taken = std::move(idle.back());
        idle.pop_back();
        return taken;
      }
    }
    Streams made;
    for (Device* device : devices) {
      TENON_TRY(stream, device->create_stream(/*background=*/false), "opening a stream on device '", device->name(), "'");
      made.push_back(std::move(stream));
    }
    return made;
  }
  void release(Streams streams) {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(streams));
  }

  Result<std::vector<Datum>> run(std::span<const Datum> inputs, std::span<const Datum> into, const RunOptions& options,
                                 Streams& streams) const;

  Result<std::vector<Datum>> checked_run(std::span<const Datum> inputs, std::span<const Datum> into,
                                         const RunOptions& options);
  // Where results of the segment that are outputs may be written.
  void place_outputs(const Segment& segment, std::span<const Datum> into, std::vector<RunValue>& results) const;
  // Is all of the model one executable on the host, which makes each output once? Its values then need no slots.
  bool is_direct() const;
  Result<std::vector<Datum>> run_direct(std::span<const Datum> inputs, std::span<const Datum> into,
                                        const RunOptions& options, Stream& stream) const;
  bool direct = false;
};

namespace {

// The value where `stream`'s device can read it; the slot may lose it when the reader `takes` it.
Result<RunValue> bring(Slot& slot, Stream& stream, bool takes) {
  const bool here = slot.value.on_device() ? &slot.value.device.buffer->device() == &stream.device()
                                           : stream.device().is_host() || !slot.value.host.is_tensor();
  if (here && takes) return std::move(slot.value);
  if (here) return slot.value;
  if (slot.ready) TENON_OK(slot.ready->wait());
  slot.ready = nullptr;
  RunValue on_host = slot.value;
  if (slot.value.on_device()) {
    TENON_TRY(foreign, slot.value.device.buffer->device().create_stream(false));
    TENON_TRY(fetched, to_host(*foreign, slot.value));
    on_host = RunValue{std::move(fetched), {}};
  }
  if (stream.device().is_host()) return on_host;
  return to_device(stream, on_host.host.tensor());
}

}  // namespace

bool CompiledModel::Impl::is_direct() const {
  return parts.segments.size() == 1 && devices[0]->is_host() && parts.constants.empty() &&
         parts.output_slots == parts.segments[0].outputs &&
         std::none_of(parts.output_slots.begin(), parts.output_slots.end(), [&](size_t slot) { return given[slot]; }) &&
         std::all_of(takes_output.begin(), takes_output.end(), [](bool takes) { return takes; });
}

void CompiledModel::Impl::place_outputs(const Segment& segment, std::span<const Datum> into,
                                        std::vector<RunValue>& results) const {
  for (size_t k = 0; k < into.size(); ++k) {
    // Of outputs that share a slot only the last takes its value along.
    if (!takes_output[k]) continue;
    const auto found = std::find(segment.outputs.begin(), segment.outputs.end(), parts.output_slots[k]);
    if (found != segment.outputs.end()) results[static_cast<size_t>(found - segment.outputs.begin())].host = into[k];
  }
}

Result<std::vector<Datum>> CompiledModel::Impl::run_direct(std::span<const Datum> inputs, std::span<const Datum> into,
                                                           const RunOptions& options, Stream& stream) const {
  const Segment& segment = parts.segments[0];
  std::vector<RunValue> arguments(segment.inputs.size()), results(segment.outputs.size());
  for (size_t i = 0; i < arguments.size(); ++i) arguments[i].host = inputs[segment.inputs[i]];
  for (size_t i = 0; i < into.size(); ++i) results[i].host = into[i];
  TENON_TRY(done, segment.executable->enqueue(stream, arguments, results, options), "target '", segment.target, "'");
  TENON_OK(done->wait(), "target '", segment.target, "'");
  std::vector<Datum> outputs;
  outputs.reserve(results.size());
  for (RunValue& result : results) {
    if (result.on_device()) {
      TENON_TRY(fetched, to_host(stream, result), "fetching output '", parts.outputs[outputs.size()].name, "'");
      outputs.push_back(std::move(fetched));
    } else {
      outputs.push_back(std::move(result.host));
    }
  }
  return outputs;
}

Result<std::vector<Datum>> CompiledModel::Impl::run(std::span<const Datum> inputs, std::span<const Datum> into,
                                                    const RunOptions& options, Streams& streams) const {
  if (direct) return run_direct(inputs, into, options, *streams[0]);
  std::vector<Slot> slots(parts.slots);
  for (size_t i = 0; i < inputs.size(); ++i) slots[i].value.host = inputs[i];
  for (const auto& [slot, tensor] : parts.constants) slots[slot].value.host = tensor;
  for (size_t s = 0; s < parts.segments.size(); ++s) {
    const Segment& segment = parts.segments[s];
    Stream& stream = *streams[stream_of[s]];
    std::vector<RunValue> arguments;
    arguments.reserve(segment.inputs.size());
    for (const size_t slot : segment.inputs) {
      const size_t i = arguments.size();
      TENON_TRY(value, bring(slots[slot], stream, takes[s][i]), "moving '", segment.executable->inputs()[i].name,
                "' to target '", segment.target, "'");
      arguments.push_back(std::move(value));
    }
    std::vector<RunValue> results(segment.outputs.size());
    if (stream.device().is_host()) place_outputs(segment, into, results);
    TENON_TRY(done, segment.executable->enqueue(stream, arguments, results, options), "target '", segment.target, "'");
    // Host results are read right away by the next segment; device results wait on their stream.
    if (stream.device().is_host()) TENON_OK(done->wait(), "target '", segment.target, "'");
    for (size_t i = 0; i < results.size(); ++i) slots[segment.outputs[i]] = {std::move(results[i]), done};
    for (const size_t slot : dead[s]) slots[slot] = {};
  }
  std::vector<Datum> outputs;
  outputs.reserve(parts.output_slots.size());
  for (const size_t at : parts.output_slots) {
    Slot& slot = slots[at];
    if (!slot.value.on_device()) {
      const bool takes = takes_output[outputs.size()];
      outputs.push_back(takes ? std::move(slot.value.host) : slot.value.host);
      // An input or a constant that passes through is copied: outputs own their bytes.
      if (!given[at] || !outputs.back().is_tensor()) continue;
      TENON_TRY(copy, slot.value.host.tensor().clone(), "output '", parts.outputs[outputs.size() - 1].name, "'");
      outputs.back() = Datum(std::move(copy));
      continue;
    }
    if (slot.ready) TENON_OK(slot.ready->wait());
    for (const auto& stream : streams) {
      if (&stream->device() != &slot.value.device.buffer->device()) continue;
      TENON_TRY(fetched, to_host(*stream, slot.value), "fetching output '", parts.outputs[outputs.size()].name, "'");
      outputs.push_back(std::move(fetched));
      break;
    }
  }
  return outputs;
}

CompiledModel::CompiledModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CompiledModel::~CompiledModel() = default;

namespace {

// By reader of slots in order: is it the last one, of a slot that may be taken?
template <class May>
std::vector<bool> last_readers(const std::vector<size_t>& slots, const May& may) {
  std::vector<bool> last(slots.size());
  std::unordered_set<size_t> seen;
  for (size_t i = slots.size(); i-- > 0;) last[i] = seen.insert(slots[i]).second && may(slots[i]);
  return last;
}

}  // namespace

Result<std::unique_ptr<CompiledModel>> CompiledModel::assemble(Parts parts) {
  auto impl = std::make_unique<Impl>();
  const auto in_range = [&](const std::vector<size_t>& slots) {
    return std::all_of(slots.begin(), slots.end(), [&](size_t slot) { return slot < parts.slots; });
  };
  bool sound = parts.inputs.size() <= parts.slots && parts.outputs.size() == parts.output_slots.size() &&
               in_range(parts.output_slots);
  for (const Segment& segment : parts.segments) {
    sound = sound && in_range(segment.inputs) && in_range(segment.outputs) &&
            segment.inputs.size() == segment.executable->inputs().size() &&
            segment.outputs.size() == segment.executable->outputs().size();
  }
  for (const auto& [slot, tensor] : parts.constants) sound = sound && slot < parts.slots;
  if (!sound) return error(Code::parse, "the parts of model '", parts.name, "' do not fit together");

  // Every slot is filled before it is read.
  std::vector<bool> filled(parts.slots, false);
  for (size_t i = 0; i < parts.inputs.size(); ++i) filled[i] = true;
  for (const auto& [slot, tensor] : parts.constants) filled[slot] = true;
  impl->given = filled;
  std::vector<size_t> last_use(parts.slots, SIZE_MAX);
  for (size_t s = 0; s < parts.segments.size(); ++s) {
    for (const size_t slot : parts.segments[s].inputs) {
      sound = sound && filled[slot];
      last_use[slot] = s;
    }
    for (const size_t slot : parts.segments[s].outputs) filled[slot] = true, last_use[slot] = s;
  }
  for (const size_t slot : parts.output_slots) sound = sound && filled[slot], last_use[slot] = SIZE_MAX;
  if (!sound) return error(Code::parse, "model '", parts.name, "' reads a value that no segment makes");
  impl->dead.resize(parts.segments.size());
  for (size_t slot = 0; slot < parts.slots; ++slot) {
    if (last_use[slot] != SIZE_MAX) impl->dead[last_use[slot]].push_back(slot);
  }
  for (size_t s = 0; s < parts.segments.size(); ++s)
    impl->takes.push_back(last_readers(parts.segments[s].inputs, [&](size_t slot) { return last_use[slot] == s; }));
  impl->takes_output = last_readers(parts.output_slots, [&](size_t slot) { return !impl->given[slot]; });
  for (const Segment& segment : parts.segments) {
    Device* device = &segment.executable->device();
    auto found = std::find(impl->devices.begin(), impl->devices.end(), device);
    impl->stream_of.push_back(static_cast<size_t>(found - impl->devices.begin()));
    if (found == impl->devices.end()) impl->devices.push_back(device);
  }
  impl->parts = std::move(parts);
  impl->direct = impl->is_direct();
  return std::unique_ptr<CompiledModel>(new CompiledModel(std::move(impl)));
}

const std::vector<ValueInfo>& CompiledModel::inputs() const { return impl_->parts.inputs; }
const std::vector<ValueInfo>& CompiledModel::outputs() const { return impl_->parts.outputs; }
const PlacementReport& CompiledModel::placement() const { return impl_->parts.placement; }
const std::vector<CompiledModel::Segment>& CompiledModel::segments() const { return impl_->parts.segments; }
const CompiledModel::Parts& CompiledModel::parts() const { return impl_->parts; }

size_t CompiledModel::arena_bytes() const {
  size_t bytes = 0;
  for (const Segment& segment : segments()) bytes += segment.executable->arena_bytes();
  return bytes;
}
size_t CompiledModel::arena_lower_bound_bytes() const {
  size_t bytes = 0;
  for (const Segment& segment : segments()) bytes += segment.executable->arena_lower_bound_bytes();
  return bytes;
}

Result<std::vector<Datum>> CompiledModel::Impl::checked_run(std::span<const Datum> inputs, std::span<const Datum> into,
                                                            const RunOptions& options) {
  if (inputs.size() != parts.inputs.size()) {
    return error(Code::invalid_argument, "model '", parts.name, "' has ", parts.inputs.size(), " inputs, ", inputs.size(),
                 " are given");
  }
  TENON_TRY(streams, acquire());
  auto outputs = run(inputs, into, options, streams);
  // Streams of a failed run may hold work or an error: they are not used again.
  if (outputs.ok()) release(std::move(streams));
  if (!outputs.ok()) return std::move(outputs).error().with_frame(str("running model '", parts.name, "'"));
  return outputs;
}

Result<std::vector<Datum>> CompiledModel::run(std::span<const Datum> inputs, const RunOptions& options) const {
  return impl_->checked_run(inputs, {}, options);
}

Result<void> CompiledModel::run_into(std::span<const Datum> inputs, std::span<Datum> outputs,
                                     const RunOptions& options) const {
  if (outputs.size() != impl_->parts.outputs.size()) {
    return error(Code::invalid_argument, "model '", impl_->parts.name, "' has ", impl_->parts.outputs.size(),
                 " outputs, places for ", outputs.size(), " are given");
  }
  TENON_TRY(made, impl_->checked_run(inputs, outputs, options));
  std::move(made.begin(), made.end(), outputs.begin());
  return {};
}

std::future<Result<std::vector<Datum>>> CompiledModel::run_async(std::vector<Datum> inputs, RunOptions options) const {
  return std::async(std::launch::async, [this, inputs = std::move(inputs), options] { return run(inputs, options); });
}

}  // namespace tenon
