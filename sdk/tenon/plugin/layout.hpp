// The layout of the C++ side of the seam: one list of everything that core and plugin must agree on before they
// exchange C++ objects. Its lines give the layout hash of a build, and name the first difference where two builds
// disagree.
//
// The list contains the configuration of the compiler and the standard library, sizes and alignments of the types that
// cross, offsets of their public fields, and the virtual functions of interfaces in the order of their tables (a test
// checks that order and that none is missing). g++ 12 and clang++ 14 give equal lines at any optimisation level.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <unordered_map>
#include <variant>
#include <vector>

#include <tenon/plugin/abi.h>
#include <tenon/ir/graph.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/plugin/backend.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/runtime/device.hpp>
#include <tenon/runtime/executable.hpp>
#include <tenon/support/hash.hpp>

namespace tenon {

#if defined(_LIBCPP_VERSION)
#define TENON_STANDARD_LIBRARY "libc++"
#elif defined(__GLIBCXX__)
#define TENON_STANDARD_LIBRARY "libstdc++"
#else
#define TENON_STANDARD_LIBRARY "unknown"
#endif

// TYPE(type)                   size and alignment
// FIELD(type, field)           offset
// VIRTUAL(type, function)      its place in the table, counted from the two of the destructor on
// OVERLOAD(type, function, pointer type)
// clang-format off
#define TENON_LAYOUT_TYPES(TYPE, FIELD)                                                                                \
  TYPE(Name) TYPE(Error) TYPE(Result<void>) TYPE(Result<std::unique_ptr<Executable>>) TYPE(ElementType) TYPE(Dims)     \
  TYPE(Dim) TYPE(Shape)                                                                                                \
  TYPE(TensorType) TYPE(Type) TYPE(Tensor) TYPE(Datum) TYPE(Attribute) TYPE(Attributes) TYPE(Use) TYPE(Value)          \
  TYPE(Op) TYPE(Region) TYPE(Graph) TYPE(OpDef) TYPE(TypeSet) TYPE(OperandDef) TYPE(AttributeDef)                      \
  FIELD(TensorType, element) FIELD(TensorType, shape)                                                                  \
  TYPE(BoxRange) FIELD(BoxRange, min) FIELD(BoxRange, max)                                                             \
  TYPE(DimBounds) FIELD(DimBounds, min) FIELD(DimBounds, max) FIELD(DimBounds, whole) FIELD(DimBounds, exact)          \
  TYPE(OperandBounds) FIELD(OperandBounds, kind) FIELD(OperandBounds, dims)                                            \
  TYPE(Bounds) FIELD(Bounds, operands) FIELD(Bounds, splits) FIELD(Bounds, same_bits)                                  \
  TYPE(BoundsQuery) FIELD(BoundsQuery, result)                                                                         \
  TYPE(StaticRange) FIELD(StaticRange, min) FIELD(StaticRange, max)                                                    \
  TYPE(SubBoxOp) FIELD(SubBoxOp, attributes) FIELD(SubBoxOp, operands) FIELD(SubBoxOp, replaced)                       \
  TYPE(SubBoxQuery) FIELD(SubBoxQuery, result)                                                                         \
  TYPE(BoundsRule) FIELD(BoundsRule, bounds) FIELD(BoundsRule, sub_box)                                                \
  TYPE(EqualOptions) FIELD(EqualOptions, names) FIELD(EqualOptions, types)                                             \
  TYPE(Buffer) TYPE(Event) TYPE(Stream) TYPE(Device) TYPE(Executable) TYPE(TargetBackend) TYPE(Plugin)                 \
  TYPE(ParallelFor) TYPE(EvalContext) TYPE(InferContext)                                                               \
  TYPE(DeviceTensor) FIELD(DeviceTensor, element) FIELD(DeviceTensor, dims) FIELD(DeviceTensor, buffer)                \
  FIELD(DeviceTensor, offset)                                                                                          \
  TYPE(RunValue) FIELD(RunValue, host) FIELD(RunValue, device)                                                         \
  TYPE(ValueInfo) FIELD(ValueInfo, name) FIELD(ValueInfo, type)                                                        \
  TYPE(KernelInfo) FIELD(KernelInfo, op) FIELD(KernelInfo, label) FIELD(KernelInfo, operators)                         \
  FIELD(KernelInfo, parameters)                                                                                        \
  FIELD(KernelInfo, results) FIELD(KernelInfo, constants) FIELD(KernelInfo, bytes_unfused)                             \
  FIELD(KernelInfo, bytes_fused) FIELD(KernelInfo, predicted_us) FIELD(KernelInfo, code_bytes)                         \
  FIELD(KernelInfo, stages) TYPE(KernelStage) FIELD(KernelStage, name) FIELD(KernelStage, code_bytes)                   \
  TYPE(OpProfile) FIELD(OpProfile, op) FIELD(OpProfile, label) FIELD(OpProfile, microseconds)                          \
  FIELD(OpProfile, counters)                                                                                           \
  TYPE(RunOptions) FIELD(RunOptions, parallel) FIELD(RunOptions, profile) FIELD(RunOptions, arena)                     \
  TYPE(ValueLayout) FIELD(ValueLayout, text) FIELD(ValueLayout, dims) FIELD(ValueLayout, pad)                          \
  FIELD(ValueLayout, pad_bits) FIELD(ValueLayout, pinned)                                                              \
  TYPE(LayoutKernel::Port) FIELD(LayoutKernel::Port, layout) FIELD(LayoutKernel::Port, dims)                           \
  FIELD(LayoutKernel::Port, needs_zero_pad)                                                                            \
  TYPE(LayoutKernel) FIELD(LayoutKernel, operands) FIELD(LayoutKernel, results) FIELD(LayoutKernel, cost)              \
  FIELD(LayoutKernel, pad) FIELD(LayoutKernel, name)                                                                   \
  TYPE(BandwidthTable::Entry) FIELD(BandwidthTable::Entry, run_bytes)                                                  \
  FIELD(BandwidthTable::Entry, bytes_per_second)                                                                       \
  TYPE(BandwidthTable) FIELD(BandwidthTable, entries) FIELD(BandwidthTable, setup_seconds)                             \
  TYPE(Refusal) FIELD(Refusal, reason)                                                                                 \
  TYPE(MemorySpace) FIELD(MemorySpace, name) FIELD(MemorySpace, size_bytes) FIELD(MemorySpace, alignment_bytes)        \
  FIELD(MemorySpace, element_bytes) FIELD(MemorySpace, bandwidth) FIELD(MemorySpace, latency_cycles)                   \
  FIELD(MemorySpace, banks)                                                                                            \
  TYPE(Engine) FIELD(Engine, name) FIELD(Engine, macs_per_cycle) FIELD(Engine, lanes) FIELD(Engine, cycles_per_step)   \
  FIELD(Engine, types) FIELD(Engine, clock_hz)                                                                         \
  TYPE(Dma) FIELD(Dma, channels) FIELD(Dma, alignment_bytes)                                                           \
  TYPE(RegisterClass) FIELD(RegisterClass, name) FIELD(RegisterClass, count) FIELD(RegisterClass, width_bits)          \
  TYPE(Constraint) FIELD(Constraint, name) FIELD(Constraint, min) FIELD(Constraint, max)                               \
  FIELD(Constraint, multiple_of) FIELD(Constraint, one_of)                                                             \
  TYPE(OperatorLimits) FIELD(OperatorLimits, name) FIELD(OperatorLimits, supported) FIELD(OperatorLimits, types)       \
  FIELD(OperatorLimits, layouts) FIELD(OperatorLimits, attributes)                                                     \
  TYPE(Setting)                                                                                                        \
  TYPE(TargetDescription) FIELD(TargetDescription, version) FIELD(TargetDescription, name)                             \
  FIELD(TargetDescription, plugin) FIELD(TargetDescription, driver) FIELD(TargetDescription, rank)                     \
  FIELD(TargetDescription, clock_hz) FIELD(TargetDescription, features) FIELD(TargetDescription, memories)             \
  FIELD(TargetDescription, engines) FIELD(TargetDescription, dma) FIELD(TargetDescription, registers)                  \
  FIELD(TargetDescription, operators) FIELD(TargetDescription, layouts) FIELD(TargetDescription, value_layouts)        \
  FIELD(TargetDescription, options) FIELD(TargetDescription, source) FIELD(TargetDescription, stated)

#define TENON_LAYOUT_VIRTUALS(VIRTUAL, OVERLOAD)                                                                       \
  VIRTUAL(Buffer, device) VIRTUAL(Buffer, memory) VIRTUAL(Buffer, bytes) VIRTUAL(Buffer, host_data)                    \
  VIRTUAL(Event, wait) VIRTUAL(Event, done)                                                                            \
  VIRTUAL(Stream, device) VIRTUAL(Stream, copy_to_device) VIRTUAL(Stream, copy_to_host) VIRTUAL(Stream, copy)          \
  VIRTUAL(Stream, call) VIRTUAL(Stream, synchronize)                                                                   \
  VIRTUAL(Device, name) VIRTUAL(Device, memories) VIRTUAL(Device, allocate) VIRTUAL(Device, create_stream)             \
  VIRTUAL(Device, is_host)                                                                                             \
  VIRTUAL(Executable, device) VIRTUAL(Executable, inputs) VIRTUAL(Executable, outputs) VIRTUAL(Executable, enqueue)    \
  VIRTUAL(Executable, arena_bytes) VIRTUAL(Executable, arena_lower_bound_bytes) VIRTUAL(Executable, serialize)         \
  VIRTUAL(Executable, listing) VIRTUAL(Executable, kernels)                                                            \
  VIRTUAL(TargetBackend, description) VIRTUAL(TargetBackend, device) VIRTUAL(TargetBackend, refuses)                   \
  VIRTUAL(TargetBackend, layout_kernels) VIRTUAL(TargetBackend, layout_costs) VIRTUAL(TargetBackend, stores_again)     \
  VIRTUAL(TargetBackend, add_prepare)                                                                                  \
  VIRTUAL(TargetBackend, add_tensor_sel) VIRTUAL(TargetBackend, add_tensor_sched)                                      \
  VIRTUAL(TargetBackend, add_mem_alloc) VIRTUAL(TargetBackend, add_code_emit) VIRTUAL(TargetBackend, build)            \
  VIRTUAL(TargetBackend, load)                                                                                         \
  VIRTUAL(Plugin, register_extensions) VIRTUAL(Plugin, unavailable) VIRTUAL(Plugin, create_backend)                    \
  VIRTUAL(ParallelFor, run) VIRTUAL(ParallelFor, run_short) VIRTUAL(ParallelFor, threads)                              \
  VIRTUAL(EvalContext, result_dims) OVERLOAD(EvalContext, output, Result<Tensor*> (EvalContext::*)(size_t))            \
  OVERLOAD(EvalContext, output, Result<Tensor*> (EvalContext::*)(size_t, ElementType, Dims))                           \
  VIRTUAL(EvalContext, set_output) VIRTUAL(EvalContext, run_region) VIRTUAL(EvalContext, parallel)                     \
  VIRTUAL(EvalContext, random_seed)                                                                                    \
  VIRTUAL(InferContext, type) VIRTUAL(InferContext, constant) VIRTUAL(InferContext, dims_value)                        \
  VIRTUAL(InferContext, declared)
// clang-format on

namespace layout_internal {

// Packed structures (-fpack-struct) differ here.
struct Canary {
  char small;
  double wide;
};

// Passes, pass managers and rewrites also cross, but belong to a room that this one may not include. This number is
// incremented by hand when their fields change; a test compares it with their sizes.
constexpr uint64_t kPassesRevision = 2;

constexpr uint64_t kOldStringAbi =
#if defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI == 0
    1;
#else
    0;
#endif
constexpr uint64_t kDebugContainers =
#ifdef _GLIBCXX_DEBUG
    1;
#else
    0;
#endif
constexpr uint64_t kRtti =
#ifdef __cpp_rtti
    1;
#else
    0;
#endif
constexpr uint64_t kExceptions =
#ifdef __cpp_exceptions
    1;
#else
    0;
#endif

// clang-format off
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#define TENON_LAYOUT_TYPE_LINES(type) \
  {sizeof(tenon_layout_line), "sizeof(" #type ")", sizeof(type)}, \
  {sizeof(tenon_layout_line), "alignof(" #type ")", alignof(type)},
#define TENON_LAYOUT_FIELD_LINE(type, field) \
  {sizeof(tenon_layout_line), "offsetof(" #type ", " #field ")", offsetof(type, field)},
#define TENON_LAYOUT_VIRTUAL_LINE(type, function) {sizeof(tenon_layout_line), "virtual " #type "::" #function, 0},
#define TENON_LAYOUT_OVERLOAD_LINE(type, function, pointer) \
  {sizeof(tenon_layout_line), "virtual " #type "::" #function " " #pointer, 0},
inline constexpr tenon_layout_line kLines[] = {
    {sizeof(tenon_layout_line), "standard library " TENON_STANDARD_LIBRARY, 0},
    {sizeof(tenon_layout_line), "old string ABI", kOldStringAbi},
    {sizeof(tenon_layout_line), "_GLIBCXX_DEBUG", kDebugContainers},
    {sizeof(tenon_layout_line), "rtti", kRtti},
    {sizeof(tenon_layout_line), "exceptions", kExceptions},
    {sizeof(tenon_layout_line), "sanitizer", TENON_SANITIZER},
    {sizeof(tenon_layout_line), "sizeof(void*)", sizeof(void*)},
    {sizeof(tenon_layout_line), "revision of passes and rewrites", kPassesRevision},
    {sizeof(tenon_layout_line), "offset of a double behind a char", offsetof(Canary, wide)},
    TENON_LAYOUT_TYPE_LINES(std::string) TENON_LAYOUT_TYPE_LINES(std::vector<int>)
    TENON_LAYOUT_TYPE_LINES(std::vector<bool>) TENON_LAYOUT_TYPE_LINES(std::function<void()>)
    TENON_LAYOUT_TYPE_LINES(std::shared_ptr<void>) TENON_LAYOUT_TYPE_LINES(std::optional<int64_t>)
    TENON_LAYOUT_TYPES(TENON_LAYOUT_TYPE_LINES, TENON_LAYOUT_FIELD_LINE)
    TENON_LAYOUT_VIRTUALS(TENON_LAYOUT_VIRTUAL_LINE, TENON_LAYOUT_OVERLOAD_LINE)
};
#undef TENON_LAYOUT_TYPE_LINES
#undef TENON_LAYOUT_FIELD_LINE
#undef TENON_LAYOUT_VIRTUAL_LINE
#undef TENON_LAYOUT_OVERLOAD_LINE
#pragma GCC diagnostic pop
// clang-format on

constexpr uint64_t hash_lines() {
  uint64_t state = fnv1a("tenon layout");
  for (const tenon_layout_line& line : kLines) state = hash_mix(fnv1a(line.what, state), line.value);
  return state;
}

}  // namespace layout_internal

inline constexpr uint64_t kLayoutHash = layout_internal::hash_lines();

}  // namespace tenon
