// Copies of boxes on the device: what Copy statements of programs became (program/exec/flatten.hpp).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <tenon/program/exec/flatten.hpp>

namespace tenon::opencl {

// A copy, ready to enqueue: as one block of bytes, or by a kernel that walks rows.
struct MovePlan {
  int64_t bytes = 0;         // of one block; 0: rows
  int64_t to = 0, from = 0;  // bytes from the beginning of both roots
  // Of rows: what the kernel reads, and how many it walks.
  int unit_bytes = 1;
  std::vector<int64_t> table;
  int64_t rows = 0;
  int64_t pieces(int64_t work_group) const { return work_group == 1 ? rows : rows * table[4]; }
};
MovePlan plan_move(const program::FlatOperand& to, const program::FlatOperand& from);

// The kernel that walks rows of elements of `unit_bytes` (1, 2, 4 or 8): its arguments are the words of all steps,
// where the table of this one begins, and the memory of both roots. Items share the rows; with several in a work group
// the elements, of which neighbours go to neighbouring items.
inline constexpr std::string_view kMoveKernel = "tenon_move";
std::string move_source(int unit_bytes, int64_t work_group);

}  // namespace tenon::opencl
