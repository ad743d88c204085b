#include <tenon/program/exec/picture.hpp>

#include <gmock/gmock.h>

#include "program/kernels.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Picture, ShowsWhatIsAliveWhen) {
  const Program program = parsed(R"(program @chain() {
    output %out : i32 rank 1
    allocate %a : i32[0 +: 16] {
      call iota(out %a; 0)
      allocate %unused : i32[0 +: 4] {
        allocate %b : i32[0 +: 16] in scratch {
          call add1(in %a, out %b)
          call add1(in %b, out %out)
        }
      }
    }
  })");
  Data data;
  data.add("out", {16});
  const auto bound = BoundProgram::bind(program, data.arguments());
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  const std::string page = memory_picture(program, *bound);
  EXPECT_THAT(page, HasSubstr("<h2>host</h2>\n<p>64 bytes, no plan needs less than 64</p>"));
  EXPECT_THAT(page, HasSubstr("<h2>scratch</h2>\n<p>64 bytes"));
  EXPECT_THAT(page, HasSubstr("<title>a: 64 bytes at 0, steps "));
  EXPECT_THAT(page, HasSubstr("<title>b: 64 bytes at 0, steps "));
  EXPECT_THAT(page, Not(HasSubstr("unused")));
}

}  // namespace
}  // namespace tenon::program
