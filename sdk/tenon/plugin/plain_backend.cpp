#include <tenon/plugin/graph_values.hpp>
#include <tenon/plugin/limits.hpp>
#include <tenon/plugin/plain_executable_internal.hpp>

namespace tenon::plugin_room {
namespace {

class PlainBackend final : public TargetBackend {
 public:
  PlainBackend(DevicePtr owner, TargetDescription description)
      : owner_(std::move(owner)), description_(std::move(description)) {
    if (owner_->library->slots.allocate_buffer) {
      device_ = make_plain_device(owner_, description_);
    } else {
      device_ = host_device();
    }
  }
  const TargetDescription& description() const override { return description_; }
  std::shared_ptr<Device> device() const override { return device_; }

  std::optional<Refusal> refuses(const Op& op) const override {
    if (auto refusal = limits_refuse(description_, op)) return refusal;
    const PlainView view(op);
    const auto accepted = library().call("accepts", library().slots.accepts, owner_->handle, &view.op());
    if (accepted.ok()) return std::nullopt;
    return Refusal{accepted.error().message()};
  }
  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    const PlainView view(*graph);
    tenon_executable* handle = nullptr;
    TENON_OK(library().call("compile", library().slots.compile, owner_->handle, &view.graph(), &handle));
    if (!handle) return library().fault("gave no executable in 'compile'");
    return make_plain_executable(owner_, device_, handle, inputs_of(graph->body()), outputs_of(graph->body()),
                                 view.constants(), nullptr);
  }
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) override {
    if (!library().slots.load_executable) return TargetBackend::load(bytes, std::move(owner));
    TENON_TRY(stored, read_stored(bytes));
    tenon_executable* handle = nullptr;
    TENON_OK(library().call("load_executable", library().slots.load_executable, owner_->handle,
                            static_cast<const void*>(stored.bytes.data()), stored.bytes.size(), &handle));
    if (!handle) return library().fault("gave no executable in 'load_executable'");
    return make_plain_executable(owner_, device_, handle, std::move(stored.inputs), std::move(stored.outputs), {},
                                 std::move(owner));
  }

 private:
  const Library& library() const { return *owner_->library; }
  DevicePtr owner_;
  TargetDescription description_;
  std::shared_ptr<Device> device_;
};

// `use` gets the description as the structure of abi.h.
template <class Use>
Result<void> with_target(const TargetDescription& description, const Use& use) {
  const std::string yaml = to_yaml(description);
  const tenon_target target = {sizeof(tenon_target), text_view(description.name), text_view(description.driver),
                               text_view(yaml), text_view(description.source)};
  return use(&target);
}

}  // namespace

Result<void> plain_available(const Origin& origin, const tenon_slots& slots, const TargetDescription& description) {
  if (!slots.available) return {};
  return with_target(
      description, [&](const tenon_target* target) { return call_slot(origin, "available", slots.available, target); });
}

Result<std::unique_ptr<TargetBackend>> create_plain_backend(OriginPtr origin, const tenon_slots& slots,
                                                            const TargetDescription& description) {
  auto library = std::make_shared<const Library>(Library{std::move(origin), slots});
  auto device = std::make_shared<DeviceHandle>();
  device->library = library;
  TENON_OK(with_target(description, [&](const tenon_target* target) {
    return library->call("open_device", slots.open_device, target, &device->handle);
  }));
  if (!device->handle) return library->fault("gave no device in 'open_device'");
  return std::unique_ptr<TargetBackend>(std::make_unique<PlainBackend>(std::move(device), description));
}

}  // namespace tenon::plugin_room
