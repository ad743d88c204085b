// Unswitching: loops with choices by loop-invariant conditions become two loops. Tests the kernels in text form, and
// when it is done. The results of such kernels are tested by bodies_test.cpp.
#include "x86/passes_support.hpp"

namespace tenon::x86::testing {
namespace {

// y = where(w < 3, exp(x) * v, v), where v is the third element of w. `condition` computes the condition %6.
std::string kernel(const std::string& condition = "Less %3, %4", const std::string& choice = "Where %6, %11, %5",
                   const std::string& tail_choice = "Where %6, %17, %5") {
  return "kernel @row lanes 8 {\n  #0 = pointer 0\n  #1 = pointer 1\n  #2 = pointer 2\n  #3 = limit loop 0\n"
         "  #4 = limit loop 1\n  %0:g = Parameter #0\n  %1:g = Parameter #1\n  %2:g = Parameter #2\n"
         "  %3:f32 = BroadcastLoad f32 [%2]\n  %4:f32 = Scalar {bits = 0x40400000}\n"
         "  %5:f32 = BroadcastLoad f32 [%2 + 8]\n  %6:bool = " +
         condition +
         "\n  %7:g = Zero\n"
         "  loop 0 d0 dim 0 %7 vector step 8 limit #3 {\n"
         "    %9:f32 = Load f32 [%0 + %7]\n    %10:f32 = Exp %9\n    %11:f32 = Mul %10, %5\n    %12:f32 = " +
         choice +
         "\n    Store f32 [%1 + %7], %12\n  }\n"
         "  tail 1 d0 dim 0 %7 limit #4 -> %13:bool, %14:g {\n"
         "    %15:f32 = Load.partial f32 [%0 + %7], %13, %14\n    %16:f32 = Exp %15\n    %17:f32 = Mul %16, %5\n"
         "    %18:f32 = " +
         tail_choice + "\n    Store.partial f32 [%1 + %7], %18, %13, %14\n  }\n}\n";
}

// d = where(w < 3, x, w) - w; y = where(d <= 3, d, exp(x)).
std::string nested() {
  return "kernel @row lanes 8 {\n  #0 = pointer 0\n  #1 = pointer 1\n  #2 = pointer 2\n  #3 = limit loop 0\n"
         "  #4 = limit loop 1\n  %0:g = Parameter #0\n  %1:g = Parameter #1\n  %2:g = Parameter #2\n"
         "  %3:f32 = BroadcastLoad f32 [%2]\n  %4:f32 = Scalar {bits = 0x40400000}\n  %5:bool = Less %3, %4\n"
         "  %6:g = Zero\n"
         "  loop 0 d0 dim 0 %6 vector step 8 limit #3 {\n"
         "    %7:f32 = Load f32 [%0 + %6]\n    %8:f32 = Where %5, %7, %3\n    %9:f32 = Sub %8, %3\n"
         "    %10:bool = LessOrEqual %9, %4\n    %11:f32 = Exp %7\n    %12:f32 = Where %10, %9, %11\n"
         "    Store f32 [%1 + %6], %12\n  }\n"
         "  tail 1 d0 dim 0 %6 limit #4 -> %13:bool, %14:g {\n"
         "    %15:f32 = Load.partial f32 [%0 + %6], %13, %14\n    %16:f32 = Where %5, %15, %3\n"
         "    %17:f32 = Sub %16, %3\n    %18:bool = LessOrEqual %17, %4\n    %19:f32 = Exp %15\n"
         "    %20:f32 = Where %18, %17, %19\n    Store.partial f32 [%1 + %6], %20, %13, %14\n  }\n}\n";
}

std::string unswitched(const std::string& text, std::vector<int64_t> extents = {}, double cycles = 60) {
  LinearKernel made = parsed(text);
  made.extents = std::move(extents);
  PassOptions options;
  options.unswitch_cycles = cycles;
  options.cycles = [](const LinearKernel&, const snippet::Instruction& one) { return one.op == "Exp" ? 12 : 1; };
  unswitch_loops(made, options);
  const auto checked = snippet::verify(made);
  EXPECT_TRUE(checked.ok()) << checked.error().to_string() << "\n" << print(made);
  return print(made);
}
int whens(const std::string& text) { return count(text, "when "); }

TEST(Unswitch, ALoopForEachAnswer) {
  const std::string made = unswitched(kernel());
  EXPECT_EQ(made.substr(made.find("  when ")), R"(  when %6 {
    loop 0 d0 dim 0 %7 vector step 8 limit #3 {
      %9:f32 = Load f32 [%0 + %7]
      %10:f32 = Exp %9
      %11:f32 = Mul %10, %5
      Store f32 [%1 + %7], %11
    }
    tail 1 d0 dim 0 %7 limit #4 -> %13:bool, %14:g {
      %15:f32 = Load.partial f32 [%0 + %7], %13, %14
      %16:f32 = Exp %15
      %17:f32 = Mul %16, %5
      Store.partial f32 [%1 + %7], %17, %13, %14
    }
  }
  when not %6 {
    loop 2 d0 dim 0 %7 vector step 8 limit #3 {
      Store f32 [%1 + %7], %5
    }
    tail 3 d0 dim 0 %7 limit #4 -> %19:bool, %20:g {
      Store.partial f32 [%1 + %7], %5, %19, %20
    }
  }
}
)");
}

