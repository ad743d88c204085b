#include <tenon/tensor/shape.hpp>

#include <algorithm>

#include <tenon/support/str.hpp>

namespace tenon {
namespace {

// Aligns both shapes on the right and calls `combine(a, b)` per dim; missing dims are 1. Null from `combine`: they
// disagree.
template <class Extent, class Combine>
std::optional<std::vector<Extent>> zip_broadcast(std::span<const Extent> a, std::span<const Extent> b,
                                                 Combine combine) {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<Extent> out(rank);
  for (size_t i = 0; i < rank; ++i) {  // counted from the back
    const Extent& x = i < a.size() ? a[a.size() - 1 - i] : Extent(1);
    const Extent& y = i < b.size() ? b[b.size() - 1 - i] : Extent(1);
    auto z = combine(x, y);
    if (!z) return std::nullopt;
    out[rank - 1 - i] = *std::move(z);
  }
  return out;
}

std::optional<int64_t> broadcast_extent(int64_t a, int64_t b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  return std::nullopt;
}

std::optional<Dim> broadcast_dim(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) {
    if (const auto extent = broadcast_extent(a.value(), b.value())) return Dim(*extent);
    return std::nullopt;
  }
  if (a.is_static()) return a.value() == 1 ? b : a;
  if (b.is_static()) return b.value() == 1 ? a : b;
  return a.same_extent(b) ? a : Dim();
}

Error cannot_broadcast(const std::string& a, const std::string& b) {
  return error(Code::invalid_argument, "shapes ", a, " and ", b,
               " do not broadcast: from the last dim backwards two dims must be equal, or one of them 1");
}

template <class Operation>
Dim apply(const Dim& a, const Dim& b, Operation operation) {
  return a.known() && b.known() ? Dim(operation(a.expr(), b.expr())) : Dim();
}

}  // namespace

Result<int64_t> element_count(std::span<const int64_t> dims) {
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return error(Code::invalid_argument, "the shape ", dims, " has the negative dim ", dim);
    empty |= dim == 0;
  }
  if (empty) return int64_t{0};
  int64_t count = 1;
  for (const int64_t dim : dims) {
    if (__builtin_mul_overflow(count, dim, &count))
      return error(Code::resource_exhausted, "the shape ", dims, " has more than 2^63 - 1 elements");
  }
  return count;
}

Dims row_major_strides(std::span<const int64_t> dims) {
  Dims strides(dims.size());
  uint64_t stride = 1;  // unsigned: the dims of an empty tensor may overflow 64 bits, which does no harm
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(dims[i]);
  }
  return strides;
}

Result<int64_t> normalize_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    if (rank == 0) return error(Code::invalid_argument, "axis ", axis, " of a scalar, which has no axes");
    return error(Code::invalid_argument, "axis ", axis, " is outside [", -rank, ", ", rank - 1, "]");
  }
  return axis < 0 ? axis + rank : axis;
}

Result<Dims> broadcast(std::span<const int64_t> a, std::span<const int64_t> b) {
  auto out = zip_broadcast(a, b, broadcast_extent);
  if (!out) return cannot_broadcast(str(a), str(b));
  return *std::move(out);
}

bool Dim::operator==(const Dim& other) const { return known_ == other.known_ && (!known_ || value_ == other.value_); }

std::string Dim::to_string() const { return known_ ? value_.to_string() : "?"; }

Dim operator+(const Dim& a, const Dim& b) {
  return apply(a, b, [](const Expr& x, const Expr& y) { return x + y; });
}
Dim operator-(const Dim& a, const Dim& b) {
  return apply(a, b, [](const Expr& x, const Expr& y) { return x - y; });
}
Dim operator*(const Dim& a, const Dim& b) {
  return apply(a, b, [](const Expr& x, const Expr& y) { return x * y; });
}
Dim floordiv(const Dim& a, const Dim& b) {
  return apply(a, b, [](const Expr& x, const Expr& y) { return floordiv(x, y); });
}
Dim ceildiv(const Dim& a, const Dim& b) {
  return apply(a, b, [](const Expr& x, const Expr& y) { return ceildiv(x, y); });
}

Shape::Shape(const Dims& dims) : ranked_(true), dims_(dims.begin(), dims.end()) {}

bool Shape::is_static() const {
  return ranked_ && std::all_of(dims_.begin(), dims_.end(), [](const Dim& dim) { return dim.is_static(); });
}

std::optional<Dims> Shape::static_dims() const {
  if (!is_static()) return std::nullopt;
  Dims out;
  out.reserve(dims_.size());
  for (const Dim& dim : dims_) out.push_back(dim.value());
  return out;
}

std::string Shape::to_string() const {
  if (!ranked_) return "[*]";
  std::string out = "[";
  for (const Dim& dim : dims_) {
    if (out.size() > 1) out += ',';
    out += dim.to_string();
  }
  return out + "]";
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  if (!a.ranked() || !b.ranked()) return Shape();
  auto out = zip_broadcast(std::span<const Dim>(a.dims()), std::span<const Dim>(b.dims()), broadcast_dim);
  if (!out) return cannot_broadcast(a.to_string(), b.to_string());
  return Shape(*std::move(out));
}

Result<Shape> merge(const Shape& a, const Shape& b) {
  if (!a.ranked()) return b;
  if (!b.ranked()) return a;
  if (a.rank() != b.rank())
    return error(Code::invalid_argument, "shapes ", a, " and ", b, " cannot be the same: ranks ", a.rank(), " and ",
                 b.rank());
  std::vector<Dim> out;
  out.reserve(a.dims().size());
  for (size_t i = 0; i < a.dims().size(); ++i) {
    if (a[i].is_static() && b[i].is_static() && a[i].value() != b[i].value())
      return error(Code::invalid_argument, "shapes ", a, " and ", b, " cannot be the same: dim ", i, " is ", a[i],
                   " and ", b[i]);
    const bool take_b = !a[i].known() || (b[i].is_static() && !a[i].is_static());
    out.push_back(take_b ? b[i] : a[i]);
  }
  return Shape(std::move(out));
}

}  // namespace tenon
