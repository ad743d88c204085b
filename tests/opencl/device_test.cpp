// Properties of devices, streams and buffers, and programs in files.
#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <tenon/target/load.hpp>

#include "opencl_support.hpp"

namespace tenon::opencl::testing {
namespace {

using ::testing::HasSubstr;

TEST(OpenclCodes, HaveTheirNames) {
  EXPECT_EQ(code_text(CL_OUT_OF_RESOURCES), "CL_OUT_OF_RESOURCES (-5)");
  EXPECT_EQ(code_text(-4711), "code -4711");
  EXPECT_EQ(check(CL_INVALID_VALUE, "clFinish").error().message(), "clFinish: CL_INVALID_VALUE (-30)");
  EXPECT_EQ(failure(CL_OUT_OF_RESOURCES, "x").code(), Code::resource_exhausted);
}

TEST(OpenclDeviceInfo, TellsWholeExtensionsOnly) {
  DeviceInfo info{};
  std::strcpy(info.extensions, "cl_khr_fp64 cl_khr_icd_x");
  EXPECT_TRUE(info.has("cl_khr_fp64"));
  EXPECT_TRUE(info.has("cl_khr_icd_x"));
  EXPECT_FALSE(info.has("cl_khr_icd"));
  EXPECT_FALSE(info.has("cl_khr_fp6"));
}

TEST(OpenclDeviceInfo, KnowsTheDriverThatCompilesAtLaunch) {
  DeviceInfo info{};
  std::strcpy(info.platform, "Portable Computing Language");
  EXPECT_EQ(binaries_of(info), Binaries::of_driver);
  std::strcpy(info.platform, "NVIDIA CUDA");
  EXPECT_EQ(binaries_of(info), Binaries::files);
}

TEST(OpenclDeviceInfo, MakesADescriptionThatReadsBack) {
  DeviceInfo info{};
  std::strcpy(info.platform, "P"), std::strcpy(info.name, "D");
  info.double_fp = CL_FP_FMA, info.global_bytes = 1 << 20, info.local_bytes = 4096, info.alignment_bits = 1024;
  info.float_lanes = 4, info.compute_units = 3, info.clock_mhz = 100;
  TargetDescription target = cpu_target();
  target.engines.push_back({.name = "compute", .lanes = 1, .types = {"f32", "f32", "f32"}});
  const TargetDescription made = described(target, info);
  EXPECT_TRUE(made.has_feature(kFp64));
  EXPECT_FALSE(made.has_feature(kRoundedDivide));
  EXPECT_EQ(made.memory("global")->size_bytes, 1u << 20);
  EXPECT_EQ(made.memory("global")->alignment_bytes, 128u);
  EXPECT_EQ(made.memory("local")->size_bytes, 4096u);
  EXPECT_EQ(made.engine("compute")->lanes, 12u);
  const auto again = parse_target(to_yaml(made), "made.yaml");
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(*again, made);
}

TEST_F(OpenclTest, CopiesKeepOrderAndBounds) {
  auto a = *device->allocate("global", 100), b = *device->allocate("global", 100);
  Bytes from(100), to(100);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i);
  ASSERT_TRUE(stream->copy_to_device(*a, 0, from).ok());
  ASSERT_TRUE(stream->copy(*b, 10, *a, 0, 90).ok());
  auto done = stream->copy_to_host(std::span(to).subspan(10), *b, 10);
  ASSERT_TRUE(done.ok() && (*done)->wait().ok());
  EXPECT_TRUE((*done)->done());
  EXPECT_TRUE(std::equal(to.begin() + 10, to.end(), from.begin()));
  EXPECT_FALSE(stream->copy_to_device(*a, 1, from).ok());
  EXPECT_FALSE(device->allocate("local", 1).ok());
  EXPECT_EQ(device->allocate("global", size_t{1} << 60).error().code(), Code::resource_exhausted);
  EXPECT_TRUE(stream->copy_to_device(*a, 100, {}).ok()) << "nothing";
}

TEST_F(OpenclTest, BuffersAreUsedAgainWhenTheirWorkIsDone) {
  auto first = *device->allocate_buffer(5000);
  const cl_mem object = first->object();
  Bytes bytes(5000);
  ASSERT_TRUE(stream->copy_to_device(*first, 0, bytes).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  first.reset();
  EXPECT_EQ((*device->allocate_buffer(5001))->object(), object) << "a size of the same class";
}

class OpenclPrograms : public OpenclTest {
 protected:
  void SetUp() override {
    OpenclTest::SetUp();
    char name[] = "/tmp/tenon-opencl-XXXXXX";
    folder = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  // A new cache on the same folder, as in another process.
  ProgramCache cache(Binaries binaries = Binaries::files) {
    const Api& cl = **api();
    cl_int code = CL_SUCCESS;
    const cl_device_id id = *device_id(cl, device->info());
    if (!context) context = Context(cl.clCreateContext(nullptr, 1, &id, nullptr, nullptr, &code));
    return {cl, device->info(), id, context.get(), FileCache(folder, {.folder = "opencl", .suffix = ".bin"}), binaries};
  }
  std::string only_file() const { return std::filesystem::directory_iterator(folder + "/opencl")->path().string(); }
  std::string folder;
  Context context;
  static constexpr const char* kSource = "__kernel void k(__global int* x) { x[0] = 7; }";
};

TEST_F(OpenclPrograms, AreMadeOnceAndStored) {
  {
    ProgramCache first = cache();
    const auto a = first.get(kSource, "k"), b = first.get(kSource, "k");
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(*a, *b);
    EXPECT_EQ(first.counts().built, 1u);
    EXPECT_EQ(first.counts().from_process, 1u);
  }
  ProgramCache second = cache();
  ASSERT_TRUE(second.get(kSource, "k").ok());
  EXPECT_EQ(second.counts().from_files, 1u);
  EXPECT_EQ(second.counts().built, 0u);
}

TEST_F(OpenclPrograms, AreLeftToADriverThatCompilesAtLaunch) {
  const Counted<&Api::clGetProgramInfo> asked;
  ProgramCache first = cache(Binaries::of_driver);
  const auto a = first.get(kSource, "k"), b = first.get(kSource, "k");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(*a, *b);
  EXPECT_FALSE(std::filesystem::exists(folder + "/opencl"));
  ProgramCache second = cache(Binaries::of_driver);
  ASSERT_TRUE(second.get(kSource, "k").ok());
  EXPECT_EQ(second.counts().built, 1u);
  EXPECT_EQ(asked.calls(), 0);
}

TEST_F(OpenclPrograms, ThatTheDriverRefusesAreReplaced) {
  ASSERT_TRUE(cache().get(kSource, "k").ok());
  {
    decltype(Api::clCreateProgramWithBinary) refuse = [](cl_context, cl_uint, const cl_device_id*, const size_t*,
                                                         const unsigned char**, cl_int*, cl_int* code) -> cl_program {
      *code = CL_INVALID_BINARY;
      return nullptr;
    };
    const Fault fault(&Api::clCreateProgramWithBinary, refuse);
    ProgramCache changed = cache();
    ASSERT_TRUE(changed.get(kSource, "k").ok());
    EXPECT_EQ(changed.counts().built, 1u);
  }
  ProgramCache again = cache();
  ASSERT_TRUE(again.get(kSource, "k").ok());
  EXPECT_EQ(again.counts().from_files, 1u);
}

TEST_F(OpenclPrograms, ManySourcesAreOneProgram) {
  // Both sources use the same names for different macros, functions and kernels.
  const std::string seven =
      "#define N 7\nint value(int x) {\n  return x + N;\n}\n__kernel\nvoid k(__global int* x) {\n  x[0] = "
      "value(0);\n}\n";
  const std::string nine =
      "#define N 9\nint value(int x) {\n  return x * N;\n}\n__kernel\nvoid k(__global int* x) {\n  x[0] = "
      "value(1);\n}\n";
  ProgramCache own = cache();
  const WantedProgram wanted[] = {{&seven, "seven"}, {&nine, "nine"}, {&seven, "seven again"}};
  const auto made = own.get_all(wanted);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  ASSERT_EQ(made->size(), 3u);
  EXPECT_EQ(own.counts().built, 1u);
  EXPECT_EQ((*made)[0], (*made)[2]);
  EXPECT_EQ((*made)[0]->program, (*made)[1]->program);
  const Api& cl = **api();
  for (const auto& program : *made) {
    cl_int code = CL_SUCCESS;
    const KernelObject kernel(cl.clCreateKernel(program->program->get(), ("k" + program->suffix).c_str(), &code));
    EXPECT_EQ(code, CL_SUCCESS) << program->suffix;
  }
  EXPECT_TRUE(own.get(nine, "nine").ok());
  EXPECT_EQ(own.counts().built, 1u) << "the process has it";
  ProgramCache other = cache();
  ASSERT_TRUE(other.get_all(wanted).ok());
  EXPECT_EQ(other.counts().from_files, 1u);
}

TEST_F(OpenclPrograms, DamagedFilesAreIgnored) {
  ASSERT_TRUE(cache().get(kSource, "k").ok());
  const std::string file = only_file();
  const auto bytes = std::filesystem::file_size(file);
  for (const auto damage : {size_t{0}, size_t{20}, static_cast<size_t>(bytes) / 2}) {
    {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(static_cast<std::streamoff>(damage));
      const char byte = static_cast<char>(stream.get());
      stream.seekp(static_cast<std::streamoff>(damage));
      stream.put(static_cast<char>(byte ^ 0x40));
    }
    ProgramCache again = cache();
    ASSERT_TRUE(again.get(kSource, "k").ok());
    EXPECT_EQ(again.counts().built, 1u) << "damage at byte " << damage;
  }
}

TEST_F(OpenclPrograms, ABadSourceShowsTheLog) {
  ProgramCache own = cache();
  const auto made = own.get("__kernel void k() { nonsense; }", "kernel 'softmax'");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message(), HasSubstr("kernel 'softmax'"));
  EXPECT_THAT(made.error().message(), HasSubstr("nonsense"));
  EXPECT_TRUE(own.get(kSource, "k").ok());
}

}  // namespace
}  // namespace tenon::opencl::testing
