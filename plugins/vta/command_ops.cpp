#include "vta/command_ops.hpp"

#include <algorithm>

#include <tenon-ext/dma/operators.hpp>

#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

using Integers = Attribute::Integers;

constexpr std::pair<Memory, std::string_view> kMemoryTexts[] = {
    {Memory::uop, "uop"}, {Memory::wgt, "wgt"}, {Memory::inp, "inp"}, {Memory::acc, "acc"}, {Memory::out, "out"}};

int64_t at(const Integers& list, size_t i, int64_t fallback) { return i < list.size() ? list[i] : fallback; }

// The indices of height and width in a tensor's dims; SIZE_MAX: none.
struct Spatial {
  size_t h = SIZE_MAX, w = SIZE_MAX;
  explicit Spatial(size_t rank) {
    if (rank > 2) w = rank - 1;
    if (rank > 3) h = 2;
  }
};

std::array<int64_t, 4> image_elements(const Dims& dims, const Hardware& hardware) {
  const Extents e = extents_of(dims);
  return {ceil_div(e.n, hardware.batch), ceil_div(e.c, hardware.block), e.h, e.w};
}

Part image_part(const Attributes& load, const Dims& tensor, const Hardware& hardware) {
  const Spatial spatial(tensor.size());
  const Integers& begin = integers_of(load, names().begin);
  const Integers& pads = integers_of(load, names().pads);
  const Integers& extent = integers_of(load, names().extent);
  Part part;
  part.tensor = image_elements(tensor, hardware);
  part.count = image_elements(extent.empty() ? tensor : extent, hardware);
  part.begin = {at(begin, 0, 0) / hardware.batch, at(begin, 1, 0) / hardware.block, at(begin, spatial.h, 0),
                at(begin, spatial.w, 0)};
  part.row_step = at(integers_of(load, names().steps), spatial.h, 1);
  const size_t rank = tensor.size();
  if (spatial.h < rank) part.pad_top = at(pads, spatial.h, 0), part.pad_bottom = at(pads, rank + spatial.h, 0);
  if (spatial.w < rank) part.pad_left = at(pads, spatial.w, 0), part.pad_right = at(pads, rank + spatial.w, 0);
  return part;
}

// Part of the rows and columns of a matrix of elements.
Part weight_part(const Attributes& load, const Dims& tensor) {
  const Integers& begin = integers_of(load, names().begin);
  const Integers& extent = integers_of(load, names().extent);
  const int64_t taps = tensor[2] * tensor[3];
  return {.tensor = {1, tensor[0], tensor[1], taps},
          .begin = {0, at(begin, 0, 0), at(begin, 1, 0), 0},
          .count = {1, at(extent, 0, tensor[0]), at(extent, 1, tensor[1]), taps}};
}

Part list_part(const Attributes& load, const Dims& tensor) {
  return {.tensor = {1, 1, 1, tensor[0]},
          .begin = {0, 0, 0, at(integers_of(load, names().begin), 0, 0)},
          .count = {1, 1, 1, at(integers_of(load, names().extent), 0, tensor[0])}};
}

// ---- Writing ----

bool any_set(const Integers& values) {
  return std::ranges::any_of(values, [](int64_t value) { return value != 0; });
}

class OpWriter {
 public:
  OpWriter(const Kernel& kernel, const Hardware& hardware)
      : body_(kernel.body()), output_(*kernel.result()->type().shape().static_dims()), hardware_(hardware) {}

  Value* write(const std::vector<Command>& commands) {
    y_ = body_.create(dma::Alloc::name(), {}, {Type(kI8, Shape(output_))}, {{names().memory, "dram"}}).result();
    for (const Command& command : commands) std::visit([&](const auto& c) { add(c); }, command);
    return create(FinishOp::name(), {y_}, y_->type(), {});
  }

 private:
  Value* create(Name name, std::initializer_list<Value*> operands, const Type& type, Attributes attributes) {
    return body_.create(name, std::span(operands.begin(), operands.size()), {type}, std::move(attributes)).result();
  }
  Value*& value(Register r) {
    if (r >= values_.size()) values_.resize(r + 1);
    return values_[r];
  }

