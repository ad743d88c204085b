#include <tenon/snippet/params.hpp>

#include <algorithm>
#include <array>
#include <bit>

#include <tenon/support/check.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

constexpr size_t kScratchAlignment = 64;
// Where tensors are beyond the second-level cache, rows of more elements do not go several at once: prefetchers follow
// single rows better.
constexpr int64_t kLongestFarRow = 256, kNearBytes = int64_t{1} << 20;

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

int64_t lane_bits(int64_t value, ElementType element) {
  if (element == kF32) return std::bit_cast<int32_t>(static_cast<float>(value));
  if (element == kF64) return std::bit_cast<int64_t>(static_cast<double>(value));
  return value;
}

struct Piece {
  int64_t begin = 0, extent = 0;
};
Piece piece_of(int64_t extent, int64_t parts, int64_t multiple, int64_t number) {
  const int64_t units = (extent + multiple - 1) / multiple;
  const auto border = [&](int64_t i) {
    // units * i / parts without leaving int64
    return std::min(extent, (units / parts * i + units % parts * i / parts) * multiple);
  };
  return {border(number), border(number + 1) - border(number)};
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
  plan.splittable_ = body.all_dims() & ~body.reduced_dims();
  for (const BodyPort& input : body.inputs)
    plan.add_port(body.values[static_cast<size_t>(input.value)].varies, input.element, 1, plan.extents_);
  for (const BodyPort& output : body.outputs) {
    const DimSet varies = body.values[static_cast<size_t>(output.value)].varies;
    plan.add_port(varies, output.element, 1, plan.extents_);
    plan.splittable_ &= varies;
    plan.empty_ &= plan.ports_.back().bytes == 0;
  }
  plan.tensors_ = plan.ports_.size();
  plan.reduced_ = body.reduced_dims();
  if (kernel.blocks.dim >= 0 && static_cast<size_t>(kernel.blocks.dim) + 1 != body.rank())
    return error(Code::internal, "the blocks of linear kernel '", kernel.name, "' are along dim ", kernel.blocks.dim,
                 ", which is not the innermost of ", body.rank());
  plan.block_ = plan.block_for(kernel.blocks);
  int64_t bytes = 0;
  for (const Port& port : plan.ports_) bytes += port.bytes;
  plan.is_far_ = bytes > kNearBytes;
  plan.add_scratch(kernel);
  for (const Param& param : kernel.params) {
    TENON_TRY(word, plan.word_of(body, kernel, param), "the params of linear kernel '", kernel.name, "'");
    plan.words_.push_back(word);
  }
  return plan;
}

void CallPlan::add_port(DimSet varies, ElementType element, int64_t width, const Dims& extents) {
  Port port{.strides = std::vector<int64_t>(extents.size(), 0), .bytes = width * (element.bits() / 8)};
  for (size_t d = extents.size(); d-- > 0;) {
    if (!(varies >> d & 1)) continue;
    port.strides[d] = port.bytes;
    port.bytes *= extents[d];
  }
  ports_.push_back(std::move(port));
}

// What ports have in one column of the innermost dim, at one point of the kept dims around it.
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

// Elements of the innermost dim at most in a chunk; 0: any number.
int64_t CallPlan::block_for(const LinearKernel::Blocks& blocks) const {
  if (blocks.sizes.empty() || empty_ || !(splittable_ >> blocks.dim & 1)) return 0;
  const double bytes = static_cast<double>(column_bytes());
  for (const LinearKernel::Blocks::Size& size : blocks.sizes)
    if (bytes * static_cast<double>(size.elements) <= static_cast<double>(size.within_bytes)) return size.elements;
  return blocks.sizes.back().elements;
}

