#include "opencl/group_form.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>

namespace tenon::opencl {
namespace {

using snippet::Instruction;
using snippet::LinearKernel;

// The least number of items that GPUs execute in lockstep: with fewer, some would be idle anyway.
constexpr int64_t kInStep = 32;

// The port that each pointer register points into.
std::unordered_map<snippet::RegisterId, int> ports_of(const LinearKernel& kernel) {
  static const Name kParameter("Parameter"), kAddParameter("AddParameter"), kCopy("Copy");
  std::unordered_map<snippet::RegisterId, int> ports;
  for (const Instruction& instruction : kernel.body) {
    if (instruction.op == kParameter) {
      const snippet::Param& param = kernel.params[static_cast<size_t>(instruction.number)];
      if (param.kind == snippet::Param::Kind::pointer) ports[instruction.out[0]] = param.port;
    } else if (instruction.op == kAddParameter || instruction.op == kCopy) {
      if (const auto from = ports.find(instruction.in[0]); from != ports.end())
        ports[instruction.out[0]] = from->second;
    }
  }
  return ports;
}

// Counters of the innermost dim that begin at 0 and advance by whole steps of all lanes.
std::set<snippet::RegisterId> lane_counters(const LinearKernel& kernel) {
  static const Name kZero("Zero");
  std::set<snippet::RegisterId> counters;
  for (const snippet::Loop& loop : kernel.loops)
    if (loop.kind == snippet::Loop::Kind::vector) counters.insert(loop.counter);
  const auto goes_otherwise = [&](const snippet::Loop& loop) {
    return loop.kind == snippet::Loop::Kind::scalar || loop.increment % kernel.lanes != 0;
  };
  for (const snippet::Loop& loop : kernel.loops)
    if (loop.kind != snippet::Loop::Kind::tail && goes_otherwise(loop)) counters.erase(loop.counter);
  for (const Instruction& instruction : kernel.body)
    if (instruction.op != kZero)
      for (const snippet::RegisterId out : instruction.out) counters.erase(out);
  return counters;
}

// The accesses to the elements of a port.
struct Touch {
  bool written = false, read = false;
  bool by_others = false;              // by items with other lanes, or to an element shared by all lanes
  std::set<snippet::RegisterId> from;  // counters from which lanes are counted
  // An element whose lane is counted from the same counter belongs to one item, in each loop.
  bool exchanges() const { return written && read && (by_others || from.size() > 1); }
};

}  // namespace

int items_of_chunk(const snippet::Body& body, int lanes, int64_t group) {
  if (group == 1 || body.rank() == 0) return 1;
  const auto most = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(group)));
  const Expr& row = body.dims.back().extent;
  if (!row.is_constant()) return static_cast<int>(most);
  const int64_t pieces = std::max<int64_t>((row.constant() + lanes - 1) / lanes, 1);
  const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min(pieces, most))));
  // Items that reduce their lanes form a work group of their own.
  const int64_t least = body.dims.back().reduced ? std::min(kInStep, most) : 1;
  return static_cast<int>(std::clamp(wanted, least, most));
}

LaneExchange exchange_of(const LinearKernel& kernel) {
  static const Name kFoldLanes("FoldLanes"), kStore("Store");
  static const Name kLoad("Load");
  const auto ports = ports_of(kernel);
  const auto counters = lane_counters(kernel);
  std::unordered_map<int, Touch> touches;
  LaneExchange made;
  for (const Instruction& instruction : kernel.body) {
    made.folds |= instruction.op == kFoldLanes;
    if (!instruction.memory) continue;
    const snippet::Memory& memory = *instruction.memory;
    const auto port = ports.find(memory.base);
    if (port == ports.end()) continue;
    Touch& touch = touches[port->second];
    (instruction.op == kStore ? touch.written : touch.read) = true;
    touch.from.insert(memory.base);
    const bool has_lanes = instruction.op == kLoad || instruction.op == kStore;
    const int64_t step_bytes = int64_t{kernel.lanes} * memory.element.bits() / 8;
    touch.by_others |= !has_lanes || instruction.touched == codegen::Lanes::one || !counters.contains(memory.index) ||
                       memory.displacement_bytes % step_bytes != 0;
  }
  made.memory = std::ranges::any_of(touches, [](const auto& touch) { return touch.second.exchanges(); });
  return made;
}

}  // namespace tenon::opencl
