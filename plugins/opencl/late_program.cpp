#include "opencl/late_program.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include <tenon/ir/builder.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/runtime/device.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"

namespace tenon::opencl {
namespace {

constexpr std::string_view kMovement[] = {"Reshape", "Expand", "Squeeze", "Unsqueeze", "Slice", "Split", "Flatten"};

bool has_device_elements(const Value* value) {
  return !value || (value->type().is_tensor() && raw_type_of(value->type().element()).valid() && !value->layout());
}

// Collects the graph inputs whose values `value` depends on. Operators that only use extents need none.
void add_sources(const Value* value, std::set<const Value*>& seen, std::set<size_t>& inputs) {
  if (!value || !seen.insert(value).second) return;
  const Op* producer = value->producer();
  if (!producer) {
    inputs.insert(value->index());
    return;
  }
  if (producer->is("Shape") || producer->is("Size")) return;
  for (const Value* operand : producer->operands()) add_sources(operand, seen, inputs);
}

}  // namespace

bool is_late_movement(const Op& op) {
  if (std::ranges::find(kMovement, std::string_view(op.name().str())) == std::end(kMovement)) return false;
  if (!has_device_elements(op.operand(0))) return false;
  for (size_t i = 0; i < op.result_count(); ++i)
    if (!has_device_elements(op.result(i))) return false;
  return true;
}

LatePrograms::LatePrograms(const Graph& graph, std::shared_ptr<ClDevice> device,
                           std::shared_ptr<const Compiler> compiler)
    : graph_(graph), device_(std::move(device)), compiler_(std::move(compiler)) {
  std::set<const Value*> seen;
  std::set<size_t> inputs;
  for (const Op& op : graph.body())
    for (const size_t operand : deciding_operands(op)) add_sources(op.operand(operand), seen, inputs);
  deciding_.assign(inputs.begin(), inputs.end());
}

bool LatePrograms::Key::equals(const Key& other) const {
  return dims == other.dims && std::ranges::equal(values, other.values, [](const Tensor& a, const Tensor& b) {
           return a.bytes() == b.bytes() && (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
         });
}

Result<LatePrograms::Key> LatePrograms::key_of(ClStream& stream, std::span<const RunValue> inputs) const {
  Key key;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DeviceTensor& tensor = inputs[i].device;
    if (tensor.element != graph_.body().input(i)->type().element())
      return error(Code::unsupported, "input ", i, " is of ", tensor.element);
    key.dims.push_back(tensor.dims);
  }
  for (const size_t i : deciding_) {
    TENON_TRY(count, element_count(key.dims[i]));
    if (count > kMostElements)
      return error(Code::unsupported, "input ", i, " decides about extents and has ", count, " elements, more than ",
                   kMostElements);
    TENON_TRY(datum, to_host(stream, inputs[i]));
    key.values.push_back(datum.tensor());
  }
  return key;
}

Result<void> LatePrograms::make(Special& special) const {
  special.graph = graph_.clone();
  Region& body = special.graph->body();
  for (size_t i = 0; i < body.input_count(); ++i) {
    Value& input = *body.input(i);
    input.set_type(Type(input.type().element(), Shape(special.key.dims[i])));
  }
  Builder builder(body, body.first());
  for (size_t i = 0; i < deciding_.size(); ++i) {
    Value& input = *body.input(deciding_[i]);
    input.replace_all_uses_with(builder.constant(special.key.values[i]));
  }
  PassManager passes("passes of known values");
  TENON_OK(passes.add_all({"infer-types", "fold-constants", "infer-types", "remove-dead"}));
  TENON_TRY(report, passes.run(*special.graph));
  TENON_TRY(program, DeviceProgram::make(*special.graph, device_, compiler_));
  special.program = std::move(program);
  return {};
}

size_t LatePrograms::most_of(size_t (DeviceProgram::*bytes)() const) const {
  const std::lock_guard lock(mutex_);
  size_t most = 0;
  for (const auto& special : kept_)
    if (special->program) most = std::max(most, (special->program.get()->*bytes)());
  return most;
}

Result<std::shared_ptr<DeviceProgram>> LatePrograms::program(ClStream& stream, std::span<const RunValue> inputs) {
  TENON_TRY(key, key_of(stream, inputs));
  const std::lock_guard lock(mutex_);
  auto known = std::ranges::find_if(kept_, [&](const auto& special) { return special->key.equals(key); });
  if (known == kept_.end()) {
    auto made = std::make_shared<Special>();
    made->key = std::move(key);
    if (auto done = make(*made); !done.ok()) made->why_not = done.error();
    kept_.push_front(std::move(made));
    if (kept_.size() > kMostKept) kept_.pop_back();
  } else {
    kept_.splice(kept_.begin(), kept_, known);
  }
  const std::shared_ptr<Special>& found = kept_.front();
  if (!found->why_not) return std::shared_ptr<DeviceProgram>(found, found->program.get());
  if (found->why_not->code() != Code::unsupported && found->why_not->code() != Code::invalid_argument)
    return *found->why_not;
  return error(Code::unsupported, found->why_not->message());
}

}  // namespace tenon::opencl
