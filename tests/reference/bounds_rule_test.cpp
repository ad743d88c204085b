// Bounds rules compared with the reference, for every operator that has one, on random instances: elements outside the
// boxes have no effect, the ends of exact boxes do, expressions agree with numbers, and operators run on their parts. A
// new operator without an instance to draw fails by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include <op-cases/op_cases.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon/ir/bounds_rule.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon {
namespace {

using testing::DrawnOp;
using testing::DrawnOperand;
using testing::pick;

constexpr int kInstances = 40;  // of each operator

// ---- Boxes of tensors ----------------------------------------------------------------------------------------------

void copy_element(const Tensor& from, int64_t source, Tensor& to, int64_t target) {
  const int bits = from.element().bits();
  if (from.element().is_string()) {
    to.mutable_as<std::string>()[static_cast<size_t>(target)] = from.as<std::string>()[static_cast<size_t>(source)];
  } else if (bits <= 64) {
    store_bits(to.mutable_data(), bits, target, load_bits(from.data(), bits, source));
  } else {
    std::copy_n(from.data() + source * bits / 8, bits / 8, to.mutable_data() + target * bits / 8);
  }
}

// visit(flat index, index) for every element of a tensor of `dims`.
template <class Visit>
void for_each_index(const Dims& dims, Visit&& visit) {
  const int64_t count = *element_count(dims);
  Dims index(dims.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) index[d] = rest % dims[d];
    visit(i, index);
  }
}

bool contains(const StaticBox& box, const Dims& index) {
  for (size_t d = 0; d < box.size(); ++d) {
    if (index[d] < box[d].min || index[d] > box[d].max) return false;
  }
  return true;
}

Tensor cropped(const Tensor& x, const StaticBox& box) {
  Dims dims;
  for (const StaticRange& range : box) dims.push_back(range.extent());
  Tensor out = *Tensor::zeros(x.element(), dims);
  int64_t next = 0;
  for_each_index(x.dims(), [&](int64_t i, const Dims& index) {
    if (contains(box, index)) copy_element(x, i, out, next++);
  });
  return out;
}

// `x` with elements from `other` where `replace` holds.
template <class Replace>
Tensor replaced_where(const Tensor& x, const Tensor& other, Replace&& replace) {
  Tensor out = *Tensor::zeros(x.element(), x.dims());
  for_each_index(x.dims(), [&](int64_t i, const Dims& index) { copy_element(replace(index) ? other : x, i, out, i); });
  return out;
}

