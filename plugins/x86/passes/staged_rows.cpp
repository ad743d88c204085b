// Staging of rows that are reduced, begin anywhere and are back to back in the output. Each of them would store partial
// lines. Results are collected row after row in a staging buffer, from which whole lines are stored non-temporally,
// wherever these begin and end.
//
//   Q = staging buffer, as far into a line as the output begins          StageRowsBegin
//   for rows, several at once, then single ones
//     whole lines are stored, the remainder moves to the beginning       StageRows
//     sweeps, which store to Q
//   the remaining lines, the last one as far as it is filled             StageRowsRest
#include <algorithm>
#include <vector>

#include "x86/names.hpp"
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

class RowStager {
 public:
  // Bytes that are collected before they are stored. Loading a whole line directly after it was written in parts would
  // stall, because the parts are still in the store buffer.
  static constexpr int64_t kWaiting = 1024;

  RowStager(LinearKernel& kernel, const StagedRows& rows)
      : kernel_(kernel), ports_(ports_of(kernel)), output_(rows.output), row_dims_(rows.dims) {}

  bool run() {
    if (!find_loops()) return false;
    stage();
    return true;
  }

 private:
  bool is_output(RegisterId pointer) const { return pointer >= 0 && ports_[static_cast<size_t>(pointer)] == output_; }

  // Finds the loops over rows, none of which contains another, and the only pointer that they advance along the output.
  bool find_loops() {
    int open = 0;
    size_t outer = 0;
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      const Instruction& one = kernel_.body[i];
      if (one.op == kLoopEnd || one.op == kTailEnd) --open;
      const bool accesses = one.memory && is_output(one.memory->base);
      if (open == 0 && accesses) return false;
      if (open == 0 && !one.out.empty() && is_output(one.out[0])) {
        if (pointer_ >= 0) return false;
        pointer_ = one.out[0], begin_ = i + 1;
      }
      if (accesses && writes_memory(one.op)) {
        element_ = one.memory->element, label_ = one.label;
        if (loops_.empty() || loops_.back() != outer) loops_.push_back(outer);
      }
      if (one.op == kLoopBegin || one.op == kTailBegin)
        if (open++ == 0) outer = i;
    }
    return pointer_ >= 0 && !loops_.empty() && std::ranges::all_of(loops_, [&](size_t at) { return moves_rows(at); });
  }

  bool moves_rows(size_t at) const {
    const Loop& loop = kernel_.loops[static_cast<size_t>(kernel_.body[at].number)];
    const auto of_output = [&](const Loop::Shift& shift) { return is_output(shift.pointer); };
    const auto moved = std::ranges::find_if(loop.shifts, of_output);
    return loop.kind == Loop::Kind::scalar && std::ranges::count_if(loop.shifts, of_output) == 1 &&
           moved->pointer == pointer_ && moved->each >= 0 && moved->rewind < 0;
  }

  void stage() {
    constexpr int64_t kStageState = 64;
    int64_t rows = 1;  // processed at once
    for (const size_t at : loops_)
      rows = std::max(rows, kernel_.loops[static_cast<size_t>(kernel_.body[at].number)].increment);
    const int port = static_cast<int>(static_cast<size_t>(output_) + 1 + kernel_.scratch.size());
    kernel_.scratch.push_back({element_, row_dims_, rows, kStageState + kWaiting + 2 * kLineBytes});
    const snippet::ParamId state = kernel_.add_param({.kind = Param::Kind::pointer, .port = port});
    const RegisterId staged = kernel_.add_general();
    const auto op = [&](const char* name, RegisterId pointer, snippet::RegisterIds out) {
      return Instruction{.op = name,
                         .attributes = {{"state", int64_t{state}}, {"waiting", kWaiting}},
                         .out = std::move(out),
                         .memory = Memory{.element = element_, .base = pointer},
                         .label = label_};
    };
    for (snippet::Loop& loop : kernel_.loops)
      for (Loop::Shift& shift : loop.shifts)
        if (shift.pointer == pointer_) shift.pointer = staged;
    std::vector<Instruction> body;
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      if (i == begin_) body.push_back(op("StageRowsBegin", pointer_, {staged}));
      Instruction& one = body.emplace_back(std::move(kernel_.body[i]));
      if (i < begin_) continue;
      for (snippet::RegisterIds* ids : {&one.in, &one.out}) std::ranges::replace(*ids, pointer_, staged);
      if (one.memory && one.memory->base == pointer_) one.memory->base = staged;
      if (std::ranges::find(loops_, i) != loops_.end()) body.push_back(op("StageRows", staged, {staged}));
    }
    body.push_back(op("StageRowsRest", staged, {}));
    kernel_.body = std::move(body);
  }

  LinearKernel& kernel_;
  const std::vector<int> ports_;
  const int output_;
  const uint32_t row_dims_;
  RegisterId pointer_ = -1;
  size_t begin_ = 0;           // position at which the pointer is known
  std::vector<size_t> loops_;  // positions of their beginnings
  ElementType element_;
  int label_ = -1;
};

}  // namespace

bool stage_rows(LinearKernel& kernel, const StagedRows& rows) { return RowStager(kernel, rows).run(); }

}  // namespace tenon::x86
