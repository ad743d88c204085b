#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include <tenon/snippet/linear/allocate_internal.hpp>
#include <tenon/snippet/linear/linear_names.hpp>

namespace tenon::snippet {
namespace {

// The estimated number of executions of an instruction at this loop depth.
double frequency(size_t depth) {
  double runs = 1;
  for (size_t i = 0; i < std::min<size_t>(depth, 6); ++i) runs *= 8;
  return runs;
}

}  // namespace

Intervals::Intervals(const std::vector<Instruction>& body) : body_(body), end_of_(body.size(), -1) {
  std::vector<size_t> open;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i].op == kLoopBegin) open.push_back(i);
    if (body[i].op != kLoopEnd) continue;
    end_of_[open.back()] = static_cast<int>(i);
    open.pop_back();
  }
}

void Intervals::enter(int i) {
  const size_t before = open_.size();
  while (!open_.empty() && open_.back().end < 2 * i) open_.pop_back();
  if (body_[static_cast<size_t>(i)].op == kLoopBegin) open_.push_back({2 * i, 2 * end_of_[static_cast<size_t>(i)] + 1});
  if (open_.size() != before) frequency_ = frequency(open_.size());
}

void Intervals::add(size_t id, int position) {
  if (id >= intervals_.size()) intervals_.resize(id + 1);
  Interval& interval = intervals_[id];
  if (interval.empty()) interval.start = interval.end = position;
  interval.uses += frequency_;
  interval.end = std::max(interval.end, position);
  if (open_.empty() || open_.back().begin <= interval.start) return;
  // A register that is live at the entry of a loop must be live through all of it: the next iteration may read it.
  const auto crossed =
      std::find_if(open_.begin(), open_.end(), [&](const Open& loop) { return loop.begin > interval.start; });
  interval.end = std::max(interval.end, crossed->end);
}

std::vector<Interval> live_intervals(const Work& work) {
  const std::vector<Instruction>& body = work.kernel.body;
  Intervals intervals(body);
  intervals.all().resize(work.kernel.registers.size());
  for (size_t i = 0; i < body.size(); ++i) {
    const int position = static_cast<int>(2 * i);
    intervals.enter(static_cast<int>(i));
    const int read = position + (work.needs[i].early_result ? 1 : 0);
    for (const RegisterId id : body[i].in) intervals.add(static_cast<size_t>(id), read);
    if (body[i].memory) {
      intervals.add(static_cast<size_t>(body[i].memory->base), read);
      if (body[i].memory->index >= 0) intervals.add(static_cast<size_t>(body[i].memory->index), read);
    }
    if (body[i].op == kLoopEnd) intervals.add(static_cast<size_t>(body[i].in[0]), position + 1);
    for (const RegisterId id : body[i].out) intervals.add(static_cast<size_t>(id), position + 1);
  }
  return std::move(intervals.all());
}

void pack_slots(LinearKernel& kernel) {
  const auto uses_slot = [](const Instruction& instruction) {
    return instruction.op == kSpill || instruction.op == kReload;
  };
  Intervals intervals(kernel.body);
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    intervals.enter(static_cast<int>(i));
    if (uses_slot(kernel.body[i])) intervals.add(static_cast<size_t>(kernel.body[i].number), static_cast<int>(2 * i));
  }
  const std::vector<Interval>& all = intervals.all();
  std::vector<size_t> order;
  for (size_t slot = 0; slot < all.size(); ++slot)
    if (!all[slot].empty()) order.push_back(slot);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return all[a].start < all[b].start; });
  // The first free slot. Slots become free in the order in which the live ranges of their contents end.
  using Busy = std::pair<int, int>;  // end of the live range, slot
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  std::priority_queue<int, std::vector<int>, std::greater<>> free;
  std::vector<int> place(all.size(), -1);
  int slots = 0;
  for (const size_t slot : order) {
    for (; !busy.empty() && busy.top().first < all[slot].start; busy.pop()) free.push(busy.top().second);
    if (free.empty()) free.push(slots++);
    place[slot] = free.top();
    busy.emplace(all[slot].end, free.top());
    free.pop();
  }
  for (Instruction& instruction : kernel.body)
    if (uses_slot(instruction)) instruction.number = place[static_cast<size_t>(instruction.number)];
  kernel.frame_slots = slots;
}

}  // namespace tenon::snippet
