#include <tenon/program/exec/run.hpp>

#include <algorithm>

namespace tenon::program {

BufferArgument BufferArgument::of(Tensor& tensor, bool reversed) {
  BufferArgument argument{tensor.mutable_data(), {}};
  int64_t stride = tensor.element().bits() / 8;
  for (size_t i = tensor.dims().size(); i-- > 0;) {
    argument.dims.push_back({0, tensor.dims()[i], stride, 0});
    stride *= tensor.dims()[i];
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
    stride *= extents[d];
  }
  return argument;
}

}  // namespace tenon::program
