#include "opencl/guard_zones.hpp"

#include <algorithm>

#include <tenon/support/str.hpp>

namespace tenon::opencl {
namespace {

// NaN as f16, bf16, f32 and f64.
constexpr cl_uint kPattern = 0xfffaffbe;

std::byte pattern_at(size_t at) { return static_cast<std::byte>(kPattern >> 8 * (at % sizeof kPattern)); }

}  // namespace

Result<void> GuardZones::begin(ClStream& stream, cl_mem arena, size_t arena_bytes, std::span<const cl_mem> inputs,
                               const WaitList& waits) const {
  const Api& cl = stream.cl_device().cl();
  TENON_OK(waits.wait());
  if (arena_bytes > 0)
    TENON_OK(opencl::check(
        cl.clEnqueueFillBuffer(stream.queue(), arena, &kPattern, sizeof kPattern, 0, arena_bytes, 0, nullptr, nullptr),
        "clEnqueueFillBuffer"));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Guarded& to = buffers_[inputs_[i]];
    if (to.bytes == 0) continue;
    TENON_OK(opencl::check(
        cl.clEnqueueCopyBuffer(stream.queue(), inputs[i], arena, 0, to.begin, to.bytes, 0, nullptr, nullptr),
        "clEnqueueCopyBuffer"));
  }
  return {};
}

Result<void> GuardZones::check(const Guarded& buffer, std::span<const std::byte> arena, std::string_view launch) const {
  const auto changed = [&](size_t at) { return arena[at] != pattern_at(at); };
  size_t least = 0, most = 0;  // changed range: bytes before the buffer and after its end
  for (size_t i = 1; i <= bytes_; ++i) {
    if (changed(buffer.begin - i)) least = i;
    if (changed(buffer.begin + buffer.bytes + i - 1)) most = i;
  }
  if (least == 0 && most == 0) return {};
  return error(Code::internal, launch, " writes beside its buffers: up to ", least, " bytes before and ", most,
               " bytes behind ", buffer.name, ", which has ", buffer.bytes, " bytes");
}

Result<void> GuardZones::check(ClStream& stream, cl_mem arena, size_t arena_bytes, std::string_view launch) const {
  if (arena_bytes == 0) return {};
  std::vector<std::byte> found(arena_bytes);
  TENON_OK(opencl::check(stream.cl_device().cl().clEnqueueReadBuffer(stream.queue(), arena, CL_TRUE, 0, arena_bytes,
                                                                     found.data(), 0, nullptr, nullptr),
                         "clEnqueueReadBuffer"));
  for (const Guarded& buffer : buffers_) TENON_OK(check(buffer, found, launch));
  return {};
}

Result<void> GuardZones::end(ClStream& stream, cl_mem arena, std::span<const cl_mem> outputs) const {
  const Api& cl = stream.cl_device().cl();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Guarded& from = buffers_[outputs_[i]];
    if (from.bytes == 0) continue;
    TENON_OK(opencl::check(
        cl.clEnqueueCopyBuffer(stream.queue(), arena, outputs[i], from.begin, 0, from.bytes, 0, nullptr, nullptr),
        "clEnqueueCopyBuffer"));
  }
  return opencl::check(cl.clFinish(stream.queue()), "clFinish");
}

}  // namespace tenon::opencl
