// How the work items of a device share the chunks of a snippet's call.
//
// On a CPU an item has a chunk, and the kernel's lanes are a vector: what it touches lies together. With work groups of
// several items, the items of a chunk have a few of the kernel's lanes each, as a short vector:
//
//   kernel of 256 lanes, 64 items:  | item 0: lanes 0 to 3 | item 1: lanes 4 to 7 | ... | item 63: lanes 252 to 255 |
//
// so that neighbouring items touch neighbouring elements at the same time, which is how a GPU reads memory. All of them
// go through the same loops. Lanes are folded in sub-groups and through local memory. A kernel whose items read what
// others have written, in local memory or in a scratch buffer, has one chunk for each work group, and barriers.
#pragma once
#include <cstdint>

#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/linear/linear.hpp>

#include "opencl/sub_groups.hpp"

namespace tenon::opencl {

struct GroupForm {
  int items = 1;              // work items of a chunk, a power of two; each has lanes / items lanes
  int64_t group = 1;          // of a work group: a multiple of `items`, or `items` where they wait for one another
  SubGroups sub_groups = {};  // by which they fold their lanes; without them, in local memory
};

// The items that a chunk of `body` is worth, of a work group of `group`: rows that are known to be short leave the
// others to further chunks. `lanes`: of one item.
int items_of_chunk(const snippet::Body& body, int lanes, int64_t group);

// What items exchange with one another.
struct LaneExchange {
  bool folds = false;  // lanes
  // Elements of a port that the kernel both writes and reads, and not each by the item that has its lane.
  bool memory = false;
  bool any() const { return folds || memory; }
};
LaneExchange exchange_of(const snippet::LinearKernel& kernel);

}  // namespace tenon::opencl
