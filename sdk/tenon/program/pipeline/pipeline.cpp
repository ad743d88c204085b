#include <tenon/program/pipeline/pipeline.hpp>

#include <algorithm>

#include <tenon/program/ir/text.hpp>
#include <tenon/program/pipeline/pipeline_data_internal.hpp>
#include <tenon/support/str.hpp>

namespace tenon::program {

namespace {

bool has_dim(PipelineData& data, const BufferSpec& buffer, int dim, std::string_view what) {
  const bool inside = dim >= 0 && dim < buffer.rank;
  if (!inside) data.refuse(what, " of dim ", dim, " of buffer '", buffer.name, "', which has ", buffer.rank, " dims");
  return inside;
}

std::string index_name(PipelineData& data, const Expr& index, std::string_view what) {
  if (!index.is_symbol()) data.refuse(what, ": the index must be a symbol, it is ", index.to_string());
  return std::string(index.name());
}

}  // namespace

// --- buffers ---

const std::string& BufferRef::name() const { return data_->of(*this).name; }
int BufferRef::rank() const { return data_->of(*this).rank; }
Expr BufferRef::min(int dim) const { return min_of(name(), dim); }
Expr BufferRef::max(int dim) const { return max_of(name(), dim); }
Expr BufferRef::extent(int dim) const { return extent_of(name(), dim); }
Expr BufferRef::stride(int dim) const { return stride_of(name(), dim); }

BufferRef& BufferRef::store_at(const StageRef& stage, const Expr& index) {
  data_->of(*this).store_at = LoopName{stage.id_, index_name(*data_, index, str("store_at of buffer '", name(), "'"))};
  return *this;
}
BufferRef& BufferRef::store_root() {
  data_->of(*this).store_at = LoopName{};
  return *this;
}
BufferRef& BufferRef::store_in(Placement placement) {
  data_->of(*this).placement = placement;
  return *this;
}
BufferRef& BufferRef::store_in(std::string_view space) {
  data_->of(*this).space = space;
  return *this;
}
BufferRef& BufferRef::align(int dim, int64_t alignment) {
  BufferSpec& b = data_->of(*this);
  if (!has_dim(*data_, b, dim, "alignment")) return *this;
  if (alignment < 1) data_->refuse("alignment ", alignment, " of dim ", dim, " of buffer '", b.name, "' is below 1");
  b.dims[static_cast<size_t>(dim)].alignment = std::max<int64_t>(alignment, 1);
  return *this;
}
BufferRef& BufferRef::stride(int dim, const Expr& bytes) {
  BufferSpec& b = data_->of(*this);
  if (has_dim(*data_, b, dim, "stride")) b.dims[static_cast<size_t>(dim)].stride = bytes;
  return *this;
}
BufferRef& BufferRef::fold(int dim, const Expr& places) {
  BufferSpec& b = data_->of(*this);
  if (has_dim(*data_, b, dim, "fold")) b.dims[static_cast<size_t>(dim)].fold = places;
  return *this;
}
BufferRef& BufferRef::has_bounds(int dim, const Window& window) {
  BufferSpec& b = data_->of(*this);
  if (has_dim(*data_, b, dim, "bounds")) b.dims[static_cast<size_t>(dim)].bounds = window;
  return *this;
}

// --- stages ---

const std::string& StageRef::name() const { return data_->stages[static_cast<size_t>(id_)].name; }

StageRef& StageRef::reads(const BufferRef& buffer, Windows windows) {
  if (static_cast<int>(windows.size()) != buffer.rank())
    data_->refuse("stage '", name(), "' gives ", windows.size(), " windows of buffer '", buffer.name(), "', which has ",
                  buffer.rank(), " dims");
  data_->stages[static_cast<size_t>(id_)].reads.push_back({PipelineData::id(buffer), std::move(windows)});
  return *this;
}

StageRef& StageRef::writes(const BufferRef& buffer, std::vector<Expr> indices) {
  if (static_cast<int>(indices.size()) != buffer.rank())
    data_->refuse("stage '", name(), "' gives ", indices.size(), " indices of buffer '", buffer.name(), "', which has ",
                  buffer.rank(), " dims");
  WriteSpec write{PipelineData::id(buffer), {}};
  for (const Expr& index : indices) write.indices.push_back(index_name(*data_, index, str("stage '", name(), "'")));
  std::vector<std::string> sorted = write.indices;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    data_->refuse("stage '", name(), "' writes buffer '", buffer.name(), "' with index '", *twice, "' in two dims");
  data_->stages[static_cast<size_t>(id_)].writes.push_back(std::move(write));
  return *this;
}

StageRef& StageRef::scalars(std::vector<Expr> values) {
  data_->stages[static_cast<size_t>(id_)].scalars = std::move(values);
  return *this;
}
StageRef& StageRef::in_place(int read, int write) {
  data_->stages[static_cast<size_t>(id_)].in_place.emplace_back(read, write);
  return *this;
}
StageRef& StageRef::loops(std::vector<LoopOver> loops) {
  for (const LoopOver& loop : loops) index_name(*data_, loop.index, str("loops of stage '", name(), "'"));
  data_->stages[static_cast<size_t>(id_)].loops = std::move(loops);
  return *this;
}
StageRef& StageRef::compute_at(const StageRef& stage, const Expr& index) {
  data_->stages[static_cast<size_t>(id_)].compute_at =
      LoopName{stage.id_, index_name(*data_, index, str("compute_at of stage '", name(), "'"))};
  return *this;
}
StageRef& StageRef::compute_root() {
  data_->stages[static_cast<size_t>(id_)].compute_at = LoopName{};
  return *this;
}

// --- the pipeline ---

Pipeline::Pipeline(std::string_view name) : data_(std::make_unique<PipelineData>()) { data_->name = name; }
Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;

const std::string& Pipeline::name() const { return data_->name; }

BufferRef Pipeline::buffer(std::string_view name, ElementType element, int rank) {
  if (rank < 0 || rank > kMaxRank) data_->refuse("buffer '", name, "': rank ", rank, " is outside [0, ", kMaxRank, "]");
  for (const BufferSpec& other : data_->buffers)
    if (other.name == name) data_->refuse("two buffers are called '", name, "'");
  BufferSpec spec;
  spec.name = name;
  spec.element = element;
  spec.rank = std::clamp(rank, 0, kMaxRank);
  spec.dims.resize(static_cast<size_t>(spec.rank));
  data_->buffers.push_back(std::move(spec));
  return {data_.get(), static_cast<int>(data_->buffers.size()) - 1};
}

BufferRef Pipeline::constant(std::string_view name, ElementType element, int rank) {
  BufferRef b = buffer(name, element, rank);
  data_->of(b).constant = true;
  return b;
}

Expr Pipeline::scalar(std::string_view name) {
  if (!is_name(name)) data_->refuse(quote(name), " cannot be the name of a scalar: see program/ir/text.hpp");
  if (!std::ranges::count(data_->scalars, name)) data_->scalars.emplace_back(name);
  return Expr::symbol(name);
}

StageRef Pipeline::stage(std::string_view name, KernelHandle kernel) {
  if (!kernel) data_->refuse("stage '", name, "' has no kernel");
  StageSpec spec;
  spec.name = name;
  spec.kernel = std::move(kernel);
  data_->stages.push_back(std::move(spec));
  return {data_.get(), static_cast<int>(data_->stages.size()) - 1};
}

namespace {

std::vector<Expr> points(const Windows& map) {
  std::vector<Expr> out;
  for (const Window& w : map) out.push_back(w.first);
  return out;
}

// The windows of the map, restricted to `keep`.
Windows kept(const Windows& map, const Windows& keep) {
  Windows out = map;
  for (size_t d = 0; d < std::min(map.size(), keep.size()); ++d)
    out[d] = {max(map[d].first, keep[d].first), min(map[d].last, keep[d].last)};
  return out;
}

}  // namespace

StageRef Pipeline::copy(const BufferRef& source, Windows map, const BufferRef& destination, std::vector<Expr> indices) {
  StageSpec spec;
  spec.name = str("copy ", destination.name());
  spec.parts.push_back({points(map), {}, {}, 0});
  data_->stages.push_back(std::move(spec));
  StageRef stage(data_.get(), static_cast<int>(data_->stages.size()) - 1);
  return stage.reads(source, std::move(map)).writes(destination, std::move(indices));
}

StageRef Pipeline::padded_copy(const BufferRef& source, Windows map, const BufferRef& destination,
                               std::vector<Expr> indices, Windows keep, Padding padding) {
  if (keep.empty())
    for (int d = 0; d < source.rank(); ++d) keep.push_back(source.bounds(d));
  if (keep.size() != map.size())
    data_->refuse("padded copy to '", destination.name(), "' keeps ", keep.size(), " dims of ", map.size());
  StageRef stage = copy(source, kept(map, keep), destination, indices);
  StageSpec& spec = data_->stages.back();
  spec.parts[0] = {points(map), std::move(keep), {}, 0};
  spec.padding = std::move(padding.element);
  if (!spec.padding.empty() && static_cast<int>(spec.padding.size()) * 8 != data_->of(destination).element.bits())
    data_->refuse("padded copy to '", destination.name(), "': padding of ", spec.padding.size(),
                  " bytes for elements of ", data_->of(destination).element.bits(), " bits");
  if (padding.buffer) {
    spec.padding_read = 1;
    Windows same;
    if (padding.buffer->rank() > 0) same.assign(indices.begin(), indices.end());
    stage.reads(*padding.buffer, std::move(same));
  }
  return stage;
}

StageRef Pipeline::concatenate(const std::vector<BufferRef>& sources, const BufferRef& destination,
                               std::vector<Expr> indices, int dim, const std::vector<Expr>& offsets) {
  const size_t d = static_cast<size_t>(dim);
  StageRef stage =
      copy(sources.empty() ? destination : sources[0], Windows(indices.begin(), indices.end()), destination, indices);
  StageSpec& spec = data_->stages.back();
  spec.reads.clear();
  spec.parts.clear();
  if (sources.empty() || d >= indices.size() || offsets.size() != sources.size() + 1) {
    data_->refuse("concatenation to '", destination.name(), "': dim ", dim, " of ", indices.size(), ", ",
                  sources.size(), " sources, ", offsets.size(), " offsets (one more than sources)");
    return stage;
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    Windows map(indices.begin(), indices.end());
    map[d] = indices[d] - offsets[i];
    Windows keep = map;
    keep[d] = {0, offsets[i + 1] - offsets[i] - 1};
    spec.parts.push_back({points(map), {}, Window(offsets[i], offsets[i + 1] - 1), dim});
    stage.reads(sources[i], kept(map, keep));
  }
  return stage;
}

StageRef Pipeline::stack(const std::vector<BufferRef>& sources, const BufferRef& destination, std::vector<Expr> indices,
                         int dim) {
  std::vector<Expr> offsets{0};
  for (size_t i = 0; i < sources.size(); ++i) offsets.push_back(static_cast<int64_t>(i) + 1);
  const size_t d = static_cast<size_t>(dim);
  StageRef stage = copy(destination, Windows(indices.begin(), indices.end()), destination, indices);
  StageSpec& spec = data_->stages.back();
  spec.reads.clear();
  spec.parts.clear();
  if (sources.empty() || d >= indices.size()) {
    data_->refuse("stack to '", destination.name(), "': dim ", dim, " of ", indices.size(), ", ", sources.size(),
                  " sources");
    return stage;
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    Windows map(indices.begin(), indices.end());
    map.erase(map.begin() + dim);
    spec.parts.push_back({points(map), {}, Window(static_cast<int64_t>(i)), dim});
    stage.reads(sources[i], std::move(map));
  }
  return stage;
}

StageRef Pipeline::slice(const BufferRef& source, const BufferRef& destination, std::vector<Expr> indices, int dim,
                         const Expr& at) {
  Windows map(indices.begin(), indices.end());
  if (dim < 0 || dim > static_cast<int>(map.size()))
    data_->refuse("slice of '", source.name(), "': dim ", dim, " of ", map.size() + 1);
  else
    map.insert(map.begin() + dim, Window(at));
  return copy(source, std::move(map), destination, std::move(indices));
}

StageRef Pipeline::transpose(const BufferRef& source, const BufferRef& destination, std::vector<Expr> indices,
                             const std::vector<int>& order) {
  Windows map(static_cast<size_t>(source.rank()));
  for (int d = 0; d < source.rank(); ++d) map[static_cast<size_t>(d)] = Window(source.min(d));
  if (order.size() != indices.size())
    data_->refuse("transpose of '", source.name(), "': ", order.size(), " dims in the order, ", indices.size(),
                  " indices");
  for (size_t d = 0; d < std::min(order.size(), indices.size()); ++d) {
    if (order[d] < 0 || order[d] >= source.rank())
      data_->refuse("transpose of '", source.name(), "': dim ", order[d], " of ", source.rank());
    else
      map[static_cast<size_t>(order[d])] = Window(indices[d]);
  }
  return copy(source, std::move(map), destination, std::move(indices));
}

StageRef Pipeline::broadcast(const BufferRef& source, const BufferRef& destination, std::vector<Expr> indices) {
  Windows map;
  const int skipped = static_cast<int>(indices.size()) - source.rank();
  if (skipped < 0)
    data_->refuse("broadcast of '", source.name(), "' of rank ", source.rank(), " to rank ", indices.size());
  for (int d = 0; d < source.rank() && skipped >= 0; ++d)
    map.emplace_back(select(equal(source.extent(d), 1), source.min(d), indices[static_cast<size_t>(d + skipped)]));
  return copy(source, std::move(map), destination, std::move(indices));
}

Result<Program> Pipeline::build(const std::vector<BufferRef>& inputs, const std::vector<BufferRef>& outputs,
                                const std::vector<Expr>& scalars, const BuildOptions& options) const {
  if (!data_->errors.empty()) return Error(data_->errors.front()).with_frame(str("in pipeline '", data_->name, "'"));
  std::vector<int> in, out;
  for (const BufferRef& b : inputs) in.push_back(b.id_);
  for (const BufferRef& b : outputs) out.push_back(b.id_);
  std::vector<std::string> names;
  for (const Expr& s : scalars) {
    if (!s.is_symbol())
      return error(Code::invalid_argument, "a scalar of pipeline '", data_->name, "' is ", s.to_string(),
                   ", no symbol");
    names.emplace_back(s.name());
  }
  for (const std::string& s : data_->scalars)
    if (!std::ranges::count(names, s)) names.push_back(s);
  TENON_TRY(program, build_program(*data_, in, out, names, options), "in pipeline '", data_->name, "'");
  return program;
}

}  // namespace tenon::program
