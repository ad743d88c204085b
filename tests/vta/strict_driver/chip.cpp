#include "chip.hpp"

#include <algorithm>
#include <cstring>

namespace strict {
namespace {

int32_t alu_value(uint32_t op, int32_t a, int32_t b) {
  const auto ua = static_cast<uint32_t>(a), ub = static_cast<uint32_t>(b);
  switch (op) {
    case kMin: return a < b ? a : b;
    case kMax: return a > b ? a : b;
    case kAdd: return static_cast<int32_t>(ua + ub);
    case kMul: return static_cast<int32_t>(ua * ub);
    default: break;
  }
  // Boards look at five bits.
  if (b > 31 || b < -31) throw Fault("a shift by " + std::to_string(b));
  return b >= 0 ? a >> b : static_cast<int32_t>(ua << -b);
}

}  // namespace

Chip::Chip(const Machine& machine, Memory& dram) : machine_(machine), dram_(dram) {
  const auto make = [](Sram& made, const char* name, uint32_t depth, uint32_t width) {
    made.name = name, made.width = width;
    made.values.assign(size_t{1} << (depth + width), 0x5a5a5a5a);
    made.known.assign(size_t{1} << depth, false);
  };
  make(uop_, "UOP", machine.uop_depth, 0);
  make(inp_, "INP", machine.inp_depth, machine.lanes());
  make(wgt_, "WGT", machine.wgt_depth, 2 * machine.block);
  make(acc_, "ACC", machine.acc_depth, machine.lanes());
}

int32_t* Chip::Sram::write(uint64_t index) {
  if (index >= known.size()) throw Fault(std::string(name) + "[" + std::to_string(index) + "] is not there");
  known[index] = true;
  return values.data() + (index << width);
}

const int32_t* Chip::Sram::read(uint64_t index) {
  if (index < known.size() && !known[index])
    throw Fault(std::string(name) + "[" + std::to_string(index) + "] was not written in this run");
  return write(index);
}

Chip::Sram& Chip::memory(uint32_t id) { return id == kUop ? uop_ : id == kInp ? inp_ : id == kWgt ? wgt_ : acc_; }

void Chip::execute(const Instruction& i) {
  switch (i.opcode) {
    case kLoad: return load(i);
    case kStore: return store(i);
    case kGemm: return gemm(i);
    case kAlu: return alu(i);
    default: return;
  }
}

void Chip::load(const Instruction& i) {
  if (i.x_size == 0) return;
  Sram& to = memory(i.memory);
  const uint64_t values = uint64_t{1} << to.width;
  const uint64_t value_bytes = i.memory == kUop || i.memory == kAcc ? 4 : 1;
  const uint64_t element_bytes = values * value_bytes;
  const uint64_t columns = uint64_t{i.x_pad_0} + i.x_size + i.x_pad_1,
                 rows = uint64_t{i.y_pad_0} + i.y_size + i.y_pad_1;
  for (uint64_t y = 0; y < rows; ++y)
    for (uint64_t x = 0; x < columns; ++x) {
      int32_t* element = to.write(i.sram_base + y * columns + x);
      const bool inside =
          y >= i.y_pad_0 && y < i.y_pad_0 + i.y_size && x >= i.x_pad_0 && x < uint64_t{i.x_pad_0} + i.x_size;
      std::fill_n(element, values, 0);
      if (!inside) continue;
      const uint64_t at = i.dram_base + (y - i.y_pad_0) * i.x_stride + (x - i.x_pad_0);
      const uint8_t* bytes = dram_.device(at * element_bytes, element_bytes);
      if (value_bytes == 4) std::memcpy(element, bytes, element_bytes);
      if (value_bytes == 1) std::transform(bytes, bytes + values, element, [](uint8_t b) { return int8_t(b); });
    }
}

void Chip::store(const Instruction& i) {
  const uint64_t values = uint64_t{1} << acc_.width;
  for (uint64_t y = 0; y < i.y_size; ++y)
    for (uint64_t x = 0; x < i.x_size; ++x) {
      const int32_t* element = acc_.read(i.sram_base + y * i.x_size + x);
      uint8_t* bytes = dram_.device((i.dram_base + y * i.x_stride + x) * values, values);
      std::transform(element, element + values, bytes, [](int32_t v) { return uint8_t(uint32_t(v) & 0xff); });
    }
}

template <class Step>
void Chip::each_step(const Instruction& i, const Step& step) {
  for (uint64_t out = 0; out < i.iter_out; ++out)
    for (uint64_t in = 0; in < i.iter_in; ++in)
      for (uint64_t u = i.uop_begin; u < i.uop_end; ++u) {
        const MicroOp op = decode_micro_op(static_cast<uint32_t>(*uop_.read(u)), machine_);
        step(op.dst + out * i.dst_out + in * i.dst_in, op.src + out * i.src_out + in * i.src_in,
             op.wgt + out * i.wgt_out + in * i.wgt_in);
      }
}

void Chip::gemm(const Instruction& i) {
  const size_t batch = size_t{1} << machine_.batch, block = size_t{1} << machine_.block;
  each_step(i, [&](uint64_t dst, uint64_t src, uint64_t wgt) {
    if (i.reset) {
      std::fill_n(acc_.write(dst), batch * block, 0);
      return;
    }
    acc_.read(dst);
    int32_t* acc = acc_.write(dst);
    const int32_t *inp = inp_.read(src), *weights = wgt_.read(wgt);
    for (size_t b = 0; b < batch; ++b)
      for (size_t o = 0; o < block; ++o) {
        auto sum = static_cast<uint32_t>(acc[b * block + o]);
        for (size_t k = 0; k < block; ++k) sum += static_cast<uint32_t>(inp[b * block + k] * weights[o * block + k]);
        acc[b * block + o] = static_cast<int32_t>(sum);
      }
  });
}

void Chip::alu(const Instruction& i) {
  const size_t lanes = size_t{1} << machine_.lanes();
  each_step(i, [&](uint64_t dst, uint64_t src, uint64_t) {
    acc_.read(dst);
    int32_t* to = acc_.write(dst);
    const int32_t* from = i.use_imm ? nullptr : acc_.read(src);
    for (size_t lane = 0; lane < lanes; ++lane) to[lane] = alu_value(i.alu, to[lane], from ? from[lane] : i.imm);
  });
}

}  // namespace strict
