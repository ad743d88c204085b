// One random test for all rules of the table.
#include <tenon/passes/algebra.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::testing {
namespace {

using algebra::Rule;
using algebra::Term;
using ::testing::HasSubstr;

constexpr ElementType kF8S[] = {kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF4E2M1};

std::vector<ElementType> element_types() {
  std::vector<ElementType> types = {kF64, kF32, kF16, kBF16, kI8,  kI16, kI32, kI64,
                                    kI4,  kU8,  kU16, kU32,  kU64, kU2,  kBool};
  types.insert(types.end(), std::begin(kF8S), std::end(kF8S));
  return types;
}

// Equal bits; a NaN equals any NaN of the same sign.
bool alike(const Tensor& a, const Tensor& b) {
  if (a.element() != b.element() || a.dims() != b.dims()) return false;
  if (!a.element().is_float()) return a.identical(b);
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.double_at(i), y = b.double_at(i);
    if (std::isnan(x) != std::isnan(y) || std::signbit(x) != std::signbit(y) || (!std::isnan(x) && x != y))
      return false;
  }
  return true;
}

class RuleTester {
  size_t draw(size_t below) { return static_cast<size_t>(random_() % below); }
  template <class Range>
  auto pick(const Range& range) {
    return range[draw(std::size(range))];
  }

 public:
  RuleTester(const Rule& rule, uint64_t seed)
      : rule_(rule), from_(*algebra::parse_term(rule.from)), random_(seed), rewrite_(*algebra::to_rewrite(rule)) {}

  // Draws a graph of the left side; does nothing if its types do not fit together. True: the rule was applied.
  bool once() {
    values_.clear();
    inputs_.clear();
    Graph graph("rule");
    element_ = pick(types_);
    builder_ = Builder(graph.body());
    Value* y = make(from_, from_.text == "Where" ? kBool : element_, true);
    if (!y) return false;
    graph.body().add_output(y, "y");
    const auto after = graph.clone();
    const auto change = apply_rewrites(*after, {rewrite_});
    EXPECT_TRUE(change.ok()) << change.error().to_string();
    if (!change.ok() || *change == Change::no) return false;
    const auto verified = verify(*after);
    EXPECT_TRUE(verified.ok()) << verified.error().to_string() << print(graph) << print(*after);
    compare(graph, *after);
    return true;
  }

 private:
  // The dims of 2 x 3, with ones, with fewer axes, sometimes without elements.
  Dims draw_dims() {
    return std::vector<Dims>{{2, 3}, {2, 3}, {2, 3}, {1, 3}, {2, 1}, {3}, {1}, {}, {1, 1}, {1, 2, 3}, {0, 3}}[draw(11)];
  }

