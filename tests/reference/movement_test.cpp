#include <tenon/ops/movement.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using testing::at;
using testing::error_of;
using testing::evaluated;
using testing::expect_elements;
using ::testing::HasSubstr;
using testing::ints;
using testing::iota;

class MovementEvaluator : public ::testing::TestWithParam<ElementType> {};
INSTANTIATE_TEST_SUITE_P(Types, MovementEvaluator, ::testing::ValuesIn(testing::kSampleTypes),
                         [](const auto& info) { return info.param.to_string(); });

std::string zero_of(ElementType element) { return testing::element_text(*Tensor::zeros(element, {1}), 0); }

TEST_P(MovementEvaluator, Transpose) {
  const Tensor x = iota(GetParam(), {2, 3, 4});
  expect_elements(evaluated("Transpose", {x}), {4, 3, 2}, [&](const Dims& i) { return at(x, {i[2], i[1], i[0]}); });
  expect_elements(evaluated("Transpose", {x}, {{"perm", Attribute::Integers{1, 2, 0}}}), {3, 4, 2}, [&](const Dims& i) {
    return at(x, {i[2], i[0], i[1]});
  });
}

TEST_P(MovementEvaluator, ConcatAndSplit) {
  const Tensor a = iota(GetParam(), {2, 3}), b = iota(GetParam(), {2, 1}), none = iota(GetParam(), {2, 0});
  const Tensor joined = evaluated("Concat", {a, none, b}, {{"axis", 1}});
  expect_elements(joined, {2, 4}, [&](const Dims& i) { return i[1] < 3 ? at(a, i) : at(b, {i[0], 0}); });
  const auto parts = testing::evaluated_all("Split", {joined, ints({3, 0, 1})}, {{"axis", -1}}, 3);
  EXPECT_TRUE(parts[0].tensor().identical(a));
  EXPECT_TRUE(parts[1].tensor().identical(none));
  EXPECT_TRUE(parts[2].tensor().identical(b));
  const auto even = testing::evaluated_all("Split", {iota(GetParam(), {7})}, {{"num_outputs", 4}}, 4);
  for (int64_t part = 0; part < 4; ++part) {
    expect_elements(even[part].tensor(), {part < 3 ? 2 : 1},
                    [&](const Dims& i) { return at(iota(GetParam(), {7}), {2 * part + i[0]}); });
  }
}

TEST_P(MovementEvaluator, Slice) {
  const Tensor x = iota(GetParam(), {5, 7});
  expect_elements(evaluated("Slice", {x, ints({1, -100}), ints({100, 5})}), {4, 5}, [&](const Dims& i) {
    return at(x, {i[0] + 1, i[1]});
  });
  expect_elements(evaluated("Slice", {x, ints({100}), ints({INT64_MIN}), ints({-1}), ints({-3})}), {5, 3},
                  [&](const Dims& i) {
                    return at(x, {i[0], 6 - 3 * i[1]});
                  });
  expect_elements(evaluated("Slice", {x, ints({2}), ints({5}), ints({0}), ints({INT64_MAX})}), {1, 7},
                  [&](const Dims& i) {
                    return at(x, {2, i[1]});
                  });
  EXPECT_EQ(evaluated("Slice", {x, ints({4}), ints({4})}).dims(), (Dims{0, 7}));
}

TEST_P(MovementEvaluator, Tile) {
  const Tensor x = iota(GetParam(), {2, 3});
  expect_elements(evaluated("Tile", {x, ints({2, 3})}), {4, 9}, [&](const Dims& i) {
    return at(x, {i[0] % 2, i[1] % 3});
  });
  EXPECT_EQ(evaluated("Tile", {x, ints({0, 1})}).dims(), (Dims{0, 3}));
}

TEST_P(MovementEvaluator, PadWithAConstant) {
  const Tensor x = iota(GetParam(), {2, 3});
  const Tensor fill =
      evaluated("Reshape", {evaluated("Slice", {iota(GetParam(), {2}), ints({1}), ints({2})}), ints({})});
  const auto inside = [&](const Dims& i, const std::string& outside) {
    const bool in = i[0] >= 1 && i[0] < 3 && i[1] < 2;
    return in ? at(x, {i[0] - 1, i[1] + 1}) : outside;
  };
  expect_elements(evaluated("Pad", {x, ints({1, -1, 1, 2}), fill}), {4, 4},
                  [&](const Dims& i) { return inside(i, at(fill, {})); });
  expect_elements(evaluated("Pad", {x, ints({1, -1, 1, 2})}), {4, 4},
                  [&](const Dims& i) { return inside(i, zero_of(GetParam())); });
  expect_elements(evaluated("Pad", {x, ints({2, 0}), Datum(), ints({-1})}), {2, 5}, [&](const Dims& i) {
    return i[1] < 2 ? zero_of(GetParam()) : at(x, {i[0], i[1] - 2});
  });
}

