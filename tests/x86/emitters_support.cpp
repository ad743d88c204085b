#include "emitters_support.hpp"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace tenon::x86::test {

using namespace codegen;
using Xbyak::util::rdi;
using Xbyak::util::rsi;

namespace {

constexpr uint64_t kPoison = 0xbadc0ffee0ddf00d;
constexpr size_t kSlot = 64;

int vectors_of(Isa isa) { return isa == Isa::avx512 ? 32 : 16; }
bool in_opmask(Isa isa, ElementType element) { return isa == Isa::avx512 && element.is_bool(); }

// Bytes per lane of `element` in the arrays of the machine code.
size_t lane_bytes(ElementType element, int lanes) {
  return static_cast<size_t>(element.is_bool() ? mask_bits(lanes) : element.bits()) / 8;
}

// The executable memory of one kernel.
class Runnable {
 public:
  explicit Runnable(const CodeObject& code) : bytes_(code.bytes.size()) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TENON_CHECK(memory_ != MAP_FAILED, "no memory for code");
    std::memcpy(memory_, code.bytes.data(), bytes_);
    TENON_CHECK(mprotect(memory_, bytes_, PROT_READ | PROT_EXEC) == 0, "no right to execute");
  }
  Runnable(const Runnable&) = delete;
  Runnable& operator=(const Runnable&) = delete;
  ~Runnable() { munmap(memory_, bytes_); }
  void operator()(const int64_t* params) const { reinterpret_cast<KernelFunction>(memory_)(params); }

 private:
  void* memory_;
  size_t bytes_;
};

volatile size_t g_instructions = 0;

// Counts the instructions executed during its lifetime, with the trap flag.
class InstructionCount {
 public:
  InstructionCount() {
    g_instructions = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { g_instructions = g_instructions + 1; };
    TENON_CHECK(sigaction(SIGTRAP, &action, &before_) == 0, "no handler of traps");
    set(kTrapFlag);
  }
  InstructionCount(const InstructionCount&) = delete;
  InstructionCount& operator=(const InstructionCount&) = delete;
  ~InstructionCount() {
    set(0);
    sigaction(SIGTRAP, &before_, nullptr);
  }
  static size_t so_far() { return g_instructions; }

 private:
  static constexpr uint64_t kTrapFlag = 0x100;
  // Pushes the flags below the red zone, the bytes under the stack pointer that functions may use.
  static void set(uint64_t flag) {
    asm volatile(
        "lea -128(%%rsp), %%rsp; pushfq; andq %0, (%%rsp); orq %1, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::"r"(
            ~kTrapFlag),
        "r"(flag)
        : "cc", "memory");
  }

  struct sigaction before_ {};
};

// One kernel: its registers, and its code.
class Driver {
 public:
  Driver(const RowRun& run, std::span<const Column> operands, ElementType result) : run_(run) {
    int vector = 1, mask = 1;  // register 0 is unused, and must be preserved
    for (const Column& operand : operands) {
      const bool opmask = in_opmask(run.isa, operand.element);
      if (!run.placement.shared || in_.empty())
        place(in_, operand.element, opmask ? mask++ : vector++);
      else
        in_.push_back({in_[0].at, operand.element});
    }
    const bool opmask = in_opmask(run.isa, result);
    if (run.placement.result_in >= 0)
      out_.push_back({in_[static_cast<size_t>(run.placement.result_in)].at, result});
    else
      place(out_, result, opmask ? mask++ : vector++);
    for (int i = 0; i < run.row->scratch.vectors - run.missing_scratch; ++i) vectors_.push_back(vector++);
    for (int i = 0; i < run.row->scratch.masks; ++i) masks_.push_back(mask++);
    TENON_CHECK(vector <= vectors_of(run.isa) && mask <= 8 && run.row->scratch.generals == 0, "too many registers");
  }

  Result<CodeObject> assemble() {
    ConstantPool pool(run_.isa == Isa::avx512 ? 1 : 8);
    const Emission emission{.op = run_.row->op.view(),
                            .attributes = run_.attributes,
                            .in = in_,
                            .out = out_,
                            .vectors = vectors_,
                            .masks = masks_,
                            .generals = {},
                            .lanes = run_.lanes};
    const auto emitter = run_.row->make(run_.attributes);
    X86Context c(run_.isa, pool);
    write_prologue(c);
    Xbyak::Label loop;
    c.gen().L(loop);
    for (const int number : vectors_) c.gen().vmovups(full(number), c.gen().ptr[rsi]);
    for (size_t i = 0; i < in_.size(); ++i) load(c, i);
    TENON_OK(emitter->emit_code(c, emission));
    store(c);
    c.gen().dec(Xbyak::util::qword[rdi]);
    c.gen().jnz(loop);
    write_epilogue(c);
    return c.finish("driver");
  }

