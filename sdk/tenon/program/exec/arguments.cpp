#include <algorithm>

#include <tenon/program/exec/arguments_internal.hpp>

namespace tenon::program::detail {
namespace {

Result<void> check_dims(const Buffer& declared, const BufferArgument& argument) {
  if (argument.dims.size() != static_cast<size_t>(declared.rank))
    return error(Code::invalid_argument, "given with ", argument.dims.size(), " dims, declared with ", declared.rank);
  for (size_t d = 0; d < argument.dims.size(); ++d) {
    const DimView& dim = argument.dims[d];
    int64_t last, bytes;
    if (dim.extent < 0 || dim.fold < 0 || __builtin_add_overflow(dim.min, dim.extent, &last) ||
        dim.stride == INT64_MIN || __builtin_mul_overflow(std::abs(dim.stride), dim.extent, &bytes))
      return error(Code::invalid_argument, "dim ", d, " has min ", dim.min, ", extent ", dim.extent, ", stride ",
                   dim.stride, ", fold ", dim.fold, ": extent and fold are not negative, and all fit int64");
  }
  return spread_of(argument.dims, declared.element).ok()
             ? Result<void>()
             : error(Code::resource_exhausted, "its size in bytes is outside of int64");
}

bool is_declared(const Program& program, const std::string& name) {
  const auto id = program.find_buffer(name);
  return id && program.buffer(*id).role != Role::local;
}

std::string declared_names(const Program& program) {
  std::string names;
  for (const Buffer& b : program.buffers)
    if (b.role != Role::local) names += str(names.empty() ? "" : ", ", b.name);
  return names;
}

}  // namespace

Result<void> check_arguments(const Program& program, const Arguments& arguments) {
  TENON_OK(check_shapes(program, arguments));
  for (const Buffer& declared : program.buffers) {
    if (declared.role == Role::local) continue;
    const BufferArgument& argument = arguments.buffers.find(declared.name)->second;
    if (argument.data == nullptr && spread_of(argument.dims, declared.element)->bytes() > 0)
      return error(Code::invalid_argument, "program '", program.name, "': buffer '", declared.name,
                   "' is given at a null pointer");
  }
  return {};
}

Result<void> check_shapes(const Program& program, const Arguments& arguments) {
  for (const std::string& name : program.scalars)
    if (!arguments.scalars.contains(name))
      return error(Code::invalid_argument, "program '", program.name, "': scalar ", name, " is not given");
  if (arguments.scalars.size() > program.scalars.size())
    return error(Code::invalid_argument, "program '", program.name, "' has the scalars ", program.scalars, ", ",
                 arguments.scalars.size(), " are given");
  for (const Buffer& declared : program.buffers) {
    if (declared.role == Role::local) continue;
    const auto given = arguments.buffers.find(declared.name);
    if (given == arguments.buffers.end())
      return error(Code::invalid_argument, "program '", program.name, "': buffer '", declared.name, "' is not given");
    TENON_OK(check_dims(declared, given->second), "buffer '", declared.name, "'");
  }
  const auto declared = std::ranges::count_if(program.buffers, [](const Buffer& b) { return b.role != Role::local; });
  if (arguments.buffers.size() == static_cast<size_t>(declared)) return {};
  for (const auto& [name, argument] : arguments.buffers)
    if (!is_declared(program, name))
      return error(Code::not_found, "program '", program.name, "' declares no buffer '", name, "'; it has ",
                   declared_names(program));
  return {};
}

BoundBuffer bind_argument(const Buffer& declared, BufferId id, const BufferArgument& argument) {
  BoundBuffer buffer{argument.data, argument.dims, declared.element, std::make_shared<MemoryBlock>()};
  for (DimView& d : buffer.dims)
    if (d.fold >= d.extent) d.fold = 0;
  const Spread spread = spread_of(buffer.dims, declared.element).value();
  std::byte* const begin = argument.data == nullptr ? nullptr : argument.data + spread.low;  // null: shapes only
  *buffer.memory = {nullptr, begin, spread.bytes(), 1, id, false};
  return buffer;
}

int64_t iteration_count(int64_t begin, int64_t end, int64_t step) {
  const uint64_t span = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  return static_cast<int64_t>((span - 1) / static_cast<uint64_t>(step) + 1);
}

int64_t workers_of(const Loop& loop, int64_t limit, int64_t threads, int64_t iterations, bool inside_several) {
  if (loop.kind == LoopKind::serial || inside_several) return 1;
  return std::max<int64_t>(1, std::min({limit, threads, iterations}));
}

}  // namespace tenon::program::detail
