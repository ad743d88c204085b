#include "opencl/source_context.hpp"

#include <algorithm>

#include <tenon/support/str.hpp>

#include "opencl/emitters/memory.hpp"

namespace tenon::opencl {

using codegen::EmitValue;
using codegen::PhysicalRegister;

std::string_view scalar_name(ElementType element) {
  if (element == kF32) return "float";
  if (element == kF64) return "double";
  if (element == kI8) return "char";
  if (element == kU8 || element == kBool) return "uchar";
  if (element == kI16) return "short";
  if (element == kU16 || element == kF16 || element == kBF16) return "ushort";
  if (element == kI32) return "int";
  if (element == kU32) return "uint";
  return element == kI64 ? "long" : "ulong";
}

std::string lanes_name(ElementType lane, int lanes) {
  return str(lane.is_bool() ? "int" : scalar_name(lane), lanes == 1 ? std::string() : str(lanes));
}

namespace {

char letter(ElementType lane) {
  if (lane.is_bool()) return 'b';
  if (lane == kF32) return 'f';
  if (lane == kF64) return 'd';
  if (lane == kI32) return 'i';
  if (lane == kU32) return 'u';
  return lane == kI64 ? 'l' : 'k';
}

constexpr std::string_view kSnippetHead = R"(#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF
)";

}  // namespace

std::string comment_text(std::string text) {
  // The text must neither end the comment's line nor continue it.
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\\'; }, ' ');
  return text;
}

SourceContext::SourceContext(codegen::ConstantPool& constants, const snippet::LinearKernel& kernel, size_t ports,
                             bool comments, const GroupForm& form)
    : EmitContext(constants),
      kernel_(kernel),
      ports_(ports),
      comments_(comments),
      form_(form),
      exchanges_memory_(form.items > 1 && exchange_of(kernel).memory) {}

void SourceContext::mark(std::string_view label, std::string_view instruction) {
  if (!comments_) return;
  comment_ = comment_text(label.empty() ? std::string(instruction) : str(label, ": ", instruction));
}

std::string SourceContext::declared(std::string type, std::string name) {
  variables_.emplace(name, std::move(type));
  return name;
}

std::string SourceContext::port(int64_t param) const {
  const auto port = static_cast<size_t>(this->param(param).port);
  return port < ports_ ? str("q", port) : "scratch";
}

std::string SourceContext::name(const EmitValue& value) {
  return declared(lanes_name(value.element, lanes()), str(letter(value.element), value.at.number));
}
std::string SourceContext::counter(PhysicalRegister at) { return declared("long", str("g", at.number)); }
std::string SourceContext::pointer(PhysicalRegister at) { return declared("__global uchar*", str("p", at.number)); }
std::string SourceContext::write_counter(PhysicalRegister at) {
  pointers_.erase(at.number);
  return counter(at);
}
std::string SourceContext::write_pointer(PhysicalRegister at) {
  pointers_.insert(at.number);
  return pointer(at);
}

std::string SourceContext::lane_offset(int element_bytes) const {
  return items() > 1 ? str(" + lane * ", element_bytes) : std::string();
}
std::string SourceContext::own_count(std::string count) const {
  return items() > 1 ? str("(", count, " - lane)") : count;
}
std::string SourceContext::shared_array(ElementType element) {
  std::string name = str("shared_", scalar_name(element));
  shared_.insert(str("  __local ", scalar_name(element), " ", name, "[", items(), "];\n"));
  return name;
}
std::string SourceContext::sub_group_array(ElementType element) {
  uses_sub_groups_ = true;
  std::string name = str("parts_", scalar_name(element));
  shared_.insert(str("  __local ", scalar_name(element), " ", name, "[", 2 * items(), "];\n"));
  return name;
}
void SourceContext::memory_barrier() {
  if (exchanges_memory_) line("barrier(CLK_GLOBAL_MEM_FENCE);");
}

void SourceContext::line(std::string_view text) {
  if (!comment_.empty()) body_ += str(indent(), "// ", comment_, "\n");
  comment_.clear();
  body_ += str(indent(), text, "\n");
}
void SourceContext::lines(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}
void SourceContext::assign(const EmitValue& out, std::string_view expression) {
  line(str(name(out), " = ", expression, ";"));
}
void SourceContext::open(std::string_view text) {
  line(str(text, " {"));
  ++depth_;
}
void SourceContext::close() {
  --depth_;
  line("}");
}

void SourceContext::define(const std::string& function) {
  if (defined_.insert(function).second) prelude_ += function + "\n";
}

std::string SourceContext::finish(std::string_view name) {
  std::string source =
      str(kSnippetHead, uses_sub_groups_ ? kSubGroupHead : "", near_head(form_.group > 1), "\n", prelude_, "__kernel ",
          uses_sub_groups_ ? sub_group_attribute(form_.sub_groups, form_.group) : "",
          "__attribute__((reqd_work_group_size(", form_.group, ", 1, 1)))\nvoid ", name,
          "(__global const long* words, long first, long chunks");
  for (size_t port = 0; port < ports_; ++port) source += str(",\n    __global uchar* q", port);
  if (!kernel_.scratch.empty()) source += ",\n    __global uchar* scratch";
  source += ") {\n";
  for (const std::string& array : shared_) source += array;
  if (uses_sub_groups_) source += "  int turn = 0;\n";
  if (items() == 1)
    source += "  const long chunk = get_global_id(0);\n";
  else
    source += str("  const long chunk = get_global_id(0) / ", items(), ";\n  const int item = get_global_id(0) % ",
                  items(), ";\n  const long lane = item * ", lanes(), ";\n");
  // Items that wait for one another are the whole work group, and each group has a chunk.
  if (items() == 1 || form_.group > items()) source += "  if (chunk >= chunks) return;\n";
  source += str("  words += first + chunk * ", kernel_.params.size(), ";\n");
  for (size_t i = 0; i < kernel_.params.size(); ++i) source += str("  const long w", i, " = words[", i, "];\n");
  return str(source, declarations(), body_, "}\n");
}

std::string SourceContext::declarations() const {
  std::string text;
  for (const auto& [variable, type] : variables_) text += str("  ", type, " ", variable, ";\n");
  return text;
}

SourceContext::Parts SourceContext::parts() && {
  std::string declared = declarations();
  return {std::move(prelude_), std::move(declared), std::move(body_)};
}

}  // namespace tenon::opencl
