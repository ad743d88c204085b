#include <tenon/reference/stack.hpp>

#include <tenon/reference/elements.hpp>

namespace tenon {
namespace {

Result<Tensor> with_axis(const Tensor& tensor, size_t axis) {
  Dims dims = tensor.dims();
  dims.insert(dims.begin() + static_cast<int64_t>(axis), 1);
  return tensor.reshaped(std::move(dims));
}

}  // namespace

Result<Tensor> concatenate(ParallelFor& parallel, std::span<const Tensor> parts, size_t axis) {
  Dims dims = parts[0].dims();
  dims[axis] = 0;
  for (const Tensor& part : parts) {
    bool fits = part.element() == parts[0].element() && part.dims().size() == dims.size();
    for (size_t d = 0; fits && d < dims.size(); ++d) fits = d == axis || part.dim(d) == dims[d];
    if (!fits) {
      return error(Code::invalid_argument, part, " does not fit behind ", parts[0], " along axis ", axis);
    }
    dims[axis] += part.dim(axis);
  }
  TENON_TRY(out, SpreadOutput::make(parts[0].element(), dims));
  const Dims strides = row_major_strides(dims);
  int64_t position = 0;
  for (const Tensor& part : parts) {
    TENON_TRY(in, spread(part));
    copy_elements(parallel, in, {0, row_major_strides(in.dims())}, out.tensor(), {position * strides[axis], strides},
                  in.dims());
    position += in.dim(axis);
  }
  TENON_OK(out.close());
  return out.result();
}

Result<Tensor> stack(ParallelFor& parallel, std::span<const Tensor> parts, size_t axis) {
  std::vector<Tensor> slices;
  for (const Tensor& part : parts) {
    TENON_TRY(slice, with_axis(part, axis));
    slices.push_back(std::move(slice));
  }
  return concatenate(parallel, slices, axis);
}

Result<Tensor> slices(ParallelFor& parallel, const Tensor& tensor, size_t axis, int64_t begin, int64_t length) {
  TENON_TRY(in, spread(tensor));
  Dims dims = tensor.dims();
  dims[axis] = length;
  TENON_TRY(out, SpreadOutput::make(tensor.element(), dims));
  const Dims strides = row_major_strides(tensor.dims());
  copy_elements(parallel, in, {begin * strides[axis], strides}, out.tensor(), {0, row_major_strides(dims)}, dims);
  TENON_OK(out.close());
  return out.result();
}

Result<Tensor> slice_at(ParallelFor& parallel, const Tensor& tensor, size_t axis, int64_t index) {
  TENON_TRY(slice, slices(parallel, tensor, axis, index, 1));
  Dims dims = tensor.dims();
  dims.erase(dims.begin() + static_cast<int64_t>(axis));
  return slice.reshaped(std::move(dims));
}

}  // namespace tenon
