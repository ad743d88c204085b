// Windows over planes whose inputs are read directly: LINES rows of outputs at once, vector by vector along the
// columns, in memory order.
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include <tenon/support/str.hpp>

#include "opencl/compute/plane_forms.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

constexpr std::string_view kLines = R"(
    const long in_plane = plane / n[8] * in_rows * in_columns, out_columns = n[3], elements = n[9];
    const int rows_before = (int)n[4], columns_before = (int)n[5];
    for (int line = 0; line < job_rows; line += LINES) {
      const int from_row = (y0 + line) * ROW_STRIDE - rows_before;
      const long lowest = in_plane + (long)clamp(from_row, 0, in_rows - 1) * in_columns;
      const int last_row = clamp(from_row + (LINES - 1) * ROW_STRIDE + ROW_REACH, 0, in_rows - 1);
      const long highest = in_plane + (long)last_row * in_columns;
      const long first_of_lines = (plane * n[2] + y0 + line) * out_columns + x0;
      for (int wanted = 0; wanted < job_columns; wanted += LANES) {
        // A vector that ends behind the job's columns is moved back where there is place.
        const int column = job_columns >= LANES ? min(wanted, job_columns - LANES) : wanted;
        const int count = min(LANES, job_columns - column);
        const int from_column = (x0 + column) * COLUMN_STRIDE - columns_before;
        const IV from_columns = LANE_NUMBERS * (IV)COLUMN_STRIDE + (IV)from_column;
)";
// Loads may extend beyond rows; that is harmless within the input.
constexpr std::string_view kWithin = R"(
        const int within =
            lowest + from_column >= 0 && highest + from_column + BEHIND + COLUMN_STRIDE * LANES <= elements;
        int served = 0;
        if (ROWS_SERVE && within) {
)";
constexpr std::string_view kEachTap = R"(
        }
        if (!served) {
          for (int l = 0; l < LINES; ++l) {
            SUM sum = START;
            for (int tap = 0; tap < TAPS; ++tap) {
              const int row = from_row + l * ROW_STRIDE + tap / COLUMN_KERNEL * ROW_DILATION;
              if (row < 0 || row >= in_rows) continue;
              const int column_of_tap = from_column + tap % COLUMN_KERNEL * COLUMN_DILATION;
              const long from = in_plane + (long)row * in_columns;
)";
// Where rows were not accumulated first, but may be read as vectors.
constexpr std::string_view kEachVector = R"(
              if (within) {
                const IV columns = from_columns + (IV)(column_of_tap - from_column);
                const IV there = (columns >= (IV)0) & (columns < (IV)in_columns);
                TAKE_AT(sum, select((TV)PADDING, XV_OF_TAP(from + column_of_tap), there), tap);
                continue;
              }
)";
// At the begin and the end of the input, element by element.
constexpr std::string_view kEachElement = R"(
              T some[LANES];
              for (int t = 0; t < LANES; ++t) {
                const int at = column_of_tap + t * COLUMN_STRIDE;
                some[t] = at >= 0 && at < in_columns ? X(from + at) : (T)PADDING;
              }
              TAKE_AT(sum, VLOAD(0, some), tap);
            }
)";
constexpr std::string_view kEachLine = R"(
        for (int l = 0; l < LINES && line + l < job_rows; ++l) {
          const long first = first_of_lines + l * out_columns;
          PLACE(place, first);
          DONE(sums[l], line + l, place, first, column, count);
        }
      }
    }
)";

// Lanes of a vector with those inputs of a row that come after the first taps of all lanes.
int64_t direct_tail(const PlaneWindow& w) {
  const int64_t behind = w.reach(1) + 1 - w.stride[1];
  return behind <= 0 ? 0 : std::max<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(behind))), 2);
}

constexpr std::string_view kDigits = "0123456789abcdef";

class PlaneWriter {
 public:
  explicit PlaneWriter(const PlaneWindow& window) : w_(window), lines_(direct_lines(window)) {}

  std::string run(const PlaneText& text) {
    std::string body = str(kPlaneJob, text.job, kLines, text.column);
    for (int64_t k = 0; k < w_.kernel[1]; ++k)
      body += str("        const IV inside", k, " = (from_columns >= (IV)", -k * w_.dilation[1],
                  ") & (from_columns < (IV)(in_columns - ", k * w_.dilation[1], "));\n");
    body += each_line([](int64_t l) { return str(l == 0 ? "        SUM s0" : str(", s", l)); }) + ";\n";
    body += kWithin;
    if (text.rows_first)
      body += str(rows_first(), served(!text.take_numbers.empty()), kEachTap, kEachVector);
    else
      body += str(each_tap(), "          served = 1;\n", kEachTap);
    body += kEachElement;
    body += each_line([](int64_t l) { return str("            if (l == ", l, ") s", l, " = sum;\n"); });
    body += "          }\n        }\n";
    if (text.copies) body += whole_lines();
    body += each_line([](int64_t l) { return str(l == 0 ? "        const SUM sums[LINES] = {s0" : str(", s", l)); });
    return str(body, "};", kEachLine);
  }

