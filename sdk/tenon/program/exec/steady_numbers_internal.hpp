// Inside the room: the numbers that code for a loop body computes.
#pragma once
#include <string>
#include <vector>

#include <tenon/program/ir/symbolic_internal.hpp>

namespace tenon::program::detail {

// The number of an iteration, or of several that are processed together.
inline const std::string kSteadyNumber = "steady.iteration";

// A box in a ring: its first index, and the number of places of the ring.
struct RingBox {
  Expr min;
  int64_t places = 0;
};

class Numbers {
 public:
  explicit Numbers(Scope& scope) : scope_(scope) {}
  // The names that occur in the body are in the scope.
  void collect(const Statement& s);
  // Calls that may have something to do, by what is known of the loop.
  int64_t calls() const;

  std::vector<Expr> found;
  std::vector<RingBox> rings;
  std::vector<std::string> within;  // numbers of loops in the body, which the scope has assumptions about
  int64_t most_elements = 0;        // written by a call, where constant
  bool has_hints = false;

 private:
  void visit(const Block& s);
  void visit(const Let& s);
  void visit(const Allocate& s);
  void visit(const Crop& s);
  void visit(const Slice& s);
  void visit(const Transpose& s);
  void visit(const View& s);
  void visit(const Call& s);
  void visit(const Copy& s);
  void visit(const Check& s);
  void visit(const Loop& s);
  void visit(const Prefetch& s);
  template <class Other>
  void visit(const Other&) {}  // has_simple_loops, may_be_split: none occur

  template <class Made>
  void show(const Made& s, BufferId id, SymbolicBuffer made);
  void region(const Region& r, bool written);
  void add(const SymbolicBuffer& buffer);
  void add(const Expr& e);

  Scope& scope_;
  std::vector<std::vector<Expr>> calls_;  // extents of the boxes that each call writes
};

}  // namespace tenon::program::detail
