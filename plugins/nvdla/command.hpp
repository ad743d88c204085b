// Commands: the machine's interface, as registers. The encoding is our own. It has what NVDLA's units are programmed
// with (CDMA, CSC and CMAC, SDP, PDP), but not their addresses in the register file.
//
// A command is 64 words of 32 bits. Word 0 is the kind, word 1 + r is register r, in the order of kRegisters; words
// that the kind does not have are 0. Addresses are bytes from the start of DRAM; addresses in the convolution buffer
// are entries.
//
//   begin         empties the buffer
//   load_data     loads rows of an image, all surfaces of a part, into entries
//   load_weights  loads bytes into entries
//   convolve      from entries through CONV, SDP and, with pool_kernel_height, PDP, to an image
//   elementwise   SDP from image to image
//   pool          PDP from image to image
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/support/result.hpp>

namespace tenon::nvdla {

enum class Kind : uint32_t { begin, load_data, load_weights, convolve, elementwise, pool };
inline constexpr uint32_t kKinds = 6;
std::string_view kind_name(Kind kind);

inline constexpr size_t kCommandWords = 64;
using Words = std::array<uint32_t, kCommandWords>;

struct Command {
  Kind kind = Kind::begin;
  // The image that is read: `surfaces` surfaces of `height` lines of `width` atoms.
  uint32_t src_address = 0, src_line = 0, src_surface = 0;
  uint32_t width = 0, height = 0, surfaces = 0;
  // Rows in the buffer: [first_row, first_row + rows), of row_entries each, from data_entry on.
  uint32_t first_row = 0, rows = 0, data_entry = 0, row_entries = 0;
  // Groups of atomic_k kernels (the last one may have fewer), group_entries apart, from weight_entry on.
  uint32_t weight_address = 0, weight_bytes = 0, weight_entry = 0, group_entries = 0;
  uint32_t channels = 0, kernels = 0, first_kernel = 0;  // first_kernel: first channel of the results
  uint32_t kernel_height = 0, kernel_width = 0, stride_y = 0, stride_x = 0, dilation_y = 0, dilation_x = 0;
  uint32_t pad_top = 0, pad_left = 0;
  // Convolution: rows [out_first, out_first + out_rows) of an image of out_height by out_width.
  uint32_t out_first = 0, out_rows = 0, out_height = 0, out_width = 0;
  // SDP. There is a second operand if operand_line is not 0, and a bias if bias is 1. Shifts and bounds are i32; for
  // f16, bounds are f32.
  uint32_t bias = 0, bias_address = 0;
  uint32_t operand_address = 0, operand_line = 0, operand_surface = 0, operand_shift = 0;
  uint32_t src_shift = 0, shift = 0, low = 0, high = 0;
  // PDP: rows [pool_first, pool_first + pool_rows) of pool_width; average: 0 the maximum, 1 the mean over elements
  // inside, 2 the mean over the whole window.
  uint32_t pool_kernel_height = 0, pool_kernel_width = 0, pool_stride_y = 0, pool_stride_x = 0;
  uint32_t pool_pad_top = 0, pool_pad_left = 0, pool_first = 0, pool_rows = 0, pool_width = 0;
  uint32_t average = 0, multiplier = 0;
  // The image that is written, from the first row of this command's results on.
  uint32_t dst_address = 0, dst_line = 0, dst_surface = 0;

  bool pools() const { return pool_kernel_height != 0; }
  bool operator==(const Command&) const = default;
};

struct Register {
  std::string_view name;
  uint32_t Command::*value;
  uint32_t kinds;  // a bit for each kind that has this register
};
std::span<const Register> registers();

Words encode(const Command& command);
// An error names the unknown kind, or the word that should be 0.
Result<Command> decode(std::span<const uint32_t> words);
// "load_weights weight_address=4096 weight_bytes=128"; registers that are 0 are left out.
std::string print(const Command& command);

}  // namespace tenon::nvdla
