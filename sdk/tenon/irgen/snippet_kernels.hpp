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
#include <tenon/snippet/body.hpp>
#include <tenon/snippet/body_bounds.hpp>
#include <tenon/snippet/linear.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::irgen {

// A snippet's code, for all extents of its ports. Immutable; any thread.
struct SnippetCode {
  // One way to run it. Each has params and loops of its own kernel.
  struct Form {
    snippet::LinearKernel kernel;
    void (*run)(const int64_t* params) = nullptr;  // reentrant; keeps nothing from call to call
    std::shared_ptr<const void> memory = nullptr;  // keeps `run` where it is
    double least_bytes = 0;                        // calls whose tensors have fewer are not for it
    int64_t least_row = 0;                         // nor those with fewer elements in the innermost dim
    // Its stores go past the caches. Then each row of each output begins at a multiple of kAlignBytes, no output lies
    // on an input, and where results are read again they alone have to make `least_bytes`: others would be wanted in
    // the caches.
    bool past_caches = false;
  };
  snippet::Body body;
  std::vector<Form> forms;        // a call is run by the last that may serve it; the first serves any
  double cycles_per_element = 1;  // of the body's space, as predicted: how small a piece for a thread may be
};

class TENON_API SnippetCompiler {
 public:
  virtual ~SnippetCompiler();
  // Any thread. The same code for bodies that compute the same, as far as it can be told cheaply.
  virtual Result<std::shared_ptr<const SnippetCode>> compile(const snippet::Body& body) = 0;
  // How exact its code is, for the self-check. Borrows the compiler. Without it: every operator is rounded correctly.
  virtual snippet::BoundRules bound_rules() const;
};

struct SnippetOptions {
  // Each call runs on the reference, too. A result that is neither the reference's nor within what bound_rules() allow,
  // and a body that does not mean what the reference makes, are errors of the run, naming kernel, output, index, values
  // and operator. Many times slower; results never lie on operands.
  bool self_check = false;
};

// The kernel that calls `code` on the operands of a call statement: those of the body's inputs at the places
// `operands`, outputs from `results` on. Dense views; the threads of the call are used where there is work for them.
// Runs of the same extents take nothing from the heap. `read_again`: other kernels read a result, soon.
TENON_API program::KernelHandle snippet_kernel(std::shared_ptr<const SnippetCode> code, std::vector<size_t> operands,
                                               size_t results, bool read_again = false);

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
