// All prefetching for kernels without blocks: which data are near already, and which lines are prefetched ahead of
// loops.
#include <algorithm>

#include "x86/passes/internal.hpp"

namespace tenon::x86 {

std::set<RegisterId> standing_pointers(const LinearKernel& kernel) {
  static const Name kBegin("LoopBegin"), kTail("TailBegin"), kEnd("LoopEnd"), kTailEnd("TailEnd"),
      kParameter("Parameter");
  std::set<RegisterId> standing;
  for (const Instruction& one : kernel.body)
    if (one.op == kParameter) standing.insert(one.out[0]);
  for (const Loop& loop : kernel.loops)
    if (!kernel.is_inside_row(loop))
      for (const Loop::Shift& shift : loop.shifts) standing.erase(shift.pointer);
  if (kernel.skewed) return standing;
  std::vector<bool> open, moves_rows(kernel.loops.size());
  for (size_t i = 0; i < kernel.loops.size(); ++i)
    moves_rows[i] = !kernel.loops[i].shifts.empty() && !kernel.is_inside_row(kernel.loops[i]);
  for (const Instruction& one : kernel.body) {
    if (one.op == kBegin || one.op == kTail) open.push_back(moves_rows[static_cast<size_t>(one.number)]);
    if (one.op == kEnd || one.op == kTailEnd) open.pop_back();
    if (one.memory && std::ranges::find(open, true) == open.end()) standing.erase(one.memory->base);
  }
  return standing;
}

namespace {

// Adds pointers that are a step from one of `pointers`.
void add_steps_from(const LinearKernel& kernel, std::set<RegisterId>& pointers) {
  static const Name kAdd("AddParameter");
  for (const Instruction& one : kernel.body)
    if (one.op == kAdd && pointers.contains(one.in[0])) pointers.insert(one.out[0]);
}

// Of the pointers to several rows of one tensor, all but the first and the furthest: their lines were prefetched for
// the furthest one.
std::set<RegisterId> nearer_rows(const LinearKernel& kernel) {
  static const Name kAdd("AddParameter");
  std::set<RegisterId> behind, nearer;
  for (const Instruction& one : kernel.body) {
    if (one.op != kAdd) continue;
    if (behind.contains(one.in[0])) nearer.insert(one.in[0]);
    behind.insert(one.out[0]);
  }
  return nearer;
}

}  // namespace

void fetch_ahead(LinearKernel& kernel, const PassOptions& options) {
  const bool fetches = options.prefetch_writes.lines > 0 || options.prefetch_reads.lines > 0;
  if (!fetches && options.next_row == NextRow::none && options.streams.each <= 1) return;
  auto [near, standing] = fetch_next_rows(kernel, options.next_row);
  if (options.next_row_lines) near.clear();
  near.merge(standing);
  fetch_held_rows(kernel, options.prefetch_reads, options.prefetch_writes);
  // Rows with merged sweeps that are not skewed may exceed the caches: nothing of them counts as near.
  if (kernel.skewed || !kernel.merged) near.merge(standing_pointers(kernel));
  static const Name kStaged("StageRowsBegin");
  for (const Instruction& one : kernel.body)
    if (one.op == kStaged) near.insert(one.out[0]);
  if (options.streams.each > 1 && options.row_begins != RowBegins::turned) split_streams(kernel, options.streams);
  add_steps_from(kernel, near);
  if (kernel.skewed) near.merge(nearer_rows(kernel));
  if (fetches) prefetch_lines(kernel, options.prefetch_writes, options.prefetch_reads, near);
}

}  // namespace tenon::x86
