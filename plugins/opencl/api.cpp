#include "opencl/api.hpp"

#include <dlfcn.h>

#include <mutex>

#include <tenon/support/str.hpp>

namespace tenon::opencl {
namespace {

constexpr const char* kLibrary = "libOpenCL.so.1";

struct CodeName {
  cl_int code;
  std::string_view name;
};
// clang-format off
#define TENON_CL_CODES(C)                                                                                          \
  C(CL_DEVICE_NOT_FOUND) C(CL_DEVICE_NOT_AVAILABLE) C(CL_COMPILER_NOT_AVAILABLE) C(CL_MEM_OBJECT_ALLOCATION_FAILURE) \
  C(CL_OUT_OF_RESOURCES) C(CL_OUT_OF_HOST_MEMORY) C(CL_PROFILING_INFO_NOT_AVAILABLE) C(CL_MEM_COPY_OVERLAP)        \
  C(CL_BUILD_PROGRAM_FAILURE) C(CL_MAP_FAILURE) C(CL_MISALIGNED_SUB_BUFFER_OFFSET)                                 \
  C(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) C(CL_LINK_PROGRAM_FAILURE) C(CL_INVALID_VALUE)                   \
  C(CL_INVALID_DEVICE_TYPE) C(CL_INVALID_PLATFORM) C(CL_INVALID_DEVICE) C(CL_INVALID_CONTEXT)                      \
  C(CL_INVALID_QUEUE_PROPERTIES) C(CL_INVALID_COMMAND_QUEUE) C(CL_INVALID_HOST_PTR) C(CL_INVALID_MEM_OBJECT)       \
  C(CL_INVALID_BINARY) C(CL_INVALID_BUILD_OPTIONS) C(CL_INVALID_PROGRAM) C(CL_INVALID_PROGRAM_EXECUTABLE)          \
  C(CL_INVALID_KERNEL_NAME) C(CL_INVALID_KERNEL_DEFINITION) C(CL_INVALID_KERNEL) C(CL_INVALID_ARG_INDEX)           \
  C(CL_INVALID_ARG_VALUE) C(CL_INVALID_ARG_SIZE) C(CL_INVALID_KERNEL_ARGS) C(CL_INVALID_WORK_DIMENSION)            \
  C(CL_INVALID_WORK_GROUP_SIZE) C(CL_INVALID_WORK_ITEM_SIZE) C(CL_INVALID_GLOBAL_OFFSET)                           \
  C(CL_INVALID_EVENT_WAIT_LIST) C(CL_INVALID_EVENT) C(CL_INVALID_OPERATION) C(CL_INVALID_BUFFER_SIZE)              \
  C(CL_INVALID_GLOBAL_WORK_SIZE) C(CL_INVALID_PROPERTY)
// clang-format on
#define TENON_CL_CODE(name) CodeName{name, #name},
constexpr CodeName kCodes[] = {TENON_CL_CODES(TENON_CL_CODE){-1001, "CL_PLATFORM_NOT_FOUND_KHR"}};
#undef TENON_CL_CODE

Api g_api;

// The library is never closed, because drivers leave threads and handlers behind.
Result<void> load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return error(Code::not_found, "there is no OpenCL loader on this machine (", kLibrary,
                 "; Debian: ocl-icd-libopencl1): ", dlerror());
#define TENON_CL_LOAD(name)                                                \
  g_api.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  if (!g_api.name) return error(Code::unsupported, kLibrary, " has no ", #name, ": OpenCL 1.2 or later is needed");
  TENON_CL_FUNCTIONS(TENON_CL_LOAD)
#undef TENON_CL_LOAD
  return {};
}

}  // namespace

Result<const Api*> api() {
  static const Result<void> kLoaded = load();
  if (!kLoaded.ok()) return kLoaded.error();
  return &g_api;
}

Api& api_for_tests() { return g_api; }

std::string code_text(cl_int code) {
  for (const CodeName& known : kCodes)
    if (known.code == code) return str(known.name, " (", code, ")");
  return str("code ", code);
}

Error failure(cl_int code, std::string_view what) {
  const bool memory =
      code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES || code == CL_OUT_OF_HOST_MEMORY;
  return error(memory ? Code::resource_exhausted : Code::io, what, ": ", code_text(code));
}

Result<void> check(cl_int code, std::string_view what) {
  if (code == CL_SUCCESS) return {};
  return failure(code, what);
}

cl_int status_of(const Api& cl, cl_event event) {
  if (!event) return CL_COMPLETE;
  cl_int status = CL_QUEUED;
  const cl_int code = cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return code == CL_SUCCESS ? status : code;
}

std::array<int64_t, kObjectKinds> live_objects() {
  std::array<int64_t, kObjectKinds> counts{};
  for (size_t i = 0; i < kObjectKinds; ++i) counts[i] = detail::g_live[i];
  return counts;
}

namespace detail {
std::array<std::atomic<int64_t>, kObjectKinds> g_live{};
void release(cl_context object) { g_api.clReleaseContext(object); }
void release(cl_command_queue object) { g_api.clReleaseCommandQueue(object); }
void release(cl_mem object) { g_api.clReleaseMemObject(object); }
void release(cl_program object) { g_api.clReleaseProgram(object); }
void release(cl_kernel object) { g_api.clReleaseKernel(object); }
void release(cl_event object) { g_api.clReleaseEvent(object); }
}  // namespace detail

}  // namespace tenon::opencl
