// Kernels: the functions that a call statement runs, and their view of the buffers passed to them.
//
//   // y(i) = 2 * x(i)
//   KernelHandle twice = make_kernel("twice", [](CallContext& c) -> Result<void> {
//     const Elements<const float> x = c.elements<const float>(0);
//     const Elements<float> y = c.elements<float>(1);
//     for (int64_t i = y.min(0); i <= y.max(0); ++i) y(i) = 2 * x(i);
//     return {};
//   });
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon::program {

inline constexpr int kMaxRank = 16;

// One dimension of a buffer at run time. Indices run from min to min + extent - 1; extent 0 is an empty buffer.
struct DimView {
  int64_t min = 0;
  int64_t extent = 0;  // elements, >= 0
  int64_t stride = 0;  // bytes from an index to the next; 0: all indices are the same element; may be negative
  int64_t fold = 0;    // > 0: a ring buffer of that many places: index x is at place x mod fold. 0: at place x - min

  int64_t max() const { return min + extent - 1; }
  // The place of index x: how many strides it is from the base.
  int64_t place(int64_t x) const {
    if (fold <= 0) return x - min;
    const int64_t rest = x % fold;
    return rest < 0 ? rest + fold : rest;
  }
  bool operator==(const DimView&) const = default;
};

// A buffer as a statement sees it: borrowed memory with a box of indices.
// The element at index x lies at base + sum over dims of place(x_d) * stride_d.
struct BufferView {
  std::byte* base = nullptr;
  std::span<const DimView> dims;
  ElementType element;

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t element_bytes() const { return element.bits() / 8; }
  bool empty() const {
    for (const DimView& d : dims)
      if (d.extent <= 0) return true;
    return false;
  }
  int64_t elements() const {
    int64_t count = 1;
    for (const DimView& d : dims) count *= d.extent > 0 ? d.extent : 0;
    return count;
  }
  // `index` has one entry per dim, each within the box.
  std::byte* address(std::span<const int64_t> index) const {
    std::byte* p = base;
    for (size_t d = 0; d < dims.size(); ++d) p += dims[d].place(index[d]) * dims[d].stride;
    return p;
  }
};

// The elements of a BufferView as C++ values of type T (const for operands that are only read). Neither type nor index
// is checked.
template <class T>
class Elements {
 public:
  explicit Elements(const BufferView& view) : view_(view) {}
  int rank() const { return view_.rank(); }
  const DimView& dim(int d) const { return view_.dims[static_cast<size_t>(d)]; }
  int64_t min(int d) const { return dim(d).min; }
  int64_t max(int d) const { return dim(d).max(); }
  int64_t extent(int d) const { return dim(d).extent; }
  // As many indices as there are dims.
  template <std::convertible_to<int64_t>... Index>
  T& operator()(Index... index) const {
    std::byte* p = view_.base;
    [[maybe_unused]] const DimView* dims = view_.dims.data();
    [[maybe_unused]] size_t d = 0;
    ((p += dims[d].place(index) * dims[d].stride, ++d), ...);
    return *reinterpret_cast<T*>(p);
  }
  T& at(std::span<const int64_t> index) const { return *reinterpret_cast<T*>(view_.address(index)); }

 private:
  BufferView view_;
};

// What a kernel keeps between calls at one place of a program, so that hot calls need not allocate: tables, views of
// operands. Nobody else uses it during a call; it must not change results.
struct TENON_API KernelState {
  virtual ~KernelState();
};

// The arguments of one call. Borrowed for the call.
struct CallContext {
  std::span<const BufferView> operands;  // in the order of the call statement, each cropped to its box
  std::span<const int64_t> scalars;
  std::string_view stage;
  int64_t worker = 0;               // in the innermost enclosing parallel or pipelined loop, 0 outside one
  KernelState* state = nullptr;     // from Kernel::make_state for this place, worker and bound program; may be null
  ParallelFor* parallel = nullptr;  // threads that the kernel may use; null: none

  ParallelFor& pool() const { return parallel ? *parallel : serial(); }

  template <class T>
  Elements<T> elements(size_t operand) const {
    return Elements<T>(operands[operand]);
  }
};

// Called only when no box that it writes is empty. Reads the boxes of its `in` and `inout` operands, writes the whole
// boxes of its `out` operands, and accesses nothing else (contract mode checks that, exec/contract.hpp). A kernel for
// hot loops allocates no heap memory. It may be called from several threads at once.
using KernelFunction = std::function<Result<void>(CallContext&)>;

struct Kernel {
  std::string name;  // in the text form; [A-Za-z_][A-Za-z0-9_.]*
  KernelFunction run;
  // Whether it accepts operands with fold > 0. If not, a box that wraps around its ring buffer is an error; a box that
  // does not wrap is always passed with fold 0, to any kernel.
  bool takes_folded = false;
  // Accepts only boxes without gaps, dim 0 fastest. The maker of the program has to ensure this; contract mode checks
  // only the ends of the outermost dim.
  bool takes_dense_only = false;
  // With takes_dense_only: except for gaps that it was made for, between the elements of a box, as the program states
  // them.
  bool keeps_gaps = false;
  // The number of workspaces, which are the last operands: they are `out`, and their contents are not results.
  int workspaces = 0;
  // May be empty; see CallContext::state. Called when a program is bound. An interpreter has no states.
  std::function<std::unique_ptr<KernelState>()> make_state = {};
  // Does the same as `run` for a call whose state is from make_state: compiled programs call it directly. May be null.
  Result<void> (*run_in_state)(CallContext&) = nullptr;
  // Does the same as `run`, except that other threads may not see the results before `finish` is called on the same
  // thread. Compiled programs call it in serial loops, and `finish` after each loop. Both null: there is no such
  // variant.
  Result<void> (*run_unfinished)(CallContext&) = nullptr;
  void (*finish)() = nullptr;
};
using KernelHandle = std::shared_ptr<const Kernel>;

TENON_API KernelHandle make_kernel(std::string name, KernelFunction run, bool takes_folded = false);
// For a function, or a lambda without captures: compiled programs call it directly, not through std::function.
template <class F>
requires std::convertible_to < F, Result<void>(*)
(CallContext&) > KernelHandle make_kernel(std::string name, F function, bool takes_folded = false) {
  Result<void> (*const plain)(CallContext&) = function;
  return make_kernel(std::move(name), KernelFunction(plain), takes_folded);
}

}  // namespace tenon::program
