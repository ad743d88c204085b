#include <tenon/snippet/linear/linear.hpp>
#include <tenon/snippet/linear/linear_names.hpp>
#include <tenon/snippet/linear/loop_moves_internal.hpp>

#include <algorithm>
#include <utility>

namespace tenon::snippet {

ParamId LinearKernel::add_param(const Param& param) {
  const auto found = std::find(params.begin(), params.end(), param);
  if (found != params.end()) return static_cast<ParamId>(found - params.begin());
  params.push_back(param);
  return static_cast<ParamId>(params.size()) - 1;
}

size_t end_of_region(std::span<const Instruction> body, size_t begin) {
  int open = 0;
  for (size_t i = begin;; ++i) {
    open += begins_region(body[i].op) ? 1 : ends_region(body[i].op) ? -1 : 0;
    if (open == 0) return i;
  }
}

bool when_holds(const Instruction& when) {
  const Attribute* const holds = when.attributes.find(kHolds);
  return holds == nullptr || *holds->get_if<int64_t>() != 0;
}

void append_moves(std::vector<Instruction>& body, const Loop& loop, ParamId Loop::Shift::*which, int label) {
  for (const Loop::Shift& shift : loop.shifts) {
    if (shift.*which < 0) continue;
    body.push_back(
        {.op = kAddParameter, .in = {shift.pointer}, .out = {shift.pointer}, .number = shift.*which, .label = label});
  }
}

void insert_shifts(LinearKernel& kernel) {
  std::vector<Instruction>& body = kernel.body;
  const auto loop_of = [&](const Instruction& end) -> const Loop& {
    return kernel.loops[static_cast<size_t>(end.number)];
  };
  size_t more = 0;
  for (const Instruction& one : body) {
    if (one.op != kLoopEnd) continue;
    for (const Loop::Shift& shift : loop_of(one).shifts) more += (shift.each >= 0) + (shift.rewind >= 0);
  }
  size_t from = body.size(), to = from + more;
  body.reserve(to), body.resize(to);
  std::vector<Instruction> moves;
  const auto put_moves = [&](const Loop& loop, ParamId Loop::Shift::*which, int label) {
    append_moves(moves, loop, which, label);
    for (; !moves.empty(); moves.pop_back()) body[--to] = std::move(moves.back());
  };
  // Backwards, so that each instruction moves once.
  while (from < to) {
    Instruction& one = body[--from];
    const bool ends = one.op == kLoopEnd;
    const int label = one.label;
    if (ends) put_moves(loop_of(one), &Loop::Shift::rewind, label);
    if (--to != from) body[to] = std::move(one);
    if (ends) put_moves(loop_of(body[to]), &Loop::Shift::each, label);
  }
  for (Loop& loop : kernel.loops) loop.shifts.clear();
}

}  // namespace tenon::snippet
