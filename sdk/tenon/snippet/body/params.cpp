#include <tenon/snippet/body/params.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

#include <tenon/snippet/body/body_elements.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

constexpr size_t kScratchAlignment = 64;

Result<int64_t> extent_of(const BodyDim& dim, std::span<const Dims> shapes) {
  if (dim.sources.empty() && dim.extent.is_constant()) return dim.extent.constant();
  int64_t product = dim.factor;
  for (const ExtentSource& source : dim.sources) {
    if (source.port >= shapes.size() || source.dim < 0 || static_cast<size_t>(source.dim) >= shapes[source.port].size())
      return error(Code::invalid_argument, "it is dim ", source.dim, " of port ", source.port,
                   ", which the given shapes do not have");
    if (__builtin_mul_overflow(product, shapes[source.port][static_cast<size_t>(source.dim)], &product))
      return error(Code::invalid_argument, "it exceeds 2^63");
  }
  if (product < 0 || product % dim.divisor != 0)
    return error(Code::invalid_argument, "it would be ", product, " / ", dim.divisor);
  return product / dim.divisor;
}

}  // namespace

Result<Dims> space_extents(const Body& body, std::span<const Dims> shapes) {
  Dims extents;
  for (size_t d = 0; d < body.rank(); ++d) {
    TENON_TRY(extent, extent_of(body.dims[d], shapes), "the extent of dim ", d, " of body '", body.name, "'");
    extents.push_back(extent);
  }
  return extents;
}

// Rows that give two pieces for threads are not joined, so that they can be cut.
int64_t rows_to_join(int64_t rows, int64_t columns, int lanes) {
  constexpr int64_t kElements = 512, kLeastJoined = 6, kLine = 16;
  if (columns < 1 || columns >= 2 * kLineElements) return 1;
  const int64_t line = std::max<int64_t>(lanes, kLine), whole = line / std::gcd(columns, line);
  const int64_t wanted = (kElements / columns + whole - 1) / whole * whole;
  return std::max<int64_t>(std::min(wanted, rows / kLeastJoined / whole * whole), 1);
}

int64_t Split::chunks() const {
  int64_t product = 1;
  for (const int64_t count : parts) product *= count;
  return product;
}

Result<CallPlan> CallPlan::make(const Body& body, const LinearKernel& kernel, std::span<const Dims> shapes) {
  TENON_TRY(extents, space_extents(body, shapes));
  return make_for_extents(body, kernel, std::move(extents));
}

Result<CallPlan> CallPlan::make_for_extents(const Body& body, const LinearKernel& kernel, Dims extents) {
  if (extents.size() != body.rank())
    return error(Code::invalid_argument, "body '", body.name, "' has ", body.rank(), " dims, ", extents.size(),
                 " extents are given");
  CallPlan plan;
  plan.extents_ = std::move(extents);
  TENON_OK(plan.join_rows(kernel));
  plan.reduced_ = body.reduced_dims();
  plan.splittable_ = body.all_dims() & ~plan.reduced_;
  for (const BodyPort& input : body.inputs) plan.add_tensor(body, input);
  for (const BodyPort& output : body.outputs) {
    plan.add_tensor(body, output);
    plan.splittable_ &= body.values[static_cast<size_t>(output.value)].varies;
    plan.empty_ &= plan.ports_.back().bytes == 0;
  }
  plan.splittable_ &= ~kernel.whole;
  plan.inputs_ = body.inputs.size();
  plan.tensors_ = plan.ports_.size();
  if (kernel.blocks.dim >= 0 && static_cast<size_t>(kernel.blocks.dim) + 1 != body.rank())
    return error(Code::internal, "the blocks of linear kernel '", kernel.name, "' are along dim ", kernel.blocks.dim,
                 ", which is not the innermost of ", body.rank());
  for (size_t d = 0; d < body.rank(); ++d)
    if (body.dims[d].parted) plan.parted_dim_ = static_cast<int>(d);
  // A part of a contiguous stretch of dims is not a stretch, unless its outermost dim is cut.
  if (plan.parted_dim_ >= 0 && kernel.stretch >= 0 && plan.parted_dim_ > kernel.stretch)
    return error(Code::internal, "linear kernel '", kernel.name, "' walks dims from ", kernel.stretch,
                 " on as one stretch, and dim ", plan.parted_dim_, " is parted");
  plan.stretch_ = kernel.stretch;
  plan.blocks_ = kernel.blocks;
  plan.block_ = plan.block_for(kernel.blocks);
  plan.add_scratch(kernel);
  if (plan.joined_dim_ >= 0)
    for (Port& port : plan.ports_) port.strides[static_cast<size_t>(plan.joined_dim_)] *= plan.each_;
  for (const Param& param : kernel.params) {
    TENON_TRY(word, plan.word_of(body, kernel, param), "the params of linear kernel '", kernel.name, "'");
    plan.words_.push_back(word);
  }
  return plan;
}

