#include "opencl/compute/images.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <tenon/support/str.hpp>

#include "opencl/compute/plane_forms.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

constexpr int64_t kLinePositions = 1024;  // of sums kept in local memory
// Of a job: so few positions, or inputs, stay in a near cache while output channels change.
constexpr int64_t kGoodPositions = 256, kGoodBytes = 48 << 10;
// Weights are read row by row: more rows than this need more addresses than there are registers.
constexpr int kMostImageRows = 8;

// Limit of the inner extent.
int64_t most_steps(const ComputeTarget& target) {
  constexpr int64_t kMostSteps = 16 << 10;
  return std::min<int64_t>(kMostSteps, target.local_bytes / 8 / 4);
}

// Elements of lines of sums; tiles have at most as many further columns.
int64_t line_elements(const ProductTile& tile) { return tile.rows * (kLinePositions + tile.columns()); }

int64_t image_elements(ElementType work, const ComputeTarget& target) {
  constexpr int64_t kMostBytes = 512 << 10, kMostColumns = 128;
  const int64_t element = work.bits() / 8, others = kMostImageRows * (kLinePositions + kMostColumns) + 2 * kMostColumns;
  return std::min(kMostBytes, target.local_bytes - 4 * most_steps(target) - others * element) / element;
}

// Number of phases that taps read.
int64_t phases(const PlaneWindow& w, int axis) { return std::min(w.stride[axis], w.reach(axis) + 1); }

// n: 0 channels, 1 outputs, 2 groups, 3 and 4 rows and columns of the input, 5 and 6 of the output, 7 and 8 the padding
// before them, 9 rows of a job, 10 pitch, 11 rows of a phase, 12 outputs of a job.
constexpr std::string_view kStage = R"(
    const long groups = n[2], channels = n[0] / groups, outputs = n[1] / groups, K = channels * TAPS;
    const int in_rows = (int)n[3], in_columns = (int)n[4], out_columns = (int)n[6], job_rows = (int)n[9];
    const int pitch = (int)n[10], phase_rows = (int)n[11], phase = phase_rows * pitch;
    const long row_blocks = (n[5] + job_rows - 1) / job_rows, output_blocks = (outputs + n[12] - 1) / n[12];
    // The last block of rows is moved back: some outputs are made twice.
    const int y0 = (int)min(item % row_blocks * job_rows, n[5] - job_rows);
    const long output0 = item / row_blocks % output_blocks * n[12], output1 = min(outputs, output0 + n[12]);
    const long group = item / row_blocks / output_blocks % groups, picture = item / row_blocks / output_blocks / groups;
    const int channel_size = ROW_PHASES * COLUMN_PHASES * phase;
    for (long channel = 0; channel < channels; ++channel)
      for (int row = 0; row < phase_rows; ++row)
        for (int p = 0; p < ROW_PHASES * COLUMN_PHASES; ++p) {
          const int from = (y0 + row) * ROW_STRIDE + p / COLUMN_PHASES - (int)n[7];
          tenon_stage(image + channel * channel_size + p * phase + row * pitch, pitch,
                      ((picture * n[0] + group * channels + channel) * in_rows + from) * in_columns,
                      from >= 0 && from < in_rows, p % COLUMN_PHASES - (int)n[8], in_columns, a0);
        }
    // Where a step of the inner extent, a tap of a channel, reads: one long loop takes less than a short one for each
    // channel.
    for (long k = 0; k < K; ++k) {
      const int tap = (int)(k % TAPS);
      const int row = tap / COLUMN_KERNEL * ROW_DILATION, column = tap % COLUMN_KERNEL * COLUMN_DILATION;
      steps[k] = (int)(k / TAPS) * channel_size + (row % ROW_STRIDE * COLUMN_PHASES + column % COLUMN_STRIDE) * phase +
                 row / ROW_STRIDE * pitch + column / COLUMN_STRIDE;
    }
    for (long output = output0; output < output1; output += ROWS) {
)";

