#include <tenon/tensor/tensor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace tenon {
namespace {

using testing::HasSubstr;

TEST(Tensor, AllocatesAndReads) {
  const auto tensor = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(tensor.to_string(), "f32[2,3]");
  EXPECT_EQ(tensor.size(), 6);
  EXPECT_EQ(tensor.bytes(), 24u);
  EXPECT_EQ(tensor.rank(), 2);
  EXPECT_EQ(tensor.dim(1), 3);
  EXPECT_EQ(tensor.as<float>()[5], 6);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % kAlignBytes, 0u);
  EXPECT_FALSE(Tensor().valid());
}

TEST(Tensor, ScalarsAndEmpties) {
  EXPECT_EQ(Tensor::scalar<int64_t>(7).to_string(), "i64[]");
  EXPECT_EQ(Tensor::scalar<int64_t>(7).int_at(0), 7);
  const auto empty = Tensor::allocate(kF32, {3, 0});
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->size(), 0);
  EXPECT_EQ(empty->bytes(), 0u);
  EXPECT_TRUE(empty->as<float>().empty());
  EXPECT_EQ(empty->clone()->dims(), (Dims{3, 0}));
}

TEST(Tensor, StorageBytes) {
  const ElementType i3(ElementKind::sint, 3), u64bits(ElementKind::uint, 64), i24(ElementKind::sint, 24);
  EXPECT_EQ(*storage_bytes(kI4, 3), 2u);
  EXPECT_EQ(*storage_bytes(kU2, 5), 2u);
  EXPECT_EQ(*storage_bytes(i3, 8), 3u);
  EXPECT_EQ(*storage_bytes(i3, 9), 4u);
  EXPECT_EQ(*storage_bytes(i24, 3), 9u);
  EXPECT_EQ(*storage_bytes(kF64, 0), 0u);
  EXPECT_EQ(*storage_bytes(kString, 2), 2 * sizeof(std::string));
  EXPECT_EQ(*storage_bytes(kU8, INT64_MAX), size_t{INT64_MAX});
  EXPECT_EQ(*storage_bytes(kI4, INT64_MAX), size_t{1} << 62);
  EXPECT_EQ(storage_bytes(kU16, INT64_MAX).error().code(), Code::resource_exhausted);
  EXPECT_EQ(storage_bytes(kC128, INT64_MAX).error().code(), Code::resource_exhausted);
  EXPECT_FALSE(storage_bytes(kF32, -1).ok());
  EXPECT_FALSE(storage_bytes(ElementType(), 1).ok());
}

TEST(Tensor, AllocateRefuses) {
  const auto beyond = Tensor::allocate(kF32, {static_cast<int64_t>(tensor_bytes_limit() / 4) + 1});
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().code(), Code::resource_exhausted);
  EXPECT_THAT(beyond.error().message(), HasSubstr("TENON_TENSOR_LIMIT"));
  EXPECT_FALSE(Tensor::allocate(kF32, {INT64_MAX, 4}).ok());
  EXPECT_FALSE(Tensor::allocate(kF64, {INT64_MAX}).ok());
  EXPECT_FALSE(Tensor::allocate(kF32, {-1}).ok());
  EXPECT_FALSE(Tensor::allocate(ElementType(), {1}).ok());
}

TEST(Tensor, Strings) {
  const std::string long_text(100, 'x');
  auto tensor = Tensor::of<std::string>({2}, {"short", long_text});
  const Tensor copy = *tensor.clone(), shared = tensor;
  tensor.mutable_as<std::string>()[0] = "changed";
  EXPECT_EQ(copy.as<std::string>()[0], "short");
  EXPECT_EQ(shared.as<std::string>()[0], "changed");
  EXPECT_EQ(copy.as<std::string>()[1], long_text);
  EXPECT_EQ(Tensor::zeros(kString, {3})->as<std::string>()[2], "");
}

TEST(Tensor, BorrowChecksSizeAndAlignment) {
  alignas(8) std::byte data[64] = {};
  const auto fits = Tensor::borrow(kF32, {4}, data, 16);
  ASSERT_TRUE(fits.ok());
  EXPECT_EQ(fits->data(), data);
  EXPECT_EQ(fits->owner(), nullptr);
  const auto small = Tensor::borrow(kF32, {4}, data, 15);
  ASSERT_FALSE(small.ok());
  EXPECT_THAT(small.error().message(), HasSubstr("needs 16 bytes, its data has 15"));
  const auto unaligned = Tensor::borrow(kF32, {2}, data + 2, 32);
  ASSERT_FALSE(unaligned.ok());
  EXPECT_THAT(unaligned.error().message(), HasSubstr("not aligned to 4 bytes"));
  EXPECT_TRUE(Tensor::borrow(kF16, {2}, data + 2, 32).ok());
  EXPECT_TRUE(Tensor::borrow(kC64, {2}, data + 4, 32).ok());
  EXPECT_FALSE(Tensor::borrow(kC128, {2}, data + 4, 32).ok());
  EXPECT_TRUE(Tensor::borrow(kI4, {3}, data + 1, 2).ok());
  EXPECT_FALSE(Tensor::borrow(kF32, {1}, nullptr, 4).ok());
  EXPECT_TRUE(Tensor::borrow(kF32, {0}, nullptr, 0).ok());
}