  bool may_change(RegisterFile file, int number) const {
    const auto is_at = [&](const EmitValue& value) { return value.at == PhysicalRegister{file, number}; };
    if (is_at(out_[0])) return true;
    for (const EmitValue& value : in_)
      if (is_at(value)) return false;
    const std::vector<int>& scratch = file == RegisterFile::mask ? masks_ : vectors_;
    return std::find(scratch.begin(), scratch.end(), number) != scratch.end() ||
           (file == RegisterFile::mask && number == 0);
  }
  // f(register, operand, bytes loaded in an iteration) for each register that only holds operands: with the operand
  // that is loaded last.
  template <class F>
  void for_each_operand(const F& f) const {
    for (size_t i = 0; i < in_.size(); ++i) {
      const auto is_here = [&](const EmitValue& other) { return other.at == in_[i].at; };
      if (is_here(out_[0]) || std::any_of(in_.begin() + static_cast<int64_t>(i) + 1, in_.end(), is_here)) continue;
      const bool opmask = in_opmask(run_.isa, in_[i].element);
      f(in_[i].at, i, opmask ? 8 : lane_bytes(in_[i].element, run_.lanes) * static_cast<size_t>(run_.lanes));
    }
  }
  bool is_operand(RegisterFile file, int number) const {
    for (const EmitValue& value : in_)
      if (value.at == PhysicalRegister{file, number}) return true;
    return false;
  }

 private:
  void place(std::vector<EmitValue>& values, ElementType element, int number) {
    const RegisterFile file = in_opmask(run_.isa, element) ? RegisterFile::mask : RegisterFile::vector;
    values.push_back({{file, number}, element});
  }
  Xbyak::Xmm full(int number) const { return X86Context::vector(number, vector_bits(run_.isa)); }
  // Param i: the number of iterations, the operands' arrays, the result's array, the dump of registers.
  Xbyak::Address word(size_t i) const { return Xbyak::util::qword[rdi + 8 * i]; }

  void write_prologue(X86Context& c) {
    c.gen().mov(rsi, word(in_.size() + 2));
    for (int i = 0; i < vectors_of(run_.isa); ++i) c.gen().vmovups(full(i), c.gen().ptr[rsi]);
    if (run_.isa == Isa::avx512)
      for (int i = 1; i < 8; ++i) c.gen().kmovq(Xbyak::Opmask(i), c.gen().ptr[rsi]);
  }
  void load(X86Context& c, size_t i) {
    c.gen().mov(Xbyak::util::rax, word(i + 1));
    if (in_opmask(run_.isa, in_[i].element)) {
      c.gen().kmovq(X86Context::mask(in_[i]), c.gen().ptr[Xbyak::util::rax]);
      c.gen().add(word(i + 1), 8);
      return;
    }
    c.gen().vmovups(c.vector(in_[i], run_.lanes), c.gen().ptr[Xbyak::util::rax]);
    c.gen().add(word(i + 1), static_cast<uint32_t>(lane_bytes(in_[i].element, run_.lanes)) * run_.lanes);
  }
  void store(X86Context& c) {
    const size_t i = in_.size() + 1;
    c.gen().mov(Xbyak::util::rax, word(i));
    if (in_opmask(run_.isa, out_[0].element)) {
      c.gen().kmovq(c.gen().ptr[Xbyak::util::rax], X86Context::mask(out_[0]));
      c.gen().add(word(i), 8);
      return;
    }
    c.gen().vmovups(c.gen().ptr[Xbyak::util::rax], c.vector(out_[0], run_.lanes));
    c.gen().add(word(i), static_cast<uint32_t>(lane_bytes(out_[0].element, run_.lanes)) * run_.lanes);
  }
  void write_epilogue(X86Context& c) {
    c.gen().mov(rsi, word(in_.size() + 2));
    for (int i = 0; i < vectors_of(run_.isa); ++i)
      c.gen().vmovups(c.gen().ptr[rsi + kSlot * static_cast<size_t>(i + 1)], full(i));
    if (run_.isa == Isa::avx512)
      for (int i = 0; i < 8; ++i)
        c.gen().kmovq(c.gen().ptr[rsi + kSlot * static_cast<size_t>(33 + i)], Xbyak::Opmask(i));
    c.gen().vzeroupper();
    c.gen().ret();
  }

  const RowRun& run_;
  std::vector<EmitValue> in_, out_;
  std::vector<int> vectors_, masks_;
};

