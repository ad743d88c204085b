// Prefetching the next row, for rows beyond the caches that several sweeps traverse. The first sweep over a row waits
// for memory, the later ones for arithmetic and for nearer caches; while one of these runs, the next row is prefetched.
#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "x86/names.hpp"
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

// Maximum number of tensors that a sweep prefetches: each takes a general register where steps are not known.
constexpr int kMostFetched = 4;

// The loops along a row that share a counter: over several vectors at once, then over single ones, then a tail.
struct Sweep {
  RegisterId counter = -1;
  size_t begin = 0;                        // position of the instruction that initialises the counter
  bool inside = false;                     // other loops along the row, which reinitialise it, are around it
  std::vector<size_t> ends = {};           // positions of the ends of its loops over whole vectors
  std::map<RegisterId, Memory> read = {};  // its reads, by pointers that advance from row to row
  std::set<RegisterId> written = {}, standing = {};
};

struct Rows {
  LoopId loop = -1;
  std::vector<Sweep> sweeps = {};
};

// Finds the loops over single rows that directly contain sweeps.
class RowFinder {
 public:
  explicit RowFinder(const LinearKernel& kernel) : kernel_(kernel) {}

  std::vector<Rows> run() {
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      const Instruction& one = kernel_.body[i];
      if (one.op == kZero || one.op == kHeadLanes) starts_[one.out[0]] = i;
      if (one.op == kAddParameter) rows_[one.out[0]] = one.in[0];
      if (one.op == kLoopBegin || one.op == kTailBegin) open_.push_back(static_cast<LoopId>(one.number));
      if (one.memory || one.op == kLoopEnd) {
        if (Sweep* const in = sweep()) one.memory ? see(*in, *one.memory, one) : in->ends.push_back(i);
      }
      if (one.op == kLoopEnd || one.op == kTailEnd) open_.pop_back();
    }
    return std::move(found_);
  }

 private:
  const Loop& of(LoopId id) const { return kernel_.loops[static_cast<size_t>(id)]; }

  // The sweep of the innermost open loop; null: that loop is not over whole vectors.
  Sweep* sweep() {
    if (open_.size() < 2 || of(open_.back()).kind != Loop::Kind::vector) return nullptr;
    size_t depth = open_.size() - 1;
    while (depth > 1 && kernel_.is_inside_row(of(open_[depth - 1]))) --depth;
    const LoopId row = open_[depth - 1];
    if (of(row).kind != Loop::Kind::scalar || of(row).increment != 1) return nullptr;
    if (found_.empty() || found_.back().loop != row) found_.push_back({.loop = row});
    const RegisterId counter = of(open_.back()).counter;
    std::vector<Sweep>& sweeps = found_.back().sweeps;
    if (sweeps.empty() || sweeps.back().counter != counter)
      sweeps.push_back({.counter = counter, .begin = starts_[counter], .inside = depth + 1 < open_.size()});
    return &sweeps.back();
  }

  void see(Sweep& in, const Memory& memory, const Instruction& one) const {
    if (memory.index != in.counter) return;
    const RegisterId first = row_of(memory.base);
    const auto moves = [&](const Loop::Shift& shift) { return shift.pointer == first && shift.each >= 0; };
    if (!std::ranges::any_of(of(found_.back().loop).shifts, moves))
      in.standing.insert(memory.base);
    else if (writes_memory(one.op))
      in.written.insert(first);
    else if (reads_memory(one))
      in.read.try_emplace(first, memory);
  }

  // The pointer that advances from row to row, if this one is a row behind it.
  RegisterId row_of(RegisterId pointer) const {
    const auto found = rows_.find(pointer);
    return found == rows_.end() ? pointer : found->second;
  }

  const LinearKernel& kernel_;
  std::vector<LoopId> open_;
  std::map<RegisterId, size_t> starts_;    // initialisations of counters
  std::map<RegisterId, RegisterId> rows_;  // pointers that are a row after another one, and that one
  std::vector<Rows> found_;
};

class NextRowFetcher {
 public:
  NextRowFetcher(LinearKernel& kernel, NextRow when) : kernel_(kernel), when_(when) {}

  NextRows run() {
    for (const Rows& rows : RowFinder(kernel_).run()) fetch(rows);
    if (made_.empty()) return std::move(done_);
    std::vector<Instruction> body;
    body.reserve(kernel_.body.size() + made_.size());
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      if (const auto at = made_.find(i); at != made_.end()) std::ranges::move(at->second, std::back_inserter(body));
      body.push_back(std::move(kernel_.body[i]));
    }
    kernel_.body = std::move(body);
    return std::move(done_);
  }

 private:
  void fetch(const Rows& rows) {
    const size_t count = rows.sweeps.size();
    if (count < 2) return;
    for (const Sweep& sweep : rows.sweeps) done_.standing.insert(sweep.standing.begin(), sweep.standing.end());
    const bool early = when_ == NextRow::before_last || when_ == NextRow::before_last_to_second;
    size_t at = count - (early ? 2 : 1);
    // In other loops along the row, pointers advance to the same place of the next row: what is read there is
    // prefetched.
    const bool own = is_to_second(when_) && rows.sweeps[at].inside;
    while (!own && at > 0 && rows.sweeps[at].inside) --at;
    if (!own && rows.sweeps[at].inside) return;
    std::map<RegisterId, Memory> read;  // before the last sweep; what only that one reads is not prefetched
    for (size_t i = 0; i + 1 < count; ++i) read.insert(rows.sweeps[i].read.begin(), rows.sweeps[i].read.end());
    for (const Sweep& sweep : rows.sweeps)
      for (const RegisterId pointer : sweep.written) read.erase(pointer);
    if (own) {
      std::erase_if(read, [&](const auto& one) { return !rows.sweeps[at].read.contains(one.first); });
      for (auto& [pointer, memory] : read) memory = rows.sweeps[at].read.at(pointer);
    }
    int left = kMostFetched;
    const std::vector<Loop::Shift> shifts = kernel_.loops[static_cast<size_t>(rows.loop)].shifts;
    for (const Loop::Shift& shift : shifts)
      if (const auto found = read.find(shift.pointer); found != read.end() && left-- > 0)
        fetch(rows.sweeps[at], found->second, shift);
  }

  // After the last row, this prefetches memory outside the loop's range, or unmapped memory, which does no harm.
  void fetch(const Sweep& sweep, Memory memory, const Loop::Shift& shift) {
    done_.fetched.insert(shift.pointer);
    const RegisterId next = kernel_.add_general();
    made_[sweep.begin].push_back({.op = kAddParameter, .in = {memory.base}, .out = {next}, .number = shift.each});
    memory.base = next, memory.index = sweep.counter;
    for (const size_t end : sweep.ends) {
      const Loop& loop = kernel_.loops[static_cast<size_t>(kernel_.body[end].number)];
      const Stretches::Touched all{.memory = memory, .end = loop.increment * memory.element.bits() / 8};
      all.write(kPrefetchRead, 0, kernel_.body[end].label, made_[end]);
      if (is_to_second(when_)) std::ranges::for_each(made_[end], fetch_into_second);
    }
  }

  LinearKernel& kernel_;
  const NextRow when_;
  std::map<size_t, std::vector<Instruction>> made_;  // to be inserted before these instructions
  NextRows done_;
};

}  // namespace

NextRows fetch_next_rows(LinearKernel& kernel, NextRow when) {
  return when == NextRow::none ? NextRows{} : NextRowFetcher(kernel, when).run();
}

}  // namespace tenon::x86
