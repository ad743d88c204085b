#include <tenon/runtime/memory_picture.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string picture(const std::vector<MemoryBlock>& blocks, const std::vector<ArenaSpace>& spaces) {
  const auto plan = plan_memory(blocks, spaces);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().to_string());
  return plan.ok() ? plan_to_html(blocks, spaces, *plan, "resnet <1>") : "";
}

size_t count(const std::string& text, std::string_view what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(PlanToHtml, ShowsEveryBlockTheBoundAndThePeak) {
  const std::string page = picture({{.bytes = 10, .first = 0, .last = 1, .name = "conv1"},
                                    {.bytes = 30, .first = 1, .last = 3, .name = "conv2"},
                                    {.bytes = 0, .first = 1, .last = 3, .name = "nothing"},
                                    {.bytes = 8, .first = 2, .last = 2, .space = 1}},
                                   {{.name = "dram"}, {.name = "acc"}});
  EXPECT_EQ(count(page, "<rect "), 3u);
  EXPECT_EQ(count(page, "<svg "), 2u);
  EXPECT_THAT(page, HasSubstr("block &#39;conv2&#39;: 30 bytes at "));
  EXPECT_THAT(page, HasSubstr("steps 1 to 3"));
  EXPECT_THAT(page, HasSubstr("no plan needs less than 40"));
  EXPECT_THAT(page, HasSubstr("40 bytes, the lower bound"));
  EXPECT_THAT(page, HasSubstr("step 1, the peak"));
  EXPECT_THAT(page, HasSubstr("block 3: 8 bytes at 0"));
}

TEST(PlanToHtml, NamesCannotLeaveTheirPlace) {
  const std::string page = picture({{.bytes = 1, .name = "</title><script>alert('\"&')</script>"}}, {{.name = "<b>"}});
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, HasSubstr("&lt;/title&gt;&lt;script&gt;alert(&#39;&quot;&amp;&#39;)"));
  EXPECT_THAT(page, HasSubstr("<h2>&lt;b&gt;</h2>"));
  EXPECT_THAT(page, HasSubstr("<h1>resnet &lt;1&gt;</h1>"));
}

TEST(PlanToHtml, NothingIsAPageWithoutPictures) {
  EXPECT_EQ(count(picture({}, {{.name = "dram"}}), "<svg "), 0u);
  // All of time.
  EXPECT_EQ(count(picture({{.bytes = 4, .first = 0, .last = SIZE_MAX}}, {{.name = "dram"}}), "<rect "), 1u);
}

}  // namespace
}  // namespace tenon
