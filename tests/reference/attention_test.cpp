#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tensor/compare.hpp>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>

namespace tenon {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Softmax attention of one head by its formula; keep(i, j) states whether row i may see column j.
template <class Keep>
std::vector<double> naive(const Tensor& q, const Tensor& k, const Tensor& v, int64_t head, int64_t kv_head,
                          Keep&& keep) {
  const int64_t rows = q.dim(2), columns = k.dim(2), size = q.dim(3), width = v.dim(3);
  std::vector<double> out;
  for (int64_t i = 0; i < rows; ++i) {
    std::vector<double> p(columns);
    double sum = 0;
    for (int64_t j = 0; j < columns; ++j) {
      double dot = 0;
      for (int64_t d = 0; d < size; ++d)
        dot += q.double_at((head * rows + i) * size + d) * k.double_at((kv_head * columns + j) * size + d);
      p[j] = keep(i, j) ? std::exp(dot / std::sqrt(static_cast<double>(size))) : 0;
      sum += p[j];
    }
    for (int64_t d = 0; d < width; ++d) {
      double value = 0;
      for (int64_t j = 0; j < columns; ++j)
        value += sum == 0 ? 0 : p[j] / sum * v.double_at((kv_head * columns + j) * width + d);
      out.push_back(value);
    }
  }
  return out;
}

template <class Keep>
void expect_attention(const Tensor& y, const Tensor& q, const Tensor& k, const Tensor& v, Keep&& keep) {
  for (int64_t head = 0; head < q.dim(1); ++head) {
    const auto expected = naive(q, k, v, head, head / (q.dim(1) / k.dim(1)), keep);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(y.double_at(head * static_cast<int64_t>(expected.size()) + static_cast<int64_t>(i)), expected[i],
                  1e-5)
          << head << " " << i;
    }
  }
}

struct Heads : ::testing::Test {
  std::mt19937 random{11};
  Tensor q = random_tensor(random, kF32, {1, 4, 3, 8}), k = random_tensor(random, kF32, {1, 2, 5, 8}),
         v = random_tensor(random, kF32, {1, 2, 5, 6});
  static constexpr auto kAll = [](int64_t, int64_t) { return true; };
};
using Attention = Heads;

TEST_F(Attention, GroupsShareKeys) { expect_attention(evaluated("Attention", {q, k, v}), q, k, v, kAll); }

TEST_F(Attention, CausalWithAPast) {
  expect_attention(evaluated("Attention", {q, k, v}, {{"is_causal", 1}}), q, k, v,
                   [](int64_t i, int64_t j) { return j <= i; });
  // Keys 0 and 1 as the past, the rest as new ones: the rows stand behind the past.
  const auto cut = [](const Tensor& t, int64_t begin, int64_t end) {
    Tensor out = *Tensor::zeros(kF32, {1, 2, end - begin, t.dim(3)});
    for (int64_t i = 0; i < out.size(); ++i) {
      const int64_t d = i % t.dim(3), row = i / t.dim(3) % (end - begin), h = i / t.dim(3) / (end - begin);
      out.set_double(i, t.double_at((h * 5 + begin + row) * t.dim(3) + d));
    }
    return out;
  };
  const auto results = evaluated_all("Attention", {q, cut(k, 2, 5), cut(v, 2, 5), Datum(), cut(k, 0, 2), cut(v, 0, 2)},
                                     {{"is_causal", 1}}, 3);
  EXPECT_TRUE(results[1].tensor().identical(k));
  EXPECT_TRUE(results[2].tensor().identical(v));
  expect_attention(results[0].tensor(), q, k, v, [](int64_t i, int64_t j) { return j <= i + 2; });
}

TEST_F(Attention, MasksThatEndEarlyOrHideARow) {
  const Tensor mask =
      Tensor::of<bool>({3, 4}, {true, false, true, true, false, false, false, false, true, true, true, true});
  const Tensor y = evaluated("Attention", {q, k, v, mask});
  expect_attention(y, q, k, v, [](int64_t i, int64_t j) { return j < 4 && i != 1 && !(i == 0 && j == 1); });
  EXPECT_EQ(y.double_at(6), 0) << "a row that sees nothing";
  expect_attention(
      evaluated("Attention", {q, k, v, Datum(), Datum(), Datum(), Tensor::of<int64_t>({1}, {4})}, {{"is_causal", 1}}),
      q, k, v, [](int64_t i, int64_t j) { return j < 4 && j <= i + 1; });
  EXPECT_THAT(error_of("Attention", {q, k, v, Tensor::of<bool>({2, 5}, std::vector<bool>(10, true))}),
              HasSubstr("does not broadcast"));
}

