#include "opencl/assemble.hpp"

#include <numeric>

#include <tenon/snippet/linear/emit.hpp>

#include "opencl/source_context.hpp"

namespace tenon::opencl {

codegen::RegisterPool variables_of(const snippet::LinearKernel& kernel) {
  codegen::RegisterPool pool;
  std::vector<int> numbers(kernel.registers.size() + 1);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::vector<int>& file : pool.registers) file = numbers;
  return pool;
}

Result<std::string> assemble(const snippet::LinearKernel& kernel, const AssembleOptions& options,
                             const codegen::JitterTable& table, const TargetDescription& target) {
  codegen::ConstantPool constants;
  SourceContext context(constants, kernel, options.ports, options.comments, options.form);
  TENON_OK(snippet::emit(kernel, table, target, context));
  return context.finish(kSnippetKernel);
}

}  // namespace tenon::opencl
