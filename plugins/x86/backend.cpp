#include "x86/backend.hpp"

#include <algorithm>

#include <tenon/compile/snippet_passes.hpp>
#include <tenon/irgen/op_plan.hpp>
#include <tenon/irgen/snippet_info.hpp>
#include <tenon/irgen/snippet_kernels.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/passes/walk_slots.hpp>
#include <tenon/plugin/host_executable.hpp>
#include <tenon/plugin/limits.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/specialise.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/expand.hpp>
#include <tenon/snippet/tokenize/sink_concats.hpp>
#include <tenon/snippet/tokenize/take_crops.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>
#include <tenon/support/log.hpp>

#include "x86/assembly/listing.hpp"
#include "x86/compiler.hpp"
#include "x86/machine.hpp"

namespace tenon::x86 {
namespace {

struct Options {
  bool fuse = true, contract = true, self_check = false;
  bool host_caches = false;  // `caches: host`
  static Result<Options> of(const TargetDescription& description) {
    TENON_OK(description.options.allow_keys({"fuse", "contract", "self_check", "caches"}));
    Options options;
    TENON_TRY(fuse, description.options.boolean_or("fuse", true));
    TENON_TRY(contract, description.options.boolean_or("contract", true));
    options.fuse = fuse;
    options.contract = contract;
    TENON_TRY(self_check, description.options.boolean_or("self_check", false));
    options.self_check = self_check;
    TENON_TRY(caches, description.options.text_or("caches", "stated"));
    if (caches != "stated" && caches != "host")
      return error(Code::invalid_argument, "'caches' is '", caches, "'; write stated or host");
    options.host_caches = caches == "host";
    return options;
  }
};

// Whether the value and a copy of it together fill L2, for all values of its symbols. Below that, copying takes no
// longer than storing to one more tensor in the kernel (docs/performance/graphs.md).
bool two_fill_l2(const Value& value, const TargetDescription& target) {
  const MemorySpace* l2 = target.memory("l2");
  if (!l2 || !value.type().is_tensor() || !value.type().shape().ranked()) return false;
  Dims least;
  for (const Dim& dim : value.type().shape().dims()) least.push_back(dim.is_static() ? dim.value() : 1);
  const auto elements = element_count(least);
  const auto bits = static_cast<uint64_t>(value.type().element().bits());
  return elements.ok() && static_cast<uint64_t>(*elements) * bits / 4 >= l2->size_bytes;
}

class Backend final : public TargetBackend {
 public:
  Backend(TargetDescription description, const Options& options, const codegen::JitterTable& table)
      : description_(std::move(description)),
        options_(options),
        compiler_(std::make_shared<Compiler>(description_, table, CompilerOptions{.contract = options.contract})) {}

  const TargetDescription& description() const override { return description_; }
  std::shared_ptr<Device> device() const override { return host_device(); }

  std::optional<Refusal> refuses(const Op& op) const override {
    if (auto refusal = limits_refuse(description_, op)) return refusal;
    if (irgen::is_movement(op)) return std::nullopt;
    std::string reason = why_not(op);
    if (reason.empty()) return std::nullopt;
    return Refusal{std::move(reason)};
  }

  bool stores_again(const Op& op) const override {
    bool pays = false;
    for (size_t r = 0; r < op.result_count() && !irgen::is_movement(op); ++r)
      pays |= two_fill_l2(*op.result(r), description_);
    return pays;
  }

  Result<void> add_tensor_sel(PassManager& passes) override {
    snippet::TokenizeOptions options;
    if (!options_.fuse) options.max_operators = 1;
    options.can_emit = [compiler = compiler_](const codegen::Signature& s) { return compiler->can_emit(s); };
    options.stores_again = [compiler = compiler_](const Value& value) {
      return two_fill_l2(value, compiler->target());
    };
    TENON_OK(
        passes.add({.name = "walk-slots",
                    .contract = "Needs types. Keeps names of outputs. Leaves elementwise operators on row-major slots.",
                    .run = run_over_slots}));
    TENON_OK(passes.add(
        {.name = "expand-operators",
         .contract = "Needs types. Keeps names of results. Leaves no ArgMax, ArgMin, Hardmax, LRN that it can say.",
         .run = [](Graph& graph) -> Result<Change> {
           const auto can = [](const Op& op) { return snippet::expanded_alone(op).ok(); };
           TENON_TRY(made, snippet::expand_all(graph, can));
           return made ? Change::yes : Change::no;
         }}));
    const auto accepts = [compiler = compiler_](const Op& op) {
      const auto body = snippet::usual_body(op);
      return body.ok() && compiler->why_not(*body).empty();
    };
    if (options_.fuse)
      TENON_OK(
          passes.add({.name = "sink-concats",
                      .contract = "Needs types. Keeps names of outputs. Leaves Concats behind elementwise operators.",
                      .run = [accepts](Graph& graph) -> Result<Change> {
                        TENON_TRY(sunk, snippet::sink_concats(graph, accepts));
                        return sunk ? Change::yes : Change::no;
                      }}));
    TENON_OK(passes.add(tokenize_snippets_pass(std::move(options))));
    return passes.add(
        {.name = "take-crops",
         .contract = "Needs snippets. Keeps values. Leaves no Slice or Split with gaps that snippets alone read.",
         .run = [accepts](Graph& graph) -> Result<Change> {
           return snippet::take_crops(graph, accepts) > 0 ? Change::yes : Change::no;
         }});
  }

  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    irgen::label_snippets(*graph);
    return make_host_executable(std::move(graph), host_options());
  }
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) override {
    return load_host_executable(bytes, std::move(owner), host_options());
  }