TEST_F(Attention, StagesOfTheScores) {
  const Tensor mask = Tensor::of<float>({5}, {0, 1, 2, 3, -INFINITY});
  const auto stage = [&](int64_t mode) {
    return evaluated_all("Attention", {q, k, v, mask}, {{"qk_matmul_output_mode", mode}, {"softcap", 2.0f}}, 4)[3]
        .tensor();
  };
  const Tensor raw = stage(0), capped = stage(1), biased = stage(2), probabilities = stage(3);
  for (int64_t row = 0; row < 12; ++row) {
    double sum = 0;
    for (int64_t j = 0; j < 5; ++j) {
      const int64_t i = row * 5 + j;
      EXPECT_NEAR(capped.double_at(i), 2 * std::tanh(raw.double_at(i) / 2), 1e-6);
      EXPECT_NEAR(j < 4 ? biased.double_at(i) : capped.double_at(i) + 4, capped.double_at(i) + static_cast<double>(j),
                  1e-6);
      sum += probabilities.double_at(i);
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_EQ(probabilities.double_at(row * 5 + 4), 0);
  }
}

// The extents are known only at run time: the shape rule is evaluated again in the run, also for operators with regions
// and for values with layouts.
TEST(FlexAttention, RefusesHeadsThatDoNotFit) {
  const std::vector<std::pair<std::array<Dims, 3>, std::string>> refused = {
      {{{{2, 4, 3, 8}, {1, 2, 5, 8}, {1, 2, 5, 6}}}, "Q has a batch of 2, K of 1, V of 1"},
      {{{{2, 4, 3, 8}, {2, 2, 5, 8}, {2, 2, 4, 6}}}, "K has 2 heads of length 5, V 2 of length 4"},
      {{{{2, 4, 3, 8}, {2, 2, 5, 9}, {2, 2, 5, 6}}}, "the heads of Q have 8 elements, those of K 9"},
      {{{{2, 4, 3, 8}, {2, 3, 5, 8}, {2, 3, 5, 6}}}, "4 query heads cannot share 3 key heads"},
      {{{{2, 4, 3, 8}, {2, 0, 5, 8}, {2, 0, 5, 6}}}, "4 query heads cannot share 0 key heads"},
      {{{{2, 4, 3}, {2, 2, 5, 8}, {2, 2, 5, 6}}}, "must have rank 4"},
  };
  for (const bool laid_out : {false, true}) {
    const auto graph = parse_graph(
        str("graph @g(%q: f32[*], %k: f32[", laid_out ? "B,H,S,D] in \"NHWC\"" : "*]", ", %v: f32[*]) -> %y {\n",
            "  %y = ai.onnx.preview.FlexAttention %q, %k, %v ((%s: f32[*]) -> %s {}, (%p: f32[*]) -> %p {}) : f32[*]\n",
            "}\n"),
        "test");
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    const auto interpreter = Interpreter::prepare(**graph);
    ASSERT_TRUE(interpreter.ok()) << interpreter.error().to_string();
    const auto run = [&](const std::array<Dims, 3>& dims) {
      std::vector<Datum> inputs;
      for (const Dims& input : dims) inputs.emplace_back(iota(kF32, input));
      const auto made = (*interpreter)->run(inputs);
      return made.ok() ? str((*made)[0].tensor().dims()) : made.error().to_string();
    };
    EXPECT_EQ(run({{{2, 4, 3, 8}, {2, 2, 5, 8}, {2, 2, 5, 6}}}), "[2, 4, 3, 6]");
    for (const auto& [operands, sentence] : refused)
      EXPECT_THAT(run(operands), AllOf(HasSubstr("FlexAttention (%y)"), HasSubstr(sentence))) << laid_out;
  }
}

TEST(RotaryEmbedding, TurnsPairs) {
  const Tensor x = Tensor::of<float>({1, 1, 1, 5}, {1, 2, 3, 4, 5}), cosine = Tensor::of<float>({2, 2}, {1, 1, 0, 1}),
               sine = Tensor::of<float>({2, 2}, {0, 0, 1, 0});
  const auto run = [&](int64_t interleaved, int64_t position) {
    return evaluated("RotaryEmbedding", {x, cosine, sine, Tensor::of<int64_t>({1, 1}, {position})},
                     {{"interleaved", interleaved}, {"rotary_embedding_dim", 4}});
  };
  EXPECT_TRUE(run(0, 0).identical(x));
  EXPECT_TRUE(run(0, 1).identical(Tensor::of<float>({1, 1, 1, 5}, {-3, 2, 1, 4, 5})));
  EXPECT_TRUE(run(1, 1).identical(Tensor::of<float>({1, 1, 1, 5}, {-2, 1, 3, 4, 5})));
  EXPECT_THAT(
      error_of("RotaryEmbedding", {x, cosine, sine, Tensor::of<int64_t>({1, 1}, {2})}, {{"rotary_embedding_dim", 4}}),
      HasSubstr("position 2 at 0 is outside the cache of 2"));
}

TEST(LinearAttention, RulesByHand) {
  // One head, Dk = Dv = 1, scale 1: the state is a number.
  const Tensor q = Tensor::of<float>({1, 2, 1}, {1, 1}), k = Tensor::of<float>({1, 2, 1}, {2, 2}),
               v = Tensor::of<float>({1, 2, 1}, {3, 5});
  const Tensor past = Tensor::of<float>({1, 1, 1, 1}, {10}),
               decay = *convert(Tensor::of<double>({1, 2, 1}, {std::log(0.5), std::log(0.5)}), kF32);
  const Tensor beta = Tensor::of<float>({1, 2, 1}, {0.5, 0.5});
  const auto run = [&](const char* rule, Datum g, Datum b) {
    return evaluated_all("LinearAttention", {q, k, v, past, g, b},
                         {{"q_num_heads", 1}, {"kv_num_heads", 1}, {"update_rule", rule}, {"scale", 1.0f}}, 2);
  };
  const auto expect = [](const std::vector<Datum>& results, float first, float second) {
    EXPECT_TRUE(compare(results[0].tensor(), Tensor::of<float>({1, 2, 1}, {first, second}), {1e-6, 1e-6}).equal);
    EXPECT_NEAR(results[1].tensor().double_at(0), second, 1e-5);
  };
  expect(run("linear", {}, {}), 16, 26);
  expect(run("gated", decay, {}), 11, 15.5f);
  expect(run("delta", {}, beta), 10 + 0.5f * 2 * (3 - 20), -7 + 0.5f * 2 * (5 + 14));
  expect(run("gated_delta", decay, beta), 5 + (3 - 10), -1 + (5 + 2));
}

}  // namespace
}  // namespace tenon
