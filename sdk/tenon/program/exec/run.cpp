#include <tenon/program/exec/run.hpp>

#include <algorithm>

namespace tenon::program {
namespace {

// Wraps beyond 2^63: with an extent of 0 no stride matters, and a buffer that is really so large cannot be allocated.
int64_t next_stride(int64_t stride, int64_t extent) {
  return static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(extent));
}

}  // namespace

BufferArgument BufferArgument::of(Tensor& tensor, bool reversed) {
  BufferArgument argument{tensor.mutable_data(), {}};
  int64_t stride = tensor.element().bits() / 8;
  for (size_t i = tensor.dims().size(); i-- > 0;) {
    argument.dims.push_back({0, tensor.dims()[i], stride, 0});
    stride = next_stride(stride, tensor.dims()[i]);
  }
  if (!reversed) std::reverse(argument.dims.begin(), argument.dims.end());
  return argument;
}

BufferArgument BufferArgument::dense(void* data, ElementType element, const std::vector<int64_t>& extents,
                                     const std::vector<int64_t>& mins) {
  BufferArgument argument{static_cast<std::byte*>(data), {}};
  int64_t stride = element.bits() / 8;
  for (size_t d = 0; d < extents.size(); ++d) {
    argument.dims.push_back({d < mins.size() ? mins[d] : 0, extents[d], stride, 0});
    stride = next_stride(stride, extents[d]);
  }
  return argument;
}

}  // namespace tenon::program
