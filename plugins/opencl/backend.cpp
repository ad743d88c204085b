#include "opencl/backend.hpp"

#include <algorithm>
#include <bit>

#include <tenon/compile/snippet_passes.hpp>
#include <tenon/irgen/op_plan.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/plugin/limits.hpp>
#include <tenon/snippet/tokenize/expand.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>

#include "opencl/cl_device.hpp"
#include "opencl/compiler.hpp"
#include "opencl/emitters/emitters.hpp"
#include "opencl/executable.hpp"
#include "opencl/late_program.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

constexpr int kLeastLanes = 4, kMostLanes = 16;

struct Options {
  bool fuse = true;
  CompilerOptions compiler;

  static Result<Options> of(const TargetDescription& description, const DeviceInfo& info) {
    const Setting& given = description.options;
    TENON_OK(given.allow_keys({"device_type", "platform", "device", "work_group", "lanes", "fuse", "tile_rows",
                               "tile_vectors", "tile_registers", "tile_depth", "local_memory", "search", "sub_groups",
                               "sub_group_size", "guard_zones"}));
    const bool cpu = (info.type & CL_DEVICE_TYPE_CPU) != 0;
    const int native = static_cast<int>(std::bit_floor(std::max<uint32_t>(info.float_lanes, 1)));
    const auto most = static_cast<int64_t>(std::max<uint64_t>(info.work_group_items, 1));
    Options options;
    TENON_TRY(fuse, given.boolean_or("fuse", true));
    TENON_TRY(group, given.integer_or("work_group", cpu ? 1 : std::min<int64_t>(64, most), 1, most));
    TENON_TRY(lanes, given.integer_or("lanes", std::clamp(native, kLeastLanes, kMostLanes), kLeastLanes, kMostLanes));
    if (!std::has_single_bit(static_cast<uint64_t>(lanes)))
      return error(Code::invalid_argument, "option lanes is ", lanes, "; a power of two is needed");
    TENON_TRY(tiling, tiling_of(given));
    TENON_TRY(search, given.text_or("search", "none"));
    if (search != "none" && search != "measured")
      return error(Code::invalid_argument, "option search is '", search, "'; it is none or measured");
    TENON_TRY(sub_groups, given.boolean_or("sub_groups", true));
    TENON_TRY(sub_group_size, sub_group_size_of(given, info));
    TENON_TRY(zones, given.integer_or("guard_zones", 0, 0, 1 << 20));
    options.fuse = fuse;
    options.compiler = {.lanes = static_cast<int>(lanes),
                        .work_group = group,
                        .max_ports = ports_of(info),
                        .fuse = fuse,
                        .local_bytes = static_cast<int64_t>(info.local_bytes),
                        .compute_units = std::max<int64_t>(info.compute_units, 1),
                        .tiling = tiling,
                        .search = search == "measured",
                        .sub_groups = sub_groups,
                        .sub_group_size = sub_group_size,
                        .guard_zones = zones};
    return options;
  }

  static Result<int64_t> sub_group_size_of(const Setting& given, const DeviceInfo& info) {
    TENON_TRY(size, given.integer_or("sub_group_size", 0, 0, 1024));
    if (size == 0 || (std::has_single_bit(static_cast<uint64_t>(size)) && (info.sub_group_sizes & size))) return size;
    std::string sizes;
    for (uint32_t one = 1; one != 0; one *= 2)
      if (info.sub_group_sizes & one) sizes += str(sizes.empty() ? "" : ", ", one);
    return error(Code::invalid_argument, "option sub_group_size is ", size, "; device '", info.name, "' has ",
                 sizes.empty() ? "none to choose" : sizes);
  }

