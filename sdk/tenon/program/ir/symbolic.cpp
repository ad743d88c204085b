#include <tenon/program/ir/symbolic_internal.hpp>

#include <algorithm>
#include <cstdlib>

namespace tenon::program::detail {
namespace {

Expr absolute(const Expr& e) { return max(e, -e); }

// `fold` where it has an effect, else 0.
Expr effective_fold(const Expr& fold, const Expr& extent) {
  if (fold.is_constant() && fold.constant() <= 0) return 0;
  return select(less(0, fold) * less(fold, extent), fold, 0);
}

}  // namespace

Expr place_of(const SymbolicDim& dim, const Expr& x) {
  const Expr linear = x - dim.min;
  if (is_unfolded(dim)) return linear;
  return select(less(0, dim.fold), mod(x, max(dim.fold, 1)), linear);
}

Expr places_of(const SymbolicDim& dim) {
  if (is_unfolded(dim)) return dim.extent;
  return select(less(0, dim.fold), dim.fold, dim.extent);
}

namespace {

// The same in numbers, which suffices for most allocations of graphs. Empty where they leave int64.
std::optional<SymbolicSpread> spread_of_numbers(const std::vector<SymbolicDim>& dims, ElementType element) {
  int64_t low = 0, high = element.bits() / 8;
  bool empty = false;
  for (const SymbolicDim& d : dims) {
    if (!is_unfolded(d) || !d.extent.is_constant() || !d.stride.is_constant()) return std::nullopt;
    int64_t reach;
    if (__builtin_mul_overflow(d.extent.constant() - 1, d.stride.constant(), &reach)) return std::nullopt;
    if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) return std::nullopt;
    empty = empty || d.extent.constant() <= 0;
  }
  int64_t bytes;
  if (empty) return SymbolicSpread{0, 0};
  if (__builtin_sub_overflow(high, low, &bytes)) return std::nullopt;
  return SymbolicSpread{bytes, -low};
}

// The stride of the dim after one with so many places; empty where it leaves int64.
std::optional<int64_t> next_stride(const SymbolicDim& dim) {
  if (!is_unfolded(dim) || !dim.extent.is_constant() || !dim.stride.is_constant()) return std::nullopt;
  int64_t stride;
  if (__builtin_mul_overflow(dim.stride.constant(), std::max<int64_t>(dim.extent.constant(), 1), &stride) ||
      stride == INT64_MIN)
    return std::nullopt;
  return std::abs(stride);
}

}  // namespace

SymbolicSpread spread_of(const std::vector<SymbolicDim>& dims, ElementType element) {
  if (const auto numbers = spread_of_numbers(dims, element)) return *numbers;
  Expr low = 0, high = element.bits() / 8, nonempty = 1;
  for (const SymbolicDim& d : dims) {
    const Expr reach = (places_of(d) - 1) * d.stride;
    low += min(reach, 0);
    high += max(reach, 0);
    nonempty *= less(0, d.extent);
  }
  return {select(nonempty, high - low, 0), select(nonempty, -low, 0)};
}

Scope::Scope(const Program& program) : program_(program), buffers_(program.buffers.size()) {}

const SymbolicBuffer* Scope::find(std::string_view name) const {
  if (ids_.empty()) {
    ids_.reserve(program_.buffers.size());
    for (size_t id = 0; id < program_.buffers.size(); ++id)
      ids_.emplace(program_.buffers[id].name, static_cast<BufferId>(id));
  }
  const auto id = ids_.find(name);
  return id == ids_.end() ? nullptr : find(id->second);
}

void Scope::declare_unknown() {
  define(std::string(kThreadsSymbol), Expr::symbol(kThreadsSymbol));
  assumptions_[std::string(kThreadsSymbol)] = {1, std::nullopt};
  for (const std::string& scalar : program_.scalars) define(scalar, Expr::symbol(scalar));
  for (size_t id = 0; id < buffers_.size(); ++id) {
    const Buffer& b = program_.buffers[id];
    if (b.role == Role::local) continue;
    SymbolicBuffer made{static_cast<BufferId>(id), 0, {}, false};
    for (int d = 0; d < b.rank; ++d) {
      made.dims.push_back({min_of(b.name, d), extent_of(b.name, d), stride_of(b.name, d), fold_of(b.name, d)});
      assumptions_[std::string(extent_of(b.name, d).name())] = {0, std::nullopt};
    }
    buffers_[id] = std::move(made);
  }
}

void Scope::define(const std::string& symbol, Expr value) { symbols_.insert_or_assign(symbol, std::move(value)); }

std::optional<SymbolicBuffer> Scope::exchange(BufferId id, std::optional<SymbolicBuffer> buffer) {
  return std::exchange(by_id(id), std::move(buffer));
}

const Expr* Scope::value_of(const std::string& symbol, Expr& scratch) const {
  if (const auto it = symbols_.find(symbol); it != symbols_.end()) return &it->second;
  const auto meta = parse_meta(symbol);
  const SymbolicBuffer* buffer = meta ? find(meta->buffer) : nullptr;
  if (buffer == nullptr || static_cast<size_t>(meta->dim) >= buffer->dims.size()) return nullptr;
  const SymbolicDim& dim = buffer->dims[static_cast<size_t>(meta->dim)];
  switch (meta->meta) {
    case Meta::min: scratch = dim.min; break;
    case Meta::extent: scratch = dim.extent; break;
    case Meta::stride: scratch = dim.stride; break;
    case Meta::fold: scratch = dim.fold; break;
  }
  return &scratch;
}

