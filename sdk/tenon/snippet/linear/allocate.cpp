#include <tenon/snippet/linear/allocate.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <tenon/snippet/linear/allocate_internal.hpp>
#include <tenon/snippet/linear/linear_names.hpp>

namespace tenon::snippet {
namespace {

using codegen::RegisterFile;

Error too_many_instructions(const LinearKernel& kernel) {
  return error(Code::resource_exhausted, "linear kernel '", kernel.name,
               "' has too many instructions where registers give way");
}

// One attempt: a place for each register, or the registers to spill.
class Scan {
 public:
  // `full`: fails where a spill would take additional instructions.
  Scan(Work& work, const codegen::RegisterPool& pool, bool full)
      : work_(work), kernel_(work.kernel), pool_(pool), full_(full), intervals_(live_intervals(work)) {
    kernel_.places.assign(kernel_.registers.size(), {});
    for (size_t file = 0; file < codegen::kRegisterFiles; ++file) active_[file].resize(pool.registers[file].size());
    reserve_pinned();
    if (full) moved_ = perhaps_moved(kernel_);
  }

  Result<void> run() {
    find_starts();
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      TENON_OK(place_scratch(i));
      for (size_t k = starts_begin_[i]; k < starts_begin_[i + 1]; ++k) TENON_OK(place(starts_[k], i));
    }
    return {};
  }

  const std::vector<RegisterId>& spilled() const { return spilled_; }

 private:
  static constexpr RegisterId kNobody = -1, kScratch = -2;
  struct Holder {
    RegisterId id = kNobody;
    int end = -1;
  };

  static size_t index(int id) { return static_cast<size_t>(id); }
  const Interval& interval(RegisterId id) const { return intervals_[index(id)]; }
  bool is_pinned(RegisterId id) const { return index(id) < work_.pinned.size() && work_.pinned[index(id)]; }
  bool spillable(RegisterId id) const {
    return id >= 0 && (index(id) >= work_.unspillable.size() || !work_.unspillable[index(id)]);
  }
  RegisterFile file_of(RegisterId id) const {
    const RegisterFile file = kernel_.registers[index(id)].file;
    return file == RegisterFile::mask ? pool_.lane_mask_file : file;
  }

  // Registers by the first instruction that reads or writes them; those that it reads before those that it writes.
  void find_starts() {
    const auto each = [&](auto&& take) {
      for (const int write : {0, 1})
        for (size_t id = 0; id < intervals_.size(); ++id)
          if (!intervals_[id].empty() && intervals_[id].start % 2 == write && !is_pinned(static_cast<RegisterId>(id)))
            take(static_cast<RegisterId>(id), index(intervals_[id].start / 2));
    };
    starts_begin_.assign(kernel_.body.size() + 1, 0);
    each([&](RegisterId, size_t i) { ++starts_begin_[i + 1]; });
    std::partial_sum(starts_begin_.begin(), starts_begin_.end(), starts_begin_.begin());
    starts_.resize(starts_begin_.back());
    std::vector<size_t> next(starts_begin_.begin(), starts_begin_.end() - 1);
    each([&](RegisterId id, size_t i) { starts_[next[i]++] = id; });
  }

  // Spilled counters are in the last general register around both ends of their loops; no other register then is.
  void reserve_pinned() {
    const std::vector<int>& general = pool_.of(RegisterFile::general);
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      const Instruction& instruction = kernel_.body[i];
      if (instruction.op != kLoopBegin && instruction.op != kLoopEnd) continue;
      if (!is_pinned(instruction.in[0])) continue;
      reserved_.push_back(static_cast<int>(2 * i));
      kernel_.places[index(instruction.in[0])] = {RegisterFile::general, general.back()};
    }
  }
  // From the write of the preceding reload to the read of the following spill.
  bool meets_reserved(int start, int end) const {
    const auto first = std::lower_bound(reserved_.begin(), reserved_.end(), start - 2);
    return first != reserved_.end() && *first - 1 <= end;
  }
  bool may_stand_in(RegisterFile file, size_t k, int start, int end) const {
    const bool last = file == RegisterFile::general && k + 1 == pool_.of(file).size();
    return !last || !meets_reserved(start, end);
  }

  Result<void> place_scratch(size_t i) {
    const codegen::ScratchNeeds& needs = work_.needs[i].scratch;
    Instruction& instruction = kernel_.body[i];
    instruction.vectors.clear(), instruction.masks.clear(), instruction.generals.clear();
    if (needs.vectors + needs.masks + needs.generals == 0) return {};
    const int start = static_cast<int>(2 * i);
    const auto take = [&](RegisterFile file, int count, InlineVector<int, 4>& out) -> Result<void> {
      for (int n = 0; n < count; ++n) {
        TENON_TRY(k, find_place(file, start, start + 1, kScratch, i));
        active_[static_cast<size_t>(file)][k] = {kScratch, start + 1};
        out.push_back(pool_.of(file)[k]);
      }
      return {};
    };
    TENON_OK(take(RegisterFile::vector, needs.vectors, instruction.vectors));
    TENON_OK(take(RegisterFile::mask, needs.masks, instruction.masks));
    return take(RegisterFile::general, needs.generals, instruction.generals);
  }

