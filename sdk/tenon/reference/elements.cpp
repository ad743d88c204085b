#include <tenon/reference/elements.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include <tenon/reference/loops.hpp>
#include <tenon/tensor/move_box.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon {
namespace {

bool needs_spreading(ElementType element) { return !element.is_string() && !element.byte_addressable(); }
ElementType spread_type(ElementType element) { return element.bits() <= 8 ? kU8 : kU64; }

// ---- Strided copies ----

// Copies strings one by one.
void copy_strings(const std::string* from, const ElementBlock& from_block, std::string* to,
                  const ElementBlock& to_block, const Dims& dims) {
  const std::array<Dims, 2> strides{from_block.strides, to_block.strides};
  Odometer<2> at(dims, strides);
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  at.seek(0);
  for (; count > 0; --count, at.next())
    to[to_block.offset + at.offsets()[1]] = from[from_block.offset + at.offsets()[0]];
}

// The longest dim is distributed over threads: it gives equal and the largest number of parts.
void copy_boxes(ParallelFor& parallel, const std::byte* from, std::byte* to, std::vector<BoxDim> box, int64_t bytes) {
  if (box.empty()) box.push_back({1, bytes, bytes});
  const auto longest = static_cast<size_t>(std::ranges::max_element(box, {}, &BoxDim::extent) - box.begin());
  int64_t cost = 1;
  for (size_t d = 0; d < box.size(); ++d) cost *= d == longest ? 1 : box[d].extent;
  parallel.run(box[longest].extent, grain_of(cost), [&](int64_t begin, int64_t end) {
    std::vector<BoxDim> part = box;
    part[longest].extent = end - begin;
    move_box(to + begin * box[longest].to_stride, from + begin * box[longest].from_stride, part,
             static_cast<size_t>(bytes));
  });
}

// ---- Gathered copies ----

// A line of elements at `places`.
template <class T>
class GatheredLine {
 public:
  explicit GatheredLine(const Dims& places) : places_(places) {
    const auto follow = [&](int64_t repeats) {
      for (size_t i = 0; i < places.size(); ++i)
        if (places[i] != places[0] + static_cast<int64_t>(i) / repeats) return false;
      return true;
    };
    dense_ = follow(1);
    pairs_ = places.size() % 2 == 0 && follow(2);
  }

  void copy(const T* from, T* to) const {
    const auto count = static_cast<int64_t>(places_.size());
    if (dense_) {
      std::copy_n(from + places_[0], count, to);
    } else if (pairs_) {  // an image enlarged by two
      const T* line = from + places_[0];
      for (int64_t i = 0; i < count / 2; ++i) to[2 * i] = to[2 * i + 1] = line[i];
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = from[places_[static_cast<size_t>(i)]];
    }
  }

 private:
  const Dims& places_;
  bool dense_ = false, pairs_ = false;
};

// Copies lines [begin, end) along the last axis; a line equal to the previous one is copied from it while it is in
// cache.
template <class T>
void copy_gathered_lines(const T* from, const std::vector<Dims>& places, T* to, int64_t begin, int64_t end) {
  const GatheredLine<T> line(places.back());
  const auto count = static_cast<int64_t>(places.back().size());
  int64_t before = -1;
  for (int64_t i = begin; i < end; ++i) {
    int64_t base = 0, rest = i;
    for (size_t d = places.size() - 1; d-- > 0;) {
      const auto extent = static_cast<int64_t>(places[d].size());
      base += places[d][static_cast<size_t>(rest % extent)];
      rest /= extent;
    }
    T* target = to + i * count;
    if (base == before)
      std::copy_n(target - count, count, target);
    else
      line.copy(from + base, target);
    before = base;
  }
}

}  // namespace

// ---- Spreading ----

Result<Tensor> spread(const Tensor& tensor) {
  if (!needs_spreading(tensor.element())) return tensor;
  const int bits = tensor.element().bits();
  TENON_TRY(out, Tensor::allocate(spread_type(tensor.element()), tensor.dims()));
  dispatch_storage(out.element(), [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      T* to = storage_of_elements<T>(out);
      for (int64_t i = 0; i < tensor.size(); ++i) to[i] = static_cast<T>(load_bits(tensor.data(), bits, i));
    }
  });
  return out;
}

