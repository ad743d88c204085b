// What the passes share. Not for other files: it brings the names of linear kernels into this plugin's namespace.
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

// Does a loop, a tail or a when begin or end there?
inline bool is_border(Name op) { return snippet::begins_region(op) || snippet::ends_region(op); }

// Has `order(stretch, border)` order the instructions between each two borders: `border` is the one that ends them.
// What follows the last border stays as it is.
template <class Order>
void for_each_stretch(LinearKernel& kernel, Order&& order) {
  size_t begin = 0;
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    if (!is_border(kernel.body[i].op)) continue;
    order(std::span(kernel.body).subspan(begin, i - begin), kernel.body[i].op);
    begin = i + 1;
  }
}

// Is one of these operators in the kernel? Passes ask first, as most have nothing to do in most kernels.
inline bool has_any(const LinearKernel& kernel, std::initializer_list<Name> ops) {
  return std::ranges::any_of(kernel.body,
                             [&](const Instruction& one) { return std::ranges::find(ops, one.op) != ops.end(); });
}

// The port that each pointer register points into, those of the second row and so on included; -1: no pointer.
std::vector<int> ports_of(const LinearKernel& kernel);

bool writes_memory(Name op);
bool is_non_temporal(Name op);
// Of as many bytes as four vectors of 32-bit lanes have lanes.
bool is_of_four(Name op);
bool is_prefetch(Name op);
void fetch_into_second(Instruction& prefetch);  // into L2
bool reads_memory(const Instruction& instruction);

// Which walk along a row, of an innermost vector loop, comes first to what a pointer points to: later ones of the same
// row find its lines in the caches. Of rows that are merged, and so may exceed the caches, each does.
class FirstWalks {
 public:
  explicit FirstWalks(const LinearKernel& kernel) : kernel_(kernel) {}
  void follow(const Instruction& one);  // each instruction of the body, in its order
  // Does `one`, which accesses memory where they have come to, walk there first?
  bool has(const Instruction& one);
  const Loop* rows() const { return rows_; }  // the loop over rows; null: there is none

 private:
  const LinearKernel& kernel_;
  std::map<RegisterId, RegisterId> walks_;  // their counters by pointers
  RegisterId counter_ = -1;
  const Loop* rows_ = nullptr;
};

// Pointers to what all rows share, and to scratch rows: given by the call, and used in loops that move others alone; of
// skewed rows before these loops, too.
std::set<RegisterId> standing_pointers(const LinearKernel& kernel);

class Uses;  // passes/uses.hpp

// Registers that hold one value in all lanes: those that one instruction writes, from what is alike in all lanes. By
// the order of the body, since operands stand before their users.
class Alike {
 public:
  Alike(const LinearKernel& kernel, const Uses& uses);
  bool holds(RegisterId id) const { return alike_[static_cast<size_t>(id)]; }

 private:
  bool makes_alike(const Instruction& instruction) const;
  std::vector<char> alike_;
};

// How many of the low bits of 32-bit integers anything reads.
class LowBits {
 public:
  LowBits(const LinearKernel& kernel, const Uses& uses);
  int of(RegisterId id) const { return bits_[static_cast<size_t>(id)]; }  // 32: all, and of what is no such integer

 private:
  int of_operand(const LinearKernel& kernel, const Instruction& one, size_t i) const;
  std::vector<int> bits_;
};
bool is_byte(ElementType element);
bool has_32_bits(const LinearKernel& kernel, RegisterId id);  // an integer of 32 bits
// Are low bits of the result made of low bits of operands, where these are integers?
bool is_modular(Name op);
// A Convert between integers of 32 bits: nothing changes but what they mean.
bool is_renaming(const LinearKernel& kernel, const Instruction& one);
ElementType wrapped_to(const Instruction& wrap);

// The cache lines that one iteration of a loop touches.
class Stretches {
 public:
  // What it touches through one pointer: the bytes from displacement `begin`.
  struct Touched {
    Memory memory;
    int64_t begin = 0, end = 0;
    bool written = false;
    // `op` on each line, `ahead_bytes` further on.
    void write(Name op, int64_t ahead_bytes, int label, std::vector<Instruction>& body) const;
  };
  void add(const LinearKernel& kernel, const Instruction& instruction);
  // In the order in which they are touched first, so that code does not depend on register numbers.
  const std::vector<Touched>& touched() const { return touched_; }
  void clear() { touched_.clear(), places_.clear(); }

 private:
  std::vector<Touched> touched_;
  std::unordered_map<RegisterId, size_t> places_;  // in touched_, of pointers
};

}  // namespace tenon::x86