 private:
  // "" for an operator that has code, or that expands into operators that have.
  std::string why_not(const Op& op) const {
    if (snippet::can_expand(op)) {
      const auto expanded = snippet::expanded_alone(op);
      if (!expanded.ok()) return irgen::without_label(op, expanded.error().message());
      for (const Op& inner : (*expanded)->body()) {
        if (isa<Constant>(inner) || irgen::is_movement(inner)) continue;
        if (std::string reason = why_not(inner); !reason.empty()) return reason;
      }
      return {};
    }
    const auto body = snippet::usual_body(op);
    if (!body.ok()) return irgen::without_label(op, body.error().message());
    std::string reason = compiler_->why_not(*body);
    return reason.empty() ? reason : str(reason, " on target ", name());
  }

  HostExecutableOptions host_options() const {
    return {.target = name(),
            .kernels = std::make_shared<irgen::SnippetKernels>(
                name(), compiler_, irgen::SnippetOptions{.self_check = options_.self_check}),
            .runner = {.threads = default_pool().threads()},
            .listing = [compiler = compiler_](const Graph& graph) { return listing(graph, *compiler); },
            .kernel_infos = [compiler = compiler_, host = options_.host_caches](
                                const Graph& graph) { return kernel_infos(graph, *compiler, host); }};
  }

  // Snippets compute on row-major tensors: values in blocked layouts are rewritten as tensors of their slots.
  static Result<Change> run_over_slots(Graph& graph) {
    TENON_TRY(report, walk_slots(graph));
    for (const std::string& refused : report.refused) log(LogLevel::info, "not over slots: ", refused);
    if (report.operators == 0) return Change::no;
    // Scales and other constants are padded and cropped at compile time, not in each run.
    const Pass* fold = find_pass("fold-constants");
    if (fold) TENON_OK(fold->run(graph), fold->name);
    return Change::yes;
  }

  static Result<std::string> listing(const Graph& graph, Compiler& compiler) {
    std::string text;
    for (const Op& op : graph.body()) {
      if (!isa<snippet::Subgraph>(op)) continue;
      TENON_TRY(body, snippet::make_body(op));
      TENON_TRY(code, compiler.compile(body));
      TENON_TRY(stages, irgen::stages_of_calls(*code, compiler, default_pool().threads()));
      std::vector<const snippet::Body*> bodies = {&body};
      for (const auto& stage : stages) bodies.push_back(&stage->body);
      for (const snippet::Body* one : bodies) {
        TENON_TRY(objects, compiler.assemble_snippet(*one));
        for (const CodeObject& object : objects) text += x86::listing(object);
      }
    }
    return text;
  }

  // `host`: predicts with the rates of this machine, otherwise with those that the target states.
  static std::vector<KernelInfo> kernel_infos(const Graph& graph, Compiler& compiler, bool host) {
    const TargetDescription target =
        host ? rated(compiler.target(), program::CostModel::of_machine(), clock_hz()) : compiler.target();
    std::vector<KernelInfo> infos;
    for (const Op& op : graph.body()) {
      if (!isa<snippet::Subgraph>(op)) continue;
      const auto body = snippet::make_body(op);
      const auto made = body.ok() ? compiler.compile(*body) : body.error();
      infos.push_back(irgen::kernel_info_of(op, target));
      if (!made.ok()) continue;
      infos.back().code_bytes = (*made)->form.code_bytes;
      if (const auto stages = irgen::stages_of_calls(**made, compiler, default_pool().threads()); stages.ok())
        for (const auto& stage : *stages) infos.back().stages.push_back({stage->body.name, stage->form.code_bytes});
      // Data movement and arithmetic overlap: the longer of the two determines the time.
      infos.back().predicted_us =
          std::max(infos.back().predicted_us, arithmetic_us(compiler.cycles_of_call(**made), target));
    }
    return infos;
  }

  // On one thread; 0 if unknown.
  static double arithmetic_us(double cycles, const TargetDescription& target) {
    return target.clock_hz ? cycles / vector_units(target) / static_cast<double>(target.clock_hz) * 1e6 : 0;
  }

  TargetDescription description_;
  Options options_;
  std::shared_ptr<Compiler> compiler_;
};

}  // namespace

Result<std::unique_ptr<TargetBackend>> create_backend(TargetDescription description) {
  TENON_OK(description.allow_names("memories", {"host", "l3", "l2", "l1"}));
  TENON_OK(description.allow_names("registers", {"vector", "mask", "general"}));
  if (!description.driver.empty())
    return error(Code::invalid_argument, "target ", description.name, " states the driver ", quote(description.driver),
                 "; plugin x86 has none, so leave it out");
  if (!description.has_feature("avx2") && !description.has_feature("avx512f")) {
    return error(Code::invalid_argument, "target ", description.name,
                 " states neither avx2 nor avx512f among its features; ", "plugin x86 makes code for these");
  }
  if (has_vbmi(description) && !description.has_feature("avx512f"))
    return error(Code::invalid_argument, "target ", description.name, " states ", kVbmi,
                 " without avx512f; state both, or neither");
  TENON_OK(register_pool(description));
  TENON_TRY(options, Options::of(description), "the options of target ", description.name);
  TENON_TRY(table, jitter_table());
  if (options.host_caches) description = described(std::move(description), machine());
  return std::unique_ptr<TargetBackend>(std::make_unique<Backend>(std::move(description), options, *table));
}

}  // namespace tenon::x86