// Conversion between columns and the arrays of machine code, which end with a slot more.
std::vector<std::byte> pack(const Column& column, const RowRun& run) {
  const auto lanes = static_cast<size_t>(run.lanes);
  if (in_opmask(run.isa, column.element)) {
    std::vector<std::byte> packed(column.bits.size() / lanes * 8 + kSlot);
    for (size_t i = 0; i < column.bits.size(); ++i)
      packed[i / lanes * 8 + i % lanes / 8] |= static_cast<std::byte>(column.bits[i] << (i % lanes % 8));
    return packed;
  }
  const size_t bytes = lane_bytes(column.element, run.lanes);
  std::vector<std::byte> packed(column.bits.size() * bytes + kSlot);
  for (size_t i = 0; i < column.bits.size(); ++i) {
    const uint64_t bits = column.element.is_bool() ? ~uint64_t{0} * column.bits[i] : column.bits[i];
    std::memcpy(&packed[i * bytes], &bits, bytes);
  }
  return packed;
}

Column unpack(std::span<const std::byte> packed, ElementType element, size_t count, const RowRun& run) {
  Column column{element, std::vector<uint64_t>(count)};
  const auto lanes = static_cast<size_t>(run.lanes);
  const size_t bytes = lane_bytes(element, run.lanes);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    if (in_opmask(run.isa, element))
      bits = std::to_integer<uint64_t>(packed[i / lanes * 8 + i % lanes / 8]) >> (i % lanes % 8) & 1;
    else
      std::memcpy(&bits, &packed[i * bytes], bytes);
    if (element.is_bool() && !in_opmask(run.isa, element)) {
      const uint64_t ones = bytes == 8 ? ~uint64_t{0} : 0xffffffffu;
      EXPECT_TRUE(bits == 0 || bits == ones) << describe(run) << ": a boolean lane of mixed bits";
      bits &= 1;
    }
    column.bits[i] = bits;
  }
  return column;
}

// Registers other than those of operands and result and the scratch registers still have the poison value, and those of
// operands what was loaded last.
void expect_untouched(const RowRun& run, const Driver& driver, std::span<const std::vector<std::byte>> arrays,
                      std::span<const uint64_t> dump) {
  driver.for_each_operand([&](PhysicalRegister at, size_t operand, size_t bytes) {
    const size_t slot = static_cast<size_t>(at.number) + (at.file == RegisterFile::mask ? 33 : 1);
    const auto held = std::as_bytes(dump.subspan(8 * slot)).first(bytes);
    ASSERT_TRUE(std::ranges::equal(held, std::span(arrays[operand]).last(bytes + kSlot).first(bytes)))
        << describe(run) << " changed operand " << operand;
  });
  const auto vector_words = static_cast<size_t>(vector_bits(run.isa) / 64);
  for (int i = 0; i < vectors_of(run.isa); ++i) {
    if (driver.may_change(RegisterFile::vector, i) || driver.is_operand(RegisterFile::vector, i)) continue;
    for (size_t word = 0; word < vector_words; ++word)
      ASSERT_EQ(dump[8 * static_cast<size_t>(i + 1) + word], kPoison) << describe(run) << " changed vector " << i;
  }
  if (run.isa != Isa::avx512) return;
  for (int i = 1; i < 8; ++i) {
    if (driver.may_change(RegisterFile::mask, i) || driver.is_operand(RegisterFile::mask, i)) continue;
    ASSERT_EQ(dump[8 * static_cast<size_t>(33 + i)], kPoison) << describe(run) << " changed mask " << i;
  }
}

}  // namespace

Result<Column> run_row(const RowRun& run, std::span<const Column> operands, ElementType result) {
  const size_t count = operands[0].bits.size();
  TENON_CHECK(count % static_cast<size_t>(run.lanes) == 0, "a part of a vector");
  Driver driver(run, operands, result);
  TENON_TRY(code, driver.assemble());
  std::vector<std::vector<std::byte>> arrays;
  for (const Column& operand : operands) arrays.push_back(pack(operand, run));
  std::vector<std::byte> out(count * 8 + kSlot);
  std::vector<uint64_t> dump(8 * 41, kPoison);
  std::vector<int64_t> params{static_cast<int64_t>(count) / run.lanes};
  for (auto& array : arrays) params.push_back(std::bit_cast<int64_t>(array.data()));
  params.push_back(std::bit_cast<int64_t>(out.data()));
  params.push_back(std::bit_cast<int64_t>(dump.data()));
  const Runnable kernel(code);
  if (run.instructions) {
    const InstructionCount count_all;
    kernel(params.data());
    *run.instructions = count_all.so_far();
  } else {
    kernel(params.data());
  }
  expect_untouched(run, driver, arrays, dump);
  return unpack(out, result, count, run);
}

std::string describe(const RowRun& run) {
  return std::string(run.row->op.view()) + " on " + std::string(isa_name(run.isa)) + ", " + std::to_string(run.lanes) +
         " lanes, result in " + std::to_string(run.placement.result_in) +
         (run.placement.shared ? ", operands in one register" : "");
}

}  // namespace tenon::x86::test
