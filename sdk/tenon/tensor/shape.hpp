// Shapes: static (`Dims`), and as the compiler knows them (`Shape`), where a dim is a number, a symbolic expression or
// unknown, and even the rank may be unknown.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

using Dims = std::vector<int64_t>;

// Product of the dims, or an error naming the shape when one is negative or the product does not fit int64_t.
TENON_API Result<int64_t> element_count(std::span<const int64_t> dims);
// Row-major strides, in elements.
TENON_API Dims row_major_strides(std::span<const int64_t> dims);
// Converts `axis` from [-rank, rank) to non-negative; the error names both.
TENON_API Result<int64_t> normalize_axis(int64_t axis, int64_t rank);
// NumPy broadcasting of static shapes (right-aligned; 1 stretches), or an error naming both shapes.
TENON_API Result<Dims> broadcast(std::span<const int64_t> a, std::span<const int64_t> b);
inline Result<Dims> broadcast(const Dims& a, const Dims& b) {
  return broadcast(std::span<const int64_t>(a), std::span<const int64_t>(b));
}

// One extent: a number, an expression over symbols, or unknown ("?").
class TENON_API Dim {
 public:
  Dim() = default;  // unknown
  Dim(int64_t value) : known_(true), value_(value) {}
  Dim(Expr value) : known_(true), value_(std::move(value)) {}

  bool known() const { return known_; }  // a number or an expression
  bool is_static() const { return known_ && value_.is_constant(); }
  int64_t value() const { return value_.constant(); }  // only when is_static()
  bool is_one() const { return is_static() && value() == 1; }
  const Expr& expr() const { return value_; }  // only when known()
  // Same text. Two unknown dims are equal as descriptions, not as extents: see same_extent.
  bool operator==(const Dim& other) const;
  bool same_extent(const Dim& other) const { return known_ && other.known_ && value_ == other.value_; }

  std::string to_string() const;

 private:
  bool known_ = false;
  Expr value_;
};
// Arithmetic; unknown in, unknown out.
TENON_API Dim operator+(const Dim& a, const Dim& b);
TENON_API Dim operator-(const Dim& a, const Dim& b);
TENON_API Dim operator*(const Dim& a, const Dim& b);
TENON_API Dim floordiv(const Dim& a, const Dim& b);
TENON_API Dim ceildiv(const Dim& a, const Dim& b);

class TENON_API Shape {
 public:
  Shape() = default;  // unranked
  Shape(std::vector<Dim> dims) : ranked_(true), dims_(std::move(dims)) {}
  Shape(const Dims& dims);
  Shape(std::initializer_list<Dim> dims) : ranked_(true), dims_(dims) {}

  bool ranked() const { return ranked_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }  // only when ranked
  const std::vector<Dim>& dims() const { return dims_; }
  const Dim& operator[](size_t i) const { return dims_[i]; }
  Dim& operator[](size_t i) { return dims_[i]; }
  bool is_static() const;
  // The extents, if all are known numbers.
  std::optional<Dims> static_dims() const;
  bool operator==(const Shape&) const = default;

  // "[2,N,?]", "[]" for a scalar, "[*]" when unranked.
  std::string to_string() const;

 private:
  bool ranked_ = false;
  std::vector<Dim> dims_;
};

// NumPy broadcasting of what is known. Unknown or symbolic dims with 1 give the other dim; with a number > 1, the
// number (otherwise a run would fail); two different symbols give unknown. Two different numbers are an error.
TENON_API Result<Shape> broadcast(const Shape& a, const Shape& b);
// The combined knowledge of two descriptions of one shape (per dim, the known one); different numbers are an error.
TENON_API Result<Shape> merge(const Shape& a, const Shape& b);

}  // namespace tenon
