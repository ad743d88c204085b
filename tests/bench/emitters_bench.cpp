// Cycles per vector of f32 of each elementwise row of the x86 jitter table, in a stream of vectors that stays in L1:
// the figures of the rows' `cycles`. The minimum of many runs counts, interleaved with those of a copy and of a chain
// of dependent additions, one per cycle.
//
//   emitters_bench [name of an operator]
#include <x86intrin.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <string_view>
#include <utility>

#include "row_stream.hpp"
#include "x86/emitters/emitters.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;
using namespace Xbyak::util;

constexpr int kFloats = 2048;
constexpr int kRounds = 60, kRuns = 40;  // rounds over everything that is compared; consecutive runs

// Code and the least number of time-stamp ticks of a run.
struct Timed {
  std::shared_ptr<const JitCode> code;
  uint64_t least = ~uint64_t{0};

  explicit Timed(CodeObject object) : code(runnable(std::move(object))) {}
  void run(const int64_t* params) {
    for (int i = 0; i < kRuns; ++i) {
      const uint64_t begin = __rdtsc();
      code->function()(params);
      least = std::min<uint64_t>(least, __rdtsc() - begin);
    }
  }
};

constexpr int kAdditions = 4000;
CodeObject additions() {
  ConstantPool pool;
  X86Context c(Isa::avx2, pool);
  for (int i = 0; i < kAdditions; ++i) c.gen().add(rax, rcx);
  c.gen().ret();
  return c.finish("additions");
}

// Rows with rounded results: the others cost next to nothing, or have booleans. Not those of several vectors, nor those
// that need constants from a kernel.
bool measured(const JitterRow& row, const Attributes& attributes, std::string_view wanted) {
  if (!row.types.contains(kF32) || row.max_ulp == 0 || row.op.view() == "Convert") return false;
  if (row.op.view().find("InTurn") != std::string_view::npos) return false;
  const std::vector<ElementType> one{kF32};
  if (row.accepts && !row.accepts({row.op, one, one, attributes})) return false;
  return wanted.empty() || row.op.view() == wanted;
}

// Cycles for a vector of `row`, and for one that is copied.
std::pair<double, double> cycles(const JitterRow& row, Isa isa, const Attributes& attributes) {
  alignas(64) static float x[kFloats], y[kFloats];
  for (int i = 0; i < kFloats; ++i) x[i] = static_cast<float>(i * 37 % kFloats) / 256 - 4;
  const int64_t params[] = {std::bit_cast<int64_t>(&x[0]), std::bit_cast<int64_t>(&y[0])};
  Timed of_row(row_stream(&row, isa, attributes, kFloats)), of_copy(row_stream(nullptr, isa, attributes, kFloats));
  Timed of_additions(additions());
  for (int round = 0; round < kRounds; ++round)
    for (Timed* timed : {&of_row, &of_copy, &of_additions}) timed->run(params);
  const double scale =
      static_cast<double>(kAdditions) / static_cast<double>(of_additions.least) * lanes_of(isa, kF32) / kFloats;
  return {static_cast<double>(of_row.least) * scale, static_cast<double>(of_copy.least) * scale};
}

void report(const JitterTable& table, std::string_view wanted) {
  for (const JitterRow* row : table.rows()) {
    const Isa isa = row->without.empty() ? Isa::avx512 : Isa::avx2;
    // The forms of Gelu have rows of their own; PowBy has its exponent's bits.
    Attributes attributes{{"approximate", "tanh"}, {"exponent", int64_t{std::bit_cast<uint32_t>(2.4f)}}};
    if (row->op.view() == "Gelu" && row->accepts == nullptr) attributes = {{"approximate", "none"}};
    if (!machine_has(isa) || !measured(*row, attributes, wanted)) continue;
    const auto [of_row, of_copy] = cycles(*row, isa, attributes);
    std::printf(
        "%-10s %-6s %6.1f cycles a vector, %5.1f for 16 floats, with load and store (a copy: %.1f); stated %.1f\n",
        row->op.str().c_str(), std::string(isa_name(isa)).c_str(), of_row, of_row * 16 / lanes_of(isa, kF32), of_copy,
        row->cycles);
  }
}

}  // namespace
}  // namespace tenon::x86

int main(int count, char** words) {
  tenon::codegen::JitterTable table("x86");
  if (!tenon::x86::add_elementwise_rows(table).ok()) return 1;
  tenon::x86::report(table, count > 1 ? words[1] : "");
}
