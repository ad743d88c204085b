// Algebraic rewrites of bodies, node by node. That results are unchanged is tested by body_numbers_test.cpp.
#include "x86/body/identities.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "x86/body/numbers.hpp"
#include "x86/body_of.hpp"

namespace tenon::x86 {
namespace {

using testing::body_of;
using testing::nodes;

// A function of a choice between two uniform values is computed for each of these.
TEST(BodyIdentities, ChoicesBetweenTheSameForAllElements) {
  const auto of = [](const std::string& operators, const std::string& outputs = "%y", const std::string& n = "N") {
    return with_fewer_checks(
        body_of(str("graph @g(%x: f32[", n, "], %i: i32[", n, "], %u: i32[1], %v: f32[1]) -> ", outputs,
                    " {\n%k = Constant {value = dense<f32[]: 3>}\n%five = Constant {value = "
                    "dense<i32[]: 5>}\n%c = Less %x, %k\n%d = Greater %i, %five\n%a = Where %c, "
                    "%u, %five\n",
                    operators, "\n}")));
  };
  // The number of operators with varying results: all, or those of one kind.
  const auto vary = [&](const snippet::Body& body, std::string_view op = {}) {
    return std::ranges::count_if(body.nodes, [&](const snippet::BodyNode& node) {
      return body.values[static_cast<size_t>(node.result)].varies != 0 && (op.empty() || node.op.view() == op);
    });
  };
  EXPECT_EQ(vary(of("%b = Mul %a, %u\n%y = Abs %b")), 2) << "the comparison and a choice";
  EXPECT_EQ(nodes(of("%b = Mul %a, %u\n%y = Abs %b"), "Abs"), 2);
  EXPECT_EQ(vary(of("%b = Add %a, %u\n%e = Greater %u, %five\n%f = Where %e, %b, %a\n%y = Abs %f")), 2)
      << "by a condition that stands";
  EXPECT_EQ(vary(of("%b = Where %c, %five, %u\n%e = BitwiseXor %a, %five\n%f = BitwiseAnd %e, %b\n%y = Abs %f")), 2)
      << "of two choices";
  EXPECT_EQ(vary(of("%s = Where %c, %k, %v\n%b = Mul %s, %v\n%y = Add %b, %x"), "Mul"), 0);
  EXPECT_EQ(vary(of("%b = Mul %a, %i\n%y = Abs %b"), "Abs"), 1) << "%i varies";
  EXPECT_EQ(vary(of("%b = Where %d, %five, %u\n%e = Mul %a, %b\n%y = Abs %e"), "Mul"), 1) << "by two conditions";
  EXPECT_EQ(vary(of("%b = Mul %a, %u\n%y = Abs %b", "(%y, %b)"), "Abs"), 1) << "that would be two choices";
  EXPECT_EQ(vary(of("%b = Mul %a, %u\n%y = Less %b, %i"), "Less"), 2) << "choices of conditions are more";
  EXPECT_EQ(vary(of("%b = Mul %a, %u\n%y = Abs %b", "%y", "63"), "Abs"), 1) << "of few elements";
  EXPECT_EQ(vary(of("%b = Mul %a, %u\n%y = Abs %b", "%y", "64"), "Abs"), 0);
  EXPECT_EQ(vary(of("%b = Less %a, %u\n%e = Where %b, %a, %five\n%f = GreaterOrEqual %e, %a\n%h = And %b, %f\n%y = "
                    "Where %h, %u, %e")),
            2)
      << "by way of comparisons";
  EXPECT_EQ(vary(of("%b = Less %a, %u\n%e = Where %b, %a, %five\n%y = Abs %e", "(%y, %b)"), "Abs"), 1)
      << "a condition that others read";
  // The values are uniform only within each row.
  const auto of_rows = [&](const std::string& extents) {
    return with_fewer_checks(body_of(str("graph @g(%x: f32[", extents,
                                         "], %i: i32[7, 1], %u: i32[7, 1]) -> %y {\n%k = "
                                         "Constant {value = dense<f32[]: 3>}\n%c = Less %x, %k\n%a = Where %c, %i, "
                                         "%u\n%b = Mul %a, %u\n%y = Abs %b\n}")));
  };
  const auto vary_within = [](const snippet::Body& body) {
    return std::ranges::count_if(body.nodes, [&](const snippet::BodyNode& node) {
      return node.op.view() == "Abs" && (body.values[static_cast<size_t>(node.result)].varies & 2) != 0;
    });
  };
  EXPECT_EQ(vary_within(of_rows("7, 64")), 0);
  EXPECT_EQ(vary_within(of_rows("7, N")), 0);
  EXPECT_EQ(vary_within(of_rows("7, 63")), 1) << "of short ones";
}

TEST(BodyIdentities, Identities) {
  const auto of = [](const std::string& operators) {
    return with_fewer_checks(
        body_of("graph @g(%x: f32[N], %z: f32[N], %i: i32[N], %j: i32[N], %b: i8[N], %e: i8[N]) -> %y {\n"
                "%k = Constant {value = dense<f32[]: 3>}\n%o = Constant {value = dense<f32[]: 0>}\n"
                "%two = Constant {value = dense<i32[]: 2>}\n%three = Constant {value = dense<i8[]: 3>}\n" +
                operators + "\n}"));
  };
  const auto count = [&](const std::string& operators) { return of(operators).nodes.size(); };
  // The condition of a choice implies which of two values is the greater.
  const std::string known = "%m = Min %i, %j\n%n = Max %j, %i\n%c = LessOrEqual %i, %j\n";
  EXPECT_EQ(count(known + "%y = Where %c, %m, %two"), 3u) << "%i";
  EXPECT_EQ(nodes(of(known + "%y = Where %c, %m, %i"), "Where"), 0) << "%i anyway";
  EXPECT_EQ(nodes(of(known + "%y = Where %c, %two, %n"), "Max"), 0);
  EXPECT_EQ(nodes(of("%m = Max %i, %j\n%c = Equal %i, %j\n%y = Where %c, %m, %two"), "Max"), 1) << "either";
  EXPECT_EQ(nodes(of("%m = Max %i, %two\n%c = Less %i, %j\n%y = Where %c, %m, %j"), "Max"), 1) << "of others";
  // Differences with a choice: one arm is 0, unless the sum simplifies further.
  const std::string chosen = "%c = Less %x, %z\n%d = Where %c, %i, %j\n";
  const auto arm_is_zero = [&](const std::string& operators) {
    const snippet::Body body = of(operators);
    const auto choice = std::ranges::find(body.nodes, Name("Where"), &snippet::BodyNode::op);
    const auto is_zero = [&](snippet::ValueId id) {
      const auto made = std::ranges::find(body.nodes, id, &snippet::BodyNode::result);
      return made != body.nodes.end() && made->op.view() == "Scalar" &&
             *made->attributes.find("bits")->get_if<int64_t>() == 0;
    };
    return choice != body.nodes.end() && (is_zero(choice->operands[1]) || is_zero(choice->operands[2]));
  };
  EXPECT_TRUE(arm_is_zero(chosen + "%y = Sub %d, %j"));
  EXPECT_TRUE(arm_is_zero(chosen + "%y = Sub %i, %d"));
  EXPECT_FALSE(arm_is_zero(chosen + "%y = Sub %d, %two"));
  EXPECT_FALSE(arm_is_zero(chosen + "%f = Sub %d, %j\n%y = Add %f, %j"));
  EXPECT_FALSE(arm_is_zero(chosen + "%f = Sub %d, %j\n%y = Max %f, %d")) << "it is chosen anyway";
  // The chosen value is the greater or the less one, except for the sign of zero.
  EXPECT_EQ(nodes(of("%c = Greater %x, %z\n%y = Where %c, %x, %z"), "ClampLow"), 1);
  EXPECT_EQ(nodes(of("%c = Less %x, %z\n%y = Where %c, %x, %z"), "ClampHigh"), 1);
  EXPECT_EQ(nodes(of("%c = LessOrEqual %x, %z\n%y = Where %c, %x, %z"), "Where"), 1);
  EXPECT_EQ(nodes(of("%c = LessOrEqual %x, %k\n%y = Where %c, %x, %k"), "ClampHigh"), 1);
  EXPECT_EQ(nodes(of("%c = LessOrEqual %i, %j\n%y = Where %c, %i, %j"), "Min"), 1);
  // Comparisons of two integers.
  EXPECT_EQ(nodes(of("%c = Less %i, %j\n%d = Greater %i, %j\n%f = Or %c, %d\n%y = Where %f, %x, %z"), "NotEqual"), 1);
  EXPECT_EQ(nodes(of("%c = Less %x, %z\n%d = Greater %x, %z\n%f = Or %c, %d\n%y = Where %f, %i, %j"), "Or"), 1);
  EXPECT_EQ(count("%c = Less %i, %j\n%d = Less %j, %i\n%f = Or %c, %d\n%a = Where %f, %j, %i\n%y = Neg %a"), 1u);
  // Comparisons of one integer with numbers.
  const auto joined = [&](const std::string& conditions) {
    return of("%four = Constant {value = dense<i32[]: 4>}\n%five = Constant {value = dense<i32[]: 5>}\n" + conditions +
              "\n%y = Where %f, %x, %z");
  };
  EXPECT_EQ(nodes(joined("%c = Greater %i, %four\n%d = Less %i, %four\n%f = Or %c, %d"), "NotEqual"), 1);
  EXPECT_EQ(nodes(joined("%c = Greater %i, %five\n%d = LessOrEqual %i, %four\n%f = Or %c, %d"), "NotEqual"), 1);
  EXPECT_EQ(nodes(joined("%c = Less %i, %five\n%d = GreaterOrEqual %i, %four\n%f = And %c, %d"), "Equal"), 1);
  EXPECT_EQ(nodes(joined("%c = Less %i, %five\n%d = Equal %five, %i\n%f = Or %c, %d"), "Or"), 0);
  EXPECT_EQ(nodes(joined("%c = Less %i, %four\n%d = Greater %i, %five\n%f = And %c, %d"), "Where"), 0) << "never";
  EXPECT_EQ(nodes(joined("%c = Less %i, %five\n%d = Greater %i, %four\n%f = Or %c, %d"), "Where"), 0) << "always";
  EXPECT_EQ(nodes(joined("%c = Less %i, %two\n%d = Greater %i, %five\n%f = Or %c, %d"), "Or"), 1) << "a gap of four";
  // Comparisons of sums with constants.
  EXPECT_EQ(nodes(joined("%n = Neg %i\n%c = Greater %n, %four\n%d = Greater %i, %five\n%f = And %c, %d"), "Where"), 0);
  EXPECT_EQ(nodes(joined("%n = Sub %five, %i\n%c = Greater %n, %five\n%d = Equal %i, %two\n%f = Or %c, %d"), "Sub"), 1)
      << "two stretches";
  EXPECT_EQ(
      nodes(joined("%n = Sub %i, %four\n%m = Sub %four, %i\n%c = Less %n, %two\n%d = Less %m, %two\n%f = And %c, %d"),
            "And"),
      1)
      << "2 to 6";
  EXPECT_EQ(
      nodes(joined("%n = Sub %i, %four\n%m = Neg %n\n%c = LessOrEqual %n, %two\n%d = GreaterOrEqual %n, %two\n%f = "
                   "And %c, %d"),
            "Equal"),
      1);
  // Comparisons of bounds, choices and magnitudes, and their values under a condition.
  EXPECT_EQ(nodes(joined("%m = Max %i, %five\n%f = Less %m, %four"), "Where"), 0) << "never";
  EXPECT_EQ(nodes(joined("%m = Min %i, %five\n%f = Less %m, %four"), "Min"), 0);
  EXPECT_EQ(nodes(joined("%m = Abs %i\n%c = Less %m, %four\n%d = Greater %i, %five\n%f = And %c, %d"), "Where"), 0);
  EXPECT_EQ(nodes(joined("%m = Abs %i\n%f = Less %m, %four"), "Abs"), 1) << "two bounds, and |least| is below";
  EXPECT_EQ(nodes(joined("%c = Greater %i, %four\n%m = Where %c, %five, %i\n%n = Neg %m\n%f = Less %n, %two"), "Neg"),
            1)
      << "two stretches, as -least is below";
  EXPECT_EQ(nodes(joined("%c = Greater %i, %four\n%m = Where %c, %five, %j\n%f = Less %m, %two"), "Where"), 2)
      << "of two integers";
  const std::string nested =
      "%four = Constant {value = dense<i32[]: 4>}\n%five = Constant {value = dense<i32[]: 5>}\n%c = "
      "Less %i, %four\n%d = Less %i, %five\n";
  EXPECT_EQ(nodes(of(nested + "%a = Where %c, %two, %j\n%y = Where %d, %i, %a"), "Where"), 1) << "%j";
  EXPECT_EQ(nodes(of(nested + "%a = Max %i, %five\n%y = Where %c, %five, %a"), "Where"), 1) << "it is 4 as well";
  EXPECT_EQ(nodes(of(nested + "%a = Max %i, %five\n%y = Where %d, %five, %a"), "Where"), 0) << "%a";
  EXPECT_EQ(nodes(of(nested + "%a = Max %i, %five\n%y = Where %c, %a, %five"), "Where"), 0) << "5 everywhere";
  // Extrema of functions that increase or decrease with x.
  const auto folded = [&](const std::string& operators) {
    return with_fewer_checks(
        body_of("graph @g(%x: f32[7, N], %z: f32[7, N]) -> %y {\n%axes = Constant {value = dense<i64[1]: 1>}\n%k = "
                "Constant {value = dense<f32[]: 3>}\n%o = Constant {value = dense<f32[]: 0>}\n" +
                operators + "\n}"));
  };
  const auto along_rows = [&](const std::string& operators) {
    const snippet::Body body = folded(operators);
    return std::ranges::count_if(body.nodes, [&](const snippet::BodyNode& node) {
      return (body.values[static_cast<size_t>(node.result)].varies & 2) != 0;
    });
  };
  EXPECT_EQ(along_rows("%a = Add %x, %k\n%b = Mul %k, %a\n%y = ReduceMax %b, %axes"), 0);
  EXPECT_EQ(nodes(folded("%a = Sub %k, %x\n%y = ReduceMax %a, %axes"), "ReduceMin"), 1);
  EXPECT_EQ(along_rows("%a = Add %x, %z\n%y = ReduceMax %a, %axes"), 1) << "%z varies";
  EXPECT_EQ(along_rows("%a = Mul %x, %o\n%y = ReduceMax %a, %axes"), 1) << "of infinity it is NaN";
  EXPECT_EQ(along_rows("%a = Add %x, %k\n%m = ReduceMax %a, %axes\n%b = Sub %a, %m\n%y = ReduceSum %b, %axes"), 2)
      << "it is made anyway";
  // The same condition twice.
  EXPECT_EQ(nodes(of("%c = Less %x, %k\n%a = Where %c, %x, %z\n%f = Neg %x\n%y = Where %c, %f, %a"), "Where"), 1);
  // Conditions on one value, and conditions on a value and its maximum with another one.
  const auto within = [&](const char* inner, const char* choice) {
    return nodes(of(str("%c = ", inner, " %x, %k\n%d = Less %x, %o\n%a = Where %c, %z, %x\n%y = Where ", choice)),
                 "Where");
  };
  EXPECT_EQ(within("Less", "%d, %a, %k"), 1);
  EXPECT_EQ(within("Greater", "%d, %a, %k"), 1);
  EXPECT_EQ(within("Greater", "%d, %k, %a"), 2);
  EXPECT_EQ(nodes(of("%c = Less %x, %o\n%d = Less %x, %k\n%a = Where %c, %z, %x\n%y = Where %d, %k, %a"), "ClampLow"),
            1);
  EXPECT_EQ(nodes(of("%s = Constant {value = dense<i8[]: 4>}\n%a = Max %b, %s\n%c = LessOrEqual %a, %b\n%y = Where %c, "
                     "%x, %z"),
                  "Max"),
            0);
  EXPECT_EQ(nodes(of("%a = Max %i, %j\n%c = Greater %i, %a\n%y = Where %c, %x, %z"), "Where"), 0);
  EXPECT_EQ(nodes(of("%a = Max %i, %j\n%c = GreaterOrEqual %i, %a\n%y = Where %c, %x, %z"), "Max"), 0);
  EXPECT_EQ(nodes(of("%a = Max %x, %z\n%c = LessOrEqual %x, %a\n%y = Where %c, %i, %j"), "Where"), 1) << "not of NaN";
  // Signs.
  EXPECT_EQ(nodes(of("%a = Neg %x\n%f = Mul %a, %k\n%c = Neg %f\n%d = Abs %c\n%y = Sub %z, %d"), "Neg"), 0);
  // Values without a fractional part.
  const auto floors = [&](const std::string& operators) { return nodes(of(operators), "Floor"); };
  EXPECT_EQ(floors("%a = Cast %b {to = type<f32[*]>}\n%c = Mul %a, %k\n%d = Max %c, %o\n%y = Floor %d"), 0);
  EXPECT_EQ(floors("%a = Ceil %x\n%c = Sub %a, %k\n%d = Less %x, %k\n%f = Where %d, %c, %o\n%y = Floor %f"), 0);
  EXPECT_EQ(floors("%a = Ceil %x\n%c = Add %a, %z\n%y = Floor %c"), 1);
  EXPECT_EQ(floors("%h = Constant {value = dense<f32[]: 0.5>}\n%a = Floor %x\n%c = Mul %a, %h\n%y = Floor %c"), 2);
  // Redundant operators.
  EXPECT_EQ(count("%a = Min %i, %j\n%c = Max %i, %a\n%y = Neg %c"), 1u);
  EXPECT_EQ(count("%a = BitwiseOr %i, %j\n%c = BitwiseAnd %a, %j\n%y = Neg %c"), 1u);
  EXPECT_EQ(count("%a = Max %b, %e\n%c = Max %a, %e\n%y = Neg %c"), count("%a = Max %b, %e\n%y = Neg %a"));
  EXPECT_EQ(
      nodes(of("%c = Less %x, %z\n%d = Less %i, %j\n%f = And %c, %d\n%g = Or %f, %d\n%y = Where %g, %x, %k"), "And"),
      0);
  EXPECT_EQ(count("%a = Min %x, %z\n%c = Max %x, %a\n%y = Neg %c"), 3u) << "%z may be NaN";
  EXPECT_EQ(count("%a = Max %x, %z\n%c = Max %a, %z\n%y = Neg %c"), 3u) << "which zero it is";
  // A value that is converted both as it is and after clamping.
  const auto converts = [&](const std::string& bounded) {
    return nodes(of("%s = Constant {value = dense<f32[]: -2.5>}\n" + bounded +
                    "\n%c = Cast %a {to = type<i32[*]>}\n%d = Cast %x {to = type<i32[*]>}\n%y = BitwiseXor %c, %d"),
                 "Convert");
  };
  EXPECT_EQ(converts("%a = Relu %x"), 1);
  EXPECT_EQ(converts("%a = Max %x, %s"), 1);
  EXPECT_EQ(converts("%a = Min %x, %k"), 1);
  EXPECT_EQ(converts("%a = Max %x, %k"), 2) << "NaN is 0";
  EXPECT_EQ(converts("%a = Relu %z"), 2);
  EXPECT_EQ(nodes(of("%a = Relu %x\n%c = Cast %a {to = type<i32[*]>}\n%y = Neg %c"), "Max"), 0)
      << "%x is not converted";
  // Integers converted to f32 and back.
  EXPECT_EQ(nodes(of("%a = Cast %b {to = type<f32[*]>}\n%c = Cast %a {to = type<i32[*]>}\n%y = Max %c, %i"), "Convert"),
            0);
  EXPECT_EQ(nodes(of("%a = Cast %b {to = type<f32[*]>}\n%c = Cast %a {to = type<i8[*]>}\n%y = Max %c, %e"), "Convert"),
            0);
  EXPECT_EQ(nodes(of("%a = Cast %b {to = type<f32[*]>}\n%c = Cast %a {to = type<u8[*]>}\n%d = Cast %c {to = "
                     "type<i32[*]>}\n%y = Max %d, %i"),
                  "ConvertInRange"),
            1)
      << "negative ones are 0";
  EXPECT_GT(nodes(of("%a = Cast %i {to = type<f32[*]>}\n%c = Cast %a {to = type<i32[*]>}\n%y = Max %c, %j"), "Convert"),
            0)
      << "f32 does not hold all";
  // Sums.
  EXPECT_EQ(count("%a = Add %i, %j\n%c = Sub %a, %i\n%y = Neg %c"), 1u);
  EXPECT_EQ(count("%a = Add %i, %two\n%c = Add %a, %j\n%d = Sub %c, %i\n%y = Max %d, %j"), 3u) << "j + 2";
  EXPECT_EQ(nodes(of("%a = Mul %b, %three\n%c = Sub %a, %b\n%y = Max %c, %e"), "Mul"), 1) << "2 b";
  EXPECT_EQ(nodes(of("%a = Mul %b, %three\n%c = Sub %a, %b\n%y = Max %c, %e"), "Sub"), 0);
  EXPECT_EQ(nodes(of("%a = Sub %b, %three\n%c = BitwiseXor %a, %b\n%d = Add %c, %b\n%f = Sub %d, %three\n%y = Max "
                     "%f, %c"),
                  "Add"),
            1)
      << "c and what a is, which is there";
  EXPECT_EQ(count("%u = Cast %i {to = type<u32[*]>}\n%v = Cast %j {to = type<u32[*]>}\n%a = Sub %u, %v\n%c = Sub %a, "
                  "%u\n%y = Max %c, %v"),
            5u)
      << "0 - v: Neg is of numbers with signs";
  // x - x, monotonic functions with only one value after conversion, and comparisons of a value with itself.
  EXPECT_EQ(nodes(of("%a = Sub %x, %x\n%c = Cast %a {to = type<i32[*]>}\n%y = Add %c, %i"), "Sub"), 0);
  EXPECT_EQ(nodes(of("%a = Sub %x, %x\n%y = Add %a, %z"), "Sub"), 1) << "of infinity it is NaN";
  EXPECT_EQ(nodes(of("%n = Abs %x\n%m = Neg %n\n%a = Sigmoid %m\n%c = Cast %a {to = type<i32[*]>}\n%y = Add %c, %i"),
                  "Sigmoid"),
            0);
  EXPECT_EQ(nodes(of("%c = LessOrEqual %i, %i\n%y = Where %c, %x, %z"), "Where"), 0);
  EXPECT_EQ(nodes(of("%c = LessOrEqual %x, %x\n%y = Where %c, %x, %z"), "Where"), 1);
}

}  // namespace
}  // namespace tenon::x86
