// A target for tests: accepts only given operators, and may have memory that the host cannot access, so that values
// have to be copied at the borders.
#pragma once
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <tenon/plugin/backend.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::testing {

// Memory that is accessible only by copies, which it counts.
class FarDevice final : public Device, public std::enable_shared_from_this<FarDevice> {
 public:
  explicit FarDevice(std::string name) : name_(std::move(name)) {}
  int copies_in = 0, copies_out = 0;

  const std::string& name() const override { return name_; }
  std::vector<std::string> memories() const override { return {"far"}; }
  bool is_host() const override { return false; }
  Result<std::shared_ptr<Buffer>> allocate(std::string_view, size_t bytes) override {
    return std::shared_ptr<Buffer>(std::make_shared<FarBuffer>(shared_from_this(), bytes));
  }
  Result<std::unique_ptr<Stream>> create_stream(bool) override {
    return std::unique_ptr<Stream>(std::make_unique<FarStream>(*this));
  }

  static std::vector<std::byte>& bytes_of(const Buffer& buffer) {
    return const_cast<FarBuffer&>(static_cast<const FarBuffer&>(buffer)).data;
  }

 private:
  struct FarBuffer final : Buffer {
    FarBuffer(std::shared_ptr<FarDevice> device, size_t bytes) : owner(std::move(device)), data(bytes) {}
    Device& device() const override { return *owner; }
    const std::string& memory() const override { return memory_name; }
    size_t bytes() const override { return data.size(); }
    std::byte* host_data() const override { return nullptr; }
    std::shared_ptr<FarDevice> owner;
    std::vector<std::byte> data;
    std::string memory_name = "far";
  };
  struct FarStream final : Stream {
    explicit FarStream(FarDevice& device) : owner(device) {}
    Device& device() const override { return owner; }
    Result<EventPtr> copy_to_device(Buffer& to, size_t offset, std::span<const std::byte> from) override {
      ++owner.copies_in;
      if (!from.empty()) std::memcpy(bytes_of(to).data() + offset, from.data(), from.size());
      return completed_event();
    }
    Result<EventPtr> copy_to_host(std::span<std::byte> to, const Buffer& from, size_t offset) override {
      ++owner.copies_out;
      if (!to.empty()) std::memcpy(to.data(), bytes_of(from).data() + offset, to.size());
      return completed_event();
    }
    Result<EventPtr> copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) override {
      std::memmove(bytes_of(to).data() + to_offset, bytes_of(from).data() + from_offset, bytes);
      return completed_event();
    }
    Result<EventPtr> call(std::function<Result<void>()> work) override {
      TENON_OK(work());
      return completed_event();
    }
    Result<void> synchronize() override { return {}; }
    FarDevice& owner;
  };

  std::string name_;
};

// Runs its part with the interpreter, on data copied from the far memory; results are copied back.
class FakeExecutable final : public Executable {
 public:
  FakeExecutable(std::shared_ptr<Device> device, std::unique_ptr<Graph> graph, std::unique_ptr<Interpreter> interpreter)
      : device_(std::move(device)), graph_(std::move(graph)), interpreter_(std::move(interpreter)) {
    const Region& body = graph_->body();
    for (size_t i = 0; i < body.input_count(); ++i) inputs_.push_back({body.input(i)->name(), body.input(i)->type()});
    for (size_t i = 0; i < body.output_count(); ++i) outputs_.push_back({body.output_name(i), body.output(i)->type()});
  }
  Device& device() const override { return *device_; }
  const std::vector<ValueInfo>& inputs() const override { return inputs_; }
  const std::vector<ValueInfo>& outputs() const override { return outputs_; }
  Result<EventPtr> enqueue(Stream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                           const RunOptions&) const override {
    std::vector<Datum> data;
    for (const RunValue& input : inputs) {
      TENON_TRY(datum, to_host(stream, input));
      data.push_back(std::move(datum));
    }
    TENON_TRY(made, interpreter_->run(data));
    for (size_t i = 0; i < made.size(); ++i) {
      if (device_->is_host()) {
        outputs[i] = {made[i], {}};
      } else {
        TENON_TRY(moved, to_device(stream, made[i].tensor()));
        outputs[i] = std::move(moved);
      }
    }
    return completed_event();
  }

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Interpreter> interpreter_;
  std::vector<ValueInfo> inputs_, outputs_;
};

class FakeBackend : public TargetBackend {
 public:
  // `device` null: host memory.
  FakeBackend(std::string name, std::set<std::string> ops, std::shared_ptr<Device> device = nullptr)
      : ops_(std::move(ops)), device_(device ? std::move(device) : host_device()) {
    description_.name = std::move(name);
  }
  const TargetDescription& description() const override { return description_; }
  std::shared_ptr<Device> device() const override { return device_; }
  std::optional<Refusal> refuses(const Op& op) const override {
    if (ops_.contains(op.name().str())) return std::nullopt;
    return Refusal{str(name(), " has no ", op.name())};
  }
  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    TENON_TRY(interpreter, Interpreter::prepare(*graph));
    return std::unique_ptr<Executable>(
        std::make_unique<FakeExecutable>(device_, std::move(graph), std::move(interpreter)));
  }

 private:
  TargetDescription description_;
  std::set<std::string> ops_;
  std::shared_ptr<Device> device_;
};

}  // namespace tenon::testing
