// Helpers shared by the passes. Not for other files: it imports the names of linear kernels into this plugin's
// namespace.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "x86/names.hpp"
#include "x86/passes/passes.hpp"

namespace tenon::x86 {

using codegen::Lanes;
using snippet::Instruction;
using snippet::LinearKernel;
using snippet::Loop;
using snippet::LoopId;
using snippet::Memory;
using snippet::Param;
using snippet::RegisterId;
using snippet::RegisterIds;

// Whether the instruction begins or ends a loop, a tail or a when.
inline bool is_border(Name op) { return snippet::begins_region(op) || snippet::ends_region(op); }

// Calls `order(stretch, border)` on the instructions between each two borders (a straight-line stretch of code);
// `border` is the operator that ends them. What follows the last border is left as it is.
template <class Order>
void for_each_stretch(LinearKernel& kernel, Order&& order) {
  size_t begin = 0;
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    if (!is_border(kernel.body[i].op)) continue;
    order(std::span(kernel.body).subspan(begin, i - begin), kernel.body[i].op);
    begin = i + 1;
  }
}

// Whether one of these operators is in the kernel. Passes ask this first, because most have nothing to do in most
// kernels.
inline bool has_any(const LinearKernel& kernel, std::initializer_list<Name> ops) {
  return std::ranges::any_of(kernel.body,
                             [&](const Instruction& one) { return std::ranges::find(ops, one.op) != ops.end(); });
}

// The port that each pointer register points into, including pointers to further rows; -1: no pointer.
std::vector<int> ports_of(const LinearKernel& kernel);

bool writes_memory(Name op);
bool is_non_temporal(Name op);
// Whether the operator accesses as many bytes as four vectors of 32-bit lanes have lanes.
bool is_of_four(Name op);
bool is_prefetch(Name op);
void fetch_into_second(Instruction& prefetch);  // into L2
bool reads_memory(const Instruction& instruction);

// Finds the first traversal of the data behind each pointer, among the sweeps along a row (innermost vector loops):
// later sweeps over the same row find its lines in the caches. In kernels with merged sweeps, whose rows may exceed the
// caches, every traversal counts as the first.
class FirstWalks {
 public:
  explicit FirstWalks(const LinearKernel& kernel) : kernel_(kernel) {}
  void follow(const Instruction& one);  // to be called for each instruction of the body, in order
  // Whether `one`, which accesses memory at the current position, belongs to the first traversal of its data.
  bool has(const Instruction& one);
  const Loop* rows() const { return rows_; }  // the loop over rows; null: there is none

 private:
  const LinearKernel& kernel_;
  std::map<RegisterId, RegisterId> walks_;  // counter of the first traversal, by pointer
  RegisterId counter_ = -1;
  const Loop* rows_ = nullptr;
};

// Pointers to data shared by all rows, and to scratch rows: they come from the call, and are used in loops that advance
// only other pointers; with skewed rows, also before these loops.
std::set<RegisterId> standing_pointers(const LinearKernel& kernel);

class Uses;  // passes/uses.hpp

// Uniform registers, which hold the same value in all lanes: those written by exactly one instruction whose operands
// are uniform. Computed in body order, because operands precede their users.
class Alike {
 public:
  Alike(const LinearKernel& kernel, const Uses& uses);
  bool holds(RegisterId id) const { return alike_[static_cast<size_t>(id)]; }

 private:
  bool makes_alike(const Instruction& instruction) const;
  std::vector<char> alike_;
};

// How many low bits of each 32-bit integer are read.
class LowBits {
 public:
  LowBits(const LinearKernel& kernel, const Uses& uses);
  int of(RegisterId id) const { return bits_[static_cast<size_t>(id)]; }  // 32: all; also for other registers

 private:
  int of_operand(const LinearKernel& kernel, const Instruction& one, size_t i) const;
  std::vector<int> bits_;
};
bool is_byte(ElementType element);
bool has_32_bits(const LinearKernel& kernel, RegisterId id);  // an integer of 32 bits
// Whether low bits of the result depend only on low bits of the operands, for integers.
bool is_modular(Name op);
// A Convert between integers of 32 bits, which changes only how the bits are interpreted.
bool is_renaming(const LinearKernel& kernel, const Instruction& one);
ElementType wrapped_to(const Instruction& wrap);

// The cache lines that one iteration of a loop accesses.
class Stretches {
 public:
  // The accesses through one pointer: the bytes from displacement `begin` to `end`.
  struct Touched {
    Memory memory;
    int64_t begin = 0, end = 0;
    bool written = false;
    // Appends `op` for each line, `ahead_bytes` further on.
    void write(Name op, int64_t ahead_bytes, int label, std::vector<Instruction>& body) const;
  };
  void add(const LinearKernel& kernel, const Instruction& instruction);
  // In the order of the first access, so that code does not depend on register numbers.
  const std::vector<Touched>& touched() const { return touched_; }
  void clear() { touched_.clear(), places_.clear(); }

 private:
  std::vector<Touched> touched_;
  std::unordered_map<RegisterId, size_t> places_;  // in touched_, of pointers
};

}  // namespace tenon::x86
