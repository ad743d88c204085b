#include <algorithm>

#include <tenon-ext/dma/part_internal.hpp>

namespace tenon::dma {
namespace {

using Integers = Attribute::Integers;

// An attribute with a number per dim, or the fallback for an absent one.
Result<Integers> numbers_of(const Op& op, std::string_view name, size_t count, int64_t fallback) {
  const Attribute* stated = op.attributes().find(Name(name));
  if (!stated) return Integers(count, fallback);
  const auto* numbers = stated->get_if<Integers>();
  if (numbers && numbers->size() == count) return *numbers;
  return error(Code::invalid_argument, op.describe(), ": '", name, "' has ", numbers ? numbers->size() : 0,
               " numbers, the tensor wants ", count);
}

struct Part {
  Integers begin, extent, steps, before, behind;
};

Error leaves(const Op& op, size_t dim, int64_t begin, int64_t end, int64_t there) {
  return error(Code::invalid_argument, op.describe(), ": along dim ", dim, " its part is [", begin, ", ", end,
               "), the tensor has ", there);
}

Result<Part> loaded_part(const Op& op, const Dims& x) {
  Part part;
  TENON_TRY(begin, numbers_of(op, "begin", x.size(), 0));
  TENON_TRY(steps, numbers_of(op, "steps", x.size(), 1));
  TENON_TRY(pads, numbers_of(op, "pads", 2 * x.size(), 0));
  part.extent = x;
  if (op.attributes().has("extent")) {
    TENON_TRY(extent, numbers_of(op, "extent", x.size(), 0));
    part.extent = std::move(extent);
  }
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(x.size());
  part.begin = std::move(begin), part.steps = std::move(steps);
  part.before.assign(pads.begin(), middle), part.behind.assign(middle, pads.end());
  for (size_t d = 0; d < x.size(); ++d) {
    if (part.steps[d] < 1 || part.extent[d] < 1 || part.before[d] < 0 || part.behind[d] < 0)
      return error(Code::invalid_argument, op.describe(), ": along dim ", d, " extent ", part.extent[d], ", step ",
                   part.steps[d], " and pads ", part.before[d], " and ", part.behind[d],
                   " are none of 1 or more, 1 or more and 0 or more");
    const int64_t last = part.begin[d] + (part.extent[d] - 1) * part.steps[d];
    if (part.begin[d] < 0 || last >= x[d]) return leaves(op, d, part.begin[d], last + 1, x[d]);
  }
  return part;
}

bool is_whole(const Op& op) {
  const Attributes& all = op.attributes();
  return !all.has("begin") && !all.has("extent") && !all.has("steps") && !all.has("pads");
}

Result<Dims> static_dims_of(const Op& op, const Shape& shape) {
  if (auto dims = shape.static_dims()) return *dims;
  return error(Code::invalid_argument, op.describe(), " moves a part of ", shape, "; its extents must be numbers");
}

// The results of a transfer: its data, and a token that is done.
std::vector<Value*> results(Builder& builder, const Op& op, Value* data) {
  std::vector<Value*> made{data};
  if (op.result_count() > 1) made.push_back(builder.constant_scalar(kBool, 1));
  return made;
}

Tensor filled(const Dims& dims, bool value) {
  Tensor made = *Tensor::allocate(kBool, dims);
  for (bool& element : made.mutable_as<bool>()) element = value;
  return made;
}

}  // namespace

Result<Shape> loaded_shape(const Op& op, const Shape& x) {
  if (is_whole(op)) return x;
  TENON_TRY(dims, static_dims_of(op, x));
  TENON_TRY(part, loaded_part(op, dims));
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = part.before[d] + part.extent[d] + part.behind[d];
  return Shape(dims);
}

Result<void> check_stored_part(const Op& op, const Shape& x, const Shape& into) {
  TENON_TRY(dims, static_dims_of(op, x));
  TENON_TRY(whole, static_dims_of(op, into));
  if (dims.size() != whole.size())
    return error(Code::invalid_argument, op.describe(), " stores ", x, " into ", into, ", of another rank");
  TENON_TRY(begin, numbers_of(op, "begin", whole.size(), 0));
  for (size_t d = 0; d < whole.size(); ++d)
    if (begin[d] < 0 || begin[d] + dims[d] > whole[d]) return leaves(op, d, begin[d], begin[d] + dims[d], whole[d]);
  return {};
}

Result<std::vector<Value*>> decompose_load(Builder& builder, const Op& op) {
  Value* x = op.operand(0);
  if (is_whole(op)) {
    TENON_TRY(moved, builder.op("Identity", {x}));
    return results(builder, op, moved);
  }
  TENON_TRY(dims, static_dims_of(op, x->type().shape()));
  TENON_TRY(part, loaded_part(op, dims));
  Integers ends, axes, pads = part.before;
  for (size_t d = 0; d < dims.size(); ++d) {
    ends.push_back(part.begin[d] + (part.extent[d] - 1) * part.steps[d] + 1);
    axes.push_back(static_cast<int64_t>(d));
  }
  pads.insert(pads.end(), part.behind.begin(), part.behind.end());
  TENON_TRY(cut, builder.op("Slice", {x, builder.constant_ints(part.begin), builder.constant_ints(ends),
                                      builder.constant_ints(axes), builder.constant_ints(part.steps)}));
  TENON_TRY(padded, builder.op("Pad", {cut, builder.constant_ints(pads)}));
  return results(builder, op, padded);
}

// x extended by zeros where x is written; `into` elsewhere.
Result<std::vector<Value*>> decompose_store(Builder& builder, const Op& op) {
  Value *x = op.operand(0), *into = op.operand(1);
  if (!into) {
    TENON_TRY(moved, builder.op("Identity", {x}));
    return results(builder, op, moved);
  }
  TENON_TRY(dims, static_dims_of(op, x->type().shape()));
  TENON_TRY(whole, static_dims_of(op, into->type().shape()));
  TENON_TRY(pads, numbers_of(op, "begin", whole.size(), 0));
  for (size_t d = 0; d < whole.size(); ++d) pads.push_back(whole[d] - dims[d] - pads[d]);
  Value* places = builder.constant_ints(pads);
  TENON_TRY(padded, builder.op("Pad", {x, places}));
  TENON_TRY(written, builder.op("Pad", {builder.constant(filled(dims, true)), places}));
  TENON_TRY(y, builder.op("Where", {written, padded, into}));
  return results(builder, op, y);
}

Result<std::vector<Value*>> decompose_alloc(Builder& builder, const Op& op) {
  const Type& type = op.result()->type();
  TENON_TRY(dims, static_dims_of(op, type.shape()));
  TENON_TRY(zeros, Tensor::zeros(type.element(), dims));
  return std::vector<Value*>{builder.constant(std::move(zeros))};
}

}  // namespace tenon::dma
