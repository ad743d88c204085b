// Where a new target starts. It loads, says what it is, and refuses every operator politely; each step below says what
// to put there. docs/writing-a-plugin.md walks through it.
//
// 1. Copy this folder and targets/template.yaml; replace "template" in all of it and in the files' names. The YAML
//    holds every number of the device.
#include <utility>

#include <tenon/plugin/plugin.hpp>

namespace {

using tenon::Code;
using tenon::Op;
using tenon::Refusal;
using tenon::Result;
using tenon::TargetDescription;

// One target, ready to compile for. Made when a user opens the target; used by one thread at a time.
class TemplateBackend final : public tenon::TargetBackend {
 public:
  explicit TemplateBackend(TargetDescription description) : description_(std::move(description)) {}

  const TargetDescription& description() const override { return description_; }

  // 2. Where tensors live. A device that works on the host's memory uses host_device(); one with memory of its own
  //    returns a tenon::Device of its own, always the same one.
  std::shared_ptr<tenon::Device> device() const override { return tenon::host_device(); }

  // 3. What the target runs. Answer per operator, without looking at its neighbours: nullopt takes it, a Refusal leaves
  //    it to the next target and shows its sentence in the placement report, so put the numbers in. Limits that the
  //    YAML states (kernel sizes, element types ...) need no code: limits_refuse(description(), op) of
  //    <tenon/plugin/limits.hpp> asks them all and makes the sentence.
  std::optional<Refusal> refuses(const Op& op) const override {
    return Refusal{tenon::str("target '", name(), "' is a template: it has no kernel for operator '", op.name(), "'")};
  }

  // 4. Passes. Fuse operators and choose layouts in add_tensor_sel(), order and tile in add_tensor_sched(), place
  //    buffers in add_mem_alloc(), make code in add_code_emit(). A phase without an override leaves the graph alone.

  // 5. The graph, after the passes, as something that runs. Inputs and outputs keep their order, names and types. It is
  //    asked only for operators that refuses() has taken, so here it is never.
  Result<std::unique_ptr<tenon::Executable>> build(std::unique_ptr<tenon::Graph> graph) override {
    return tenon::error(Code::unsupported, "target '", name(), "' is a template and cannot run graph '", graph->name(),
                        "'");
  }

 private:
  TargetDescription description_;
};

class TemplatePlugin final : public tenon::Plugin {
 public:
  // 6. Operators and passes of your own, when the device has some: register_extensions() calls register_ops(),
  //    register_evaluator() and register_pass(). An evaluator makes them run everywhere, slowly, and gives tests an
  //    oracle.

  // 7. Is the device there? nullopt: yes. Otherwise the sentence that `tenon devices` shows: "no /dev/acme0".
  std::optional<Refusal> unavailable(const TargetDescription&) override { return std::nullopt; }

  // 8. What the YAML may say. A name that nobody reads, such as a misspelt one, is an error with its line and column.
  Result<std::unique_ptr<tenon::TargetBackend>> create_backend(const TargetDescription& description) override {
    TENON_OK(description.allow_names("memories", {"dram", "scratch"}));
    TENON_OK(description.allow_names("engines", {"matmul", "vector"}));
    TENON_OK(description.options.allow_keys({"queue_depth"}));
    return std::unique_ptr<tenon::TargetBackend>(std::make_unique<TemplateBackend>(description));
  }
};

}  // namespace

// 9. The one line that makes the library a plugin: class, name (the key `plugin` of the YAML), vendor, version, and the
//    names of its targets.
TENON_PLUGIN(TemplatePlugin, "template", "Tenon", "0.1.0", "template")
