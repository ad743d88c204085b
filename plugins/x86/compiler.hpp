// Compiler: from the bodies of snippets to functions, for one target. docs/snippets.md describes the stages; forms.hpp
// describes the forms of the code.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenon/codegen/jitter_table.hpp>
#include <tenon/irgen/snippet_code.hpp>
#include <tenon/target/description.hpp>

#include "x86/forms/forms.hpp"

namespace tenon::x86 {

// All rows of this plugin: structure (structure.hpp) and operators (emitters/). Made once.
Result<const codegen::JitterTable*> jitter_table();

// Any thread.
class Compiler final : public irgen::SnippetCompiler {
 public:
  Compiler(TargetDescription target, const codegen::JitterTable& table, CompilerOptions options = {})
      : forms_(std::make_shared<const FormMaker>(std::move(target), table, options)) {}
  // The form that serves any call and, where extents are known, the other forms that calls run. For open extents, the
  // forms for large calls are generated when the first such call comes, which may be after this compiler is destroyed.
  Result<std::shared_ptr<const irgen::SnippetCode>> compile(const snippet::Body& body) override;
  bool writes_parts() const override { return true; }
  snippet::BoundRules bound_rules() const override;

  // The code of this body, with the names of its own operators: first the form for any call, then those for large ones.
  enum class Forms { first, all };
  Result<std::vector<CodeObject>> assemble_snippet(const snippet::Body& body, Forms forms = Forms::all) const;

  // Whether there is an emitter for this operator of a body (TokenizeOptions::can_emit).
  bool can_emit(const codegen::Signature& signature) const;
  // The reason why code for this body cannot be generated: the first operator without an emitter, or the first element
  // type that cannot be loaded or stored. "" when it can.
  std::string why_not(const snippet::Body& body) const;

  // Cycles of a call of `made`, from the instructions of its kernel, or where these do not tell, from the operators of
  // its body. 0: extents are not known.
  double cycles_of_call(const irgen::SnippetCode& made) const;

  const TargetDescription& target() const { return forms_->target(); }

 private:
  std::shared_ptr<const FormMaker> forms_;
};

}  // namespace tenon::x86
