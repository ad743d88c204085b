#include <tenon/runtime/device.hpp>

#include <utility>

namespace tenon {
namespace {

class CompletedEvent final : public Event {
 public:
  Result<void> wait() override { return {}; }
  bool done() const override { return true; }
};

}  // namespace

EventPtr completed_event() {
  static const EventPtr event = std::make_shared<CompletedEvent>();
  return event;
}

Result<void> check_range(const Device& device, const Buffer& buffer, size_t offset, size_t bytes,
                         std::string_view verb) {
  if (&buffer.device() != &device) {
    return error(Code::invalid_argument, "a buffer of device '", buffer.device().name(), "' is ", verb,
                 " on a stream of device '", device.name(), "'; copy through host memory");
  }
  if (offset > buffer.bytes() || bytes > buffer.bytes() - offset) {
    return error(Code::invalid_argument, "a copy of ", bytes, " bytes at offset ", offset, " leaves the buffer of ",
                 buffer.bytes(), " bytes that is ", verb);
  }
  return {};
}

Result<RunValue> to_device(Stream& stream, const Tensor& tensor) {
  Device& device = stream.device();
  if (device.is_host()) return RunValue{tensor, {}};
  if (tensor.element().is_string()) {
    return error(Code::unsupported, "strings stay on the host: a tensor ", tensor, " cannot go to device '",
                 device.name(), "'");
  }
  const auto memories = device.memories();
  if (memories.empty()) return error(Code::plugin, "device '", device.name(), "' names no memory space");
  TENON_TRY(buffer, device.allocate(memories.front(), tensor.bytes()), "placing a tensor ", tensor, " on device '",
            device.name(), "'");
  TENON_TRY(copied, stream.copy_to_device(*buffer, 0, {tensor.data(), tensor.bytes()}));
  // The caller may release the tensor when this returns.
  TENON_OK(copied->wait(), "copying a tensor ", tensor, " to device '", device.name(), "'");
  return RunValue{{}, {tensor.element(), tensor.dims(), std::move(buffer), 0}};
}

Result<Datum> to_host(Stream& stream, const RunValue& value) {
  if (!value.on_device()) {
    TENON_OK(stream.synchronize());
    return value.host;
  }
  const DeviceTensor& from = value.device;
  TENON_TRY(tensor, Tensor::allocate(from.element, from.dims));
  TENON_TRY(copied, stream.copy_to_host({tensor.mutable_data(), tensor.bytes()}, *from.buffer, from.offset));
  TENON_OK(copied->wait(), "copying a tensor ", tensor, " from device '", stream.device().name(), "'");
  return Datum(std::move(tensor));
}

}  // namespace tenon
