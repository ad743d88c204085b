// Calls of C slots, and the host functions passed to them.
#include <algorithm>
#include <array>

#include <tenon/plugin/plain_internal.hpp>
#include <tenon/support/log.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::plugin_room {
namespace {

constexpr std::array kCodes = {Code::internal,  // TENON_OK has no code
                               Code::invalid_argument,   Code::not_found, Code::already_exists, Code::unsupported,
                               Code::resource_exhausted, Code::io,        Code::parse,          Code::plugin,
                               Code::internal,           Code::cancelled};
static_assert(kCodes.size() == TENON_CANCELLED + 1);

int32_t plain_code(Code code) {
  return static_cast<int32_t>(std::find(kCodes.begin() + 1, kCodes.end(), code) - kCodes.begin());
}
void* host_allocate(size_t size, size_t align) {
  auto memory = allocate_aligned(size, align);
  return memory.ok() ? std::move(memory)->release() : nullptr;
}
void host_release(void* memory) { AlignedFree()(static_cast<std::byte*>(memory)); }
void host_log(int32_t level, tenon_text message) {
  const int32_t known = std::clamp<int32_t>(level, TENON_LOG_ERROR, TENON_LOG_DEBUG);
  log(static_cast<LogLevel>(known), view(message));
}

}  // namespace

std::string_view view(tenon_text text) {
  return text.data ? std::string_view(text.data, text.size) : std::string_view();
}

int32_t fail_with(tenon_call* call, const Error& error) {
  return call->fail(call, plain_code(error.code()), text_view(error.message()));
}

const tenon_host& host_services() {
  static const tenon_host host = {sizeof(tenon_host), TENON_ABI_MAJOR, TENON_ABI_MINOR,
                                  host_allocate,      host_release,    host_log};
  return host;
}

int32_t Call::fail(tenon_call* call, int32_t code, tenon_text message) {
  // The call is the first member of the structure that contains it.
  reinterpret_cast<Linked*>(call)->self->message_ = view(message);
  return code;
}

Result<void> Call::result(const Origin& origin, std::string_view slot, int32_t code) const {
  if (code == TENON_OK) return {};
  // A plugin's own reasons are reported as they are; its faults are reported with its name.
  const bool reason = code > 0 && code < static_cast<int32_t>(kCodes.size()) && code != TENON_PLUGIN_FAULT;
  if (!reason || message_.empty()) {
    return error(Code::plugin, "plugin '", origin.plugin, "' failed in '", slot, "' with code ", code,
                 message_.empty() ? " and no reason" : str(": ", message_));
  }
  return Error(kCodes[static_cast<size_t>(code)], message_);
}

}  // namespace tenon::plugin_room
