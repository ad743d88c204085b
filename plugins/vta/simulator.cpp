#include "vta/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

#include "vta/tokens.hpp"

namespace tenon::vta {
namespace {

int64_t transfer_bytes(const Transfer& t, const Hardware& hardware) {
  return int64_t{t.y_size} * t.x_size * hardware.element_bytes(t.memory);
}

// The schedule of one run: which unit runs next, and when.
class Run {
 public:
  Run(const Hardware& hardware, const std::vector<Instruction>& stream, const RunLimits& limits, RunResult& result)
      : hardware_(hardware), stream_(stream), limits_(limits), result_(result), place_(stream.size()) {}

  // Determines what each instruction pops and pushes, before anything runs.
  Result<void> prepare() {
    for (size_t i = 0; i < stream_.size(); ++i) {
      TENON_TRY(use, tokens_of(stream_[i]), "instruction ", i, ": ", print(stream_[i]));
      tokens_.push_back(use);
      std::vector<uint32_t>& queue = lane(stream_[i].unit()).queue;
      place_[i] = queue.size();
      queue.push_back(static_cast<uint32_t>(i));
    }
    fetch();
    return {};
  }

  // The instruction that starts next; none: all are complete. An error if no unit can start: a deadlock.
  Result<std::optional<uint32_t>> next() {
    std::optional<UnitId> best;
    int64_t begin = 0;
    for (const UnitId unit : {UnitId::load, UnitId::compute, UnitId::store}) {
      const auto ready = ready_at(unit);
      if (ready && (!best || *ready < begin)) best = unit, begin = *ready;
    }
    if (!best) return all_done() ? Result<std::optional<uint32_t>>(std::nullopt) : deadlock();
    Lane& at = lane(*best);
    const uint32_t number = at.queue[at.done];
    begin_ = begin;
    return std::optional(number);
  }

  // The cycle at which it completes.
  int64_t finish(uint32_t number) {
    const Instruction& instruction = stream_[number];
    Lane& at = lane(instruction.unit());
    const int64_t end = begin_ + cycles(instruction);
    count(instruction, at, number, end);
    for (const auto& queue : tokens_[number].pops)
      if (queue) tokens(*queue).pop_front();
    for (const auto& queue : tokens_[number].pushes)
      if (queue) tokens(*queue).push_back(end);
    at.free_at = end;
    at.started.push_back(begin_);
    ++at.done;
    result_.counters.cycles = std::max(result_.counters.cycles, end);
    fetch();
    return end;
  }

  void count_overlap();

 private:
  struct Lane {
    std::vector<uint32_t> queue;   // numbers of its instructions
    std::vector<int64_t> started;  // start cycles of those that have run
    size_t done = 0;
    int64_t free_at = 0;
  };
  Lane& lane(UnitId unit) { return lanes_[static_cast<size_t>(unit)]; }
  std::deque<int64_t>& tokens(TokenQueue queue) { return pushed_[static_cast<size_t>(queue)]; }
  bool all_done() const {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.done == l.queue.size(); });
  }

  // Fetches instructions while their queues have space.
  void fetch() {
    while (fetched_.size() < stream_.size()) {
      const size_t i = fetched_.size();
      const Lane& at = lane(stream_[i].unit());
      const auto depth = static_cast<size_t>(hardware_.queue_depth);
      int64_t room = 0;
      if (place_[i] >= depth) {
        if (at.started.size() <= place_[i] - depth) return;
        room = at.started[place_[i] - depth];
      }
      fetched_.push_back(std::max(room, fetched_.empty() ? 0 : fetched_.back() + 1));
    }
  }

  // The cycle from which the unit's next instruction may start; none: it is not fetched, or a token is missing.
  std::optional<int64_t> ready_at(UnitId unit) {
    Lane& at = lane(unit);
    if (at.done == at.queue.size() || at.queue[at.done] >= fetched_.size()) return std::nullopt;
    const uint32_t number = at.queue[at.done];
    int64_t begin = std::max(at.free_at, fetched_[number]);
    for (const auto& queue : tokens_[number].pops) {
      if (!queue) continue;
      if (tokens(*queue).empty()) return std::nullopt;
      begin = std::max(begin, tokens(*queue).front());
    }
    return begin;
  }

