#include "vta/instruction.hpp"

#include <algorithm>
#include <vector>

namespace tenon::vta {
namespace {

constexpr int kHalfBits = 64, kMicroOpBits = 32;

// ---- Field layout ----
// `field(name, bits, value)` for each field, in the order of the encoding. One list serves encoding, decoding and the
// check of sizes, so that they cannot differ.

template <class I, class Field>
void visit_head(I& i, Field&& field) {
  field("opcode", 3, i.opcode);
  field("pop_prev", 1, i.pop_prev);
  field("pop_next", 1, i.pop_next);
  field("push_prev", 1, i.push_prev);
  field("push_next", 1, i.push_next);
}

template <class T, class Field>
void visit_transfer(T& t, Field&& field) {
  field("memory_type", 3, t.memory);
  field("sram_base", 16, t.sram_base);
  field("dram_base", 32, t.dram_base);
  field("y_size", 16, t.y_size);
  field("x_size", 16, t.x_size);
  field("x_stride", 16, t.x_stride);
  field("y_pad_0", 4, t.y_pad_0);
  field("y_pad_1", 4, t.y_pad_1);
  field("x_pad_0", 4, t.x_pad_0);
  field("x_pad_1", 4, t.x_pad_1);
}

template <class I, class Field>
void visit_steps(I& i, const Hardware& hardware, Field&& field) {
  const int uop = hardware.log_depth(Memory::uop), acc = hardware.log_depth(Memory::acc);
  const int src = i.opcode == Opcode::gemm ? hardware.log_depth(Memory::inp) : acc;
  auto& s = i.steps;
  field("reset", 1, s.reset);
  field("uop_begin", uop, s.uop_begin);
  field("uop_end", uop + 1, s.uop_end);
  field("iter_out", 14, s.iter_out);
  field("iter_in", 14, s.iter_in);
  field("dst_factor_out", acc, s.dst_factor_out);
  field("dst_factor_in", acc, s.dst_factor_in);
  field("src_factor_out", src, s.src_factor_out);
  field("src_factor_in", src, s.src_factor_in);
  if (i.opcode == Opcode::gemm) {
    const int wgt = hardware.log_depth(Memory::wgt);
    field("wgt_factor_out", wgt, s.wgt_factor_out);
    field("wgt_factor_in", wgt, s.wgt_factor_in);
    return;
  }
  field("alu_opcode", 3, i.alu);
  field("use_imm", 1, i.use_imm);
  field("imm", 16, i.imm);
}

template <class I, class Field>
void visit_body(I& i, const Hardware& hardware, Field&& field) {
  switch (i.opcode) {
    case Opcode::load:
    case Opcode::store: return visit_transfer(i.transfer, field);
    case Opcode::gemm:
    case Opcode::alu: return visit_steps(i, hardware, field);
    case Opcode::finish: return;
  }
}

template <class Op, class Field>
void visit_micro_op(Op& op, const Hardware& hardware, Field&& field) {
  const int acc = hardware.log_depth(Memory::acc);
  field("dst", acc, op.dst);
  field("src", std::max(acc, hardware.log_depth(Memory::inp)), op.src);
  field("wgt", hardware.log_depth(Memory::wgt), op.wgt);
}

// The first bit of the next field. A field that would straddle both halves starts the second one.
class Cursor {
 public:
  int take(int bits) {
    if (at_ % kHalfBits + bits > kHalfBits) at_ = kHalfBits;
    const int first = at_;
    at_ += bits;
    return first;
  }

