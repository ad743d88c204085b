#include "x86/emitters/rows.hpp"

#include <tenon/support/str.hpp>

namespace tenon::x86 {
namespace {

Result<void> emit_one(const std::function<void(VectorCode&)>& algorithm, X86Context& context,
                      const codegen::Emission& emission) {
  VectorCode code(context, emission);
  algorithm(code);
  return code.finish();
}

// Has early_result, because results of one vector are written while operands of another are still read.
codegen::JitterRow row_in_turn(codegen::JitterRow row, int vectors) {
  row.op = in_turn(row.op, static_cast<size_t>(vectors));
  row.scratch = {.vectors = vectors * row.scratch.vectors, .masks = vectors * row.scratch.masks};
  row.early_result = true;
  row.cycles *= vectors;
  return row;
}

Result<void> add_row(codegen::JitterTable& table, codegen::JitterRow row, const Cost& cost) {
  row.scratch = {.vectors = cost.vectors, .masks = cost.masks};
  row.cycles = cost.cycles;
  for (int vectors = 2; vectors <= cost.in_turn; vectors *= 2) TENON_OK(table.add(row_in_turn(row, vectors)));
  return table.add(std::move(row));
}

}  // namespace

Name in_turn(Name op, size_t vectors) { return Name(str(op, "InTurn", vectors)); }

Result<void> emit_algorithm(const std::function<void(VectorCode&)>& algorithm, codegen::EmitContext& context,
                            const codegen::Emission& emission) {
  const size_t results = emission.out.size();
  if (results <= 1) return emit_one(algorithm, x86_context(context), emission);
  return x86_context(context).in_turn(results, [&](size_t piece) {
    const auto share = [&](auto all) { return all.subspan(piece * (all.size() / results), all.size() / results); };
    codegen::Emission one = emission;
    one.in = share(one.in), one.out = share(one.out);
    one.vectors = share(one.vectors), one.masks = share(one.masks);
    return emit_one(algorithm, x86_context(context), one);
  });
}

Result<void> add_pairs(codegen::JitterTable& table, std::span<const RowPair> pairs) {
  for (const RowPair& pair : pairs) {
    codegen::JitterRow row{.op = pair.op, .types = pair.types, .max_ulp = pair.max_ulp, .make = pair.make};
    row.accepts = pair.accepts;
    row.early_result = pair.early_result;
    row.feature = "avx512f";
    TENON_OK(add_row(table, row, pair.avx512));
    row.feature = "avx2";
    row.without = "avx512f";
    TENON_OK(add_row(table, std::move(row), pair.avx2));
  }
  return {};
}

}  // namespace tenon::x86
