#include <tenon/ops/sequence.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support/count_allocations.hpp>
#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using testing::error_of;
using testing::evaluated;
using testing::evaluated_all;
using ::testing::HasSubstr;
using testing::ints;
using testing::iota;

Datum sequence_of(std::vector<Datum> elements) { return Datum::sequence(std::move(elements), Type(kI64, Shape())); }
Datum evaluated_datum(Name op, std::vector<Datum> operands, const Attributes& attributes = {}) {
  return evaluated_all(op, std::move(operands), attributes)[0];
}
// The first element of each tensor.
std::vector<int64_t> firsts(const Datum& sequence) {
  std::vector<int64_t> out;
  for (const Datum& element : sequence.elements()) out.push_back(element.tensor().int_at(0));
  return out;
}

TEST(SequenceEvaluator, BuiltAndTakenApart) {
  const Datum sequence = evaluated_datum("SequenceConstruct", {ints({1}), ints({2, 3}), ints({4})});
  EXPECT_EQ(firsts(sequence), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_TRUE(evaluated("SequenceAt", {sequence, Tensor::scalar<int32_t>(-2)}).identical(ints({2, 3})));
  EXPECT_TRUE(evaluated("SequenceLength", {sequence}).identical(Tensor::scalar<int64_t>(3)));
  const Datum none = evaluated_datum("SequenceEmpty", {}, {{"dtype", Type(kI64, Shape())}});
  EXPECT_TRUE(evaluated("SequenceLength", {none}).identical(Tensor::scalar<int64_t>(0)));
}

TEST(SequenceEvaluator, InsertAndErase) {
  const Datum sequence = sequence_of({ints({0}), ints({1}), ints({2})});
  const auto inserted = [&](std::vector<Datum> at) {
    std::vector<Datum> operands{sequence, ints({9})};
    operands.insert(operands.end(), at.begin(), at.end());
    return firsts(evaluated_datum("SequenceInsert", operands));
  };
  EXPECT_EQ(inserted({}), (std::vector<int64_t>{0, 1, 2, 9}));
  EXPECT_EQ(inserted({Tensor::scalar<int64_t>(3)}), (std::vector<int64_t>{0, 1, 2, 9}));
  EXPECT_EQ(inserted({Tensor::scalar<int64_t>(0)}), (std::vector<int64_t>{9, 0, 1, 2}));
  EXPECT_EQ(inserted({Tensor::scalar<int64_t>(-1)}), (std::vector<int64_t>{0, 1, 9, 2}));
  EXPECT_EQ(firsts(evaluated_datum("SequenceErase", {sequence})), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(firsts(evaluated_datum("SequenceErase", {sequence, Tensor::scalar<int64_t>(-3)})),
            (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(firsts(sequence), (std::vector<int64_t>{0, 1, 2}));  // operands are never changed
}

TEST(SequenceEvaluator, ASequenceThatPassesThroughIsNotCopied) {
  const Datum sequence = sequence_of({ints({0}), ints({1})});
  const Datum passed = evaluated_datum("Identity", {sequence});
  EXPECT_EQ(passed.elements().data(), sequence.elements().data());
}

TEST(SequenceEvaluator, TakingOneElementDoesNotCopyTheOthers) {
  const Datum sequence = sequence_of(std::vector<Datum>(100000, ints({7})));
  const int64_t before = test::allocations.load();
  EXPECT_TRUE(evaluated("SequenceAt", {sequence, Tensor::scalar<int64_t>(3)}).identical(ints({7})));
  EXPECT_EQ(evaluated("SequenceLength", {sequence}).int_at(0), 100000);
  EXPECT_LT(test::allocations.load() - before, 10000);
}

TEST(SequenceEvaluator, PositionsOutOfRangeAreRefused) {
  const Datum sequence = sequence_of({ints({0}), ints({1})});
  EXPECT_THAT(error_of("SequenceAt", {sequence, Tensor::scalar<int64_t>(2)}),
              HasSubstr("position 2 is outside [-2, 1] for a sequence of 2 elements"));
  EXPECT_THAT(error_of("SequenceInsert", {sequence, ints({1}), Tensor::scalar<int64_t>(3)}),
              HasSubstr("a sequence of 2 elements"));
  EXPECT_THAT(error_of("SequenceErase", {sequence, Tensor::scalar<int64_t>(-3)}),
              HasSubstr("a sequence of 2 elements"));
  EXPECT_THAT(error_of("SequenceInsert", {sequence_of({}), ints({1}), Tensor::scalar<int64_t>(1)}),
              HasSubstr("position 1 is outside [0, 0] for a sequence of 0 elements"));
  EXPECT_THAT(error_of("SequenceAt", {sequence_of({}), Tensor::scalar<int64_t>(0)}),
              HasSubstr("position 0 of an empty sequence"));
  EXPECT_THAT(error_of("SequenceErase", {sequence_of({})}), HasSubstr("no element to erase"));
  EXPECT_THAT(error_of("ConcatFromSequence", {sequence_of({})}, {{"axis", 0}}), HasSubstr("nothing to concatenate"));
}

TEST(SequenceEvaluator, CutAndJoinedAgain) {
  for (const ElementType element : testing::kSampleTypes) {
    SCOPED_TRACE(element.to_string());
    const Tensor x = iota(element, {2, 5});
    const Datum pairs = evaluated_datum("SplitToSequence", {x, Tensor::scalar<int64_t>(2)}, {{"axis", 1}});
    ASSERT_EQ(pairs.elements().size(), 3u);
    EXPECT_EQ(pairs.elements()[2].tensor().dims(), (Dims{2, 1}));
    EXPECT_TRUE(evaluated("ConcatFromSequence", {pairs}, {{"axis", -1}}).identical(x));
    const Datum parts = evaluated_datum("SplitToSequence", {x, ints({0, 4, 1})}, {{"axis", 1}});
    EXPECT_TRUE(evaluated("ConcatFromSequence", {parts}, {{"axis", 1}}).identical(x));
    const Datum columns = evaluated_datum("SplitToSequence", {x}, {{"axis", 1}, {"keepdims", 0}});
    ASSERT_EQ(columns.elements()[0].tensor().dims(), (Dims{2}));
    EXPECT_TRUE(evaluated("ConcatFromSequence", {columns}, {{"axis", 1}, {"new_axis", 1}}).identical(x));
  }
  EXPECT_THAT(error_of("SplitToSequence", {ints({1, 2, 3}), ints({1, 1})}),
              HasSubstr("[1, 1] do not make up an axis of 3"));
  EXPECT_THAT(error_of("SplitToSequence", {ints({1, 2, 3}), Tensor::scalar<int64_t>(0)}), HasSubstr("length 0"));
  EXPECT_THAT(error_of("ConcatFromSequence", {sequence_of({ints({1}), iota(kI64, {1, 1})})}, {{"axis", 0}}),
              HasSubstr("does not fit behind i64[1]"));
}

TEST(SequenceEvaluator, Optionals) {
  EXPECT_TRUE(evaluated("OptionalHasElement", {ints({1})}).identical(Tensor::scalar(true)));
  EXPECT_TRUE(evaluated("OptionalHasElement", {}).identical(Tensor::scalar(false)));
  EXPECT_TRUE(evaluated("OptionalHasElement", {Datum()}).identical(Tensor::scalar(false)));
  EXPECT_TRUE(evaluated("OptionalGetElement", {ints({1})}).identical(ints({1})));
  EXPECT_TRUE(evaluated_datum("Optional", {}, {{"type", Type(kF32, Shape())}}).absent());
}

}  // namespace
}  // namespace tenon
