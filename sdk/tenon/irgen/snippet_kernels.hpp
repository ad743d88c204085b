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
  // Each call runs on the reference, too. A result that is neither the reference's nor within what bound_rules() allow,
  // and a body that does not mean what the reference makes, are errors of the run, naming kernel, output, index, values
  // and operator. Many times slower; results never lie on operands.
  bool self_check = false;
};

// The kernel that calls `code` on the operands of a call statement: those of the body's inputs at the places
// `operands`, outputs from `results` on. Dense views; the threads of the call are used where there is work for them.
// Runs of the same extents take nothing from the heap. `read_again`: other kernels read a result, soon. `compiler`: of
// `code`; with it calls on several threads whose results are few and folds long cut these, so that threads share them
// (snippet/body/fold_stages.hpp): sums of floats then differ in their last places from those of one thread, and are the
// same for any number of threads that are cut for.
TENON_API program::KernelHandle snippet_kernel(std::shared_ptr<const SnippetCode> code, std::vector<size_t> operands,
                                               size_t results, bool read_again = false,
                                               std::shared_ptr<SnippetCompiler> compiler = nullptr);

// What calls of `code`, compiled by `compiler`, run instead of it on `threads` threads, one behind the other. Empty:
// they run the code; or extents of its dims are not known, on which it depends.
TENON_API Result<std::vector<std::shared_ptr<const SnippetCode>>> stages_of_calls(const SnippetCode& code,
                                                                                  SnippetCompiler& compiler,
                                                                                  int threads);

// How the ports of a body stand in a call of it.
struct SnippetPorts {
  std::vector<size_t> operands;   // of inputs: which operand of the call each is
  size_t results = 0;             // which one the first output is; the others follow
  std::vector<InPlace> in_place;  // results that may lie on an operand that they are read with, element for element
};
TENON_API SnippetPorts snippet_ports(const KernelRequest& request, const snippet::Body& body);

class TENON_API SnippetKernels final : public KernelSource {
 public:
  SnippetKernels(std::string name, std::shared_ptr<SnippetCompiler> compiler, SnippetOptions options = {})
      : name_(std::move(name)), compiler_(std::move(compiler)), options_(options) {}
  std::string_view name() const override { return name_; }
  // Of a snippet.Subgraph, or of an operator that is a snippet by itself. Parts of operators have none.
  Result<KernelChoice> kernel(const KernelRequest& request) const override;
  // Of an operator whose body depends on it, and that has one.
  std::optional<size_t> late_operand(const Op& op) const override;

 private:
  std::string name_;
  std::shared_ptr<SnippetCompiler> compiler_;
  SnippetOptions options_;
};

}  // namespace tenon::irgen
