#include "x86/emitters/rows.hpp"

namespace tenon::x86 {

Result<void> emit_algorithm(Algorithm algorithm, codegen::EmitContext& context, const codegen::Emission& emission) {
  VectorCode code(x86_context(context), emission);
  algorithm(code);
  return code.finish();
}

Result<void> add_pairs(codegen::JitterTable& table, std::span<const RowPair> pairs) {
  for (const RowPair& pair : pairs) {
    codegen::JitterRow row{.op = pair.op, .types = pair.types, .max_ulp = pair.max_ulp, .make = pair.make};
    row.accepts = pair.accepts;
    row.feature = "avx512f";
    row.scratch = {.vectors = pair.avx512.vectors, .masks = pair.avx512.masks};
    row.cycles = pair.avx512.cycles;
    TENON_OK(table.add(row));
    row.feature = "avx2";
    row.without = "avx512f";
    row.scratch = {.vectors = pair.avx2.vectors, .masks = pair.avx2.masks};
    row.cycles = pair.avx2.cycles;
    TENON_OK(table.add(std::move(row)));
  }
  return {};
}

}  // namespace tenon::x86
