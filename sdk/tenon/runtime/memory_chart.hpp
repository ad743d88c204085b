// Memory over time as an HTML page: the renderer of all pictures of memory, those of plans (memory_picture.hpp) and
// those of programs (program/exec/picture.hpp).
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/support/export.hpp>

namespace tenon {

// One arena: time on the horizontal axis, addresses on the vertical. Blocks are rectangles; lines mark the lower bound,
// the number of live bytes, and the step with most of them.
struct MemoryChart {
  struct Block {
    std::string name;
    size_t bytes = 0, offset = 0;
    size_t first = 0, last = 0;  // steps in which it is live
    std::string rules;           // appended to its description: ", pinned"
  };
  std::string heading, summary;  // no summary: ""
  size_t bytes = 0, lower_bound_bytes = 0;
  std::vector<Block> blocks;  // blocks without bytes are not drawn
};

// A second base of an Executable that knows where its values are stored. Found by dynamic_cast, so that the plugin seam
// is unchanged.
class TENON_API MemoryMap {
 public:
  virtual ~MemoryMap();
  // One per arena, as planned for the latest run; before the first run, only where extents are known without one.
  virtual std::vector<MemoryChart> memory_charts() const = 0;
};

// The CSS rules for the elements of charts, for the page that contains them.
TENON_API std::string_view chart_style();
// One chart as a part of a page: the picture alone, without heading and summary; "" when there is nothing to draw.
TENON_API std::string chart_to_svg(const MemoryChart& chart);

// Names and texts may be arbitrary: they are escaped for HTML.
TENON_API std::string charts_to_html(std::string_view title, std::string_view summary,
                                     std::span<const MemoryChart> charts);

}  // namespace tenon
