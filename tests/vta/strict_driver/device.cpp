#include "device.hpp"

#include <algorithm>

namespace strict {
namespace {

constexpr uint32_t kInstructionBytes = 16;
// Boards count tokens in eight bits.
constexpr uint32_t kMostTokens = 255;

}  // namespace

Schedule::Schedule(std::vector<Instruction> stream, uint32_t queue, std::mt19937& random)
    : stream_(std::move(stream)), queue_(queue), random_(random), mixed_(random() % 3 == 0) {
  std::shuffle(order_.begin(), order_.end(), random_);
}

Schedule::Queues Schedule::queues(Unit unit) {
  if (unit == kLoadUnit) return {nullptr, &compute_load_, nullptr, &load_compute_};
  if (unit == kStoreUnit) return {&compute_store_, nullptr, &store_compute_, nullptr};
  return {&load_compute_, &store_compute_, &compute_load_, &compute_store_};
}

// Instructions are dispatched in order; a full queue blocks all that follow.
void Schedule::fetch() {
  while (fetched_ < stream_.size() && waiting_[stream_[fetched_].unit()].size() < queue_) {
    waiting_[stream_[fetched_].unit()].push_back(static_cast<int64_t>(fetched_));
    ++fetched_;
  }
}

bool Schedule::can_go(Unit unit) {
  if (waiting_[unit].empty()) return false;
  const Instruction& i = at(waiting_[unit].front());
  const Queues q = queues(unit);
  return (!i.pop_prev || *q.pop_prev > 0) && (!i.pop_next || *q.pop_next > 0);
}

int64_t Schedule::next() {
  fetch();
  if (mixed_) std::shuffle(order_.begin(), order_.end(), random_);
  const auto unit = std::find_if(order_.begin(), order_.end(), [&](Unit u) { return can_go(u); });
  if (unit != order_.end()) {
    const int64_t number = waiting_[*unit].front();
    waiting_[*unit].pop_front();
    return number;
  }
  const bool over = std::all_of(waiting_.begin(), waiting_.end(), [](const auto& w) { return w.empty(); });
  if (!over) throw Fault("all units wait for tokens");
  if (load_compute_ || compute_load_ || compute_store_ || store_compute_) throw Fault("tokens are left over");
  return -1;
}

void Schedule::done(int64_t number) {
  const Instruction& i = at(number);
  const Queues q = queues(i.unit());
  if (i.pop_prev) --*q.pop_prev;
  if (i.pop_next) --*q.pop_next;
  for (uint32_t* push : {i.push_prev ? q.push_prev : nullptr, i.push_next ? q.push_next : nullptr})
    if (push && ++*push > kMostTokens) throw Fault("more than 255 tokens wait in a queue");
}

bool Device::run(uint32_t address, uint32_t count, uint32_t wait_cycles) {
  ++runs_;
  if (runs_ == options_["throw_run"]) throw std::logic_error("thrown on purpose");
  if (runs_ == options_["timeout_run"]) return false;
  if (wait_cycles == 0 || wait_cycles > INT32_MAX) throw Fault("wait_cycles " + std::to_string(wait_cycles));
  if (address % kInstructionBytes != 0) throw Fault("instructions at " + std::to_string(address));
  if (count == 0) throw Fault("no instructions");
  const Machine machine(options_);
  const uint8_t* bytes = memory_.device(address, uint64_t{count} * kInstructionBytes);
  std::vector<Instruction> stream;
  for (uint32_t i = 0; i < count; ++i) try {
      stream.push_back(decode_instruction(bytes + uint64_t{i} * kInstructionBytes, machine));
      if ((stream.back().opcode == kFinish) != (i + 1 == count)) throw Fault("FINISH ends a stream, and nothing else");
    } catch (const Fault& fault) {
      throw Fault("instruction " + std::to_string(i) + ": " + fault.what());
    }
  Chip chip(machine, memory_);
  Schedule schedule(std::move(stream), options_["queue"], random_);
  int64_t last = -1;
  for (int64_t number = schedule.next(); number >= 0; number = schedule.next()) try {
      chip.execute(schedule.at(number));
      schedule.done(number);
      last = number;
    } catch (const Fault& fault) {
      throw Fault("instruction " + std::to_string(number) + ": " + fault.what());
    }
  // Whoever waits for FINISH takes everything for done then.
  if (last != int64_t{count} - 1) throw Fault("FINISH runs before instruction " + std::to_string(last));
  return true;
}

}  // namespace strict
