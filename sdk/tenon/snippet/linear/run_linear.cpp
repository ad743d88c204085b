#include <tenon/snippet/linear/run_linear.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <unordered_map>

#include <tenon/snippet/linear/linear_names.hpp>
#include <tenon/support/str.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon::snippet {
namespace {

using codegen::RegisterFile;

// The contents of lanes that must not be relied upon: a NaN, a large integer, true.
uint64_t noise(ElementType element) {
  if (element.is_bool()) return 1;
  return element.bits() == 32 ? 0x7fdeadbe : 0x7ffdeadbeefdeadb;
}

class Machine {
 public:
  Machine(const LinearKernel& kernel, std::span<const int64_t> words, std::span<const LinearBuffer> buffers,
          const NeedsFn& needs)
      : kernel_(kernel), words_(words), buffers_(buffers), needs_(needs), lanes_(static_cast<size_t>(kernel.lanes)) {}

  Result<void> run() {
    if (words_.size() < kernel_.params.size())
      return error(Code::invalid_argument, "linear kernel '", kernel_.name, "' takes ", kernel_.params.size(),
                   " words, ", words_.size(), " are given");
    match_regions();
    for (size_t i = 0; i < kernel_.body.size();) {
      TENON_TRY(next, step(i), "running '", print(kernel_, kernel_.body[i]), "' of linear kernel '", kernel_.name, "'");
      i = next;
    }
    return {};
  }

 private:
  void match_regions() {
    partner_.assign(kernel_.body.size(), 0);
    std::vector<size_t> open;
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      const Name op = kernel_.body[i].op;
      if (begins_region(op)) open.push_back(i);
      if (!ends_region(op)) continue;
      partner_[i] = open.back();
      partner_[open.back()] = i;
      open.pop_back();
    }
  }

  ElementType element_of(RegisterId id) const { return kernel_.registers[static_cast<size_t>(id)].element; }
  // Registers of one place share their bits.
  LaneBits& at(RegisterId id) {
    if (kernel_.places.empty()) return registers_[{RegisterFile::vector, id}];
    const codegen::PhysicalRegister& place = kernel_.places[static_cast<size_t>(id)];
    return registers_[{place.file, place.number}];
  }
  int64_t general(RegisterId id) { return at(id).empty() ? 0 : static_cast<int64_t>(at(id)[0]); }
  LaneBits all(uint64_t bits) const { return LaneBits(lanes_, bits); }

  // Executes instruction i; returns the next one.
  Result<size_t> step(size_t i) {
    const Instruction& instruction = kernel_.body[i];
    const Name op = instruction.op;
    if (op == "LoopBegin") return general(instruction.in[0]) <= limit(instruction) ? i + 1 : partner_[i] + 1;
    if (op == "LoopEnd") {
      at(instruction.in[0]) = all(static_cast<uint64_t>(general(instruction.in[0]) + loop(instruction).increment));
      return general(instruction.in[0]) <= limit(instruction) ? partner_[i] + 1 : i + 1;
    }
    if (op == "TailBegin") return begin_tail(i);
    if (op == "WhenBegin") return (at(instruction.in[0])[0] != 0) == when_holds(instruction) ? i + 1 : partner_[i] + 1;
    if (op == "TailEnd" || op == "WhenEnd") return i + 1;
    std::vector<LaneBits> operands;
    if (needs_) TENON_OK(destroy_early(instruction));
    for (const RegisterId id : instruction.in) operands.push_back(at(id));
    for (LaneBits& operand : operands) operand.resize(lanes_, 0);
    if (op == "Store") {
      TENON_OK(store(instruction, operands));
      destroy_scratch(instruction);
      return i + 1;
    }
    if (op == "Spill") return frame_[instruction.number] = operands[0], i + 1;
    if (op == "FoldRows") {
      std::vector<LaneBits> rows;
      for (const LaneBits& operand : operands) {
        TENON_TRY(row, fold_lanes(instruction, operand));
        rows.push_back(std::move(row));
      }
      destroy_scratch(instruction);
      for (size_t row = 0; row < rows.size(); ++row) at(instruction.out[row]) = std::move(rows[row]);
      return i + 1;
    }
    TENON_TRY(made, result(instruction, operands));
    destroy_scratch(instruction);
    at(instruction.out[0]) = std::move(made);
    return i + 1;
  }

  const Loop& loop(const Instruction& instruction) const {
    return kernel_.loops[static_cast<size_t>(instruction.number)];
  }
  int64_t limit(const Instruction& instruction) const { return words_[static_cast<size_t>(loop(instruction).limit)]; }

