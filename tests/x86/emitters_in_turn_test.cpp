// Rows for several vectors compute the same bits as the rows for one.
#include <cstring>
#include <limits>

#include "emitters_support.hpp"
#include "x86/code/jit_memory.hpp"
#include "x86/emitters/rows.hpp"

namespace tenon::x86::test {
namespace {

using codegen::EmitValue;
using codegen::JitterRow;
using codegen::RegisterFile;
using Xbyak::util::rdi;
using Xbyak::util::rsi;

constexpr uint32_t kSeed = 20261126;

// Types of the same size.
struct Types {
  ElementType operand, result;
};

// A loop over several vectors at a time: params are the trip count, the operands' array and the results' array.
CodeObject loop_of(const JitterRow& row, size_t count, const RowRun& run, Types types) {
  codegen::ConstantPool pool(run.isa == Isa::avx512 ? 1 : 8);
  X86Context c(run.isa, pool);
  std::vector<EmitValue> in, out;
  std::vector<int> vectors, masks;
  int vector = 0;
  for (size_t i = 0; i < count; ++i) in.push_back({{RegisterFile::vector, vector++}, types.operand});
  for (size_t i = 0; i < count; ++i) out.push_back({{RegisterFile::vector, vector++}, types.result});
  for (int i = 0; i < row.scratch.vectors; ++i) vectors.push_back(vector++);
  for (int i = 0; i < row.scratch.masks; ++i) masks.push_back(1 + i);
  const auto bytes = static_cast<size_t>(run.lanes * types.operand.bits() / 8);
  Xbyak::Label loop;
  c.gen().mov(rsi, c.param(1));
  c.gen().mov(Xbyak::util::rdx, c.param(2));
  c.gen().mov(rdi, c.param(0));
  c.gen().L(loop);
  for (size_t i = 0; i < count; ++i) c.gen().vmovups(c.vector(in[i], run.lanes), c.gen().ptr[rsi + i * bytes]);
  const auto emitted = row.make(run.attributes)
                           ->emit_code(c, {.op = row.op.view(),
                                           .attributes = run.attributes,
                                           .in = in,
                                           .out = out,
                                           .vectors = vectors,
                                           .masks = masks,
                                           .generals = {},
                                           .lanes = run.lanes});
  EXPECT_TRUE(emitted.ok()) << row.op.str() << ": " << emitted.error().to_string();
  for (size_t i = 0; i < count; ++i)
    c.gen().vmovups(c.gen().ptr[Xbyak::util::rdx + i * bytes], c.vector(out[i], run.lanes));
  c.gen().add(rsi, static_cast<uint32_t>(count * bytes));
  c.gen().add(Xbyak::util::rdx, static_cast<uint32_t>(count * bytes));
  c.gen().dec(rdi);
  c.gen().jnz(loop);
  c.gen().vzeroupper();
  c.gen().ret();
  return c.finish(row.op.str());
}

template <class Bits>
std::vector<uint64_t> run_in_turn(const JitterRow& row, size_t count, const RowRun& run, const Column& operands,
                                  ElementType result) {
  const std::vector<Bits> given(operands.bits.begin(), operands.bits.end());
  std::vector<Bits> made(given.size());
  const auto code =
      JitMemory::shared().add(std::make_shared<CodeObject>(loop_of(row, count, run, {operands.element, result})));
  EXPECT_TRUE(code.ok());
  const int64_t params[] = {static_cast<int64_t>(given.size()) / (static_cast<int64_t>(count) * run.lanes),
                            std::bit_cast<int64_t>(given.data()), std::bit_cast<int64_t>(made.data())};
  (*code)->function()(params);
  return {made.begin(), made.end()};
}

// The first row with `operands` operands and as many results.
const JitterRow* row_of(Isa isa, Name op, Types types, size_t operands, const Attributes& attributes) {
  const std::vector<ElementType> in(operands, types.operand), out(operands, types.result);
  for (const JitterRow* row : elementwise_table().rows())
    if (isa_of(*row) == isa && row->matches({op, in, out, attributes})) return row;
  return nullptr;
}

class RowsInTurn : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  // Compares the rows for several vectors with `one`, on these operands; returns the number of such rows.
  int compare(const JitterRow& one, const Column& operands, ElementType result, const Attributes& attributes) const {
    const Types types{operands.element, result};
    if (row_of(GetParam(), one.op, types, 1, attributes) != &one) return 0;
    int compared = 0;
    for (const size_t count : {2, 4}) {
      const JitterRow* const several = row_of(GetParam(), in_turn(one.op, count), types, count, attributes);
      if (!several) continue;
      EXPECT_TRUE(several->early_result) << one.op.str() << ": results of one, operands of the other";
      const int full = lanes_of(GetParam(), operands.element);
      for (const int lanes : {full, full / 2}) {
        if (lanes < full && operands.element == kF64) continue;
        const RowRun run{.row = &one, .isa = GetParam(), .lanes = lanes, .attributes = attributes};
        const auto alone = run_row(run, std::span(&operands, 1), result);
        EXPECT_TRUE(alone.ok()) << describe(run);
        if (!alone.ok()) return 0;
        EXPECT_EQ(operands.element == kF32 ? run_in_turn<uint32_t>(*several, count, run, operands, result)
                                           : run_in_turn<uint64_t>(*several, count, run, operands, result),
                  alone->bits)
            << describe(run) << ", " << count << " in turn, seed " << kSeed;
      }
      ++compared;
    }
    return compared;
  }
};

TEST_P(RowsInTurn, ComputeTheBitsOfOneVectorsRows) {
  int compared = 0, rows = 0;
  for (const JitterRow* one : elementwise_table().rows()) {
    const bool has_many_operands = one->op.view().starts_with("DivStanding");  // apart_test.cpp
    rows += isa_of(*one) == GetParam() && one->op.view().find("InTurn") != std::string_view::npos && !has_many_operands;
    for (const ElementType element : {kF32, kF64})
      for (const Attributes& attributes :
           {Attributes{}, Attributes{{"approximate", "tanh"}}, Attributes{{"of", std::vector<float>{0.7f, 0.03f}}}})
        compared += compare(*one, {element, sample(element, 4096, kSeed)}, element, attributes);
    compared += compare(*one, {kF32, sample(kF32, 4096, kSeed)}, kI32, {});
  }
  EXPECT_GE(compared, rows);
  EXPECT_GT(rows, 0);
}

// Floats outside i32, one at a time in vectors of floats that fit.
TEST_P(RowsInTurn, ConvertWhatFitsAndWhatDoesNot) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr size_t kApart = 101;  // coprime to the number of lanes, so all lanes get one
  Column operands{kF32, {}};
  for (size_t i = 0; i < 16384; ++i) {
    const auto bits = static_cast<uint32_t>(i * 0x9e3779b1);
    operands.bits.push_back(std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(bits)) * 0.5f));
  }
  const float others[] = {kNaN, -kNaN, kInfinity, -kInfinity, 0x1p31f, -0x1p31f, -0x1.000002p31f, 3e38f, -0.0f};
  for (size_t i = 0; i * kApart < operands.bits.size(); ++i)
    operands.bits[i * kApart] = std::bit_cast<uint32_t>(others[i % std::size(others)]);
  int compared = 0;
  for (const JitterRow* one : elementwise_table().rows()) compared += compare(*one, operands, kI32, {});
  EXPECT_EQ(compared, 2);
}

INSTANTIATE_TEST_SUITE_P(, RowsInTurn, testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::x86::test
