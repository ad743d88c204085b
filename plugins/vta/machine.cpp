#include "vta/machine.hpp"

#include <algorithm>
#include <cstring>

namespace tenon::vta {
namespace {

int32_t wrap(int64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

// A limit that no real stream comes near; more steps would take a simulator hours.
constexpr int64_t kMaxSteps = int64_t{1} << 32;

// Size of a value in DRAM.
int64_t value_bytes(Memory memory) { return memory == Memory::acc || memory == Memory::uop ? 4 : 1; }

int32_t value_at(const std::byte* data, int64_t bytes) {
  if (bytes == 1) return static_cast<int8_t>(std::to_integer<uint8_t>(*data));
  int32_t value = 0;
  std::memcpy(&value, data, sizeof value);
  return value;
}

}  // namespace

int32_t alu_value(AluOp op, int32_t a, int32_t b) {
  switch (op) {
    case AluOp::min: return std::min(a, b);
    case AluOp::max: return std::max(a, b);
    case AluOp::add: return wrap(int64_t{a} + b);
    case AluOp::mul: return wrap(int64_t{a} * b);
    case AluOp::shr: break;
  }
  if (b >= 0) return a >> std::min(b, 31);
  const int64_t left = -int64_t{b};
  return left > 31 ? 0 : wrap(static_cast<int64_t>(a) * (int64_t{1} << left));
}

Machine::Machine(const Hardware& hardware) : hardware_(hardware) {
  const auto make = [&](Sram& made, Memory memory, int64_t width) {
    made.width = width;
    made.values.assign(static_cast<size_t>(hardware.depth(memory) * width), 0);
    made.written.assign(static_cast<size_t>(hardware.depth(memory)), 0);
  };
  make(uop_, Memory::uop, 1);
  make(wgt_, Memory::wgt, hardware.block * hardware.block);
  make(inp_, Memory::inp, hardware.lanes());
  make(acc_, Memory::acc, hardware.lanes());
}

Machine::Sram& Machine::sram(Memory memory) {
  switch (memory) {
    case Memory::uop: return uop_;
    case Memory::wgt: return wgt_;
    case Memory::inp: return inp_;
    case Memory::acc:
    case Memory::out:
    case Memory::acc8: break;
  }
  return acc_;
}

std::vector<int32_t> Machine::element(Memory memory, int64_t index) const {
  const Sram& at = sram(memory);
  const auto first = at.values.begin() + index * at.width;
  return {first, first + at.width};
}

Result<int32_t*> Machine::write(Memory memory, int64_t index) {
  Sram& at = sram(memory);
  if (index < 0 || index >= hardware_.depth(memory))
    return error(Code::invalid_argument, memory_name(memory), "[", index, "] is outside of its ",
                 hardware_.depth(memory), " elements");
  at.written[static_cast<size_t>(index)] = 1;
  return &at.values[static_cast<size_t>(index * at.width)];
}

Result<int32_t*> Machine::read(Memory memory, int64_t index) {
  const bool known = index >= 0 && index < hardware_.depth(memory);
  if (known && !sram(memory).written[static_cast<size_t>(index)])
    return error(Code::invalid_argument, memory_name(memory), "[", index, "] is read, and nothing has written it");
  return write(memory, index);
}

Result<void> Machine::execute(const Instruction& instruction, Dram& dram) {
  switch (instruction.opcode) {
    case Opcode::load: return load(instruction.transfer, dram);
    case Opcode::store: return store(instruction.transfer, dram);
    case Opcode::gemm: return gemm(instruction.steps);
    case Opcode::alu: return alu(instruction);
    case Opcode::finish: break;
  }
  return {};
}

// ---- Transfers ----

Result<void> Machine::load_row(const Transfer& t, int64_t row, int64_t at, Dram& dram) {
  const int64_t width = sram(t.memory).width, bytes = value_bytes(t.memory);
  const auto address =
      static_cast<uint64_t>((int64_t{t.dram_base} + row * t.x_stride) * hardware_.element_bytes(t.memory));
  TENON_TRY(from, dram.at(address, static_cast<uint64_t>(int64_t{t.x_size} * width * bytes)));
  const std::byte* data = from.data();
  for (int64_t x = 0; x < t.x_size; ++x) {
    TENON_TRY(to, write(t.memory, at + x));
    for (int64_t i = 0; i < width; ++i, data += bytes) to[i] = value_at(data, bytes);
  }
  return {};
}

Result<void> Machine::load(const Transfer& t, Dram& dram) {
  if (t.memory == Memory::out) return error(Code::invalid_argument, "OUT is not loaded");
  if (t.x_size == 0) return {};
  const int64_t row_elements = int64_t{t.x_pad_0} + t.x_size + t.x_pad_1;
  const auto zeros = [&](int64_t at, int64_t count) -> Result<void> {
    for (int64_t i = at; i < at + count; ++i) {
      TENON_TRY(to, write(t.memory, i));
      std::fill_n(to, sram(t.memory).width, 0);
    }
    return {};
  };
  int64_t at = t.sram_base;
  for (int64_t y = -int64_t{t.y_pad_0}; y < int64_t{t.y_size} + t.y_pad_1; ++y, at += row_elements) {
    if (y < 0 || y >= t.y_size) {
      TENON_OK(zeros(at, row_elements));
      continue;
    }
    TENON_OK(zeros(at, t.x_pad_0));
    TENON_OK(load_row(t, y, at + t.x_pad_0, dram));
    TENON_OK(zeros(at + t.x_pad_0 + t.x_size, t.x_pad_1));
  }
  return {};
}

Result<void> Machine::store(const Transfer& t, Dram& dram) {
  if (t.memory != Memory::out) return error(Code::invalid_argument, memory_name(t.memory), " is not stored; OUT is");
  if (t.x_pad_0 || t.x_pad_1 || t.y_pad_0 || t.y_pad_1) return error(Code::invalid_argument, "a store has no padding");
  const int64_t lanes = hardware_.lanes();
  int64_t at = t.sram_base;
  for (int64_t y = 0; y < t.y_size; ++y) {
    const auto address =
        static_cast<uint64_t>((int64_t{t.dram_base} + y * t.x_stride) * hardware_.element_bytes(t.memory));
    TENON_TRY(to, dram.at(address, static_cast<uint64_t>(t.x_size * lanes)));
    for (int64_t x = 0; x < t.x_size; ++x, ++at) {
      TENON_TRY(from, read(Memory::acc, at));
      for (int64_t i = 0; i < lanes; ++i)
        to[static_cast<size_t>(x * lanes + i)] = static_cast<std::byte>(static_cast<uint32_t>(from[i]) & 0xff);
    }
  }
  return {};
}

// ---- Arithmetic ----

Result<MicroOp> Machine::micro_op(int64_t index) const {
  if (index >= hardware_.depth(Memory::uop) || !uop_.written[static_cast<size_t>(index)])
    return error(Code::invalid_argument, "UOP[", index, "] is run, and nothing has written it");
  return decode_micro_op(static_cast<uint32_t>(uop_.values[static_cast<size_t>(index)]), hardware_);
}

namespace {

// Calls `step(micro_op, dst, src, wgt)` with the addresses of each step.
template <class MicroOpAt, class Step>
Result<void> for_each_step(const Steps& s, const MicroOpAt& micro_op_at, const Step& step) {
  if (s.count() > kMaxSteps) return error(Code::resource_exhausted, s.count(), " steps in one instruction");
  if (s.count() == 0) return {};
  std::vector<MicroOp> ops;
  for (int64_t u = s.uop_begin; u < s.uop_end; ++u) {
    TENON_TRY(op, micro_op_at(u));
    ops.push_back(op);
  }
  const auto moved = [](uint32_t at, uint32_t out, uint32_t in, int64_t i, int64_t j) { return at + i * out + j * in; };
  for (int64_t i = 0; i < s.iter_out; ++i)
    for (int64_t j = 0; j < s.iter_in; ++j)
      for (const MicroOp& op : ops)
        TENON_OK(step(moved(op.dst, s.dst_factor_out, s.dst_factor_in, i, j),
                      moved(op.src, s.src_factor_out, s.src_factor_in, i, j),
                      moved(op.wgt, s.wgt_factor_out, s.wgt_factor_in, i, j)));
  return {};
}

}  // namespace

Result<void> Machine::gemm(const Steps& steps) {
  const int64_t batch = hardware_.batch, block = hardware_.block;
  const auto op_at = [&](int64_t u) { return micro_op(u); };
  if (steps.reset)
    return for_each_step(steps, op_at, [&](int64_t dst, int64_t, int64_t) -> Result<void> {
      TENON_TRY(acc, write(Memory::acc, dst));
      std::fill_n(acc, batch * block, 0);
      return {};
    });
  return for_each_step(steps, op_at, [&](int64_t dst, int64_t src, int64_t wgt) -> Result<void> {
    TENON_TRY(acc, read(Memory::acc, dst));
    TENON_TRY(inp, read(Memory::inp, src));
    TENON_TRY(weights, read(Memory::wgt, wgt));
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t o = 0; o < block; ++o) {
        // A sum of 256 8-bit products fits 32 bits.
        int32_t sum = 0;
        for (int64_t k = 0; k < block; ++k) sum += inp[b * block + k] * weights[o * block + k];
        acc[b * block + o] = wrap(int64_t{acc[b * block + o]} + sum);
      }
    return {};
  });
}

Result<void> Machine::alu(const Instruction& instruction) {
  const int64_t lanes = hardware_.lanes();
  return for_each_step(
      instruction.steps, [&](int64_t u) { return micro_op(u); },
      [&](int64_t dst, int64_t src, int64_t) -> Result<void> {
        TENON_TRY(to, read(Memory::acc, dst));
        const int32_t* from = nullptr;
        if (!instruction.use_imm) {
          TENON_TRY(other, read(Memory::acc, src));
          from = other;
        }
        for (int64_t i = 0; i < lanes; ++i) to[i] = alu_value(instruction.alu, to[i], from ? from[i] : instruction.imm);
        return {};
      });
}

}  // namespace tenon::vta
