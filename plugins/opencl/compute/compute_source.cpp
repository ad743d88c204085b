#include "opencl/compute/compute_source.hpp"

#include <algorithm>
#include <bit>
#include <cctype>

#include <tenon/codegen/register.hpp>
#include <tenon/irgen/from_graph.hpp>
#include <tenon/snippet/params.hpp>

#include "opencl/device_info.hpp"
#include "opencl/emitters/memory.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

constexpr std::string_view kHead = R"(#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

ushort to_bfloat(float x) {
  const uint bits = as_uint(x);
  return isnan(x) ? (ushort)((bits >> 16) | 0x40u) : (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

)";

// Neighbours to the same work item, or to neighbouring ones.
constexpr std::string_view kShareOfOne = R"(  const long share = (items + get_global_size(0) - 1) / get_global_size(0);
  const long begin = get_global_id(0) * share, end = min(items, begin + share);
  for (long item = begin; item < end; ++item) {
)";
constexpr std::string_view kShareOfMany =
    "  for (long item = get_global_id(0); item < items; item += get_global_size(0)) {\n";
constexpr std::string_view kShareOfGroups =
    "  for (long item = get_group_id(0); item < items; item += get_num_groups(0)) {\n";

}  // namespace

ElementType work_type_of(ElementType element) {
  const ElementType lane = codegen::lane_type(element);
  return lane.valid() && lane.is_bool() ? kU32 : lane;
}

ElementType raw_type_of(ElementType element) {
  switch (element.is_string() ? 0 : element.bits()) {
    case 8: return kU8;
    case 16: return kU16;
    case 32: return kU32;
    case 64: return kU64;
    default: return element == kBool ? kU8 : ElementType();
  }
}

ElementType sum_type_of(ElementType work, const ComputeTarget& target) {
  return work == kF32 && target.description.has_feature(kFp64) ? kF64 : work;
}

std::string lanes_function(std::string_view name, std::string_view both, ElementType work, int lanes) {
  const std::string_view type = scalar_name(work);
  std::string text = str("static ", type, " ", name, "(", lanes_name(work, lanes), " x", lanes, ") {\n");
  for (int half = lanes / 2; half >= 1; half /= 2) {
    const std::string from = str("x", 2 * half), a = from + (half > 1 ? ".lo" : ".x"),
                      b = from + (half > 1 ? ".hi" : ".y");
    const std::string made = both == "+" ? str(a, " + ", b) : str(both, "(", a, ", ", b, ")");
    text += str("  const ", type, half > 1 ? str(half) : std::string(), " x", half, " = ", made, ";\n");
  }
  return text + "  return x1;\n}\n";
}

ComputeSource::ComputeSource(const irgen::KernelRequest& request, const ComputeTarget& target)
    : request_(request), target_(target) {}

void ComputeSource::checked(ElementType element) {
  if (!raw_type_of(element).valid() || !codegen::lane_type(element).valid())
    why_not_ = str("elements of ", element, " have no form on the device");
  else if (element == kF64 && !target_.description.has_feature(kFp64))
    why_not_ = str("the device has no ", element);
}

ComputeSource::Access ComputeSource::access(std::string_view port, ElementType element, ElementType work) {
  if (element == kF16)
    return {str("vload_half(i, (__global const half*)", port, ")"),
            str("vload_half", lanes_, "(0, (__global const half*)", port, " + (i))")};
  const auto pointer = [&](std::string_view type) { return str("((__global const ", type, "*)", port, ")"); };
  const auto near = [&](std::string_view type) {
    return near_vector(str(type, lanes_), str(pointer(type), " + (i)"), false);
  };
  if (element == kBF16)
    return {str("as_float((uint)", pointer("ushort"), "[i] << 16)"),
            str("as_float", lanes_, "(convert_uint", lanes_, "(", near("ushort"), ") << 16)")};
  const std::string_view type = scalar_name(element);
  const std::string vector = near(type);
  return {str("((", scalar_name(work), ")", pointer(type), "[i])"),
          element == work ? vector : str("convert_", scalar_name(work), lanes_, "(", vector, ")")};
}

void ComputeSource::load(std::string_view name, size_t operand, ElementType work) {
  const ElementType element = request_.operands[operand].element();
  checked(element);
  const Access made = access(str("a", operand), element, work);
  means(name, "reads", request_.op.operand(operand));
  means(str(name, "V"), "reads", request_.op.operand(operand));
  defines_ += str("#define ", name, "(i) ", made.index, "\n#define ", name, "V(i) ", made.vector, "\n");
}

