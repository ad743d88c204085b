#include "vta/emitters.hpp"

#include <array>
#include <unordered_map>

#include <tenon-ext/dma/operators.hpp>

#include "vta/command_ops.hpp"
#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

using codegen::Emission;
using codegen::EmitContext;
using codegen::EmitValue;

Result<CommandWriter*> writer_of(EmitContext& context) {
  if (context.kind() == kCommandKind) return static_cast<CommandWriter*>(&context);
  return error(Code::internal, "commands of VTA are written into a context of kind '", context.kind(), "'");
}

Register register_of(const EmitValue& value) { return static_cast<Register>(value.at.number); }

// An emitter reads a command from attributes and registers; the writer encodes it.
class CommandEmitter : public codegen::Emitter {
 public:
  Result<void> emit_code(EmitContext& context, const Emission& e) const final {
    TENON_TRY(writer, writer_of(context));
    return emit(*writer, e);
  }
  virtual Result<void> emit(CommandWriter& writer, const Emission& e) const = 0;
};

class LoadEmitter final : public CommandEmitter {
  Result<void> emit(CommandWriter& writer, const Emission& e) const override {
    const auto from = static_cast<Segment>(e.in[0].at.number);
    TENON_TRY(memory, memory_of(e.attributes, writer.element(from)));
    Load load{.to = register_of(e.out[0]), .memory = memory, .from = from};
    load.slot = integer_of(e.attributes, names().slot, kResident);
    load.at = integer_of(e.attributes, names().at, 0);
    TENON_TRY(part, part_of(e.attributes, writer.tensor(from), memory, writer.hardware()));
    load.part = part;
    if (memory != Memory::uop) return writer.write(load);
    writer.load_micro_ops(from, load.part, load.at);
    return {};
  }
};

class StoreEmitter final : public CommandEmitter {
  Result<void> emit(CommandWriter& writer, const Emission& e) const override {
    TENON_TRY(held, writer.held(register_of(e.in[0])));
    TENON_TRY(part, stored_part(e.attributes, held->shape, writer.tensor(writer.output()), writer.hardware()));
    return writer.write(Store{.from = register_of(e.in[0]), .part = part});
  }
};

class ZeroEmitter final : public CommandEmitter {
  Result<void> emit(CommandWriter& writer, const Emission& e) const override {
    const TileShape shape = tile_shape(integers_of(e.attributes, names().shape), writer.hardware());
    return writer.write(Zero{.to = register_of(e.out[0]),
                             .slot = integer_of(e.attributes, names().slot, kResident),
                             .at = integer_of(e.attributes, names().at, 0),
                             .part = {.count = {1, shape.blocks, shape.rows, shape.cols}},
                             .uops = micro_op_ranges(e.attributes)});
  }
};

class GemmEmitter final : public CommandEmitter {
  Result<void> emit(CommandWriter& writer, const Emission& e) const override {
    const WindowAttributes window = window_of(e.attributes);
    const auto* form = e.attributes.find(names().form);
    const std::string& text = *form->get_if<std::string>();
    return writer.write(Gemm{.acc = register_of(e.in[0]),
                             .x = register_of(e.in[1]),
                             .w = register_of(e.in[2]),
                             .rows = window.rows,
                             .cols = window.cols,
                             .diagonal = text != "dense",
                             .one_weight = text == "uniform",
                             .x_block = integer_of(e.attributes, names().x_block, 0),
                             .w_block = integer_of(e.attributes, names().w_block, 0),
                             .blocks = integer_of(e.attributes, names().blocks, 1),
                             .uops = micro_op_ranges(e.attributes)});
  }
};

class AluEmitter final : public CommandEmitter {
  Result<void> emit(CommandWriter& writer, const Emission& e) const override {
    const std::string& op = *e.attributes.find(names().op)->get_if<std::string>();
    Alu alu{.acc = register_of(e.in[0]), .uops = micro_op_ranges(e.attributes)};
    for (size_t i = 0; i < std::size(kAluNames); ++i)
      if (op == kAluNames[i]) alu.op = static_cast<AluOp>(i);
    if (e.in.size() > 1)
      alu.vector = register_of(e.in[1]), alu.vector_block = integer_of(e.attributes, names().vector_block, 0);
    else
      alu.immediate = integer_of(e.attributes, names().immediate, 0);
    return writer.write(alu);
  }
};

class MaxEmitter final : public CommandEmitter {
  Result<void> emit(CommandWriter& writer, const Emission& e) const override {
    const WindowAttributes window = window_of(e.attributes);
    return writer.write(Max{.acc = register_of(e.in[0]),
                            .x = register_of(e.in[1]),
                            .rows = window.rows,
                            .cols = window.cols,
                            .uops = micro_op_ranges(e.attributes)});
  }
};

class NarrowEmitter final : public CommandEmitter {
  Result<void> emit(CommandWriter& writer, const Emission& e) const override {
    if (!e.attributes.has(names().min)) return {};
    return writer.write(Narrow{.acc = register_of(e.in[0]),
                               .shift = integer_of(e.attributes, names().shift, 0),
                               .min = integer_of(e.attributes, names().min, -128),
                               .max = integer_of(e.attributes, names().max, 127),
                               .uops = micro_op_ranges(e.attributes)});
  }
};

class FinishEmitter final : public CommandEmitter {
  Result<void> emit(CommandWriter& writer, const Emission&) const override { return writer.end(); }
};

class NoEmitter final : public CommandEmitter {
  Result<void> emit(CommandWriter&, const Emission&) const override { return {}; }
};