 private:
  template <class Text>
  std::string each_line(const Text& text) const {
    std::string all;
    for (int64_t l = 0; l < lines_; ++l) all += text(l);
    return all;
  }
  // For whole vectors of all lines, which stay in registers.
  std::string whole_lines() const {
    return str("        if (count == LANES && line + LINES <= job_rows) {\n", each_line([](int64_t l) {
                 return str("          {\n            const long first = first_of_lines + ", l,
                            " * out_columns;\n            PLACE(place, first);\n            DONE(s", l, ", line + ", l,
                            ", place, first, column, LANES);\n          }\n");
               }),
               "          continue;\n        }\n");
  }
  // Maps an input row, counted from the first row of the lines, to the windows that cover it: line, row of the kernel.
  using Covered = std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>>;
  Covered rows() const {
    Covered made;
    for (int64_t l = 0; l < lines_; ++l)
      for (int64_t k = 0; k < w_.kernel[0]; ++k) made[l * w_.stride[0] + k * w_.dilation[0]].push_back({l, k});
    return made;
  }
  // The offsets of the vectors that the taps of a row are taken from; for stride 2 these are pairs.
  std::set<int64_t> loads() const {
    std::set<int64_t> made;
    for (int64_t k = 0; k < w_.kernel[1]; ++k)
      for (int64_t part = 0; part < w_.stride[1]; ++part) made.insert(load_of(k) + part * w_.lanes);
    return made;
  }
  int64_t load_of(int64_t k) const { return k * w_.dilation[1] / w_.stride[1] * w_.stride[1]; }
  std::string inputs(int64_t k) const {
    const int64_t at = load_of(k);
    if (w_.stride[1] == 1) return str("select((TV)PADDING, x", at, ", inside", k, ")");
    const std::string_view part = k * w_.dilation[1] % 2 == 0 ? ".even" : ".odd";
    return str("select((TV)PADDING, (TV)(x", at, part, ", x", at + w_.lanes, part, "), inside", k, ")");
  }
  std::string each_tap() const {
    std::string text;
    text += each_line([](int64_t l) { return str("          s", l, " = START;\n"); });
    for (const auto& [row, windows] : rows()) {
      text +=
          str("          if (from_row + ", row, " >= 0 && from_row + ", row, " < in_rows) {\n",
              "            const long from = in_plane + (long)(from_row + ", row, ") * in_columns + from_column;\n");
      for (const int64_t at : loads()) text += str("            const TV x", at, " = XV(from + ", at, ");\n");
      for (int64_t k = 0; k < w_.kernel[1]; ++k) {
        text += str("            const TV t", k, " = ", inputs(k), ";\n");
        for (const auto& [l, kernel_row] : windows)
          text += str("            TAKE(s", l, ", t", k, ", ", kernel_row * w_.kernel[1] + k, ");\n");
      }
      text += "          }\n";
    }
    return text;
  }

