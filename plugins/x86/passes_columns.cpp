// Columns beyond the caches. A tile goes down whole columns, with some lines of each row, which the machine's own
// prefetchers follow badly: rows are fetched some iterations ahead.
#include <algorithm>
#include <map>

#include "x86/passes_internal.hpp"

namespace tenon::x86 {
namespace {

using codegen::Lanes;
using snippet::Instruction;
using snippet::LinearKernel;
using snippet::Loop;
using snippet::LoopId;
using snippet::Param;
using snippet::ParamId;
using snippet::RegisterId;

// Of one loop; each takes a register.
constexpr size_t kMostPointers = 4;

const Name kBegin("LoopBegin"), kEnd("LoopEnd");

// An innermost loop over rows, inside of the vector loop of a tile.
struct RowLoop {
  LoopId tile = -1, rows = -1;
  size_t begin = 0, end = 0;  // instructions
};

std::vector<RowLoop> row_loops(const LinearKernel& kernel) {
  std::vector<RowLoop> found;
  std::vector<LoopId> open;
  size_t begin = 0;  // of the last loop
  const auto is_vector = [&](LoopId id) { return kernel.loops[static_cast<size_t>(id)].kind == Loop::Kind::vector; };
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const auto id = static_cast<LoopId>(kernel.body[i].number);
    if (kernel.body[i].op == kBegin) begin = i, open.push_back(id);
    if (kernel.body[i].op != kEnd) continue;
    open.pop_back();
    const bool innermost = kernel.body[begin].number == id;
    const auto tile = std::find_if(open.rbegin(), open.rend(), is_vector);
    if (innermost && !is_vector(id) && tile != open.rend()) found.push_back({*tile, id, begin, i});
  }
  return found;
}

// The instructions that fetch what one loop over rows will touch.
struct Fetches {
  std::vector<Instruction> before, inside;
};

class RowFetcher {
 public:
  RowFetcher(LinearKernel& kernel, int rows) : kernel_(kernel), ports_(ports_of(kernel)), rows_(rows) {}

  Fetches fetches_of(const RowLoop& loop) {
    Fetches made;
    const Stretches stretches = stretches_of(loop);
    for (const Stretches::Touched& touched : stretches.touched()) {
      if (made.before.size() == kMostPointers) break;
      const RegisterId ahead = kernel_.add_general();
      const ParamId distance = kernel_.add_param({.kind = Param::Kind::ahead,
                                                  .port = ports_[static_cast<size_t>(touched.memory.base)],
                                                  .loop = loop.tile,
                                                  .inner = loop.rows,
                                                  .rows = rows_});
      made.before.push_back({.op = "AddParameter", .in = {touched.memory.base}, .out = {ahead}, .number = distance});
      Stretches::Touched there = touched;
      there.memory.base = ahead;
      const Name op = touched.written ? "PrefetchWrite" : "PrefetchRead";
      there.write(op, 0, kernel_.body[loop.end].label, made.inside);
      of(loop.rows).shifts.push_back({.pointer = ahead, .each = step_of(loop, touched.memory.base)});
    }
    return made;
  }

 private:
  Loop& of(LoopId id) { return kernel_.loops[static_cast<size_t>(id)]; }

  // The param by which the loop moves a pointer; -1: it does not.
  ParamId step_of(const RowLoop& loop, RegisterId pointer) {
    for (const Loop::Shift& shift : of(loop.rows).shifts)
      if (shift.pointer == pointer) return shift.each;
    return -1;
  }

  Stretches stretches_of(const RowLoop& loop) {
    Stretches stretches;
    for (size_t i = loop.begin + 1; i < loop.end; ++i) {
      const Instruction& one = kernel_.body[i];
      if (!reads_memory(one) && one.op != "Store") continue;
      if (one.touched != Lanes::full || one.memory->index != of(loop.tile).counter) continue;
      const RegisterId base = one.memory->base;
      if (ports_[static_cast<size_t>(base)] >= 0 && step_of(loop, base) >= 0) stretches.add(kernel_, one);
    }
    return stretches;
  }

  LinearKernel& kernel_;
  const std::vector<int> ports_;
  const int rows_;
};

}  // namespace

void prefetch_rows(LinearKernel& kernel, int rows) {
  RowFetcher fetcher(kernel, rows);
  std::map<size_t, std::vector<Instruction>> made;  // by the instruction before which they stand
  for (const RowLoop& loop : row_loops(kernel)) {
    Fetches fetches = fetcher.fetches_of(loop);
    made[loop.begin] = std::move(fetches.before);
    made[loop.end] = std::move(fetches.inside);
  }
  std::vector<Instruction> body;
  body.reserve(kernel.body.size() + 8 * made.size());
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    if (const auto here = made.find(i); here != made.end())
      body.insert(body.end(), here->second.begin(), here->second.end());
    body.push_back(std::move(kernel.body[i]));
  }
  kernel.body = std::move(body);
}

}  // namespace tenon::x86
