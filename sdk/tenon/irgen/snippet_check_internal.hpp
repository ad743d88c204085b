// Inside the room: the self-check of snippets. The results of a kernel's code are compared with those of the
// reference on the same operands, and both with what the body allows (snippet/body/body_bounds.hpp).
#pragma once
#include <memory>
#include <span>
#include <vector>

#include <tenon/irgen/snippet_kernels.hpp>
#include <tenon/program/ir/kernel.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::irgen::detail {

// Immutable; thread-safe.
class SnippetCheck {
 public:
  // `compiler` made the code that is checked; `ports` states how it is called.
  static Result<std::shared_ptr<const SnippetCheck>> make(const KernelRequest& request, const SnippetPorts& ports,
                                                          std::shared_ptr<const SnippetCompiler> compiler);
  // Called after `code` ran on these operands of a call, with unchanged inputs. Code::internal, naming kernel, output,
  // index, the values and the operator, at the first element that is neither the reference's nor within the bounds, or
  // where the result of the reference contradicts the body.
  Result<void> check(const SnippetCode& code, std::span<const program::BufferView> operands) const;

 private:
  SnippetCheck() = default;
  Result<std::vector<Datum>> on_reference(std::span<const program::BufferView> operands) const;

  std::unique_ptr<Graph> graph_;  // the operator alone
  std::unique_ptr<Interpreter> interpreter_;
  std::vector<size_t> inputs_;  // of the graph: which operand of a call
  std::vector<size_t> ports_;   // of the body, inputs then outputs: which operand of a call
  std::shared_ptr<const SnippetCompiler> compiler_;
};

}  // namespace tenon::irgen::detail
