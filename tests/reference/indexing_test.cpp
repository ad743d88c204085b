#include <tenon/ops/indexing.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using testing::at;
using testing::error_of;
using testing::evaluated;
using testing::evaluated_all;
using testing::expect_elements;
using ::testing::HasSubstr;
using testing::ints;
using testing::iota;

class IndexingEvaluator : public ::testing::TestWithParam<ElementType> {};
INSTANTIATE_TEST_SUITE_P(Types, IndexingEvaluator, ::testing::ValuesIn(testing::kSampleTypes),
                         [](const auto& info) { return info.param.to_string(); });

Tensor indices(Dims dims, const std::vector<int64_t>& values) { return Tensor::of<int64_t>(std::move(dims), values); }

TEST_P(IndexingEvaluator, Gather) {
  const Tensor x = iota(GetParam(), {3, 4, 2});
  const std::vector<int64_t> taken{1, 3, 3, 0};
  const Tensor wanted = indices({2, 2}, {1, -1, 3, -4});
  expect_elements(evaluated("Gather", {x, wanted}, {{"axis", 1}}), {3, 2, 2, 2}, [&](const Dims& i) {
    return at(x, {i[0], taken[i[1] * 2 + i[2]], i[3]});
  });
  expect_elements(evaluated("Gather", {x, Tensor::scalar<int32_t>(-1)}), {4, 2}, [&](const Dims& i) {
    return at(x, {2, i[0], i[1]});
  });
  EXPECT_EQ(evaluated("Gather", {x, ints({})}).dims(), (Dims{0, 4, 2}));
}

TEST_P(IndexingEvaluator, GatherElements) {
  const Tensor x = iota(GetParam(), {3, 4});
  const std::vector<int64_t> taken{2, 1, 0, 1, 2, 0};
  expect_elements(evaluated("GatherElements", {x, indices({2, 3}, {2, 1, 0, -2, -1, -3})}), {2, 3}, [&](const Dims& i) {
    return at(x, {taken[i[0] * 3 + i[1]], i[1]});
  });
  expect_elements(evaluated("GatherElements", {x, indices({3, 1}, {3, 0, -1})}, {{"axis", -1}}), {3, 1},
                  [&](const Dims& i) {
                    return at(x, {i[0], std::vector<int64_t>{3, 0, 3}[i[0]]});
                  });
}

TEST_P(IndexingEvaluator, GatherND) {
  const Tensor x = iota(GetParam(), {2, 3, 4});
  expect_elements(evaluated("GatherND", {x, indices({2, 2}, {1, 2, 0, -3})}), {2, 4}, [&](const Dims& i) {
    return i[0] == 0 ? at(x, {1, 2, i[1]}) : at(x, {0, 0, i[1]});
  });
  expect_elements(evaluated("GatherND", {x, indices({2, 1, 2}, {2, 3, 0, 1})}, {{"batch_dims", 1}}), {2, 1},
                  [&](const Dims& i) {
                    return i[0] == 0 ? at(x, {0, 2, 3}) : at(x, {1, 0, 1});
                  });
}

TEST_P(IndexingEvaluator, ScatterReplaces) {
  const Tensor x = iota(GetParam(), {3, 3}), updates = iota(GetParam(), {1, 2});
  expect_elements(evaluated("ScatterElements", {x, indices({1, 2}, {2, -3}), updates}), {3, 3}, [&](const Dims& i) {
    if (i == Dims{2, 0}) return at(updates, {0, 0});
    return i == Dims{0, 1} ? at(updates, {0, 1}) : at(x, i);
  });
  const Tensor rows = iota(GetParam(), {2, 3});
  expect_elements(evaluated("ScatterND", {x, indices({2, 1}, {2, 0}), rows}), {3, 3}, [&](const Dims& i) {
    if (i[0] == 1) return at(x, i);
    return at(rows, {i[0] == 2 ? 0 : 1, i[1]});
  });
}

TEST_P(IndexingEvaluator, TensorScatter) {
  const Tensor cache = iota(GetParam(), {2, 4, 3}), update = iota(GetParam(), {2, 2, 3});
  const auto expect = [&](const Tensor& y, std::vector<int64_t> starts) {
    expect_elements(y, {2, 4, 3}, [&](const Dims& i) {
      const int64_t step = (i[1] - starts[i[0]] + 4) % 4;
      return step < 2 ? at(update, {i[0], step, i[2]}) : at(cache, i);
    });
  };
  expect(evaluated("TensorScatter", {cache, update, ints({1, 2})}), {1, 2});
  expect(evaluated("TensorScatter", {cache, update}), {0, 0});
  expect(evaluated("TensorScatter", {cache, update, ints({3, 0})}, {{"mode", "circular"}}), {3, 0});
}

