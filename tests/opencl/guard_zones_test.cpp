// Guard zones: results equal those without them, and a kernel that writes outside its buffers is detected.
#include <gmock/gmock.h>

#include <cstdlib>

#include <tenon/tensor/compare.hpp>

#include "graph_support.hpp"

namespace tenon::opencl::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::string_view kRows = R"(graph @g(%x: f32[4,3], %i: i64[5]) -> %y {
  %r = Relu %x "positive"
  %y = Gather %r, %i "choose" {axis = 0}
})";

decltype(&clCreateProgramWithSource) g_create = nullptr;

// Changes the source of compute kernels so that they store one element too far.
cl_program create_with_wrong_stores(cl_context context, cl_uint, const char** texts, const size_t* sizes,
                                    cl_int* code) {
  constexpr std::string_view kStore = "r0)[i] = ", kWrong = "r0)[(i) + 1] = ";
  std::string text(texts[0], sizes[0]);
  for (size_t at = 0; (at = text.find(kStore, at)) != std::string::npos; at += kWrong.size())
    text.replace(at, kStore.size(), kWrong);
  const char* data = text.data();
  const size_t bytes = text.size();
  return g_create(context, 1, &data, &bytes, code);
}

class OpenclGuardZones : public OpenclTest {
 protected:
  void SetUp() override {
    setenv("TENON_CACHE_DIR", "", 1);  // no other process should load these wrong programs
    OpenclTest::SetUp();
    if (IsSkipped()) return;
    auto made = create_backend(guarded_target(cpu_target()));
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    auto executable = compiled(**made, *parse_graph(kRows));
    ASSERT_TRUE(executable.ok()) << executable.error().to_string();
    executable_ = *std::move(executable);
    Tensor x = *Tensor::allocate(kF32, {4, 3});
    for (size_t i = 0; i < 12; ++i) x.mutable_as<float>()[i] = static_cast<float>(i) - 5;
    inputs_ = {Datum(std::move(x)), Datum(Tensor::of<int64_t>({5}, {3, 0, 2, 1, 3}))};
  }
  std::unique_ptr<Executable> executable_;
  std::vector<Datum> inputs_;
};

TEST_F(OpenclGuardZones, ResultsAreTheSame) {
  for (int run = 0; run < 2; ++run) {
    const auto got = run_on(*stream, *executable_, inputs_);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    const auto expected = on_reference(**parse_graph(kRows), inputs_);
    EXPECT_TRUE(compare((*got)[0], expected[0], {.rtol = 0, .atol = 0}).equal);
  }
}

TEST_F(OpenclGuardZones, AKernelThatWritesBesideItsBufferIsNamed) {
  g_create = api_for_tests().clCreateProgramWithSource;
  const Fault fault(&Api::clCreateProgramWithSource, &create_with_wrong_stores);
  const auto got = run_on(*stream, *executable_, inputs_);
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(got.error().to_string(),
              AllOf(HasSubstr("Gather choose"), HasSubstr("4 bytes behind %y"), HasSubstr("60 bytes")));
}

}  // namespace
}  // namespace tenon::opencl::testing
