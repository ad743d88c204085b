// The words of a call: their values for the extents of a plan, and for a piece of its work.
#include <algorithm>
#include <array>

#include <tenon/snippet/body/body_elements.hpp>
#include <tenon/snippet/body/params.hpp>
#include <tenon/support/check.hpp>

namespace tenon::snippet {
namespace {

struct Piece {
  int64_t begin = 0, extent = 0;
};
Piece piece_of(int64_t extent, int64_t parts, int64_t multiple, int64_t number) {
  const int64_t units = (extent + multiple - 1) / multiple;
  const auto border = [&](int64_t i) {
    // units * i / parts without overflow of int64
    return std::min(extent, (units / parts * i + units % parts * i / parts) * multiple);
  };
  return {border(number), border(number + 1) - border(number)};
}

}  // namespace

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
  const int last = joined_dim_ >= 0 ? LinearKernel::Joined{joined_dim_}.each() : blocks_.count();
  const size_t dims =
      joined_dim_ >= 0 || blocks_.inside ? static_cast<size_t>(last) + 1 : extents_.size() + (stretch_ >= 0 ? 1 : 0);
  if (about_loop && (word.dim < 0 || static_cast<size_t>(word.dim) >= dims))
    return error(Code::internal, "loop ", param.loop, " is over no dim of body '", body.name, "'");
  if (of_streams && param.streams < 1)
    return error(Code::internal, "loop ", param.loop, " of body '", body.name, "' has ", param.streams, " streams");
  if (param.kind == Kind::limit || param.kind == Kind::stream_limit) {
    const Loop& loop = kernel.loops[static_cast<size_t>(param.loop)];
    word.less = (loop.kind == Loop::Kind::tail ? 0 : loop.increment) + param.ahead;
  }
  if (param.kind == Kind::shift) word.times = kernel.loops[static_cast<size_t>(param.loop)].increment;
  if (param.kind == Param::Kind::count) {
    word.element = param.element;
    word.value = count_of(word, extents_);
  } else {
    word.value = value_of(word, walk_of(extents_));
  }
  if (param.known && *param.known != word.value)
    return error(Code::internal, "a param of body '", body.name, "' is ", word.value,
                 " in this call, and its code was made for ", *param.known);
  return word;
}

// Stride of the word's port along a dim, in bytes. Rows of a joined row are contiguous, as are blocks of columns, and
// the elements of a stretch.
int64_t CallPlan::stride_of(const Word& word, int dim) const {
  const std::vector<int64_t>& strides = ports_[static_cast<size_t>(word.port)].strides;
  if (static_cast<size_t>(dim) < strides.size()) return strides[static_cast<size_t>(dim)];
  if (stretch_ >= 0) return strides.back();
  if (blocks_.inside) return dim == blocks_.count() ? strides.back() * block_of(extents_.back()) : 0;
  return dim == LinearKernel::Joined{joined_dim_}.each() ? strides.back() * extents_.back() : 0;
}

int64_t CallPlan::count_of(const Word& word, const Dims& extents) const {
  return static_cast<int64_t>(lane_bits(word.element, static_cast<double>(element_count(reduced_, extents))));
}

int64_t CallPlan::value_of(const Word& word, const Walk& walk) const {
  const auto extent = [&](int dim) { return walk[static_cast<size_t>(dim)]; };
  const auto moved = [&](int dim) { return dim < 0 ? 0 : extent(dim) * stride_of(word, dim); };
  const auto stream = [&] {
    return stream_length({.streams = word.streams, .stream_least = word.stream_least}, extent(word.dim));
  };
  switch (word.kind) {
    case Param::Kind::stream_limit: return stream() - word.less;
    case Param::Kind::stream_rest: return stream() * (word.streams - 1);
    case Param::Kind::stream_step: return stream() * stride_of(word, word.dim);
    case Param::Kind::pointer: return 0;
    case Param::Kind::count: return word.value;
    case Param::Kind::limit:
      if (word.inner_dim >= 0 && extent(word.inner_dim) > word.longest) return -1;
      return extent(word.dim) - word.less;
    case Param::Kind::rewind: return -moved(word.dim);
    case Param::Kind::shift: return stride_of(word, word.dim) * word.times - moved(word.inner_dim);
  }
  return 0;
}

int64_t CallPlan::address_of(const Word& word, std::span<void* const> addresses, void* scratch) const {
  const size_t port = static_cast<size_t>(word.port);
  if (port < tensors_)
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(addresses[port])) + ports_[port].begin_bytes;
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(scratch)) +
         static_cast<int64_t>(scratch_offsets_[port - tensors_]);
}

std::optional<size_t> CallPlan::tensor_of(size_t word) const {
  const Word& w = words_[word];
  if (w.kind != Param::Kind::pointer || static_cast<size_t>(w.port) >= tensors_) return std::nullopt;
  return static_cast<size_t>(w.port);
}

void CallPlan::fill(std::span<int64_t> words, std::span<void* const> addresses, void* scratch) const {
  TENON_CHECK(block_ == 0 || blocks_.inside || extents_.back() <= block_,
              "a call of a kernel in blocks that is not cut");
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
  std::array<int64_t, kMaxDims> begins{};
  Dims extents = extents_;
  int64_t part = 0;
  for (size_t d = extents_.size(); d-- > 0;) {
    const Piece piece = piece_of(extents_[d], split.parts[d], split.multiple[d], chunk % split.parts[d]);
    begins[d] = piece.begin, extents[d] = piece.extent;
    if (static_cast<int>(d) == parted_dim_) part = chunk % split.parts[d];
    if (static_cast<int>(d) == joined_dim_) begins[d] /= each_;  // in joined rows, as its strides are
    chunk /= split.parts[d];
  }
  const Walk walk = walk_of(extents);
  for (size_t i = 0; i < words_.size(); ++i) {
    const Word& word = words_[i];
    if (word.kind != Param::Kind::pointer) {
      words[i] = word.kind == Param::Kind::count ? count_of(word, extents) : value_of(word, walk);
      continue;
    }
    if (static_cast<size_t>(word.port) >= tensors_) continue;  // each chunk starts at the beginning
    const Port& port = ports_[static_cast<size_t>(word.port)];
    for (size_t d = 0; d < extents_.size(); ++d) words[i] += begins[d] * port.strides[d];
    const bool folded =
        static_cast<size_t>(word.port) >= inputs_ && part > 0 && port.strides[static_cast<size_t>(parted_dim_)] == 0;
    if (folded) words[i] += part * port.bytes;
  }
}

}  // namespace tenon::snippet
