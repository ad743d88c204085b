// Hand-written streams, and the machines that they are for.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <tenon/target/load.hpp>

#include "vta/dram.hpp"
#include "vta/hardware.hpp"
#include "vta/instruction.hpp"

namespace tenon::vta::testing {

inline std::string default_path() { return TENON_SOURCE_DIR "/targets/vta-default.yaml"; }

inline TargetDescription default_target() {
  auto target = load_target(default_path());
  EXPECT_TRUE(target.ok()) << (target.ok() ? "" : target.error().to_string());
  return *target;
}

inline Hardware default_hardware() {
  auto hardware = Hardware::of(default_target());
  EXPECT_TRUE(hardware.ok()) << (hardware.ok() ? "" : hardware.error().to_string());
  return *hardware;
}

// Of `inp`, `wgt`, `acc` and `uop` bytes.
inline TargetDescription sized(int64_t batch, int64_t block, uint64_t inp, uint64_t wgt, uint64_t acc, uint64_t uop) {
  TargetDescription target = default_target();
  target.name = str("vta-", batch, "x", block);
  for (MemorySpace& memory : target.memories) {
    memory.element_bytes = 0;
    if (memory.name == "inp") memory.size_bytes = inp;
    if (memory.name == "wgt") memory.size_bytes = wgt;
    if (memory.name == "acc") memory.size_bytes = acc;
    if (memory.name == "uop") memory.size_bytes = uop;
  }
  Setting options = Setting::map();
  options.add("hardware", Setting::text("0.0.2"));
  options.add("batch", Setting::word(std::to_string(batch)));
  options.add("block", Setting::word(std::to_string(block)));
  target.options = options;
  return target;
}

inline Instruction load(Memory memory, uint32_t sram, uint32_t dram, uint32_t elements) {
  Instruction i;
  i.opcode = Opcode::load;
  i.transfer = {
      .memory = memory, .sram_base = sram, .dram_base = dram, .y_size = 1, .x_size = elements, .x_stride = elements};
  return i;
}
inline Instruction store(uint32_t sram, uint32_t dram, uint32_t elements) {
  Instruction i = load(Memory::out, sram, dram, elements);
  i.opcode = Opcode::store;
  return i;
}
inline Instruction gemm(Steps steps) {
  Instruction i;
  i.opcode = Opcode::gemm;
  i.steps = steps;
  return i;
}
inline Instruction alu(AluOp op, Steps steps) {
  Instruction i = gemm(steps);
  i.opcode = Opcode::alu;
  i.alu = op;
  return i;
}
inline Instruction alu(AluOp op, Steps steps, int32_t imm) {
  Instruction i = alu(op, steps);
  i.use_imm = true;
  i.imm = imm;
  return i;
}

// Puts these bytes in a buffer of DRAM; returns its physical address.
template <class T>
uint32_t put(Dram& dram, const std::vector<T>& values) {
  auto memory = dram.allocate(values.size() * sizeof(T));
  EXPECT_TRUE(memory.ok());
  std::memcpy(*memory, values.data(), values.size() * sizeof(T));
  return *dram.physical_address(*memory);
}

inline std::vector<uint64_t> words_of(const std::vector<Instruction>& stream, const Hardware& hardware) {
  std::vector<uint64_t> words;
  for (const Instruction& instruction : stream) {
    const auto encoded = encode(instruction, hardware);
    EXPECT_TRUE(encoded.ok()) << (encoded.ok() ? "" : encoded.error().to_string());
    if (!encoded.ok()) break;
    words.insert(words.end(), encoded->begin(), encoded->end());
  }
  return words;
}

// A product of `tiles` parts of the sum, loaded into one half of the buffers while the other half is used, and stored:
// OUT[rows] = clip(sum of INP[t][rows] * WGT[t]^T, -128, 127). Tokens order what must be ordered and nothing else.
struct Product {
  int64_t rows = 4, tiles = 3;                              // rows: elements of INP in a tile
  uint32_t inp_at = 0, wgt_at = 0, out_at = 0, uop_at = 0;  // elements of DRAM

