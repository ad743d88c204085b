#include <tenon/snippet/linear/emit.hpp>

#include <memory>
#include <optional>
#include <ranges>
#include <unordered_map>
#include <vector>

#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

using codegen::EmitAddress;
using codegen::EmitValue;
using codegen::RegisterFile;

const Register& register_of(const LinearKernel& kernel, RegisterId id) {
  return kernel.registers[static_cast<size_t>(id)];
}

using Types = InlineVector<ElementType, 4>;
using Values = InlineVector<EmitValue, 4>;

Types types_of(const LinearKernel& kernel, const RegisterIds& ids) {
  const auto element = [&](RegisterId id) { return register_of(kernel, id).element; };
  const auto elements = ids | std::views::transform(element);
  return {elements.begin(), elements.end()};
}

Values values_of(const LinearKernel& kernel, const RegisterIds& ids) {
  const auto value = [&](RegisterId id) {
    return EmitValue{kernel.places[static_cast<size_t>(id)], register_of(kernel, id).element};
  };
  const auto values = ids | std::views::transform(value);
  return {values.begin(), values.end()};
}

// Table rows of a kernel's instructions in order: copies of an unrolled body are adjacent, and share a row.
class Rows {
 public:
  Rows(const codegen::JitterTable& table, const TargetDescription& target) : table_(table), target_(target) {}

  Result<const codegen::JitterRow*> of(const LinearKernel& kernel, const Instruction& instruction) {
    if (last_ && instruction.op == op_ && instruction.attributes.empty() && are(in_, kernel, instruction.in) &&
        are(out_, kernel, instruction.out))
      return last_;
    TENON_TRY(row, find_row(kernel, instruction, table_, target_));
    last_ = instruction.attributes.empty() ? row : nullptr;
    op_ = instruction.op, in_ = types_of(kernel, instruction.in), out_ = types_of(kernel, instruction.out);
    return row;
  }

 private:
  static bool are(const Types& types, const LinearKernel& kernel, const RegisterIds& ids) {
    if (types.size() != ids.size()) return false;
    for (size_t i = 0; i < types.size(); ++i)
      if (types[i] != register_of(kernel, ids[i]).element) return false;
    return true;
  }

  const codegen::JitterTable& table_;
  const TargetDescription& target_;
  const codegen::JitterRow* last_ = nullptr;  // null where it depends on attributes
  Name op_;
  Types in_, out_;
};

// Emitters of a kernel's instructions. An emitter has no state but attributes: instructions of a row without attributes
// share one.
class Emitters {
 public:
  const codegen::Emitter* of(const codegen::JitterRow& row, const Attributes& attributes) {
    if (!attributes.empty()) return others_.emplace_back(row.make(attributes)).get();
    std::unique_ptr<codegen::Emitter>& emitter = plain_[&row];
    if (!emitter) emitter = row.make(attributes);
    return emitter.get();
  }

 private:
  std::unordered_map<const codegen::JitterRow*, std::unique_ptr<codegen::Emitter>> plain_;
  std::vector<std::unique_ptr<codegen::Emitter>> others_;
};

// Additional attributes for emitters: those of the loop, and the value of the param where it is known.
Attributes more_attributes(const LinearKernel& kernel, const Instruction& instruction) {
  static const Name kLoopBegin("LoopBegin"), kLoopEnd("LoopEnd"), kTailBegin("TailBegin"), kAdd("AddParameter"),
      kHead("HeadLanes");
  const bool loop = instruction.op == kLoopBegin || instruction.op == kLoopEnd;
  Attributes made;
  std::optional<int64_t> known;
  if (loop || instruction.op == kTailBegin) {
    const Loop& data = kernel.loops[static_cast<size_t>(instruction.number)];
    if (loop) made.set("increment", data.increment);
    made.set("limit", data.limit);
    known = kernel.params[static_cast<size_t>(data.limit)].known;
  } else if (instruction.op == kAdd || instruction.op == kHead) {
    known = kernel.params[static_cast<size_t>(instruction.number)].known;
  }
  if (known) made.set("known", *known);
  return made;
}