  // Logical begin and extent of a part of `tensor`.
  struct Box {
    Integers begin, extent;
  };
  Box box_of(const Part& part, const Dims& tensor, Memory memory) const {
    if (memory == Memory::wgt) {
      Box box{Integers(6, 0), tensor};
      for (size_t d : {0, 1}) box.begin[d] = part.begin[d + 1], box.extent[d] = part.count[d + 1];
      return box;
    }
    if (memory == Memory::acc) {
      Box box{{part.begin[3], 0, 0}, tensor};
      box.extent[0] = part.count[3];
      return box;
    }
    const Spatial spatial(tensor.size());
    Box box{{part.begin[0] * hardware_.batch, part.begin[1] * hardware_.block}, {}};
    box.extent = {std::min(part.count[0] * hardware_.batch, tensor[0] - box.begin[0]),
                  std::min(part.count[1] * hardware_.block, tensor[1] - box.begin[1])};
    for (const auto& [d, i] : {std::pair(spatial.h, 2), std::pair(spatial.w, 3)})
      if (d < tensor.size())
        box.begin.push_back(part.begin[static_cast<size_t>(i)]),
            box.extent.push_back(part.count[static_cast<size_t>(i)]);
    return box;
  }

  void add(const Load& load) {
    Value* from = body_.input(load.from);
    const Dims tensor = *from->type().shape().static_dims();
    const Part& part = load.part;
    Box box = box_of(part, tensor, load.memory);
    Attributes attributes{{names().from, "dram"}, {names().to, memory_text(load.memory)}};
    if (any_set(box.begin)) attributes.set(names().begin, box.begin);
    if (box.extent != tensor) attributes.set(names().extent, box.extent);
    if (load.slot != kResident) attributes.set(names().slot, load.slot);
    const Spatial spatial(tensor.size());
    if (part.row_step != 1) {
      Integers steps(tensor.size(), 1);
      steps[spatial.h] = part.row_step;
      attributes.set(names().steps, std::move(steps));
      if (!attributes.has(names().extent)) attributes.set(names().extent, box.extent);
    }
    Integers pads(2 * tensor.size(), 0);
    if (spatial.h < tensor.size()) pads[spatial.h] = part.pad_top, pads[tensor.size() + spatial.h] = part.pad_bottom;
    if (spatial.w < tensor.size()) pads[spatial.w] = part.pad_left, pads[tensor.size() + spatial.w] = part.pad_right;
    for (size_t d = 0; d < tensor.size(); ++d) box.extent[d] += pads[d] + pads[tensor.size() + d];
    if (any_set(pads)) attributes.set(names().pads, std::move(pads));
    value(load.to) =
        create(dma::Load::name(), {from}, Type(from->type().element(), Shape(box.extent)), std::move(attributes));
  }

  void add(const Zero& zero) {
    const Dims shape = box_of(zero.part, output_, Memory::out).extent;
    Attributes attributes{{names().shape, shape}};
    if (zero.slot != kResident) attributes.set(names().slot, zero.slot);
    value(zero.to) = create(ZeroOp::name(), {}, Type(kI32, Shape(shape)), std::move(attributes));
  }

  void add(const Gemm& gemm) {
    Value *acc = value(gemm.acc), *x = value(gemm.x), *w = value(gemm.w);
    Attributes attributes{{names().form, gemm.one_weight ? "uniform" : gemm.diagonal ? "diagonal" : "dense"}};
    // Padding is an attribute of x.
    attributes.set(names().kernel, Integers{gemm.rows.kernel, gemm.cols.kernel});
    if (gemm.rows.stride != 1 || gemm.cols.stride != 1)
      attributes.set(names().strides, Integers{gemm.rows.stride, gemm.cols.stride});
    if (gemm.rows.dilation != 1 || gemm.cols.dilation != 1)
      attributes.set(names().dilations, Integers{gemm.rows.dilation, gemm.cols.dilation});
    if (!gemm.diagonal) {
      attributes.set(names().blocks, gemm.blocks);
      if (gemm.x_block != 0) attributes.set(names().x_block, gemm.x_block);
      if (gemm.w_block != 0) attributes.set(names().w_block, gemm.w_block);
    }
    value(gemm.acc) = create(GemmOp::name(), {acc, x, w}, acc->type(), std::move(attributes));
  }

  void add(const Alu& alu) {
    static const Name kAlu{AluOpView::kName};
    Value* acc = value(alu.acc);
    Attributes attributes{{names().op, kAluNames[static_cast<size_t>(alu.op)]}};
    if (alu.immediate) {
      attributes.set(names().immediate, *alu.immediate);
      value(alu.acc) = create(kAlu, {acc}, acc->type(), std::move(attributes));
      return;
    }
    if (alu.vector_block != 0) attributes.set(names().vector_block, alu.vector_block);
    value(alu.acc) = create(kAlu, {acc, value(alu.vector)}, acc->type(), std::move(attributes));
  }

