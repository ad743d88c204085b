// The kernel around a body: arguments, distribution of items over work items, comments, the epilogue's numbers.
#include <algorithm>
#include <cctype>

#include <tenon/irgen/from_graph.hpp>
#include <tenon/snippet/body/params.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/places.hpp"
#include "opencl/emitters/memory.hpp"

namespace tenon::opencl {
namespace {

constexpr std::string_view kComputeHead = R"(#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

ushort to_bfloat(float x) {
  const uint bits = as_uint(x);
  return isnan(x) ? (ushort)((bits >> 16) | 0x40u) : (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

)";

// Adjacent items are done by the same work item, or by adjacent ones.
constexpr std::string_view kShareOfOne =
    R"(  const long workers = get_global_size(0), begin = items * get_global_id(0) / workers;
  const long end = items * (get_global_id(0) + 1) / workers;
  for (long item = begin; item < end; ++item) {
)";
constexpr std::string_view kShareOfMany =
    "  for (long item = get_global_id(0); item < items; item += get_global_size(0)) {\n";
constexpr std::string_view kShareOfGroups =
    "  for (long item = get_group_id(0); item < items; item += get_num_groups(0)) {\n";

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Whether `name` is called in the line.
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
    // In a macro of several lines, a comment would swallow the continuation.
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

// Puts the extents of the epilogue's space, and their reciprocals, before the numbers of the kernel.
std::function<Result<ComputeLaunch>(const CallShapes&)> with_places(
    snippet::Body body, size_t result, std::function<Result<ComputeLaunch>(const CallShapes&)> launch) {
  return
      [body = std::move(body), result, launch = std::move(launch)](const CallShapes& shapes) -> Result<ComputeLaunch> {
        TENON_TRY(made, launch(shapes));
        std::vector<Dims> ports = shapes.others;
        ports.insert(ports.begin() + static_cast<std::ptrdiff_t>(result), shapes.results[0]);
        TENON_TRY(extents, snippet::space_extents(body, ports));
        const std::vector<int64_t> numbers = place_numbers(extents);
        made.numbers.insert(made.numbers.begin(), numbers.begin(), numbers.end());
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
    made.launch = with_places(of, epilogue_->result, std::move(made.launch));
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
  made.source = str(kComputeHead, uses_sub_groups_ ? kSubGroupHead : "", near_head(!alone), of_group_ ? group : "",
                    defines_, can_fail_ ? "#define FAULT *fault = step\n" : "", functions, "__kernel ",
                    uses_sub_groups_ ? sub_group_attribute(target_.sub_groups, target_.work_group) : "",
                    "__attribute__((reqd_work_group_size(", target_.work_group, ", 1, 1)))\nvoid ", kComputeKernel,
                    "(__global const long* words, long first", arguments, ") {\n", local_,
                    "  __global const long* n = words + first;\n", ports, "  const int step = (int)n[", port,
                    "];\n  const long items = n[", port + 1, "];\n  __global const long* f = n + ", port + 2,
                    ";\n  n = f + ", 2 * rank_, ";\n",
                    alone       ? kShareOfOne
                    : of_group_ ? kShareOfGroups
                                : kShareOfMany,
                    commented(body), "  }\n}\n");
  return made;
}

}  // namespace tenon::opencl