std::optional<EmitAddress> address_of(const LinearKernel& kernel, const Instruction& instruction) {
  if (!instruction.memory) return std::nullopt;
  const Memory& memory = *instruction.memory;
  EmitAddress made{.element = memory.element,
                   .base = kernel.places[static_cast<size_t>(memory.base)],
                   .index = std::nullopt,
                   .displacement_bytes = memory.displacement_bytes};
  if (memory.index >= 0) made.index = kernel.places[static_cast<size_t>(memory.index)];
  return made;
}

// One instruction as presented to its emitter, with the data that the emission borrows.
class Prepared {
 public:
  Prepared(const LinearKernel& kernel, const Instruction& instruction, const codegen::JitterRow& row,
           Emitters& emitters)
      : more_(more_attributes(kernel, instruction)),
        in_(values_of(kernel, instruction.in)),
        out_(values_of(kernel, instruction.out)),
        emission_{.op = instruction.op.view(),
                  .attributes = more_.empty() ? instruction.attributes : more_,
                  .in = in_,
                  .out = out_,
                  .vectors = instruction.vectors,
                  .masks = instruction.masks,
                  .generals = instruction.generals,
                  .lanes = kernel.lanes,
                  .memory = address_of(kernel, instruction),
                  .touched = instruction.touched,
                  .number = instruction.number},
        emitter_(emitters.of(row, emission_.attributes)) {}
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  void emit_data(codegen::ConstantPool& constants) const { emitter_->emit_data(constants, emission_); }
  Result<void> emit_code(codegen::EmitContext& context) const { return emitter_->emit_code(context, emission_); }

 private:
  const Attributes more_;
  const Values in_, out_;
  const codegen::Emission emission_;
  const codegen::Emitter* const emitter_;
};

}  // namespace

Result<const codegen::JitterRow*> find_row(const LinearKernel& kernel, const Instruction& instruction,
                                           const codegen::JitterTable& table, const TargetDescription& target) {
  const Types in = types_of(kernel, instruction.in), out = types_of(kernel, instruction.out);
  const codegen::JitterRow* row = table.find({instruction.op, in, out, instruction.attributes}, target);
  if (row) return row;
  return error(Code::unsupported, "the ", table.kind(), " jitter table has no row for ", instruction.op, " of ", in,
               " to ", out, " on target '", target.name, "'");
}

NeedsFn needs_of(const codegen::JitterTable& table, const TargetDescription& target) {
  return [rows = Rows(table, target)](const LinearKernel& kernel,
                                      const Instruction& instruction) mutable -> Result<InstructionNeeds> {
    TENON_TRY(row, rows.of(kernel, instruction));
    return InstructionNeeds{row->scratch, row->early_result};
  };
}

Result<void> emit(const LinearKernel& kernel, const codegen::JitterTable& table, const TargetDescription& target,
                  codegen::EmitContext& context) {
  if (context.kind() != table.kind())
    return error(Code::invalid_argument, "emitters of the ", table.kind(), " jitter table write no ", context.kind(),
                 " code");
  if (kernel.places.size() != kernel.registers.size())
    return error(Code::internal, "linear kernel '", kernel.name, "' is emitted before its registers are allocated");
  Rows rows(table, target);
  Emitters emitters;
  std::vector<std::optional<Prepared>> prepared(kernel.body.size());
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& instruction = kernel.body[i];
    TENON_TRY(row, rows.of(kernel, instruction), "emitting linear kernel '", kernel.name, "'");
    prepared[i].emplace(kernel, instruction, *row, emitters).emit_data(context.constants());
  }
  std::string text;
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& instruction = kernel.body[i];
    text.clear();
    print_into(text, kernel, instruction);
    context.mark(instruction.label < 0 ? std::string_view() : kernel.labels[static_cast<size_t>(instruction.label)],
                 text);
    TENON_OK(prepared[i]->emit_code(context), "emitting '", text, "' of linear kernel '", kernel.name, "'");
  }
  return {};
}

}  // namespace tenon::snippet
