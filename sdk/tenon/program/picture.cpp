#include <tenon/program/picture.hpp>

#include <algorithm>

#include <tenon/support/html.hpp>

namespace tenon::program {
namespace {

constexpr double kWidth = 1000, kHeight = 320;

class Page {
 public:
  Page(const Program& program, const BoundProgram& bound) : program_(program), bound_(bound) {}

  std::string text() {
    out_ = str("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Memory of ", html_escaped(program_.name), "</title>\n",
               "<style>body{font:14px sans-serif}svg{border:1px solid "
               "#999;background:#fafafa}rect{stroke:#444;stroke-width:.5}",
               "</style>\n<h1>Memory of ", html_escaped(program_.name), "</h1>\n<p>", bound_.plan().size(), " allocations, ",
               bound_.steps(), " steps</p>\n");
    for (const auto& [space, bytes] : bound_.arena_bytes()) arena(space, bytes);
    return std::move(out_);
  }

 private:
  double x_of(int64_t step) const {
    return kWidth * static_cast<double>(step) / static_cast<double>(std::max<int64_t>(bound_.steps(), 1));
  }
  static double y_of(int64_t byte, int64_t bytes) {
    return kHeight * (1 - static_cast<double>(byte) / static_cast<double>(std::max<int64_t>(bytes, 1)));
  }

  void arena(const std::string& space, int64_t bytes) {
    out_ += str("<h2>", html_escaped(space), ": ", bytes, " bytes, no plan needs less than ",
                bound_.arena_lower_bound_bytes().at(space), "</h2>\n<svg width=\"", kWidth, "\" height=\"", kHeight,
                "\">\n");
    for (const PlannedAllocation& p : bound_.plan())
      if (p.space == space) rectangle(p, bytes);
    live_line(space, bytes);
    out_ += "</svg>\n";
  }

  void rectangle(const PlannedAllocation& p, int64_t bytes) {
    const std::string& name = program_.buffer(p.buffer).name;
    const double x = x_of(p.first), top = y_of(p.offset + p.bytes, bytes);
    out_ += str("<rect x=\"", x, "\" y=\"", top, "\" width=\"", x_of(p.last + 1) - x, "\" height=\"",
                y_of(p.offset, bytes) - top, "\" fill=\"", html_colour(name), "\"><title>", html_escaped(name), ": ", p.bytes,
                " bytes at ", p.offset, ", steps ", p.first, " to ", p.last, "</title></rect>\n");
    out_ += str("<text x=\"", x + 2, "\" y=\"", top + 12, "\" font-size=\"10\">", html_escaped(name), "</text>\n");
  }

  void live_line(const std::string& space, int64_t bytes) {
    std::vector<int64_t> change(static_cast<size_t>(bound_.steps()) + 2);
    for (const PlannedAllocation& p : bound_.plan()) {
      if (p.space != space) continue;
      change[static_cast<size_t>(p.first)] += p.bytes;
      change[static_cast<size_t>(p.last) + 1] -= p.bytes;
    }
    std::string points;
    int64_t live = 0;
    for (int64_t step = 0; step <= bound_.steps(); ++step) {
      points += str(x_of(step), ",", y_of(live, bytes), " ");
      live += change[static_cast<size_t>(step)];
      points += str(x_of(step), ",", y_of(live, bytes), " ");
    }
    out_ +=
        str("<polyline fill=\"none\" stroke=\"#c00\" points=\"", points, "\"><title>bytes alive</title></polyline>\n");
  }

  const Program& program_;
  const BoundProgram& bound_;
  std::string out_;
};

}  // namespace

std::string memory_picture(const Program& program, const BoundProgram& bound) { return Page(program, bound).text(); }

}  // namespace tenon::program
