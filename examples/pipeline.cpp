// A pipeline of image stages: states which indices each stage needs, computes them strip by strip, and lets runs choose
// the strips.
#include <cstdio>
#include <numeric>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/ir/text.hpp>
#include <tenon/program/ir/verify.hpp>
#include <tenon/program/pipeline/pipeline.hpp>
#include <tenon/program/schedule/adaptive_program.hpp>
#include <tenon/program/schedule/auto_schedule.hpp>

#include "exit_code.hpp"

using namespace tenon;
using namespace tenon::program;

namespace {

constexpr int64_t kWidth = 64, kHeight = 48;

// result(x, y) = the square of source(x, y)
KernelHandle square() {
  return make_kernel(
      "square",
      [](CallContext& c) -> Result<void> {
        const auto in = c.elements<const float>(0);
        const auto out = c.elements<float>(1);
        for (int64_t y = out.min(1); y <= out.max(1); ++y)
          for (int64_t x = out.min(0); x <= out.max(0); ++x) out(x, y) = in(x, y) * in(x, y);
        return {};
      },
      true);
}

// result(x, y) = the mean of source(x, y - 1 ... y + 1)
KernelHandle mean_of_3_rows() {
  return make_kernel(
      "mean_of_3_rows",
      [](CallContext& c) -> Result<void> {
        const auto in = c.elements<const float>(0);
        const auto out = c.elements<float>(1);
        for (int64_t y = out.min(1); y <= out.max(1); ++y)
          for (int64_t x = out.min(0); x <= out.max(0); ++x) out(x, y) = (in(x, y - 1) + in(x, y) + in(x, y + 1)) / 3;
        return {};
      },
      true);
}

Result<void> run() {
  // 1. The stages. The image is padded with 0.
  Pipeline p("smooth");
  const Expr x = Expr::symbol("x"), y = Expr::symbol("y");
  BufferRef image = p.buffer("image", kF32, 2), squared = p.buffer("squared", kF32, 2),
            padded = p.buffer("padded", kF32, 2), smooth = p.buffer("smooth", kF32, 2);
  p.stage("square", square()).reads(image, {x, y}).writes(squared, {x, y});
  p.padded_copy(squared, {x, y}, padded, {x, y}, {image.bounds(0), image.bounds(1)}, Padding::value(0.0f));
  StageRef mean = p.stage("mean", mean_of_3_rows()).reads(padded, {x, {y - 1, y + 1}}).writes(smooth, {x, y});

  // 2. A manual schedule: 4 rows at a time. A window of 6 rows of `padded` is kept.
  mean.loops({{y, 4}});
  TENON_TRY(program, p.build({image}, {smooth}), "building");
  TENON_OK(verify(program), "verifying");
  std::printf("%s\n", print(program).c_str());

  // 3. A run. A bound program allocates no heap memory while it runs.
  std::vector<float> in(kWidth * kHeight), out(kWidth * kHeight);
  std::iota(in.begin(), in.end(), 0.0f);
  const Arguments arguments{{{"image", BufferArgument::dense(in.data(), kF32, {kWidth, kHeight})},
                             {"smooth", BufferArgument::dense(out.data(), kF32, {kWidth, kHeight})}},
                            {}};
  TENON_TRY(bound, BoundProgram::bind(program, arguments), "binding");
  TENON_OK(bound.run(arguments), "running");
  const float wanted = (in[0] * in[0] + in[kWidth] * in[kWidth]) / 3;
  if (out[0] != wanted) return error(Code::internal, "got ", out[0], ", wanted ", wanted);
  std::printf("smooth(0, 0) = %g, in %lld bytes besides image and result\n", out[0],
              static_cast<long long>(bound.arena_bytes().empty() ? 0 : bound.arena_bytes().begin()->second));

  // 4. The automatic schedule for an image of 4096 x 4096, compared with the manual one.
  const SymbolValues sizes{{"image.min0", 0},  {"image.extent0", 4096},  {"image.min1", 0},  {"image.extent1", 4096},
                           {"smooth.min0", 0}, {"smooth.extent0", 4096}, {"smooth.min1", 0}, {"smooth.extent1", 4096}};
  TENON_TRY(report, auto_schedule(p, {image}, {smooth}, sizes, CostModel::host()), "scheduling");
  std::printf("%s", report.to_string().c_str());

  // 5. Which schedule is the fastest for the image of this size, on this machine, now: its runs try several.
  TENON_TRY(adaptive, AdaptiveProgram::bind(p, {image}, {smooth}, arguments, CostModel::host()), "binding schedules");
  for (int i = 0; i < 1000; ++i) TENON_OK(adaptive.run(arguments), "running");
  std::printf("%s", adaptive.to_string().c_str());
  return {};
}

}  // namespace

int main() { return example::exit_code(run()); }
