#include "opencl/compute/compute_source.hpp"

#include <bit>

#include <tenon/codegen/register.hpp>
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
  defines_ += str("#define GET_", name, "(i) ", made.index, "\n");
}

void ComputeSource::load_raw(std::string_view name, size_t operand) {
  const ElementType raw = raw_type_of(request_.operands[operand].element());
  if (!raw.valid()) {
    why_not_ = str("elements of ", request_.operands[operand].element(), " are no whole bytes");
    return;
  }
  defines_ += str("#define ", name, "(i) (((__global const ", scalar_name(raw), "*)a", operand, ")[i])\n");
}

void ComputeSource::store_raw(std::string_view name, size_t result) {
  const ElementType raw = raw_type_of(request_.results[result].element());
  if (raw.valid())
    defines_ += str("#define ", name, "(i, v) ((__global ", scalar_name(raw), "*)r", result, ")[i] = (v)\n");
}

void ComputeSource::define_float(std::string_view name, double value) {
  define(name, str("as_float(", std::bit_cast<uint32_t>(static_cast<float>(value)), "u)"));
}

void ComputeSource::finish(const Epilogue& epilogue, int lanes) {
  const auto made = write_epilogue(epilogue, lanes, target_);
  if (!made.ok()) {
    why_not_ = made.error().message();
    return;
  }
  defines_ += made->finish;
  functions_ += made->functions;
  extents_ = made->extents;
  epilogue_ = epilogue;
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
  made.source =
      str(kHead, kNearVector, of_group_ ? group : "", defines_, can_fail_ ? "#define FAULT *fault = step\n" : "",
          functions_, "__kernel __attribute__((reqd_work_group_size(", target_.work_group, ", 1, 1)))\nvoid ",
          kComputeKernel, "(__global const long* words, long first", arguments, ") {\n", local_,
          "  __global const long* n = words + first;\n", ports, "  const int step = (int)n[", port,
          "];\n  const long items = n[", port + 1, "];\n  __global const long* f = n + ", port + 2, ";\n  n = f + ",
          extents_, ";\n",
          alone       ? kShareOfOne
          : of_group_ ? kShareOfGroups
                      : kShareOfMany,
          body, "  }\n}\n");
  return made;
}

}  // namespace tenon::opencl