void ComputeSource::load_by_pointer(std::string_view name, size_t operand, ElementType work) {
  const ElementType element = request_.operands[operand].element();
  checked(element);
  const std::string type(element == kF16 ? "half" : scalar_name(element));
  define(str(name, "_TYPE"), str("__global const ", type, "*"));
  define(str(name, "_AT(i)"), str("((__global const ", type, "*)a", operand, " + (i))"));
  define(str(name, "_FROM(p, i)"), element == kF16    ? std::string("vload_half(i, p)")
                                   : element == kBF16 ? std::string("as_float((uint)(p)[i] << 16)")
                                                      : str("((", scalar_name(work), ")(p)[i])"));
}

void ComputeSource::store(std::string_view name, size_t result, ElementType work) {
  const ElementType element = request_.results[result].element();
  checked(element);
  const std::string port = str("r", result);
  means(name, "writes", request_.op.result(result));
  const auto at = [&](std::string_view type) { return str("((__global ", type, "*)", port, ")[i]"); };
  defines_ += str("#define ", name, "(i, v) ");
  if (element == kF16)
    defines_ += str("vstore_half_rte(v, i, (__global half*)", port, ")\n");
  else if (element == kBF16)
    defines_ += str(at("ushort"), " = to_bfloat(v)\n");
  else if (element == kBool)
    defines_ += str(at("uchar"), " = (v) != 0\n");
  else
    defines_ += str(at(scalar_name(element)), " = (", scalar_name(element), ")(", scalar_name(work), ")(v)\n");
}

void ComputeSource::load_stored(std::string_view name, size_t result, ElementType work) {
  const Access made = access(str("r", result), request_.results[result].element(), work);
  store(name, result, work);
  means(str("GET_", name), "reads again", request_.op.result(result));
  defines_ += str("#define GET_", name, "(i) ", made.index, "\n");
}

void ComputeSource::load_optional(std::string_view name, size_t operand, ElementType work, std::string_view none) {
  if (request_.passes(operand))
    load(name, operand, work);
  else
    define(str(name, "(i)"), none);
}

void ComputeSource::store_optional(std::string_view name, size_t result, ElementType work) {
  if (result < request_.results.size())
    store(name, result, work);
  else
    define(str(name, "(i, v)"), "(void)(v)");
}

void ComputeSource::load_raw(std::string_view name, size_t operand) {
  const ElementType raw = raw_type_of(request_.operands[operand].element());
  if (!raw.valid()) {
    why_not_ = str("elements of ", request_.operands[operand].element(), " are no whole bytes");
    return;
  }
  means(name, "reads", request_.op.operand(operand));
  defines_ += str("#define ", name, "(i) (((__global const ", scalar_name(raw), "*)a", operand, ")[i])\n");
}

void ComputeSource::store_raw(std::string_view name, size_t result) {
  const ElementType raw = raw_type_of(request_.results[result].element());
  means(name, "writes", request_.op.result(result));
  if (raw.valid())
    defines_ += str("#define ", name, "(i, v) ((__global ", scalar_name(raw), "*)r", result, ")[i] = (v)\n");
}

void ComputeSource::define_float(std::string_view name, double value) {
  define(name, str("as_float(", std::bit_cast<uint32_t>(static_cast<float>(value)), "u)"));
}

void ComputeSource::define_wide(std::string_view name, double value) {
  if (sum_type_of(kF32, target_) != kF64) return define_float(name, value);
  define(name, str("as_double(", std::bit_cast<uint64_t>(value), "ul)"));
}

void ComputeSource::functions(std::string_view text) { functions_.push_back({std::string(text), true}); }

void ComputeSource::finish(const Epilogue& epilogue, int lanes) {
  const auto made = write_epilogue(epilogue, lanes, target_);
  if (!made.ok()) {
    why_not_ = made.error().message();
    return;
  }
  defines_ += made->finish;
  if (epilogue.body.nodes.empty())
    means("FINISH", "writes", request_.op.result());
  else if (target_.comments)
    meanings_.push_back({"FINISH", str("goes on with ", epilogue.body.name)});
  functions_.push_back({made->functions, false});
  extents_ = made->extents;
  epilogue_ = epilogue;
}

void ComputeSource::means(std::string_view name, std::string_view what, const Value* value) {
  if (!target_.comments || !value) return;
  meanings_.push_back({std::string(name), str(what, value->name().empty() ? " a value" : " %", value->name())});
}