// Elements other than those of `x`: drawn again, or values that no computation hides.
Tensor disturbed(std::mt19937& random, const DrawnOperand& operand, const Tensor& x, int64_t way) {
  Tensor out = operand.draw(random);
  if (!x.element().is_float() || operand.finite) return out;
  constexpr double kLoud[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
  for (int64_t i = 0; way % 3 != 0 && i < out.size(); ++i) out.set_double(i, kLoud[way % 3 - 1]);
  return out;
}

std::string text(const StaticBox& box) {
  std::string out = "{";
  for (const StaticRange& range : box) out += str("[", range.min, ",", range.max, "]");
  return out + "}";
}

StaticBox random_box(std::mt19937& random, const Dims& dims) {
  StaticBox box;
  // Half of them cut one dim only: what operators of several axes run on.
  const int64_t rank = static_cast<int64_t>(dims.size()), cut = pick(random, 0, 1) ? pick(random, 0, rank) : rank;
  for (const int64_t dim : dims) {
    const int64_t a = pick(random, 0, dim - 1), b = pick(random, 0, dim - 1);
    const bool whole = cut < rank && cut != static_cast<int64_t>(box.size());
    box.push_back(whole ? StaticRange{0, dim - 1} : StaticRange{std::min(a, b), std::max(a, b)});
  }
  return box;
}

// ---- One instance of an operator -----------------------------------------------------------------------------------

class Instance {
 public:
  Instance(Name name, DrawnOp drawn, std::mt19937& random) : name_(name), drawn_(std::move(drawn)) {
    for (const DrawnOperand& operand : drawn_.operands) {
      operands_.push_back(operand.draw ? Datum(operand.draw(random)) : Datum());
    }
  }

  const Attributes& attributes() const { return drawn_.attributes; }
  const std::vector<Datum>& operands() const { return operands_; }
  const DrawnOperand& operand(size_t i) const { return drawn_.operands[i]; }
  size_t results() const { return drawn_.results; }
  bool varies(size_t i) const { return !operands_[i].absent() && !drawn_.operands[i].constant; }

  Result<std::vector<Datum>> evaluated(const std::vector<Datum>& operands) const {
    return evaluate(name_, operands, drawn_.attributes, drawn_.results);
  }
  // All varying operands, drawn again.
  std::vector<Datum> redrawn(std::mt19937& random) const {
    std::vector<Datum> out = operands_;
    for (size_t i = 0; i < out.size(); ++i) {
      if (varies(i)) out[i] = Datum(drawn_.operands[i].draw(random));
    }
    return out;
  }

  // The operator in a graph, with the extents of what varies as numbers or as symbols "o0_1" (operand 0, dim 1).
  struct InGraph {
    std::unique_ptr<Graph> graph;
    Op* op = nullptr;
    SymbolValues extents;
  };
  Result<InGraph> in_graph(bool symbolic) const {
    InGraph out;
    out.graph = std::make_unique<Graph>("bounds");
    Builder builder(out.graph->body());
    std::vector<Value*> values;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].absent()) {
        values.push_back(nullptr);
      } else if (!varies(i)) {
        values.push_back(builder.constant(operands_[i].tensor()));
      } else {
        const Tensor& tensor = operands_[i].tensor();
        values.push_back(out.graph->body().add_input(str("x", i), Type(tensor.element(), shape_of(i, symbolic, out))));
      }
    }
    TENON_TRY(results, builder.ops(name_, values, drawn_.results, drawn_.attributes));
    out.op = results[0]->producer();
    return out;
  }

 private:
  Shape shape_of(size_t i, bool symbolic, InGraph& out) const {
    const Dims& dims = operands_[i].tensor().dims();
    std::vector<Dim> shape;
    for (size_t d = 0; d < dims.size(); ++d) {
      const std::string symbol = str("o", i, "_", d);
      // An extent of 1 may be there to be broadcast, which no symbol says.
      const bool named = symbolic && dims[d] != 1;
      if (named) out.extents[symbol] = dims[d];
      shape.push_back(named ? Dim(Expr::symbol(symbol)) : Dim(dims[d]));
    }
    return Shape(std::move(shape));
  }

  Name name_;
  DrawnOp drawn_;
  std::vector<Datum> operands_;
};

// What is read of one operand, in numbers.
struct ReadBox {
  StaticBox box;
  std::vector<bool> exact;
  bool nothing = false;

  bool empty() const {
    return nothing || std::ranges::any_of(box, [](const StaticRange& range) { return range.max < range.min; });
  }
};

ReadBox in_numbers(const OperandBounds& bounds, const Dims& dims, const SymbolValues& values) {
  ReadBox out;
  out.nothing = bounds.kind == OperandBounds::Kind::nothing;
  for (size_t d = 0; d < dims.size(); ++d) {
    const DimBounds* dim = bounds.kind == OperandBounds::Kind::box ? &bounds.dims[d] : nullptr;
    if (!dim || dim->whole) {
      out.box.push_back({0, dims[d] - 1});
    } else {
      const auto min = dim->min.evaluate(values), max = dim->max.evaluate(values);
      EXPECT_TRUE(min.ok() && max.ok()) << str(dim->min, " .. ", dim->max);
      out.box.push_back({min.ok() ? *min : 0, max.ok() ? *max : -1});
    }
    out.exact.push_back(dim && dim->exact);
  }
  return out;
}

std::vector<ReadBox> in_numbers(const Bounds& bounds, const Instance& instance, const SymbolValues& values = {}) {
  std::vector<ReadBox> out;
  for (size_t i = 0; i < bounds.operands.size(); ++i) {
    const Datum& operand = instance.operands()[i];
    out.push_back(in_numbers(bounds.operands[i], operand.absent() ? Dims() : operand.tensor().dims(), values));
  }
  return out;
}

// ---- The checks ----------------------------------------------------------------------------------------------------

// One box of one result of an instance.
struct Asked {
  const Instance& instance;
  size_t result;
  Dims dims;
  StaticBox box;
};

// Elements outside the boxes are replaced, and the part must keep its bits.
void expect_sound(const Asked& asked, const std::vector<ReadBox>& reads, std::mt19937& random) {
  const Instance& instance = asked.instance;
  const auto whole = instance.evaluated(instance.operands());
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();
  for (int64_t way = 0; way < 3; ++way) {
    std::vector<Datum> operands = instance.operands();
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!instance.varies(i)) continue;
      const Tensor& x = instance.operands()[i].tensor();
      operands[i] = replaced_where(x, disturbed(random, instance.operand(i), x, way), [&](const Dims& index) {
        return reads[i].nothing || !contains(reads[i].box, index);
      });
    }
    const auto made = instance.evaluated(operands);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    EXPECT_TRUE(cropped((*made)[asked.result].tensor(), asked.box)
                    .identical(cropped((*whole)[asked.result].tensor(), asked.box)))
        << "what lies outside the boxes matters, disturbed in way " << way;
  }
}