constexpr std::string_view kImageFinish = R"(
      for (int r = 0; r < ROWS && output + r < output1; ++r) {
        const long line_of_row = ((picture * n[1] + group * outputs + output + r) * n[5] + y0) * out_columns;
        for (int y = 0; y < job_rows; ++y) {
          const long first = line_of_row + y * out_columns;
          PLACE(place, first);
          for (int wanted = 0; wanted < out_columns; wanted += LANES) {
            const int column = WIDE ? min(wanted, out_columns - LANES) : wanted;
            const TV x = NEAR_LOCAL(line + r * LINE + y * pitch + column);
            FINISH(place, first, column, WIDE ? LANES : out_columns, x);
          }
        }
      }
    }
)";

}  // namespace

namespace {

// Cycles of a job without the epilogue; the costs of a row of a phase, and of its elements, are measured.
double staging_of(const ImageConv& c, const ImageTile& t) {
  constexpr double kRow = 20, kElement = 0.25;
  const auto rows =
      static_cast<double>(c.channels / c.groups * phases(c.window, 0) * phases(c.window, 1) * t.phase_rows);
  return rows * (kRow + kElement * static_cast<double>(t.pitch));
}
double computing_of(const ImageConv& c, const ImageTile& t) {
  const int64_t outputs = c.outputs / c.groups, positions = t.rows * t.pitch,
                steps = c.channels / c.groups * c.window.taps();
  return static_cast<double>(outputs * positions * steps) / t.tile.lanes *
         cycles_of(t.tile, {outputs, positions, steps});
}

// A job of so many rows of outputs, if their image fits.
std::optional<ImageTile> tile_of_rows(const ImageConv& c, int64_t rows, ElementType work, const ComputeTarget& target) {
  const PlaneWindow& w = c.window;
  ImageTile made;
  made.rows = rows, made.phase_rows = rows + w.reach(0) / w.stride[0];
  made.pitch = c.extents.out[1] + w.reach(1) / w.stride[1];
  const int64_t channels = c.channels / c.groups, positions = rows * made.pitch;
  const int64_t image = channels * phases(w, 0) * phases(w, 1) * made.phase_rows * made.pitch;
  const bool near = positions <= kGoodPositions || image * (work.bits() / 8) <= kGoodBytes || rows == 1;
  if (!near || positions > kLinePositions || image > image_elements(work, target)) return std::nullopt;
  ComputeTarget few = target;
  few.tiling.rows = std::min(few.tiling.rows, kMostImageRows);
  made.tile = choose_tile({c.outputs / c.groups, positions, channels * w.taps()}, work, few);
  return made.tile.packs() ? std::optional(made) : std::nullopt;
}

}  // namespace

std::optional<ImageTile> image_tile(const ImageConv& c, ElementType work, const ComputeTarget& target) {
  const int64_t channels = c.channels / c.groups;
  if (target.work_group != 1 || !target.tiling.local || c.extents.out[0] < 1 || c.extents.out[1] < 1)
    return std::nullopt;
  if (channels == 0 || channels * c.window.taps() > most_steps(target)) return std::nullopt;
  std::optional<ImageTile> best;
  double least = std::numeric_limits<double>::infinity();
  int64_t before = 0;
  for (int64_t blocks = 1; blocks <= c.extents.out[0]; ++blocks) {
    const int64_t rows = (c.extents.out[0] + blocks - 1) / blocks;
    if (std::exchange(before, rows) == rows) continue;
    const auto tile = tile_of_rows(c, rows, work, target);
    if (!tile) continue;
    const double cycles = static_cast<double>(blocks) * (staging_of(c, *tile) + computing_of(c, *tile));
    if (cycles < least) least = cycles, best = tile;
  }
  return best;
}

