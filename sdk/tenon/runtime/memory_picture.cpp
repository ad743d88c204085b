#include <tenon/runtime/memory_picture.hpp>

#include <algorithm>

#include <tenon/runtime/memory_problem_internal.hpp>
#include <tenon/support/html.hpp>

namespace tenon {
namespace {

// One space. Coordinates are thousandths of the plan's time and of its bytes: the browser stretches them.
class Picture {
 public:
  Picture(std::span<const MemoryBlock> blocks, size_t space, const MemorySpace& rules, const MemoryPlan& plan)
      : blocks_(blocks), space_(space), rules_(rules), plan_(plan), mine_(plan.spaces[space]) {
    for (const MemoryBlock& block : blocks) {
      if (block.space != space) continue;
      begin_ = std::min(begin_, block.first);
      last_ = std::max(last_, block.last);
    }
  }

  std::string text() const {
    std::string out = str("<h2>", html_escaped(rules_.name), "</h2>\n<p>", mine_.bytes, " bytes; no plan needs less than ",
                          mine_.lower_bound_bytes, " (efficiency ", mine_.efficiency(), "), most bytes alive at step ",
                          mine_.peak_step, "; placed ", html_escaped(mine_.order), "</p>\n");
    if (begin_ > last_ || mine_.bytes == 0) return out;
    out += "<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\">\n";
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].space == space_ && blocks_[i].bytes > 0) out += rectangle(i);
    }
    out += str(line("bound", 0, y(mine_.lower_bound_bytes), 1000, y(mine_.lower_bound_bytes)), mine_.lower_bound_bytes,
               " bytes, the lower bound</title></line>\n");
    const double peak = (x(mine_.peak_step) + x(mine_.peak_step, 1)) / 2;
    return str(out, line("peak", peak, 0, peak, 1000), "step ", mine_.peak_step, ", the peak</title></line>\n</svg>\n");
  }

 private:
  double x(size_t step, double plus = 0) const {
    return 1000 * (static_cast<double>(step - begin_) + plus) / (static_cast<double>(last_ - begin_) + 1);
  }
  double y(size_t address) const { return 1000 * (1 - static_cast<double>(address) / static_cast<double>(mine_.bytes)); }

  static std::string line(std::string_view kind, double x1, double y1, double x2, double y2) {
    return str("<line class=\"", kind, "\" x1=\"", x1, "\" y1=\"", y1, "\" x2=\"", x2, "\" y2=\"", y2, "\"><title>");
  }

  std::string rectangle(size_t i) const {
    const MemoryBlock& block = blocks_[i];
    const size_t at = plan_.offsets[i];
    const double top = y(at + block.bytes);
    std::string rules = block.pinned ? ", pinned" : "";
    if (block.bank) rules += str(", in bank ", *block.bank);
    if (block.align_bytes > 1) rules += str(", aligned to ", block.align_bytes);
    const std::string name = memory::describe(blocks_, i);
    return str("<rect x=\"", x(block.first), "\" y=\"", top, "\" width=\"", x(block.last, 1) - x(block.first), "\" height=\"",
               y(at) - top, "\" fill=\"", html_colour(name), "\"><title>", html_escaped(name), ": ", block.bytes,
               " bytes at ", at, ", steps ", block.first, " to ", block.last, rules, "</title></rect>\n");
  }

  std::span<const MemoryBlock> blocks_;
  size_t space_;
  const MemorySpace& rules_;
  const MemoryPlan& plan_;
  const SpacePlan& mine_;
  size_t begin_ = SIZE_MAX, last_ = 0;
};

}  // namespace

std::string plan_to_html(std::span<const MemoryBlock> blocks, std::span<const MemorySpace> spaces, const MemoryPlan& plan,
                         std::string_view title) {
  std::string page = str("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>", html_escaped(title), "</title>\n<style>\n",
                         "body { font: 14px sans-serif }\nsvg { width: 100%; height: 60vh; border: 1px solid #999 }\n",
                         "rect { stroke: #444; stroke-width: .3 }\nline { stroke-width: 2; stroke-dasharray: 8 6 }\n",
                         ".bound { stroke: #c00 }\n.peak { stroke: #06c }\n</style>\n<h1>", html_escaped(title), "</h1>\n");
  for (size_t s = 0; s < spaces.size(); ++s) page += Picture(blocks, s, spaces[s], plan).text();
  return page;
}

}  // namespace tenon