  Result<size_t> begin_tail(size_t i) {
    const Instruction& instruction = kernel_.body[i];
    const int64_t count = limit(instruction) - general(instruction.in[0]);
    if (count <= 0) return partner_[i] + 1;
    if (count >= static_cast<int64_t>(lanes_)) return error(Code::internal, count, " lanes are left for a tail");
    destroy_scratch(instruction);
    at(instruction.out[0]) = first_lanes(static_cast<size_t>(count));
    at(instruction.out[1]) = all(static_cast<uint64_t>(count));
    return i + 1;
  }

  LaneBits first_lanes(size_t count) const {
    LaneBits mask = all(0);
    std::fill_n(mask.begin(), count, 1);
    return mask;
  }
  LaneBits head_lanes(const Instruction& instruction) {
    const auto lanes = static_cast<int64_t>(lanes_), bytes = int64_t{instruction.memory->element.bits() / 8};
    const int64_t before = -address_of(*instruction.memory) & (lanes * bytes - 1);
    return all(static_cast<uint64_t>(std::min(before / bytes, word(instruction))));
  }

  Result<void> destroy_early(const Instruction& instruction) {
    TENON_TRY(asked, needs_(kernel_, instruction));
    if (asked.early_result)
      for (const RegisterId id : instruction.out) at(id) = all(noise(element_of(id)));
    return {};
  }
  void destroy_scratch(const Instruction& instruction) {
    for (const int number : instruction.vectors) registers_[{RegisterFile::vector, number}] = all(noise(kF32));
    for (const int number : instruction.masks) registers_[{RegisterFile::mask, number}] = all(1);
    for (const int number : instruction.generals) registers_[{RegisterFile::general, number}] = all(noise(kI64));
  }

  Result<LaneBits> result(const Instruction& instruction, const std::vector<LaneBits>& operands) {
    const Name op = instruction.op;
    if (op == "Parameter" || op == "BroadcastParameter") return all(static_cast<uint64_t>(word(instruction)));
    if (op == "AddParameter") return all(static_cast<uint64_t>(general_of(operands[0]) + word(instruction)));
    if (op == "Zero") return all(0);
    if (op == "Number") return all(static_cast<uint64_t>(*instruction.attributes.find("value")->get_if<int64_t>()));
    if (op == "Copy" || op == "Move") return operands[0];
    if (op == "Scalar") return all(bits_of(instruction));
    if (op == "Reload") return frame_[instruction.number];
    if (op == "Load" || op == "BroadcastLoad") return load(instruction);
    if (op == "HeadLanes") return head_lanes(instruction);
    if (op == "FirstLanes") return first_lanes(static_cast<size_t>(general_of(operands[0])));
    if (op == "FillTail") return fill_tail(instruction, operands);
    if (op == "FoldLanes") return fold_lanes(instruction, operands[0]);
    return elementwise(instruction, operands);
  }
  static int64_t general_of(const LaneBits& bits) { return static_cast<int64_t>(bits[0]); }
  int64_t word(const Instruction& instruction) const { return words_[static_cast<size_t>(instruction.number)]; }
  uint64_t bits_of(const Instruction& instruction) const {
    const uint64_t bits = static_cast<uint64_t>(*instruction.attributes.find("bits")->get_if<int64_t>());
    return element_of(instruction.out[0]).bits() == 32 ? bits & 0xffffffff : bits;
  }

  Result<LaneBits> elementwise(const Instruction& instruction, const std::vector<LaneBits>& operands) {
    std::vector<ElementType> from;
    for (const RegisterId id : instruction.in) from.push_back(element_of(id));
    return evaluate_lanes(instruction.op, instruction.attributes, from, operands, element_of(instruction.out[0]));
  }

  Result<LaneBits> fill_tail(const Instruction& instruction, const std::vector<LaneBits>& operands) {
    LaneBits made = operands[0];
    for (size_t i = 0; i < lanes_; ++i)
      if (!operands[1][i]) made[i] = bits_of(instruction);
    return made;
  }
  Result<LaneBits> fold_lanes(const Instruction& instruction, const LaneBits& operand) {
    const Name by = *instruction.attributes.find("by")->get_if<std::string>();
    const ElementType element = element_of(instruction.out[0]);
    LaneBits folded{operand[0]};
    for (size_t i = 1; i < lanes_; ++i) {
      const std::array<ElementType, 2> from{element, element};
      const std::array<LaneBits, 2> pair{folded, LaneBits{operand[i]}};
      TENON_TRY(next, evaluate_lanes(by, {}, from, pair, element));
      folded = next;
    }
    return all(folded[0]);
  }

