// Inside the room: which single operators can be part of a snippet.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>

#include <tenon/snippet/canonical/canonical_space_internal.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>

namespace tenon::snippet {

class Candidates {
 public:
  explicit Candidates(const TokenizeOptions& options) : options_(options) {}

  // The operator's iteration space; nothing when it cannot be taken.
  std::optional<Space> space_of(const Op& op);

 private:
  struct Verdict {
    bool taken = false;
    bool costly = false;  // a function that takes many instructions
  };
  Verdict verdict_on(const Op& op, const Space& space);
  Verdict judge(const Op& op) const;

  const TokenizeOptions& options_;
  // By everything that an operator's decomposition depends on.
  std::unordered_map<std::string, Verdict> known_;
};

// Whether it only shows the same elements under another shape.
bool is_view(const Op& op);

}  // namespace tenon::snippet
