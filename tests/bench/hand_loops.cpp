#include "bench/hand_loops.hpp"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tenon::bench {

void chain12(const Arrays& a, int64_t begin, int64_t end) {
  const float* __restrict x = a.input<float>(0);
  float* __restrict y = a.output<float>(0);
  for (int64_t i = begin; i < end; ++i) {
    const float t = (std::sqrt(std::abs(x[i] * 1.1f + 0.2f)) - 0.7f) * 1.7f;
    y[i] = std::max(0.0f, (-std::min(std::max(t, -0.5f), 2.0f) + x[i]) * 0.25f);
  }
}

void hardswish(const Arrays& a, int64_t begin, int64_t end) {
  const float* __restrict x = a.input<float>(0);
  float* __restrict y = a.output<float>(0);
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] * std::min(std::max(x[i] + 3.0f, 0.0f), 6.0f) * (1.0f / 6.0f);
}

void diamond(const Arrays& a, int64_t begin, int64_t end) {
  const float* __restrict x = a.input<float>(0);
  const float* __restrict z = a.input<float>(1);
  float* __restrict y = a.output<float>(0);
  for (int64_t i = begin; i < end; ++i) {
    const float t = x[i] + z[i];
    y[i] = t * std::min(std::max(t + 3.0f, 0.0f), 6.0f);
  }
}

void several_outputs(const Arrays& a, int64_t begin, int64_t end) {
  const float* __restrict x = a.input<float>(0);
  const float* __restrict z = a.input<float>(1);
  float* __restrict s = a.output<float>(0);
  float* __restrict d = a.output<float>(1);
  float* __restrict p = a.output<float>(2);
  for (int64_t i = begin; i < end; ++i) {
    s[i] = x[i] + z[i];
    d[i] = std::abs(x[i] - z[i]);
    p[i] = std::max(0.0f, x[i] * z[i]);
  }
}

void gelu_erf(const Arrays& a, int64_t begin, int64_t end) {
  const float* __restrict x = a.input<float>(0);
  float* __restrict y = a.output<float>(0);
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] * (std::erf(x[i] / 1.4142135f) + 1.0f) * 0.5f;
}

static float tanh_gelu(float x) { return x * (std::tanh((x + x * x * x * 0.044715f) * 0.7978846f) + 1.0f) * 0.5f; }

void gelu_tanh(const Arrays& a, int64_t begin, int64_t end) {
  const float* __restrict x = a.input<float>(0);
  float* __restrict y = a.output<float>(0);
  for (int64_t i = begin; i < end; ++i) y[i] = tanh_gelu(x[i]);
}

void swish(const Arrays& a, int64_t begin, int64_t end) {
  const float* __restrict x = a.input<float>(0);
  float* __restrict y = a.output<float>(0);
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i]));
}

void swish_of_bytes(const Arrays& a, int64_t begin, int64_t end) {
  static const std::array<uint8_t, 256> table = [] {
    std::array<uint8_t, 256> made{};
    for (int byte = 0; byte < 256; ++byte) {
      const double x = (byte - 128) / 32.0, y = x / (1 + std::exp(-x));
      made[static_cast<size_t>(byte)] = static_cast<uint8_t>(std::clamp(std::nearbyint(y * 32) + 16, 0.0, 255.0));
    }
    return made;
  }();
  const uint8_t* __restrict x = a.input<uint8_t>(0);
  uint8_t* __restrict y = a.output<uint8_t>(0);
  for (int64_t i = begin; i < end; ++i) y[i] = table[x[i]];
}

void add_relu(const Arrays& a, int64_t begin, int64_t end) {
  const float* __restrict x = a.input<float>(0);
  const float* __restrict z = a.input<float>(1);
  float* __restrict y = a.output<float>(0);
  for (int64_t i = begin; i < end; ++i) y[i] = std::max(0.0f, x[i] + z[i]);
}

void bias_gelu_tanh(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t n = a.extents[1];
  const float* __restrict bias = a.input<float>(1);
  for (int64_t r = begin; r < end; ++r) {
    const float* __restrict x = a.input<float>(0) + r * n;
    float* __restrict y = a.output<float>(0) + r * n;
    for (int64_t i = 0; i < n; ++i) y[i] = tanh_gelu(x[i] + bias[i]);
  }
}

void scale_shift_relu(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t n = a.extents[1];
  for (int64_t r = begin; r < end; ++r) {
    const float* __restrict x = a.input<float>(0) + r * n;
    float* __restrict y = a.output<float>(0) + r * n;
    const float scale = a.input<float>(1)[r] * a.input<float>(3)[r];
    const float shift = a.input<float>(2)[r] * a.input<float>(3)[r] + a.input<float>(4)[r];
    for (int64_t i = 0; i < n; ++i) y[i] = std::max(0.0f, x[i] * scale + shift);
  }
}