void CallPlan::add_scratch(const LinearKernel& kernel) {
  Dims extents = extents_;
  if (block_ > 0) extents.back() = std::min(extents.back(), block_);
  for (const LinearKernel::Scratch& scratch : kernel.scratch) {
    add_port(scratch.dims, scratch.element, scratch.width, extents);
    scratch_offsets_.push_back(scratch_bytes_);
    const size_t bytes = static_cast<size_t>(ports_.back().bytes);
    scratch_bytes_ += (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }
}

Result<CallPlan::Word> CallPlan::word_of(const Body& body, const LinearKernel& kernel, const Param& param) const {
  using Kind = Param::Kind;
  Word word{.kind = param.kind,
            .port = param.port,
            .longest = param.longest,
            .streams = param.streams,
            .stream_least = param.stream_least};
  const auto dim_of = [&](LoopId loop) {
    return loop < 0 || static_cast<size_t>(loop) >= kernel.loops.size() ? -1
                                                                        : kernel.loops[static_cast<size_t>(loop)].dim;
  };
  word.dim = dim_of(param.loop), word.inner_dim = dim_of(param.inner);
  const bool of_streams =
      param.kind == Kind::stream_limit || param.kind == Kind::stream_step || param.kind == Kind::stream_rest;
  const bool about_port =
      param.kind != Kind::limit && param.kind != Kind::count && (!of_streams || param.kind == Kind::stream_step);
  const bool about_loop = param.kind != Param::Kind::pointer && param.kind != Param::Kind::count;
  if (about_port && (param.port < 0 || static_cast<size_t>(param.port) >= ports_.size()))
    return error(Code::internal, "port ", param.port, " is not among the ", ports_.size(), " of body '", body.name,
                 "'");
  if (about_loop && (word.dim < 0 || static_cast<size_t>(word.dim) >= extents_.size()))
    return error(Code::internal, "loop ", param.loop, " is over no dim of body '", body.name, "'");
  if (of_streams && param.streams < 1)
    return error(Code::internal, "loop ", param.loop, " of body '", body.name, "' has ", param.streams, " streams");
  if (param.kind == Kind::limit || param.kind == Kind::stream_limit) {
    const Loop& loop = kernel.loops[static_cast<size_t>(param.loop)];
    word.less = loop.kind == Loop::Kind::tail ? 0 : loop.increment;
  }
  if (param.kind == Kind::shift) word.times = kernel.loops[static_cast<size_t>(param.loop)].increment;
  if (param.kind == Param::Kind::count) {
    int64_t count = 1;
    for (size_t d = 0; d < body.rank(); ++d)
      if (body.dims[d].reduced) count *= extents_[d];
    word.value = lane_bits(count, param.element);
  } else {
    word.value = value_of(word, extents_.data());
  }
  return word;
}

int64_t CallPlan::value_of(const Word& word, const int64_t* extents) const {
  const auto moved = [&](int dim) {
    const size_t d = static_cast<size_t>(dim);
    return dim < 0 ? 0 : extents[d] * ports_[static_cast<size_t>(word.port)].strides[d];
  };
  const auto stream = [&] {
    return stream_length({.streams = word.streams, .stream_least = word.stream_least},
                         extents[static_cast<size_t>(word.dim)]);
  };
  const auto longest = [&] { return is_far_ ? std::min(word.longest, kLongestFarRow) : word.longest; };
  const auto stride = [&](int dim) { return ports_[static_cast<size_t>(word.port)].strides[static_cast<size_t>(dim)]; };
  switch (word.kind) {
    case Param::Kind::stream_limit: return stream() - word.less;
    case Param::Kind::stream_rest: return stream() * (word.streams - 1);
    case Param::Kind::stream_step: return stream() * stride(word.dim);
    case Param::Kind::pointer: return 0;
    case Param::Kind::count: return word.value;
    case Param::Kind::limit:
      if (word.inner_dim >= 0 && extents[word.inner_dim] > longest()) return -1;
      return extents[static_cast<size_t>(word.dim)] - word.less;
    case Param::Kind::rewind: return -moved(word.dim);
    case Param::Kind::shift: return stride(word.dim) * word.times - moved(word.inner_dim);
  }
  return 0;
}

int64_t CallPlan::address_of(const Word& word, std::span<void* const> addresses, void* scratch) const {
  const size_t port = static_cast<size_t>(word.port);
  if (port < tensors_) return static_cast<int64_t>(reinterpret_cast<intptr_t>(addresses[port]));
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(scratch)) +
         static_cast<int64_t>(scratch_offsets_[port - tensors_]);
}

