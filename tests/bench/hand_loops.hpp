// Hand-written fused loops: what a programmer would write for one graph and its shapes. Competitors in snippet_bench;
// built with -O3 -march=native and fast floating-point, so that the compiler vectorises them, including exp and erf
// (libmvec).
#pragma once
#include <cstdint>
#include <span>

namespace tenon::bench {

// Inputs in the graph's order, then outputs; a call computes units [begin, end), which are elements or rows as the loop
// states.
struct Arrays {
  std::span<const void* const> in;
  std::span<void* const> out;
  std::span<const int64_t> extents;
  template <class T>
  const T* input(size_t i) const { return static_cast<const T*>(in[i]); }
  template <class T>
  T* output(size_t i) const { return static_cast<T*>(out[i]); }
};
using HandLoop = void (*)(const Arrays&, int64_t begin, int64_t end);

// Elements.
void chain12(const Arrays&, int64_t begin, int64_t end);
void hardswish(const Arrays&, int64_t begin, int64_t end);
void diamond(const Arrays&, int64_t begin, int64_t end);
void several_outputs(const Arrays&, int64_t begin, int64_t end);
void gelu_erf(const Arrays&, int64_t begin, int64_t end);
void gelu_tanh(const Arrays&, int64_t begin, int64_t end);
void swish(const Arrays&, int64_t begin, int64_t end);
void add_relu(const Arrays&, int64_t begin, int64_t end);
// Bytes: round(x / (1 + e^-x) * 32) + 16 of x = (byte - 128) / 32, as a table of 256.
void swish_of_bytes(const Arrays&, int64_t begin, int64_t end);
// Rows: extents {rows, row}.
void bias_gelu_tanh(const Arrays&, int64_t begin, int64_t end);
void scale_shift_relu(const Arrays&, int64_t begin, int64_t end);  // y = relu((x * a[row] + b[row]) * c[row] + d[row])
void normalise_planar(const Arrays&, int64_t begin, int64_t end);      // u8 to f32, one row a plane
void normalise_interleaved(const Arrays&, int64_t begin, int64_t end); // u8 to f32, rows of 3 channels
void broadcast(const Arrays&, int64_t begin, int64_t end);  // x[c,h,w] * s[c,h] + b[c,w], relu; a unit is a c
void layer_norm(const Arrays&, int64_t begin, int64_t end);
void skip_layer_norm(const Arrays&, int64_t begin, int64_t end);
void rms_norm(const Arrays&, int64_t begin, int64_t end);
void softmax(const Arrays&, int64_t begin, int64_t end);
void softmax_skip(const Arrays&, int64_t begin, int64_t end);           // softmax(x) + x
// Extents {images * groups, groups, channels of a group, pixels}; a unit is a group of an image. Instance norm: groups
// of 1.
void group_norm(const Arrays&, int64_t begin, int64_t end);
void softmax_columns(const Arrays&, int64_t begin,
                     int64_t end);  // extents {planes, rows, columns}, over rows; a unit is a plane
void sum_columns(const Arrays&, int64_t begin, int64_t end);           // the same
void sum_rows(const Arrays&, int64_t begin, int64_t end);

// Read every input and write every output once, and do nothing else: units are lines of 64 bytes of the outputs. With
// plain stores, with prefetching before writing, with non-temporal stores, with these and prefetching before reading,
// and with these without prefetching, the latter two also in two and four parallel streams: which is best depends on
// the machine and the size.
std::span<const HandLoop> move_one_to_one();
std::span<const HandLoop> move_two_to_one();
std::span<const HandLoop> move_two_to_three();
std::span<const HandLoop> move_bytes_to_floats();
std::span<const HandLoop> move_in();
// Arrays of any sizes, in parallel from beginning to end: extents {pieces, bytes of each input, of each output}. Each
// array is divided into `pieces` pieces of whole lines; a unit is a piece.
std::span<const HandLoop> move_side_by_side();

}  // namespace tenon::bench
