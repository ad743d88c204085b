#include <span>

#include <tenon/ir/text.hpp>
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/snippet/linear/linear_names.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

std::string hex(uint64_t value) {
  char digits[17];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, 16).ptr;
  return str("0x", std::string_view(digits, static_cast<size_t>(end - digits)));
}

char file_letter(codegen::RegisterFile file) { return codegen::register_file_name(file)[0]; }

// Kernels are printed for each key of a code cache, instructions for each mark in the code.
template <class T>
void append_one(std::string& text, const T& value) {
  if constexpr (std::integral<T> && !std::same_as<T, char> && !std::same_as<T, bool>) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text.append(digits, static_cast<size_t>(end - digits));
  } else {
    append_text(text, value);
  }
}
template <class... Args>
void append(std::string& text, const Args&... args) {
  (append_one(text, args), ...);
}

// "%4:f32", after allocation "%4:f32@v3".
void append_definition(std::string& text, const LinearKernel& kernel, RegisterId id) {
  const Register& reg = kernel.registers[static_cast<size_t>(id)];
  append(text, "%", id, ":");
  if (reg.file == codegen::RegisterFile::general)
    append(text, "g");
  else
    append(text, reg.element);
  if (kernel.places.empty()) return;
  const codegen::PhysicalRegister& place = kernel.places[static_cast<size_t>(id)];
  append(text, "@", file_letter(place.file), place.number);
}

void append_definitions(std::string& text, const LinearKernel& kernel, std::span<const RegisterId> ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) append(text, ", ");
    append_definition(text, kernel, ids[i]);
  }
}

void append_memory(std::string& text, const Memory& memory) {
  append(text, " ", memory.element, " [%", memory.base);
  if (memory.index >= 0) append(text, " + %", memory.index);
  if (memory.displacement_bytes != 0) append(text, " + ", memory.displacement_bytes);
  append(text, "]");
}

void append_attributes(std::string& text, const Attributes& attributes) {
  static const Name kBits("bits");
  bool first = true;
  for (const auto& [name, value] : attributes) {
    const int64_t* number = value.get_if<int64_t>();
    append(text, first ? " {" : ", ", name.view(), " = ");
    if (!number)
      append(text, print(value));
    else if (name == kBits)
      append(text, hex(static_cast<uint64_t>(*number)));
    else
      append(text, *number);
    first = false;
  }
  if (!first) append(text, "}");
}

void append_number(std::string& text, const Instruction& instruction) {
  static const Name kParameter("Parameter"), kBroadcast("BroadcastParameter");
  const Name op = instruction.op;
  if (op == kParameter || op == kBroadcast || op == kAddParameter || op == kHeadLanes)
    append(text, " #", instruction.number);
  if (op == kSpill || op == kReload) append(text, " slot ", instruction.number);
}

void append_scratch(std::string& text, const Instruction& instruction) {
  if (instruction.vectors.empty() && instruction.masks.empty() && instruction.generals.empty()) return;
  append(text, " uses");
  const auto list = [&](char letter, std::span<const int> numbers) {
    for (const int number : numbers) append(text, " ", letter, number);
  };
  list('v', instruction.vectors);
  list('m', instruction.masks);
  list('g', instruction.generals);
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
  if (loop.kind == Loop::Kind::tail) {
    std::string text = str("tail ", head, " limit #", loop.limit, " -> ");
    append_definitions(text, kernel, begin.out);
    return text + " {";
  }
  return str("loop ", head, loop.kind == Loop::Kind::vector ? " vector" : "", " step ", loop.increment, " limit #",
             loop.limit, shifts_text(loop), " {");
}

void append_operands(std::string& text, const Instruction& instruction) {
  if (instruction.memory) append_memory(text, *instruction.memory);
  bool first = !instruction.memory;
  for (const RegisterId id : instruction.in) {
    append(text, first ? " %" : ", %", id);
    first = false;
  }
}

