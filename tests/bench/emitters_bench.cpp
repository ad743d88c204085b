// Cycles that each elementwise row of the x86 jitter table takes for one vector of f32, in a stream of them that stays
// in the first-level cache: the figures of the rows' `cycles`. The least of many runs counts. One cycle is what a
// dependent addition takes.
//
//   emitters_bench [name of an operator]
#include <x86intrin.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <string_view>
#include <vector>

#include "x86/context.hpp"
#include "x86/emitters/emitters.hpp"
#include "x86/jit_memory.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;
using namespace Xbyak::util;

constexpr int kFloats = 2048;
constexpr int kRuns = 3000;

// A loop of `row` (null: a copy); all its operands are one. params: operand, result; each of kFloats.
CodeObject stream(const JitterRow* row, Isa isa) {
  const Attributes attributes;
  ConstantPool pool(isa == Isa::avx512 ? 1 : 8);
  X86Context c(isa, pool);
  const int lanes = lanes_of(isa, kF32), bytes = lanes * 4;
  const std::vector<EmitValue> in(3, {{RegisterFile::vector, 0}, kF32}), out{{{RegisterFile::vector, 1}, kF32}};
  std::vector<int> vectors, masks;
  for (int i = 0; row && i < row->scratch.vectors; ++i) vectors.push_back(2 + i);
  for (int i = 0; row && i < row->scratch.masks; ++i) masks.push_back(1 + i);
  c.gen().mov(rsi, qword[rdi]);
  c.gen().mov(rdx, qword[rdi + 8]);
  c.gen().mov(ecx, kFloats / lanes);
  Xbyak::Label loop;
  c.gen().align(64);
  c.gen().L(loop);
  c.gen().vmovups(c.vector(in[0], lanes), c.gen().ptr[rsi]);
  if (row) {
    const auto emitter = row->make(attributes);
    const Emission emission{.op = row->op.view(),
                            .attributes = attributes,
                            .in = in,
                            .out = out,
                            .vectors = vectors,
                            .masks = masks,
                            .generals = {},
                            .lanes = lanes};
    if (!emitter->emit_code(c, emission).ok()) std::printf("cannot emit %s\n", row->op.str().c_str());
  }
  c.gen().vmovups(c.gen().ptr[rdx], c.vector(row ? out[0] : in[0], lanes));
  c.gen().add(rsi, bytes);
  c.gen().add(rdx, bytes);
  c.gen().dec(ecx);
  c.gen().jnz(loop);
  c.gen().vzeroupper();
  c.gen().ret();
  return c.finish("stream");
}

// Least time-stamp ticks of a run.
uint64_t least_ticks(const CodeObject& object, const int64_t* params) {
  const auto code = JitMemory::shared().add(std::make_shared<CodeObject>(object));
  if (!code.ok()) return 0;
  uint64_t least = ~uint64_t{0};
  for (int run = 0; run < kRuns; ++run) {
    const uint64_t begin = __rdtsc();
    (*code)->function()(params);
    least = std::min<uint64_t>(least, __rdtsc() - begin);
  }
  return least;
}

double ticks_per_cycle() {
  constexpr int kAdditions = 4000;
  ConstantPool pool;
  X86Context c(Isa::avx2, pool);
  for (int i = 0; i < kAdditions; ++i) c.gen().add(rax, rcx);
  c.gen().ret();
  const int64_t none = 0;
  return static_cast<double>(least_ticks(c.finish("additions"), &none)) / kAdditions;
}

// Rows whose results are rounded: the others cost next to nothing, or have booleans.
bool measured(const JitterRow& row, std::string_view wanted) {
  if (!row.types.contains(kF32) || row.max_ulp == 0 || row.op.view() == "Convert") return false;
  return wanted.empty() || row.op.view() == wanted;
}

void report(const JitterTable& table, std::string_view wanted) {
  std::vector<float> x(kFloats), y(kFloats);
  for (int i = 0; i < kFloats; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i * 37 % kFloats) / 256 - 4;
  const int64_t params[] = {std::bit_cast<int64_t>(x.data()), std::bit_cast<int64_t>(y.data())};
  for (const JitterRow* row : table.rows()) {
    const Isa isa = row->without.empty() ? Isa::avx512 : Isa::avx2;
    if (!machine_has(isa) || !measured(*row, wanted)) continue;
    const auto cycles = [&](const JitterRow* measured_row) {
      return static_cast<double>(least_ticks(stream(measured_row, isa), params)) / ticks_per_cycle() /
             (kFloats / lanes_of(isa, kF32));
    };
    std::printf("%-10s %-6s %6.1f cycles a vector with its load and store (a copy: %.1f); stated %.1f\n",
                row->op.str().c_str(), std::string(isa_name(isa)).c_str(), cycles(row), cycles(nullptr), row->cycles);
  }
}

}  // namespace
}  // namespace tenon::x86

int main(int count, char** words) {
  tenon::codegen::JitterTable table("x86");
  if (!tenon::x86::add_elementwise_rows(table).ok()) return 1;
  tenon::x86::report(table, count > 1 ? words[1] : "");
}
