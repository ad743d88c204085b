// OpenCL as this plugin uses it: version 1.2, loaded at run time from the machine's ICD loader.
//
//   TENON_TRY(cl, api());                                       // an error when the machine has no loader
//   TENON_OK(check(cl->clFinish(queue), "clFinish"));           // "clFinish: CL_OUT_OF_RESOURCES (-5)"
//
// Handles own one reference to their object. Live handles are counted by kind.
#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include <tenon/support/result.hpp>

namespace tenon::opencl {

// clang-format off
#define TENON_CL_FUNCTIONS(F)                                                                                    \
  F(clGetPlatformIDs) F(clGetPlatformInfo) F(clGetDeviceIDs) F(clGetDeviceInfo)                                  \
  F(clCreateContext) F(clReleaseContext) F(clCreateCommandQueue) F(clReleaseCommandQueue) F(clFlush) F(clFinish) \
  F(clCreateBuffer) F(clReleaseMemObject)                                                                        \
  F(clEnqueueReadBuffer) F(clEnqueueWriteBuffer) F(clEnqueueCopyBuffer) F(clEnqueueFillBuffer)                    \
  F(clEnqueueMapBuffer) F(clEnqueueUnmapMemObject)                                                               \
  F(clCreateProgramWithSource) F(clCreateProgramWithBinary) F(clReleaseProgram) F(clBuildProgram)                \
  F(clGetProgramInfo) F(clGetProgramBuildInfo)                                                                   \
  F(clCreateKernel) F(clReleaseKernel) F(clSetKernelArg) F(clEnqueueNDRangeKernel)                               \
  F(clEnqueueMarkerWithWaitList) F(clWaitForEvents) F(clGetEventInfo) F(clRetainEvent) F(clReleaseEvent)
// clang-format on

struct Api {
#define TENON_CL_MEMBER(name) decltype(&::name) name = nullptr;
  TENON_CL_FUNCTIONS(TENON_CL_MEMBER)
#undef TENON_CL_MEMBER
};

// The functions of libOpenCL.so.1, which is never unloaded. Any thread.
Result<const Api*> api();
// The same table, writable, for tests that make a function fail. After api() has succeeded.
Api& api_for_tests();

// "CL_OUT_OF_RESOURCES (-5)".
std::string code_text(cl_int code);
// `what`: the function or step that returned the code.
Result<void> check(cl_int code, std::string_view what);
Error failure(cl_int code, std::string_view what);

enum class ObjectKind : uint8_t { context, queue, memory, program, kernel, event };
inline constexpr size_t kObjectKinds = 6;
// The status of a command: CL_QUEUED down to CL_COMPLETE, or a negative error code; CL_COMPLETE for no event.
cl_int status_of(const Api& cl, cl_event event);

// The number of live handles by kind.
std::array<int64_t, kObjectKinds> live_objects();

namespace detail {
extern std::array<std::atomic<int64_t>, kObjectKinds> g_live;
void release(cl_context object);
void release(cl_command_queue object);
void release(cl_mem object);
void release(cl_program object);
void release(cl_kernel object);
void release(cl_event object);
template <class T>
struct KindOf;
// clang-format off
template <> struct KindOf<cl_context> { static constexpr ObjectKind kValue = ObjectKind::context; };
template <> struct KindOf<cl_command_queue> { static constexpr ObjectKind kValue = ObjectKind::queue; };
template <> struct KindOf<cl_mem> { static constexpr ObjectKind kValue = ObjectKind::memory; };
template <> struct KindOf<cl_program> { static constexpr ObjectKind kValue = ObjectKind::program; };
template <> struct KindOf<cl_kernel> { static constexpr ObjectKind kValue = ObjectKind::kernel; };
template <> struct KindOf<cl_event> { static constexpr ObjectKind kValue = ObjectKind::event; };
// clang-format on
}  // namespace detail

// Owns one reference to an OpenCL object, or is empty.
template <class T>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T object) : object_(object) { count(1); }
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() {
    if (!object_) return;
    count(-1);
    detail::release(object_);
  }
  T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  void count(int64_t by) {
    if (object_) detail::g_live[static_cast<size_t>(detail::KindOf<T>::kValue)] += by;
  }
  T object_ = nullptr;
};
using Context = Handle<cl_context>;
using Queue = Handle<cl_command_queue>;
using Memory = Handle<cl_mem>;
using Program = Handle<cl_program>;
using KernelObject = Handle<cl_kernel>;
using EventObject = Handle<cl_event>;

}  // namespace tenon::opencl