// Whether the part changes for some data when the elements of operand `i` at position `at` of dim `d`, in the box,
// change.
bool matters(const Asked& asked, const ReadBox& read, size_t i, size_t d, int64_t at, std::mt19937& random) {
  const Instance& instance = asked.instance;
  for (int64_t attempt = 0; attempt < 80; ++attempt) {
    std::vector<Datum> operands = instance.redrawn(random);
    const auto before = instance.evaluated(operands);
    const Tensor x = operands[i].tensor();
    operands[i] = replaced_where(x, disturbed(random, instance.operand(i), x, attempt),
                                 [&](const Dims& index) { return index[d] == at && contains(read.box, index); });
    const auto after = instance.evaluated(operands);
    if (!before.ok() || !after.ok()) continue;
    if (!cropped((*after)[asked.result].tensor(), asked.box)
             .identical(cropped((*before)[asked.result].tensor(), asked.box))) {
      return true;
    }
  }
  return false;
}

void expect_tight(const Asked& asked, const std::vector<ReadBox>& reads, std::mt19937& random) {
  for (size_t i = 0; i < reads.size(); ++i) {
    if (!asked.instance.varies(i) || reads[i].empty()) continue;
    for (size_t d = 0; d < reads[i].box.size(); ++d) {
      if (!reads[i].exact[d]) continue;
      const StaticRange& range = reads[i].box[d];
      for (const int64_t at : std::set{range.min, range.max}) {
        EXPECT_TRUE(matters(asked, reads[i], i, d, at, random))
            << "position " << at << " of dim " << d << " of operand " << i << " does not matter, its box is "
            << text(reads[i].box);
      }
    }
  }
}

// `wide` must contain `narrow`, and be equal to it where it is stated to be exact.
void expect_holds(const std::vector<ReadBox>& wide, const std::vector<ReadBox>& narrow, const char* what) {
  for (size_t i = 0; i < narrow.size(); ++i) {
    if (narrow[i].empty()) continue;
    EXPECT_FALSE(wide[i].nothing) << what << ": operand " << i << " is read";
    for (size_t d = 0; d < narrow[i].box.size(); ++d) {
      const StaticRange &w = wide[i].box[d], &n = narrow[i].box[d];
      EXPECT_TRUE(w.min <= n.min && n.max <= w.max) << what << ": dim " << d << " of operand " << i << " is "
                                                    << text(wide[i].box) << ", by numbers " << text(narrow[i].box);
      if (wide[i].exact[d] && narrow[i].exact[d]) {
        EXPECT_EQ(w, n) << what << ": dim " << d << " of operand " << i << " is exact";
      }
    }
  }
}

// The same box as symbols with these values, and the same extents as symbols.
void expect_expressions(const Asked& asked, const std::vector<ReadBox>& reads) {
  Box box;
  SymbolValues values;
  for (size_t d = 0; d < asked.box.size(); ++d) {
    box.push_back({Expr::symbol(str("min", d)), Expr::symbol(str("max", d))});
    values[str("min", d)] = asked.box[d].min;
    values[str("max", d)] = asked.box[d].max;
  }
  for (const bool symbolic : {false, true}) {
    auto placed = asked.instance.in_graph(symbolic);
    if (symbolic && !placed.ok()) continue;  // extents that must be equal stand as different symbols
    ASSERT_TRUE(placed.ok()) << placed.error().to_string();
    const Type& type = placed->op->result(asked.result)->type();
    if (!type.is_tensor() || !type.shape().ranked()) continue;
    const TypeSource types;
    const auto bounds = operand_bounds(StaticInferContext(*placed->op, types), asked.result, type.shape(), box);
    ASSERT_TRUE(bounds.ok()) << bounds.error().to_string();
    SymbolValues all = values;
    all.insert(placed->extents.begin(), placed->extents.end());
    expect_holds(in_numbers(*bounds, asked.instance, all), reads, symbolic ? "symbolic extents" : "a symbolic box");
  }
}