TEST(Tensor, ShareKeepsItsOwner) {
  auto owner = std::make_shared<std::vector<int32_t>>(3, 5);
  const std::weak_ptr<std::vector<int32_t>> watch = owner;
  void* data = owner->data();
  auto tensor = *Tensor::share(kI32, {3}, std::move(owner), data, 12);
  Tensor copy = tensor;
  tensor = {};
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(copy.as<int32_t>()[2], 5);
  copy = {};
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, AnyElementByValue) {
  for (const ElementType element : {kF64, kF32, kF16, kBF16, kF8E4M3FN, kF8E5M2FNUZ, kF4E2M1, kI64, kI8, kI4, kI2,
                                    ElementType(ElementKind::sint, 13), ElementType(ElementKind::sint, 63)}) {
    auto tensor = *Tensor::zeros(element, {5});
    tensor.set_double(1, -2);
    tensor.set_int(3, 1);
    EXPECT_EQ(tensor.to_ints(), (std::vector<int64_t>{0, -2, 0, 1, 0})) << element.to_string();
    EXPECT_EQ(tensor.double_at(1), -2) << element.to_string();
  }
  auto flags = *Tensor::zeros(kBool, {2});
  flags.set_double(1, 0.25);
  EXPECT_EQ(flags.to_ints(), (std::vector<int64_t>{0, 1}));
  auto wide = Tensor::of<uint64_t>({1}, {UINT64_MAX});
  EXPECT_EQ(wide.int_at(0), -1);
  EXPECT_EQ(wide.double_at(0), 0x1p64);
  auto bytes = *Tensor::zeros(kU8, {2});
  bytes.set_double(0, 300);
  bytes.set_int(1, 300);
  EXPECT_EQ(bytes.to_ints(), (std::vector<int64_t>{255, 44}));
  EXPECT_EQ(Tensor::scalar<double>(-2.9).int_at(0), -2);
  EXPECT_EQ(Tensor::scalar<double>(1e30).int_at(0), INT64_MAX);
}

TEST(Tensor, Reshaped) {
  auto tensor = Tensor::of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto flat = tensor.reshaped({6});
  ASSERT_TRUE(flat.ok());
  EXPECT_EQ(flat->data(), tensor.data());
  const auto refused = tensor.reshaped({4});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), testing::AllOf(HasSubstr("i32[2,3]"), HasSubstr("[4]")));
  EXPECT_FALSE(tensor.reshaped({-6, -1}).ok());
}

TEST(Tensor, CloneIsApart) {
  auto tensor = Tensor::of<int32_t>({2}, {1, 2});
  const Tensor copy = *tensor.clone();
  tensor.mutable_as<int32_t>()[0] = 9;
  EXPECT_EQ(copy.as<int32_t>()[0], 1);
  EXPECT_FALSE(Tensor().clone()->valid());
}

TEST(Tensor, CloneThatTheHeapCannotGiveIsAnError) {
  // Borrowed, so that nothing of that size is ever touched.
  std::byte byte{};
  const auto huge = Tensor::borrow(kI8, {INT64_MAX}, &byte, SIZE_MAX);
  ASSERT_TRUE(huge.ok()) << huge.error().to_string();
  const auto copy = huge->clone();
  ASSERT_FALSE(copy.ok());
  EXPECT_EQ(copy.error().code(), Code::resource_exhausted);
  EXPECT_THAT(copy.error().to_string(), HasSubstr("a copy of a tensor i8[9223372036854775807]"));
}

TEST(Tensor, Identical) {
  const auto tensor = Tensor::of<float>({2}, {NAN, -0.f});
  EXPECT_TRUE(tensor.identical(*tensor.clone()));
  EXPECT_FALSE(tensor.identical(Tensor::of<float>({2}, {NAN, 0.f})));  // bits, not values
  EXPECT_FALSE(tensor.identical(*tensor.reshaped({2, 1})));
  EXPECT_FALSE(Tensor::of<int32_t>({1}, {0}).identical(Tensor::of<float>({1}, {0})));
  EXPECT_FALSE(Tensor::of<std::string>({1}, {"a"}).identical(Tensor::of<std::string>({1}, {"b"})));
}

TEST(Tensor, IdenticalIgnoresWhatFollowsTheLastElement) {
  std::byte a[2] = {std::byte{0x21}, std::byte{0x03}}, b[2] = {std::byte{0x21}, std::byte{0xf3}};
  const auto left = *Tensor::borrow(kU4, {3}, a, 2), right = *Tensor::borrow(kU4, {3}, b, 2);
  EXPECT_TRUE(left.identical(right));
  b[1] = std::byte{0x02};
  EXPECT_FALSE(left.identical(right));
}

TEST(TensorDeathTest, WrongCppTypeIsOurFault) {
  const auto tensor = Tensor::of<float>({1}, {1});
  EXPECT_DEATH((void)tensor.as<int32_t>(), "a tensor of f32 read as another");
  EXPECT_DEATH((void)Tensor::of<std::string>({1}, {""}).double_at(0), "str");
}

}  // namespace
}  // namespace tenon
