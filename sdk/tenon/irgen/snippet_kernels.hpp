// SnippetKernels: snippets as kernels of programs, for targets that compile them to functions of the host.
//
//   class MyCompiler final : public irgen::SnippetCompiler {
//     Result<std::shared_ptr<const irgen::SnippetCode>> compile(const snippet::Body& body) override { ... }
//   };
//   irgen::SnippetKernels kernels("x86-avx512", compiler);
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenon/irgen/kernel_source.hpp>
#include <tenon/irgen/snippet_code.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::irgen {

struct SnippetOptions {
  // Each call also runs on the reference. The run fails where a result is neither the reference's nor within what
  // bound_rules() allows, or where the body contradicts the reference; the error names kernel, output, index, values
  // and operator. Many times slower; results never share memory with operands.
  bool self_check = false;
};

// The kernel that calls `code` on the operands of a call statement. The body's inputs are at the places `operands`, and
// the outputs from `results` on. Dense views; the threads of the call are used where there is enough work. Runs of the
// same extents allocate no heap memory. `read_again`: other kernels read a result soon. `compiler`: the one that made
// `code`. With it, calls on several threads that have few results and long folds cut these, so that threads share them
// (snippet/body/fold_stages.hpp). Sums of floats then differ in their last places from those of one thread, and are the
// same for every number of threads for which folds are cut.
TENON_API program::KernelHandle snippet_kernel(std::shared_ptr<const SnippetCode> code, std::vector<size_t> operands,
                                               size_t results, bool read_again = false,
                                               std::shared_ptr<SnippetCompiler> compiler = nullptr);

// The codes that calls of `code`, compiled by `compiler`, run in order instead of it on `threads` threads. Empty: they
// run the code, or the choice depends on extents of its dims that are not known.
TENON_API Result<std::vector<std::shared_ptr<const SnippetCode>>> stages_of_calls(const SnippetCode& code,
                                                                                  SnippetCompiler& compiler,
                                                                                  int threads);

// How the ports of a body correspond to the operands of a call.
struct SnippetPorts {
  std::vector<size_t> operands;   // per input: the operand of the call
  size_t results = 0;             // operand of the first output; the others follow
  std::vector<InPlace> in_place;  // results that may share the memory of an operand that is read at the same index
};
TENON_API SnippetPorts snippet_ports(const KernelRequest& request, const snippet::Body& body);

class TENON_API SnippetKernels final : public KernelSource {
 public:
  SnippetKernels(std::string name, std::shared_ptr<SnippetCompiler> compiler, SnippetOptions options = {})
      : name_(std::move(name)), compiler_(std::move(compiler)), options_(options) {}
  std::string_view name() const override { return name_; }
  // For a snippet.Subgraph, or for an operator that is a snippet by itself. Not for parts of operators.
  Result<KernelChoice> kernel(const KernelRequest& request) const override;
  // For an operator whose body depends on an operand, if it has one.
  std::optional<size_t> late_operand(const Op& op) const override;

 private:
  std::string name_;
  std::shared_ptr<SnippetCompiler> compiler_;
  SnippetOptions options_;
};

}  // namespace tenon::irgen
