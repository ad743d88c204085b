#include <cctype>
#include <charconv>
#include <cmath>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/passes/algebra.hpp>
#include <tenon/passes/change.hpp>
#include <tenon/passes/local_internal.hpp>

namespace tenon::algebra {
namespace {

// ---- Terms ----

class TermReader {
 public:
  explicit TermReader(std::string_view text) : text_(text) {}

  Result<Term> read() {
    TENON_TRY(term, one());
    skip();
    if (at_ != text_.size()) return fail("the end");
    return term;
  }

 private:
  Result<Term> one() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' ||
                                  text_[at_] == '.' || text_[at_] == '-')) {
      ++at_;
    }
    Term term;
    term.text = text_.substr(begin, at_ - begin);
    if (term.text.empty()) return fail("a name or a number");
    if (eat('(')) {
      term.kind = Term::Kind::op;
      do {
        TENON_TRY(operand, one());
        term.operands.push_back(std::move(operand));
      } while (eat(','));
      if (!eat(')')) return fail("')'");
      skip();
      if (text_.substr(at_).starts_with("as ")) {
        at_ += 3;
        TENON_TRY(name, one());
        term.name = name.text;
      }
      return term;
    }
    const char* end = term.text.data() + term.text.size();
    if (term.text == "_") {
      term.kind = Term::Kind::absent;
    } else if (term.text == "true" || term.text == "false") {
      term.kind = Term::Kind::truth;
      term.number = term.text == "true" ? 1 : 0;
    } else if (const auto read = std::from_chars(term.text.data(), end, term.number); read.ptr == end) {
      term.kind = Term::Kind::number;
    } else {
      term.kind = term.text[0] == 'k' ? Term::Kind::constant : Term::Kind::value;
      term.name = term.text;
    }
    return term;
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool eat(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    return ++at_, true;
  }
  Error fail(std::string_view wanted) const {
    return error(Code::parse, "term '", text_, "', column ", at_ + 1, ": expected ", wanted);
  }

  std::string_view text_;
  size_t at_ = 0;
};

// ---- Patterns ----

bool is_number_everywhere(const Tensor& tensor, const Term& wanted) {
  const ElementType element = tensor.element();
  if (wanted.kind == Term::Kind::truth ? !element.is_bool() : !element.is_number()) return false;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double have = tensor.double_at(i);
    if (have != wanted.number || std::signbit(have) != std::signbit(wanted.number)) return false;
  }
  return true;
}

Pattern to_pattern(const Term& term) {
  switch (term.kind) {
    case Term::Kind::value: return pattern::any(term.name);
    case Term::Kind::constant: return pattern::constant(term.name);
    case Term::Kind::absent: return pattern::any().optional().where([](const Value&) { return false; });
    case Term::Kind::number:
    case Term::Kind::truth:
      return pattern::constant().where([term](const Value& v) { return is_number_everywhere(*constant_of(&v), term); });
    case Term::Kind::op: break;
  }
  std::vector<Pattern> operands;
  for (const Term& operand : term.operands) operands.push_back(to_pattern(operand));
  Pattern op = pattern::op(Name(term.text), std::move(operands)).shared();
  return term.name.empty() ? op : std::move(op).as(term.name);
}

// ---- Replacements ----

// Larger constants are not worth it: an operator computes them on the fly.
constexpr int64_t kMostElements = 4096;

// If the replacement is a constant: one of the result's type, if that is known and small.
Value* constant_like(Builder& builder, const Type& type, double number) {
  const auto dims = type.shape().static_dims();
  if (!dims) return nullptr;
  const auto count = element_count(*dims);
  if (!count.ok() || *count > kMostElements) return nullptr;
  auto tensor = Tensor::zeros(type.element(), *dims);
  if (!tensor.ok()) return nullptr;
  for (int64_t i = 0; i < tensor->size(); ++i) tensor->set_double(i, number);
  return builder.constant(*std::move(tensor));
}

Result<Value*> build(Builder& builder, const Match& match, const Term& term) {
  switch (term.kind) {
    case Term::Kind::value:
    case Term::Kind::constant: return match.value(term.name);
    case Term::Kind::number:
    case Term::Kind::truth: return constant_like(builder, match.root().result()->type(), term.number);
    case Term::Kind::absent: return nullptr;
    case Term::Kind::op: break;
  }
  std::vector<Value*> operands;
  for (const Term& operand : term.operands) {
    TENON_TRY(value, build(builder, match, operand));
    operands.push_back(value);
  }
  // An operator of the root's kind keeps the root's attributes.
  const Op& root = match.root();
  return builder.op(Name(term.text), operands, root.is(Name(term.text)) ? root.attributes() : Attributes());
}

// Whether the root has the shape of `value` in every run: nothing else in the match may be larger than one element, or
// have more axes.
bool only_value_has_extents(const Op& op, const Value& value) {
  if (!value.type().is_tensor() || !value.type().shape().ranked()) return false;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Value* operand = op.operand(i);
    if (!operand || operand == &value) continue;
    const Tensor* tensor = constant_of(operand);
    if (!tensor || tensor->size() != 1 || tensor->rank() > value.type().shape().rank()) return false;
  }
  return true;
}

ElementType ruling_element(const Op& root, const Term& from) {
  // For Not of a comparison, the comparison's operand; for a Where, its data: the value that the rule concerns is
  // innermost.
  const size_t first = root.is(Name("Where")) ? 1 : 0;
  const Value* operand = root.operand(first) ? root.operand(first) : root.operand(0);
  if (from.operands[0].kind == Term::Kind::op && operand->producer() && operand->producer()->operand(0) &&
      from.operands[0].text == operand->producer()->name().view()) {
    operand = operand->producer()->operand(0);
  }
  return operand->type().element();
}

}  // namespace

Result<Term> parse_term(std::string_view text) { return TermReader(text).read(); }

Result<Rewrite> to_rewrite(const Rule& rule) {
  TENON_TRY(from, parse_term(rule.from));
  TENON_TRY(to, parse_term(rule.to));
  if (from.kind != Term::Kind::op)
    return error(Code::invalid_argument, "rule '", rule.from, "' must begin with an operator");
  Rewrite rewrite(str(rule.from, " -> ", rule.to));
  rewrite.match(to_pattern(from));
  rewrite.when([from, rule](const Match& match) {
    return rule.types(ruling_element(match.root(), from)) && (!rule.when || rule.when(match));
  });
  rewrite.with([to](Builder& builder, const Match& match) -> Result<Value*> {
    TENON_TRY(made, build(builder, match, to));
    if (!made) return nullptr;
    const Op& root = match.root();
    const bool same = made->type().element() == root.result()->type().element() &&
                      (have_same_shape(made->type(), root.result()->type()) || only_value_has_extents(root, *made));
    return same ? made : nullptr;
  });
  return rewrite;
}

namespace {

Result<Change> simplify(Graph& graph) {
  static const Result<std::vector<Rewrite>> rewrites = []() -> Result<std::vector<Rewrite>> {
    std::vector<Rewrite> made;
    for (const Rule& rule : rules()) {
      TENON_TRY(rewrite, to_rewrite(rule), "rule '", rule.from, "'");
      made.push_back(std::move(rewrite));
    }
    return made;
  }();
  TENON_OK(rewrites);
  return apply_rewrites(graph, *rewrites);
}

const PassRegistration kSimplifyAlgebraRegistered({{
    .name = "simplify-algebra",
    .contract = "Applies the table of algebraic rules (algebra_rules.cpp): bit for bit the same results.\n"
                "Needs inferred types; keeps output names. Leaves sums of constants for fold-constants.",
    .run = simplify,
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon::algebra
