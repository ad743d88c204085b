#include <charconv>
#include <chrono>

#include <tenon/ir/text.hpp>
#include <tenon/plugin/plain_executable_internal.hpp>
#include <tenon/runtime/value_check.hpp>

namespace tenon::plugin_room {
namespace {

// Results of one run, allocated as the plugin asks for them.
struct Outputs {
  const Library& library;
  Device& device;
  const std::vector<ValueInfo>& declared;
  std::span<RunValue> values;

  static int32_t make(void* context, tenon_call* call, size_t index, const tenon_type* type, tenon_tensor* tensor) {
    const auto made = static_cast<Outputs*>(context)->make(index, *type, *tensor);
    return made.ok() ? int32_t{TENON_OK} : fail_with(call, made.error());
  }

  Result<void> make(size_t index, const tenon_type& type, tenon_tensor& tensor) {
    if (!TENON_HAS(&type, dims) || !TENON_HAS(&tensor, offset)) {
      return library.fault(str("asks for output ", index, " with structures of ", type.struct_size, " and ",
                               tensor.struct_size, " bytes; was struct_size set?"));
    }
    if (index >= values.size()) return library.fault(str("makes output ", index, " of ", values.size()));
    const auto element = ElementType::parse(view(type.element));
    if (!element || type.rank < 0 || (type.rank > 0 && !type.dims)) {
      return library.fault(str("makes output '", declared[index].name, "' without an element type or a shape"));
    }
    Dims dims(type.dims, type.dims + type.rank);
    const Type wanted = declared[index].type;
    if (auto agreed = merge(wanted, Type(*element, Shape(dims))); !agreed.ok()) {
      return library.fault(str("makes output '", declared[index].name, "': ", agreed.error().message()));
    }
    if (device.is_host()) {
      TENON_TRY(made, Tensor::allocate(*element, std::move(dims)));
      tensor.data = made.mutable_data();
      tensor.bytes = made.bytes();
      values[index] = {std::move(made), {}};
      return {};
    }
    TENON_TRY(count, element_count(dims));
    TENON_TRY(bytes, storage_bytes(*element, count));
    TENON_TRY(buffer, device.allocate(device.memories().front(), bytes));
    tensor.buffer = handle_of(*buffer);
    tensor.bytes = bytes;
    values[index] = {{}, {*element, std::move(dims), std::move(buffer), 0}};
    return {};
  }
};

class PlainExecutable final : public Executable {
 public:
  PlainExecutable(DevicePtr owner, std::shared_ptr<Device> device, tenon_executable* handle,
                  std::vector<ValueInfo> inputs, std::vector<ValueInfo> outputs, std::vector<Tensor> constants,
                  std::shared_ptr<void> bytes)
      : owner_(std::move(owner)),
        device_(std::move(device)),
        handle_(handle),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        input_check_(inputs_),
        constants_(std::move(constants)),
        bytes_(std::move(bytes)) {}
  ~PlainExecutable() override { library().release("destroy_executable", library().slots.destroy_executable, handle_); }
  Device& device() const override { return *device_; }
  const std::vector<ValueInfo>& inputs() const override { return inputs_; }
  const std::vector<ValueInfo>& outputs() const override { return outputs_; }

  // RunOptions::parallel is unused: the C profile has no way to pass threads to a plugin, which uses its own.
  Result<EventPtr> enqueue(Stream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                           const RunOptions& options) const override {
    if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size() || &stream.device() != device_.get()) {
      return error(Code::invalid_argument, "an executable with ", inputs_.size(), " inputs and ", outputs_.size(),
                   " outputs on device '", device_->name(), "' is given ", inputs.size(), " and ", outputs.size(),
                   " on device '", stream.device().name(), "'");
    }
    for (size_t i = 0; i < inputs.size(); ++i) TENON_OK(check_place(i, inputs[i]));
    TENON_OK(input_check_.inputs(inputs));
    if (device_->is_host()) {
      return stream.call([this, own = std::vector<RunValue>(inputs.begin(), inputs.end()), outputs,
                          profile = options.profile]() -> Result<void> {
        const auto begin = std::chrono::steady_clock::now();
        TENON_OK(run(nullptr, own, outputs, nullptr));
        const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
        if (profile) profile->push_back({library().origin->plugin, "", taken.count()});
        return {};
      });
    }
    tenon_event* event = nullptr;
    TENON_OK(run(handle_of(stream), inputs, outputs, &event));
    return make_plain_event(stream, "run", event);
  }

  Result<std::string> serialize() const override;

 private:
  const Library& library() const { return *owner_->library; }

  Result<void> check_place(size_t i, const RunValue& value) const {
    const bool here = device_->is_host() ? value.host.is_tensor() && !value.on_device()
                                         : value.on_device() && &value.device.buffer->device() == device_.get();
    if (!here) {
      return error(Code::unsupported, "input '", inputs_[i].name, "' of plugin '", library().origin->plugin,
                   "' must be a dense tensor on device '", device_->name(), "'");
    }
    const ElementType element = value.on_device() ? value.device.element : value.host.tensor().element();
    if (element.is_string()) return error(Code::unsupported, "input '", inputs_[i].name, "' holds strings");
    return {};
  }