  // Accumulates the vectors of all rows into one row before taps are cut out of it: a vector, for stride 2 a pair, and
  // the few inputs after it. A row in the padding is replaced by the window's nearest row within the input.
  std::string rows_first() const {
    std::string text;
    for (const auto& [row, windows] : rows()) {
      text += str("          const long from", row, " = in_plane + (long)clamp(from_row + ", row,
                  ", 0, in_rows - 1) * in_columns + from_column;\n");
      for (const auto& [name, type] : parts())
        text += str("          const ", type, " ", name, "_", row, " = ", read(name, row), ";\n");
      for (const auto& [l, kernel_row] : windows)
        for (const auto& [name, type] : parts())
          text += kernel_row == 0 ? str("          ", type, " ", name, l, " = ", name, "_", row, ";\n")
                                  : str("          TAKE_NUMBERS(", name, l, ", ", name, "_", row, ");\n");
    }
    for (int64_t l = 0; l < lines_; ++l) {
      if (w_.stride[1] == 2)
        for (const std::string_view part : {"even", "odd"})
          text += str("          const TV ", part, l, " = (TV)(low", l, ".", part, ", high", l, ".", part, ");\n");
      for (int64_t k = 0; k < w_.kernel[1]; ++k) {
        const std::string x = str("select((TV)PADDING, ", cut(l, k * w_.dilation[1]), ", inside", k, ")");
        text += k == 0 ? str("          s", l, " = ", x, ";\n") : str("          TAKE_NUMBERS(s", l, ", ", x, ");\n");
      }
    }
    return text;
  }
  // With `numbers_only`: only if no input that was read is NaN.
  std::string served(bool numbers_only) const {
    if (!numbers_only) return "          served = 1;\n";
    std::string lanes, tails;
    for (const auto& [row, windows] : rows())
      for (const auto& [name, type] : parts()) {
        std::string& all = name == "tail" ? tails : lanes;
        all += str(all.empty() ? "" : " & ", "(", name, "_", row, " == ", name, "_", row, ")");
      }
    if (!tails.empty()) tails = str(" & tenon_all_of_tail(", tails, ")");
    return str("          served = (tenon_all(", lanes, ")", tails, ") != 0;\n");
  }
  // Names and types of the values loaded from a row.
  std::vector<std::pair<std::string, std::string>> parts() const {
    std::vector<std::pair<std::string, std::string>> made{{"low", "TV"}};
    if (w_.stride[1] == 2) made.push_back({"high", "TV"});
    if (direct_tail(w_) > 0) made.push_back({"tail", "TAIL_TYPE"});
    return made;
  }
  static std::string read(std::string_view part, int64_t row) {
    if (part == "tail") return str("TAILV(from", row, " + COLUMN_STRIDE * LANES)");
    return part == "low" ? str("XV(from", row, ")") : str("XV(from", row, " + LANES)");
  }
  // Every stride-th input of line `l` from input `first` on.
  std::string cut(int64_t l, int64_t first) const {
    const std::string near = str(w_.stride[1] == 1 ? "low" : first % 2 == 0 ? "even" : "odd", l);
    const int64_t shift = first / w_.stride[1];
    if (shift == 0) return near;
    std::string text = "(TV)(";
    for (int64_t lane = shift; lane < w_.lanes; ++lane)
      text += str(near, ".s", kDigits.substr(static_cast<size_t>(lane), 1), ", ");
    for (int64_t i = 0; i < shift; ++i) {
      const auto at = static_cast<size_t>(first % w_.stride[1] + i * w_.stride[1]);
      text += str(i > 0 ? ", " : "", "tail", l, ".s", kDigits.substr(at, 1));
    }
    return text + ")";
  }

  const PlaneWindow& w_;
  const int64_t lines_;
};

}  // namespace

bool reads_planes_directly(const PlaneWindow& window, const ComputeTarget& target) {
  return target.work_group == 1 && window.lanes > 1 && window.stride[1] <= 2;
}

// As many lines as pay, given that there is code for each of their taps.
int64_t direct_lines(const PlaneWindow& window) {
  constexpr int64_t kMostTaps = 64, kMostLines = 4;
  return std::clamp<int64_t>(kMostTaps / window.taps(), 1, kMostLines);
}

std::string direct_plane_body(ComputeSource& source, const PlaneWindow& w, ElementType work, const PlaneText& text) {
  PlaneText form = text;
  const int64_t tail = direct_tail(w);
  form.rows_first = text.rows_first && tail <= w.lanes && w.dilation[0] == 1;
  // Every window that counts has at least one row in the input.
  source.define("ROWS_SERVE", form.rows_first
                                  ? "from_row + ROW_REACH >= 0 && from_row + (min(LINES, job_rows - line) - 1) "
                                    "* ROW_STRIDE < in_rows"
                                  : "1");
  source.define("LINES", direct_lines(w));
  source.define("VLOAD", str("vload", w.lanes));
  source.define("BEHIND", form.rows_first ? std::max(w.reach(1), tail) : w.reach(1));
  if (form.rows_first) {
    source.define("TAKE_NUMBERS(sum, x)", text.take_numbers.empty() ? "TAKE(sum, x, 0)" : text.take_numbers);
    source.define("XV_OF_TAP(i)", w.stride[1] == 1 ? "XV(i)" : "(TV)(XV(i).even, XV((i) + LANES).even)");
  }
  if (form.rows_first && !text.take_numbers.empty()) {
    const ElementType truth = work.bits() == 64 ? kI64 : kI32;
    source.functions(lanes_function("tenon_all", "&", truth, w.lanes));
    if (tail > 0) source.functions(lanes_function("tenon_all_of_tail", "&", truth, static_cast<int>(tail)));
  }
  if (form.rows_first && tail > 0) {
    source.define("TAIL_TYPE", lanes_name(work, static_cast<int>(tail)));
    source.vectors_of(static_cast<int>(tail));
    source.load("TAIL", 0, work);
    source.vectors_of(w.lanes);
  }
  return PlaneWriter(w).run(form);
}

}  // namespace tenon::opencl