Result<void> CallPlan::join_rows(const LinearKernel& kernel) {
  joined_dim_ = kernel.joined.rows;
  if (joined_dim_ < 0) return {};
  const auto rows = static_cast<size_t>(joined_dim_);
  if (rows + 2 != extents_.size())
    return error(Code::internal, "linear kernel '", kernel.name, "' joins rows of dim ", rows,
                 ", which is not the last but one of ", extents_.size());
  each_ = rows_to_join(extents_[rows], extents_[rows + 1], kernel.lanes);
  return {};
}

CallPlan::Walk CallPlan::walk_of(const Dims& extents) const {
  Walk walk{};
  std::copy(extents.begin(), extents.end(), walk.begin());
  const auto at = [&](int dim) -> int64_t& { return walk[static_cast<size_t>(dim)]; };
  if (blocks_.inside) {
    const int64_t columns = extents.back(), block = block_of(columns);
    at(blocks_.count()) = block == 0 ? 0 : columns / block;
    at(blocks_.block()) = at(blocks_.count()) == 0 ? 0 : block;
    at(blocks_.rest()) = block == 0 ? 0 : columns % block;
  }
  if (stretch_ >= 0)
    at(static_cast<int>(extents.size())) =
        std::accumulate(extents.begin() + stretch_, extents.end(), int64_t{1}, std::multiplies<>());
  if (joined_dim_ < 0) return walk;
  const LinearKernel::Joined joined{joined_dim_};
  const int64_t rows = at(joined.rows), row = at(joined.rows + 1);
  at(joined.rows) = rows / each_;
  at(joined.rows + 1) = row * each_;
  at(joined.row()) = row;
  at(joined.rest()) = rows % each_ * row;
  at(joined.each()) = each_;
  return walk;
}

namespace {

// Whether the tensor has a cut with unknown extents, which only some extents satisfy.
bool cuts_open_extents(const Body& body, const BodyPort& port) {
  return std::ranges::any_of(port.cuts, [&](const PortCut& cut) {
    for (auto d = static_cast<size_t>(cut.dim); d < body.rank(); ++d)
      if (!body.dims[d].extent.is_constant()) return true;
    return false;
  });
}

}  // namespace

// For an unknown extent: the words that are equal for two values of it.
Result<void> CallPlan::write_known(const Body& body, LinearKernel& kernel, DimSet whole) {
  kernel.whole = whole;
  if (body.rank() == 0 || !body.dims.back().extent.is_constant() || !(body.dims.back().reduced || whole != 0))
    return {};
  const auto plan_for = [&](int64_t unknown) {
    Dims extents;
    for (const BodyDim& dim : body.dims)
      extents.push_back(dim.extent.is_constant() ? dim.extent.constant() : unknown++);
    return make_for_extents(body, kernel, std::move(extents));
  };
  TENON_TRY(plan, plan_for(/*unknown=*/5));
  TENON_TRY(other, plan_for(/*unknown=*/20));
  std::vector<char> open(plan.ports_.size(), 0);
  for (size_t i = 0; i < plan.tensors_; ++i) {
    const size_t inputs = body.inputs.size();
    open[i] = cuts_open_extents(body, i < inputs ? body.inputs[i] : body.outputs[i - inputs]);
  }
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const Word& word = plan.words_[i];
    if (word.port >= 0 && open[static_cast<size_t>(word.port)]) continue;
    if (plan.is_same_for_chunks(word) && word.value == other.words_[i].value) kernel.params[i].known = word.value;
  }
  return {};
}

