// The machine, as numbers of a target file. All sizes in the plugin come from here.
//
//   memories   dram (size, alignment, bandwidth), cbuf: the convolution buffer (size, element = one entry, banks)
//   engines    conv (macs_per_cycle = atomic_c * atomic_k, types [f16, f16] or [i8, i8]); sdp, pdp: elements a cycle
//              as `lanes`; an engine that is not stated takes no time
//   layouts    activation: surfaces of feature atoms; weight: ragged blocks of kernels
//   options    feature_atom, weight_atom (bytes), atomic_c, atomic_k (channels of the MAC array), fusions
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>
#include <tenon/tensor/element_type.hpp>
#include <tenon/tensor/layout.hpp>

namespace tenon::nvdla {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

struct Hardware {
  std::string name;
  ElementType element = kF16;  // of activations and weights
  int64_t element_bytes = 2;
  int64_t atom_bytes = 32;     // one pixel of one surface
  int64_t atom_channels = 16;  // channels of a surface
  int64_t weight_atom_bytes = 128;
  int64_t atomic_c = 64, atomic_k = 16;
  int64_t banks = 16, bank_entries = 256, entry_bytes = 128;
  int64_t dram_bytes = 0, dram_alignment = 1;
  std::string activation_layout, weight_layout;
  std::vector<std::vector<std::string>> fusions;  // {"Conv", "Relu"}, ...

  // Timing. 0: not stated, and takes no time.
  uint64_t clock_hz = 0;
  double dram_bytes_per_cycle = 0;
  int64_t sdp_lanes = 0, pdp_lanes = 0;

  bool half() const { return element == kF16; }
  int64_t bias_bytes() const { return half() ? 2 : 4; }  // f16, or i32
  int64_t entries() const { return banks * bank_entries; }
  int64_t banks_of(int64_t entry_count) const { return ceil_div(entry_count, bank_entries); }

  // An error names the key that is missing or contradicts another one.
  static Result<Hardware> of(const TargetDescription& description);
};

// An activation in DRAM: surfaces of atom_channels channels, each consisting of lines of atoms. Tensors of rank 2 are
// images of one pixel.
struct Image {
  int64_t channels = 1, height = 1, width = 1;
  int64_t surfaces = 1;
  int64_t line_bytes = 0, surface_bytes = 0;  // strides
  int64_t bytes = 0;
  bool operator==(const Image&) const = default;

  // For [1, C] or [1, C, H, W], in the machine's layout; Code::unsupported names any other rank or batch.
  static Result<Image> of(const Dims& dims, const Hardware& hardware);
};

// The layout of an activation with the dims that Image::of accepts, seen as [1, C, H, W].
Result<Layout> activation_layout(const Dims& dims, const Hardware& hardware);
// The dims as four extents.
Result<Dims> image_dims(const Dims& dims, const Hardware& hardware);

}  // namespace tenon::nvdla
