// Inside the room: sets of bytes of a memory block, as runs.
#pragma once
#include <vector>

#include <tenon/program/exec/buffers_internal.hpp>

namespace tenon::program::detail {

// Bytes from begin to before end, relative to the beginning of the block (of all its slots).
struct ByteRun {
  int64_t begin, end;
};

// Of the elements of the box, sorted and disjoint.
std::vector<ByteRun> runs_of(const BoundBuffer& box);
// Whether the two have a byte in common.
bool overlap(const std::vector<ByteRun>& a, const std::vector<ByteRun>& b);

}  // namespace tenon::program::detail