// Whether it is independent of extents that split() and split_fold() cut, and of those of scratch memory, which may be
// a chunk's.
bool CallPlan::is_same_for_chunks(const Word& word) const {
  const auto is_whole = [&](int dim) { return dim < 0 || (dim != parted_dim_ && !(splittable_ >> dim & 1)); };
  const bool of_tensor = word.port < static_cast<int>(tensors_);
  switch (word.kind) {
    case Param::Kind::count: return parted_dim_ < 0;
    case Param::Kind::limit: return word.inner_dim < 0 && is_whole(word.dim);
    case Param::Kind::rewind: return of_tensor && is_whole(word.dim);
    case Param::Kind::shift: return of_tensor && is_whole(word.inner_dim);
    default: return false;
  }
}

void CallPlan::add_tensor(const Body& body, const BodyPort& port) {
  PortLayout layout = layout_of(port, body.values[static_cast<size_t>(port.value)].varies, extents_);
  ports_.push_back({.strides = std::move(layout.strides),
                    .bytes = layout.bytes,
                    .element_bytes = port.element.bits() / 8,
                    .begin_bytes = layout.begin_bytes});
}

void CallPlan::add_scratch_port(const LinearKernel::Scratch& scratch, const Dims& extents) {
  PortLayout layout = layout_of({.element = scratch.element}, scratch.dims, extents);
  for (int64_t& stride : layout.strides) stride *= scratch.width;
  ports_.push_back({.strides = std::move(layout.strides),
                    .bytes = layout.bytes * scratch.width,
                    .element_bytes = scratch.element.bits() / 8});
}

// Bytes of all ports in one column of the innermost dim, at one point of the outer kept dims.
int64_t CallPlan::column_bytes() const {
  int64_t all = 0;
  for (size_t i = 0; i < tensors_; ++i) {
    const std::vector<int64_t>& strides = ports_[i].strides;
    int64_t bytes = strides.back();  // 0: it has no such dim
    for (size_t d = 0; d + 1 < strides.size(); ++d)
      if (strides[d] != 0 && (reduced_ >> d & 1) != 0) bytes *= extents_[d];
    all += bytes;
  }
  return all;
}

double CallPlan::folded_bytes(int64_t columns) const {
  double all = 0;
  for (size_t i = 0; i < tensors_; ++i) {
    double bytes = ports_[i].element_bytes;
    for (size_t d = 0; d < extents_.size(); ++d) {
      const bool folded = (reduced_ >> d & 1) != 0, last = d + 1 == extents_.size();
      if (ports_[i].strides[d] != 0 && (folded || last))
        bytes *= static_cast<double>(folded ? extents_[d] : std::min(extents_[d], columns));
    }
    all += bytes;
  }
  return all;
}

// Most elements of the innermost dim in a chunk; 0: any number.
int64_t CallPlan::block_for(const LinearKernel::Blocks& blocks) {
  if (blocks.sizes.empty() || empty_ || !(blocks.inside || (splittable_ >> blocks.dim & 1))) return 0;
  const double bytes = static_cast<double>(column_bytes());
  for (const LinearKernel::Blocks::Size& size : blocks.sizes) {
    blocks_are_near_ = bytes * static_cast<double>(size.elements) <= static_cast<double>(size.within_bytes);
    if (blocks_are_near_) return size.elements;
  }
  return blocks.sizes.back().elements;
}

