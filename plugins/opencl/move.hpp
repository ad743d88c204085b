// Copies of boxes on the device, from the Copy statements of programs (program/exec/flatten.hpp).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <tenon/program/exec/flatten.hpp>

namespace tenon::opencl {

// A copy, ready to enqueue: one block of bytes, or rows copied by a kernel.
struct MovePlan {
  int64_t bytes = 0;         // of the block; 0: rows
  int64_t to = 0, from = 0;  // bytes from the beginning of both roots
  // For rows: the kernel's element size, and its table.
  int unit_bytes = 1;
  std::vector<int64_t> table;
  int64_t rows = 0;
  int64_t pieces(int64_t work_group) const { return work_group == 1 ? rows : rows * table[4]; }
};
MovePlan plan_move(const program::FlatOperand& to, const program::FlatOperand& from);

// The kernel that copies rows of elements of `unit_bytes` (1, 2, 4 or 8). Its arguments are the words of all steps, the
// offset of this step's table in them, and the memory of both roots. Items share the rows; several items of a work
// group share the elements, adjacent ones adjacent elements.
inline constexpr std::string_view kMoveKernel = "tenon_move";
std::string move_source(int unit_bytes, int64_t work_group);

}  // namespace tenon::opencl
