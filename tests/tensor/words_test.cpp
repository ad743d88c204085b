#include <tenon/tensor/words.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace tenon {
namespace {

using ::testing::HasSubstr;

constexpr ElementType kU1{ElementKind::uint, 1}, kU6{ElementKind::uint, 6};

Layout layout(std::string_view text, std::string_view dims, const Dims& shape, int64_t bits) {
  auto made = Layout::parse(text, dims, shape, bits);
  EXPECT_TRUE(made.ok()) << text;
  return *std::move(made);
}

Tensor random_tensor(ElementType element, const Dims& dims, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor tensor = *Tensor::zeros(element, dims);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.set_int(i, static_cast<int64_t>(random() & ((uint64_t{1} << element.bits()) - 1)));
  }
  return tensor;
}

TEST(Words, GroupsOfBitsAreIntegers) {
  const Layout packed = layout("NHWC<6c:8>", "NCHW", {2, 6, 2, 3}, 1);
  const Tensor bits = random_tensor(kU1, {2, 6, 2, 3}, 1);
  const auto words = as_words(bits, packed);
  ASSERT_TRUE(words.ok()) << words.error().to_string();
  EXPECT_EQ(words->element(), kU8);
  EXPECT_EQ(words->dims(), (Dims{2, 2, 3, 1}));
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t p = 0; p < 6; ++p) {
      int64_t wanted = 0;
      for (int64_t c = 0; c < 6; ++c) wanted |= bits.int_at((n * 6 + c) * 6 + p) << c;
      EXPECT_EQ(words->int_at(n * 6 + p), wanted);
    }
  }
}

TEST(Words, OfAnyWidthAndBack) {
  struct Case {
    std::string_view text;
    Dims shape;
    ElementType element, word;
    Dims dims;
  };
  const Case cases[] = {
      {"NHWC<6c>", {1, 12, 2, 2}, kU1, kU6, {1, 2, 2, 2}},          // 6 bits, side by side
      {"NHWC<8c>;lane=msb", {1, 9, 2, 2}, kU1, kU8, {1, 2, 2, 2}},  // with padding
      {"NHWC<16c:32>", {1, 16, 2, 2}, kU1, kU32, {1, 2, 2, 1}},     // half of the word is slack
      {"[2h]NHWC<8c>", {1, 8, 4, 2}, kU1, kU8, {2, 1, 2, 2, 1}},    // banks first
      {"NHWC<64c>", {1, 64, 1, 2}, kU1, kU64, {1, 1, 2, 1}},
      {"NCHW;align(H)=8B", {1, 2, 2, 3}, kU8, kU8, {32}},  // pitches: one dim
      {"NCHW", {1, 2, 2, 3}, kI4, kU4, {1, 2, 2, 3}},
      {"NHWC<2c>;size=64B", {1, 4, 1, 2}, kU4, kU8, {1, 1, 2, 2}},  // bytes behind the words
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.text);
    const Layout packed = layout(one.text, "NCHW", one.shape, one.element.bits());
    const Tensor tensor = random_tensor(one.element, one.shape, 7);
    const auto words = as_words(tensor, packed);
    ASSERT_TRUE(words.ok()) << words.error().to_string();
    EXPECT_EQ(words->element(), one.word);
    EXPECT_EQ(words->dims(), one.dims);
    const auto back = from_words(*words, packed, one.element);
    ASSERT_TRUE(back.ok()) << back.error().to_string();
    EXPECT_TRUE(back->identical(tensor));
  }
}

TEST(Words, RefusesWhatIsNoInteger) {
  const auto message = [](const auto& result) { return result.ok() ? "no error" : result.error().to_string(); };
  const Tensor tensor = random_tensor(kU1, {1, 128, 1, 1}, 1);
  EXPECT_THAT(message(as_words(tensor, layout("NHWC<128c>", "NCHW", {1, 128, 1, 1}, 1))),
              HasSubstr("words of 128 bits"));
  EXPECT_THAT(message(as_words(tensor, layout("NHWC", "NCHW", {1, 64, 1, 1}, 1))), HasSubstr("a layout of"));
  const Layout packed = layout("NHWC<8c>", "NCHW", {1, 128, 1, 1}, 1);
  EXPECT_THAT(message(from_words(tensor, packed, kU1)), HasSubstr("the words of this layout are u8[1,1,1,16]"));
  const auto words = as_words(tensor, packed);
  ASSERT_TRUE(words.ok());
  EXPECT_THAT(message(from_words(*words, packed, kU8)), HasSubstr("elements of 1 bits"));
  EXPECT_THAT(message(as_words(random_tensor(kU1, {1, 3, 2, 1}, 1), layout("[2h]NCHW", "NCHW", {1, 3, 2, 1}, 1))),
              HasSubstr("end within a byte"));
}

}  // namespace
}  // namespace tenon
