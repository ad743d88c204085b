#include <tenon/snippet/linear/linear.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <snippet/bodies.hpp>
#include <support_lib/spoilt.hpp>

#include <tenon/support/str.hpp>

namespace tenon::snippet::test {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kScale = R"(kernel @scale lanes 4 {
  #0 = limit loop 0
  #1 = limit loop 1
  #2 = pointer 0
  #3 = pointer 1
  #4 = limit loop 2
  #5 = shift 0 loop 0
  #6 = shift 1 loop 0
  %0:f32 = Scalar {bits = 0x40000000}
  %4:g = Parameter #2
  %6:g = Parameter #3
  %1:g = Zero
  loop 0 d0 dim 0 %1 step 1 limit #0 moves %4 #5 -, %6 #6 - {
    %2:g = Zero
    loop 1 d1 dim 1 %2 vector step 4 limit #1 {
      %3:f32 = Load f32 [%4 + %2]
      %5:f32 = Mul %3, %0 ; Mul n2
      Store f32 [%6 + %2], %5
    }
    tail 2 d1 dim 1 %2 limit #4 -> %7:bool, %8:g {
      %9:f32 = Load.partial f32 [%4 + %2], %7, %8
      %10:f32 = Mul %9, %0 ; Mul n2
      Store.partial f32 [%6 + %2], %10, %7, %8
    }
  }
}
)";

// Stores x at the beginning of y if the first x is below 2, otherwise -x after it.
constexpr std::string_view kWhen = R"(kernel @when lanes 4 {
  #0 = pointer 0
  #1 = pointer 1
  %0:g = Parameter #0
  %1:g = Parameter #1
  %2:f32 = Load f32 [%0]
  %3:f32 = Scalar {bits = 0x40000000}
  %4:bool = Less %2, %3
  when %4 {
    Store f32 [%1], %2
  }
  when not %4 {
    %5:f32 = Neg %2
    Store f32 [%1 + 16], %5
  }
}
)";

LinearKernel parsed(std::string_view text) {
  auto kernel = parse_linear(text);
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  return kernel.ok() ? *std::move(kernel) : LinearKernel();
}
// kScale with one line replaced.
std::string changed(std::string_view from, std::string_view to) {
  std::string text(kScale);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(LinearText, PrintsWhatItParses) { EXPECT_EQ(print(parsed(kScale)), kScale); }

TEST(LinearText, Whens) {
  EXPECT_EQ(print(parsed(kWhen)), kWhen);
  EXPECT_FALSE(parse_linear(std::string(kWhen).replace(kWhen.find("when %4"), 7, "when % ")).ok());
}

// In the interpreter, before and after allocation: one of the two regions runs, depending only on lane 0.
TEST(LinearRun, Whens) {
  for (const bool allocated : {false, true}) {
    LinearKernel kernel = parsed(kWhen);
    const TestMachine machine = test_machine(4, true, true);
    if (allocated) {
      const auto done = allocate(kernel, machine.pool, machine.needs);
      ASSERT_TRUE(done.ok()) << done.error().to_string();
      const auto checked = verify(kernel);
      ASSERT_TRUE(checked.ok()) << checked.error().to_string();
    }
    for (const float first : {1.0f, 3.0f}) {
      std::array<float, 4> x{first, 5, 1, 7};
      std::array<float, 8> y{};
      const std::array<int64_t, 2> words{reinterpret_cast<int64_t>(x.data()), reinterpret_cast<int64_t>(y.data())};
      const std::array<LinearBuffer, 2> buffers{LinearBuffer{x.data(), sizeof x, false},
                                                LinearBuffer{y.data(), sizeof y, true}};
      const auto ran = run_linear(kernel, words, buffers, allocated ? machine.needs : NeedsFn());
      ASSERT_TRUE(ran.ok()) << ran.error().to_string();
      const std::array<float, 8> expected =
          first < 2 ? std::array<float, 8>{first, 5, 1, 7} : std::array<float, 8>{0, 0, 0, 0, -first, -5, -1, -7};
      EXPECT_EQ(y, expected);
    }
  }
}

TEST(LinearText, IsWhatLoweringMakes) {
  BodyBuilder build("scale", "kk");
  const ValueId x = build.input(3), two = build.scalar(2);
  build.output(build.op("Mul", {x, two}));
  const auto kernel = lower(build.take(), {.lanes = 4, .unroll = 1});
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(print(*kernel), kScale);
}

TEST(LinearText, AllParts) {
  const std::string_view text = R"(kernel @all lanes 16 frame 2 {
  #0 = pointer 0
  #1 = shift 0 loop 0 inner 1
  #2 = rewind 2 loop 1
  #3 = count f32
  #4 = limit loop 0
  #5 = limit loop 1
  scratch f32 dims 0x6 width 64
  blocks dim 2 again of 512 within 65536, 128
  %0:g@g3 = Parameter #0
  %1:f32@v0 = BroadcastParameter #3
  %2:f32@v1 = BroadcastLoad f32 [%0 + 12] uses v5 m2 g1
  %3:f32@v2 = Gelu %1 {approximate = "tanh", bits = 0x10} ; Gelu a b; c
  %4:f32@v2 = Swish %3 {alpha = 1.5, count = -3} uses v7
  Store.one f16 [%0 + -4], %4
  Spill %4 slot 1
  %5:f32@v2 = Reload slot 1
}
)";
  EXPECT_EQ(print(parsed(text)), text);
}