// Runs the operator on crops; false if it reports that it cannot.
bool expect_part(const Asked& asked, const InferContext& context, bool same_bits, Name name) {
  const auto part = sub_box_op(context, asked.result, asked.dims, asked.box);
  if (!part.ok()) {
    EXPECT_EQ(part.error().code(), Code::unsupported) << part.error().to_string();
    return false;
  }
  std::vector<Datum> operands = asked.instance.operands();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].absent()) operands[i] = cropped(operands[i].tensor(), part->operands[i]);
  }
  for (const auto& [i, tensor] : part->replaced) {
    operands.resize(std::max(operands.size(), i + 1));
    operands[i] = tensor;
  }
  const auto made = evaluate(name, operands, part->attributes, asked.instance.results());
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  const auto whole = asked.instance.evaluated(asked.instance.operands());
  if (!made.ok() || !whole.ok()) return true;
  const Tensor &y = (*made)[asked.result].tensor(), expected = cropped((*whole)[asked.result].tensor(), asked.box);
  EXPECT_EQ(y.dims(), expected.dims()) << "the part has another shape";
  if (same_bits) {
    EXPECT_TRUE(y.identical(expected)) << "the part has other bits than the whole";
  }
  return true;
}

struct Outcome {
  bool ran_in_part = false;
};

void check_result(const Instance& instance, Name name, size_t result, std::mt19937& random, Outcome& outcome) {
  const auto placed = instance.in_graph(false);
  ASSERT_TRUE(placed.ok()) << placed.error().to_string();
  const auto whole = instance.evaluated(instance.operands());
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();
  if (!(*whole)[result].is_tensor() || (*whole)[result].tensor().size() == 0) return;
  const Dims dims = (*whole)[result].tensor().dims();
  const Asked asked{instance, result, dims, random_box(random, dims)};
  SCOPED_TRACE(str("box ", text(asked.box), " of result ", result, ": ", (*whole)[result].tensor()));
  const TypeSource types;
  const StaticInferContext context(*placed->op, types);
  const auto bounds = operand_bounds(context, result, Shape(dims), to_box(asked.box));
  ASSERT_TRUE(bounds.ok()) << bounds.error().to_string();
  const std::vector<ReadBox> reads = in_numbers(*bounds, instance);
  expect_sound(asked, reads, random);
  expect_tight(asked, reads, random);
  expect_expressions(asked, reads);
  const bool is_part = cropped((*whole)[result].tensor(), asked.box).dims() != dims;
  outcome.ran_in_part |= expect_part(asked, context, bounds->same_bits, name) && is_part;
}

// ---- All operators -------------------------------------------------------------------------------------------------

std::vector<std::string> ruled_ops() {
  std::vector<std::string> names;
  for (const OpDef* def : all_ops()) {
    if (def->bounds_fn()) names.emplace_back(def->name().view());
  }
  return names;
}

class BoundsRuleOf : public ::testing::TestWithParam<std::string> {};

TEST_P(BoundsRuleOf, HoldsAgainstTheReference) {
  const std::string& name = GetParam();
  const auto [first, last] = testing::op_cases().equal_range(name);
  ASSERT_NE(first, last) << name << " has a bounds rule and no instance to draw: add one to op_cases.cpp";
  Outcome outcome;
  for (auto entry = first; entry != last; ++entry) {
    for (uint32_t seed = 0; seed < kInstances; ++seed) {
      SCOPED_TRACE(str("case ", std::distance(first, entry), " of ", name, ", seed ", seed));
      std::mt19937 random(seed * 7919 + 17);
      const Instance instance(name, entry->second(random), random);
      for (size_t result = 0; result < instance.results(); ++result) {
        check_result(instance, name, result, random, outcome);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
      }
    }
  }
  const bool runs = find_op(name)->bounds_rule().sub_box != nullptr;
  EXPECT_EQ(outcome.ran_in_part, runs) << (runs ? "never ran on a part" : "");
}

INSTANTIATE_TEST_SUITE_P(Ops, BoundsRuleOf, ::testing::ValuesIn(ruled_ops()), [](const auto& info) {
  std::string out = info.param;
  std::ranges::replace(out, '.', '_');
  return out;
});

