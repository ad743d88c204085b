#include "x86/compiler.hpp"

#include <tenon/snippet/body/emitters.hpp>

#include "x86/assembly/context.hpp"
#include "x86/emitters/emitters.hpp"
#include "x86/emitters/odd_table.hpp"
#include "x86/structure/structure.hpp"

namespace tenon::x86 {

Result<const codegen::JitterTable*> jitter_table() {
  static const Result<codegen::JitterTable> kTable = []() -> Result<codegen::JitterTable> {
    codegen::JitterTable table{std::string(kContextKind)};
    TENON_OK(add_structure_rows(table), "the jitter table of x86");
    TENON_OK(add_elementwise_rows(table), "the jitter table of x86");
    return table;
  }();
  if (!kTable.ok()) return kTable.error();
  return &*kTable;
}

bool Compiler::can_emit(const codegen::Signature& signature) const {
  return snippet::can_emit_node(signature, forms_->table(), target());
}

std::string Compiler::why_not(const snippet::Body& body) const {
  return snippet::why_not_emit(body, forms_->table(), target());
}

Result<std::vector<CodeObject>> Compiler::assemble_snippet(const snippet::Body& body, Forms forms) const {
  if (std::string reason = why_not(body); !reason.empty()) return error(Code::unsupported, reason);
  std::vector<CodeObject> objects;
  FormBodies bodies = forms_->bodies_of(body);
  for (const FormMaker::Tier& tier : forms_->tiers_of(bodies)) {
    TENON_TRY(object, forms_->assemble(bodies, tier));
    objects.push_back(std::move(object));
    if (forms == Forms::first) break;
  }
  return objects;
}

Result<std::shared_ptr<const irgen::SnippetCode>> Compiler::compile(const snippet::Body& body) {
  if (std::string reason = why_not(body); !reason.empty()) return error(Code::unsupported, reason);
  FormBodies bodies = forms_->bodies_of(body);
  const std::vector<FormMaker::Tier> tiers = forms_->tiers_of(bodies);
  auto made = std::make_shared<irgen::SnippetCode>();
  made->body = body;
  TENON_TRY(first, forms_->make(bodies, tiers[0]));
  made->form = std::move(first);
  for (size_t i = 1; i < tiers.size(); ++i) {
    const auto make = [forms = forms_, tier = tiers[i], lose = bodies.bytes_lose()](const snippet::Body& of) {
      return forms->make(of, tier, lose);
    };
    made->larger.push_back(std::make_unique<const irgen::FormOnDemand>(tiers[i].calls, make));
    if (tiers[i].certain) TENON_OK(made->larger.back()->get(made->body));
  }
  made->cycles_per_element = snippet::cycles_per_element(body, made->form.kernel.lanes, forms_->table(), target());
  return std::shared_ptr<const irgen::SnippetCode>(std::move(made));
}

double Compiler::cycles_of_call(const irgen::SnippetCode& made) const {
  if (!irgen::joins_rows(made.body, made.form.kernel.lanes))
    if (const auto cycles = forms_->cycles_of_call(made.form.kernel)) return *cycles;
  double cycles = made.cycles_per_element;
  for (const snippet::BodyDim& dim : made.body.dims)
    cycles *= dim.extent.is_constant() ? static_cast<double>(dim.extent.constant()) : 0;
  return cycles;
}

snippet::BoundRules Compiler::bound_rules() const {
  const auto max_ulp = [this](const snippet::Body& body, const snippet::BodyNode& node) {
    const codegen::JitterRow* row = snippet::row_of_node(body, node, forms_->table(), target());
    return row ? row->max_ulp : 0;
  };
  const bool contract = forms_->options().contract;
  // divide_by_constants() may be 1 ulp off where quotients are tiny.
  return {.max_ulp = max_ulp,
          .constant_quotient_ulp = 1,
          .contract = contract,
          .table_error = contract ? kOddTableError : 0,
          .moved_powers = true};
}

}  // namespace tenon::x86