size_t CallPlan::port_bytes(size_t port) const { return static_cast<size_t>(ports_[port].bytes); }

bool CallPlan::rows_aligned(size_t port, size_t align_bytes) const {
  const std::vector<int64_t>& strides = ports_[port].strides;
  if (strides.empty() || strides.back() == 0) return true;
  for (size_t d = 0; d + 1 < strides.size(); ++d)
    if (extents_[d] > 1 && strides[d] % static_cast<int64_t>(align_bytes) != 0) return false;
  return true;
}

std::optional<size_t> CallPlan::tensor_of(size_t word) const {
  const Word& w = words_[word];
  if (w.kind != Param::Kind::pointer || static_cast<size_t>(w.port) >= tensors_) return std::nullopt;
  return static_cast<size_t>(w.port);
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
    if (d + 1 == extents_.size() && block_ > 0) {
      cut_blocks(split, std::max<int64_t>(wanted, 1));
      break;
    }
    if (wanted <= 1) continue;
    if (d + 1 == extents_.size()) split.multiple[d] = kLineElements;
    split.parts[d] = std::clamp<int64_t>(extents_[d] / split.multiple[d], 1, wanted);
    wanted /= split.parts[d];
  }
  return split;
}

// The innermost dim, so that there are `wanted` blocks at least if it has as many lines.
void CallPlan::cut_blocks(Split& split, int64_t wanted) const {
  const auto up = [](int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple; };
  const int64_t extent = extents_.back(), lines = up(up(extent, wanted), kLineElements);
  const int64_t block = std::min(block_, lines * kLineElements);
  split.multiple.back() = block;
  split.parts.back() = up(extent, block);
}

void CallPlan::fill(std::span<int64_t> words, std::span<void* const> addresses, void* scratch) const {
  TENON_CHECK(block_ == 0 || extents_.back() <= block_, "a call of a kernel in blocks that is not cut");
  fill_whole(words, addresses, scratch);
}

void CallPlan::fill_whole(std::span<int64_t> words, std::span<void* const> addresses, void* scratch) const {
  TENON_CHECK(words.size() >= words_.size() && addresses.size() >= tensors_, "a call with ", words.size(), " of ",
              words_.size(), " words and ", addresses.size(), " of ", tensors_, " addresses");
  for (size_t i = 0; i < words_.size(); ++i)
    words[i] = words_[i].kind == Param::Kind::pointer ? address_of(words_[i], addresses, scratch) : words_[i].value;
}

void CallPlan::fill(std::span<int64_t> words, std::span<void* const> addresses, void* scratch, const Split& split,
                    int64_t chunk) const {
  fill_whole(words, addresses, scratch);
  std::array<int64_t, kMaxDims> begins{}, extents{};
  for (size_t d = extents_.size(); d-- > 0;) {
    const Piece piece = piece_of(extents_[d], split.parts[d], split.multiple[d], chunk % split.parts[d]);
    begins[d] = piece.begin, extents[d] = piece.extent;
    chunk /= split.parts[d];
  }
  for (size_t i = 0; i < words_.size(); ++i) {
    const Word& word = words_[i];
    if (word.kind != Param::Kind::pointer) {
      words[i] = value_of(word, extents.data());
      continue;
    }
    if (static_cast<size_t>(word.port) >= tensors_) continue;  // each chunk begins at the begin
    for (size_t d = 0; d < extents_.size(); ++d)
      words[i] += begins[d] * ports_[static_cast<size_t>(word.port)].strides[d];
  }
}

}  // namespace tenon::snippet
