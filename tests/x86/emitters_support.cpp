#include "emitters_support.hpp"

#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "x86/emitters/emitters.hpp"

namespace tenon::x86::test {

using namespace codegen;
using Xbyak::util::rdi;
using Xbyak::util::rsi;

namespace {

constexpr uint64_t kPoison = 0xbadc0ffee0ddf00d;
constexpr size_t kSlot = 64;

int vectors_of(Isa isa) { return isa == Isa::avx512 ? 32 : 16; }
bool in_opmask(Isa isa, ElementType element) { return isa == Isa::avx512 && element.is_bool(); }

// Bytes of a lane of `element` in the arrays that the machine code walks.
size_t lane_bytes(ElementType element, int lanes) {
  return static_cast<size_t>(element.is_bool() ? mask_bits(lanes) : element.bits()) / 8;
}

// Executable memory of one kernel.
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

// One kernel: which registers it uses, and its code.
class Driver {
 public:
  Driver(const RowRun& run, std::span<const Column> operands, ElementType result) : run_(run) {
    int vector = 1, mask = 1;  // register 0 is nobody's: it must come through
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
    emitter->emit_data(pool, emission);
    const size_t named = pool.bytes().size();
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
    EXPECT_EQ(pool.bytes().size(), named) << describe(run_) << ": emit_data did not name all constants";
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
  // params: count of iterations, operands' arrays, result's array, the dump.
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

// Between columns and the arrays of machine code.
std::vector<std::byte> pack(const Column& column, const RowRun& run) {
  const auto lanes = static_cast<size_t>(run.lanes);
  if (in_opmask(run.isa, column.element)) {
    std::vector<std::byte> packed(column.bits.size() / lanes * 8);
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

// Registers that are neither result nor scratch: operands hold what was loaded last, others the poison.
void expect_untouched(const RowRun& run, const Driver& driver, std::span<const uint64_t> dump) {
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
  kernel(params.data());
  expect_untouched(run, driver, dump);
  return unpack(out, result, count, run);
}

const JitterTable& elementwise_table() {
  static const JitterTable* const table = [] {
    auto* made = new JitterTable(std::string(kContextKind));
    TENON_CHECK(add_elementwise_rows(*made).ok(), "rows that the table refuses");
    return made;
  }();
  return *table;
}

std::vector<Isa> machine_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::avx2, Isa::avx512})
    if (machine_has(isa)) isas.push_back(isa);
  return isas;
}

namespace {

std::vector<uint64_t> special_values(ElementType element) {
  std::vector<uint64_t> out;
  if (element == kBool) return {0, 1};
  if (element == kF32) {
    for (const uint32_t magnitude :
         {0x0u,        0x1u,        0x7fffffu,   0x800000u,   0x33000000u, 0x3effffffu, 0x3f000000u,
          0x3f000001u, 0x3f7fffffu, 0x3f800000u, 0x3fc00000u, 0x40000000u, 0x40200000u, 0x40490fdbu,
          0x41200000u, 0x4b000001u, 0x4effffffu, 0x4f000000u, 0x4f7fffffu, 0x4f800000u, 0x5effffffu,
          0x5f000000u, 0x5f7fffffu, 0x5f800000u, 0x7f7fffffu, 0x7f800000u, 0x7fc00001u})
      for (const uint32_t sign : {0u, 0x80000000u}) out.push_back(magnitude | sign);
    return out;
  }
  if (element == kF64) {
    for (const double magnitude : {0.0,
                                   5e-324,
                                   2.2250738585072014e-308,
                                   1e-45,
                                   0.49999999999999994,
                                   0.5,
                                   1.0,
                                   1.5,
                                   2.5,
                                   3.0,
                                   65519.99,
                                   65520.0,
                                   2147483647.0,
                                   2147483648.0,
                                   4294967295.0,
                                   4294967296.0,
                                   4503599627370497.5,
                                   9223372036854774784.0,
                                   9223372036854775808.0,
                                   18446744073709549568.0,
                                   18446744073709551616.0,
                                   3.4028235677973366e38,
                                   1e300,
                                   std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()})
      for (const double value : {magnitude, -magnitude}) out.push_back(std::bit_cast<uint64_t>(value));
    return out;
  }
  const uint64_t mask = element.bits() == 64 ? ~uint64_t{0} : 0xffffffffu;
  for (const uint64_t value : {uint64_t{0},
                               uint64_t{1},
                               uint64_t{2},
                               uint64_t{3},
                               uint64_t{7},
                               uint64_t{31},
                               uint64_t{32},
                               uint64_t{63},
                               uint64_t{64},
                               uint64_t{127},
                               uint64_t{128},
                               uint64_t{255},
                               uint64_t{32768},
                               uint64_t{16777217},
                               uint64_t{0x7fffffff},
                               uint64_t{0x80000000},
                               uint64_t{0xffffffff},
                               (uint64_t{1} << 53) + 1,
                               uint64_t{0x7fffffffffffffff},
                               uint64_t{1} << 63})
    for (const uint64_t signed_value : {value, uint64_t{0} - value}) out.push_back(signed_value & mask);
  return out;
}

}  // namespace

std::vector<uint64_t> sample(ElementType element, size_t count, uint32_t seed) {
  std::vector<uint64_t> out = special_values(element);
  std::mt19937_64 random(seed);
  while (out.size() < count) {
    uint64_t bits = random();
    if (element.is_int()) bits >>= random() % 64;  // of all magnitudes
    if (element.is_int() && random() % 2 != 0) bits = uint64_t{0} - bits;
    if (element.is_float() && random() % 2 != 0) {  // of human size
      const double value =
          std::ldexp(static_cast<double>(static_cast<int64_t>(bits)), -static_cast<int>(random() % 80));
      bits = element == kF64 ? std::bit_cast<uint64_t>(value) : std::bit_cast<uint32_t>(static_cast<float>(value));
    }
    if (element.bits() <= 32) bits &= 0xffffffffu;
    out.push_back(element.is_bool() ? bits & 1 : bits);
  }
  out.resize(count);
  return out;
}

std::vector<Column> sample_columns(ElementType element, size_t operands, uint32_t seed) {
  const std::vector<uint64_t> special = special_values(element);
  const size_t pairs = special.size() * special.size();
  const size_t count = (pairs + 4096) / 64 * 64;
  std::vector<Column> columns;
  for (size_t i = 0; i < operands; ++i) {
    columns.push_back({element, sample(element, count, seed + static_cast<uint32_t>(i))});
    for (size_t at = 0; at < pairs; ++at)
      columns[i].bits[at] = special[i == 0 ? at / special.size() : (at + 7 * (i - 1)) % special.size()];
  }
  return columns;
}

double ulp_error(float got, double exact) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : kInfinite;
  const auto rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : kInfinite;
  if (got == 0 && exact == 0) return std::signbit(got) == std::signbit(exact) ? 0 : kInfinite;
  const int exponent = std::max(exact == 0 ? -126 : std::ilogb(exact), -126);
  return std::abs(got - exact) / std::ldexp(1.0, exponent - 23);
}

std::string describe(const RowRun& run) {
  return std::string(run.row->op.view()) + " on " + std::string(isa_name(run.isa)) + ", " + std::to_string(run.lanes) +
         " lanes, result in " + std::to_string(run.placement.result_in) +
         (run.placement.shared ? ", operands in one register" : "");
}

}  // namespace tenon::x86::test