void normalise_planar(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t n = a.extents[1];
  for (int64_t r = begin; r < end; ++r) {
    const uint8_t* __restrict x = a.input<uint8_t>(0) + r * n;
    float* __restrict y = a.output<float>(0) + r * n;
    const float mean = a.input<float>(1)[r], deviation = a.input<float>(2)[r];
    for (int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) / 255.0f - mean) / deviation;
  }
}

void normalise_interleaved(const Arrays& a, int64_t begin, int64_t end) {
  const uint8_t* __restrict x = a.input<uint8_t>(0);
  float* __restrict y = a.output<float>(0);
  float scale[48], shift[48];
  for (int i = 0; i < 48; ++i) {
    scale[i] = 1 / (255.0f * a.input<float>(2)[i % 3]);
    shift[i] = -a.input<float>(1)[i % 3] / a.input<float>(2)[i % 3];
  }
  int64_t at = begin * 3;
  for (; at + 48 <= end * 3; at += 48)
    for (int i = 0; i < 48; ++i) y[at + i] = static_cast<float>(x[at + i]) * scale[i] + shift[i];
  for (int i = 0; at < end * 3; ++at, ++i) y[at] = static_cast<float>(x[at]) * scale[i] + shift[i];
}

void broadcast(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t rows = a.extents[1], n = a.extents[2];
  for (int64_t c = begin; c < end; ++c) {
    const float* __restrict b = a.input<float>(2) + c * n;
    for (int64_t h = 0; h < rows; ++h) {
      const float* __restrict x = a.input<float>(0) + (c * rows + h) * n;
      float* __restrict y = a.output<float>(0) + (c * rows + h) * n;
      const float s = a.input<float>(1)[c * rows + h];
      for (int64_t i = 0; i < n; ++i) y[i] = std::max(0.0f, x[i] * s + b[i]);
    }
  }
}

void softmax_columns(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t rows = a.extents[1], n = a.extents[2];
  constexpr int64_t kTile = 64;
  for (int64_t p = begin; p < end; ++p) {
    for (int64_t at = 0; at < n; at += kTile) {
      const int64_t width = std::min(kTile, n - at);
      const float* __restrict x = a.input<float>(0) + p * rows * n + at;
      float* __restrict y = a.output<float>(0) + p * rows * n + at;
      float most[kTile], sum[kTile] = {};
      std::copy(x, x + width, most);
      for (int64_t r = 1; r < rows; ++r)
        for (int64_t i = 0; i < width; ++i) most[i] = std::max(most[i], x[r * n + i]);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < width; ++i) sum[i] += y[r * n + i] = std::exp(x[r * n + i] - most[i]);
      for (int64_t i = 0; i < width; ++i) sum[i] = 1 / sum[i];
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < width; ++i) y[r * n + i] *= sum[i];
    }
  }
}

void sum_columns(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t rows = a.extents[1], n = a.extents[2];
  constexpr int64_t kTile = 2048;
  for (int64_t p = begin; p < end; ++p) {
    for (int64_t at = 0; at < n; at += kTile) {
      const int64_t width = std::min(kTile, n - at);
      float sum[kTile] = {};
      const float* __restrict x = a.input<float>(0) + p * rows * n + at;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < width; ++i) sum[i] += x[r * n + i];
      std::copy(sum, sum + width, a.output<float>(0) + p * n + at);
    }
  }
}

namespace {

using Line = uint64_t __attribute__((vector_size(64), aligned(1), may_alias));
// Look-ahead in bytes for lines to be written and to be read. Sufficient for main memory.
constexpr int64_t kWritten = 48 * 64, kRead = 64 * 64;

// How lines are moved: non-temporally, with prefetching of lines to be written or read, and in how many streams.
struct How {
  bool non_temporal = false, fetched = false;
  int streams = 1;
};

template <How kHow>
void put(char* to, const Line& line) {
  if constexpr (kHow.non_temporal) {
    // Tensors are aligned to cache lines.
#ifdef __AVX512F__
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<const __m512i&>(line));
#else
    for (int i = 0; i < 4; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, reinterpret_cast<const __m128i*>(&line)[i]);
#endif
  } else {
    if constexpr (kHow.fetched) __builtin_prefetch(to + kWritten, 1);
    *reinterpret_cast<Line*>(to) = line;
  }
}