// Operators that cannot be stages of a pipeline, by design: their values are not tensors, they run regions, or their
// results depend on more than their operands.
TEST(BoundsRule, IsThereForAllButThese) {
  const std::set<std::string> none{"Bernoulli",
                                   "ConcatFromSequence",
                                   "If",
                                   "Loop",
                                   "Multinomial",
                                   "Optional",
                                   "OptionalGetElement",
                                   "OptionalHasElement",
                                   "RandomNormal",
                                   "RandomNormalLike",
                                   "RandomUniform",
                                   "RandomUniformLike",
                                   "Scan",
                                   "SequenceAt",
                                   "SequenceConstruct",
                                   "SequenceEmpty",
                                   "SequenceErase",
                                   "SequenceInsert",
                                   "SequenceLength",
                                   "SequenceMap",
                                   "SplitToSequence",
                                   "ai.onnx.preview.FlexAttention",
                                   "snippet.Subgraph"};
  for (const OpDef* def : all_ops()) {
    const std::string name(def->name().view());
    EXPECT_EQ(!def->bounds_fn(), none.contains(name))
        << name << ": state in its definition which part of its operands it reads, whole_operands() if all";
  }
}

// ---- Asking --------------------------------------------------------------------------------------------------------

struct Asker {
  Graph graph;
  Op* op;
  TypeSource types;
  explicit Asker(Name name, Dims dims = {4, 6}) {
    Builder builder(graph.body());
    op = (*builder.op(name, {graph.body().add_input("x", Type(kF32, Shape(dims)))}))->producer();
  }
  Result<Bounds> ask(Box box, size_t result = 0) const {
    return operand_bounds(StaticInferContext(*op, types), result, op->result(0)->type().shape(), box);
  }
};

TEST(BoundsRule, OfSoftmaxIsWholeAlongItsAxis) {
  const auto bounds = Asker("Softmax").ask({{1, 2}, {3, 3}});
  ASSERT_TRUE(bounds.ok()) << bounds.error().to_string();
  EXPECT_EQ(bounds->operands[0].dims[0], (DimBounds{Expr(1), Expr(2)}));
  EXPECT_EQ(bounds->operands[0].dims[1], (DimBounds{Expr(0), Expr(5), true}));
  EXPECT_EQ(bounds->splits, (std::vector<bool>{true, false}));
}

TEST(BoundsRule, RefusesWhatIsNoStageAndBoxesThatDoNotFit) {
  const auto none = Asker("RandomNormalLike").ask({{0, 3}, {0, 5}});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Code::unsupported);
  EXPECT_NE(none.error().to_string().find("RandomNormalLike"), std::string::npos);
  EXPECT_FALSE(Asker("Relu").ask({{0, 3}}).ok());
  EXPECT_FALSE(Asker("Relu").ask({{0, 3}, {0, 5}}, 1).ok());
}

// 2^32 outputs of four elements: 2^30 share each tap, and evaluating them one by one would take minutes.
TEST(BoundsRule, OfResizeIsQuickHoweverManyOutputsShareATap) {
  const auto graph = parse_graph(
      "graph @g(%x: f32[4]) -> %y { %s = Constant {value = dense<i64[1]: 4294967296>} %y = Resize %x, _, _, %s }");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const Op& op = *(*graph)->body().output(0)->producer();
  const TypeSource types;
  const StaticInferContext context(op, types);
  const auto reads = [&](int64_t begin, int64_t end) {
    const auto bounds = operand_bounds(context, 0, op.result(0)->type().shape(), {{begin, end}});
    EXPECT_TRUE(bounds.ok()) << bounds.error().to_string();
    return bounds->operands[0].dims[0];
  };
  constexpr int64_t kShare = int64_t{1} << 30;
  EXPECT_EQ(reads(0, 4 * kShare - 1), (DimBounds{Expr(0), Expr(3), false, false}));
  EXPECT_EQ(reads(4 * kShare - 2, 4 * kShare - 1), (DimBounds{Expr(3), Expr(3)}));
  const DimBounds second = reads(kShare, 2 * kShare - 1);
  EXPECT_LE(second.min.constant(), 1);
  EXPECT_GE(second.max.constant(), 1);
  EXPECT_FALSE(second.exact);
}

TEST(BoundsRule, RunsOnTheWholeWhateverTheOperator) {
  const Asker unique("NonZero");
  const StaticInferContext context(*unique.op, unique.types);
  const auto part = sub_box_op(context, 0, {2, 24}, {{0, 1}, {0, 23}});
  ASSERT_TRUE(part.ok()) << part.error().to_string();
  EXPECT_EQ(part->operands[0], (StaticBox{{0, 3}, {0, 5}}));
  EXPECT_EQ(sub_box_op(context, 0, {2, 24}, {{0, 1}, {0, 22}}).error().code(), Code::unsupported);
  EXPECT_EQ(sub_box_op(context, 0, {2, 24}, {{0, 1}, {3, 24}}).error().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace tenon