  int64_t cycles(const Instruction& instruction) {
    switch (instruction.opcode) {
      case Opcode::gemm: return instruction.steps.count() * hardware_.gemm_step_cycles;
      case Opcode::alu: return instruction.steps.count() * hardware_.alu_step_cycles;
      case Opcode::finish: return 1;
      case Opcode::load:
      case Opcode::store: break;
    }
    const int64_t bytes = transfer_bytes(instruction.transfer, hardware_);
    if (bytes == 0) return 1;
    const auto moving = static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / hardware_.dram_bytes_per_cycle));
    const int64_t from = std::max(begin_, dram_free_at_);
    dram_free_at_ = from + moving;
    result_.counters.dram_cycles += moving;
    return dram_free_at_ + hardware_.dram_latency_cycles - begin_;
  }

  void count(const Instruction& instruction, Lane& at, uint32_t number, int64_t end) {
    RunCounters& counters = result_.counters;
    UnitCounters& unit = counters.units[static_cast<size_t>(instruction.unit())];
    const int64_t waited_for_fetch = std::max<int64_t>(0, std::min(fetched_[number], begin_) - at.free_at);
    unit.busy_cycles += end - begin_;
    unit.fetch_stall_cycles += waited_for_fetch;
    unit.token_stall_cycles += begin_ - at.free_at - waited_for_fetch;
    ++unit.instructions;
    if (instruction.opcode == Opcode::gemm) counters.gemm_cycles += end - begin_;
    if (instruction.opcode == Opcode::alu) counters.alu_cycles += end - begin_;
    const int64_t bytes = transfer_bytes(instruction.transfer, hardware_);
    if (instruction.opcode == Opcode::load)
      counters.loaded_bytes[static_cast<size_t>(instruction.transfer.memory)] += bytes;
    if (instruction.opcode == Opcode::store) counters.stored_bytes += bytes;
    result_.spans.push_back({number, instruction.unit(), begin_, end});
  }

  Error deadlock() {
    std::string waiting;
    for (const UnitId unit : {UnitId::load, UnitId::compute, UnitId::store}) {
      const Lane& at = lane(unit);
      if (at.done == at.queue.size()) continue;
      const uint32_t number = at.queue[at.done];
      std::string why = "is not fetched, as a queue before it is full";
      if (number < fetched_.size())
        for (const auto& queue : tokens_[number].pops)
          if (queue && tokens(*queue).empty()) why = str("waits for a token ", token_queue_name(*queue));
      waiting += str("; instruction ", number, " (", print(stream_[number]), ") ", why);
    }
    return error(Code::invalid_argument, "deadlock", waiting);
  }

  const Hardware& hardware_;
  const std::vector<Instruction>& stream_;
  const RunLimits& limits_;
  RunResult& result_;
  std::vector<size_t> place_;  // position in the queue of its unit
  std::vector<TokenUse> tokens_;
  std::vector<int64_t> fetched_;  // fetch cycles
  std::array<Lane, kUnits> lanes_;
  std::array<std::deque<int64_t>, kTokenQueues> pushed_;  // cycles at which tokens were pushed
  int64_t begin_ = 0;                                     // of the instruction that starts
  int64_t dram_free_at_ = 0;
};

// Counts the cycles that at least two spans cover.
void Run::count_overlap() {
  std::vector<std::pair<int64_t, int>> edges;
  for (const Span& span : result_.spans) {
    edges.emplace_back(span.begin, 1);
    edges.emplace_back(span.end, -1);
  }
  std::sort(edges.begin(), edges.end());
  int busy = 0;
  int64_t since = 0;
  for (const auto& [cycle, change] : edges) {
    if (busy >= 2) result_.counters.overlap_cycles += cycle - since;
    busy += change;
    since = cycle;
  }
  if (!limits_.keep_spans) std::vector<Span>().swap(result_.spans);
}

std::string percent(int64_t part, int64_t whole) { return str(whole == 0 ? 0 : 100 * part / whole, "%"); }

}  // namespace

int64_t RunCounters::dram_bytes() const {
  int64_t bytes = stored_bytes;
  for (const int64_t loaded : loaded_bytes) bytes += loaded;
  return bytes;
}

