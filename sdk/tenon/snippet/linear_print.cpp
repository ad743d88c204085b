#include <tenon/ir/text.hpp>
#include <tenon/snippet/linear.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

std::string hex(uint64_t value) {
  char digits[17];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, 16).ptr;
  return str("0x", std::string_view(digits, static_cast<size_t>(end - digits)));
}

char file_letter(codegen::RegisterFile file) { return codegen::register_file_name(file)[0]; }

// "%4:f32", after allocation "%4:f32@v3".
std::string definition(const LinearKernel& kernel, RegisterId id) {
  const Register& reg = kernel.registers[static_cast<size_t>(id)];
  std::string text = str("%", id, ":");
  if (reg.file == codegen::RegisterFile::general)
    text += "g";
  else
    text += reg.element.to_string();
  if (kernel.places.empty()) return text;
  const codegen::PhysicalRegister& place = kernel.places[static_cast<size_t>(id)];
  return text + str("@", file_letter(place.file), place.number);
}

std::string definitions(const LinearKernel& kernel, const std::vector<RegisterId>& ids) {
  std::string text;
  for (const RegisterId id : ids) text += str(text.empty() ? "" : ", ", definition(kernel, id));
  return text;
}

std::string memory_text(const Memory& memory) {
  std::string text = str(memory.element, " [%", memory.base);
  if (memory.index >= 0) text += str(" + %", memory.index);
  if (memory.displacement_bytes != 0) text += str(" + ", memory.displacement_bytes);
  return text + "]";
}

std::string attributes_text(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) {
    const int64_t* bits = name == "bits" ? value.get_if<int64_t>() : nullptr;
    text += str(text.empty() ? " {" : ", ", name, " = ", bits ? hex(static_cast<uint64_t>(*bits)) : print(value));
  }
  return text.empty() ? text : text + "}";
}

std::string number_text(const Instruction& instruction) {
  const Name op = instruction.op;
  if (op == "Parameter" || op == "BroadcastParameter" || op == "AddParameter") return str(" #", instruction.number);
  if (op == "Spill" || op == "Reload") return str(" slot ", instruction.number);
  return {};
}

std::string scratch_text(const Instruction& instruction) {
  std::string text;
  const auto list = [&](char letter, const std::vector<int>& numbers) {
    for (const int number : numbers) text += str(" ", letter, number);
  };
  list('v', instruction.vectors);
  list('m', instruction.masks);
  list('g', instruction.generals);
  return text.empty() ? text : " uses" + text;
}

std::string shifts_text(const Loop& loop) {
  const auto param = [](ParamId id) { return id < 0 ? std::string("-") : str("#", id); };
  std::string text;
  for (const Loop::Shift& shift : loop.shifts)
    text += str(text.empty() ? " moves " : ", ", "%", shift.pointer, " ", param(shift.each), " ", param(shift.rewind));
  return text;
}

std::string region_text(const LinearKernel& kernel, const Instruction& begin) {
  const Loop& loop = kernel.loops[static_cast<size_t>(begin.number)];
  const std::string head = str(begin.number, " ", loop.name, " dim ", loop.dim, " %", begin.in[0]);
  if (loop.kind == Loop::Kind::tail)
    return str("tail ", head, " limit #", loop.limit, " -> ", definitions(kernel, begin.out), " {");
  return str("loop ", head, loop.kind == Loop::Kind::vector ? " vector" : "", " step ", loop.increment, " limit #",
             loop.limit, shifts_text(loop), " {");
}

std::string operands_text(const Instruction& instruction) {
  std::string text;
  if (instruction.memory) text = " " + memory_text(*instruction.memory);
  for (const RegisterId id : instruction.in) text += str(text.empty() ? " %" : ", %", id);
  return text;
}

std::string param_text(const Param& param) {
  const auto stream = [&](const auto&... what) {
    return str("stream ", what..., " loop ", param.loop, " of ", param.streams, " least ", param.stream_least);
  };
  switch (param.kind) {
    case Param::Kind::pointer: return str("pointer ", param.port);
    case Param::Kind::limit: return str("limit loop ", param.loop, param.inner < 0 ? "" : str(" inner ", param.inner));
    case Param::Kind::shift:
      return str("shift ", param.port, " loop ", param.loop, param.inner < 0 ? "" : str(" inner ", param.inner));
    case Param::Kind::rewind: return str("rewind ", param.port, " loop ", param.loop);
    case Param::Kind::count: return str("count ", param.element);
    case Param::Kind::stream_limit: return stream("limit");
    case Param::Kind::stream_step: return stream("step ", param.port);
    case Param::Kind::stream_rest: return stream("rest");
  }
  return {};
}

}  // namespace

std::string print(const LinearKernel& kernel, const Instruction& instruction) {
  const Name op = instruction.op;
  if (op == "LoopEnd" || op == "TailEnd") return "}";
  if (op == "LoopBegin" || op == "TailBegin") return region_text(kernel, instruction);
  std::string text;
  if (!instruction.out.empty()) text = definitions(kernel, instruction.out) + " = ";
  text += op.str();
  if (instruction.touched == codegen::Lanes::partial) text += ".partial";
  if (instruction.touched == codegen::Lanes::one) text += ".one";
  return text + operands_text(instruction) + number_text(instruction) + attributes_text(instruction.attributes) +
         scratch_text(instruction);
}

std::string print(const LinearKernel& kernel) {
  std::string text = str("kernel @", kernel.name, " lanes ", kernel.lanes,
                         kernel.frame_slots ? str(" frame ", kernel.frame_slots) : "", " {\n");
  for (size_t i = 0; i < kernel.params.size(); ++i) text += str("  #", i, " = ", param_text(kernel.params[i]), "\n");
  for (const LinearKernel::Scratch& scratch : kernel.scratch)
    text += str("  scratch ", scratch.element, " dims ", hex(scratch.dims), " width ", scratch.width, "\n");
  size_t depth = 1;
  for (const Instruction& instruction : kernel.body) {
    const std::string line = print(kernel, instruction);
    if (line.front() == '}') --depth;
    text += str(std::string(depth * 2, ' '), line);
    if (instruction.label >= 0) text += str(" ; ", kernel.labels[static_cast<size_t>(instruction.label)]);
    text += "\n";
    if (line.back() == '{') ++depth;
  }
  return text + "}\n";
}

}  // namespace tenon::snippet