TEST_P(IndexingEvaluator, CompressAndOneHot) {
  const Tensor x = iota(GetParam(), {3, 2});
  const Tensor condition = Tensor::of<bool>({3}, {false, true, true});
  expect_elements(evaluated("Compress", {x, condition}, {{"axis", 0}}), {2, 2}, [&](const Dims& i) {
    return at(x, {i[0] + 1, i[1]});
  });
  expect_elements(evaluated("Compress", {x, condition}), {2}, [&](const Dims& i) {
    return at(x, {(i[0] + 1) / 2, (i[0] + 1) % 2});
  });
  const Tensor values = iota(GetParam(), {2});
  expect_elements(evaluated("OneHot", {ints({0, -1, 3, -4}), Tensor::scalar(3.0f), values}, {{"axis", 0}}), {3, 4},
                  [&](const Dims& i) {
                    return at(values, {i == Dims{0, 0} || i == Dims{2, 1} ? 1 : 0});
                  });
}

TEST_P(IndexingEvaluator, NonZero) {
  const Tensor x = iota(GetParam(), {2, 2});  // zero at [0,0] but for strings; every second one of booleans
  const Tensor y = evaluated("NonZero", {x});
  if (GetParam().is_string())
    EXPECT_TRUE(y.identical(indices({2, 4}, {0, 0, 1, 1, 0, 1, 0, 1})));
  else if (GetParam().is_bool())
    EXPECT_TRUE(y.identical(indices({2, 2}, {0, 1, 1, 1})));
  else
    EXPECT_TRUE(y.identical(indices({2, 3}, {0, 1, 1, 1, 0, 1})));
}

TEST(IndexingEvaluatorValues, NonZeroLooksAtValues) {
  EXPECT_TRUE(evaluated("NonZero", {Tensor::of<float>({3}, {-0.0f, NAN, 0.0f})}).identical(indices({1, 1}, {1})));
  EXPECT_EQ(evaluated("NonZero", {Tensor::of<float>({}, {1.0f})}).dims(), (Dims{0, 1}));
}

TEST(IndexingEvaluatorValues, ScatterReduces) {
  const auto scattered = [](const Tensor& x, std::string reduction, const Tensor& updates) {
    return evaluated("ScatterElements", {x, ints({1, 1, -1}), updates}, {{"reduction", reduction}});
  };
  const Tensor x = Tensor::of<float>({3}, {1, 2, 3}), updates = Tensor::of<float>({3}, {5, -6, 10});
  EXPECT_TRUE(scattered(x, "add", updates).identical(Tensor::of<float>({3}, {1, 1, 13})));
  EXPECT_TRUE(scattered(x, "mul", updates).identical(Tensor::of<float>({3}, {1, -60, 30})));
  EXPECT_TRUE(scattered(x, "max", updates).identical(Tensor::of<float>({3}, {1, 5, 10})));
  EXPECT_TRUE(scattered(x, "min", updates).identical(Tensor::of<float>({3}, {1, -6, 3})));
  const Tensor bytes = Tensor::of<int8_t>({3}, {1, 100, 100}), more = Tensor::of<int8_t>({3}, {100, 0, 3});
  EXPECT_TRUE(scattered(bytes, "add", more).identical(Tensor::of<int8_t>({3}, {1, -56, 103})));
  EXPECT_TRUE(scattered(bytes, "mul", more).identical(Tensor::of<int8_t>({3}, {1, 0, 44})));
  const Tensor wide = Tensor::of<int64_t>({3}, {0, INT64_MAX, 1}), ones = Tensor::of<int64_t>({3}, {1, 0, 2});
  EXPECT_TRUE(scattered(wide, "add", ones).identical(Tensor::of<int64_t>({3}, {0, INT64_MIN, 3})));
  EXPECT_TRUE(evaluated("ScatterND",
                        {Tensor::of<f16>({2}, {f16(1.0f), f16(2.0f)}), indices({2, 1}, {0, 0}),
                         Tensor::of<f16>({2}, {f16(3.0f), f16(4.0f)})},
                        {{"reduction", "add"}})
                  .identical(Tensor::of<f16>({2}, {f16(8.0f), f16(2.0f)})));
}

