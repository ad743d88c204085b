#include <tenon/runtime/memory_chart.hpp>

#include <algorithm>
#include <map>

#include <tenon/support/html.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

// Coordinates are thousandths of the chart's time and bytes: the browser scales them.
class Drawing {
 public:
  explicit Drawing(const MemoryChart& chart) : chart_(chart) {
    for (const MemoryChart::Block& block : chart.blocks) {
      begin_ = std::min(begin_, block.first);
      last_ = std::max(last_, block.last);
    }
  }

  std::string text() const {
    if (begin_ > last_ || chart_.bytes == 0) return "";
    std::string out = "<svg class=\"memory\" viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\">\n";
    for (const MemoryChart::Block& block : chart_.blocks)
      if (block.bytes > 0) out += rectangle(block);
    const double bound = y(chart_.lower_bound_bytes);
    out +=
        str(line("bound", 0, bound, 1000, bound), chart_.lower_bound_bytes, " bytes, the lower bound</title></line>\n");
    return out + alive() + "</svg>\n";
  }

 private:
  double x(size_t step, double plus = 0) const {
    return 1000 * (static_cast<double>(step - begin_) + plus) / (static_cast<double>(last_ - begin_) + 1);
  }
  double y(size_t address) const {
    return 1000 * (1 - static_cast<double>(address) / static_cast<double>(chart_.bytes));
  }

  static std::string line(std::string_view kind, double x1, double y1, double x2, double y2) {
    return str("<line class=\"", kind, "\" x1=\"", x1, "\" y1=\"", y1, "\" x2=\"", x2, "\" y2=\"", y2, "\"><title>");
  }

  std::string rectangle(const MemoryChart::Block& block) const {
    const double top = y(block.offset + block.bytes);
    return str("<rect x=\"", x(block.first), "\" y=\"", top, "\" width=\"", x(block.last, 1) - x(block.first),
               "\" height=\"", y(block.offset) - top, "\" fill=\"", html_colour(block.name), "\"><title>",
               html_escaped(block.name), ": ", block.bytes, " bytes at ", block.offset, ", steps ", block.first, " to ",
               block.last, block.rules, "</title></rect>\n");
  }

  // The number of live bytes over time, and its maximum.
  std::string alive() const {
    std::map<size_t, int64_t> change;
    for (const MemoryChart::Block& block : chart_.blocks) {
      change[block.first] += static_cast<int64_t>(block.bytes);
      if (block.last < last_) change[block.last + 1] -= static_cast<int64_t>(block.bytes);
    }
    std::string points;
    size_t bytes = 0, most = 0, peak = begin_;
    for (const auto& [step, by] : change) {
      points += str(x(step), ",", y(bytes), " ");
      bytes += static_cast<size_t>(by);
      points += str(x(step), ",", y(bytes), " ");
      if (bytes > most) most = bytes, peak = step;
    }
    points += str("1000,", y(bytes));
    const double at = (x(peak) + x(peak, 1)) / 2;
    return str("<polyline class=\"alive\" points=\"", points, "\"><title>bytes alive</title></polyline>\n",
               line("peak", at, 0, at, 1000), "step ", peak, ", the peak</title></line>\n");
  }

  const MemoryChart& chart_;
  size_t begin_ = SIZE_MAX, last_ = 0;
};

}  // namespace

MemoryMap::~MemoryMap() = default;

std::string_view chart_style() {
  return "svg.memory { width: 100%; height: 60vh; border: 1px solid #999 }\n"
         ".memory rect { stroke: #444; stroke-width: .3 }\n"
         ".memory line { stroke-width: 2; stroke-dasharray: 8 6 }\n"
         ".memory .bound { stroke: #c00 }\n.memory .peak { stroke: #06c }\n"
         ".memory .alive { fill: none; stroke: #c00; stroke-width: 1 }\n";
}

std::string chart_to_svg(const MemoryChart& chart) { return Drawing(chart).text(); }

std::string charts_to_html(std::string_view title, std::string_view summary, std::span<const MemoryChart> charts) {
  std::string page =
      str("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>", html_escaped(title), "</title>\n<style>\n",
          "body { font: 14px sans-serif }\n", chart_style(), "</style>\n<h1>", html_escaped(title), "</h1>\n");
  if (!summary.empty()) page += str("<p>", html_escaped(summary), "</p>\n");
  for (const MemoryChart& chart : charts) {
    page += str("<h2>", html_escaped(chart.heading), "</h2>\n");
    if (!chart.summary.empty()) page += str("<p>", html_escaped(chart.summary), "</p>\n");
    page += chart_to_svg(chart);
  }
  return page;
}

}  // namespace tenon
