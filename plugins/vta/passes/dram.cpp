#include <algorithm>
#include <unordered_map>

#include <tenon-ext/dma/operators.hpp>
#include <tenon/runtime/memory_plan.hpp>

#include "vta/pack.hpp"
#include "vta/passes/walk.hpp"

namespace tenon::vta {
namespace {

// Addresses are continuous over the windows of the driver's buffers: activations from 0 on, constants from the next
// window on.
class DramPlanner {
 public:
  DramPlanner(Graph& graph, const Hardware& hardware) : graph_(graph), hardware_(hardware) {}

  Result<Change> plan() {
    std::vector<Op*> users;
    for (Op& op : graph_.body()) {
      ++step_;
      if (is_load(op) || isa<Kernel>(op)) users.push_back(&op);
      // Constants are in DRAM before the first run.
      if ((is_load(op) && !isa<Constant>(behind_views(op.operand(0))->producer())) || isa<Kernel>(op))
        TENON_OK(add_block(*op.result()));
      for (const Value* operand : op.operands())
        if (const auto block = block_of_.find(operand); block != block_of_.end()) blocks_[block->second].last = step_;
    }
    TENON_OK(place_activations());
    for (Op* op : users) put_addresses(*op);
    return users.empty() ? Change::no : Change::yes;
  }

 private:
  static bool is_load(const Op& op) { return op.is(dma::Load::name()) && op.attr<std::string>(names().to) == "dram"; }

  Result<size_t> bytes_of(const Value& value) const {
    TENON_TRY(image, image_of(value.type().shape().static_dims().value_or(Dims{}), hardware_), "value '", value.name(),
              "'");
    return static_cast<size_t>(image.elements() * hardware_.element_bytes(Memory::inp));
  }

  // Inputs are live from the start, so that all of them may be written before a run.
  Result<void> add_block(const Value& value) {
    TENON_TRY(bytes, bytes_of(value));
    block_of_[&value] = blocks_.size();
    blocks_.push_back({.bytes = bytes,
                       .first = isa<Kernel>(value.producer()) ? step_ : 0,
                       .last = step_,
                       .align_bytes = static_cast<size_t>(dram_alignment(hardware_)),
                       .window_bytes = static_cast<size_t>(dram_window_bytes(hardware_)),
                       .name = value.name()});
    return {};
  }

  Result<void> place_activations() {
    // Outputs are read after the last operator.
    for (const auto& [value, block] : block_of_)
      for (const Use* use : value->uses())
        if (use->user()->is(dma::Store::name())) blocks_[block].last = step_ + 1;
    const ArenaSpace space{.name = "dram", .limit_bytes = static_cast<size_t>(hardware_.dram_bytes)};
    TENON_TRY(plan, plan_memory(blocks_, std::span(&space, 1)), "the activations of graph '", graph_.name(),
              "' in DRAM");
    offsets_ = plan.offsets;
    const int64_t window = dram_window_bytes(hardware_);
    next_ = (static_cast<int64_t>(plan.spaces[0].bytes) + window - 1) / window * window;
    return {};
  }

  // Reserves memory after the previous constants; none crosses a window.
  int64_t reserve(int64_t bytes) {
    const int64_t align = dram_alignment(hardware_), window = dram_window_bytes(hardware_);
    const int64_t size = (bytes + align - 1) / align * align;
    if (next_ / window != (next_ + size - 1) / window) next_ = (next_ / window + 1) * window;
    const int64_t at = next_;
    next_ += size;
    return at;
  }

  int64_t address_of(const Value& value) {
    if (const auto block = block_of_.find(&value); block != block_of_.end())
      return static_cast<int64_t>(offsets_[block->second]);
    const auto [known, first] = constants_.try_emplace(&value, 0);
    if (!first) return known->second;
    const Tensor* constant = constant_of(&value);
    const auto bytes = bytes_of(value);
    return known->second = reserve(constant ? static_cast<int64_t>(constant->bytes())
                                            : static_cast<int64_t>(bytes.ok() ? *bytes : 0));
  }

  void put_addresses(Op& op) {
    if (is_load(op)) return op.set_attr(names().at, address_of(*op.result()));
    Attribute::Integers dram;
    for (const Value* operand : op.operands()) dram.push_back(address_of(*operand));
    dram.push_back(address_of(*op.result()));
    op.set_attr(names().dram, std::move(dram));
  }

  Graph& graph_;
  const Hardware& hardware_;
  size_t step_ = 0;
  std::vector<MemoryBlock> blocks_;
  std::vector<size_t> offsets_;
  std::unordered_map<const Value*, size_t> block_of_;
  std::unordered_map<const Value*, int64_t> constants_;
  int64_t next_ = 0;
};

}  // namespace

Pass vta_dram(const PassContext& context) {
  return {.name = "vta-dram",
          .contract =
              "Needs kernels. Leaves addresses in DRAM: an arena of activations by their lives, constants behind it.",
          .run = [hardware = context.hardware](Graph& graph) { return DramPlanner(graph, hardware).plan(); }};
}

}  // namespace tenon::vta