TEST(IndexingEvaluatorValues, Unique) {
  const Tensor x = Tensor::of<float>({6}, {2, 1, 1, 3, 4, 3});
  auto y = evaluated_all("Unique", {x}, {}, 4);
  EXPECT_TRUE(y[0].tensor().identical(Tensor::of<float>({4}, {1, 2, 3, 4})));
  EXPECT_TRUE(y[1].tensor().identical(ints({1, 0, 3, 4})));
  EXPECT_TRUE(y[2].tensor().identical(ints({1, 0, 0, 2, 3, 2})));
  EXPECT_TRUE(y[3].tensor().identical(ints({2, 1, 2, 1})));
  y = evaluated_all("Unique", {x}, {{"sorted", 0}}, 3);
  EXPECT_TRUE(y[0].tensor().identical(Tensor::of<float>({4}, {2, 1, 3, 4})));
  EXPECT_TRUE(y[1].tensor().identical(ints({0, 1, 3, 4})));
  EXPECT_TRUE(y[2].tensor().identical(ints({0, 1, 1, 2, 3, 2})));
  y = evaluated_all("Unique", {Tensor::of<int32_t>({2, 3}, {1, 0, 1, 7, 2, 7})}, {{"axis", -1}}, 4);
  EXPECT_TRUE(y[0].tensor().identical(Tensor::of<int32_t>({2, 2}, {0, 1, 2, 7})));
  EXPECT_TRUE(y[1].tensor().identical(ints({1, 0})));
  EXPECT_TRUE(y[2].tensor().identical(ints({1, 0, 1})));
  y = evaluated_all("Unique", {Tensor::of<std::string>({3}, {"b", "a", "b"})}, {}, 4);
  EXPECT_TRUE(y[0].tensor().identical(Tensor::of<std::string>({2}, {"a", "b"})));
  y = evaluated_all("Unique", {Tensor::of<float>({3}, {NAN, 1, NAN})}, {}, 4);
  EXPECT_TRUE(y[3].tensor().identical(ints({1, 2})));
  EXPECT_EQ(evaluated("Unique", {Tensor::of<float>({0}, {})}).dims(), (Dims{0}));
}

TEST(IndexingEvaluatorValues, TopK) {
  const Tensor x = Tensor::of<float>({2, 4}, {1, 3, 3, NAN, -INFINITY, 2, 0, 2});
  auto y = evaluated_all("TopK", {x, ints({3})}, {}, 2);
  EXPECT_TRUE(y[1].tensor().identical(indices({2, 3}, {3, 1, 2, 1, 3, 2})));
  EXPECT_EQ(y[0].tensor().as<float>()[4], 2);
  y = evaluated_all("TopK", {x, ints({2})}, {{"largest", 0}}, 2);
  EXPECT_TRUE(y[1].tensor().identical(indices({2, 2}, {0, 1, 0, 2})));
  y = evaluated_all("TopK", {Tensor::of<uint64_t>({3, 1}, {1, UINT64_MAX, UINT64_MAX - 1}), ints({2})}, {{"axis", 0}},
                    2);
  EXPECT_TRUE(y[0].tensor().identical(Tensor::of<uint64_t>({2, 1}, {UINT64_MAX, UINT64_MAX - 1})));
  y = evaluated_all("TopK", {x, ints({0})}, {}, 2);
  EXPECT_EQ(y[0].tensor().dims(), (Dims{2, 0}));
}

TEST(IndexingEvaluatorErrors, NameTheIndexAndItsRange) {
  const Tensor x = iota(kF32, {3, 2});
  EXPECT_THAT(error_of("Gather", {x, ints({0, 3})}),
              HasSubstr("index 3 (number 1 of i64[2]) is outside [-3, 2] for axis 0"));
  EXPECT_THAT(error_of("GatherElements", {x, indices({1, 2}, {0, -4})}), HasSubstr("index -4"));
  EXPECT_THAT(error_of("GatherND", {x, indices({1, 2}, {0, 2})}), HasSubstr("index 2 at place 1 of position 0"));
  EXPECT_THAT(error_of("ScatterND", {x, indices({1, 1}, {3}), iota(kF32, {1, 2})}), HasSubstr("outside [-3, 2]"));
  // More places than the data has, which only a run tells where shapes are open.
  EXPECT_THAT(error_of("ScatterElements", {x, indices({1, 5}, {0, 0, 0, 0, 0}), iota(kF32, {1, 5})}),
              HasSubstr("indices for 5 places along axis 1"));
  EXPECT_THAT(error_of("ScatterElements", {x, indices({1, 1}, {3}), iota(kF32, {1, 1})}), HasSubstr("outside [-3, 2]"));
  EXPECT_THAT(error_of("Compress", {x, Tensor::of<bool>({4}, {false, false, false, true})}, {{"axis", 0}}),
              HasSubstr("takes element 3 of an axis of 3"));
  EXPECT_THAT(error_of("TensorScatter", {iota(kF32, {1, 4, 1}), iota(kF32, {1, 2, 1}), ints({3})}),
              HasSubstr("writes 2 steps from 3 on into a cache of 4"));
}

}  // namespace
}  // namespace tenon