  int64_t address_of(const Memory& memory) {
    const int64_t index = memory.index < 0 ? 0 : general(memory.index);
    return general(memory.base) + index * (memory.element.bits() / 8) + memory.displacement_bytes;
  }

  // The first byte of an access to `count` elements.
  Result<std::byte*> touch(const Memory& memory, size_t count, bool write) {
    // As integers: a buffer of all bytes from 0 on represents arbitrary memory.
    const auto address = static_cast<uintptr_t>(address_of(memory));
    const size_t bytes = count * static_cast<size_t>(memory.element.bits() / 8);
    for (const LinearBuffer& buffer : buffers_) {
      const auto begin = reinterpret_cast<uintptr_t>(buffer.data);
      const bool holds = address >= begin && bytes <= buffer.bytes && address - begin <= buffer.bytes - bytes;
      if (holds && (buffer.writable || !write)) return reinterpret_cast<std::byte*>(address);
    }
    return error(Code::internal, count, " elements at ", address, " lie in no ", write ? "writable " : "", "buffer");
  }

  Result<LaneBits> load(const Instruction& instruction) {
    const Memory& memory = *instruction.memory;
    const bool one = instruction.op == "BroadcastLoad" || instruction.touched == codegen::Lanes::one;
    const size_t count = one ? 1 : instruction.touched == codegen::Lanes::partial ? count_of(instruction, 1) : lanes_;
    TENON_TRY(from, touch(memory, count, false));
    LaneBits made = all(0);
    for (size_t i = 0; i < count; ++i)
      made[i] = widened(load_bits(from, memory.element.bits(), static_cast<int64_t>(i)), memory.element);
    return one ? all(made[0]) : made;
  }
  // The lanes that a partial access touches: by its mask and by its count, which must agree.
  size_t count_of(const Instruction& instruction, size_t mask_operand) {
    const LaneBits& mask = at(instruction.in[mask_operand - 1 + (instruction.op == "Store" ? 1 : 0)]);
    const size_t set = static_cast<size_t>(std::count(mask.begin(), mask.end(), uint64_t{1}));
    const size_t count = static_cast<size_t>(general(instruction.in.back()));
    TENON_CHECK(set == count, "a tail's mask has ", set, " lanes, its count is ", count);
    return count;
  }

  Result<void> store(const Instruction& instruction, const std::vector<LaneBits>& operands) {
    const Memory& memory = *instruction.memory;
    const bool partial = instruction.touched == codegen::Lanes::partial;
    const size_t count = instruction.touched == codegen::Lanes::one ? 1 : partial ? count_of(instruction, 1) : lanes_;
    TENON_TRY(to, touch(memory, count, true));
    const size_t bytes = static_cast<size_t>(memory.element.bits()) / 8;
    if (instruction.attributes.find("aligned") && reinterpret_cast<uintptr_t>(to) % (count * bytes) != 0)
      return error(Code::internal, "the address is no multiple of the ", count * bytes, " bytes that are stored");
    for (size_t i = 0; i < count; ++i) {
      const uint64_t bits = narrowed(operands[0][i], memory.element);
      std::memcpy(to + i * bytes, &bits, bytes);
    }
    return {};
  }

  static uint64_t widened(uint64_t bits, ElementType element) {
    if (element == kF16 || element == kBF16)
      return std::bit_cast<uint32_t>(static_cast<float>(decode_float(element, bits)));
    if (!element.is_signed_int() || element.bits() >= 32) return bits;
    const int unused = 64 - element.bits();
    return static_cast<uint32_t>(static_cast<int64_t>(bits << unused) >> unused);
  }
  static uint64_t narrowed(uint64_t bits, ElementType element) {
    if (element == kF16 || element == kBF16)
      return encode_float(element, std::bit_cast<float>(static_cast<uint32_t>(bits)));
    return bits;
  }

  const LinearKernel& kernel_;
  std::span<const int64_t> words_;
  std::span<const LinearBuffer> buffers_;
  const NeedsFn& needs_;
  size_t lanes_;
  size_t active_ = lanes_;       // of the current tail
  std::vector<size_t> partner_;  // of each begin and end
  std::map<std::pair<RegisterFile, int>, LaneBits> registers_;
  std::map<int64_t, LaneBits> frame_;
};

}  // namespace

Result<void> run_linear(const LinearKernel& kernel, std::span<const int64_t> words,
                        std::span<const LinearBuffer> buffers, const NeedsFn& needs) {
  return Machine(kernel, words, buffers, needs).run();
}

}  // namespace tenon::snippet
