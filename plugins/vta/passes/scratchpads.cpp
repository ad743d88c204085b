#include <tenon-ext/dma/operators.hpp>

#include "vta/command_ops.hpp"
#include "vta/emitters.hpp"
#include "vta/passes/walk.hpp"
#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

// INP, WGT and ACC: assigns a place to the tile of each load and zero of a body.
Result<void> place_tiles(const Kernel& kernel, const Hardware& hardware) {
  std::vector<Op*> ops;
  std::vector<PlacedTile> tiles;
  for (Op& op : kernel.body()) {
    const bool zero = op.is(ZeroOp::name());
    if (!zero && !op.is(dma::Load::name())) continue;
    const Dims dims = op.result()->type().shape().static_dims().value_or(Dims{});
    const Dims tensor = zero ? dims : op.operand(0)->type().shape().static_dims().value_or(Dims{});
    PlacedTile tile{.memory = Memory::acc, .slot = integer_of(op.attributes(), names().slot, kResident)};
    if (zero) {
      tile.elements = tile_shape(dims, hardware).elements();
    } else {
      TENON_TRY(memory, memory_of(op.attributes(), op.operand(0)->type().element()));
      TENON_TRY(part, part_of(op.attributes(), tensor, memory, hardware));
      tile.memory = memory == Memory::acc8 ? Memory::acc : memory;
      tile.elements = part.shape().elements();
    }
    ops.push_back(&op), tiles.push_back(tile);
  }
  std::vector<int64_t> places(tiles.size());
  for (size_t i = 0; i < tiles.size(); ++i) tiles[i].at = &places[i];
  TENON_OK(place_tiles(tiles, hardware));
  for (size_t i = 0; i < ops.size(); ++i) ops[i]->set_attr(names().at, places[i]);
  return {};
}

// UOP: collects the micro-ops of each step, as the emitters generate them, and loads their pages from a constant.
class MicroOpPlacer {
 public:
  MicroOpPlacer(Kernel& kernel, const PassContext& context)
      : kernel_(kernel), context_(context), writer_(context.hardware, kernel->operand_count()) {}

  Result<void> place() {
    writer_.set_tensors(tensors_of(kernel_));
    TENON_OK(emit_body(kernel_, context_.target, writer_, [&](Op& op) -> Result<void> {
      if (!writer_.micro_op_ranges().empty()) op.set_attr(names().uops, uops_attribute(writer_.micro_op_ranges()));
      if (const auto page = writer_.page_needed()) needs_.emplace_back(&op, *page);
      return {};
    }));
    Value* uops = add_operand();
    for (const auto& [op, page] : needs_) add_load(*op, page, uops);
    return {};
  }

 private:
  Value* add_operand() {
    const std::vector<uint32_t>& words = writer_.pages().words();
    Tensor tensor = *Tensor::allocate(kU32, {static_cast<int64_t>(words.size())});
    std::copy(words.begin(), words.end(), tensor.mutable_as<uint32_t>().begin());
    Builder builder(*kernel_->parent(), &kernel_.op());
    std::vector<Value*> operands = kernel_->operands();
    operands.push_back(builder.constant(std::move(tensor), str(kernel_.result()->name(), ".uops")));
    kernel_->set_operands(operands);
    return kernel_.body().add_input(operands.back()->name(), operands.back()->type());
  }

  void add_load(Op& before, size_t page, Value* uops) {
    const auto size = static_cast<int64_t>(writer_.pages().size(page));
    Attributes attributes{{names().from, "dram"}, {names().to, "uop"}, {names().at, 0}};
    if (writer_.pages().pages() > 1) {
      attributes.set(names().begin, Attribute::Integers{static_cast<int64_t>(page) * writer_.pages().room()});
      attributes.set(names().extent, Attribute::Integers{size});
    }
    kernel_.body().create(dma::Load::name(), std::span(&uops, 1), {Type(kU32, Shape(Dims{size}))},
                          std::move(attributes), &before);
  }

  Kernel& kernel_;
  const PassContext& context_;
  CommandWriter writer_;
  std::vector<std::pair<Op*, size_t>> needs_;  // operators that are the first to need a page, with the page
};

}  // namespace

Pass vta_scratchpads(const PassContext& context) {
  const auto run = [context](Kernel& kernel) -> Result<void> {
    TENON_OK(place_tiles(kernel, context.hardware));
    return MicroOpPlacer(kernel, context).place();
  };
  return pass_over_kernels(
      "vta-scratchpads",
      "Needs bodies in tiles. Leaves their places in INP, WGT and ACC, and micro-ops in pages of UOP.", run);
}

}  // namespace tenon::vta