TEST_P(MovementEvaluator, PadFromInside) {
  const Tensor x = iota(GetParam(), {1, 3});
  const auto padded = [&](std::string mode, std::vector<int64_t> sources, int64_t before, int64_t after) {
    expect_elements(evaluated("Pad", {x, ints({0, before, 0, after})}, {{"mode", mode}}),
                    {1, static_cast<int64_t>(sources.size())}, [&](const Dims& i) {
                      return at(x, {0, sources[i[1]]});
                    });
  };
  padded("reflect", {2, 1, 0, 1, 2, 1}, 2, 1);
  padded("reflect", {1, 0, 1, 2, 1, 0, 1, 2}, 1, 4);  // further than the tensor is wide: back and forth
  padded("edge", {0, 0, 0, 1, 2, 2}, 2, 1);
  padded("wrap", {1, 2, 0, 1, 2, 0}, 2, 1);
  padded("wrap", {1, 2, 1, 2}, -1, 2);  // cut first, then repeated
  padded("edge", {0, 1}, 0, -1);
}

TEST_P(MovementEvaluator, Trilu) {
  const Tensor x = iota(GetParam(), {2, 3, 4});
  for (const int64_t k : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{2}, INT64_MAX}) {
    for (const bool upper : {false, true}) {
      expect_elements(evaluated("Trilu", {x, Tensor::scalar(k)}, {{"upper", upper ? 1 : 0}}), {2, 3, 4},
                      [&](const Dims& i) {
                        const int64_t diagonal = i[2] - i[1];
                        return (upper ? diagonal >= k : diagonal <= k) ? at(x, i) : zero_of(GetParam());
                      });
    }
  }
}

TEST_P(MovementEvaluator, DepthToSpaceAndBack) {
  const Tensor x = iota(GetParam(), {1, 8, 2, 3});
  const Tensor y = evaluated("DepthToSpace", {x}, {{"blocksize", 2}});
  expect_elements(y, {1, 2, 4, 6}, [&](const Dims& i) {
    return at(x, {0, (i[2] % 2 * 2 + i[3] % 2) * 2 + i[1], i[2] / 2, i[3] / 2});
  });
  EXPECT_TRUE(evaluated("SpaceToDepth", {y}, {{"blocksize", 2}}).identical(x));
  expect_elements(evaluated("DepthToSpace", {x}, {{"blocksize", 2}, {"mode", "CRD"}}), {1, 2, 4, 6},
                  [&](const Dims& i) {
                    return at(x, {0, i[1] * 4 + i[2] % 2 * 2 + i[3] % 2, i[2] / 2, i[3] / 2});
                  });
}

TEST_P(MovementEvaluator, ReverseSequence) {
  const Tensor x = iota(GetParam(), {4, 3, 2});
  const std::vector<int64_t> lengths{0, 4, 2};
  expect_elements(evaluated("ReverseSequence", {x, ints(lengths)}), {4, 3, 2}, [&](const Dims& i) {
    return at(x, {i[0] < lengths[i[1]] ? lengths[i[1]] - 1 - i[0] : i[0], i[1], i[2]});
  });
  const Attributes swapped{{"batch_axis", 0}, {"time_axis", 1}};
  expect_elements(evaluated("ReverseSequence", {x, ints({1, 2, 3, 0})}, swapped), {4, 3, 2}, [&](const Dims& i) {
    const int64_t length = std::vector<int64_t>{1, 2, 3, 0}[i[0]];
    return at(x, {i[0], i[1] < length ? length - 1 - i[1] : i[1], i[2]});
  });
}

TEST_P(MovementEvaluator, CenterCropPad) {
  const Tensor x = iota(GetParam(), {5, 4});
  expect_elements(evaluated("CenterCropPad", {x, ints({2, 7})}), {2, 7}, [&](const Dims& i) {
    return i[1] < 1 || i[1] > 4 ? zero_of(GetParam()) : at(x, {i[0] + 1, i[1] - 1});
  });
}

TEST(MovementEvaluatorErrors, NameTheNumbers) {
  EXPECT_THAT(error_of("ReverseSequence", {iota(kF32, {2, 1}), ints({3})}),
              HasSubstr("sequence_lens[0] is 3, outside [0, 2]"));
  EXPECT_THAT(error_of("Pad", {iota(kF32, {0}), ints({1, 1})}, {{"mode", "edge"}}),
              HasSubstr("nothing is left of axis 0"));
  EXPECT_THAT(error_of("Pad", {iota(kF32, {2}), ints({1, 1}), iota(kF32, {2})}), HasSubstr("must be one element"));
}

// Random permutations of random shapes, against the definition; large enough for squares and several tasks.
TEST(MovementEvaluatorRandom, Transpose) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    const size_t rank = random() % 6;
    Dims dims(rank);
    for (int64_t& dim : dims) dim = 1 + random() % (rank > 3 ? 6 : 40);
    Attribute::Integers perm(rank);
    for (size_t d = 0; d < rank; ++d) perm[d] = static_cast<int64_t>(d);
    std::shuffle(perm.begin(), perm.end(), random);
    const Tensor x = iota(kU32, dims);
    SCOPED_TRACE(str(x, perm));
    Dims to(rank);
    for (size_t d = 0; d < rank; ++d) to[d] = dims[perm[d]];
    expect_elements(evaluated("Transpose", {x}, {{"perm", perm}}), to, [&](const Dims& i) {
      Dims index(rank);
      for (size_t d = 0; d < rank; ++d) index[perm[d]] = i[d];
      return at(x, index);
    });
  }
}

}  // namespace
}  // namespace tenon
