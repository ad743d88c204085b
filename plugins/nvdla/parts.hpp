// Parts: a convolution with groups as convolutions without. The machine knows no groups; it multiplies whole surfaces.
#pragma once
#include <cstdint>
#include <numeric>

namespace tenon::nvdla {

// As few groups together as fill surfaces of input and output alike, with zeros between them as weights; all of them
// where that never happens. Every part has as many channels as the others.
struct Parts {
  int64_t count = 1;
  int64_t channels = 0, kernels = 0;              // input and output channels of a part
  int64_t group_channels = 0, group_kernels = 0;  // of a group

  static Parts of(int64_t channels, int64_t kernels, int64_t group, int64_t atom_channels) {
    const int64_t in = channels / group, out = kernels / group;
    const int64_t together =
        std::lcm(atom_channels / std::gcd(atom_channels, in), atom_channels / std::gcd(atom_channels, out));
    const int64_t count = group > together && group % together == 0 ? group / together : 1;
    return {count, channels / count, kernels / count, in, out};
  }
  // The first input channel that an output channel sees, counted from the part's first.
  int64_t first_channel(int64_t kernel) const { return kernel % kernels / group_kernels * group_channels; }
};

}  // namespace tenon::nvdla
