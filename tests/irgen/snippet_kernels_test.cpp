// Selection of the code of a snippet for a call.
#include <tenon/irgen/snippet_kernels.hpp>

#include <gtest/gtest.h>
#include <snippet/bodies.hpp>
#include <support_lib/guarded.hpp>

#include <atomic>
#include <chrono>
#include <thread>

#include <tenon/ir/text.hpp>
#include <tenon/snippet/canonical/canonical.hpp>

namespace tenon::irgen {
namespace {

using snippet::test::BodyBuilder;
using tenon::testing::GuardAt;
using tenon::testing::Guarded;

std::string ran;  // the name of each code that ran, in order

// Fictitious code: records that it ran, and computes nothing.
template <char kName>
void code(const int64_t*) {
  ran += kName;
}

std::atomic<int> made_forms;  // for large calls

// y[rows, columns] = x[rows, columns] + x: code 'n' for any call, 'p' from 1,000 bytes on, 's' non-temporal from 4,000
// bytes on; with `any_rows` also 'h' for rows with arbitrary alignment. The first `failures` attempts to compile any of
// these fail.
std::shared_ptr<SnippetCode> add_code(int failures = 0, bool any_rows = false) {
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
  made->form = {.kernel = *kernel, .run = code<'n'>};
  made_forms = 0;
  const auto add_larger = [&](double least_bytes, const SnippetForm& form) {
    const auto make = [form, left = failures](const snippet::Body& body) mutable -> Result<SnippetForm> {
      EXPECT_EQ(body.name, "add");
      if (left-- > 0) return error(Code::resource_exhausted, "no memory for code");
      ++made_forms;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // others come meanwhile
      return form;
    };
    made->larger.push_back(std::make_unique<const FormOnDemand>(CallRange{.least_bytes = least_bytes}, make));
  };
  add_larger(1000, {.kernel = *kernel, .run = code<'p'>});
  add_larger(4000, {.kernel = *kernel, .run = code<'s'>, .non_temporal = true});
  if (any_rows) add_larger(4000, {.kernel = *kernel, .run = code<'h'>, .non_temporal = true, .any_rows = true});
  return made;
}

// x and y with these extents; `out`: the memory of y, which is x itself unless `apart`.
struct AddCall {
  AddCall(int64_t rows, int64_t columns, std::byte* out = nullptr, bool apart = true)
      : x(static_cast<size_t>(rows * columns * 4), GuardAt::lines),
        y(static_cast<size_t>(rows * columns * 4), GuardAt::lines),
        dims{{0, columns, 4, 0}, {0, rows, columns * 4, 0}},
        views{{x.data(), dims, kF32}, {apart ? out ? out : y.data() : x.data(), dims, kF32}} {}
  Result<void> run(const program::Kernel& kernel, program::KernelState* state = nullptr) {
    program::CallContext context{.operands = views, .state = state};
    return state ? kernel.run_in_state(context) : kernel.run(context);
  }
  Guarded<std::byte> x, y;
  const std::vector<program::DimView> dims;
  const std::vector<program::BufferView> views;
};

std::string ran_for(int64_t rows, int64_t columns, bool read_again = false, std::byte* out = nullptr,
                    bool apart = true) {
  ran.clear();
  const auto done = AddCall(rows, columns, out, apart).run(*snippet_kernel(add_code(), {0}, 1, read_again));
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

// Sums down columns, or x minus these: code for any call, and another form.
class ColumnSums {
 public:
  explicit ColumnSums(const CallRange& calls, bool subtracted = false) : subtracted_(subtracted) {
    BodyBuilder build("columns", "rk");
    const auto x = build.input(3), sum = build.reduce("ReduceSum", x);
    build.output(subtracted ? build.op("Sub", {x, sum}) : sum);
    auto code = std::make_shared<SnippetCode>();
    code->body = build.take();
    code->body.dims[0].sources = {{0, 0}};
    code->body.dims[1].sources = {{0, 1}};
    snippet::LowerOptions options{.lanes = 16};
    auto kernel = snippet::lower(code->body, options);
    options.whole_rows = options.join_rows = calls.joins_rows;
    auto larger = snippet::lower(code->body, options);
    EXPECT_TRUE(kernel.ok() && larger.ok());
    code->form = {.kernel = *std::move(kernel), .run = irgen::code<'n'>};
    const auto make = [this, kernel = *larger](const snippet::Body&) -> Result<SnippetForm> {
      ++made;
      return SnippetForm{.kernel = kernel, .run = irgen::code<'j'>};
    };
    code->larger.push_back(std::make_unique<const FormOnDemand>(calls, make));
    snippet_ = snippet_kernel(code, {0}, 1);
  }
  std::string ran_for(int64_t rows, int64_t columns) {
    ran.clear();
    Guarded<std::byte> x(static_cast<size_t>(rows * columns * 4), GuardAt::lines),
        y(static_cast<size_t>((subtracted_ ? rows : 1) * columns * 4), GuardAt::lines);
    const std::vector<program::DimView> from{{0, columns, 4, 0}, {0, rows, columns * 4, 0}}, sums{{0, columns, 4, 0}},
        to = subtracted_ ? from : sums;
    const std::vector<program::BufferView> views{{x.data(), from, kF32}, {y.data(), to, kF32}};
    program::CallContext context{.operands = views};
    const auto done = snippet_->run(context);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
    return ran;
  }
  int made = 0;  // of the other form

 private:
  const bool subtracted_;
  decltype(snippet_kernel(nullptr, {0}, 1)) snippet_;
};

// Code for rows that are aligned to cache lines, or that are not, is compiled when such rows occur.
TEST(SnippetKernels, RowsThatBeginAtLinesRunTheirOwnCode) {
  for (const bool aligned : {true, false}) {
    ColumnSums less({.rows_aligned = aligned}, /*subtracted=*/true);
    EXPECT_EQ(less.ran_for(10, aligned ? 161 : 160), "n");
    EXPECT_EQ(less.made, 0);
    EXPECT_EQ(less.ran_for(10, aligned ? 160 : 161), "j");
  }
  ColumnSums sums({.rows_aligned = true});
  EXPECT_EQ(sums.ran_for(10, 161), "j") << "of one row";
}

// The code for joined rows is compiled and run if there are rows to join.
TEST(SnippetKernels, ShortRowsRunTheirOwnCode) {
  ColumnSums sums({.joins_rows = true});
  EXPECT_EQ(sums.ran_for(10, 8), "n") << "few rows";
  EXPECT_EQ(sums.ran_for(100, 200), "n") << "long rows";
  EXPECT_EQ(sums.made, 0);
  EXPECT_EQ(sums.ran_for(100, 8), "j");
  EXPECT_EQ(sums.made, 1);
}

// The code for long reductions is used where 256 columns, or fewer, have that many bytes; the result's included.
TEST(SnippetKernels, LongFoldsRunTheirOwnCode) {
  ColumnSums sums({.least_folded_bytes = 101 * 256 * 4});
  EXPECT_EQ(sums.ran_for(99, 256), "n");
  EXPECT_EQ(sums.ran_for(99, 1000), "n");
  EXPECT_EQ(sums.ran_for(100, 255), "n");
  EXPECT_EQ(sums.made, 0);
  EXPECT_EQ(sums.ran_for(100, 256), "j");
  EXPECT_EQ(sums.ran_for(2000, 13), "j");
  EXPECT_EQ(sums.made, 1);
}

TEST(SnippetKernels, ShortFoldsRunTheirOwnCode) {
  ColumnSums sums({.most_folded_bytes = 101 * 256 * 4});
  EXPECT_EQ(sums.ran_for(101, 256), "n");
  EXPECT_EQ(sums.made, 0);
  EXPECT_EQ(sums.ran_for(100, 256), "j");
  EXPECT_EQ(sums.ran_for(100, 1000), "j");
}

TEST(SnippetKernels, FewRowsRunTheirOwnCode) {
  ColumnSums sums({.most_folded = 5});
  EXPECT_EQ(sums.ran_for(6, 100), "n");
  EXPECT_EQ(sums.made, 0);
  EXPECT_EQ(sums.ran_for(5, 100), "j");
  EXPECT_EQ(sums.ran_for(1, 1000), "j");
}

TEST(SnippetKernels, RowsThatAreNotAlignedStayInTheCaches) {
  EXPECT_EQ(ran_for(10, 161), "p");
  EXPECT_EQ(ran_for(1, 161 * 10), "s");
}

// y = x and z = 2 x, where one is `shift_bytes` after the start of a cache line, and the other is aligned to one.
std::string ran_for_two(int64_t shift_bytes) {
  BodyBuilder build("two", "kk");
  const auto x = build.input(3);
  build.output(build.op("Neg", {x}));
  build.output(build.op("Add", {x, x}));
  auto code = std::make_shared<SnippetCode>();
  code->body = build.take();
  for (const int d : {0, 1}) code->body.dims[static_cast<size_t>(d)].sources = {{0, d}};
  const auto kernel = snippet::lower(code->body, {.lanes = 4});
  EXPECT_TRUE(kernel.ok());
  code->form = {.kernel = *kernel, .run = irgen::code<'n'>};
  const auto make = [&kernel](const snippet::Body&) -> Result<SnippetForm> {
    return SnippetForm{.kernel = *kernel, .run = irgen::code<'h'>, .non_temporal = true, .any_rows = true};
  };
  code->larger.push_back(std::make_unique<const FormOnDemand>(CallRange{}, make));
  Guarded<std::byte> x_memory(4096), y(4096, GuardAt::begin), z(4096, GuardAt::begin);
  const std::vector<program::DimView> dims{{0, 41, 4, 0}, {0, 24, 164, 0}};
  const std::vector<program::BufferView> views{
      {x_memory.data(), dims, kF32}, {y.data(), dims, kF32}, {z.data() + shift_bytes, dims, kF32}};
  program::CallContext context{.operands = views};
  ran.clear();
  const auto done = snippet_kernel(code, {0}, 1)->run(context);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
  return ran;
}

// There is code for rows with arbitrary alignment; all outputs must have the same alignment, in elements of a vector.
TEST(SnippetKernels, RowsThatBeginAnywhereRunTheirOwnCode) {
  const auto ran_behind = [](int64_t columns, int64_t shift_bytes) {
    Guarded<std::byte> memory(10 * 170 * 4 + 64, GuardAt::begin);
    ran.clear();
    const auto done =
        AddCall(10, columns, memory.data() + shift_bytes).run(*snippet_kernel(add_code(0, /*any_rows=*/true), {0}, 1));
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
    return ran;
  };
  EXPECT_EQ(ran_behind(161, 0), "h");
  EXPECT_EQ(ran_behind(161, 4), "h");
  EXPECT_EQ(ran_behind(161, 2), "p") << "no multiple of an element";
  EXPECT_EQ(ran_behind(160, 0), "s") << "rows begin at lines";
  EXPECT_EQ(ran_for_two(0), "h");
  EXPECT_EQ(ran_for_two(4), "n");
  EXPECT_EQ(ran_for_two(16), "h") << "a vector of four";
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

TEST(SnippetKernels, CodeForLargeCallsIsMadeForTheFirst) {
  const auto kernel = snippet_kernel(add_code(), {0}, 1);
  const auto state = kernel->make_state();
  const auto made_by = [&](int64_t columns) {
    EXPECT_TRUE(AddCall(1, columns).run(*kernel, state.get()).ok());
    return made_forms.load();
  };
  EXPECT_EQ(made_by(100), 0);
  EXPECT_EQ(made_by(200), 1);
  EXPECT_EQ(made_by(210), 1);
  EXPECT_EQ(made_by(1024), 2);
  EXPECT_EQ(made_by(100), 2);
  EXPECT_EQ(made_by(1025), 2);
}

// A tensor of which one row is added to all rows: if the sums overwrote it, later rows would read a sum.
TEST(SnippetKernels, NoResultLiesOnATensorThatIsReadInPartAsWell) {
  const auto pairs_of = [](std::string_view rows) {
    const auto graph = *parse_graph(
        str("graph @g(%x: f32[2,4,32]) -> %y {\n %y = snippet.Subgraph %x \"s\" ((%0: f32[2,4,32]) -> %2 {\n",
            " %b = Constant {value = dense<i64[1]: 2>}\n %e = Constant {value = dense<i64[1]: 3>}\n",
            " %a = Constant {value = dense<i64[1]: 1>}\n", rows, "\n %2 = Add %0, %1\n }) }"));
    const Op& op = *graph->body().first();
    return snippet_ports(request_for(op), *snippet::make_body(op)).in_place;
  };
  EXPECT_TRUE(pairs_of(" %1 = Slice %0, %b, %e, %a").empty());
  EXPECT_EQ(pairs_of(" %1 = Relu %0"), (std::vector<InPlace>{{.result = 0, .operand = 0}}));
}

TEST(SnippetKernels, CodeForLargeCallsIsMadeOnceForAllThreads) {
  const auto code = add_code();
  std::vector<const SnippetForm*> seen(8);
  {
    std::vector<std::jthread> threads;
    for (const SnippetForm*& form : seen)
      threads.emplace_back([&] { form = code->larger[0]->get(code->body).value(); });
  }
  EXPECT_EQ(made_forms, 1);
  for (const SnippetForm* form : seen) EXPECT_EQ(form, seen[0]);
}

TEST(SnippetKernels, CodeThatCannotBeMadeIsAnErrorOfTheRun) {
  const auto kernel = snippet_kernel(add_code(/*failures=*/1), {0}, 1);
  const auto state = kernel->make_state();
  AddCall call(1, 200);
  const auto failed = call.run(*kernel, state.get());
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code(), Code::resource_exhausted);
  EXPECT_NE(failed.error().to_string().find("no memory for code"), std::string::npos);
  EXPECT_NE(failed.error().to_string().find("snippet 'add'"), std::string::npos);
  EXPECT_TRUE(call.run(*kernel, state.get()).ok()) << "the next call tries again";
}

}  // namespace
}  // namespace tenon::irgen
