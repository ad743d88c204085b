#include <tenon/irgen/dims.hpp>

#include <algorithm>

namespace tenon::irgen {

Result<std::vector<program::Dim>> program_dims(const Shape& shape) {
  if (!shape.ranked()) return error(Code::invalid_argument, "a shape of unknown rank has no dims");
  std::vector<program::Dim> dims;
  dims.reserve(shape.dims().size());
  for (size_t d = shape.dims().size(); d-- > 0;) {
    if (!shape[d].known()) return error(Code::invalid_argument, "dim ", d, " of ", shape.to_string(), " is not known");
    dims.push_back({0, shape[d].expr(), std::nullopt, std::nullopt});
  }
  return dims;
}

program::Box program_box(const Box& box) {
  program::Box ranges;
  for (size_t d = box.size(); d-- > 0;) ranges.push_back({box[d].min, box[d].max - box[d].min + 1});
  return ranges;
}

program::Box program_box(const StaticBox& box) { return program_box(to_box(box)); }

Dims tensor_dims(const program::BufferView& view) {
  Dims dims;
  for (size_t d = view.dims.size(); d-- > 0;) dims.push_back(view.dims[d].extent);
  return dims;
}

bool is_dense(const program::BufferView& view) {
  int64_t dense = view.element_bytes();
  for (const program::DimView& d : view.dims) {
    if (d.fold > 0) return false;
    if (d.extent != 1 && d.stride != dense) return view.empty();
    dense *= d.extent;
  }
  return true;
}

}  // namespace tenon::irgen
