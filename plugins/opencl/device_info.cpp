#include "opencl/device_info.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include <tenon/plugin/probe.hpp>
#include <tenon/support/str.hpp>

#include "opencl/sub_groups.hpp"

namespace tenon::opencl {
namespace {

constexpr size_t kMostDevices = 64;

// Queries of OpenCL 2.1, of 3.0 and of cl_intel_required_subgroup_size, and the result type of the second.
constexpr cl_device_info kMostSubGroups = 0x105C, kCFeatures = 0x106F, kSubGroupSizes = 0x4108;
struct NamedVersion {
  cl_uint version;
  char name[64];
};

// The result of the child process.
struct Survey {
  size_t count;
  DeviceInfo devices[kMostDevices];
};

template <size_t kSize>
void set_text(char (&to)[kSize], std::string_view from) {
  const size_t length = std::min(from.size(), kSize - 1);
  std::memcpy(to, from.data(), length);
  to[length] = 0;
}

class Asker {
 public:
  Asker(const Api& cl, cl_device_id device) : cl_(cl), device_(device) {}

  template <class T>
  Asker& number(cl_device_info what, T& to, bool optional = false) {
    const cl_int code = cl_.clGetDeviceInfo(device_, what, sizeof to, &to, nullptr);
    if (code == CL_SUCCESS) return *this;
    to = T{};
    if (!optional && failed_ == CL_SUCCESS) failed_ = code;
    return *this;
  }
  template <size_t kSize>
  Asker& text(cl_device_info what, char (&to)[kSize]) {
    size_t bytes = 0;
    cl_int code = cl_.clGetDeviceInfo(device_, what, 0, nullptr, &bytes);
    std::string answer(bytes, ' ');
    if (code == CL_SUCCESS && bytes > 0) code = cl_.clGetDeviceInfo(device_, what, bytes, answer.data(), nullptr);
    if (code != CL_SUCCESS && failed_ == CL_SUCCESS) failed_ = code;
    set_text(to, answer.c_str());
    return *this;
  }
  // Empty where the device does not support the query.
  template <class T>
  std::vector<T> list(cl_device_info what) const {
    size_t bytes = 0;
    if (cl_.clGetDeviceInfo(device_, what, 0, nullptr, &bytes) != CL_SUCCESS) return {};
    std::vector<T> answer(bytes / sizeof(T));
    const cl_int code = cl_.clGetDeviceInfo(device_, what, answer.size() * sizeof(T), answer.data(), nullptr);
    return code == CL_SUCCESS ? answer : std::vector<T>();
  }
  bool has_c_feature(std::string_view name) const {
    const auto features = list<NamedVersion>(kCFeatures);
    return std::any_of(features.begin(), features.end(), [&](const NamedVersion& one) { return name == one.name; });
  }
  Result<void> done() const { return check(failed_, "clGetDeviceInfo"); }

