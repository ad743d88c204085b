// Memory allocation: activations share an arena by lifetimes; constants follow it.
#include "nvdla/place.hpp"

#include <charconv>
#include <unordered_map>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/runtime/memory_plan.hpp>

#include "nvdla/buffer_plan.hpp"
#include "nvdla/operators.hpp"
#include "nvdla/passes.hpp"
#include "nvdla/select.hpp"

namespace tenon::nvdla {
namespace {

using Integers = Attribute::Integers;

class Placement {
 public:
  Placement(Graph& graph, const Hardware& hardware) : graph_(graph), h_(hardware) {}

  Result<Change> run() {
    for (size_t i = 0; i < body().input_count(); ++i) TENON_OK(add_block(*body().input(i), 0));
    for (Op& op : body())
      if (!isa<Constant>(op)) TENON_OK(add_op(op), op.describe());
    for (size_t i = 0; i < body().output_count(); ++i) TENON_OK(use(body().output(i), step_ + 1));
    TENON_OK(plan_arena());
    for (Op& op : body())
      if (!isa<Constant>(op) && !is_view(op)) TENON_OK(write_places(op), op.describe());
    if (end_ > h_.dram_bytes)
      return error(Code::resource_exhausted, "activations and constants of graph '", graph_.name(), "' take ", end_,
                   " bytes, DRAM of target ", h_.name, " has ", h_.dram_bytes);
    return write_properties();
  }

 private:
  Region& body() { return graph_.body(); }
  static Result<Image> image_of(const Value& value, const Hardware& hardware) {
    return Image::of(value.type().shape().static_dims().value_or(Dims{}), hardware);
  }

  Result<void> add_block(const Value& value, size_t step) {
    TENON_TRY(image, image_of(value, h_), "value '", value.name(), "'");
    block_of_[&value] = blocks_.size();
    blocks_.push_back({.bytes = static_cast<size_t>(image.bytes),
                       .first = step,
                       .last = step,
                       .align_bytes = static_cast<size_t>(h_.dram_alignment),
                       .name = value.name()});
    return {};
  }

  Result<void> use(const Value* value, size_t step) {
    if (const auto block = block_of_.find(value); block != block_of_.end()) {
      blocks_[block->second].last = std::max(blocks_[block->second].last, step);
      return {};
    }
    if (constant_of(value)) return {};
    return error(Code::internal, "value '", value->name(), "' has no place");
  }

  Result<void> add_op(const Op& op) {
    if (is_view(op)) {
      const auto block = block_of_.find(op.operand(0));
      if (block == block_of_.end()) return error(Code::unsupported, "a view of a constant is not folded");
      block_of_[op.result()] = block->second;
      return {};
    }
    ++step_;
    for (const Value* operand : op.operands())
      if (operand) TENON_OK(use(operand, step_));
    return add_block(*op.result(), step_);
  }

  Result<void> plan_arena() {
    const ArenaSpace space{.name = "dram", .limit_bytes = static_cast<size_t>(h_.dram_bytes)};
    TENON_TRY(plan, plan_memory(blocks_, std::span(&space, 1)), "the activations of graph '", graph_.name(), "'");
    offsets_ = plan.offsets;
    arena_ = static_cast<int64_t>(plan.spaces[0].bytes);
    bound_ = static_cast<int64_t>(plan.spaces[0].lower_bound_bytes);
    end_ = round_up(arena_, alignment());
    return {};
  }

  // The alignment of constants, which any kind of load may read.
  int64_t alignment() const { return std::max(h_.dram_alignment, h_.weight_atom_bytes); }

  Result<int64_t> constant_bytes(const Op& op, size_t i) {
    if (isa<Conv>(op) && i == 1) {
      TENON_TRY(layer, ConvLayer::of(op, h_));
      return layer.parts.count * layer.weight_bytes(h_);
    }
    if (isa<Conv>(op) && i == 2)
      return op.operand(2)->type().shape().static_dims().value_or(Dims{0}).at(0) * h_.bias_bytes();
    TENON_TRY(image, image_of(*op.operand(i), h_));
    return image.bytes;
  }

