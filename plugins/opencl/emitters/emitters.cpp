#include "opencl/emitters/emitters.hpp"

#include "opencl/source_context.hpp"

namespace tenon::opencl {

Result<const codegen::JitterTable*> jitter_table() {
  static const Result<codegen::JitterTable> kTable = []() -> Result<codegen::JitterTable> {
    codegen::JitterTable table{std::string(kContextKind)};
    for (const auto add : {add_arithmetic_rows, add_logic_rows, add_function_rows, add_convert_rows, add_structure_rows,
                           add_fold_rows, add_memory_rows})
      TENON_OK(add(table), "the jitter table of opencl");
    return table;
  }();
  if (!kTable.ok()) return kTable.error();
  return &*kTable;
}

}  // namespace tenon::opencl
