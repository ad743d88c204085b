#include "vta/stream.hpp"

#include <algorithm>

#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

// By unit: the last task, as number + 1, that is known to be complete; 0: none.
using Known = std::array<size_t, kUnits>;

// The last users of a resource.
struct Users {
  size_t writer = 0;  // task + 1
  Known readers{};    // since the last write
};

size_t index(UnitId unit) { return static_cast<size_t>(unit); }

// Marks the token from `from` to `to`. Units are neighbours: one of them is the compute unit.
void mark_push(Instruction& instruction, UnitId from, UnitId to) {
  (index(to) > index(from) ? instruction.push_next : instruction.push_prev) = true;
}
void mark_pop(Instruction& instruction, UnitId from, UnitId to) {
  (index(from) < index(to) ? instruction.pop_prev : instruction.pop_next) = true;
}

}  // namespace

Result<Instruction> bound(const StreamEntry& entry, uint64_t address, const Hardware& hardware) {
  Instruction instruction = entry.instruction;
  if (instruction.opcode != Opcode::load && instruction.opcode != Opcode::store) return instruction;
  const auto bytes = static_cast<uint64_t>(hardware.element_bytes(instruction.transfer.memory));
  if (address % bytes != 0)
    return error(Code::invalid_argument, print(instruction), ": its segment begins at byte ", address,
                 ", which is no multiple of an element's ", bytes);
  instruction.transfer.dram_base += static_cast<uint32_t>(address / bytes);
  return instruction;
}

Result<std::vector<Instruction>> Stream::bound(std::span<const uint64_t> addresses, const Hardware& hardware) const {
  std::vector<Instruction> bound;
  bound.reserve(entries.size());
  for (const StreamEntry& entry : entries) {
    TENON_CHECK(entry.segment < addresses.size(), "segment ", entry.segment, " of a stream has no address");
    TENON_TRY(instruction, vta::bound(entry, addresses[entry.segment], hardware));
    bound.push_back(instruction);
  }
  return bound;
}

Steps loops(int64_t out, int64_t in, Factors dst, Factors src, Factors wgt) {
  Steps steps{.iter_out = u32(out), .iter_in = u32(in)};
  if (out > 1)
    steps.dst_factor_out = u32(dst.out), steps.src_factor_out = u32(src.out), steps.wgt_factor_out = u32(wgt.out);
  if (in > 1) steps.dst_factor_in = u32(dst.in), steps.src_factor_in = u32(src.in), steps.wgt_factor_in = u32(wgt.in);
  return steps;
}

void StreamBuilder::task(UnitId unit, std::initializer_list<Resource> reads, Resource write) {
  if (!tasks_.empty()) tasks_.back().end = stream_.entries.size();
  const size_t at = stream_.entries.size();
  Task task{.unit = unit, .write = write, .first = at, .end = at};
  std::copy(reads.begin(), reads.end(), task.reads.begin());
  tasks_.push_back(task);
}

void StreamBuilder::transfer(Opcode opcode, const Transfer& transfer, Segment segment) {
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.transfer = transfer;
  stream_.entries.push_back({instruction, segment});
}

// Each task waits for the last tasks of other units that accessed what it writes, or wrote what it reads. What the
// giver of a token has waited for itself is known as well (happens-before is transitive).
void StreamBuilder::order_tasks() {
  std::vector<Users> users;
  const auto make_room = [&](Resource r) {
    if (r != kNoResource && r >= users.size()) users.resize(r + 1);
  };
  for (const Task& task : tasks_) {
    make_room(task.write);
    for (const Resource r : task.reads) make_room(r);
  }
  std::array<Known, kUnits> known{};
  std::vector<Known> done(tasks_.size());
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const Task& task = tasks_[t];
    Known needed{};
    const auto need = [&](size_t other) {
      if (other != 0) needed[index(tasks_[other - 1].unit)] = std::max(needed[index(tasks_[other - 1].unit)], other);
    };
    for (const Resource r : task.reads)
      if (r != kNoResource) need(users[r].writer);
    if (task.write != kNoResource) {
      need(users[task.write].writer);
      for (const size_t reader : users[task.write].readers) need(reader);
    }
    Known& mine = known[index(task.unit)];
    for (const UnitId unit : {UnitId::load, UnitId::compute, UnitId::store}) {
      if (unit == task.unit || needed[index(unit)] <= mine[index(unit)]) continue;
      TENON_CHECK(unit == UnitId::compute || task.unit == UnitId::compute,
                  "the load and the store unit share a resource");
      const Task& giver = tasks_[needed[index(unit)] - 1];
      mark_push(stream_.entries[giver.end - 1].instruction, unit, task.unit);
      mark_pop(stream_.entries[task.first].instruction, unit, task.unit);
      const Known& told = done[needed[index(unit)] - 1];
      for (size_t u = 0; u < kUnits; ++u) mine[u] = std::max(mine[u], told[u]);
    }
    mine[index(task.unit)] = t + 1;
    done[t] = mine;
    for (const Resource r : task.reads)
      if (r != kNoResource) users[r].readers[index(task.unit)] = t + 1;
    if (task.write != kNoResource) users[task.write] = Users{.writer = t + 1, .readers = {}};
  }
}

Stream StreamBuilder::finish(Resource last) {
  task(UnitId::compute, {last}, kNoResource);
  stream_.entries.push_back({Instruction{}, 0});
  tasks_.back().end = stream_.entries.size();
  std::erase_if(tasks_, [](const Task& task) { return task.first == task.end; });
  order_tasks();
  return std::move(stream_);
}

}  // namespace tenon::vta