Body one_of_each() {
  BodyBuilder build("norm", "krk");
  const ValueId x = build.input(7), y = build.input(4, kF16);
  const ValueId s = build.reduce("ReduceSum", x);
  build.output(build.op("Where", {build.op("Less", {x, s}, {}, kBool), y, x}), kBF16);
  build.output(s);
  return build.take();
}

Body rows_body() {
  BodyBuilder rows("rows", "kr");
  rows.output(rows.reduce("ReduceSum", rows.input(3)));
  return rows.take();
}

TEST(LinearText, WhateverLoweringAndAllocationMake) {
  const Body body = one_of_each();
  const auto several = lower(rows_body(), {.lanes = 8, .vectors = 32});
  ASSERT_TRUE(several.ok());
  EXPECT_THAT(print(*several), HasSubstr(" longest 256"));
  EXPECT_EQ(print(parsed(print(*several))), print(*several));
  for (const int registers : {4, 16}) {
    auto kernel = lower(body, {.lanes = 8});
    ASSERT_TRUE(kernel.ok());
    EXPECT_EQ(print(parsed(print(*kernel))), print(*kernel));
    const TestMachine machine = test_machine(registers, registers == 16, true);
    ASSERT_TRUE(allocate(*kernel, machine.pool, machine.needs).ok());
    EXPECT_EQ(print(parsed(print(*kernel))), print(*kernel));
  }
}

TEST(LinearText, ErrorsNameLineAndColumn) {
  const auto fails = [](std::string_view text, std::string_view with) {
    const auto kernel = parse_linear(text);
    ASSERT_FALSE(kernel.ok()) << text;
    EXPECT_THAT(kernel.error().message(), HasSubstr(with));
    EXPECT_EQ(kernel.error().code(), Code::parse);
  };
  fails("", "expected 'kernel @NAME lanes N {'");
  fails("kernel @a lanes 4 {\n", "the kernel's '}' is missing");
  fails(changed("Mul %3, %0", "Mul %3, %77"), "%");
  fails(changed("#1 = limit loop 1", "#1 = bound loop 1"), "linear kernel:3:");
  fails(changed("loop 1 d1", "loop 7 d1"), "numbered from 0");
  fails(changed("-> %7:bool", "-> %7:boo"), "expected an element type");
  fails(str(kScale, "more"), "nothing may follow");
  fails(changed("Store.partial", "Store.part"), "may end in .partial or .one, not in .part");
  fails(changed("Store.partial", ".partial"), "expected an instruction");
  fails(changed("%3:f32 = Load", "%3:f32@v0 = Load"), "%3 has a place, others before it have none");
  fails(changed("[%4 + %2]", "[%4 + %2"), "expected ']'");
}

