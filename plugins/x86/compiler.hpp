// Compiler: from bodies of snippets to functions, for one target. The walk of docs/snippets.md on one page.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenon/codegen/jitter_table.hpp>
#include <tenon/irgen/snippet_kernels.hpp>
#include <tenon/target/description.hpp>

#include "x86/code_cache.hpp"
#include "x86/passes.hpp"

namespace tenon::x86 {

// Every row of this plugin: structure (structure.hpp) and operators (emitters/). Made once.
Result<const codegen::JitterTable*> jitter_table();

// What one body became.
struct CompiledSnippet final : irgen::SnippetCode {
  std::shared_ptr<const JitCode> code;  // of the first form
};

struct CompilerOptions {
  // a * b + c in one instruction, rounded once: results then differ in the last place from those of the operators.
  bool contract = true;
};

// Any thread. Code comes from CodeCache::shared(), by the kernel's text without names: snippets that compute the same
// share it, and profilers see it under the name of the first.
class Compiler final : public irgen::SnippetCompiler {
 public:
  Compiler(TargetDescription target, const codegen::JitterTable& table, CompilerOptions options = {})
      : target_(std::move(target)), table_(table), options_(options), registers_(registers_text(target_)) {}
  Result<std::shared_ptr<const irgen::SnippetCode>> compile(const snippet::Body& body) override;
  snippet::BoundRules bound_rules() const override;
  Result<std::shared_ptr<const CompiledSnippet>> compile_snippet(const snippet::Body& body);

  // The code of this body with the names of its own operators: what all calls may run, then what large ones do.
  Result<std::vector<CodeObject>> assemble_snippet(const snippet::Body& body) const;

  // Is there an emitter for this operator of a body (TokenizeOptions::can_emit)?
  bool can_emit(const codegen::Signature& signature) const;
  // Why code for this body cannot be made: the first operator without an emitter, or element that it cannot load or
  // store. "" when it can.
  std::string why_not(const snippet::Body& body) const;

  const TargetDescription& target() const { return target_; }

 private:
  static std::string registers_text(const TargetDescription& target);
  // How a body is lowered for one form of its code.
  struct Lowered {
    bool whole_rows = false;   // down columns
    bool past_caches = false;  // what sweeps keep goes out to memory and comes back
    bool operator==(const Lowered&) const = default;
  };
  // Before this plugin's passes.
  Result<snippet::LinearKernel> lower(const snippet::Body& body, const Lowered& how) const;
  // Code is made in up to three forms. Where the extents say how large calls are, only those that calls run.
  //   for tensors within the second-level cache
  //   beyond it                     lines are fetched before they are written and read
  //   beyond the last-level cache   stores go past the caches, several stretches of a row are walked side by side
  struct Tier {
    std::string suffix;
    double least_bytes = 0;  // of all ports
    PassOptions passes;
    Lowered how = {};
  };
  struct TierKernel {
    snippet::LinearKernel kernel;  // after the passes
    double least_bytes = 0;
    int64_t least_row = 0;
    bool past_caches = false;  // its stores, or some of them
  };
  std::vector<Tier> tiers_of(const snippet::Body& body) const;
  // At least one.
  Result<std::vector<TierKernel>> tier_kernels(const snippet::Body& body) const;
  Result<CodeObject> assemble_kernel(snippet::LinearKernel kernel) const;

  const TargetDescription target_;
  const codegen::JitterTable& table_;
  const CompilerOptions options_;
  const std::string registers_;  // what code depends on beside the kernel: the registers that the description states
};

// Lanes of a vector of the body's widest lane type.
int lanes_of(Isa isa, const snippet::Body& body);

}  // namespace tenon::x86
