#include "opencl/compute/compute_source.hpp"

#include <bit>

#include <tenon/codegen/register.hpp>

#include "opencl/device_info.hpp"
#include "opencl/emitters/memory.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {

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
    const std::string made = both.size() == 1 ? str(a, " ", both, " ", b) : str(both, "(", a, ", ", b, ")");
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
  const auto near = [&](ElementType raw) { return near_load(raw, lanes_, str(pointer(scalar_name(raw)), " + (i)")); };
  if (element == kBF16)
    return {str("as_float((uint)", pointer("ushort"), "[i] << 16)"),
            str("as_float", lanes_, "(convert_uint", lanes_, "(", near(element), ") << 16)")};
  const std::string_view type = scalar_name(element);
  const std::string vector = near(element);
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
  means(str(name, "_FROM"), "reads", request_.op.operand(operand));
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
  for (const std::string_view name : {"FINISH", "FINISH_WHOLE"})
    if (epilogue.body.nodes.empty())
      means(name, "writes", request_.op.result());
    else if (target_.comments)
      meanings_.push_back({std::string(name), str("goes on with ", epilogue.body.name)});
  functions_.push_back({made->functions, false});
  rank_ = made->rank;
  epilogue_ = epilogue;
}

void ComputeSource::means(std::string_view name, std::string_view what, const Value* value) {
  if (!target_.comments || !value) return;
  meanings_.push_back({std::string(name), str(what, value->name().empty() ? " a value" : " %", value->name())});
}

}  // namespace tenon::opencl