// If a corrupted text is accepted, the kernel's printed form is accepted as well, and is the text of the same kernel.
TEST(LinearText, SpoiltTextsAreReadOrRefused) {
  tenon::testing::Spoilt texts{
      {std::string(kScale)},
      tenon::testing::words_of(
          "% # [ ] { } -> loop 1 tail when not step @v1 :f32 .partial slot 0x -1 99999999999 {a = moves ; \n "
          "\xff")};
  texts.good.emplace_back(kWhen);
  for (const Body& body : {one_of_each(), rows_body()}) {
    auto kernel = lower(body, {.lanes = 8});
    ASSERT_TRUE(kernel.ok());
    texts.good.push_back(print(*kernel));
    const TestMachine machine = test_machine(4, false, true);
    ASSERT_TRUE(allocate(*kernel, machine.pool, machine.needs).ok());
    texts.good.push_back(print(*kernel));
  }
  tenon::testing::read_spoilt(texts, 5000, [](const std::string& text) {
    const auto kernel = parse_linear(text);
    if (!kernel.ok()) {
      EXPECT_EQ(kernel.error().code(), Code::parse);
      return false;
    }
    (void)verify(*kernel);
    const std::string printed = print(*kernel);
    const auto again = parse_linear(printed);
    EXPECT_TRUE(again.ok()) << again.error().to_string() << "\n" << text << "\nas\n" << printed;
    if (again.ok()) {
      EXPECT_EQ(print(*again), printed) << text;
    }
    return true;
  });
}

TEST(LinearVerify, AcceptsBothForms) {
  LinearKernel kernel = parsed(kScale);
  const auto checked = verify(kernel);
  EXPECT_TRUE(checked.ok()) << checked.error().to_string();
  const TestMachine machine = test_machine(4, true, true);
  ASSERT_TRUE(allocate(kernel, machine.pool, machine.needs).ok());
  EXPECT_TRUE(verify(kernel).ok());
}

TEST(LinearVerify, NamesWhatIsBroken) {
  const auto fails = [](std::string_view from, std::string_view to, std::string_view with) {
    const auto checked = verify(parsed(changed(from, to)));
    ASSERT_FALSE(checked.ok()) << to;
    EXPECT_THAT(checked.error().to_string(), HasSubstr(with)) << checked.error().to_string();
  };
  fails("Store f32 [%6 + %2], %5", "Store f32 [%6 + %2], %10", "%10 is read, but not written before on every path");
  fails("Mul %3, %0", "Mul %3, %4", "%4 is a general register");
  fails("Store f32 [%6 + %2], %5", "Store f32 [%5 + %2], %5", "%5 is no address register");
  fails("Store f32 [%6 + %2], %5", "Store f32 [%6 + %2], %5, %5", "2 operands where 1 belong");
  fails("%6:g = Parameter #3", "%6:g = Parameter #9", "number 9 is not below 7");
  fails("%3:f32 = Load f32 [%4 + %2]", "%3:f32 = Load", "memory is missing");
  fails("loop 1 d1 dim 1 %2 vector step 4", "loop 1 d1 dim 1 %2 vector step 0", "does not advance");
  // A register that only a loop writes is undefined if the loop has no iteration.
  fails("    tail 2", "    Store.one f32 [%6], %5\n    tail 2", "%5 is read, but not written before on every path");
}

TEST(LinearVerify, Whens) {
  const auto fails = [](std::string_view from, std::string_view to, std::string_view with) {
    std::string text(kWhen);
    const auto checked = verify(parsed(text.replace(text.find(from), from.size(), to)));
    ASSERT_FALSE(checked.ok()) << to;
    EXPECT_THAT(checked.error().to_string(), HasSubstr(with));
  };
  EXPECT_TRUE(verify(parsed(kWhen)).ok());
  fails("when %4", "when %3", "%3 is a vector register");
  // A register that only one region writes is undefined if the region has not run.
  fails("  when not", "  Store f32 [%1], %5\n  when not", "%5 is read, but not written before on every path");
  fails("Neg %2\n    Store f32 [%1 + 16], %5\n  }", "Neg %2\n  }\n  Store f32 [%1 + 16], %5",
        "%5 is read, but not written before on every path");
  LinearKernel kernel = parsed(kWhen);
  kernel.body.pop_back();
  EXPECT_THAT(verify(kernel).error().to_string(), HasSubstr("never ends"));
  kernel.body.insert(kernel.body.begin(), {.op = "WhenEnd"});
  EXPECT_THAT(verify(kernel).error().to_string(), HasSubstr("ends where it is not the innermost region"));
}