  void add(const Max& max) {
    Value *acc = value(max.acc), *x = value(max.x);
    Attributes attributes;
    set_window(attributes, max.rows, max.cols, extents_of(*x->type().shape().static_dims()),
               extents_of(*acc->type().shape().static_dims()));
    value(max.acc) = create(MaxOp::name(), {acc, x}, acc->type(), std::move(attributes));
  }

  void add(const Narrow& narrow) {
    Attributes attributes{{names().min, narrow.min}, {names().max, narrow.max}};
    if (narrow.shift > 0) attributes.set(names().shift, narrow.shift);
    Value* acc = value(narrow.acc);
    value(narrow.acc) = create(NarrowOp::name(), {acc}, Type(kI8, acc->type().shape()), std::move(attributes));
  }

  // A value that was not requantised has 8 bits already.
  void add(const Store& store) {
    Value* from = value(store.from);
    if (from->type().element() != kI8) from = create(NarrowOp::name(), {from}, Type(kI8, from->type().shape()), {});
    Attributes attributes{{names().from, memory_text(Memory::out)}, {names().to, "dram"}};
    Box box = box_of(store.part, output_, Memory::out);
    if (any_set(box.begin)) attributes.set(names().begin, std::move(box.begin));
    y_ = create(dma::Store::name(), {from, y_}, y_->type(), std::move(attributes));
  }

  Region& body_;
  const Dims output_;
  const Hardware& hardware_;
  Value* y_ = nullptr;
  std::vector<Value*> values_;  // current value of each register
};

}  // namespace

Result<Memory> memory_of(const Attributes& load, ElementType element) {
  const Attribute* to = load.find(names().to);
  const auto* text = to ? to->get_if<std::string>() : nullptr;
  for (const auto& [memory, name] : kMemoryTexts)
    if (text && *text == name && memory != Memory::out)
      return memory == Memory::acc && element == kI8 ? Memory::acc8 : memory;
  return error(Code::invalid_argument, "there are no loads to memory ", quote(text ? *text : ""));
}

std::string_view memory_text(Memory memory) {
  for (const auto& [known, name] : kMemoryTexts)
    if (known == (memory == Memory::acc8 ? Memory::acc : memory)) return name;
  return "";
}

Result<Part> part_of(const Attributes& load, const Dims& tensor, Memory memory, const Hardware& hardware) {
  const size_t rank = memory == Memory::wgt ? 6 : memory == Memory::acc ? 3 : memory == Memory::uop ? 1 : tensor.size();
  const bool image = memory == Memory::inp || memory == Memory::acc8;
  if (tensor.size() != rank || (image && (rank < 2 || rank > 4)))
    return error(Code::invalid_argument, "a tensor of shape ", Shape(tensor), " is not what lies in ",
                 memory_name(memory));
  if (memory == Memory::wgt) return weight_part(load, tensor);
  if (memory == Memory::acc || memory == Memory::uop) return list_part(load, tensor);
  return image_part(load, tensor, hardware);
}

Result<Part> stored_part(const Attributes& store, const TileShape& tile, const Dims& tensor, const Hardware& hardware) {
  Part part = image_part(store, tensor, hardware);
  part.count = {1, tile.blocks, tile.rows, tile.cols};
  return part;
}

TileShape tile_shape(const Dims& dims, const Hardware& hardware) {
  const auto elements = image_elements(dims, hardware);
  return {elements[1], elements[2], elements[3]};
}

MicroOpRanges micro_op_ranges(const Attributes& attributes) {
  const Integers& numbers = integers_of(attributes, names().uops);
  MicroOpRanges ranges;
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) ranges.push_back({u32(numbers[i]), u32(numbers[i + 1])});
  return ranges;
}

Integers uops_attribute(const MicroOpRanges& ranges) {
  Integers numbers;
  for (const MicroOpRange& range : ranges) numbers.push_back(range.begin), numbers.push_back(range.end);
  return numbers;
}

Value* write_commands(const std::vector<Command>& commands, const Kernel& kernel, const Hardware& hardware) {
  return OpWriter(kernel, hardware).write(commands);
}

}  // namespace tenon::vta
