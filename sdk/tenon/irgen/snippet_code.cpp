#include <tenon/irgen/snippet_code.hpp>

namespace tenon::irgen {

Result<const SnippetForm*> FormOnDemand::get(const snippet::Body& body) const {
  const std::lock_guard lock(mutex_);
  if (!form_) {
    TENON_TRY(made, make_(body));
    form_ = std::move(made);
  }
  return &*form_;
}

SnippetCompiler::~SnippetCompiler() = default;
snippet::BoundRules SnippetCompiler::bound_rules() const { return {}; }

}  // namespace tenon::irgen
