#include <tenon/snippet/linear/linear.hpp>
#include <tenon/snippet/linear/linear_names.hpp>

#include <algorithm>
#include <utility>

namespace tenon::snippet {

ParamId LinearKernel::add_param(const Param& param) {
  const auto found = std::find(params.begin(), params.end(), param);
  if (found != params.end()) return static_cast<ParamId>(found - params.begin());
  params.push_back(param);
  return static_cast<ParamId>(params.size()) - 1;
}

void append_moves(std::vector<Instruction>& body, const Loop& loop, ParamId Loop::Shift::*which, int label) {
  for (const Loop::Shift& shift : loop.shifts) {
    if (shift.*which < 0) continue;
    body.push_back(
        {.op = kAddParameter, .in = {shift.pointer}, .out = {shift.pointer}, .number = shift.*which, .label = label});
  }
}

void insert_shifts(LinearKernel& kernel) {
  const auto moves = [](const Loop& loop) { return !loop.shifts.empty(); };
  if (std::none_of(kernel.loops.begin(), kernel.loops.end(), moves)) return;
  std::vector<Instruction> body;
  body.reserve(kernel.body.size() + kernel.loops.size() * 4);
  for (Instruction& instruction : kernel.body) {
    if (instruction.op != kLoopEnd) {
      body.push_back(std::move(instruction));
      continue;
    }
    Loop& loop = kernel.loops[static_cast<size_t>(instruction.number)];
    const int label = instruction.label;
    append_moves(body, loop, &Loop::Shift::each, label);
    body.push_back(std::move(instruction));
    append_moves(body, loop, &Loop::Shift::rewind, label);
    loop.shifts.clear();
  }
  kernel.body = std::move(body);
}

}  // namespace tenon::snippet