Result<SpreadOutput> SpreadOutput::of(Tensor result) {
  SpreadOutput output;
  output.result_ = std::move(result);
  if (needs_spreading(output.result_.element())) {
    TENON_TRY(written, Tensor::allocate(spread_type(output.result_.element()), output.result_.dims()));
    output.written_ = std::move(written);
  } else {
    output.written_ = output.result_;
  }
  return output;
}

Result<SpreadOutput> SpreadOutput::open(EvalContext& context, size_t i) {
  TENON_TRY(result, context.output(i));
  return of(*result);
}
Result<SpreadOutput> SpreadOutput::open(EvalContext& context, size_t i, ElementType element, Dims dims) {
  TENON_TRY(result, context.output(i, element, std::move(dims)));
  return of(*result);
}
Result<SpreadOutput> SpreadOutput::make(ElementType element, Dims dims) {
  TENON_TRY(result, Tensor::allocate(element, std::move(dims)));
  return of(std::move(result));
}

Result<void> SpreadOutput::close() {
  if (!needs_spreading(result_.element())) return {};
  const int bits = result_.element().bits();
  dispatch_storage(written_.element(), [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      const T* from = storage_of_elements<T>(std::as_const(written_));
      for (int64_t i = 0; i < written_.size(); ++i) store_bits(result_.mutable_data(), bits, i, from[i]);
    }
  });
  return {};
}

// ---- Copies ----

void copy_elements(ParallelFor& parallel, const Tensor& from, const ElementBlock& from_block, Tensor& to,
                   const ElementBlock& to_block, const Dims& dims) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  if (from.element().is_string()) {
    return copy_strings(storage_of_elements<std::string>(from), from_block, storage_of_elements<std::string>(to),
                        to_block, dims);
  }
  const int64_t bytes = from.element().bits() / 8;
  std::vector<BoxDim> box;  // the innermost dim first
  for (size_t d = dims.size(); d-- > 0;)
    box.push_back({dims[d], to_block.strides[d] * bytes, from_block.strides[d] * bytes});
  copy_boxes(parallel, from.data() + from_block.offset * bytes, to.mutable_data() + to_block.offset * bytes,
             std::move(box), bytes);
}

void copy_transposed(ParallelFor& parallel, const Tensor& from, const Dims& dims, std::span<const int64_t> perm,
                     Tensor& to) {
  const Dims strides = row_major_strides(dims);
  Dims to_dims, from_strides;
  for (const int64_t axis : perm) {
    to_dims.push_back(dims[static_cast<size_t>(axis)]);
    from_strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  copy_elements(parallel, from, {0, from_strides}, to, {0, row_major_strides(to_dims)}, to_dims);
}

void copy_gathered(ParallelFor& parallel, const Tensor& from, const std::vector<Dims>& places, Tensor& to) {
  if (to.size() == 0) return;
  if (places.empty()) return copy_run(from, 0, to, 0, 1);
  const auto count = static_cast<int64_t>(places.back().size());
  dispatch_storage(from.element(), [&]<class T>() {
    parallel.run(to.size() / count, grain_of(count), [&](int64_t begin, int64_t end) {
      copy_gathered_lines(storage_of_elements<T>(from), places, storage_of_elements<T>(to), begin, end);
    });
  });
}

void copy_run(const Tensor& from, int64_t from_offset, Tensor& to, int64_t to_offset, int64_t count) {
  dispatch_storage(from.element(), [&]<class T>() {
    std::copy_n(storage_of_elements<T>(from) + from_offset, count, storage_of_elements<T>(to) + to_offset);
  });
}

void fill_zero(Tensor& to) {
  dispatch_storage(to.element(), [&]<class T>() { std::fill_n(storage_of_elements<T>(to), to.size(), T()); });
}

void fill_elements(ParallelFor& parallel, const Tensor& from, int64_t index, Tensor& to) {
  copy_elements(parallel, from, {index, {0}}, to, {0, {1}}, {to.size()});
}

}  // namespace tenon
