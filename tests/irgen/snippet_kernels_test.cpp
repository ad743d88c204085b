// Which code of a snippet runs a call.
#include <tenon/irgen/snippet_kernels.hpp>

#include <gtest/gtest.h>
#include <snippet/bodies.hpp>
#include <support_lib/guarded.hpp>

namespace tenon::irgen {
namespace {

using snippet::test::BodyBuilder;
using tenon::testing::GuardAt;
using tenon::testing::Guarded;

std::string ran;  // the name of each code that ran, in order

// Made-up code: it says that it ran, and computes nothing.
template <char kName>
void code(const int64_t*) {
  ran += kName;
}

// y[rows, columns] = x[rows, columns] + x: code 'n' for any call, 'p' from 1,000 bytes on, 's' past the caches from
// 4,000 bytes on.
std::shared_ptr<SnippetCode> add_code() {
  BodyBuilder build("add", "kk");
  const auto x = build.input(3);
  build.output(build.op("Add", {x, x}));
  auto made = std::make_shared<SnippetCode>();
  made->body = build.take();
  made->body.dims[0].sources = {{0, 0}};
  made->body.dims[1].sources = {{0, 1}};
  auto kernel = snippet::lower(made->body, {.lanes = 16});
  EXPECT_TRUE(kernel.ok());
  snippet::insert_shifts(*kernel);
  made->forms.push_back({.kernel = *kernel, .run = code<'n'>});
  made->forms.push_back({.kernel = *kernel, .run = code<'p'>, .least_bytes = 1000});
  made->forms.push_back({.kernel = *kernel, .run = code<'s'>, .least_bytes = 4000, .past_caches = true});
  return made;
}

// What runs for x and y of these extents; `out`: on x itself where it is null.
std::string ran_for(int64_t rows, int64_t columns, bool read_again = false, std::byte* out = nullptr,
                    bool apart = true) {
  const auto bytes = static_cast<size_t>(rows * columns * 4);
  Guarded<std::byte> x(bytes, GuardAt::lines), y(bytes, GuardAt::lines);
  const std::vector<program::DimView> dims = {{0, columns, 4, 0}, {0, rows, columns * 4, 0}};
  const program::BufferView views[] = {{x.data(), dims, kF32}, {apart ? out ? out : y.data() : x.data(), dims, kF32}};
  program::CallContext context{.operands = views};
  ran.clear();
  const auto done = snippet_kernel(add_code(), {0}, 1, read_again)->run(context);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
  return ran;
}

TEST(SnippetKernels, TheLastCodeForTheSizeRuns) {
  EXPECT_EQ(ran_for(1, 124), "n") << "992 bytes";
  EXPECT_EQ(ran_for(1, 125), "p");
  EXPECT_EQ(ran_for(1, 499), "p");
  EXPECT_EQ(ran_for(1, 500), "s");
  EXPECT_EQ(ran_for(10, 160), "s");
}

TEST(SnippetKernels, RowsThatAreNotAlignedStayInTheCaches) {
  EXPECT_EQ(ran_for(10, 161), "p");
  EXPECT_EQ(ran_for(1, 161 * 10), "s");
}

TEST(SnippetKernels, OutputsThatAreNotAlignedStayInTheCaches) {
  Guarded<std::byte> memory(4096 + 32, GuardAt::begin);
  EXPECT_EQ(ran_for(1, 1024, false, memory.data()), "s");
  EXPECT_EQ(ran_for(1, 1024, false, memory.data() + 32), "p");
}

TEST(SnippetKernels, OutputsOnInputsStayInTheCaches) { EXPECT_EQ(ran_for(1, 1024, false, nullptr, false), "p"); }

TEST(SnippetKernels, ResultsThatAreReadAgainCountAlone) {
  EXPECT_EQ(ran_for(1, 512), "s");
  EXPECT_EQ(ran_for(1, 512, true), "p") << "2048 bytes are written";
  EXPECT_EQ(ran_for(1, 1024, true), "s");
}

}  // namespace
}  // namespace tenon::irgen
