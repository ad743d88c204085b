// Parts: a grouped convolution as ungrouped ones. The machine has no groups, because it multiplies whole surfaces.
#pragma once
#include <cstdint>
#include <numeric>

namespace tenon::nvdla {

// Merges the fewest groups that fill surfaces of both input and output, with zero weights between them; all groups
// where no smaller number does. All parts have the same number of channels.
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
  // The first input channel that an output channel depends on, relative to the part's first.
  int64_t first_channel(int64_t kernel) const { return kernel % kernels / group_kernels * group_channels; }
};

}  // namespace tenon::nvdla
