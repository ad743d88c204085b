// Calls of snippets whose folds are cut (snippet/body/fold_stages.hpp): few results, whose folds several threads share.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <tenon/irgen/snippet_call_internal.hpp>
#include <tenon/snippet/body/fold_stages.hpp>

namespace tenon::irgen::detail {

// Stages of a body with their code.
struct StagedCode {
  snippet::DimSet folded = 0;  // dims of the whole body
  snippet::FoldStages stages;
  std::vector<std::shared_ptr<const SnippetCode>> codes;  // of each stage
};

// Null: the body has no such stages, or one of them is unsupported by the target.
Result<std::shared_ptr<const StagedCode>> make_stages(const snippet::Body& body, SnippetCompiler& compiler, size_t cut);

// Makes the stages for a dim that is cut when the first call needs them. Thread-safe; concurrent callers wait.
class StagesOnDemand {
 public:
  // `body`: of a code that outlives this.
  StagesOnDemand(const snippet::Body& body, std::shared_ptr<SnippetCompiler> compiler)
      : body_(body), compiler_(std::move(compiler)) {}
  // As make_stages(). Errors are not cached.
  Result<std::shared_ptr<const StagedCode>> get(size_t cut);

 private:
  const snippet::Body& body_;
  const std::shared_ptr<SnippetCompiler> compiler_;
  std::mutex mutex_;
  std::map<size_t, std::shared_ptr<const StagedCode>> made_;
};

// Used by one thread at a time, like SnippetCall. prepare() allocates heap memory, run() does not.
class StagedCall {
 public:
  // `extents` of the whole body's dims.
  Result<void> prepare(std::shared_ptr<const StagedCode> code, const Dims& extents, int64_t parts,
                       const CallOptions& options);
  // `addresses` of the whole body's inputs, then outputs.
  void run(std::span<std::byte* const> addresses, ParallelFor& pool);

 private:
  struct Stage {
    SnippetCall call;
    std::vector<std::byte*> addresses;  // of its ports; those shared with the whole body's as the run has them
  };
  std::shared_ptr<const StagedCode> code_;
  std::vector<Stage> stages_;
  AlignedBytes memory_;
};

}  // namespace tenon::irgen::detail
