// Memory over time as a page for a browser: the one drawing board of all pictures of memory, those of plans
// (memory_picture.hpp) and those of programs (program/exec/picture.hpp).
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/support/export.hpp>

namespace tenon {

// One arena: time goes to the right, addresses upward. Blocks are rectangles; lines say where the lower bound is, how
// many bytes are alive, and at which step most are.
struct MemoryChart {
  struct Block {
    std::string name;
    size_t bytes = 0, offset = 0;
    size_t first = 0, last = 0;  // steps in which it is alive
    std::string rules;           // behind what is said of it: ", pinned"
  };
  std::string heading, summary;  // no summary: ""
  size_t bytes = 0, lower_bound_bytes = 0;
  std::vector<Block> blocks;  // those without bytes are not drawn
};

// A second base of an Executable that knows where its values lie. Asked for by dynamic_cast, so that the seam to
// plugins stays as it is.
class TENON_API MemoryMap {
 public:
  virtual ~MemoryMap();
  // Of each arena, as it was planned for the latest run; before the first run, where extents are known without one.
  virtual std::vector<MemoryChart> memory_charts() const = 0;
};

// The rules for the elements of charts, for the page that holds them.
TENON_API std::string_view chart_style();
// One chart as a part of a page: the bare picture, without heading and summary; "" when there is nothing to draw.
TENON_API std::string chart_to_svg(const MemoryChart& chart);

// Names and texts may be anything: what HTML would take for itself is escaped.
TENON_API std::string charts_to_html(std::string_view title, std::string_view summary,
                                     std::span<const MemoryChart> charts);

}  // namespace tenon
