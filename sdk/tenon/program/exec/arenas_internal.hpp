// Inside the room: the arena plan of a program's allocations.
//
// Regions are the program, and each loop with workers, whose allocations exist once per worker. A region's memory is a
// block of the enclosing region, repeated for each worker, and is live as long as the loop.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>

namespace tenon::program::detail {

struct PlannedBlock {
  BufferId buffer = -1;  // -1: the memory of an inner region
  std::string space;
  int64_t bytes = 0;
  int64_t align = 1;
  int64_t first = INT64_MAX, last = -1;  // steps; never used: first > last
  int64_t offset = 0;                    // in the region
  int32_t region = 0;                    // that contains it

  void use(int64_t from, int64_t to) {
    first = std::min(first, from);
    last = std::max(last, to);
  }
};

struct ArenaRegion {
  int32_t outer = -1;
  int32_t loop = -1;
  int64_t workers = 1;
  int64_t first = 0, last = 0;            // steps of the loop
  std::map<std::string, int64_t> bytes;   // of one worker
  std::map<std::string, int64_t> bound;   // most bytes live at a time, of one worker
  std::map<std::string, int64_t> offset;  // in the enclosing region
};

// Assigns offsets to all blocks and sizes to all regions; regions[0] is the program, inner regions come after outer
// ones.
void plan_arenas(std::vector<PlannedBlock>& blocks, std::vector<ArenaRegion>& regions);

}  // namespace tenon::program::detail