Expr Scope::resolve(const Expr& e) const {
  if (e.is_constant()) return e;
  Substitution map;
  Expr scratch;
  for (std::string& symbol : e.symbols())
    if (const Expr* value = value_of(symbol, scratch)) map.emplace(std::move(symbol), *value);
  return map.empty() ? e : e.substitute(map);
}

std::string Scope::first_unknown(const Expr& e) const {
  Expr scratch;
  for (std::string& symbol : e.symbols())
    if (value_of(symbol, scratch) == nullptr) return std::move(symbol);
  return {};
}

Expr Scope::place_in_ring(const Expr& x, const Expr& places) const {
  const Expr place = simplified(mod(x, max(places, 1)));
  if (place.is_constant() || aligned_.empty()) return place;
  const Expr aligned = simplified(mod(x.substitute(aligned_), max(places, 1)));
  return aligned.is_constant() ? aligned : place;
}

std::vector<SymbolicDim> Scope::dims_of(const std::vector<Dim>& dims, ElementType element) const {
  std::vector<SymbolicDim> result;
  Expr dense = element.bits() / 8;
  for (const Dim& d : dims) {
    SymbolicDim made{resolve(d.min), resolve(d.extent), d.stride ? resolve(*d.stride) : dense, 0};
    if (d.fold) made.fold = simplified(effective_fold(resolve(*d.fold), made.extent));
    const auto next = next_stride(made);
    dense = next ? Expr(*next) : absolute(made.stride) * max(places_of(made), 1);
    result.push_back(std::move(made));
  }
  return result;
}

SymbolicBuffer Scope::allocation(const Allocation& a) const {
  return {a.buffer, 0, dims_of(a.dims, program_.buffer(a.buffer).element), false};
}

// As crop_dim in exec/buffers_internal.hpp.
void Scope::narrow(SymbolicBuffer& buffer, size_t d, const Expr& min, const Expr& extent) const {
  SymbolicDim& dim = buffer.dims[d];
  if (is_unfolded(dim))
    buffer.offset += (min - dim.min) * dim.stride;
  else
    buffer.offset += select(less(0, dim.fold), 0, (min - dim.min) * dim.stride);
  dim.min = min;
  dim.extent = extent;
}

SymbolicBuffer Scope::crop(const Crop& s) const {
  SymbolicBuffer buffer = *find(s.source);
  for (size_t d = 0; d < s.box.size(); ++d) {
    if (!s.box[d]) continue;
    const SymbolicDim& dim = buffer.dims[d];
    const Expr wanted = resolve(s.box[d]->min);
    const Expr min = simplified(max(dim.min, wanted));
    const Expr end = tenon::min(dim.min + dim.extent, wanted + max(resolve(s.box[d]->extent), 0));
    narrow(buffer, d, min, simplified(max(end - min, 0)));
  }
  return buffer;
}

SymbolicBuffer Scope::region(const Region& r) const {
  SymbolicBuffer buffer = *find(r.buffer);
  for (size_t d = 0; d < r.box.size(); ++d)
    narrow(buffer, d, simplified(resolve(r.box[d].min)), simplified(max(resolve(r.box[d].extent), 0)));
  return buffer;
}

Box Scope::cropped(const Region& r) const {
  const SymbolicBuffer& buffer = *find(r.buffer);
  Box out;
  for (size_t d = 0; d < buffer.dims.size(); ++d) {
    const SymbolicDim& dim = buffer.dims[d];
    const Expr first = r.box.empty() ? dim.min : resolve(r.box[d].min);
    const Expr end = first + (r.box.empty() ? dim.extent : resolve(r.box[d].extent));
    const Expr begin = simplified(max(first, dim.min));
    out.push_back({begin, simplified(min(end, dim.min + dim.extent) - begin)});
  }
  return out;
}

SymbolicBuffer Scope::slice(const Slice& s) const {
  const SymbolicBuffer& source = *find(s.source);
  SymbolicBuffer buffer{source.root, source.offset, {}, source.general};
  for (size_t d = 0; d < s.at.size(); ++d) {
    if (s.at[d])
      buffer.offset += place_of(source.dims[d], resolve(*s.at[d])) * source.dims[d].stride;
    else
      buffer.dims.push_back(source.dims[d]);
  }
  return buffer;
}

SymbolicBuffer Scope::transpose(const Transpose& s) const {
  const SymbolicBuffer& source = *find(s.source);
  SymbolicBuffer buffer{source.root, source.offset, {}, source.general};
  std::vector<bool> taken(source.dims.size());
  for (const int d : s.order) {
    buffer.dims.push_back(source.dims[static_cast<size_t>(d)]);
    taken[static_cast<size_t>(d)] = true;
  }
  for (size_t d = 0; d < taken.size(); ++d)
    if (!taken[d]) buffer.offset += place_of(source.dims[d], source.dims[d].min) * source.dims[d].stride;
  return buffer;
}

SymbolicBuffer Scope::view(const View& s) const {
  const SymbolicBuffer& source = *find(s.source);
  return {source.root, source.offset + resolve(s.offset), dims_of(s.dims, program_.buffer(s.buffer).element), true};
}

}  // namespace tenon::program::detail
