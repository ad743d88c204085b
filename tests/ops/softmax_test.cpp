#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

TEST(SoftmaxRule, KeepsTheTypeAndChecksTheAxis) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    const auto rule = [op](std::string_view x, int axis) {
      return inferred(str("(%x: ", x, ") -> %y { %y = ", op, " %x {axis = ", axis, "} }"));
    };
    EXPECT_EQ(rule("f16[N,3]", -2), "f16[N,3]") << op;
    EXPECT_EQ(rule("f16[*]", 7), "f16[*]") << op;
    EXPECT_THAT(rule("f16[N,3]", 2), HasSubstr(op));
    EXPECT_THAT(rule("f16[]", -1), HasSubstr("error: ")) << op;
    EXPECT_THAT(rule("i32[2]", 0), HasSubstr("float tensors")) << op;
  }
}

}  // namespace
}  // namespace tenon