// Values that become loop-invariant are hoisted, once for loop and tail, and may be conditions for further unswitching.
TEST(Unswitch, WhatStandsThenIsMadeBefore) {
  const std::string made = unswitched(nested());
  EXPECT_EQ(made.substr(made.find("  when ")), R"(  when %5 {
    loop 0 d0 dim 0 %6 vector step 8 limit #3 {
      %7:f32 = Load f32 [%0 + %6]
      %9:f32 = Sub %7, %3
      %10:bool = LessOrEqual %9, %4
      %11:f32 = Exp %7
      %12:f32 = Where %10, %9, %11
      Store f32 [%1 + %6], %12
    }
    tail 1 d0 dim 0 %6 limit #4 -> %13:bool, %14:g {
      %15:f32 = Load.partial f32 [%0 + %6], %13, %14
      %17:f32 = Sub %15, %3
      %18:bool = LessOrEqual %17, %4
      %19:f32 = Exp %15
      %20:f32 = Where %18, %17, %19
      Store.partial f32 [%1 + %6], %20, %13, %14
    }
  }
  when not %5 {
    %21:f32 = Sub %3, %3
    %22:bool = LessOrEqual %21, %4
    when %22 {
      loop 2 d0 dim 0 %6 vector step 8 limit #3 {
        Store f32 [%1 + %6], %21
      }
      tail 3 d0 dim 0 %6 limit #4 -> %26:bool, %27:g {
        Store.partial f32 [%1 + %6], %21, %26, %27
      }
    }
    when not %22 {
      loop 4 d0 dim 0 %6 vector step 8 limit #3 {
        %31:f32 = Load f32 [%0 + %6]
        %32:f32 = Exp %31
        Store f32 [%1 + %6], %32
      }
      tail 5 d0 dim 0 %6 limit #4 -> %33:bool, %34:g {
        %35:f32 = Load.partial f32 [%0 + %6], %33, %34
        %36:f32 = Exp %35
        Store.partial f32 [%1 + %6], %36, %33, %34
      }
    }
  }
}
)");
}

TEST(Unswitch, WhereItPays) {
  EXPECT_EQ(whens(unswitched(kernel(), {-1})), 2);
  EXPECT_EQ(whens(unswitched(kernel(), {1000})), 2);
  EXPECT_EQ(whens(unswitched(kernel(), {8})), 0) << "of few elements";
  EXPECT_EQ(whens(unswitched(kernel(), {8}, 0)), 2) << "everywhere";
  EXPECT_EQ(whens(unswitched(kernel("Less %3, %4", "Where %6, %11, %11", "Where %6, %17, %17"))), 0)
      << "both arms take as long";
  std::string text = kernel();
  EXPECT_EQ(whens(unswitched(text.replace(text.find("BroadcastLoad f32 [%2]"), 22, "Load f32 [%2]"))), 0)
      << "a condition for each lane";
}

