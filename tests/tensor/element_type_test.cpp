#include <gtest/gtest.h>
#include <tenon/tensor/element_type.hpp>

namespace tenon {
namespace {

TEST(ElementType, TextAndBack) {
  const std::pair<ElementType, const char*> cases[] = {
      {kF64, "f64"},           {kF32, "f32"},
      {kF16, "f16"},           {kBF16, "bf16"},
      {kF8E4M3FN, "f8e4m3fn"}, {kF8E4M3FNUZ, "f8e4m3fnuz"},
      {kF8E5M2, "f8e5m2"},     {kF8E5M2FNUZ, "f8e5m2fnuz"},
      {kF8E8M0, "f8e8m0"},     {kF4E2M1, "f4e2m1"},
      {kBool, "bool"},         {kString, "str"},
      {kC64, "c64"},           {kC128, "c128"},
  };
  for (const auto& [element, text] : cases) {
    EXPECT_EQ(element.to_string(), text);
    EXPECT_EQ(ElementType::parse(text), element);
  }
}

TEST(ElementType, IntegersOfAnyWidth) {
  for (int bits = 1; bits <= 64; ++bits) {
    const ElementType i(ElementKind::sint, static_cast<uint8_t>(bits)),
        u(ElementKind::uint, static_cast<uint8_t>(bits));
    EXPECT_EQ(i.to_string(), "i" + std::to_string(bits));
    EXPECT_EQ(u.to_string(), "u" + std::to_string(bits));
    EXPECT_EQ(ElementType::parse(i.to_string()), i);
    EXPECT_EQ(ElementType::parse(u.to_string()), u);
    EXPECT_TRUE(i.is_int() && i.is_signed_int() && i.is_number() && !i.is_float());
    EXPECT_TRUE(u.is_int() && u.is_unsigned_int() && !u.is_signed_int());
  }
}

TEST(ElementType, RefusesWhatIsNone) {
  for (const char* text : {"", "i", "i0", "i65", "u99", "i08", "i8 ", " i8", "i-1", "i+1", "f31", "F32", "none", "?",
                           "float", "bool8", "f8", "i641", "u\x38\xff"})
    EXPECT_EQ(ElementType::parse(text), std::nullopt) << text;
}

TEST(ElementType, NoneIsInvalid) {
  EXPECT_FALSE(ElementType().valid());
  EXPECT_EQ(ElementType().to_string(), "none");
  EXPECT_TRUE(kBool.valid() && kString.valid());
}

TEST(ElementType, ByteAddressable) {
  for (const auto element : {kF64, kF16, kI8, kU32, kBool, kC128, kF8E8M0}) EXPECT_TRUE(element.byte_addressable());
  for (const auto element : {kI4, kU2, kF4E2M1, kString, ElementType(ElementKind::sint, 24)})
    EXPECT_FALSE(element.byte_addressable()) << element.to_string();
}

}  // namespace
}  // namespace tenon