TEST(LinearVerify, Blocks) {
  const auto message = [](std::string_view blocks) {
    const auto checked = verify(parsed(changed("  %0:f32", str("  blocks ", blocks, "\n  %0:f32"))));
    return checked.ok() ? std::string() : checked.error().to_string();
  };
  EXPECT_EQ(message("dim 1"), "");
  EXPECT_EQ(message("dim 1 of 64"), "");
  EXPECT_EQ(message("dim 1 again of 512 within 1, 64 within 9, 128"), "");
  EXPECT_THAT(message("dim 0"), HasSubstr("no vector loop is over dim 0"));
  EXPECT_THAT(message("dim 0"), HasSubstr("the blocks of linear kernel 'scale'"));
  EXPECT_THAT(message("dim 1 of 96"), HasSubstr("96 elements are no multiple of 64"));
  EXPECT_THAT(message("dim 1 of 0"), HasSubstr("0 elements"));
  EXPECT_THAT(message("dim 1 of 64 within 9"), HasSubstr("all sizes but the last have a bound"));
  EXPECT_THAT(message("dim 1 of 128, 64"), HasSubstr("128 elements within 0 bytes"));
  LinearKernel kernel = parsed(kScale);
  kernel.blocks.sizes = {{.elements = 64}};
  EXPECT_THAT(verify(kernel).error().to_string(), HasSubstr("they are along no dim"));
}

TEST(LinearVerify, TensorsMoveAlongDimsThatTheyVaryOver) {
  LinearKernel kernel = parsed(kScale);
  kernel.extents = {-1, -1};
  kernel.varies = {3, 3};
  EXPECT_TRUE(verify(kernel).ok());
  EXPECT_TRUE(kernel.has_rows(1));
  kernel.varies = {3, 2};
  EXPECT_TRUE(kernel.has_rows(1));
  EXPECT_THAT(verify(kernel).error().to_string(), HasSubstr("port 1 moves along dim 0, over which it does not vary"));
  kernel.varies = {3, 1};
  EXPECT_FALSE(kernel.has_rows(1));
  EXPECT_TRUE(kernel.has_rows(0));
}

TEST(LinearVerify, SharedPlacesOfLiveRegisters) {
  const std::string_view text = R"(kernel @shared lanes 4 {
  #0 = pointer 0
  #1 = limit loop 0
  %0:g@g0 = Parameter #0
  %1:f32@v0 = Scalar {bits = 0x0}
  %2:g@g1 = Zero
  loop 0 d0 dim 0 %2 step 1 limit #1 {
    %3:f32@v1 = BroadcastLoad f32 [%0]
    %4:f32@v2 = Add %1, %3
    Store.one f32 [%0], %4
  }
}
)";
  EXPECT_TRUE(verify(parsed(text)).ok());
  const auto broken = [&](std::string_view from, std::string_view to) {
    std::string changed(text);
    changed.replace(changed.find(from), from.size(), to);
    return verify(parsed(changed));
  };
  // %1 is overwritten before it is read, in the same iteration or in the next one.
  EXPECT_THAT(broken("%3:f32@v1", "%3:f32@v0").error().message(), HasSubstr("%1 is read"));
  EXPECT_THAT(broken("%4:f32@v2", "%4:f32@v0").error().message(), HasSubstr("%1 is read"));
  EXPECT_THAT(broken("BroadcastLoad f32 [%0]", "BroadcastLoad f32 [%0] uses v0").error().message(),
              HasSubstr("%1 is read"));
  EXPECT_THAT(broken("BroadcastLoad f32 [%0]", "BroadcastLoad f32 [%0] uses g0").error().message(),
              HasSubstr("scratch register"));
  EXPECT_THAT(broken("%2:g@g1", "%2:g@v1").error().message(), HasSubstr("%2 is in a vector register"));
}

TEST(LinearVerify, Loops) {
  LinearKernel kernel = parsed(kScale);
  std::swap(kernel.body[kernel.body.size() - 1].number, kernel.body[kernel.body.size() - 2].number);
  EXPECT_FALSE(verify(kernel).ok());
  kernel = parsed(kScale);
  kernel.body.pop_back();
  EXPECT_THAT(verify(kernel).error().to_string(), HasSubstr("never ends"));
}

TEST(Linear, ShiftsBecomeInstructions) {
  LinearKernel kernel = parsed(kScale);
  insert_shifts(kernel);
  ASSERT_GE(kernel.body.size(), 3u);
  EXPECT_EQ(print(kernel, kernel.body[kernel.body.size() - 3]), "%4:g = AddParameter %4 #5");
  EXPECT_EQ(print(kernel, kernel.body[kernel.body.size() - 2]), "%6:g = AddParameter %6 #6");
  const std::string once = print(kernel);
  insert_shifts(kernel);
  EXPECT_EQ(print(kernel), once);
}

}  // namespace
}  // namespace tenon::snippet::test