// An operand is overwritten between loop and tail, so the hoisted value is computed again before the tail.
TEST(Unswitch, WhatIsWrittenAgainBetweenIsAnother) {
  std::string text = kernel("Less %3, %4", "Where %6, %11, %8", "Where %6, %17, %19");
  const auto insert = [&](const std::string& line, const std::string& before) { text.insert(text.find(before), line); };
  insert("%8:f32 = Mul %5, %5\n    ", "%12:f32");
  insert("%19:f32 = Mul %5, %5\n    ", "%18:f32");
  const std::string alike = unswitched(text);
  EXPECT_EQ(count(alike.substr(alike.find("when not")), "Mul"), 1);
  insert("  %5:f32 = BroadcastLoad f32 [%2 + 12]\n", "  tail 1");
  const std::string made = unswitched(text);
  EXPECT_EQ(made.substr(made.find("  when not")), R"(  when not %6 {
    %20:f32 = Mul %5, %5
    loop 2 d0 dim 0 %7 vector step 8 limit #3 {
      Store f32 [%1 + %7], %20
    }
    %5:f32 = BroadcastLoad f32 [%2 + 12]
    %21:f32 = Mul %5, %5
    tail 3 d0 dim 0 %7 limit #4 -> %22:bool, %23:g {
      Store.partial f32 [%1 + %7], %21, %22, %23
    }
  }
}
)");
}

// The number of elements is that of the loop's own dim, or of all dims of a stretch.
TEST(Unswitch, ElementsOfTheLoop) {
  const auto along = [](int dim, const std::vector<int64_t>& extents, int stretch) {
    std::string text = kernel();
    for (size_t at; dim > 0 && (at = text.find("dim 0")) != std::string::npos;) text.replace(at, 5, str("dim ", dim));
    LinearKernel made = parsed(text);
    made.extents = extents, made.stretch = stretch;
    PassOptions options;
    options.unswitch_cycles = 60;
    unswitch_loops(made, options);
    return whens(print(made));
  };
  EXPECT_EQ(along(1, {8, 1000}, -1), 2);
  EXPECT_EQ(along(1, {1000, 8}, -1), 0);
  EXPECT_EQ(along(0, {0}, -1), 0);
  EXPECT_EQ(along(2, {1, 20, 50}, 1), 2);
  EXPECT_EQ(along(2, {1000, 2, 4}, 1), 0);
  EXPECT_EQ(along(2, {8, 2, -1}, 1), 2) << "not known";
}

// The condition of the inner loop saves more and is unswitched first. Unswitching the outer loop then duplicates both
// inner loops.
TEST(Unswitch, LoopsThatHoldTwoAlready) {
  const std::string made = unswitched(R"(kernel @rows lanes 8 {
  #0 = pointer 0
  #1 = pointer 1
  #2 = pointer 2
  #3 = limit loop 0
  #4 = limit loop 1
  %0:g = Parameter #0
  %1:g = Parameter #1
  %2:g = Parameter #2
  %3:f32 = BroadcastLoad f32 [%2]
  %4:f32 = Scalar {bits = 0x40400000}
  %5:bool = Less %3, %4
  %6:g = Zero
  loop 0 d0 dim 0 %6 step 1 limit #3 {
    %7:f32 = BroadcastLoad f32 [%2 + %6]
    %8:bool = Less %7, %4
    %9:g = Zero
    loop 1 d1 dim 1 %9 vector step 8 limit #4 {
      %10:f32 = Load f32 [%0 + %9]
      %11:f32 = Exp %10
      %12:f32 = Where %5, %11, %10
      %13:f32 = Where %8, %12, %4
      Store f32 [%1 + %9], %13
    }
  }
}
)");
  EXPECT_EQ(made.substr(made.find("  when ")), R"(  when %5 {
    loop 0 d0 dim 0 %6 step 1 limit #3 {
      %7:f32 = BroadcastLoad f32 [%2 + %6]
      %8:bool = Less %7, %4
      %9:g = Zero
      when %8 {
        loop 1 d1 dim 1 %9 vector step 8 limit #4 {
          %10:f32 = Load f32 [%0 + %9]
          %11:f32 = Exp %10
          Store f32 [%1 + %9], %11
        }
      }
      when not %8 {
        loop 2 d1 dim 1 %9 vector step 8 limit #4 {
          Store f32 [%1 + %9], %4
        }
      }
    }
  }
  when not %5 {
    loop 3 d0 dim 0 %6 step 1 limit #3 {
      %14:f32 = BroadcastLoad f32 [%2 + %6]
      %15:bool = Less %14, %4
      %16:g = Zero
      when %15 {
        loop 4 d1 dim 1 %16 vector step 8 limit #4 {
          %17:f32 = Load f32 [%0 + %16]
          Store f32 [%1 + %16], %17
        }
      }
      when not %15 {
        loop 5 d1 dim 1 %16 vector step 8 limit #4 {
          Store f32 [%1 + %16], %4
        }
      }
    }
  }
}
)");
}

}  // namespace
}  // namespace tenon::x86::testing
