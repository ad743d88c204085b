#include "opencl/group_form.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>

namespace tenon::opencl {
namespace {

using snippet::Instruction;
using snippet::LinearKernel;

// Items that a GPU runs in step, at the least on those of today: fewer would leave some of them without work anyway.
constexpr int64_t kInStep = 32;

// The port that each pointer register walks.
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

}  // namespace

int items_of_chunk(const snippet::Body& body, int lanes, int64_t group) {
  if (group == 1 || body.rank() == 0) return 1;
  const auto most = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(group)));
  const Expr& row = body.dims.back().extent;
  if (!row.is_constant()) return static_cast<int>(most);
  const int64_t pieces = std::max<int64_t>((row.constant() + lanes - 1) / lanes, 1);
  const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min(pieces, most))));
  // Those that fold their lanes are a work group of their own.
  const int64_t least = body.dims.back().reduced ? std::min(kInStep, most) : 1;
  return static_cast<int>(std::clamp(wanted, least, most));
}

LaneExchange exchange_of(const LinearKernel& kernel) {
  static const Name kFoldLanes("FoldLanes"), kStore("Store");
  const auto ports = ports_of(kernel);
  std::set<int> written, read;
  LaneExchange made;
  for (const Instruction& instruction : kernel.body) {
    made.folds |= instruction.op == kFoldLanes;
    if (!instruction.memory) continue;
    const auto port = ports.find(instruction.memory->base);
    if (port != ports.end()) (instruction.op == kStore ? written : read).insert(port->second);
  }
  made.memory = std::any_of(written.begin(), written.end(), [&](int port) { return read.contains(port); });
  return made;
}

}  // namespace tenon::opencl