  static Result<Tiling> tiling_of(const Setting& given) {
    Tiling tiling;
    TENON_TRY(rows, given.integer_or("tile_rows", tiling.rows, 1, 32));
    TENON_TRY(vectors, given.integer_or("tile_vectors", tiling.vectors, 1, 8));
    TENON_TRY(registers, given.integer_or("tile_registers", tiling.registers, 1, 256));
    TENON_TRY(depth, given.integer_or("tile_depth", tiling.depth, 1, 1 << 20));
    TENON_TRY(local, given.boolean_or("local_memory", tiling.local));
    tiling.rows = static_cast<int>(rows), tiling.vectors = static_cast<int>(vectors);
    tiling.registers = static_cast<int>(registers), tiling.depth = depth, tiling.local = local;
    return tiling;
  }

  // The number of 8-byte arguments, minus those that are not ports, minus one for scratch memory.
  static size_t ports_of(const DeviceInfo& info) {
    const auto arguments = static_cast<size_t>(info.parameter_bytes / 8);
    return std::max<size_t>(arguments, kPortsArgument + 4) - kPortsArgument - 1;
  }
};

class Backend final : public TargetBackend {
 public:
  Backend(TargetDescription description, const DeviceInfo& info, const Options& options,
          const codegen::JitterTable& table)
      : description_(std::move(description)),
        device_(ClDevice::of(info)),
        options_(options),
        compiler_(std::make_shared<const Compiler>(description_, table, options.compiler)) {}

  const TargetDescription& description() const override { return description_; }

  std::shared_ptr<Device> device() const override { return device_; }

  std::optional<Refusal> refuses(const Op& op) const override {
    if (auto refusal = limits_refuse(description_, op)) return refusal;
    if (irgen::is_movement(op) || is_late_movement(op)) return std::nullopt;
    const std::string reason = why_not(op);
    if (reason.empty()) return std::nullopt;
    return Refusal{str(reason, " on target ", name())};
  }

  Result<void> add_tensor_sel(PassManager& passes) override {
    snippet::TokenizeOptions options;
    if (!options_.fuse) options.max_operators = 1;
    options.max_ports = compiler_->options().max_ports;
    options.can_emit = [compiler = compiler_](const codegen::Signature& s) { return compiler->can_emit(s); };
    options.can_access = [compiler = compiler_](ElementType element) { return compiler->can_access(element); };
    TENON_OK(passes.add(
        {.name = "expand-operators",
         .contract = "Needs types. Keeps names of results. Leaves no ArgMax, ArgMin, Hardmax that it can say.",
         .run = [](Graph& graph) -> Result<Change> {
           TENON_TRY(made, snippet::expand_all(graph, expands));
           return made ? Change::yes : Change::no;
         }}));
    return passes.add(tokenize_snippets_pass(std::move(options)));
  }

  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    return make_executable(std::move(graph), device_, compiler_);
  }
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) override {
    return load_executable(bytes, std::move(owner), device_, compiler_);
  }

 private:
  static bool expands(const Op& op) {
    return snippet::can_expand(op) && !has_compute_kernel(op) && snippet::expanded_alone(op).ok();
  }
  std::string why_not(const Op& op) const {
    if (!expands(op)) return compiler_->why_not(op);
    const auto expanded = snippet::expanded_alone(op);
    for (const Op& inner : (*expanded)->body()) {
      if (isa<Constant>(inner) || irgen::is_movement(inner)) continue;
      if (std::string reason = compiler_->why_not(inner); !reason.empty()) return reason;
    }
    return {};
  }

  const TargetDescription description_;
  const std::shared_ptr<ClDevice> device_;
  const Options options_;
  const std::shared_ptr<const Compiler> compiler_;
};

}  // namespace

Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description) {
  TENON_OK(description.allow_names("memories", {"global", "local"}));
  TENON_OK(description.allow_names("engines", {"compute"}));
  TENON_TRY(info, device_of(description));
  TENON_TRY(options, Options::of(description, info), "the options of target ", description.name);
  TENON_TRY(table, jitter_table());
  return std::unique_ptr<TargetBackend>(std::make_unique<Backend>(described(description, info), info, options, *table));
}

}  // namespace tenon::opencl
