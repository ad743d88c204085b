// Non-temporal stores and prefetching ahead of loops, for tensors beyond the caches.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "x86/names.hpp"
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

// Whether the loop advances to other rows of port `port`.
bool moves(const Loop* rows, const std::vector<int>& ports, int port) {
  const auto points = [&](const auto& shift) { return ports[static_cast<size_t>(shift.pointer)] == port; };
  return rows && std::ranges::any_of(rows->shifts, points);
}

// For short rows that are processed several at once: the prefetch distance is about as many rows.
std::optional<int64_t> ahead_of_rows(const LinearKernel& kernel, const Loop* rows) {
  constexpr int64_t kJoinedBytes = 2048;
  if (kernel.joined.rows < 0 || !rows || rows->increment == 1) return std::nullopt;
  return rows->increment * kJoinedBytes;
}

// Instructions to be inserted into a body, each before the one at a position, in order.
struct Added {
  size_t before;
  Instruction one;
};

void insert(LinearKernel& kernel, std::vector<Added> added) {
  if (added.empty()) return;
  std::ranges::stable_sort(added, {}, &Added::before);
  std::vector<Instruction>& body = kernel.body;
  size_t from = body.size(), to = from + added.size();
  body.reserve(to), body.resize(to);
  // From the end, so that each instruction moves only once.
  for (; !added.empty(); added.pop_back()) {
    while (from > added.back().before) body[--to] = std::move(body[--from]);
    body[--to] = std::move(added.back().one);
  }
}

// Inserts, at the end of each innermost vector loop, `op` for the lines of its accesses of the kind `wanted` that
// belong to the first traversal of their data; for rows that no cache holds, in each traversal.
template <class Wanted>
void add_prefetches(const LinearKernel& kernel, Name op, Ahead ahead, Wanted wanted, std::vector<Added>& added) {
  if (ahead.lines == 0 || std::ranges::none_of(kernel.body, wanted)) return;
  Stretches stretches;  // accesses of the innermost loop, so far
  FirstWalks walks(kernel);
  const std::vector<int> ports = ports_of(kernel);
  // The accumulators of columns stay in a near cache.
  const auto comes = [&](RegisterId pointer) {
    return (kernel.joined.rows < 0 && kernel.blocks.dim < 0) ||
           moves(walks.rows(), ports, ports[static_cast<size_t>(pointer)]);
  };
  std::vector<Instruction> fetches;
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& instruction = kernel.body[i];
    if (instruction.op == kLoopBegin) stretches.clear();
    if (wanted(instruction) && walks.has(instruction) && comes(instruction.memory->base))
      stretches.add(kernel, instruction);
    if (instruction.op == kLoopEnd) {
      const int64_t lines = ahead.of(stretches.touched().size());
      const int64_t ahead_bytes = ahead_of_rows(kernel, walks.rows()).value_or(lines * kLineBytes);
      for (const Stretches::Touched& touched : stretches.touched())
        touched.write(op, ahead_bytes, kernel.body[i - 1].label, fetches);
      if (ahead.to_second) std::ranges::for_each(fetches, fetch_into_second);
      for (Instruction& fetch : fetches) added.push_back({i, std::move(fetch)});
      fetches.clear(), stretches.clear();
    }
    walks.follow(instruction);
  }
}

// The shortest vector that can be stored non-temporally has 16 bytes.
bool streamable(const LinearKernel& kernel, const Instruction& store, const PassOptions& options) {
  if (store.op == kStoreBytes) return options.row_begins == RowBegins::at_lines;
  const int bits = store.memory->element.bits();
  if (store.op != kStore || store.touched != Lanes::full || kernel.lanes * bits < 128) return false;
  if (options.row_begins == RowBegins::at_lines) return true;
  if (options.row_begins == RowBegins::behind_heads) return store.attributes.find("aligned") != nullptr;
  const bool in_step = kernel.blocks.dim >= 0 || kernel.skewed || options.alone;
  return in_step && bits >= 32 && kernel.lanes * bits == 8 * kLineBytes && store.memory->index >= 0;
}

}  // namespace

bool is_non_temporal(Name op) {
  static const Name kRows("StageRowsRest");
  return op == kStoreStreaming || op == kStoreBytesStreaming || op == kStoreLine || op == kStageLine ||
         op == kStageRest || op == kRows;
}
bool writes_memory(Name op) {
  return op == kStore || op == kStoreStreaming || op == kStoreBytes || op == kStoreBytesStreaming;
}
bool is_of_four(Name op) { return op == kLoadBytes || op == kStoreBytes || op == kStoreBytesStreaming; }
bool is_prefetch(Name op) { return op == kPrefetchWrite || op == kPrefetchRead; }
void fetch_into_second(Instruction& prefetch) { prefetch.attributes.set("second", 1); }

