#include <tenon/tensor/tensor.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include <tenon/tensor/element_codec.hpp>

namespace tenon {
namespace {

// The required alignment of data of this type; packed bits need none.
size_t alignment(ElementType element) {
  if (element.is_string()) return alignof(std::string);
  if (!element.byte_addressable()) return 1;
  return static_cast<size_t>(element.is_complex() ? element.bits() / 16 : element.bits() / 8);
}

Result<std::shared_ptr<std::byte>> allocate_storage(ElementType element, int64_t count, size_t bytes) {
  TENON_TRY(block, allocate_aligned(bytes));
  if (!element.is_string()) {
    if (bytes != 0 && !element.byte_addressable()) block[bytes - 1] = std::byte{0};
    return std::shared_ptr<std::byte>(block.release(), AlignedFree());
  }
  auto* strings = reinterpret_cast<std::string*>(block.release());
  std::uninitialized_default_construct_n(strings, count);
  return std::shared_ptr<std::byte>(reinterpret_cast<std::byte*>(strings), [count](std::byte* data) {
    std::destroy_n(reinterpret_cast<std::string*>(data), count);
    AlignedFree()(data);
  });
}

Error wrong_element(const char* what, ElementType element) {
  return error(Code::invalid_argument, what, " of element type ", element);
}

}  // namespace

Result<size_t> storage_bytes(ElementType element, int64_t count) {
  if (!element.valid()) return wrong_element("storage", element);
  if (count < 0) return error(Code::invalid_argument, "storage of ", count, " elements");
  const size_t unit_bits = element.is_string() ? sizeof(std::string) * 8 : static_cast<size_t>(element.bits());
  // Eight elements take `unit_bits` bytes; the bits of the others are rounded up.
  const auto eights = static_cast<size_t>(count / 8), rest = static_cast<size_t>(count % 8);
  size_t bytes = 0;
  if (__builtin_mul_overflow(eights, unit_bits, &bytes) ||
      __builtin_add_overflow(bytes, (rest * unit_bits + 7) / 8, &bytes) || bytes > static_cast<size_t>(PTRDIFF_MAX))
    return error(Code::resource_exhausted, count, " elements of ", element, " take more than 2^63 - 1 bytes");
  return bytes;
}

Result<Tensor> Tensor::allocate(ElementType element, Dims dims) {
  TENON_TRY(count, element_count(dims));
  TENON_TRY(bytes, storage_bytes(element, count), "a tensor of shape ", dims);
  if (bytes > tensor_bytes_limit())
    return error(Code::resource_exhausted, "a tensor ", element, Shape(dims), " takes ", bytes,
                 " bytes; the limit for one tensor is ", tensor_bytes_limit(), " (TENON_TENSOR_LIMIT raises it)");
  TENON_TRY(storage, allocate_storage(element, count, bytes), "a tensor ", element, Shape(dims));
  std::byte* data = storage.get();
  return share(element, std::move(dims), std::move(storage), data, bytes);
}

Result<Tensor> Tensor::zeros(ElementType element, Dims dims) {
  TENON_TRY(out, allocate(element, std::move(dims)));
  if (!element.is_string() && out.bytes_ != 0) std::memset(out.data_, 0, out.bytes_);
  return out;
}

Result<Tensor> Tensor::borrow(ElementType element, Dims dims, void* data, size_t data_bytes) {
  return share(element, std::move(dims), nullptr, data, data_bytes);
}

Result<Tensor> Tensor::share(ElementType element, Dims dims, std::shared_ptr<void> owner, void* data,
                             size_t data_bytes) {
  TENON_TRY(count, element_count(dims));
  TENON_TRY(bytes, storage_bytes(element, count), "a tensor of shape ", dims);
  if (data_bytes < bytes)
    return error(Code::invalid_argument, "a tensor ", element, Shape(dims), " needs ", bytes, " bytes, its data has ",
                 data_bytes);
  if (data == nullptr && bytes != 0)
    return error(Code::invalid_argument, "a tensor ", element, Shape(dims), " of ", bytes, " bytes given no data");
  if (reinterpret_cast<uintptr_t>(data) % alignment(element) != 0)
    return error(Code::invalid_argument, "the data of a tensor ", element, Shape(dims), " is not aligned to ",
                 alignment(element), " bytes; copy it to an allocated tensor");
  Tensor out;
  out.element_ = element;
  out.dims_ = std::move(dims);
  out.count_ = count;
  out.bytes_ = bytes;
  out.data_ = static_cast<std::byte*>(data);
  out.owner_ = std::move(owner);
  return out;
}

double Tensor::double_at(int64_t index) const {
  TENON_CHECK(element_.is_number() || element_.is_bool(), "an element of ", element_, " read as a number");
  return detail::with_carrier(element_, load_bits(data_, element_.bits(), index),
                              [](auto value) { return static_cast<double>(value); });
}

int64_t Tensor::int_at(int64_t index) const {
  TENON_CHECK(element_.is_number() || element_.is_bool(), "an element of ", element_, " read as an integer");
  return detail::with_carrier(element_, load_bits(data_, element_.bits(), index), [](auto value) {
    if constexpr (std::is_same_v<decltype(value), double>)
      return detail::saturate_to<int64_t>(value);
    else
      return static_cast<int64_t>(value);
  });
}

void Tensor::set_double(int64_t index, double value) {
  TENON_CHECK(element_.is_number() || element_.is_bool(), "an element of ", element_, " set to a number");
  store_bits(data_, element_.bits(), index, detail::to_bits(element_, value, {}));
}

void Tensor::set_int(int64_t index, int64_t value) {
  TENON_CHECK(element_.is_number() || element_.is_bool(), "an element of ", element_, " set to an integer");
  store_bits(data_, element_.bits(), index, detail::to_bits(element_, value, {}));
}

std::vector<int64_t> Tensor::to_ints() const {
  std::vector<int64_t> out(static_cast<size_t>(count_));
  for (int64_t i = 0; i < count_; ++i) out[static_cast<size_t>(i)] = int_at(i);
  return out;
}

Result<Tensor> Tensor::reshaped(Dims dims) const {
  TENON_TRY(count, element_count(dims));
  if (count != count_)
    return error(Code::invalid_argument, "a tensor ", *this, " of ", count_, " elements cannot take the shape ",
                 Shape(dims), " of ", count);
  Tensor out = *this;
  out.dims_ = std::move(dims);
  return out;
}

Result<Tensor> Tensor::clone() const {
  if (!valid()) return Tensor();
  TENON_TRY(storage, allocate_storage(element_, count_, bytes_), "a copy of a tensor ", *this);
  Tensor out = *this;
  out.data_ = storage.get();
  out.owner_ = std::move(storage);
  if (element_.is_string())
    std::ranges::copy(as<std::string>(), out.mutable_as<std::string>().begin());
  else if (bytes_ != 0)
    std::memcpy(out.data_, data_, bytes_);
  return out;
}

bool Tensor::identical(const Tensor& other) const {
  if (element_ != other.element_ || dims_ != other.dims_) return false;
  if (count_ == 0 || data_ == other.data_) return true;
  if (element_.is_string()) return std::ranges::equal(as<std::string>(), other.as<std::string>());
  // Borrowed packed data may have arbitrary bits after its last element.
  const auto rest = static_cast<int>((static_cast<uint64_t>(count_) * static_cast<uint64_t>(element_.bits())) & 7);
  const size_t whole = bytes_ - (rest != 0 ? 1 : 0);
  if (std::memcmp(data_, other.data_, whole) != 0) return false;
  return rest == 0 || load_bits(data_ + whole, rest, 0) == load_bits(other.data_ + whole, rest, 0);
}

std::string Tensor::to_string() const { return valid() ? type().to_string() : "no tensor"; }

}  // namespace tenon
