// Commands: a tiled kernel as a program of a register machine. Registers are tiles on the chip; a kernel's operands and
// its output are in DRAM. Each operator of a tiled vta.Kernel is one such command (command_ops.hpp); the emitters
// encode them as instructions and micro-ops (command_writer.hpp).
//
//   load  r1 <- part of operand 0, into slot 1 of INP
//   zero  r2 in slot 0 of ACC
//   gemm  r2 += window(r1) * r3
//   alu   r2 = op(r2, immediate or r4)
//   max   r2 = max(r2, window(r1))
//   narrow r2 = clip(r2 >> shift, min, max)
//   store part of the output <- r2
//
// Sizes are in elements of the machine's memories.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include <tenon/support/result.hpp>

#include "vta/instruction.hpp"
#include "vta/layer.hpp"

namespace tenon::vta {

using Register = uint32_t;
// The base of a transfer's dram_base: operand i of the kernel, or after these its output.
using Segment = uint32_t;

// A tile on the chip: elements [blocks][rows][cols]. Weights: [output blocks][input blocks][taps].
struct TileShape {
  int64_t blocks = 1, rows = 1, cols = 1;
  int64_t elements() const { return blocks * rows * cols; }
  bool operator==(const TileShape&) const = default;
};

// A part of a tensor in DRAM, [batches][blocks][rows][cols], with rows and columns of zeros around it. Rows may be
// strided by `step`.
struct Part {
  std::array<int64_t, 4> tensor{1, 1, 1, 1}, begin{}, count{1, 1, 1, 1};
  int64_t row_step = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  // The shape of one batch of it, on the chip.
  TileShape shape() const { return {count[1], pad_top + count[2] + pad_bottom, pad_left + count[3] + pad_right}; }
  bool operator==(const Part&) const = default;
};
// The fewest possible transfers between `sram` and DRAM, relative to the tensor's first element. Blocks are moved
// together where rows or planes are contiguous.
std::vector<Transfer> transfers_of(const Part& part, Memory memory, int64_t sram);

// [begin, end) in UOP, for each instruction of a command.
struct MicroOpRange {
  uint32_t begin = 0, end = 0;
  bool operator==(const MicroOpRange&) const = default;
};
using MicroOpRanges = std::vector<MicroOpRange>;  // empty: not placed yet

inline constexpr int64_t kResident = -1;  // as a slot: not in a slot, but resident; as a place: not assigned yet

struct Load {
  Register to = 0;
  Memory memory = Memory::inp;
  Segment from = 0;
  int64_t slot = kResident, at = kResident;
  Part part;
};
struct Zero {
  Register to = 0;
  int64_t slot = kResident, at = kResident;
  Part part;  // the part of the output that is stored
  MicroOpRanges uops;
};
// Windows of tiles: rows and columns of padding are in the tile, so pad is 0.
struct Gemm {
  Register acc = 0, x = 0, w = 0;
  WindowAxis rows, cols;
  bool diagonal = false, one_weight = false;     // as in Term
  int64_t x_block = 0, w_block = 0, blocks = 1;  // input blocks of a dense product: first in x, first in w, count
  MicroOpRanges uops;
};
struct Alu {
  Register acc = 0;
  AluOp op = AluOp::add;
  std::optional<int64_t> immediate;  // otherwise an element of `vector` for each block
  Register vector = 0;
  int64_t vector_block = 0;  // the one for the first block of acc
  MicroOpRanges uops;
};
// pad: rows and columns before the tile that do not exist and are never the maximum.
struct Max {
  Register acc = 0, x = 0;
  WindowAxis rows, cols;
  MicroOpRanges uops;
};
struct Narrow {
  Register acc = 0;
  int64_t shift = 0, min = -128, max = 127;
  MicroOpRanges uops;
};
struct Store {
  Register from = 0;
  Part part;
};
using Command = std::variant<Load, Zero, Gemm, Alu, Max, Narrow, Store>;

// Assigns places to all loads and zeros. Each slot of a memory is as large as the largest tile in it; resident tiles
// have places of their own before the slots. Code::resource_exhausted when they do not fit.
Result<void> place_tiles(std::vector<Command>& commands, const Hardware& hardware);

// The same without commands: tiles in any order; writes `at`.
struct PlacedTile {
  Memory memory = Memory::inp;
  int64_t slot = kResident, elements = 0;
  int64_t* at = nullptr;
};
Result<void> place_tiles(std::vector<PlacedTile>& tiles, const Hardware& hardware);

}  // namespace tenon::vta