 private:
  const Api& cl_;
  cl_device_id device_;
  cl_int failed_ = CL_SUCCESS;
};

Result<DeviceInfo> query(const Api& cl, cl_device_id device) {
  DeviceInfo info{};
  Asker asker(cl, device);
  asker.text(CL_DEVICE_NAME, info.name)
      .text(CL_DEVICE_VENDOR, info.vendor)
      .text(CL_DEVICE_VERSION, info.version)
      .text(CL_DRIVER_VERSION, info.driver)
      .text(CL_DEVICE_EXTENSIONS, info.extensions)
      .number(CL_DEVICE_TYPE, info.type)
      .number(CL_DEVICE_GLOBAL_MEM_SIZE, info.global_bytes)
      .number(CL_DEVICE_MAX_MEM_ALLOC_SIZE, info.most_allocation_bytes)
      .number(CL_DEVICE_LOCAL_MEM_SIZE, info.local_bytes)
      .number(CL_DEVICE_MAX_WORK_GROUP_SIZE, info.work_group_items)
      .number(CL_DEVICE_MAX_PARAMETER_SIZE, info.parameter_bytes)
      .number(CL_DEVICE_MAX_COMPUTE_UNITS, info.compute_units)
      .number(CL_DEVICE_MAX_CLOCK_FREQUENCY, info.clock_mhz)
      .number(CL_DEVICE_MEM_BASE_ADDR_ALIGN, info.alignment_bits)
      .number(CL_DEVICE_ADDRESS_BITS, info.address_bits)
      .number(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, info.float_lanes)
      .number(CL_DEVICE_SINGLE_FP_CONFIG, info.single_fp)
      .number(CL_DEVICE_DOUBLE_FP_CONFIG, info.double_fp, /*optional=*/true)
      .number(CL_DEVICE_AVAILABLE, info.available)
      .number(CL_DEVICE_COMPILER_AVAILABLE, info.compiler)
      .number(CL_DEVICE_ENDIAN_LITTLE, info.little_endian)
      .number(CL_DEVICE_HOST_UNIFIED_MEMORY, info.shares_memory, /*optional=*/true)
      .number(kMostSubGroups, info.most_sub_groups, /*optional=*/true);
  TENON_OK(asker.done());
  info.subgroups_feature = asker.has_c_feature("__opencl_c_subgroups");
  for (const size_t size : asker.list<size_t>(kSubGroupSizes))
    if (std::has_single_bit(size)) info.sub_group_sizes |= static_cast<uint32_t>(size);
  return info;
}

Result<std::vector<cl_platform_id>> platforms(const Api& cl) {
  cl_uint count = 0;
  const cl_int code = cl.clGetPlatformIDs(0, nullptr, &count);
  if (code == -1001 || count == 0) {  // CL_PLATFORM_NOT_FOUND_KHR
    return error(Code::not_found,
                 "no OpenCL platform is installed (Debian: pocl-opencl-icd; a GPU's comes with its driver)");
  }
  TENON_OK(check(code, "clGetPlatformIDs"));
  std::vector<cl_platform_id> all(count);
  TENON_OK(check(cl.clGetPlatformIDs(count, all.data(), nullptr), "clGetPlatformIDs"));
  return all;
}

Result<std::vector<cl_device_id>> devices_of(const Api& cl, cl_platform_id platform) {
  cl_uint count = 0;
  const cl_int code = cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  if (code == CL_DEVICE_NOT_FOUND || count == 0) return std::vector<cl_device_id>();
  TENON_OK(check(code, "clGetDeviceIDs"));
  std::vector<cl_device_id> all(count);
  TENON_OK(check(cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, all.data(), nullptr), "clGetDeviceIDs"));
  return all;
}

struct Unmap {
  void operator()(Survey* survey) const { munmap(survey, sizeof *survey); }
};

Result<std::vector<DeviceInfo>> survey() {
  void* memory = mmap(nullptr, sizeof(Survey), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return error(Code::io, "no memory to ask OpenCL devices with: ", std::strerror(errno));
  const std::unique_ptr<Survey, Unmap> shared(static_cast<Survey*>(memory));
  TENON_OK(plugin_room::probe("the OpenCL of this machine", [&]() -> Result<void> {
    TENON_TRY(cl, api());
    TENON_TRY(found, query_devices(*cl));
    shared->count = std::min(found.size(), kMostDevices);
    std::copy_n(found.begin(), shared->count, shared->devices);
    return {};
  }));
  return std::vector<DeviceInfo>(shared->devices, shared->devices + shared->count);
}

std::string_view type_name(cl_device_type type) {
  if (type & CL_DEVICE_TYPE_GPU) return "gpu";
  return type & CL_DEVICE_TYPE_CPU ? "cpu" : "accelerator";
}

struct Wish {
  std::string type, platform;
  std::optional<int64_t> number;
  static Result<Wish> of(const Setting& options) {
    Wish wish;
    TENON_TRY(type, options.text_or("device_type", "any"));
    TENON_TRY(platform, options.text_or("platform", ""));
    TENON_TRY(number, options.integer_or("device", -1, -1, kMostDevices));
    if (type != "any" && type != "cpu" && type != "gpu")
      return error(Code::invalid_argument, "option device_type is ", quote(type), "; cpu, gpu or any is possible");
    wish.type = type, wish.platform = platform;
    if (number >= 0) wish.number = number;
    return wish;
  }
  bool fits(const DeviceInfo& info) const {
    if (number) return info.number == static_cast<uint64_t>(*number);
    return (type == "any" || type == type_name(info.type)) &&
           std::string_view(info.platform).find(platform) != std::string_view::npos;
  }
};

// The reason why this plugin cannot use the device; empty when it can.
std::string_view unusable(const DeviceInfo& info) {
  if (!info.available) return "it is not available";
  if (!info.compiler) return "its driver has no compiler";
  if (!info.little_endian) return "it is not little-endian";
  return {};
}

MemorySpace& memory_of(TargetDescription& target, std::string_view name) {
  for (MemorySpace& memory : target.memories)
    if (memory.name == name) return memory;
  target.memories.push_back({.name = std::string(name)});
  return target.memories.back();
}

}  // namespace

bool DeviceInfo::has(std::string_view extension) const {
  std::string_view rest = extensions;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == extension) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::string_view DeviceInfo::sub_group_language() const {
  constexpr std::string_view kVersion = "OpenCL ";  // CL_DEVICE_VERSION: "OpenCL 3.0 ..."
  const std::string_view of = version;
  if (most_sub_groups == 0 || of.size() <= kVersion.size()) return {};
  const char major = of[kVersion.size()];
  if (major == '2') return has("cl_khr_subgroups") ? "CL2.0" : "";
  return major > '2' && (subgroups_feature || has("cl_khr_subgroups")) ? "CL3.0" : "";
}

bool DeviceInfo::compiles_at_launch() const { return std::string_view(platform) == "Portable Computing Language"; }

Result<std::vector<DeviceInfo>> query_devices(const Api& cl) {
  TENON_TRY(all, platforms(cl));
  std::vector<DeviceInfo> found;
  for (size_t p = 0; p < all.size(); ++p) {
    char name[128] = {};
    TENON_OK(check(cl.clGetPlatformInfo(all[p], CL_PLATFORM_NAME, sizeof name, name, nullptr), "clGetPlatformInfo"));
    TENON_TRY(here, devices_of(cl, all[p]), "platform '", name, "'");
    for (size_t d = 0; d < here.size(); ++d) {
      TENON_TRY(info, query(cl, here[d]), "device ", d, " of platform '", name, "'");
      set_text(info.platform, name);
      info.platform_index = static_cast<uint32_t>(p), info.device_index = static_cast<uint32_t>(d);
      info.number = static_cast<uint32_t>(found.size());
      found.push_back(info);
    }
  }
  if (found.empty()) return error(Code::not_found, "no OpenCL platform of this machine has a device");
  return found;
}

Result<std::vector<DeviceInfo>> devices() {
  static const Result<std::vector<DeviceInfo>> kDevices = survey();
  return kDevices;
}

Result<cl_device_id> device_id(const Api& cl, const DeviceInfo& info) {
  TENON_TRY(all, platforms(cl));
  if (info.platform_index < all.size()) {
    TENON_TRY(here, devices_of(cl, all[info.platform_index]));
    if (info.device_index < here.size()) return here[info.device_index];
  }
  return error(Code::not_found, "device '", info.name, "' of platform '", info.platform, "' is gone");
}

Result<DeviceInfo> device_of(const TargetDescription& target) {
  TENON_TRY(wish, Wish::of(target.options), "target '", target.name, "'");
  TENON_TRY(all, devices());
  std::string seen;
  for (const DeviceInfo& info : all) {
    const std::string_view why = unusable(info);
    if (wish.fits(info) && why.empty()) return info;
    seen += str(seen.empty() ? "" : ", ", "opencl:", info.number, " '", info.name, "' (", type_name(info.type),
                why.empty() ? "" : ", ", why, ")");
  }
  return error(Code::not_found, "no OpenCL device is what target '", target.name, "' wants (device_type ", wish.type,
               wish.platform.empty() ? "" : ", platform ", wish.platform, "); there is ", seen);
}

TargetDescription described(TargetDescription target, const DeviceInfo& info) {
  const auto feature = [&](bool there, std::string_view name) {
    if (there && !target.has_feature(name)) target.features.emplace_back(name);
  };
  feature(info.fp64(), kFp64);
  feature(info.has("cl_khr_fp16"), "fp16");
  feature(info.rounds_divide_and_sqrt(), kRoundedDivide);
  feature(!info.sub_group_language().empty(), kSubGroups);
  feature(!info.sub_group_language().empty() && info.has("cl_khr_subgroup_shuffle"), kSubGroupShuffle);
  target.driver = str(info.platform, ": ", info.name);
  target.clock_hz = uint64_t{info.clock_mhz} * 1000000;
  MemorySpace& global = memory_of(target, "global");
  global.size_bytes = info.global_bytes;
  global.alignment_bytes = std::max<uint64_t>(info.alignment_bits / 8, 1);
  memory_of(target, "local").size_bytes = info.local_bytes;
  for (Engine& engine : target.engines) {
    if (engine.name != "compute") continue;
    engine.lanes = std::max<uint64_t>(uint64_t{info.float_lanes} * info.compute_units, 1);
  }
  return target;
}

}  // namespace tenon::opencl
