// Predicted cycles of kernels, from the rows of their instructions.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "x86/forms/forms.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {

double FormMaker::cycles_of(const snippet::LinearKernel& kernel, const snippet::Instruction& one) const {
  const auto types = [&](const snippet::RegisterIds& ids) {
    InlineVector<ElementType, 4> types;
    for (const snippet::RegisterId id : ids) types.push_back(kernel.registers[static_cast<size_t>(id)].element);
    return types;
  };
  const auto in = types(one.in), out = types(one.out);
  const codegen::JitterRow* row = table_.find({one.op, in, out, one.attributes}, target_);
  return row ? row->cycles : 1;
}

namespace {

// Instructions that pack a vector's bytes, in addition to what its row states for any memory.
double packing_cycles(const snippet::Instruction& one, Isa isa) {
  constexpr int kByte = 8;
  if (one.op != kStore || one.memory->element.bits() != kByte) return 0;
  return isa == Isa::avx512 ? 1 : 3;
}

// Selects the instructions of a kernel that count: of a pair of whens one runs, and the first is counted.
class Counted {
 public:
  bool has(const snippet::Instruction& one) {
    if (one.op == snippet::kWhenBegin && (left_out_ > 0 || !snippet::when_holds(one))) ++left_out_;
    if (one.op == snippet::kWhenEnd && left_out_ > 0) {
      --left_out_;
      return false;
    }
    return left_out_ == 0;
  }

 private:
  int left_out_ = 0;  // depth of open whens that do not count
};

}  // namespace

double FormMaker::cycles_of_loops(const snippet::LinearKernel& kernel) const {
  static const Name kBegin("LoopBegin"), kEnd("LoopEnd");
  double cycles = 0;
  int64_t increment = 0;  // of the innermost loop; 0 outside vector loops
  Counted counted;
  for (const snippet::Instruction& one : kernel.body) {
    if (!counted.has(one)) continue;
    if (one.op == kBegin || one.op == kEnd) {
      const snippet::Loop& loop = kernel.loops[static_cast<size_t>(one.number)];
      increment = one.op == kBegin && loop.kind == snippet::Loop::Kind::vector ? loop.increment : 0;
    } else if (increment > 0) {
      cycles += (cycles_of(kernel, one) + packing_cycles(one, isa_of(target_))) / static_cast<double>(increment);
    }
  }
  return cycles;
}

// Loops that continue where others with the same counter end process the remaining elements.
std::optional<double> FormMaker::cycles_of_call(const snippet::LinearKernel& kernel) const {
  static const Name kBegin("LoopBegin"), kEnd("LoopEnd"), kTail("TailBegin"), kTailEnd("TailEnd");
  const std::vector<int64_t>& extents = kernel.extents;
  if (kernel.blocks.inside || kernel.joined.rows >= 0 || std::ranges::count(extents, -1) > 0) return std::nullopt;
  const auto extent_of = [&](const snippet::Loop& loop) {
    const bool is_stretch = loop.dim == static_cast<int>(extents.size());
    if (!is_stretch) return extents[static_cast<size_t>(loop.dim)];
    return std::accumulate(extents.begin() + kernel.stretch, extents.end(), int64_t{1}, std::multiplies<>());
  };
  const auto step_of = [&](const snippet::Loop& loop, int64_t left) {
    if (loop.kind == snippet::Loop::Kind::tail) return std::max<int64_t>(left, 1);
    const snippet::Param& limit = kernel.params[static_cast<size_t>(loop.limit)];
    return limit.kind == snippet::Param::Kind::stream_limit ? loop.increment * limit.streams : loop.increment;
  };
  double cycles = 0;
  std::vector<double> trips = {1};  // of the loops around, each
  std::map<snippet::RegisterId, int64_t> left;
  Counted counted;
  for (const snippet::Instruction& one : kernel.body) {
    if (!counted.has(one)) continue;
    cycles += cycles_of(kernel, one) * trips.back();
    if (one.op == kBegin || one.op == kTail) {
      const snippet::Loop& loop = kernel.loops[static_cast<size_t>(one.number)];
      int64_t& elements = left.try_emplace(loop.counter, extent_of(loop)).first->second;
      const int64_t step = step_of(loop, elements);
      trips.push_back(trips.back() * static_cast<double>(elements / step));
      elements %= step;
    } else if (one.op == kEnd || one.op == kTailEnd) {
      trips.pop_back();
    }
  }
  return cycles;
}

}  // namespace tenon::x86
