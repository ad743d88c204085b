// How the iteration space of a call is divided between the threads and the kernel.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon::snippet {

struct Domain {
  Dims dims;       // as many as the space had; outer ones are 1 where dims were joined
  int inside = 1;  // how many of the last ones one call of the kernel walks
  bool operator==(const Domain&) const = default;
};

// The last two dims are joined while every input is contiguous over both, the last one has fewer elements than
// `min_kernel`, and what stays outside still feeds the threads. Then the kernel walks the last two dims if those
// outside feed the threads, else the last one.
// `inputs`: right-aligned, each dim as in the space or 1; ones that do not broadcast are an error naming both.
TENON_API Result<Domain> collapse_domain(std::span<const Dims> inputs, int64_t min_kernel, int64_t threads);

// The parts that `rows` rows of each of `batch` entries are cut into so that `threads` threads have alike work.
struct RowSplit {
  int64_t outer = 1, inner = 1;  // outer * inner = rows
  bool operator==(const RowSplit&) const = default;
};
// A part has at least kMinRows rows. Only when there are fewer entries than threads; outer is 1 where nothing is won.
inline constexpr int64_t kMinRows = 16;
TENON_API RowSplit split_rows(int64_t batch, int64_t rows, int64_t threads);

}  // namespace tenon::snippet
