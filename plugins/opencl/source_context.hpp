// SourceContext: receives the OpenCL C of the emitters of the OpenCL jitter table, and names values.
//
//   c.assign(e.out[0], str(c.name(e.in[0]), " + ", c.name(e.in[1])));          f3 = f1 + f2;
//
// A register is a variable of the kernel, declared where it is first named:
//
//   f3 d3 i3 u3 l3 k3   lanes of f32, f64, i32, u32, i64, u64: float16, double8 ...
//   b3                  lanes of booleans: -1 or 0 in an int each, also in bodies with 64-bit lanes
//   g3                  a general register that counts: long
//   p3                  a general register that points into a port: __global uchar*
//   w3                  the call's 64-bit param 3
//   q3, scratch         port 3 of the body; memory of its scratch buffers
//   lane, item          where items share the lanes (group_form.hpp): the first lane of this item; its number in the
//                       chunk
//
// Whether a general register counts or points depends on what was last written to it; linear kernels never mix the two.
#pragma once
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/codegen/emitter.hpp>
#include <tenon/snippet/linear/linear.hpp>

#include "opencl/api.hpp"
#include "opencl/group_form.hpp"

namespace tenon::opencl {

inline constexpr std::string_view kContextKind = "opencl";

// "float", "uchar" ...: the type of a scalar in memory; f16 and bf16 are represented by their bits, ushort.
std::string_view scalar_name(ElementType element);
// The type of lanes: "float16"; for booleans "int16".
std::string lanes_name(ElementType lane, int lanes);

// A text from a model, made safe for a comment of one line.
std::string comment_text(std::string text);

class SourceContext final : public codegen::EmitContext {
 public:
  // `ports`: of the kernel's body. `comments`: adds the operator and instruction above the lines generated from them.
  SourceContext(codegen::ConstantPool& constants, const snippet::LinearKernel& kernel, size_t ports, bool comments,
                const GroupForm& form = {});

  std::string_view kind() const override { return kContextKind; }
  void mark(std::string_view label, std::string_view instruction) override;

  // Lanes of one item.
  int lanes() const { return kernel_.lanes / form_.items; }
  int items() const { return form_.items; }
  // The offset in bytes to this item's lanes, as " + ..."; and how many of `count` lanes are at or after its first one.
  std::string lane_offset(int element_bytes) const;
  std::string own_count(std::string count) const;
  const SubGroups& sub_groups() const { return form_.sub_groups; }
  // Local memory with one element for each item; or with two elements for each sub-group, where `turn` is 0 or items()
  // and selects the one in use.
  std::string shared_array(ElementType element);
  std::string sub_group_array(ElementType element);
  // A barrier for global memory; nothing where no item reads what another has written.
  void memory_barrier();
  const snippet::Param& param(int64_t number) const { return kernel_.params[static_cast<size_t>(number)]; }
  // The argument that a pointer param points into.
  std::string port(int64_t param) const;

  // The variable of a value in lanes.
  std::string name(const codegen::EmitValue& value);
  // The variable of a general register, as a number and as a pointer.
  std::string counter(codegen::PhysicalRegister at);
  std::string pointer(codegen::PhysicalRegister at);
  bool points(codegen::PhysicalRegister at) const { return pointers_.contains(at.number); }
  // The variable of a register that is being written.
  std::string write_counter(codegen::PhysicalRegister at);
  std::string write_pointer(codegen::PhysicalRegister at);

  void line(std::string_view text);
  void lines(std::string_view text);  // split at line ends
  void assign(const codegen::EmitValue& out, std::string_view expression);
  // A line that opens, or closes, a block.
  void open(std::string_view text);
  void close();

  // Adds a function to the prelude, once for each distinct text, in the order of the requests.
  void define(const std::string& function);

  // The whole source: prelude, kernel `name`. Call it once, at the end.
  std::string finish(std::string_view name);
  // The parts written so far, for a function of another kernel: functions, declarations of variables, lines. Call it
  // instead of finish().
  struct Parts {
    std::string prelude, declarations, body;
  };
  Parts parts() &&;

 private:
  std::string indent() const { return std::string(static_cast<size_t>(2 * depth_), ' '); }
  std::string declared(std::string type, std::string name);
  std::string declarations() const;

  const snippet::LinearKernel& kernel_;
  const size_t ports_;
  const bool comments_;
  const GroupForm form_;
  const bool exchanges_memory_;
  bool uses_sub_groups_ = false;
  int depth_ = 1;
  std::string comment_;  // written above the next line
  std::string body_, prelude_;
  std::set<std::string> defined_;
  std::map<std::string, std::string> variables_;  // name -> type
  std::set<std::string> shared_;                  // declarations of local memory
  std::set<int> pointers_;
};

// The context that an emitter of this plugin's table gets.
inline SourceContext& source_context(codegen::EmitContext& context) { return static_cast<SourceContext&>(context); }

// The arguments of a kernel: __global const long* words of many calls; long: offset of this call's words; long: its
// number of chunks; then the ports of its body, and one for its scratch buffers, if it has any.
inline constexpr cl_uint kWordsArgument = 0, kFirstArgument = 1, kChunksArgument = 2, kPortsArgument = 3;

}  // namespace tenon::opencl