// A unit is a line of each output; of inputs with byte elements, a quarter of a line. Inlined into the loop, so that
// `line` is a register: in memory, each line would wait for the previous one to be stored and loaded again, which is
// half of the time that moving it takes.
template <How kHow, int kIns, int kOuts, int kInBytes>
[[gnu::always_inline]] inline void move_unit(const Arrays& a, int64_t unit, Line& line) {
  for (int i = 0; i < kIns; ++i) {
    const char* from = static_cast<const char*>(a.in[static_cast<size_t>(i)]) + unit * kInBytes;
    if constexpr (kHow.non_temporal && kHow.fetched) __builtin_prefetch(from + kRead);
    if constexpr (kInBytes == 64) {
      line ^= *reinterpret_cast<const Line*>(from);
    } else {
      // All of the line: the memory of an EPYC stores half a line of zeros in half the time.
      const __m128i quarter = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
#ifdef __AVX512F__
      line ^= reinterpret_cast<Line>(_mm512_maskz_broadcast_i32x4(0xffff, quarter));
#else
      for (int q = 0; q < 4; ++q) {
        line[2 * q] ^= static_cast<uint64_t>(_mm_cvtsi128_si64(quarter));
        line[2 * q + 1] ^= static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(quarter, quarter)));
      }
#endif
    }
  }
  for (int i = 0; i < kOuts; ++i) put<kHow>(static_cast<char*>(a.out[static_cast<size_t>(i)]) + unit * 64, line);
}

template <How kHow, int kIns, int kOuts, int kInBytes>
void move(const Arrays& a, int64_t begin, int64_t end) {
  Line line{};
  // Two units of each stream in turn.
  const int64_t length = (end - begin) / kHow.streams / 2 * 2;
  for (int64_t at = begin; at < begin + length; at += 2) {
    for (int s = 0; s < kHow.streams; ++s)
      for (int u = 0; u < 2; ++u) move_unit<kHow, kIns, kOuts, kInBytes>(a, at + s * length + u, line);
  }
  for (int64_t at = begin + length * kHow.streams; at < end; ++at) move_unit<kHow, kIns, kOuts, kInBytes>(a, at, line);
  if constexpr (kHow.non_temporal) __builtin_ia32_sfence();
  // Makes what was read count as used, even if nothing is written.
  const Line used = line;
  __asm__ volatile("" : : "m"(used));
}

template <int kIns, int kOuts, int kInBytes>
std::span<const HandLoop> moves() {
  static const HandLoop loops[] = {move<How{}, kIns, kOuts, kInBytes>,
                                   move<How{false, true}, kIns, kOuts, kInBytes>,
                                   move<How{true, false}, kIns, kOuts, kInBytes>,
                                   move<How{true, true}, kIns, kOuts, kInBytes>,
                                   move<How{true, false, 2}, kIns, kOuts, kInBytes>,
                                   move<How{true, true, 2}, kIns, kOuts, kInBytes>,
                                   move<How{true, false, 4}, kIns, kOuts, kInBytes>,
                                   move<How{true, true, 4}, kIns, kOuts, kInBytes>};
  return loops;
}

// The number of lines of an array of `bytes` in the pieces before `piece`.
int64_t lines_before(int64_t piece, int64_t pieces, int64_t bytes) { return bytes / 64 * piece / pieces; }

template <How kHow>
void move_pieces(const Arrays& a, int64_t begin, int64_t end) {
  const int64_t pieces = a.extents[0];
  Line line{};
  for (int64_t piece = begin; piece < end; ++piece) {
    for (size_t i = 0; i < a.in.size(); ++i) {
      const int64_t bytes = a.extents[1 + i], last = lines_before(piece + 1, pieces, bytes);
      for (int64_t at = lines_before(piece, pieces, bytes); at < last; ++at) {
        const char* from = static_cast<const char*>(a.in[i]) + at * 64;
        if constexpr (kHow.fetched) __builtin_prefetch(from + kRead);
        line ^= *reinterpret_cast<const Line*>(from);
      }
    }
    for (size_t i = 0; i < a.out.size(); ++i) {
      const int64_t bytes = a.extents[1 + a.in.size() + i], last = lines_before(piece + 1, pieces, bytes);
      for (int64_t at = lines_before(piece, pieces, bytes); at < last; ++at)
        put<kHow>(static_cast<char*>(a.out[i]) + at * 64, line);
    }
  }
  if constexpr (kHow.non_temporal) __builtin_ia32_sfence();
  const Line used = line;
  __asm__ volatile("" : : "m"(used));
}

}  // namespace

std::span<const HandLoop> move_side_by_side() {
  static const HandLoop loops[] = {move_pieces<How{}>, move_pieces<How{false, true}>, move_pieces<How{true, false}>,
                                   move_pieces<How{true, true}>};
  return loops;
}
std::span<const HandLoop> move_one_to_one() { return moves<1, 1, 64>(); }
std::span<const HandLoop> move_two_to_one() { return moves<2, 1, 64>(); }
std::span<const HandLoop> move_two_to_three() { return moves<2, 3, 64>(); }
std::span<const HandLoop> move_bytes_to_floats() { return moves<1, 1, 16>(); }
std::span<const HandLoop> move_in() { return moves<1, 0, 64>(); }

}  // namespace tenon::bench
