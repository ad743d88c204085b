#include <tenon/snippet/emit.hpp>

#include <algorithm>
#include <memory>

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
  Types types;
  for (const RegisterId id : ids) types.push_back(register_of(kernel, id).element);
  return types;
}

Values values_of(const LinearKernel& kernel, const RegisterIds& ids) {
  Values values;
  for (const RegisterId id : ids)
    values.push_back({kernel.places[static_cast<size_t>(id)], register_of(kernel, id).element});
  return values;
}

// One instruction as its emitter sees it, with what the emission borrows.
struct Prepared {
  std::unique_ptr<codegen::Emitter> emitter;
  Attributes more;
  Values in, out;
  std::optional<EmitAddress> memory = std::nullopt;
};

// What emitters are told beside an instruction's own attributes: of its loop, and the value of its param where that is
// known.
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

Prepared prepare(const LinearKernel& kernel, const Instruction& instruction, const codegen::JitterRow& row) {
  Prepared made{.emitter = nullptr,
                .more = more_attributes(kernel, instruction),
                .in = values_of(kernel, instruction.in),
                .out = values_of(kernel, instruction.out)};
  made.emitter = row.make(made.more.empty() ? instruction.attributes : made.more);
  if (!instruction.memory) return made;
  const Memory& memory = *instruction.memory;
  made.memory = EmitAddress{.element = memory.element,
                            .base = kernel.places[static_cast<size_t>(memory.base)],
                            .index = std::nullopt,
                            .displacement_bytes = memory.displacement_bytes};
  if (memory.index >= 0) made.memory->index = kernel.places[static_cast<size_t>(memory.index)];
  return made;
}

codegen::Emission emission_of(const LinearKernel& kernel, const Instruction& instruction, const Prepared& prepared) {
  return {.op = instruction.op.view(),
          .attributes = prepared.more.empty() ? instruction.attributes : prepared.more,
          .in = prepared.in,
          .out = prepared.out,
          .vectors = instruction.vectors,
          .masks = instruction.masks,
          .generals = instruction.generals,
          .lanes = kernel.lanes,
          .memory = prepared.memory,
          .touched = instruction.touched,
          .number = instruction.number};
}

// Types of a node's operands and result; borrowed by its signature.
struct NodeTypes {
  Types in, out;
  NodeTypes(const Body& body, const BodyNode& node) {
    const auto type = [&](ValueId id) { return body.values[static_cast<size_t>(id)].element; };
    for (const ValueId operand : node.operands) in.push_back(type(operand));
    out.push_back(type(node.result));
  }
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
  return [&](const LinearKernel& kernel, const Instruction& instruction) -> Result<InstructionNeeds> {
    TENON_TRY(row, find_row(kernel, instruction, table, target));
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
  std::vector<Prepared> prepared;
  prepared.reserve(kernel.body.size());
  for (const Instruction& instruction : kernel.body) {
    TENON_TRY(row, find_row(kernel, instruction, table, target), "emitting linear kernel '", kernel.name, "'");
    prepared.push_back(prepare(kernel, instruction, *row));
    prepared.back().emitter->emit_data(context.constants(), emission_of(kernel, instruction, prepared.back()));
  }
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& instruction = kernel.body[i];
    const std::string text = print(kernel, instruction);
    context.mark(instruction.label < 0 ? std::string_view() : kernel.labels[static_cast<size_t>(instruction.label)],
                 text);
    TENON_OK(prepared[i].emitter->emit_code(context, emission_of(kernel, instruction, prepared[i])), "emitting '", text,
             "' of linear kernel '", kernel.name, "'");
  }
  return {};
}

const codegen::JitterRow* find_node_row(const codegen::Signature& node, const codegen::JitterTable& table,
                                        const TargetDescription& target) {
  const std::optional<Name> fold = fold_of(node.op);
  if (!fold) return table.find(node, target);
  const ElementType twice[] = {node.in.front(), node.in.front()};
  return table.find({*fold, twice, node.out, node.attributes}, target);
}

bool can_emit_node(const codegen::Signature& node, const codegen::JitterTable& table, const TargetDescription& target) {
  return node.op == "Scalar" || node.op == "ReducedCount" || find_node_row(node, table, target);
}

const codegen::JitterRow* row_of_node(const Body& body, const BodyNode& node, const codegen::JitterTable& table,
                                      const TargetDescription& target) {
  const NodeTypes types(body, node);
  return find_node_row({node.op, types.in, types.out, node.attributes}, table, target);
}

std::string why_not_emit(const Body& body, const codegen::JitterTable& table, const TargetDescription& target) {
  for (const BodyNode& node : body.nodes) {
    const NodeTypes types(body, node);
    if (can_emit_node({node.op, types.in, types.out, node.attributes}, table, target)) continue;
    return str("no emitter for ", node.op, " from ", types.in, " to ", types.out[0]);
  }
  return {};
}

double cycles_of_node(const Body& body, const BodyNode& node, const codegen::JitterTable& table,
                      const TargetDescription& target) {
  const codegen::JitterRow* row = row_of_node(body, node, table, target);
  return row ? row->cycles : 0;
}

double cycles_per_element(const Body& body, int lanes, const codegen::JitterTable& table,
                          const TargetDescription& target) {
  const DimSet all = body.all_dims();
  const auto each = [&](ValueId id) { return body.values[static_cast<size_t>(id)].varies == all; };
  double cycles = 0;
  // A reduction's operand is what varies.
  for (const BodyNode& node : body.nodes)
    if (each(node.result) || std::any_of(node.operands.begin(), node.operands.end(), each))
      cycles += cycles_of_node(body, node, table, target);
  for (const std::vector<BodyPort>* ports : {&body.inputs, &body.outputs})
    for (const BodyPort& port : *ports) cycles += each(port.value);
  return cycles / lanes;
}

}  // namespace tenon::snippet