void CallPlan::add_scratch(const LinearKernel& kernel) {
  Dims extents = extents_;
  if (block_ > 0) extents.back() = std::min(extents.back(), block_);
  for (const LinearKernel::Scratch& scratch : kernel.scratch) {
    Dims own = extents;
    if (joined_dim_ >= 0 && !(scratch.dims >> joined_dim_ & 1)) own.back() *= each_;
    add_scratch_port(scratch, own);
    scratch_offsets_.push_back(scratch_bytes_);
    const auto bytes = static_cast<size_t>(ports_.back().bytes + scratch.more_bytes);
    scratch_bytes_ += (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }
}

size_t CallPlan::port_bytes(size_t port) const { return static_cast<size_t>(ports_[port].bytes); }

bool CallPlan::rows_aligned(size_t port, size_t align_bytes) const {
  const std::vector<int64_t>& strides = ports_[port].strides;
  if (strides.empty() || strides.back() == 0) return true;
  if (ports_[port].begin_bytes % static_cast<int64_t>(align_bytes) != 0) return false;
  for (size_t d = 0; d + 1 < strides.size(); ++d)
    if (extents_[d] > 1 && strides[d] % static_cast<int64_t>(align_bytes) != 0) return false;
  return true;
}

bool CallPlan::parts_aligned(size_t align_bytes) const {
  return std::all_of(ports_.begin() + static_cast<std::ptrdiff_t>(inputs_),
                     ports_.begin() + static_cast<std::ptrdiff_t>(tensors_), [&](const Port& output) {
                       const bool single = std::ranges::all_of(output.strides, [](int64_t s) { return s == 0; });
                       return single || output.bytes % static_cast<int64_t>(align_bytes) == 0;
                     });
}

int64_t CallPlan::pieces(int64_t threads, int64_t each) const {
  constexpr int64_t kBlocks = 16;
  if (threads <= 1) return 1;
  if (!blocks_.inside || block_ == 0) return threads * each;
  int64_t blocks = extents_.back() / block_;
  for (size_t d = 0; d + 1 < extents_.size(); ++d)
    if ((reduced_ >> d & 1) == 0) blocks *= extents_[d];
  return std::clamp(blocks / kBlocks, threads, threads * each);
}

Split CallPlan::split(int64_t parts, int64_t min_elements) const {
  Split split{.parts = std::vector<int64_t>(extents_.size(), 1), .multiple = std::vector<int64_t>(extents_.size(), 1)};
  if (empty_) return split;
  double elements = 1;
  for (const int64_t extent : extents_) elements *= static_cast<double>(extent);
  int64_t wanted = std::min(
      parts, static_cast<int64_t>(std::min(elements / static_cast<double>(std::max<int64_t>(min_elements, 1)), 1e9)));
  for (size_t d = 0; d < extents_.size(); ++d) {
    if (!(splittable_ >> d & 1)) continue;
    if (d + 1 == extents_.size() && block_ > 0 && !blocks_.inside) {
      cut_blocks(split, std::max<int64_t>(wanted, 1));
      break;
    }
    if (wanted <= 1) continue;
    if (d + 1 == extents_.size()) split.multiple[d] = std::max(block_, kLineElements);
    split.parts[d] = std::clamp<int64_t>(extents_[d] / split.multiple[d], 1, wanted);
    wanted /= split.parts[d];
  }
  return split;
}

Split CallPlan::split_fold(int64_t parts) const {
  Split split = this->split(/*parts=*/1, /*min_elements=*/1);
  if (empty_ || parted_dim_ < 0) return split;
  const auto d = static_cast<size_t>(parted_dim_);
  if (parted_dim_ == joined_dim_) split.multiple[d] = each_;
  if (d + 1 == extents_.size()) split.multiple[d] = kLineElements;
  split.parts[d] = parts;
  return split;
}

// Cuts the innermost dim so that there are at least `wanted` blocks if it has as many lines.
void CallPlan::cut_blocks(Split& split, int64_t wanted) const {
  const auto up = [](int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple; };
  const int64_t extent = extents_.back(), lines = up(up(extent, wanted), kLineElements);
  const int64_t block = std::min(block_, lines * kLineElements);
  split.multiple.back() = block;
  split.parts.back() = up(extent, block);
}

}  // namespace tenon::snippet
