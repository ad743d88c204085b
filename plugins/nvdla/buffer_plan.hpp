// The plan of the convolution buffer: how much of a convolution's data and weights is in it at a time.
//
// A row of data begins at an entry and has all its surfaces. Kernels are in groups of atomic_k; each group begins at an
// entry. Data is in the first banks, weights are in banks of their own after it. The first of these plans that fits is
// used:
//
//   all data, 2K kernels               two groups of kernels in turns: one is loaded while the other one works
//   all data, 2K kernels               two slots for groups of kernels: one is loaded while the other is in use
//   split rows, all weights            bands of output rows, as many rows as fit; weights stay
//   split rows, 2K kernels             bands, and for each band all kernels, in two slots
//   all data, K kernels                one group at a time
//   split rows, K kernels
//
// A band of a convolution with a pool consists of pooled rows; rows that two bands need are computed twice.
#pragma once
#include <string_view>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

#include "nvdla/hardware.hpp"
#include "nvdla/parts.hpp"

namespace tenon::nvdla {

struct WindowAxis {
  int64_t kernel = 1, stride = 1, dilation = 1, pad = 0;
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

// An nvdla.Conv as numbers. Extents are for one part (parts.hpp); all parts are alike.
struct ConvLayer {
  std::string label;
  Image input;   // of the whole operator
  Image output;  // of the whole operator, after the pool
  Parts parts;
  WindowAxis rows, cols;
  int64_t out_height = 1, out_width = 1;  // of the convolution, before the pool
  bool pooled = false;
  WindowAxis pool_rows, pool_cols;

  // Code::unsupported for what addresses or surfaces cannot express.
  static Result<ConvLayer> of(const Op& op, const Hardware& hardware);

  int64_t part_surfaces(const Hardware& hardware) const { return ceil_div(parts.channels, hardware.atom_channels); }
  int64_t row_entries(const Hardware& hardware) const;
  // Bytes of a group of `kernels` kernels, in DRAM and in the buffer.
  int64_t group_bytes(int64_t kernels, const Hardware& hardware) const;
  int64_t groups(const Hardware& hardware) const { return ceil_div(parts.kernels, hardware.atomic_k); }
  int64_t weight_bytes(const Hardware& hardware) const;  // of all groups

  // The convolution rows [first, end) for output rows [first, end), and the input rows for convolution rows.
  struct Rows {
    int64_t first = 0, end = 0;
    int64_t count() const { return end - first; }
  };
  Rows conv_rows(Rows output) const;
  Rows input_rows(Rows conv) const;
  // The most input rows that any band of `output_rows` output rows needs.
  int64_t most_input_rows(int64_t output_rows) const;
};

enum class PlanKind : uint8_t { all_all, all_two, split_all, split_two, all_one, split_one };
inline constexpr int kPlanKinds = 6;
std::string_view plan_name(PlanKind kind);
Result<PlanKind> plan_of_name(std::string_view name);

struct BufferPlan {
  PlanKind kind = PlanKind::all_all;
  int64_t band_rows = 0;  // output rows of a band; all of them where data is not split
  int64_t data_banks = 0, weight_banks = 0;
  int64_t slots = 0;  // for groups of kernels; 0: each group has a place of its own
  bool operator==(const BufferPlan&) const = default;
};

// Code::unsupported, with the numbers, where not even a band of one row and one group fit.
Result<BufferPlan> plan_buffer(const ConvLayer& layer, const Hardware& hardware);

// Checks that an operator of the machine fits it: its images into DRAM, its convolution into the buffer.
Result<void> check_fits(const Op& op, const Hardware& hardware);

}  // namespace tenon::nvdla