std::string image_body(ComputeSource& source, const ImageConv& c, const ImageTile& made, ElementType work,
                       const ComputeTarget& target) {
  const PlaneWindow& w = c.window;
  const ProductTile& tile = made.tile;
  define_window(source, w, work);
  define_staging(source, w, work);
  source.define("PADDING", "0");
  source.define("ROW_PHASES", phases(w, 0));
  source.define("COLUMN_PHASES", phases(w, 1));
  source.define("ROWS", tile.rows);
  source.define("COLUMNS", tile.columns());
  source.define("WIDE", c.extents.out[1] >= tile.lanes ? 1 : 0);  // whether a row has at least one whole vector
  source.define("LINE", kLinePositions + tile.columns());
  // The last vectors extend beyond the image of the last channel, and beyond lines.
  source.local(str("  __local T image[", image_elements(work, target) + 2 * tile.columns(), "];\n  __local T line[",
                   line_elements(tile), "];\n  __local int steps[", most_steps(target), "];\n"));
  const auto each_row = [&](const auto& text) {
    std::string all;
    for (int r = 0; r < tile.rows; ++r) all += text(r);
    return all;
  };
  const auto each_vector = [&](const auto& text) {
    std::string all;
    for (int v = 0; v < tile.vectors; ++v) all += text(v);
    return all;
  };
  std::string body(kStage);
  body += each_row([](int r) {
    return str("      const long output_", r, " = group * outputs + min(output + ", r, ", outputs - 1), row_", r,
               " = output_", r, " * K;\n");
  });
  body += "      for (int at = 0; at < job_rows * pitch; at += COLUMNS) {\n";
  body += each_row([&](int r) {
    return str("        TV ",
               each_vector([&](int v) { return str(v ? ", " : "", "s", r, "_", v, " = (TV)START(output_", r, ")"); }),
               ";\n");
  });
  body += each_row([](int r) { return str("        A_TYPE w", r, " = A_AT(row_", r, ");\n"); });
  body += each_step("K");
  body += "          const __local T* from = image + at + steps[k];\n";
  body += each_vector([](int v) { return str("          const TV b", v, " = NEAR_LOCAL(from + ", v, " * LANES);\n"); });
  body += "          TV repeated;\n";
  body += each_row([&](int r) {
    return str("          repeated = (TV)A_FROM(w", r, ", k);\n", each_vector([&](int v) {
                 return str("          s", r, "_", v, " = fma(repeated, b", v, ", s", r, "_", v, ");\n");
               }));
  });
  body += "        }\n";
  body += each_row([&](int r) {
    return each_vector([&](int v) {
      return str("        NEAR_LOCAL(line + ", r, " * LINE + at + ", v, " * LANES) = s", r, "_", v, ";\n");
    });
  });
  return str(body, "      }\n", kImageFinish);
}

ComputeLaunch image_launch(const ImageConv& c, const ImageTile& tile, int64_t images, const ComputeTarget& target) {
  constexpr int64_t kMostJobsOfUnit = 2;
  const PlaneExtents& e = c.extents;
  const int64_t row_blocks = (e.out[0] + tile.rows - 1) / tile.rows, outputs = c.outputs / c.groups;
  const int64_t jobs = std::max<int64_t>(images * c.groups * row_blocks, 1), units = target.compute_units;
  const int64_t tiles = (outputs + tile.tile.rows - 1) / tile.tile.rows;
  const int64_t most = std::clamp<int64_t>((kMostJobsOfUnit * units + jobs - 1) / jobs, 1, tiles);
  // Output channels may be divided into blocks, each of which stages the image once more. Units do not finish at the
  // same time; a tenth of a job is lost by that.
  const auto cycles = [&](int64_t blocks) {
    const double computing = computing_of(c, tile) / static_cast<double>(blocks);
    return static_cast<double>((jobs * blocks + units - 1) / units) * (staging_of(c, tile) + computing) +
           computing / 10;
  };
  int64_t blocks = 1;
  for (int64_t more = 2; more <= most; ++more)
    if (cycles(more) < cycles(blocks)) blocks = more;
  const int64_t block = (tiles + blocks - 1) / blocks * tile.tile.rows;
  ComputeLaunch made{{c.channels, c.outputs, c.groups, e.in[0], e.in[1], e.out[0], e.out[1], e.begin[0], e.begin[1],
                      tile.rows, tile.pitch, tile.phase_rows, block},
                     images * c.groups * row_blocks * ((outputs + block - 1) / block)};
  return made;
}

}  // namespace tenon::opencl