bool reads_memory(const Instruction& instruction) {
  const Name op = instruction.op;
  // These take the address itself, to compute a place or to prefetch, and do not read memory.
  static const std::set<Name> kPlaces{"HeadLanes", "FetchOn", "StageRowsBegin", "StageRows", "StageRowsRest"};
  return instruction.memory && !writes_memory(op) && !is_prefetch(op) && !kPlaces.contains(op);
}

void FirstWalks::follow(const Instruction& one) {
  if (one.op == kLoopEnd) counter_ = -1;
  if (one.op != kLoopBegin) return;
  const Loop& loop = kernel_.loops[static_cast<size_t>(one.number)];
  counter_ = loop.kind == Loop::Kind::vector ? loop.counter : -1;
  if (loop.kind == Loop::Kind::scalar && !kernel_.is_inside_row(loop)) rows_ = &loop, walks_.clear();
}

bool FirstWalks::has(const Instruction& one) {
  if (counter_ < 0 || one.memory->index != counter_ || one.touched != Lanes::full) return false;
  return kernel_.merged || walks_.try_emplace(one.memory->base, counter_).first->second == counter_;
}

std::vector<int> ports_of(const LinearKernel& kernel) {
  static const Name kParameter("Parameter"), kAdd("AddParameter"), kCopy("Copy");
  std::vector<int> ports(kernel.registers.size(), -1);
  for (const Instruction& instruction : kernel.body) {
    if (instruction.op == kAdd || instruction.op == kCopy)
      ports[static_cast<size_t>(instruction.out[0])] = ports[static_cast<size_t>(instruction.in[0])];
    if (instruction.op != kParameter) continue;
    const Param& param = kernel.params[static_cast<size_t>(instruction.number)];
    if (param.kind == Param::Kind::pointer) ports[static_cast<size_t>(instruction.out[0])] = param.port;
  }
  return ports;
}

void Stretches::add(const LinearKernel& kernel, const Instruction& instruction) {
  const Memory& memory = *instruction.memory;
  const int64_t lanes = kernel.lanes * (is_of_four(instruction.op) ? 4 : 1);
  const int64_t begin = memory.displacement_bytes, end = begin + lanes * memory.element.bits() / 8;
  const auto [place, is_new] = places_.try_emplace(memory.base, touched_.size());
  if (is_new) touched_.push_back({memory, begin, end});
  Touched& at = touched_[place->second];
  at.begin = std::min(at.begin, begin);
  at.end = std::max(at.end, end);
  at.written |= writes_memory(instruction.op);
}

void Stretches::Touched::write(Name op, int64_t ahead_bytes, int label, std::vector<Instruction>& body) const {
  for (int64_t at = begin; at < end; at += kLineBytes) {
    Instruction& made = body.emplace_back(Instruction{.op = op, .memory = memory, .label = label});
    made.memory->displacement_bytes = at + ahead_bytes;
  }
}

void stream_stores(LinearKernel& kernel, const PassOptions& options) {
  const std::vector<int> ports = ports_of(kernel);
  const auto port = [&](const Instruction& i) { return ports[static_cast<size_t>(i.memory->base)]; };
  std::set<int> kept{-1};  // ports that are read again should stay in the caches
  for (const Instruction& instruction : kernel.body)
    if (reads_memory(instruction)) kept.insert(port(instruction));
  for (Instruction& instruction : kernel.body)
    if (streamable(kernel, instruction, options) && !kept.contains(port(instruction)) &&
        kernel.has_rows(port(instruction)))
      instruction.op = instruction.op == kStoreBytes ? kStoreBytesStreaming : kStoreStreaming;
}

int64_t Ahead::of(size_t stretches) const {
  return stretches == 0 || together == 0 ? lines
                                         : std::clamp<int64_t>(together / static_cast<int64_t>(stretches), 1, lines);
}

void prefetch_lines(LinearKernel& kernel, Ahead writes, Ahead reads, const std::set<RegisterId>& near) {
  const auto is_far = [&](const Instruction& one) { return !near.contains(one.memory->base); };
  const auto is_written = [&](const Instruction& one) {
    return (one.op == kStore || one.op == kStoreBytes) && is_far(one);
  };
  const auto is_read = [&](const Instruction& one) { return reads_memory(one) && is_far(one); };
  std::vector<Added> added;
  add_prefetches(kernel, kPrefetchWrite, writes, is_written, added);
  add_prefetches(kernel, kPrefetchRead, reads, is_read, added);
  insert(kernel, std::move(added));
}

bool has_streaming_stores(const LinearKernel& kernel) {
  return std::ranges::any_of(kernel.body, [](const Instruction& one) { return is_non_temporal(one.op); });
}

}  // namespace tenon::x86