  Result<int64_t> place_of(const Op& op, size_t i) {
    const Value* value = op.operand(i);
    if (!value) return int64_t{-1};
    if (const auto block = block_of_.find(value); block != block_of_.end())
      return static_cast<int64_t>(offsets_[block->second]);
    TENON_TRY(bytes, constant_bytes(op, i));
    const int64_t place = end_;
    end_ += round_up(bytes, alignment());
    return place;
  }

  Result<void> write_places(Op& op) {
    Integers places;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      TENON_TRY(place, place_of(op, i));
      places.push_back(place);
    }
    places.push_back(static_cast<int64_t>(offsets_[block_of_.at(op.result())]));
    op.set_attr("dram", places);
    return {};
  }

  Result<Change> write_properties() {
    const auto list = [&](size_t count, const auto& value) -> Result<std::string> {
      std::string text;
      for (size_t i = 0; i < count; ++i) {
        const auto block = block_of_.find(value(i));
        if (block == block_of_.end()) return error(Code::unsupported, "a constant is an output");
        text += str(i == 0 ? "" : " ", offsets_[block->second]);
      }
      return text;
    };
    TENON_TRY(inputs, list(body().input_count(), [&](size_t i) { return body().input(i); }));
    TENON_TRY(outputs, list(body().output_count(), [&](size_t i) { return body().output(i); }));
    auto& properties = graph_.properties();
    properties["nvdla.inputs"] = inputs;
    properties["nvdla.outputs"] = outputs;
    properties["nvdla.sizes"] = str(arena_, " ", bound_, " ", end_);
    return Change::yes;
  }

  Graph& graph_;
  const Hardware& h_;
  size_t step_ = 0;
  std::vector<MemoryBlock> blocks_;
  std::vector<size_t> offsets_;
  std::unordered_map<const Value*, size_t> block_of_;
  int64_t arena_ = 0, bound_ = 0, end_ = 0;
};

Result<std::vector<int64_t>> numbers(const Graph& graph, const std::string& key, size_t count) {
  const auto found = graph.properties().find(key);
  if (found == graph.properties().end())
    return error(Code::invalid_argument, "graph '", graph.name(), "' has no property ", key);
  std::vector<int64_t> all;
  for (const std::string_view word : split(found->second, ' ')) {
    int64_t value = -1;
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty()) continue;
    if (status != std::errc() || end != word.data() + word.size() || value < 0)
      return error(Code::invalid_argument, "property ", key, " of graph '", graph.name(), "' holds ", quote(word));
    all.push_back(value);
  }
  if (all.size() == count) return all;
  return error(Code::invalid_argument, "property ", key, " of graph '", graph.name(), "' holds ", all.size(),
               " numbers, ", count, " are wanted");
}

}  // namespace

Pass place_pass(MachinePtr machine) {
  return {.name = "place-nvdla",
          .contract =
              "Writes `dram` on each operator, and places of inputs, outputs and the sizes as properties.\n"
              "Needs the machine's operators in the order in which they run.",
          .run = [machine](Graph& graph) { return Placement(graph, machine->hardware).run(); }};
}

Result<Places> places_of(const Graph& graph) {
  Places places;
  TENON_TRY(inputs, numbers(graph, "nvdla.inputs", graph.body().input_count()));
  TENON_TRY(outputs, numbers(graph, "nvdla.outputs", graph.body().output_count()));
  TENON_TRY(sizes, numbers(graph, "nvdla.sizes", 3));
  places.inputs = inputs, places.outputs = outputs;
  places.activation_bytes = sizes[0], places.activation_bound_bytes = sizes[1], places.dram_bytes = sizes[2];
  return places;
}

}  // namespace tenon::nvdla
