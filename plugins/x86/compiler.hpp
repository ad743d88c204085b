// Compiler: from bodies of snippets to functions, for one target. The walk of docs/snippets.md on one page; what the
// forms of the code are is in forms.hpp.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenon/codegen/jitter_table.hpp>
#include <tenon/irgen/snippet_code.hpp>
#include <tenon/target/description.hpp>

#include "x86/forms/forms.hpp"

namespace tenon::x86 {

// Every row of this plugin: structure (structure.hpp) and operators (emitters/). Made once.
Result<const codegen::JitterTable*> jitter_table();

// Any thread.
class Compiler final : public irgen::SnippetCompiler {
 public:
  Compiler(TargetDescription target, const codegen::JitterTable& table, CompilerOptions options = {})
      : forms_(std::make_shared<const FormMaker>(std::move(target), table, options)) {}
  // The form that serves any call; and where extents are known, the others that calls run. Those for large calls of
  // open extents are made when the first such call comes, which may be after the compiler is gone.
  Result<std::shared_ptr<const irgen::SnippetCode>> compile(const snippet::Body& body) override;
  bool writes_parts() const override { return true; }
  snippet::BoundRules bound_rules() const override;

  // The code of this body with the names of its own operators: what any call may run, then what large ones do.
  enum class Forms { first, all };
  Result<std::vector<CodeObject>> assemble_snippet(const snippet::Body& body, Forms forms = Forms::all) const;

  // Is there an emitter for this operator of a body (TokenizeOptions::can_emit)?
  bool can_emit(const codegen::Signature& signature) const;
  // Why code for this body cannot be made: the first operator without an emitter, or element that it cannot load or
  // store. "" when it can.
  std::string why_not(const snippet::Body& body) const;

  // Of a call of `made`, by the instructions of its kernel; where these do not tell, by the operators of its body. 0:
  // extents are not known.
  double cycles_of_call(const irgen::SnippetCode& made) const;

  const TargetDescription& target() const { return forms_->target(); }

 private:
  std::shared_ptr<const FormMaker> forms_;
};

}  // namespace tenon::x86