std::string RunCounters::to_string() const {
  std::string text =
      str(cycles, " cycles, of these GEMM ", percent(gemm_cycles, cycles), ", ALU ", percent(alu_cycles, cycles),
          ", DRAM ", percent(dram_cycles, cycles), ", two units at once ", percent(overlap_cycles, cycles), "\n");
  for (const UnitId unit : {UnitId::load, UnitId::compute, UnitId::store}) {
    const UnitCounters& c = of(unit);
    text += str("  ", unit_name(unit), ": ", c.instructions, " instructions, busy ", c.busy_cycles,
                ", waiting for tokens ", c.token_stall_cycles, ", for instructions ", c.fetch_stall_cycles, "\n");
  }
  text += str("  DRAM: ", dram_bytes(), " bytes (");
  for (size_t m = 0; m < kMemories; ++m)
    if (loaded_bytes[m] != 0) text += str(memory_name(static_cast<Memory>(m)), " ", loaded_bytes[m], ", ");
  return text + str("stored ", stored_bytes, ")\n");
}

Result<std::vector<Instruction>> read_stream(Dram& dram, uint64_t address, int64_t count, const Hardware& hardware) {
  if (count < 0 || count > static_cast<int64_t>(Dram::kMaxBufferBytes) / kInstructionBytes)
    return error(Code::invalid_argument, "a stream of ", count, " instructions; one buffer holds ",
                 Dram::kMaxBufferBytes / kInstructionBytes);
  TENON_TRY(bytes, dram.at(address, static_cast<uint64_t>(count * kInstructionBytes)), "the stream");
  std::vector<Instruction> stream;
  stream.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    Words words;
    std::memcpy(words.data(), bytes.data() + i * kInstructionBytes, sizeof words);
    TENON_TRY(instruction, decode(words, hardware), "instruction ", i);
    stream.push_back(instruction);
  }
  return stream;
}

Result<RunResult> Simulator::run(Dram& dram, uint64_t address, int64_t count, const RunLimits& limits) {
  TENON_TRY(stream, read_stream(dram, address, count, hardware_));
  RunResult result;
  Run run(hardware_, stream, limits, result);
  TENON_OK(run.prepare());
  while (true) {
    TENON_TRY(number, run.next());
    if (!number) break;
    // Tested before it is executed, so that excessive work is not simulated.
    if (run.finish(*number) > limits.cycles) {
      result.late = *number;
      break;
    }
    TENON_OK(machine_.execute(stream[*number], dram), "instruction ", *number, ": ", print(stream[*number]));
  }
  run.count_overlap();
  return result;
}

Result<RunCounters> time_stream(const std::vector<Instruction>& stream, const Hardware& hardware) {
  RunResult result;
  const RunLimits limits;
  Run run(hardware, stream, limits, result);
  TENON_OK(run.prepare());
  while (true) {
    TENON_TRY(number, run.next());
    if (!number) return result.counters;
    run.finish(*number);
  }
}

std::string chrome_trace(const RunResult& result, const std::vector<Instruction>& stream, uint64_t clock_hz) {
  const double us = clock_hz == 0 ? 1 : 1e6 / static_cast<double>(clock_hz);
  std::string text = "{\"traceEvents\": [\n";
  for (const UnitId unit : {UnitId::load, UnitId::compute, UnitId::store})
    text += str("{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 1, \"tid\": ", static_cast<int>(unit) + 1,
                ", \"args\": {\"name\": \"", unit_name(unit), "\"}},\n");
  for (const Span& span : result.spans) {
    const std::string what = print(stream[span.instruction]);
    text += str("{\"ph\": \"X\", \"pid\": 1, \"tid\": ", static_cast<int>(span.unit) + 1,
                ", \"ts\": ", static_cast<double>(span.begin) * us,
                ", \"dur\": ", static_cast<double>(span.end - span.begin) * us, ", \"name\": \"",
                what.substr(0, what.find(' ')), "\", \"args\": {\"number\": ", span.instruction,
                ", \"instruction\": \"", what, "\"}},\n");
  }
  text += "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"args\": {\"name\": \"VTA\"}}\n]}\n";
  return text;
}

}  // namespace tenon::vta