  // For each half of the buffers, one for each row.
  std::vector<MicroOp> micro_ops() const {
    std::vector<MicroOp> ops;
    for (uint32_t half = 0; half < 2; ++half)
      for (uint32_t r = 0; r < rows; ++r) ops.push_back({r, half * static_cast<uint32_t>(rows) + r, half});
    return ops;
  }

  std::vector<Instruction> stream() const {
    const auto rows32 = static_cast<uint32_t>(rows);
    std::vector<Instruction> out;
    out.push_back(load(Memory::uop, 0, uop_at, 2 * rows32));
    out.push_back(gemm({.reset = true, .uop_end = rows32}));
    for (uint32_t t = 0; t < tiles; ++t) {
      const uint32_t half = t % 2;
      Instruction inp = load(Memory::inp, half * rows32, inp_at + t * rows32, rows32);
      inp.pop_next = t >= 2;  // the half is free again
      out.push_back(inp);
      Instruction wgt = load(Memory::wgt, half, wgt_at + t, 1);
      wgt.push_next = true;
      out.push_back(wgt);
      Instruction product = gemm({.uop_begin = half * rows32, .uop_end = (half + 1) * rows32});
      product.pop_prev = true;
      product.push_prev = t + 2 < tiles;
      out.push_back(product);
    }
    const Steps all{.uop_end = rows32};
    out.push_back(alu(AluOp::min, all, 127));
    out.push_back(alu(AluOp::max, all, -128));
    out.back().push_next = true;
    out.push_back(store(0, out_at, rows32));
    out.back().pop_prev = true;
    out.back().push_prev = true;
    Instruction finish;
    finish.pop_next = true;
    out.push_back(finish);
    return out;
  }
};

inline std::vector<uint32_t> micro_op_words(const std::vector<MicroOp>& ops, const Hardware& hardware) {
  std::vector<uint32_t> words;
  for (const MicroOp& op : ops) words.push_back(*encode(op, hardware));
  return words;
}

// A Product with random data in DRAM, and the expected result.
struct PlacedProduct {
  Product product;
  std::vector<int8_t> wanted;
  uint32_t out_address = 0, stream_address = 0;
  uint32_t instructions = 0;

  PlacedProduct(const Hardware& h, Dram& dram, Product shape, uint32_t seed) : product(shape) {
    std::mt19937 random(seed);
    const auto bytes = [&](int64_t count) {
      std::vector<int8_t> values(static_cast<size_t>(count));
      for (int8_t& value : values) value = static_cast<int8_t>(random() % 15) - 7;
      return values;
    };
    const int64_t lanes = h.lanes(), block = h.block;
    const auto inp = bytes(product.tiles * product.rows * lanes), wgt = bytes(product.tiles * block * block);
    const auto element = [&](uint32_t address, Memory memory) {
      return address / static_cast<uint32_t>(h.element_bytes(memory));
    };
    product.inp_at = element(put(dram, inp), Memory::inp);
    product.wgt_at = element(put(dram, wgt), Memory::wgt);
    product.uop_at = element(put(dram, micro_op_words(product.micro_ops(), h)), Memory::uop);
    out_address = put(dram, std::vector<int8_t>(static_cast<size_t>(product.rows * lanes)));
    product.out_at = element(out_address, Memory::out);
    const auto stream = product.stream();
    stream_address = put(dram, words_of(stream, h));
    instructions = static_cast<uint32_t>(stream.size());
    for (int64_t r = 0; r < product.rows; ++r)
      for (int64_t b = 0; b < h.batch; ++b)
        for (int64_t o = 0; o < block; ++o) {
          int32_t sum = 0;
          for (int64_t t = 0; t < product.tiles; ++t)
            for (int64_t k = 0; k < block; ++k)
              sum += inp[static_cast<size_t>(((t * product.rows + r) * h.batch + b) * block + k)] *
                     wgt[static_cast<size_t>((t * block + o) * block + k)];
          wanted.push_back(static_cast<int8_t>(std::clamp(sum, -128, 127)));
        }
  }
  std::vector<int8_t> result(Dram& dram) const {
    const auto bytes = *dram.at(out_address, wanted.size());
    std::vector<int8_t> values(wanted.size());
    std::memcpy(values.data(), bytes.data(), values.size());
    return values;
  }
};

}  // namespace tenon::vta::testing