bool known_memory(const codegen::Signature& s) { return memory_of(s.attributes, s.in[0]).ok(); }
bool packed(const codegen::Signature& s) { return s.in.size() == 3 && s.attributes.has(names().form); }

codegen::JitterTable make_table() {
  using codegen::make_emitter;
  codegen::JitterTable table{std::string(kCommandKind)};
  const codegen::LaneTypes lanes{kI32, kU32};
  const auto added = table.add({
      {.op = dma::Load::name(), .types = lanes, .make = make_emitter<LoadEmitter>, .accepts = known_memory},
      {.op = dma::Store::name(), .types = lanes, .make = make_emitter<StoreEmitter>},
      {.op = dma::Alloc::name(), .types = lanes, .make = make_emitter<NoEmitter>},
      {.op = ZeroOp::name(), .types = lanes, .make = make_emitter<ZeroEmitter>},
      {.op = GemmOp::name(), .types = lanes, .make = make_emitter<GemmEmitter>, .accepts = packed},
      {.op = Name(AluOpView::kName), .types = lanes, .make = make_emitter<AluEmitter>},
      {.op = MaxOp::name(), .types = lanes, .make = make_emitter<MaxEmitter>},
      {.op = NarrowOp::name(), .types = lanes, .make = make_emitter<NarrowEmitter>},
      {.op = FinishOp::name(), .types = lanes, .make = make_emitter<FinishEmitter>},
  });
  TENON_CHECK(added.ok(), "the jitter table of VTA: ", added.error().to_string());
  return table;
}

// Assigns registers and tensors to the values of a body.
class Values {
 public:
  explicit Values(const Kernel& kernel) {
    for (size_t i = 0; i < kernel.body().input_count(); ++i)
      at_[kernel.body().input(i)] = {codegen::RegisterFile::general, static_cast<int>(i)};
    output_ = {codegen::RegisterFile::general, static_cast<int>(kernel.body().input_count())};
  }
  // For the operands, and for the result; valid until the next operator.
  Result<std::pair<std::span<const EmitValue>, std::span<const EmitValue>>> of(const Op& op) {
    values_.clear();
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (!op.operand(i)) continue;
      const auto at = at_.find(op.operand(i));
      if (at == at_.end())
        return error(Code::invalid_argument, op.describe(), " reads a value from outside of its kernel");
      values_.push_back({at->second, codegen::lane_type(op.operand(i)->type().element())});
    }
    const size_t inputs = values_.size();
    values_.push_back({at_[op.result()] = place_of_result(op), codegen::lane_type(op.result()->type().element())});
    const std::span<const EmitValue> all(values_);
    return std::pair(all.first(inputs), all.subspan(inputs));
  }

 private:
  codegen::PhysicalRegister place_of_result(const Op& op) {
    if (op.is(dma::Alloc::name()) || op.is(dma::Store::name()) || op.is(FinishOp::name())) return output_;
    if (op.is(dma::Load::name()) || op.is(ZeroOp::name())) return {codegen::RegisterFile::vector, next_++};
    return values_[0].at;
  }
  std::unordered_map<const Value*, codegen::PhysicalRegister> at_;
  codegen::PhysicalRegister output_;
  std::vector<EmitValue> values_;
  int next_ = 0;
};

}  // namespace

const codegen::JitterTable& jitter_table() {
  static const codegen::JitterTable table = make_table();
  return table;
}

namespace {

// The row for an operator with these values.
Result<const codegen::JitterRow*> row_of(const Op& op, std::span<const EmitValue> in, std::span<const EmitValue> out,
                                         const TargetDescription& target) {
  std::array<ElementType, 4> types;
  size_t count = 0;
  for (const EmitValue& value : in) types[count++] = value.element;
  types[count] = out[0].element;
  const std::span<const ElementType> all(types.data(), count + 1);
  const codegen::Signature signature{op.name(), all.first(count), all.subspan(count), op.attributes()};
  if (const codegen::JitterRow* row = jitter_table().find(signature, target)) return row;
  return error(Code::unsupported, op.describe(), " has no instructions on target '", target.name, "'");
}

// Loads read DRAM, stores write the output; all other operators work on registers.
Result<void> check_places(const Op& op, std::span<const EmitValue> in) {
  for (size_t i = 0; i < in.size(); ++i) {
    const bool dram = op.is(dma::Load::name()) || op.is(FinishOp::name()) || (op.is(dma::Store::name()) && i == 1);
    if (dram != (in[i].at.file == codegen::RegisterFile::general))
      return error(Code::invalid_argument, op.describe(), " takes operand ", i, " from ",
                   dram ? "DRAM; it is on the chip" : "the chip; it is in DRAM");
  }
  return {};
}

}  // namespace

Result<void> emit_body(const Kernel& kernel, const TargetDescription& target, CommandWriter& writer,
                       const OpDone& done) {
  Values values(kernel);
  for (Op& op : kernel.body()) {
    TENON_TRY(places, values.of(op));
    const auto& [in, out] = places;
    TENON_OK(check_places(op, in));
    TENON_TRY(row, row_of(op, in, out, target));
    const auto emitter = row->make(op.attributes());
    const Emission emission{.op = op.name().view(), .attributes = op.attributes(), .in = in, .out = out};
    writer.mark(kernel->label(), emission.op);
    TENON_OK(emitter->emit_code(writer, emission), op.describe());
    if (done) TENON_OK(done(op));
  }
  return {};
}

}  // namespace tenon::vta