  Result<void> run(tenon_stream* stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                   tenon_event** event) const {
    std::vector<std::string> elements;
    elements.reserve(inputs.size());
    std::vector<tenon_tensor> plain;
    for (const RunValue& value : inputs) {
      const ElementType element = value.on_device() ? value.device.element : value.host.tensor().element();
      const Dims& dims = value.on_device() ? value.device.dims : value.host.tensor().dims();
      tenon_tensor tensor{sizeof(tenon_tensor),
                          text_view(elements.emplace_back(element.to_string())),
                          static_cast<int64_t>(dims.size()),
                          dims.data(),
                          nullptr,
                          0,
                          nullptr,
                          0};
      if (value.on_device()) {
        tensor.buffer = handle_of(*value.device.buffer);
        tensor.offset = value.device.offset;
        tensor.bytes = value.device.buffer->bytes() - std::min(value.device.offset, value.device.buffer->bytes());
      } else {
        tensor.data = const_cast<std::byte*>(value.host.tensor().data());
        tensor.bytes = value.host.tensor().bytes();
      }
      plain.push_back(tensor);
    }
    for (RunValue& output : outputs) output = {};
    Outputs made{library(), *device_, outputs_, outputs};
    const tenon_outputs maker = {sizeof(tenon_outputs), &made, Outputs::make};
    TENON_OK(library().call("run", library().slots.run, handle_, stream, static_cast<const tenon_tensor*>(plain.data()),
                            plain.size(), &maker, event));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].on_device() && outputs[i].host.absent()) {
        return library().fault(str("ran without making output '", outputs_[i].name, "'"));
      }
    }
    return {};
  }

  DevicePtr owner_;
  std::shared_ptr<Device> device_;
  tenon_executable* handle_;
  std::vector<ValueInfo> inputs_, outputs_;
  ValueCheck input_check_;
  std::vector<Tensor> constants_;  // the plugin may point into them
  std::shared_ptr<void> bytes_;
};

constexpr std::string_view kStored = "tenon plain 1\n";
constexpr size_t kAlign = 64;

int32_t append_bytes(void* context, tenon_call*, const void* data, size_t size) {
  static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
  return TENON_OK;
}

Result<std::string> PlainExecutable::serialize() const {
  if (!library().slots.store_executable || !library().slots.load_executable) {
    return error(Code::unsupported, "plugin '", library().origin->plugin, "' does not store compiled code");
  }
  std::string out(kStored);
  for (const auto* values : {&inputs_, &outputs_}) {
    out += str(values->size(), "\n");
    for (const ValueInfo& value : *values) out += str(quote(value.name), " ", value.type, "\n");
  }
  out += '\0';
  out.resize((out.size() + kAlign - 1) / kAlign * kAlign);
  const tenon_sink sink = {sizeof(tenon_sink), &out, append_bytes};
  TENON_OK(library().call("store_executable", library().slots.store_executable, handle_, &sink));
  return out;
}

}  // namespace

std::unique_ptr<Executable> make_plain_executable(DevicePtr owner, std::shared_ptr<Device> device,
                                                  tenon_executable* handle, std::vector<ValueInfo> inputs,
                                                  std::vector<ValueInfo> outputs, std::vector<Tensor> constants,
                                                  std::shared_ptr<void> bytes) {
  return std::make_unique<PlainExecutable>(std::move(owner), std::move(device), handle, std::move(inputs),
                                           std::move(outputs), std::move(constants), std::move(bytes));
}

Result<Stored> read_stored(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t end = text.find('\0');
  const auto damaged = [] { return error(Code::parse, "the stored form of an executable is damaged"); };
  if (!text.starts_with(kStored) || end == text.npos) return damaged();
  const size_t body = (end + kAlign) / kAlign * kAlign;
  if (body > bytes.size()) return damaged();
  text = text.substr(kStored.size(), end - kStored.size());
  const auto line = [&] {
    const std::string_view out = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), out.size() + 1));
    return out;
  };
  Stored stored;
  stored.bytes = bytes.subspan(body);
  for (auto* values : {&stored.inputs, &stored.outputs}) {
    size_t count = 0;
    const std::string_view number = line();
    if (std::from_chars(number.data(), number.data() + number.size(), count).ec != std::errc()) return damaged();
    for (; count > 0; --count) {
      std::string_view entry = line();
      const auto name = unquote(entry);
      if (!name) return damaged();
      TENON_TRY(type, parse_type(trim(entry)), "the stored form of an executable");
      values->push_back({*name, std::move(type)});
    }
  }
  return stored;
}

}  // namespace tenon::plugin_room
