// Loads and stores, with conversion between elements in memory and lanes. They access exactly the bytes of their
// elements, whatever the number of lanes.
#include "opencl/emitters/memory.hpp"

#include <tenon/support/str.hpp>

#include "opencl/emitters/emitters.hpp"
#include "opencl/emitters/pattern.hpp"

namespace tenon::opencl {

using namespace codegen;

namespace {
std::string packed_name(ElementType element, int lanes) { return str(scalar_name(element), lanes); }
}  // namespace

Result<std::string> widened(SourceContext& c, const std::string& packed, ElementType element, int lanes) {
  const ElementType lane = lane_type(element);
  if (element == kF16) return expand(c, "@from_half($0)", {lane, lanes, std::span(&packed, 1)});
  if (element == kBF16) return expand(c, "@from_bfloat($0)", {lane, lanes, std::span(&packed, 1)});
  if (element.is_bool()) return str("convert_int", lanes, "(", packed, ") != (int", lanes, ")0");
  return element == lane ? packed : str("convert_", lanes_name(lane, lanes), "(", packed, ")");
}
Result<std::string> narrowed(SourceContext& c, const std::string& value, ElementType element, int lanes) {
  const ElementType lane = lane_type(element);
  if (element == kF16) return expand(c, "@to_half($0)", {lane, lanes, std::span(&value, 1)});
  if (element == kBF16) return expand(c, "@to_bfloat($0)", {lane, lanes, std::span(&value, 1)});
  if (element.is_bool()) return str("convert_uchar", lanes, "(", value, " & 1)");
  return element == lane ? value : str("convert_", packed_name(element, lanes), "(", value, ")");
}

std::string near_load(ElementType element, int lanes, std::string_view at) {
  return str("TENON_LOAD(", scalar_name(element), ", ", lanes, ", ", at, ")");
}
std::string near_store(ElementType element, int lanes, std::string_view at, std::string_view value) {
  return str("TENON_STORE(", scalar_name(element), ", ", lanes, ", ", at, ", ", value, ");");
}

namespace {

constexpr std::string_view kNear =
    "#define TENON_NEAR(element, vector) struct __attribute__((packed, aligned(sizeof(element)))) { vector v; }\n";

constexpr std::string_view kNearAnywhere =
    R"(#define TENON_LOAD(element, lanes, from) (((__global const TENON_NEAR(element, element##lanes)*)(from))->v)
#define TENON_STORE(element, lanes, to, x) ((__global TENON_NEAR(element, element##lanes)*)(to))->v = x
)";

// Elements are loaded one by one: LLVM merges two loads that differ only in what they state about the alignment, and
// the merged load states the least.
constexpr std::string_view kNearByPlace =
    R"(#define TENON_WHOLE(vector, at) (((size_t)(at) & (sizeof(vector) - 1)) == 0)
#define TENON_EACH2(from) (from)[0], (from)[1]
#define TENON_EACH4(from) TENON_EACH2(from), TENON_EACH2((from) + 2)
#define TENON_EACH8(from) TENON_EACH4(from), TENON_EACH4((from) + 4)
#define TENON_EACH16(from) TENON_EACH8(from), TENON_EACH8((from) + 8)
#define TENON_LOAD(element, lanes, from) (TENON_WHOLE(element##lanes, from) ? \
  *(__global const element##lanes*)(from) : (element##lanes)(TENON_EACH##lanes(from)))
#define TENON_STORE(element, lanes, to, x) do { \
  if (TENON_WHOLE(element##lanes, to)) *(__global element##lanes*)(to) = x; \
  else ((__global TENON_NEAR(element, element##lanes)*)(to))->v = x; \
} while (0)
)";

}  // namespace

std::string near_head(bool of_groups) { return str(kNear, of_groups ? kNearByPlace : kNearAnywhere); }

namespace {

Result<const EmitAddress*> memory_of(const Emission& e, ElementType lane) {
  if (!e.memory) return error(Code::internal, e.op, " of ", lane, " without memory");
  if (lane_type(e.memory->element) == lane && e.memory->element.byte_addressable()) return &*e.memory;
  return error(Code::internal, e.op, " of ", e.memory->element, " in memory with lanes of ", lane);
}

// A pointer to the elements in memory; `in_lanes`: to those of this item's lanes.
std::string address(SourceContext& c, const EmitAddress& memory, bool writes, bool in_lanes = true) {
  std::string offset;
  if (memory.index) offset = str(" + ", c.counter(*memory.index), " * ", memory.element.bits() / 8);
  if (in_lanes) offset += c.lane_offset(memory.element.bits() / 8);
  if (memory.displacement_bytes != 0) offset += str(" + ", memory.displacement_bytes);
  return str("(__global ", writes ? "" : "const ", scalar_name(memory.element), "*)(", c.pointer(memory.base), offset,
             ")");
}

// The elements below a count; the other lanes are 0.
std::string partial_load(SourceContext& c, ElementType element, int lanes) {
  const std::string type = packed_name(element, lanes), name = str("tenon_load_", type);
  c.define(str(type, " ", name, "(__global const ", scalar_name(element), "* from, long count) {\n  ",
               scalar_name(element), " some[", lanes, "];\n  for (int i = 0; i < ", lanes,
               "; ++i) some[i] = i < count ? from[i] : 0;\n  return vload", lanes, "(0, some);\n}\n"));
  return name;
}

// Stores element by element up to the count. Not under a condition in a loop over all lanes: LLVM 14 and 15, which PoCL
// uses, make one masked store of that, and where the value was narrowed from a partial load it stores the first bytes
// of what was loaded (x86 with AVX-512; OpenclTest.NarrowedTailsAreStored).
std::string partial_store(SourceContext& c, ElementType element, int lanes) {
  const std::string type = packed_name(element, lanes), name = str("tenon_store_", type);
  c.define(str("void ", name, "(", type, " value, __global ", scalar_name(element), "* to, long count) {\n  ",
               scalar_name(element), " some[", lanes, "];\n  vstore", lanes,
               "(value, 0, some);\n  const int some_count = ", "(int)min(count, ", lanes,
               "l);\n  for (int i = 0; i < some_count; ++i) to[i] = some[i];\n}\n"));
  return name;
}

Result<void> emit_load(SourceContext& c, const Emission& e) {
  TENON_TRY(memory, memory_of(e, e.out[0].element));
  const ElementType element = memory->element;
  const std::string from = address(c, *memory, false);
  std::string packed = near_load(element, c.lanes(), from);
  if (e.touched == Lanes::partial) {
    const std::string count = c.own_count(c.counter(e.in[1].at));
    const std::string some = str(partial_load(c, element, c.lanes()), "(", from, ", ", count, ")");
    packed = c.items() == 1 ? some : str("(", count, " >= ", c.lanes(), " ? ", packed, " : ", some, ")");
  }
  if (e.touched == Lanes::one)
    packed = str(partial_load(c, element, c.lanes()), "(", from, ", ", c.own_count("1"), ")");
  TENON_TRY(value, widened(c, packed, element, c.lanes()));
  c.assign(e.out[0], value);
  return {};
}

Result<void> emit_broadcast_load(SourceContext& c, const Emission& e) {
  TENON_TRY(memory, memory_of(e, e.out[0].element));
  const std::string packed =
      str("(", packed_name(memory->element, c.lanes()), ")(*(", address(c, *memory, false, false), "))");
  TENON_TRY(value, widened(c, packed, memory->element, c.lanes()));
  c.assign(e.out[0], value);
  return {};
}

Result<void> emit_store(SourceContext& c, const Emission& e) {
  TENON_TRY(memory, memory_of(e, e.in[0].element));
  const ElementType element = memory->element;
  TENON_TRY(packed, narrowed(c, c.name(e.in[0]), element, c.lanes()));
  const std::string to = address(c, *memory, true);
  if (e.touched == Lanes::full) {
    c.line(near_store(element, c.lanes(), to, packed));
    return {};
  }
  const bool one = e.touched == Lanes::one;
  const std::string count = c.own_count(one ? "1" : c.counter(e.in[2].at));
  // The element may have been read by other items before this store, and be read by them after it.
  if (one) c.memory_barrier();
  const std::string some = str(partial_store(c, element, c.lanes()), "(", packed, ", ", to, ", ", count, ");");
  if (c.items() > 1 && !one) {
    // When several items share a tail, most of them have all their lanes.
    c.line(str("if (", count, " >= ", c.lanes(), ") ", near_store(element, c.lanes(), to, packed)));
    c.line(str("else ", some));
  } else {
    c.line(some);
  }
  if (one) c.memory_barrier();
  return {};
}

}  // namespace

// The operands of a tail, a mask and a count, also have types of the row: i64 lanes do not require f64.
Result<void> add_memory_rows(JitterTable& table) {
  TENON_OK(add_row(table, {.op = "Load", .types = kAnyLanes, .make = function_emitter<emit_load>}));
  TENON_OK(add_row(table, {.op = "BroadcastLoad", .types = kAnyLanes, .make = function_emitter<emit_broadcast_load>}));
  return add_row(table, {.op = "Store", .types = kAnyLanes, .make = function_emitter<emit_store>});
}

}  // namespace tenon::opencl
