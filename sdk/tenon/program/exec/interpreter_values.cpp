// The values of expressions and regions at the interpreter's current point.
#include <tenon/program/exec/interpreter_internal.hpp>

namespace tenon::program::detail {

Result<int64_t> Interpreter::evaluate(const Expr& e) {
  if (e.is_constant()) return e.constant();
  auto known = symbols_of_.find(e);
  if (known == symbols_of_.end()) known = symbols_of_.emplace(e, e.symbols()).first;
  TENON_TRY(values, values_of(known->second));
  return e.evaluate(values);
}

Result<SymbolValues> Interpreter::values_of(const std::vector<std::string>& names) {
  SymbolValues values;
  for (const std::string& name : names) {
    TENON_TRY(value, value_of(name));
    values.emplace(name, value);
  }
  return values;
}

Result<int64_t> Interpreter::value_of(const std::string& name) {
  if (const auto it = symbols_.find(name); it != symbols_.end()) return it->second;
  const auto meta = parse_meta(name);
  const auto id = meta ? program_.find_buffer(meta->buffer) : std::nullopt;
  if (!id) return error(Code::not_found, "the symbol ", name, " has no value here");
  TENON_TRY(buffer, lookup(*id));
  if (static_cast<size_t>(meta->dim) >= buffer->dims.size())
    return error(Code::invalid_argument, "the symbol ", name, ": the buffer has ", buffer->dims.size(), " dims");
  const DimView& d = buffer->dims[static_cast<size_t>(meta->dim)];
  switch (meta->meta) {
    case Meta::min: return d.min;
    case Meta::extent: return d.extent;
    case Meta::stride: return d.stride;
    case Meta::fold: return d.fold;
  }
  return error(Code::internal, "unknown metadata");
}

Result<RangeNumbers> Interpreter::evaluate(const Range& range) {
  TENON_TRY(min, evaluate(range.min));
  TENON_TRY(extent, evaluate(range.extent));
  return RangeNumbers{min, extent};
}

Result<std::vector<DimView>> Interpreter::evaluate(const std::vector<Dim>& dims, ElementType element) {
  std::vector<DimNumbers> numbers;
  for (const Dim& dim : dims) {
    DimNumbers& n = numbers.emplace_back();
    TENON_TRY(range, evaluate(Range{dim.min, dim.extent}));
    n.min = range.min;
    n.extent = range.extent;
    if (dim.stride) {
      TENON_TRY(stride, evaluate(*dim.stride));
      n.stride = stride;
    }
    if (dim.fold) {
      TENON_TRY(fold, evaluate(*dim.fold));
      n.fold = fold;
    }
  }
  return make_dims(numbers, element);
}

Result<const BoundBuffer*> Interpreter::lookup(BufferId id) {
  const Saved& buffer = buffers_[static_cast<size_t>(id)];
  if (!buffer) return error(Code::invalid_argument, "buffer '", name_of(id), "' is not visible here");
  if (buffer->memory->freed) return error(Code::invalid_argument, "buffer '", name_of(id), "' is used after its end");
  return &*buffer;
}

Result<BoundBuffer> Interpreter::resolve(const Region& region) {
  TENON_TRY(found, lookup(region.buffer));
  BoundBuffer buffer = *found;
  for (size_t d = 0; d < region.box.size(); ++d) {
    TENON_TRY(range, evaluate(region.box[d]));
    const DimView dim = buffer.dims[d];
    if (range.extent > 0 && (range.min < dim.min || range.min - dim.min > dim.extent - range.extent))
      return error(Code::invalid_argument, "dim ", d, ": the box has ", range.extent, " indices from ", range.min,
                   " on, the buffer '", name_of(region.buffer), "' has ", dim.extent, " from ", dim.min, " on");
    crop_dim(buffer, d, range);
  }
  if (buffer.memory->slots > 1) {
    if (worker_ >= buffer.memory->slots)
      return error(Code::invalid_argument, "worker ", worker_, " uses '", name_of(buffer.memory->root), "', which has ",
                   buffer.memory->slots, " slots");
    buffer.base += worker_ * buffer.memory->bytes;
  }
  TENON_OK(check_memory(region.buffer, buffer));
  return buffer;
}

Result<void> Interpreter::check_memory(BufferId id, const BoundBuffer& buffer) {
  const Spread spread = spread_of_box(buffer.view());
  const MemoryBlock& memory = *buffer.memory;
  const int64_t base = buffer.base - memory.begin - (memory.slots > 1 ? worker_ * memory.bytes : 0);
  if (spread.bytes() == 0 || (base + spread.low >= 0 && base + spread.high <= memory.bytes)) return {};
  return error(Code::invalid_argument, "buffer '", name_of(id), "' reaches from byte ", base + spread.low, " to ",
               base + spread.high, " of '", name_of(memory.root), "', which has ", memory.bytes);
}

}  // namespace tenon::program::detail
