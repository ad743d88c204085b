// Inside the room: live intervals, shared by the parts of the register allocator.
//
// Instruction i reads at position 2 i and writes at 2 i + 1, so a result may have the register of an operand that is
// read there for the last time.
#pragma once
#include <cstdint>
#include <vector>

#include <tenon/snippet/linear/allocate.hpp>

namespace tenon::snippet {

struct Interval {
  int start = -1, end = -1;  // positions, both inclusive; -1: never live
  double uses = 0;           // weighted by the depth of loops

  bool empty() const { return start < 0; }
  // The cost of a spill, relative to the length of the interval that it frees.
  double weight() const { return uses / (end - start + 1); }
};

// Collects accesses in the order of instructions.
class Intervals {
 public:
  // `body` must not change meanwhile. Its loops are found beforehand.
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
  double frequency_ = 1;  // estimated executions, from the open loops
  std::vector<Interval> intervals_;
};

// A body with the needs of each instruction.
struct Work {
  LinearKernel& kernel;
  std::vector<InstructionNeeds> needs = {};  // of each instruction
  std::vector<char> unspillable = {};        // registers that live for one instruction only
  // The temporaries of each spilled loop counter at LoopBegin and LoopEnd, which must be one register.
  std::vector<char> pinned = {};
  std::vector<int> slots = {};  // frame slot of each register; -1: none
  int next_slot = 0;
};

// Intervals of all registers.
std::vector<Interval> live_intervals(const Work& work);

// By register: whether it is computed by an instruction that may move to its only reader. Spilling any other register
// adds instructions.
std::vector<char> perhaps_moved(const LinearKernel& kernel);

// Spills the `spilled` registers, or rematerialises them before each use.
Result<void> spill(Work& work, const std::vector<RegisterId>& spilled, const NeedsFn& needs);

// Merges slots that are not live at the same time; sets frame_slots.
void pack_slots(LinearKernel& kernel);

}  // namespace tenon::snippet
