// Joins functions of several vectors. A function is a dependency chain, and the copies of a loop's body compute it for
// several vectors. If they run one after the other, the out-of-order window covers only three or four chains, most of
// which wait; if their instructions are interleaved, there is work in all of them (docs/performance/functions.md).
// They become one instruction of the kernel, so that each vector has registers of its own:
//
//   %3:f32 = Erf %1             %3:f32, %4:f32 = ErfInTurn2 %1, %2
//   %4:f32 = Erf %2
//
// They stay separate where the emitter table has no row for several. Where registers hold no more than what one
// vector's functions need, those that need no more for several, because what they share is a check, are still joined.
#include <algorithm>
#include <utility>

#include "x86/emitters/rows.hpp"
#include "x86/forms/forms.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::Instruction;
using snippet::LinearKernel;
using snippet::RegisterId;
using snippet::RegisterIds;

bool meet(const RegisterIds& a, const RegisterIds& b) {
  return std::ranges::any_of(a, [&](RegisterId id) { return std::ranges::find(b, id) != b.end(); });
}

bool is_function(const Instruction& one) {
  return !one.memory && !one.in.empty() && one.out.size() == 1 && !meet(one.in, one.out);
}

bool are_alike(const LinearKernel& kernel, const Instruction& a, const Instruction& b) {
  const auto element = [&](RegisterId id) { return kernel.registers[static_cast<size_t>(id)].element; };
  return a.op == b.op && a.label == b.label && a.attributes == b.attributes && is_function(a) && is_function(b) &&
         std::ranges::equal(a.in, b.in, {}, element, element) && element(a.out[0]) == element(b.out[0]);
}

// Whether the `vectors` instructions from `first` on may be joined: none writes what another one reads or writes.
bool may_join(const LinearKernel& kernel, size_t first, size_t vectors) {
  if (first + vectors > kernel.body.size()) return false;
  for (size_t i = first + 1; i < first + vectors; ++i) {
    const Instruction& next = kernel.body[i];
    if (!are_alike(kernel, kernel.body[first], next)) return false;
    for (size_t before = first; before < i; ++before) {
      const Instruction& other = kernel.body[before];
      if (meet(other.in, next.out) || meet(other.out, next.out) || meet(other.out, next.in)) return false;
    }
  }
  return true;
}

// The instructions from `first` on, to be joined into one of `op`.
struct Join {
  size_t first, vectors;
  Name op;
};

LinearKernel joined(LinearKernel kernel, const std::vector<Join>& joins) {
  std::vector<Instruction>& body = kernel.body;
  size_t from = 0, to = 0;
  const auto keep_until = [&](size_t end) {
    for (; from < end; ++from, ++to)
      if (from != to) body[to] = std::move(body[from]);
  };
  for (const Join& join : joins) {
    keep_until(join.first + 1);
    Instruction& all = body[to - 1];
    all.op = join.op;
    for (; from < join.first + join.vectors; ++from) {
      for (const RegisterId id : body[from].in) all.in.push_back(id);
      all.out.push_back(body[from].out[0]);
    }
  }
  keep_until(body.size());
  body.resize(to);
  return kernel;
}

// Moves that insert_shifts() adds.
size_t moves_of(const LinearKernel& kernel) {
  size_t moves = 0;
  for (const Instruction& one : kernel.body) {
    if (one.op != kLoopEnd) continue;
    for (const snippet::Loop::Shift& shift : kernel.loops[static_cast<size_t>(one.number)].shifts)
      moves += (shift.each >= 0) + (shift.rewind >= 0);
  }
  return moves;
}

}  // namespace

FormMaker::RowsInTurn FormMaker::rows_in_turn(const codegen::JitterTable& table) {
  RowsInTurn made;
  const std::vector<const codegen::JitterRow*> all = table.rows();
  for (const codegen::JitterRow* row : all) {
    if (made.contains(row->op)) continue;
    InTurn rows{in_turn(row->op, 2), in_turn(row->op, 4)};
    if (!table.has_rows_of(rows.two)) continue;
    const auto of_two = std::ranges::find(all, rows.two, &codegen::JitterRow::op);
    rows.shares_scratch = (*of_two)->scratch.vectors <= row->scratch.vectors;
    made.emplace(row->op, rows);
  }
  return made;
}

FormMaker::Lowered FormMaker::functions_in_turn(LinearKernel kernel) const {
  std::vector<std::pair<size_t, InTurn>> functions;  // those with rows for several vectors
  for (size_t i = 0; i < kernel.body.size(); ++i)
    if (const auto rows = in_turn_.find(kernel.body[i].op); rows != in_turn_.end())
      functions.emplace_back(i, rows->second);
  if (functions.empty()) return {std::move(kernel)};
  const auto has_row = [&](const Join& join) {
    InlineVector<ElementType, 4> in, out;
    for (size_t i = join.first; i < join.first + join.vectors; ++i) {
      for (const RegisterId id : kernel.body[i].in) in.push_back(kernel.registers[static_cast<size_t>(id)].element);
      out.push_back(kernel.registers[static_cast<size_t>(kernel.body[i].out[0])].element);
    }
    return table_.find({join.op, in, out, kernel.body[join.first].attributes}, target_) != nullptr;
  };
  // Joins of `most` vectors, else of two, wherever there is a row for them.
  const auto joins_of = [&](size_t most) {
    std::vector<Join> joins;
    size_t next = 0;  // end of the last join
    for (const auto& [i, rows] : functions) {
      for (size_t vectors = i < next ? 0 : most; vectors > 1; vectors /= 2) {
        const Join join{i, vectors, vectors == 4 ? rows.four : rows.two};
        if (!may_join(kernel, i, vectors) || !has_row(join)) continue;
        joins.push_back(join);
        next = i + vectors;
        break;
      }
    }
    return joins;
  };
  size_t before = 0;  // instructions saved by the last attempt
  const auto try_joins = [&](size_t most) -> std::optional<Lowered> {
    const std::vector<Join> joins = joins_of(most);
    size_t saved = 0;
    for (const Join& join : joins) saved += join.vectors - 1;
    if (saved == 0 || saved == std::exchange(before, saved)) return std::nullopt;
    // Spills would appear as further instructions.
    const size_t instructions = kernel.body.size() - saved + moves_of(kernel);
    auto tried = allocated(joined(kernel, joins), instructions);
    if (!tried.ok() || tried->body.size() != instructions) return std::nullopt;
    return Lowered{joined(std::move(kernel), joins), *std::move(tried)};
  };
  for (const size_t most : {4, 2})
    if (auto made = try_joins(most)) return *std::move(made);
  if (std::erase_if(functions, [](const auto& one) { return !one.second.shares_scratch; }) > 0)
    for (const size_t most : {4, 2})
      if (auto made = try_joins(most)) return *std::move(made);
  const std::vector<Join> checks = joins_of(4);
  if (checks.empty()) return {std::move(kernel)};
  // Separate checks may cost more than the spills of joined ones.
  Lowered together{joined(kernel, checks)}, apart{std::move(kernel)};
  const bool are_made = allocate(apart).ok() && allocate(together).ok();
  return are_made && cycles_of_loops(*together.allocated) < cycles_of_loops(*apart.allocated) ? together : apart;
}

}  // namespace tenon::x86
