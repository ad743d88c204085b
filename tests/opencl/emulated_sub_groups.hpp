// Sub-groups of any size on a device that has none: sub-group functions as macros with local memory and barriers, in
// every program that is built during the lifetime of an EmulatedSubGroups. For PoCL, whose compiler is clang.
//
// The emulation exercises what the specification leaves open: items of a sub-group are not adjacent in the work group,
// the last sub-group is smaller, a maximum ignores NaN, and a non-existent item gives arbitrary values.
#pragma once
#include <string>

#include <tenon/support/str.hpp>

#include "opencl/sub_groups.hpp"
#include "opencl_support.hpp"

namespace tenon::opencl::testing {

inline constexpr std::string_view kEmulation = R"(
#define EMULATED_ITEM ((uint)(get_local_size(0) - 1 - get_local_id(0)))
#define get_max_sub_group_size() min((uint)EMULATED_SIZE, (uint)get_local_size(0))
#define get_num_sub_groups() (((uint)get_local_size(0) + get_max_sub_group_size() - 1) / get_max_sub_group_size())
#define get_sub_group_id() (EMULATED_ITEM / get_max_sub_group_size())
#define get_sub_group_local_id() (EMULATED_ITEM % get_max_sub_group_size())
#define EMULATED_FIRST (get_sub_group_id() * get_max_sub_group_size())
#define get_sub_group_size() min(get_max_sub_group_size(), (uint)get_local_size(0) - EMULATED_FIRST)
#define EMULATED_TYPE(x) __typeof__((x) + 0)
#define EMULATED(x, begin, ...) ({ \
    __local EMULATED_TYPE(x)* emulated_all = (__local EMULATED_TYPE(x)*)emulated; \
    emulated_all[EMULATED_ITEM] = (x); \
    barrier(CLK_LOCAL_MEM_FENCE); \
    EMULATED_TYPE(x) emulated_result = begin; \
    __VA_ARGS__ \
    barrier(CLK_LOCAL_MEM_FENCE); \
    emulated_result; })
#define EMULATED_FOLD(x, begin, fold) \
  EMULATED(x, begin, for (uint emulated_i = 0; emulated_i < get_sub_group_size(); ++emulated_i) { \
    const EMULATED_TYPE(x) other = emulated_all[EMULATED_FIRST + emulated_i]; \
    emulated_result = fold; })
#define EMULATED_SOME emulated_all[EMULATED_FIRST]
#define sub_group_reduce_add(x) EMULATED_FOLD(x, 0, emulated_result + other)
#define sub_group_reduce_max(x) \
  EMULATED_FOLD(x, EMULATED_SOME, \
                other > emulated_result || emulated_result != emulated_result ? other : emulated_result)
#define sub_group_reduce_min(x) \
  EMULATED_FOLD(x, EMULATED_SOME, \
                other < emulated_result || emulated_result != emulated_result ? other : emulated_result)
#define sub_group_shuffle(x, from) \
  EMULATED(x, 123, const uint emulated_from = (from); \
           if (emulated_from < get_sub_group_size()) \
             emulated_result = emulated_all[EMULATED_FIRST + emulated_from];)
#define sub_group_broadcast(x, from) sub_group_shuffle(x, from)
)";

class EmulatedSubGroups {
 public:
  explicit EmulatedSubGroups(int size)
      : was_(g_create = api_for_tests().clCreateProgramWithSource), fault_(&Api::clCreateProgramWithSource, &create) {
    g_size = size, g_programs = 0;
  }
  // Number of programs built so far that use sub-groups.
  int programs() const { return g_programs; }

 private:
  static std::string emulating(std::string source) {
    constexpr std::string_view kKernel = "__kernel", kBegin = ") {\n", kMemory = "  __local ulong emulated[1024];\n";
    for (size_t at = source.find(kKernel); at != std::string::npos; at = source.find(kKernel, at + 1))
      source.insert(source.find(kBegin, at) + kBegin.size(), kMemory);
    return str("#define EMULATED_SIZE ", g_size, "\n", kEmulation, source);
  }
  static cl_program CL_API_CALL create(cl_context context, cl_uint, const char** texts, const size_t* bytes,
                                       cl_int* code) {
    std::string source(texts[0], bytes[0]);
    if (source.find(kSubGroupHead) != std::string::npos) {
      ++g_programs;
      source = emulating(std::move(source));
    }
    const char* text = source.data();
    const size_t length = source.size();
    return g_create(context, 1, &text, &length, code);
  }

  static inline int g_size = 0, g_programs = 0;
  using Create = decltype(Api::clCreateProgramWithSource);
  static inline Create g_create = nullptr;
  const Create was_;
  const Fault<Create> fault_;
};

}  // namespace tenon::opencl::testing
