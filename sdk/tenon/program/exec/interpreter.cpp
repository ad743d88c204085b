#include <tenon/program/exec/interpreter.hpp>

#include <algorithm>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/exec/interpreter_internal.hpp>
#include <tenon/program/exec/locals_internal.hpp>

namespace tenon::program {
namespace detail {

Interpreter::Interpreter(const Program& program, const InterpretOptions& options, RunStatistics* statistics,
                         Tracer* tracer)
    : program_(program),
      options_(options),
      tracer_(tracer),
      counts_(statistics),
      random_(options.seed),
      buffers_(program.buffers.size()),
      queues_(program.tokens.size()) {}

Result<void> Interpreter::run(const Arguments& arguments) {
  TENON_OK(check_arguments(program_, arguments));
  symbols_ = arguments.scalars;
  symbols_[std::string(kThreadsSymbol)] = std::max<int64_t>(options_.threads, 1);
  for (size_t id = 0; id < buffers_.size(); ++id) {
    const Buffer& declared = program_.buffers[id];
    if (declared.role != Role::local)
      buffers_[id] = bind_argument(declared, static_cast<BufferId>(id), arguments.buffers.find(declared.name)->second);
  }
  TENON_OK(run_outermost(), "program '", program_.name, "'");
  return check_queues_empty("the program");
}

Result<void> Interpreter::run_outermost() {
  const auto locals = locals_by_first_use(program_);
  for (size_t i = 0; i < locals.end.size(); ++i) {
    for (const Allocation* a : locals.of(i)) {
      TENON_TRY(buffer, allocate(*a), "local '", name_of(a->buffer), "'");
      buffers_[static_cast<size_t>(a->buffer)] = std::move(buffer);
    }
    TENON_OK(run(outermost(program_)[i]));
  }
  for (const Allocation& a : program_.locals)
    if (const Saved& local = buffers_[static_cast<size_t>(a.buffer)]; local && !local->memory->freed)
      TENON_OK(free(*local->memory));
  return {};
}

Result<void> Interpreter::run(const Statement& statement) {
  if (statement.empty()) return {};
  TENON_OK(transfer_some());
  return statement.visit([this](const auto& s) { return run(s); });
}

Result<void> Interpreter::run(const Block& block) {
  for (const Statement& s : block.statements) TENON_OK(run(s));
  return {};
}

Result<void> Interpreter::run(const Let& let) {
  TENON_TRY(value, evaluate(let.value), "let ", let.symbol);
  symbols_[let.symbol] = value;
  auto result = run(let.body);
  symbols_.erase(let.symbol);
  return result;
}

Result<void> Interpreter::run(const Check& check) {
  TENON_TRY(holds, evaluate(check.condition), "a check");
  if (holds) return {};
  return error(Code::invalid_argument, check.message, " (", check.condition, " is 0)");
}

Result<void> Interpreter::run_with(BufferId id, BoundBuffer buffer, const Statement& body) {
  Saved& place = buffers_[static_cast<size_t>(id)];
  Saved before = std::exchange(place, std::move(buffer));
  auto result = run(body);
  buffers_[static_cast<size_t>(id)] = std::move(before);
  return result;
}

Result<void> Interpreter::run(const Crop& crop) {
  TENON_TRY(source, lookup(crop.source), "crop '", name_of(crop.buffer), "'");
  BoundBuffer buffer = *source;
  for (size_t d = 0; d < crop.box.size(); ++d) {
    if (!crop.box[d]) continue;
    TENON_TRY(range, evaluate(*crop.box[d]), "crop '", name_of(crop.buffer), "', dim ", d);
    crop_dim(buffer, d, range);
  }
  return run_with(crop.buffer, std::move(buffer), crop.body);
}

Result<void> Interpreter::run(const Slice& slice) {
  TENON_TRY(source, lookup(slice.source), "slice '", name_of(slice.buffer), "'");
  BoundBuffer buffer = *source;
  for (size_t d = slice.at.size(); d-- > 0;) {
    if (!slice.at[d]) continue;
    TENON_TRY(index, evaluate(*slice.at[d]), "slice '", name_of(slice.buffer), "', dim ", d);
    const DimView& dim = buffer.dims[d];
    if (index < dim.min || index > dim.max())
      return error(Code::invalid_argument, "slice '", name_of(slice.buffer), "', dim ", d, ": index ", index,
                   " is outside of ", dim.min, " .. ", dim.max(), " of '", name_of(slice.source), "'");
    slice_dim(buffer, d, index);
  }
  return run_with(slice.buffer, std::move(buffer), slice.body);
}

Result<void> Interpreter::run(const Transpose& transpose) {
  TENON_TRY(source, lookup(transpose.source), "transpose '", name_of(transpose.buffer), "'");
  BoundBuffer buffer = *source;
  buffer.dims.clear();
  std::vector<bool> taken(source->dims.size());
  for (const int d : transpose.order) {
    buffer.dims.push_back(source->dims[static_cast<size_t>(d)]);
    taken[static_cast<size_t>(d)] = true;
  }
  for (size_t d = 0; d < taken.size(); ++d)
    if (!taken[d]) buffer.base += source->dims[d].place(source->dims[d].min) * source->dims[d].stride;
  return run_with(transpose.buffer, std::move(buffer), transpose.body);
}

Result<void> Interpreter::run(const View& view) {
  TENON_TRY(source, lookup(view.source), "view '", name_of(view.buffer), "'");
  BoundBuffer buffer = *source;
  TENON_TRY(offset, evaluate(view.offset), "view '", name_of(view.buffer), "'");
  TENON_TRY(dims, evaluate(view.dims, program_.buffer(view.buffer).element), "view '", name_of(view.buffer), "'");
  buffer.base += offset;
  buffer.dims = std::move(dims);
  buffer.element = program_.buffer(view.buffer).element;
  return run_with(view.buffer, std::move(buffer), view.body);
}

Result<void> trace(const Program& program, const Arguments& shapes, int64_t threads, Tracer& tracer) {
  TENON_OK(check_shapes(program, shapes));
  // Memory that is never accessed, so that addresses are realistic.
  Arguments arguments = shapes;
  std::vector<AlignedBytes> memory;
  for (const Buffer& declared : program.buffers) {
    if (declared.role == Role::local) continue;
    BufferArgument& argument = arguments.buffers.find(declared.name)->second;
    TENON_TRY(spread, spread_of(argument.dims, declared.element));
    TENON_TRY(bytes, allocate_aligned(static_cast<size_t>(spread.bytes())), "buffer '", declared.name, "'");
    argument.data = bytes.get() - spread.low;
    memory.push_back(std::move(bytes));
  }
  InterpretOptions options;
  options.threads = threads;
  return Interpreter(program, options, nullptr, &tracer).run(arguments);
}

}  // namespace detail

Result<void> interpret(const Program& program, const Arguments& arguments, const InterpretOptions& options,
                       RunStatistics* statistics) {
  return detail::Interpreter(program, options, statistics).run(arguments);
}

}  // namespace tenon::program