 private:
  int at_ = 0;
};

uint64_t mask_of(int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

// ---- Encoding and decoding ----

class Packer {
 public:
  template <class T>
  void operator()(std::string_view name, int bits, const T& value) {
    const auto number = static_cast<int64_t>(value);
    const int64_t least = std::is_signed_v<T> ? -(int64_t{1} << (bits - 1)) : 0;
    const int64_t most = std::is_signed_v<T> ? (int64_t{1} << (bits - 1)) - 1 : static_cast<int64_t>(mask_of(bits));
    if ((number < least || number > most) && wrong_.empty())
      wrong_ = str(name, " is ", number, ", its ", bits, " bits hold ", least, " to ", most);
    const int at = cursor_.take(bits);
    words_[static_cast<size_t>(at / kHalfBits)] |= (static_cast<uint64_t>(number) & mask_of(bits)) << (at % kHalfBits);
  }
  const std::string& wrong() const { return wrong_; }
  const Words& words() const { return words_; }

 private:
  Cursor cursor_;
  Words words_{};
  std::string wrong_;
};

class Unpacker {
 public:
  explicit Unpacker(const Words& words) : words_(words) {}
  template <class T>
  void operator()(std::string_view, int bits, T& value) {
    const int at = cursor_.take(bits);
    uint64_t number = words_[static_cast<size_t>(at / kHalfBits)] >> (at % kHalfBits) & mask_of(bits);
    if (std::is_signed_v<T> && number >> (bits - 1)) number |= ~mask_of(bits);
    value = static_cast<T>(number);
  }

 private:
  Words words_;
  Cursor cursor_;
};

// The bits of each half, as a human-readable sum.
class Ruler {
 public:
  template <class T>
  void operator()(std::string_view name, int bits, const T&) {
    const int half = cursor_.take(bits) / kHalfBits;
    Half& into = halves_[static_cast<size_t>(std::min(half, 1))];
    into.bits += bits;
    into.sum += str(into.sum.empty() ? "" : " + ", name, " ", bits);
  }
  Result<void> check(std::string_view what, const Hardware& hardware) const {
    for (const Half& half : halves_)
      if (half.bits > kHalfBits)
        return error(Code::invalid_argument, "target '", hardware.name, "' cannot be encoded: a half of ", what,
                     " needs ", half.sum, " = ", half.bits, " bits, ", kHalfBits, " fit");
    return {};
  }

 private:
  struct Half {
    int bits = 0;
    std::string sum;
  };
  Cursor cursor_;
  std::array<Half, 2> halves_;
};

constexpr std::string_view kOpcodes[] = {"LOAD", "STORE", "GEMM", "FINISH", "ALU"};
constexpr std::string_view kAluOps[] = {"MIN", "MAX", "ADD", "SHR", "MUL"};

std::string print_transfer(const Transfer& t) {
  std::string text = str(" ", memory_name(t.memory), " [", t.sram_base, "] dram ", t.dram_base, " size ", t.y_size,
                         " x ", t.x_size, " stride ", t.x_stride);
  if (t.y_pad_0 || t.y_pad_1 || t.x_pad_0 || t.x_pad_1)
    text += str(" pad y ", t.y_pad_0, ",", t.y_pad_1, " x ", t.x_pad_0, ",", t.x_pad_1);
  return text;
}

std::string print_steps(const Instruction& i) {
  const Steps& s = i.steps;
  std::string text =
      str(s.reset ? " reset" : "", " uop [", s.uop_begin, ",", s.uop_end, ") iter ", s.iter_out, " x ", s.iter_in,
          " dst ", s.dst_factor_out, ",", s.dst_factor_in, " src ", s.src_factor_out, ",", s.src_factor_in);
  if (i.opcode == Opcode::gemm) return text + str(" wgt ", s.wgt_factor_out, ",", s.wgt_factor_in);
  text += str(" ", kAluOps[static_cast<size_t>(i.alu)]);
  return i.use_imm ? text + str(" ", i.imm) : text;
}

}  // namespace

UnitId Instruction::unit() const {
  if (opcode == Opcode::store) return UnitId::store;
  const bool loads = opcode == Opcode::load && (transfer.memory == Memory::inp || transfer.memory == Memory::wgt);
  return loads ? UnitId::load : UnitId::compute;
}

std::string_view unit_name(UnitId unit) {
  constexpr std::string_view kNames[] = {"load", "compute", "store"};
  return kNames[static_cast<size_t>(unit)];
}

Result<Words> encode(const Instruction& instruction, const Hardware& hardware) {
  Packer packer;
  visit_head(instruction, packer);
  visit_body(instruction, hardware, packer);
  if (!packer.wrong().empty())
    return error(Code::invalid_argument, print(instruction), " cannot be encoded for target '", hardware.name,
                 "': ", packer.wrong());
  return packer.words();
}

Result<Instruction> decode(const Words& words, const Hardware& hardware) {
  Instruction instruction;
  Unpacker unpacker(words);
  visit_head(instruction, unpacker);
  if (instruction.opcode > Opcode::alu)
    return error(Code::parse, "there is no opcode ", static_cast<int>(instruction.opcode));
  visit_body(instruction, hardware, unpacker);
  if (instruction.transfer.memory > Memory::acc8)
    return error(Code::parse, "there is no memory ", static_cast<int>(instruction.transfer.memory));
  if (instruction.alu > AluOp::mul)
    return error(Code::parse, "there is no ALU operation ", static_cast<int>(instruction.alu));
  return instruction;
}

Result<uint32_t> encode(const MicroOp& op, const Hardware& hardware) {
  Packer packer;
  visit_micro_op(op, hardware, packer);
  if (!packer.wrong().empty())
    return error(Code::invalid_argument, "a micro-op cannot be encoded for target '", hardware.name,
                 "': ", packer.wrong());
  return static_cast<uint32_t>(packer.words()[0]);
}

MicroOp decode_micro_op(uint32_t word, const Hardware& hardware) {
  MicroOp op;
  visit_micro_op(op, hardware, Unpacker({word, 0}));
  return op;
}

Result<void> check_encodable(const Hardware& hardware) {
  for (const Opcode opcode : {Opcode::gemm, Opcode::alu}) {
    Instruction instruction;
    instruction.opcode = opcode;
    Ruler ruler;
    visit_head(instruction, ruler);
    visit_body(instruction, hardware, ruler);
    TENON_OK(ruler.check(str("the instruction ", kOpcodes[static_cast<size_t>(opcode)]), hardware));
  }
  const int acc = hardware.log_depth(Memory::acc), src = std::max(acc, hardware.log_depth(Memory::inp)),
            wgt = hardware.log_depth(Memory::wgt);
  if (acc + src + wgt > kMicroOpBits)
    return error(Code::invalid_argument, "target '", hardware.name, "' cannot be encoded: a micro-op needs dst ", acc,
                 " + src ", src, " + wgt ", wgt, " = ", acc + src + wgt, " bits, ", kMicroOpBits, " fit");
  if (std::max({hardware.depth(Memory::inp), hardware.depth(Memory::wgt), hardware.depth(Memory::acc),
                hardware.depth(Memory::uop)}) > (int64_t{1} << 16))
    return error(Code::invalid_argument, "target '", hardware.name,
                 "' cannot be encoded: a memory has more elements than the 16 bits of sram_base reach");
  return {};
}

std::string print(const Instruction& i) {
  std::string text(kOpcodes[static_cast<size_t>(i.opcode)]);
  for (const auto& [set, name] : {std::pair(i.pop_prev, " pop_prev"), std::pair(i.pop_next, " pop_next"),
                                  std::pair(i.push_prev, " push_prev"), std::pair(i.push_next, " push_next")})
    if (set) text += name;
  switch (i.opcode) {
    case Opcode::load:
    case Opcode::store: return text + print_transfer(i.transfer);
    case Opcode::gemm:
    case Opcode::alu: return text + print_steps(i);
    case Opcode::finish: break;
  }
  return text;
}

}  // namespace tenon::vta