namespace {

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Is `name` called in the line?
bool calls(std::string_view line, std::string_view name) {
  for (size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1))
    if ((at == 0 || !is_name(line[at - 1])) && line.substr(at + name.size()).starts_with("(")) return true;
  return false;
}

}  // namespace

std::string ComputeSource::commented(std::string_view text) const {
  if (!target_.comments) return std::string(text);
  const std::string stage = irgen::stage_of_op(request_.op);
  std::string made;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    made += line;
    // A comment would end the lines of a macro that goes on.
    if (line.find_first_not_of(" {};") != std::string_view::npos && !line.ends_with("\\")) {
      std::string comment = stage;
      std::string_view before = ": ";
      for (const Meaning& meaning : meanings_) {
        if (!calls(line, meaning.name)) continue;
        comment += str(before, meaning.text);
        before = ", ";
      }
      made += str("  // ", comment_text(std::move(comment)));
    }
    made += "\n";
  }
  return made;
}

namespace {

// Puts the extents of the epilogue's space before the numbers of the kernel.
std::function<Result<ComputeLaunch>(const CallShapes&)> with_extents(
    snippet::Body body, size_t result, std::function<Result<ComputeLaunch>(const CallShapes&)> launch) {
  return
      [body = std::move(body), result, launch = std::move(launch)](const CallShapes& shapes) -> Result<ComputeLaunch> {
        TENON_TRY(made, launch(shapes));
        std::vector<Dims> ports = shapes.others;
        ports.insert(ports.begin() + static_cast<std::ptrdiff_t>(result), shapes.results[0]);
        TENON_TRY(extents, snippet::space_extents(body, ports));
        made.numbers.insert(made.numbers.begin(), extents.begin(), extents.end());
        return made;
      };
}

}  // namespace

Result<ComputeKernel> ComputeSource::kernel(std::string_view body,
                                            std::function<Result<ComputeLaunch>(const CallShapes&)> launch) {
  if (!why_not_.empty()) return error(Code::unsupported, why_not_);
  ComputeKernel made{.launch = std::move(launch), .can_fail = can_fail_, .of_group = of_group_};
  std::string arguments, ports;
  size_t port = 0;
  const auto add = [&](const std::string& name) {
    arguments += str(", __global uchar* q", port);
    ports += str("  __global uchar* ", name, " = q", port, " + n[", port, "];\n");
    ++port;
  };
  for (size_t i = 0; i < request_.op.operand_count(); ++i) {
    made.operands.push_back(request_.passes(i));
    if (request_.passes(i)) add(str("a", i));
  }
  made.results = request_.op.result_count();
  const bool fused = epilogue_ && !epilogue_->body.nodes.empty();
  if (fused) {
    const snippet::Body& of = epilogue_->body;
    made.launch = with_extents(of, epilogue_->result, std::move(made.launch));
    made.others = of.inputs.size() - 1 + of.outputs.size();
    made.results = of.outputs.size();
    for (size_t i = 0; i + 1 < of.inputs.size(); ++i) add(str("e", i));
  }
  for (size_t i = 0; i < made.results; ++i) add(str("r", i));
  if (can_fail_) arguments += ", __global int* fault";
  const bool alone = target_.work_group == 1;
  const std::string_view group =
      alone ? "#define LOCAL_ID 0\n#define LOCAL_SIZE 1\n#define SYNC\n"
            : "#define LOCAL_ID (long)get_local_id(0)\n#define LOCAL_SIZE (long)get_local_size(0)\n"
              "#define SYNC barrier(CLK_LOCAL_MEM_FENCE)\n";
  std::string functions;
  for (const Function& function : functions_) functions += function.plain ? commented(function.text) : function.text;
  made.source =
      str(kHead, kNearVector, of_group_ ? group : "", defines_, can_fail_ ? "#define FAULT *fault = step\n" : "",
          functions, "__kernel __attribute__((reqd_work_group_size(", target_.work_group, ", 1, 1)))\nvoid ",
          kComputeKernel, "(__global const long* words, long first", arguments, ") {\n", local_,
          "  __global const long* n = words + first;\n", ports, "  const int step = (int)n[", port,
          "];\n  const long items = n[", port + 1, "];\n  __global const long* f = n + ", port + 2, ";\n  n = f + ",
          extents_, ";\n",
          alone       ? kShareOfOne
          : of_group_ ? kShareOfGroups
                      : kShareOfMany,
          commented(body), "  }\n}\n");
  return made;
}

}  // namespace tenon::opencl