  Result<void> place(RegisterId id, size_t instruction) {
    const RegisterFile file = file_of(id);
    const Interval& live = interval(id);
    TENON_TRY(k, find_place(file, live.start, live.end, id, instruction));
    if (k == kSpilledItself) return {};
    active_[static_cast<size_t>(file)][k] = {id, live.end};
    kernel_.places[index(id)] = {file, pool_.of(file)[k]};
    return {};
  }

  // An index into the pool's list, if necessary after a register there is spilled; or `id` itself is spilled.
  Result<size_t> find_place(RegisterFile file, int start, int end, RegisterId id, size_t instruction) {
    std::vector<Holder>& holders = active_[static_cast<size_t>(file)];
    for (size_t k = 0; k < holders.size(); ++k)
      if (holders[k].end < start && may_stand_in(file, k, start, end)) return k;
    constexpr double kNever = 1e300;
    double least = spillable(id) ? interval(id).weight() : kNever;
    size_t victim = kSpilledItself;
    for (size_t k = 0; k < holders.size(); ++k) {
      if (!spillable(holders[k].id) || !may_stand_in(file, k, start, end)) continue;
      const double weight = interval(holders[k].id).weight();
      if (weight >= least) continue;
      least = weight, victim = k;
    }
    if (least == kNever) return exhausted(file, instruction);
    spilled_.push_back(victim == kSpilledItself ? id : holders[victim].id);
    if (full_ && !moved_[index(spilled_.back())]) return too_many_instructions(kernel_);
    return victim;
  }

  Error exhausted(RegisterFile file, size_t instruction) const {
    return error(Code::resource_exhausted, "the ", pool_.of(file).size(), " ", codegen::register_file_name(file),
                 " registers of the pool do not hold the operands, results and scratch registers of '",
                 print(kernel_, kernel_.body[instruction]), "'");
  }

  static constexpr size_t kSpilledItself = ~size_t{0};
  Work& work_;
  LinearKernel& kernel_;
  const codegen::RegisterPool& pool_;
  const bool full_;
  std::vector<char> moved_;  // where full: registers that can be spilled without an additional instruction
  std::vector<Interval> intervals_;
  std::array<std::vector<Holder>, codegen::kRegisterFiles> active_;  // as in the pool's lists
  std::vector<RegisterId> starts_;                                   // by instruction
  std::vector<size_t> starts_begin_;                                 // of each instruction, in starts_
  std::vector<int> reserved_;                                        // positions of pinned counters, sorted
  std::vector<RegisterId> spilled_;
};

// The needs of each instruction. Where a result is written early and is an operand, too, as accumulators are, it is
// written through a copy in another register.
Result<void> ask_needs(Work& work, const NeedsFn& needs) {
  LinearKernel& kernel = work.kernel;
  const auto reads_its_result = [](const Instruction& one) {
    return one.out.size() == 1 && std::find(one.in.begin(), one.in.end(), one.out[0]) != one.in.end();
  };
  std::vector<size_t> early;  // instructions whose results are written through another register
  work.needs.reserve(kernel.body.size());
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    TENON_TRY(asked, needs(kernel, kernel.body[i]));
    work.needs.push_back(asked);
    if (asked.early_result && reads_its_result(kernel.body[i])) early.push_back(i);
  }
  if (early.empty()) return {};
  std::vector<Instruction> old = std::exchange(kernel.body, {});
  const std::vector<InstructionNeeds> asked = std::exchange(work.needs, {});
  kernel.body.reserve(old.size() + early.size());
  auto next = early.begin();
  for (size_t i = 0; i < old.size(); ++i) {
    kernel.body.push_back(std::move(old[i]));
    work.needs.push_back(asked[i]);
    if (next == early.end() || *next != i) continue;
    ++next;
    Instruction& made = kernel.body.back();
    const RegisterId out = made.out[0];
    const Register copy = kernel.registers[static_cast<size_t>(out)];
    made.out[0] = kernel.add_register(copy.file, copy.element);
    Instruction back{.op = "Copy", .in = {made.out[0]}, .out = {out}, .label = made.label};
    TENON_TRY(of_copy, needs(kernel, back));
    kernel.body.push_back(std::move(back));
    work.needs.push_back(of_copy);
  }
  return {};
}

}  // namespace

Result<void> allocate(LinearKernel& kernel, const codegen::RegisterPool& pool, const NeedsFn& needs,
                      size_t most_instructions) {
  insert_shifts(kernel);
  kernel.frame_slots = 0;
  Work work{.kernel = kernel};
  TENON_OK(ask_needs(work, needs), "allocating registers of linear kernel '", kernel.name, "'");
  if (kernel.body.size() > most_instructions) return too_many_instructions(kernel);
  // Each round replaces spilled registers by stand-ins, which live for one instruction and are never spilled
  // themselves: the loop terminates.
  for (;;) {
    Scan scan(work, pool, kernel.body.size() == most_instructions);
    TENON_OK(scan.run(), "allocating registers of linear kernel '", kernel.name, "'");
    if (scan.spilled().empty()) break;
    kernel.places.clear();
    TENON_OK(spill(work, scan.spilled(), needs), "spilling registers of linear kernel '", kernel.name, "'");
    if (kernel.body.size() > most_instructions) return too_many_instructions(kernel);
  }
  if (work.next_slot > 0) pack_slots(kernel);
  return {};
}

}  // namespace tenon::snippet
