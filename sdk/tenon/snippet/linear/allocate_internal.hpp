// Live intervals, shared by the parts of the register allocator. Internal.
//
// Instruction i reads at position 2 i and writes at 2 i + 1, so that a result may have the register of an operand that
// is read there for the last time.
#pragma once
#include <cstdint>
#include <vector>

#include <tenon/snippet/linear/allocate.hpp>

namespace tenon::snippet {

struct Interval {
  int start = -1, end = -1;  // positions, both included; -1: never there
  double uses = 0;           // weighted by the depth of loops

  bool empty() const { return start < 0; }
  // What a spill would cost, for the room that it would make.
  double weight() const { return uses / (end - start + 1); }
};

// Collects accesses in the order of instructions.
class Intervals {
 public:
  // `body` must stay as it is. Its loops are known beforehand.
  explicit Intervals(const std::vector<Instruction>& body);
  // To be called before the accesses of instruction i are added, for each i in order.
  void enter(int i);
  void add(size_t id, int position);
  std::vector<Interval>& all() { return intervals_; }

 private:
  struct Open {
    int begin, end;  // positions
  };
  const std::vector<Instruction>& body_;
  std::vector<int> end_of_;  // of the loop that begins at an instruction
  std::vector<Open> open_;
  double frequency_ = 1;  // of what is in all that are open
  std::vector<Interval> intervals_;
};

// A body with what each instruction asks for.
struct Work {
  LinearKernel& kernel;
  std::vector<InstructionNeeds> needs = {};  // of each instruction
  std::vector<char> unspillable = {};        // registers that live for one instruction
  // Of each spilled loop counter's stand-in at LoopBegin and LoopEnd, which must be one register.
  std::vector<char> pinned = {};
  std::vector<int> slots = {};  // of each register: its frame slot, -1: none
  int next_slot = 0;
};

// Intervals of all registers.
std::vector<Interval> live_intervals(const Work& work);

// By registers: is it made by an instruction that may move to its only reader? Any other that gives way takes further
// instructions.
std::vector<char> perhaps_moved(const LinearKernel& kernel);

// Puts `spilled` registers into memory, or makes them again before each use.
Result<void> spill(Work& work, const std::vector<RegisterId>& spilled, const NeedsFn& needs);

// Slots that are not live at once become one; sets frame_slots.
void pack_slots(LinearKernel& kernel);

}  // namespace tenon::snippet
