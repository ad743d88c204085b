#include <tenon/program/exec/flatten.hpp>

#include <algorithm>

#include <tenon/program/exec/tracer_internal.hpp>
#include <tenon/program/ir/fixed_step_internal.hpp>
#include <tenon/program/ir/labels.hpp>
#include <tenon/support/str.hpp>

namespace tenon::program {
namespace {

using namespace detail;

FlatOperand operand_of(const BoundBuffer& buffer) {
  return {buffer.memory->root, buffer.base - buffer.memory->begin, buffer.element, buffer.dims};
}

// An index of the source for the first index of the destination, and its step per dim.
struct LinearIndex {
  int64_t first = 0;
  std::vector<int64_t> steps;
};

Result<LinearIndex> linear_index(const Copy& copy, const Expr& map, const std::vector<DimView>& dims,
                                 const SymbolValues& symbols) {
  Substitution known;
  for (const auto& [name, value] : symbols) known.emplace(name, Expr(value));
  const Expr index = map.substitute(known);
  SymbolValues firsts;
  LinearIndex made;
  for (size_t d = 0; d < dims.size(); ++d) {
    firsts.emplace(copy.indices[d], dims[d].min);
    made.steps.push_back(0);
    if (dims[d].extent <= 1) continue;
    const auto step = fixed_step(index, copy.indices[d], copy.indices);
    if (!step || !step->is_constant())
      return error(Code::unsupported, "the index ", map, " of the source is not linear in ", copy.indices[d]);
    made.steps.back() = step->constant();
  }
  TENON_TRY(first, index.evaluate(firsts));
  made.first = first;
  return made;
}

// Checks that all accesses are inside the dim.
Result<void> check_reach(const LinearIndex& index, const std::vector<DimView>& dims, const DimView& source) {
  int64_t low = index.first, high = index.first;
  for (size_t d = 0; d < dims.size(); ++d)
    (index.steps[d] < 0 ? low : high) += index.steps[d] * std::max<int64_t>(dims[d].extent - 1, 0);
  if (low >= source.min && high <= source.max()) return {};
  return error(Code::invalid_argument, "indices ", low, " .. ", high, " of the source are read, which has ", source.min,
               " .. ", source.max());
}

class Flattener final : public Tracer {
 public:
  explicit Flattener(const Program& program) { made_.local_bytes.resize(program.buffers.size(), 0); }
  FlatProgram take() { return std::move(made_); }

  Result<void> call(const Call& call, const std::vector<BoundBuffer>& operands) override {
    if (!call.scalars.empty()) return error(Code::unsupported, "it takes scalars");
    FlatStep step{std::string(stage_of(call)), call.kernel, {}};
    for (const BoundBuffer& operand : operands) step.operands.push_back(noted(operand));
    made_.steps.push_back(std::move(step));
    return {};
  }

  Result<void> copy(const Copy& copy, const BoundBuffer& destination, const BoundBuffer& source,
                    const SymbolValues& symbols) override {
    if (!std::holds_alternative<std::monostate>(copy.padding))
      return error(Code::unsupported, "copy '", stage_of(copy), "' pads");
    FlatOperand from = noted(source);
    from.dims = destination.dims;
    for (DimView& dim : from.dims) dim.stride = 0, dim.fold = 0;
    for (size_t k = 0; k < copy.map.size(); ++k) {
      const DimView& dim = source.dims[k];
      TENON_TRY(index, linear_index(copy, copy.map[k], destination.dims, symbols), "copy '", stage_of(copy), "'");
      TENON_OK(check_reach(index, destination.dims, dim), "copy '", stage_of(copy), "', dim ", k);
      if (dim.fold > 0) return error(Code::unsupported, "copy '", stage_of(copy), "' reads a ring");
      from.offset_bytes += dim.place(index.first) * dim.stride;
      for (size_t d = 0; d < from.dims.size(); ++d) from.dims[d].stride += index.steps[d] * dim.stride;
    }
    made_.steps.push_back({std::string(stage_of(copy)), nullptr, {noted(destination), std::move(from)}});
    return {};
  }

  Result<void> access(std::string_view, const BoundBuffer&, bool) override { return {}; }
  Result<void> start(TokenId, const BoundBuffer&, const std::vector<BoundBuffer>&) override {
    return error(Code::unsupported, "it has transfers");
  }
  void wait(TokenId) override {}
  // Loops have one worker: threads are 1.
  void enter(const Loop&, int64_t) override {}
  Result<void> begin(int64_t, int64_t) override { return {}; }
  Result<void> end() override { return {}; }
  void leave() override {}
  void signal(int) override {}
  void await(int) override {}

 private:
  FlatOperand noted(const BoundBuffer& buffer) {
    const MemoryBlock& memory = *buffer.memory;
    if (memory.owned) made_.local_bytes[static_cast<size_t>(memory.root)] = memory.bytes * memory.slots;
    return operand_of(buffer);
  }
  FlatProgram made_;
};

}  // namespace

Result<FlatProgram> flatten(const Program& program, const Arguments& shapes) {
  Flattener flattener(program);
  TENON_OK(trace(program, shapes, 1, flattener));
  return flattener.take();
}

}  // namespace tenon::program