  Tensor draw_tensor(ElementType element, const Dims& dims) {
    Tensor tensor = *Tensor::zeros(element, dims);
    const double kSpecial[] = {0.0,
                               -0.0,
                               1,
                               -1,
                               2,
                               0.5,
                               -0.5,
                               1e30,
                               -1e-30,
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(),
                               std::nan(""),
                               -std::nan("")};
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (element.is_bool())
        tensor.set_int(i, static_cast<int64_t>(draw(2)));
      else if (element.is_int())
        tensor.set_int(i, draw(2) ? static_cast<int64_t>(draw(7)) - 3 : static_cast<int64_t>(random_()));
      else
        tensor.set_double(
            i, draw(3) == 0 ? pick(kSpecial) : static_cast<double>(static_cast<int64_t>(draw(4000)) - 2000) / 96);
    }
    return tensor;
  }

  Value* make(const Term& term, ElementType element, bool root = false) {
    switch (term.kind) {
      case Term::Kind::absent: return nullptr;
      case Term::Kind::number:
      case Term::Kind::truth: {
        Tensor tensor =
            *Tensor::zeros(term.kind == Term::Kind::truth ? kBool : element, draw(2) ? Dims{} : draw_dims());
        for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, term.number);
        return builder_->constant(tensor);
      }
      case Term::Kind::value:
      case Term::Kind::constant: break;
      case Term::Kind::op: return make_op(term, element, root);
    }
    auto& known = values_[term.name];
    if (known) return known;
    const bool is_bound = rule_.from.starts_with("Clip");
    if (term.kind == Term::Kind::constant) {
      return known = builder_->constant(draw_tensor(element, is_bound ? Dims{} : draw_dims()));
    }
    inputs_.push_back(draw_tensor(element, draw_dims()));
    Shape shape(inputs_.back().dims());
    if (draw(4) == 0) shape = Shape(std::vector<Dim>(shape.dims().size()));  // extents that only the run knows
    return known = builder_->region().add_input(term.name, Type(element, shape));
  }

  Value* make_op(const Term& term, ElementType element, bool root) {
    std::vector<Value*> operands;
    for (size_t i = 0; i < term.operands.size(); ++i) {
      const Term& operand = term.operands[i];
      ElementType inner = element;
      if (term.text == "Where") inner = i == 0 ? kBool : element_;
      if (term.text == "Pow" && i == 1 && draw(2)) inner = pick(types_);
      Value* made = make(operand, inner);
      if (!made && operand.kind != Term::Kind::absent) return nullptr;
      operands.push_back(made);
    }
    const bool swaps = operands.size() == 2 && find_op(Name(term.text))->has(Trait::commutative) && draw(2);
    if (swaps) std::swap(operands[0], operands[1]);
    Attributes attributes;
    if (term.text == "Cast") attributes.set("to", Type(pick(types_), Shape()));
    auto made = builder_->op(Name(term.text), operands, attributes);
    if (made.ok() && !root && draw(3) == 0) builder_->region().add_output(*made, str("inner", values_.size()));
    return made.ok() ? *made : nullptr;
  }

  void compare(const Graph& before, const Graph& after) {
    const std::vector<Datum> inputs(inputs_.begin(), inputs_.end());
    const auto first = Interpreter::prepare(before), second = Interpreter::prepare(after);
    ASSERT_TRUE(first.ok()) << first.error().to_string() << print(before);
    ASSERT_TRUE(second.ok()) << second.error().to_string() << print(after);
    const auto wanted = (*first)->run(inputs), got = (*second)->run(inputs);
    if (!wanted.ok()) return;  // shapes that turn out not to go together
    ASSERT_TRUE(got.ok()) << got.error().to_string() << print(before) << print(after);
    for (size_t i = 0; i < wanted->size(); ++i) {
      const Tensor &a = (*wanted)[i].tensor(), &b = (*got)[i].tensor();
      std::string values;
      for (int64_t k = 0; k < std::min(a.size(), b.size()); ++k)
        values += str(" ", a.double_at(k), "/", b.double_at(k));
      EXPECT_TRUE(alike(a, b)) << print(before) << print(after) << a.to_string() << " against " << b.to_string()
                               << values;
      EXPECT_EQ(before.body().output_name(i), after.body().output_name(i));
    }
  }

  const Rule& rule_;
  const Term from_;
  std::mt19937_64 random_;
  const Rewrite rewrite_;
  const std::vector<ElementType> types_ = element_types();
  ElementType element_;
  std::optional<Builder> builder_;
  std::map<std::string, Value*> values_;
  std::vector<Tensor> inputs_;
};

class AlgebraRule : public ::testing::TestWithParam<size_t> {};

TEST_P(AlgebraRule, GivesTheSameBits) {
  const Rule& rule = algebra::rules()[GetParam()];
  const uint64_t seed = 1000 + GetParam();
  SCOPED_TRACE(str(rule.from, " -> ", rule.to, ", seed ", seed));
  RuleTester tester(rule, seed);
  int applied = 0;
  for (int i = 0; i < 3000 && applied < 200 && !HasFailure(); ++i) applied += tester.once();
  EXPECT_GE(applied, 20) << "the tester hardly ever makes what the rule looks for";
}

INSTANTIATE_TEST_SUITE_P(Table, AlgebraRule, ::testing::Range<size_t>(0, algebra::rules().size()));

TEST(AlgebraTerms, ReadsNamesNumbersAndOperators) {
  const auto term = algebra::parse_term("Where( true, Cast(x) as inner , _)");
  ASSERT_TRUE(term.ok());
  EXPECT_EQ(term->kind, Term::Kind::op);
  ASSERT_EQ(term->operands.size(), 3u);
  EXPECT_EQ(term->operands[0].kind, Term::Kind::truth);
  EXPECT_EQ(term->operands[1].name, "inner");
  EXPECT_EQ(term->operands[1].operands[0].kind, Term::Kind::value);
  EXPECT_EQ(term->operands[2].kind, Term::Kind::absent);
  EXPECT_EQ(algebra::parse_term("k1")->kind, Term::Kind::constant);
  const auto minus_zero = algebra::parse_term("-0");
  EXPECT_EQ(minus_zero->kind, Term::Kind::number);
  EXPECT_TRUE(std::signbit(minus_zero->number));
}

TEST(AlgebraTerms, SaysWhereATermIsWrong) {
  EXPECT_THAT(algebra::parse_term("Add(x, ").error().message(), HasSubstr("column 8: expected a name or a number"));
  EXPECT_THAT(algebra::parse_term("Add(x y)").error().message(), HasSubstr("column 7: expected ')'"));
  EXPECT_THAT(algebra::parse_term("x, y").error().message(), HasSubstr("column 2: expected the end"));
  const Rule rule{"x", "y", nullptr, ""};
  EXPECT_THAT(algebra::to_rewrite(rule).error().message(), HasSubstr("must begin with an operator"));
}

}  // namespace
}  // namespace tenon::testing
