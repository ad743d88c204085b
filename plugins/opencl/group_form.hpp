// How the work items of a device share the chunks of a snippet's call.
//
// On a CPU an item has a chunk, and the kernel's lanes are a vector, so an item accesses contiguous memory. With work
// groups of several items, each item of a chunk has a few of the kernel's lanes, as a short vector:
//
//   kernel of 256 lanes, 64 items:  | item 0: lanes 0 to 3 | item 1: lanes 4 to 7 | ... | item 63: lanes 252 to 255 |
//
// Adjacent items then access adjacent elements at the same time (coalesced access), which is how a GPU reads memory.
// All items execute the same loops. Lanes are reduced in sub-groups and through local memory. A kernel whose items read
// what others have written, in local memory or in a scratch buffer, has one chunk for each work group, and barriers.
#pragma once
#include <cstdint>

#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/linear/linear.hpp>

#include "opencl/sub_groups.hpp"

namespace tenon::opencl {

struct GroupForm {
  int items = 1;              // work items of a chunk, a power of two; each has lanes / items lanes
  int64_t group = 1;          // work-group size: a multiple of `items`, or `items` where they wait for one another
  SubGroups sub_groups = {};  // used to reduce lanes; otherwise local memory is
};

// The number of items for a chunk of `body` in a work group of `group`: with rows that are known to be short, the other
// items are left to further chunks. `lanes`: of one item.
int items_of_chunk(const snippet::Body& body, int lanes, int64_t group);

// How items exchange data with one another.
struct LaneExchange {
  bool folds = false;  // they reduce lanes
  // Elements of a port that the kernel both writes and reads, not always by the same item.
  bool memory = false;
  bool any() const { return folds || memory; }
};
LaneExchange exchange_of(const snippet::LinearKernel& kernel);

}  // namespace tenon::opencl
