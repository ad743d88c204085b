// For tests of pipelines: arrays with bounds, kernels with simple formulas, and runs that are counted.
#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/exec/interpreter.hpp>
#include <tenon/program/exec/races.hpp>
#include <tenon/program/ir/text.hpp>
#include <tenon/program/ir/verify.hpp>
#include <tenon/program/pipeline/pipeline.hpp>
#include <tenon/runtime/thread_pool.hpp>

namespace tenon::program {

template <class T>
ElementType element_of() {
  if constexpr (std::is_floating_point_v<T>)
    return {ElementKind::ieee, sizeof(T) * 8};
  else
    return {std::is_signed_v<T> ? ElementKind::sint : ElementKind::uint, sizeof(T) * 8};
}

using Index = std::vector<int64_t>;

// Calls f(index) for each index of the box, dim 0 fastest.
template <class F>
void for_each_index(const Index& mins, const Index& extents, const F& f) {
  for (const int64_t e : extents)
    if (e <= 0) return;
  Index i = mins;
  while (true) {
    f(static_cast<const Index&>(i));
    size_t d = 0;
    for (; d < i.size(); ++d) {
      if (++i[d] < mins[d] + extents[d]) break;
      i[d] = mins[d];
    }
    if (d == i.size()) return;
  }
}

// Elements with an index of any rank, dim 0 fastest.
template <class T>
class Array {
 public:
  Array(Index mins, Index extents) : mins_(std::move(mins)), extents_(std::move(extents)) {
    int64_t count = 1;
    for (const int64_t e : extents_) {
      strides_.push_back(count);
      count *= e;
    }
    data_.assign(static_cast<size_t>(count), T{});
  }
  explicit Array(Index extents) : Array(Index(extents.size()), extents) {}

  T& at(const Index& i) { return data_[offset(i)]; }
  const T& at(const Index& i) const { return data_[offset(i)]; }
  template <class... I>
  T& operator()(I... i) {
    return at({static_cast<int64_t>(i)...});
  }
  bool has(const Index& i) const {
    for (size_t d = 0; d < i.size(); ++d)
      if (i[d] < mins_[d] || i[d] >= mins_[d] + extents_[d]) return false;
    return true;
  }
  template <class F>
  Array& fill(const F& f) {
    for_each_index(mins_, extents_, [&](const Index& i) { at(i) = static_cast<T>(f(i)); });
    return *this;
  }
  // Values that identify their positions.
  Array& fill_pattern(int64_t seed = 1) {
    return fill([&](const Index& i) {
      int64_t v = seed * 7;
      for (size_t d = 0; d < i.size(); ++d) v = v * 3 + i[d] * static_cast<int64_t>(5 + 2 * d);
      return v % 41 - 11;
    });
  }
  const Index& mins() const { return mins_; }
  const Index& extents() const { return extents_; }
  void clear() { std::ranges::fill(data_, T{}); }
  const std::vector<T>& data() const { return data_; }
  BufferArgument argument() { return BufferArgument::dense(data_.data(), element_of<T>(), extents_, mins_); }

 private:
  size_t offset(const Index& i) const {
    int64_t at = 0;
    for (size_t d = 0; d < i.size(); ++d) at += (i[d] - mins_[d]) * strides_[d];
    EXPECT_TRUE(has(i)) << "the test itself is wrong";
    return static_cast<size_t>(at);
  }
  Index mins_, extents_, strides_;
  std::vector<T> data_;
};

// --- kernels: of any rank, with rings ---

template <class T>
Index box_mins(const Elements<T>& e) {
  Index out;
  for (int d = 0; d < e.rank(); ++d) out.push_back(e.min(d));
  return out;
}
template <class T>
Index box_extents(const Elements<T>& e) {
  Index out;
  for (int d = 0; d < e.rank(); ++d) out.push_back(e.extent(d));
  return out;
}

// The last operand at each index is f(context, index).
template <class T>
KernelHandle kernel(std::string name, std::function<T(const CallContext&, const Index&)> f) {
  return make_kernel(
      std::move(name),
      [f](CallContext& c) -> Result<void> {
        const Elements<T> out(c.operands.back());
        for_each_index(box_mins(out), box_extents(out), [&](const Index& i) { out.at(i) = f(c, i); });
        return {};
      },
      true);
}

// f of the elements of all read operands at the same index.
template <class T>
KernelHandle pointwise(std::string name, std::function<T(T)> f) {
  return kernel<T>(std::move(name),
                   [f](const CallContext& c, const Index& i) { return f(c.elements<const T>(0).at(i)); });
}
template <class T>
KernelHandle pointwise2(std::string name, std::function<T(T, T)> f) {
  return kernel<T>(std::move(name), [f](const CallContext& c, const Index& i) {
    return f(c.elements<const T>(0).at(i), c.elements<const T>(1).at(i));
  });
}
template <class T>
KernelHandle add_constant(int64_t value) {
  return pointwise<T>("add", [value](T v) { return static_cast<T>(v + value); });
}
template <class T>
KernelHandle times_constant(int64_t value) {
  return pointwise<T>("mul", [value](T v) { return static_cast<T>(v * value); });
}
// A copy that the builder does not recognise as one.
template <class T>
KernelHandle opaque_copy() {
  return pointwise<T>("opaque_copy", [](T v) { return v; });
}
// The sum over a window of `below` to `above` around the index, per dim.
template <class T>
KernelHandle window_sum(Index below, Index above) {
  return kernel<T>("sum", [below, above](const CallContext& c, const Index& i) {
    Index mins, extents;
    for (size_t d = 0; d < i.size(); ++d) {
      mins.push_back(i[d] + below[d]);
      extents.push_back(above[d] - below[d] + 1);
    }
    const Elements<const T> in = c.elements<const T>(0);
    T sum{};
    for_each_index(mins, extents, [&](const Index& j) { sum = static_cast<T>(sum + in.at(j)); });
    return sum;
  });
}

// The bytes of a dense argument.
inline std::span<std::byte> bytes_of(const BufferArgument& argument, ElementType element) {
  size_t bytes = static_cast<size_t>(element.bits()) / 8;
  for (const DimView& d : argument.dims) bytes *= static_cast<size_t>(d.extent);
  return {argument.data, bytes};
}

// Runs the compiled form over cleared outputs and compares the bytes with the previous content.
inline void expect_same_compiled(const Program& program, const Arguments& arguments, int threads, int64_t stack_bytes) {
  ThreadPool pool(threads);
  auto bound = BoundProgram::bind(program, arguments, {&pool, threads, stack_bytes});
  ASSERT_TRUE(bound.ok()) << bound.error().to_string() << "\n" << print(program);
  std::map<std::string, std::vector<std::byte>> wanted;
  for (const Buffer& b : program.buffers) {
    if (b.role != Role::output) continue;
    const std::span<std::byte> bytes = bytes_of(arguments.buffers.at(b.name), b.element);
    wanted[b.name].assign(bytes.begin(), bytes.end());
    std::ranges::fill(bytes, std::byte{0x5a});
  }
  const auto ran = bound.value().run(arguments);
  ASSERT_TRUE(ran.ok()) << ran.error().to_string() << "\n" << print(program);
  for (const auto& [name, bytes] : wanted) {
    const bool same = std::ranges::equal(
        bytes_of(arguments.buffers.at(name), program.buffer(*program.find_buffer(name)).element), bytes);
    EXPECT_TRUE(same) << "the compiled form differs in '" << name << "'\n" << print(program);
  }
}

inline Expr var(std::string_view name) { return Expr::symbol(name); }

}  // namespace tenon::program
