#include <algorithm>
#include <cstring>
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

// Appends to a string, which is longer than its text while the writer exists: kernels are printed for each key of a
// code cache, instructions for each mark in the code, and most pieces have a few letters.
class Writer {
 public:
  explicit Writer(std::string& text) : text_(text), at_(text.data() + text.size()), end_(at_) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { text_.resize(size()); }

  template <class... Args>
  void operator()(const Args&... pieces) {
    reserve((most(pieces) + ...));
    ((at_ = put(at_, pieces)), ...);
  }
  void spaces(size_t count) {
    reserve(count);
    std::memset(at_, ' ', count);
    at_ += count;
  }

 private:
  static constexpr size_t kLine = 128;                       // typical length, with a margin
  static constexpr size_t kMostDigits = 20, kMostType = 16;  // letters

  static size_t most(char) { return 1; }
  static size_t most(std::string_view piece) { return piece.size(); }
  static size_t most(ElementType) { return kMostType; }
  static size_t most(std::integral auto) { return kMostDigits; }
  template <size_t N>
  static size_t most(const char (&)[N]) {
    return N - 1;
  }
  static char* put(char* at, char c) {
    *at = c;
    return at + 1;
  }
  static char* put(char* at, std::string_view piece) {
    std::memcpy(at, piece.data(), piece.size());
    return at + piece.size();
  }
  template <size_t N>
  static char* put(char* at, const char (&literal)[N]) {
    std::memcpy(at, literal, N - 1);
    return at + N - 1;
  }
  static char* put(char* at, ElementType element) { return put(at, std::string_view(element.to_string())); }
  static char* put(char* at, std::integral auto number) {
    if (number >= 0 && number < 10) return put(at, static_cast<char>('0' + number));
    return std::to_chars(at, at + kMostDigits, number).ptr;
  }
  size_t size() const { return static_cast<size_t>(at_ - text_.data()); }
  void reserve(size_t bytes) {
    if (static_cast<size_t>(end_ - at_) < bytes) grow(bytes);
  }
  void grow(size_t bytes) {
    const size_t written = size();
    text_.resize(std::max(2 * written, written + bytes + kLine));
    at_ = text_.data() + written;
    end_ = text_.data() + text_.size();
  }

  std::string& text_;
  char *at_, *end_;
};

// "%4:f32", after allocation "%4:f32@v3".
void append_definition(Writer& write, const LinearKernel& kernel, RegisterId id) {
  const Register& reg = kernel.registers[static_cast<size_t>(id)];
  write("%", id, ":");
  if (reg.file == codegen::RegisterFile::general)
    write("g");
  else
    write(reg.element);
  if (kernel.places.empty()) return;
  const codegen::PhysicalRegister& place = kernel.places[static_cast<size_t>(id)];
  write("@", file_letter(place.file), place.number);
}

void append_definitions(Writer& write, const LinearKernel& kernel, std::span<const RegisterId> ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) write(", ");
    append_definition(write, kernel, ids[i]);
  }
}

void append_memory(Writer& write, const Memory& memory) {
  write(" ", memory.element, " [%", memory.base);
  if (memory.index >= 0) write(" + %", memory.index);
  if (memory.displacement_bytes != 0) write(" + ", memory.displacement_bytes);
  write("]");
}

void append_attributes(Writer& write, const Attributes& attributes) {
  static const Name kBits("bits");
  bool first = true;
  for (const auto& [name, value] : attributes) {
    const int64_t* number = value.get_if<int64_t>();
    write(first ? " {" : ", ", name.view(), " = ");
    if (!number)
      write(print(value));
    else if (name == kBits)
      write(hex(static_cast<uint64_t>(*number)));
    else
      write(*number);
    first = false;
  }
  if (!first) write("}");
}

void append_number(Writer& write, const Instruction& instruction) {
  static const Name kParameter("Parameter"), kBroadcast("BroadcastParameter");
  const Name op = instruction.op;
  if (op == kParameter || op == kBroadcast || op == kAddParameter || op == kHeadLanes) write(" #", instruction.number);
  if (op == kSpill || op == kReload) write(" slot ", instruction.number);
}

void append_scratch(Writer& write, const Instruction& instruction) {
  if (instruction.vectors.empty() && instruction.masks.empty() && instruction.generals.empty()) return;
  write(" uses");
  const auto list = [&](char letter, std::span<const int> numbers) {
    for (const int number : numbers) write(" ", letter, number);
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

void append_region(Writer& write, const LinearKernel& kernel, const Instruction& begin) {
  const Loop& loop = kernel.loops[static_cast<size_t>(begin.number)];
  const bool tail = loop.kind == Loop::Kind::tail;
  write(tail ? "tail " : "loop ", begin.number, " ", loop.name, " dim ", loop.dim, " %", begin.in[0]);
  if (tail) {
    write(" limit #", loop.limit, " -> ");
    append_definitions(write, kernel, begin.out);
  } else {
    write(loop.kind == Loop::Kind::vector ? " vector" : "", " step ", loop.increment, " limit #", loop.limit,
          shifts_text(loop));
  }
  write(" {");
}

void append_operands(Writer& write, const Instruction& instruction) {
  if (instruction.memory) append_memory(write, *instruction.memory);
  bool first = !instruction.memory;
  for (const RegisterId id : instruction.in) {
    write(first ? " %" : ", %", id);
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

void append_instruction(Writer& write, const LinearKernel& kernel, const Instruction& instruction) {
  const Name op = instruction.op;
  if (ends_region(op)) return write("}");
  if (op == kWhenBegin) return write(when_holds(instruction) ? "when %" : "when not %", instruction.in[0], " {");
  if (op == kLoopBegin || op == kTailBegin) return append_region(write, kernel, instruction);
  append_definitions(write, kernel, instruction.out);
  if (!instruction.out.empty()) write(" = ");
  write(op.view());
  if (instruction.touched == codegen::Lanes::partial) write(".partial");
  if (instruction.touched == codegen::Lanes::one) write(".one");
  append_operands(write, instruction);
  append_number(write, instruction);
  append_attributes(write, instruction.attributes);
  append_scratch(write, instruction);
}

enum class Labels : uint8_t { without, with };

void append_body(std::string& text, const LinearKernel& kernel, Labels labels) {
  Writer write(text);
  size_t depth = 1;
  for (const Instruction& instruction : kernel.body) {
    const Name op = instruction.op;
    if (ends_region(op)) --depth;
    write.spaces(depth * 2);
    append_instruction(write, kernel, instruction);
    if (instruction.label >= 0 && labels == Labels::with)
      write(" ; ", kernel.labels[static_cast<size_t>(instruction.label)]);
    write("\n");
    if (begins_region(op)) ++depth;
  }
  write("}\n");
}

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
  append_body(text, kernel, labels);
  return text;
}

}  // namespace

void print_into(std::string& text, const LinearKernel& kernel, const Instruction& instruction) {
  Writer write(text);
  append_instruction(write, kernel, instruction);
}

std::string print(const LinearKernel& kernel, const Instruction& instruction) {
  std::string text;
  print_into(text, kernel, instruction);
  return text;
}

std::string print(const LinearKernel& kernel) { return kernel_text(kernel, kernel.name, Labels::with); }

std::string text_without_names(const LinearKernel& kernel) { return kernel_text(kernel, "snippet", Labels::without); }

}  // namespace tenon::snippet