std::string param_text(const Param& param) {
  const auto stream = [&](const auto&... what) {
    return str("stream ", what..., " loop ", param.loop, " of ", param.streams, " least ", param.stream_least);
  };
  switch (param.kind) {
    case Param::Kind::pointer: return str("pointer ", param.port);
    case Param::Kind::limit:
      return str("limit loop ", param.loop, param.ahead == 0 ? "" : str(" ahead ", param.ahead),
                 param.inner < 0 ? "" : str(" inner ", param.inner, " longest ", param.longest));
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

std::string known_text(const Param& param) { return param.known ? str(" known ", *param.known) : std::string(); }

std::string blocks_text(const LinearKernel::Blocks& blocks) {
  std::string text = str("  blocks dim ", blocks.dim, blocks.again ? " again" : "", blocks.inside ? " inside" : "");
  for (const LinearKernel::Blocks::Size& size : blocks.sizes) {
    text += str(&size == &blocks.sizes.front() ? " of " : ", ", size.elements);
    if (size.within_bytes > 0) text += str(" within ", size.within_bytes);
  }
  return text + "\n";
}

}  // namespace

namespace {

void append_instruction(std::string& text, const LinearKernel& kernel, const Instruction& instruction) {
  const Name op = instruction.op;
  if (op == kLoopEnd || op == kTailEnd) return append(text, "}");
  if (op == kLoopBegin || op == kTailBegin) return append(text, region_text(kernel, instruction));
  append_definitions(text, kernel, instruction.out);
  if (!instruction.out.empty()) append(text, " = ");
  append(text, op.view());
  if (instruction.touched == codegen::Lanes::partial) append(text, ".partial");
  if (instruction.touched == codegen::Lanes::one) append(text, ".one");
  append_operands(text, instruction);
  append_number(text, instruction);
  append_attributes(text, instruction.attributes);
  append_scratch(text, instruction);
}

}  // namespace

std::string print(const LinearKernel& kernel, const Instruction& instruction) {
  std::string text;
  text.reserve(64);
  append_instruction(text, kernel, instruction);
  return text;
}

namespace {

enum class Labels : uint8_t { without, with };

std::string kernel_text(const LinearKernel& kernel, std::string_view name, Labels labels) {
  std::string text = str("kernel @", name, " lanes ", kernel.lanes,
                         kernel.frame_slots ? str(" frame ", kernel.frame_slots) : "", " {\n");
  for (size_t i = 0; i < kernel.params.size(); ++i)
    text += str("  #", i, " = ", param_text(kernel.params[i]), known_text(kernel.params[i]), "\n");
  for (const LinearKernel::Scratch& scratch : kernel.scratch)
    text += str("  scratch ", scratch.element, " dims ", hex(scratch.dims), " width ", scratch.width,
                scratch.more_bytes > 0 ? str(" more ", scratch.more_bytes) : "", "\n");
  if (kernel.blocks.dim >= 0) text += blocks_text(kernel.blocks);
  if (kernel.stretch >= 0) text += str("  stretch from ", kernel.stretch, "\n");
  if (kernel.joined.rows >= 0) text += str("  joined rows ", kernel.joined.rows, "\n");
  constexpr size_t kLine = 64;  // about
  text.reserve(text.size() + kernel.body.size() * kLine);
  size_t depth = 1;
  for (const Instruction& instruction : kernel.body) {
    const Name op = instruction.op;
    if (op == kLoopEnd || op == kTailEnd) --depth;
    text.append(depth * 2, ' ');
    append_instruction(text, kernel, instruction);
    if (instruction.label >= 0 && labels == Labels::with)
      append(text, " ; ", kernel.labels[static_cast<size_t>(instruction.label)]);
    text += '\n';
    if (op == kLoopBegin || op == kTailBegin) ++depth;
  }
  text += "}\n";
  return text;
}

}  // namespace

std::string print(const LinearKernel& kernel) { return kernel_text(kernel, kernel.name, Labels::with); }

std::string text_without_names(const LinearKernel& kernel) { return kernel_text(kernel, "snippet", Labels::without); }

}  // namespace tenon::snippet
