#include "opencl/compute/images.hpp"

#include <algorithm>

#include <tenon/support/str.hpp>

#include "opencl/compute/plane_forms.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

constexpr int64_t kLinePositions = 1024;  // of sums that wait
constexpr int64_t kGoodPositions = 256;   // of a job: their inputs stay near the core while channels of outputs change

// Of the inner extent.
int64_t most_steps(const ComputeTarget& target) {
  constexpr int64_t kMostSteps = 16 << 10;
  return std::min<int64_t>(kMostSteps, target.local_bytes / 8 / 4);
}

int64_t image_elements(ElementType work, const ComputeTarget& target) {
  constexpr int64_t kMostBytes = 512 << 10;
  return std::min(kMostBytes, target.local_bytes / 4) / static_cast<int64_t>(work.bits() / 8);
}

// Phases that taps read.
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
    // Where a step of the inner extent, a tap of a channel, reads: one long loop takes less than a short one for each channel.
    for (long k = 0; k < K; ++k) {
      const int tap = (int)(k % TAPS), row = tap / COLUMN_KERNEL * ROW_DILATION, column = tap % COLUMN_KERNEL * COLUMN_DILATION;
      steps[k] = (int)(k / TAPS) * channel_size + (row % ROW_STRIDE * COLUMN_PHASES + column % COLUMN_STRIDE) * phase +
                 row / ROW_STRIDE * pitch + column / COLUMN_STRIDE;
    }
    for (long output = output0; output < output1; output += ROWS) {
)";

constexpr std::string_view kFinish = R"(
      for (int r = 0; r < ROWS && output + r < output1; ++r) {
        const long line_of_row = ((picture * n[1] + group * outputs + output + r) * n[5] + y0) * n[6];
        for (int y = 0; y < job_rows; ++y) {
          const long first = line_of_row + y * n[6];
          PLACE(place, first);
          for (int wanted = 0; wanted < out_columns; wanted += LANES) {
            const int column = out_columns >= LANES ? min(wanted, out_columns - LANES) : wanted;
            const TV x = NEAR_LOCAL(line + r * LINE + y * pitch + column);
            FINISH(place, first, column, min(LANES, out_columns - column), x);
          }
        }
      }
    }
)";

}  // namespace

std::optional<ImageTile> image_tile(const ImageConv& c, ElementType work, const ComputeTarget& target) {
  const PlaneWindow& w = c.window;
  if (target.work_group != 1 || !target.tiling.local || c.extents.out[0] < 1 || c.extents.out[1] < 1)
    return std::nullopt;
  ImageTile made;
  made.pitch = c.extents.out[1] + w.reach(1) / w.stride[1];
  const int64_t channels = c.channels / c.groups;
  const auto fits = [&](int64_t rows) {
    made.rows = rows, made.phase_rows = rows + w.reach(0) / w.stride[0];
    return channels * phases(w, 0) * phases(w, 1) * made.phase_rows * made.pitch <= image_elements(work, target);
  };
  if (made.pitch > kLinePositions || channels == 0 || channels * w.taps() > most_steps(target)) return std::nullopt;
  int64_t blocks = 1;
  const int64_t good = std::clamp<int64_t>(kGoodPositions / made.pitch, 1, c.extents.out[0]);
  for (blocks = (c.extents.out[0] + good - 1) / good; !fits((c.extents.out[0] + blocks - 1) / blocks); ++blocks)
    if (made.rows == 1) return std::nullopt;
  // Weights are read row by row: more rows than these need more addresses than there are registers.
  constexpr int kMostRows = 8;
  ComputeTarget few = target;
  few.tiling.rows = std::min(few.tiling.rows, kMostRows);
  made.tile = choose_tile({c.outputs / c.groups, made.rows * made.pitch, channels * w.taps()}, work, few);
  if (!made.tile.packs()) return std::nullopt;
  return made;
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
  const int64_t line = kLinePositions + tile.columns();
  source.define("LINE", line);
  // Vectors at the end reach beyond the last channel's image, and lines.
  source.local(str("  __local T image[", image_elements(work, target) + 2 * tile.columns(), "];\n  __local T line[",
                   tile.rows * line, "];\n  __local int steps[", most_steps(target), "];\n"));
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
  body +=
      "        for (long k = 0; k < K; ++k) {\n"
      "          const __local T* from = image + at + steps[k];\n";
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
  return str(body, "      }\n", kFinish);
}

ComputeLaunch image_launch(const ImageConv& c, const ImageTile& tile, int64_t images, const ComputeTarget& target) {
  constexpr int64_t kJobsOfUnit = 2;
  const PlaneExtents& e = c.extents;
  const int64_t row_blocks = (e.out[0] + tile.rows - 1) / tile.rows, outputs = c.outputs / c.groups;
  const int64_t jobs = std::max<int64_t>(images * c.groups * row_blocks, 1);
  const int64_t tiles = (outputs + tile.tile.rows - 1) / tile.tile.rows;
  const int64_t blocks = std::clamp<int64_t>((kJobsOfUnit * target.compute_units + jobs - 1) / jobs, 1, tiles);
  const int64_t block = (tiles + blocks - 1) / blocks * tile.tile.rows;
  ComputeLaunch made{{c.channels, c.outputs, c.groups, e.in[0], e.in[1], e.out[0], e.out[1], e.begin[0], e.begin[1],
                      tile.rows, tile.pitch, tile.phase_rows, block},
                     images * c.groups * row_blocks * ((outputs + block - 1) / block)};
  return made;
}

}  // namespace tenon::opencl
