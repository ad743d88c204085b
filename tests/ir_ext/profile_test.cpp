// Profiles: histograms do not depend on order, files can be read back, keys are stable where they should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include <tenon-ext/quant/profile.hpp>
#include <tenon/ir/text.hpp>

namespace tenon::quant {
namespace {

using ::testing::HasSubstr;

std::vector<float> normal(uint64_t seed, size_t count, double deviation) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> numbers(0, static_cast<float>(deviation));
  std::vector<float> out(count);
  for (float& x : out) x = numbers(random);
  return out;
}

TEST(Histogram, OrderDoesNotMatter) {
  const auto small = normal(1, 1000, 0.1), large = normal(2, 1000, 7);
  Histogram a, b, c, d;
  a.add(small), a.add(large);
  b.add(large), b.add(small);
  c.add(small), d.add(large), c.add(d);
  EXPECT_EQ(a.exponent(), b.exponent());
  EXPECT_EQ(a.bins(), b.bins());
  EXPECT_EQ(a.bins(), c.bins());
  uint64_t count = 0;
  for (const uint64_t bin : a.bins()) count += bin;
  EXPECT_EQ(count, 2000u);
}

TEST(Histogram, ZerosAndWhatIsNotFiniteAreLeftOut) {
  Histogram histogram;
  histogram.add(std::vector<float>{0, -0.0f, INFINITY, NAN});
  EXPECT_TRUE(histogram.empty());
  histogram.add(std::vector<float>{-1, 0.999f});
  EXPECT_EQ(histogram.exponent(), 1);  // 1 lies in [0, 2)
  EXPECT_EQ(histogram.bins()[Histogram::kBins / 2], 1u);
}

TEST(Steps, MinMaxCoversAndKlCutsFewOff) {
  ValueProfile profile;
  profile.add(normal(3, 100000, 1));
  const double covering = step_of(profile, Method::minmax);
  EXPECT_DOUBLE_EQ(127 * covering, std::max(-profile.least, profile.greatest));
  // Ten numbers far out of a hundred thousand.
  profile.add(std::vector<float>(10, 100.0f));
  EXPECT_DOUBLE_EQ(step_of(profile, Method::minmax), 100.0 / 127);
  EXPECT_LE(step_of(profile, Method::kl), 2 * covering);
  // Where all numbers are as common as others, none is cut off.
  ValueProfile uniform;
  for (int i = 0; i < 10000; ++i) uniform.add(std::vector<float>{static_cast<float>(i) / 10101});
  EXPECT_NEAR(step_of(uniform, Method::kl), step_of(uniform, Method::minmax), 0.02 * step_of(uniform, Method::minmax));
  EXPECT_EQ(step_of(ValueProfile(), Method::kl), 1);
}

TEST(ProfileFile, ReadsBack) {
  Profile profile;
  profile.samples = 3;
  profile.values["Conv-1"].name = "a \"quoted\" name\\";
  profile.values["Conv-1"].add(normal(4, 100, 2));
  profile.values["empty"].name = "";
  const std::string text = profile.to_json();
  const auto read = Profile::parse(text, "p.json");
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(read->to_json(), text);
  EXPECT_EQ(read->values.at("Conv-1").magnitudes.bins(), profile.values["Conv-1"].magnitudes.bins());
}

TEST(ProfileFile, WrongOnesNameThePlace) {
  const auto failure = [](std::string_view text) {
    const auto read = Profile::parse(text, "p.json");
    return read.ok() ? "no error" : read.error().to_string();
  };
  EXPECT_THAT(failure("{\"tenon_profile\": 2, \"samples\": 1, \"values\": {}}"), HasSubstr("p.json:1"));
  EXPECT_THAT(failure("{\"tenon_profile\": 1, \"samples\": 1, \"values\": {}, \"more\": 1}"), HasSubstr("more"));
  EXPECT_THAT(failure("{\"tenon_profile\": 1, \"samples\": 1, \"values\": {\"a\": {\"name\": \"a\", \"least\": 0, "
                      "\"greatest\": 1, \"magnitudes\": {\"exponent\": 0, \"bins\": [1, 2]}}}}"),
              HasSubstr("2 bins; it needs 2048"));
  EXPECT_THAT(failure("["), HasSubstr("p.json"));
}

// ---- Keys ----

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
  return *std::move(graph);
}

// Keys of all results, in order.
std::vector<std::string> keys_of(const Graph& graph, const std::unordered_map<size_t, std::string>& inputs = {}) {
  const auto keys = structural_keys(graph, inputs);
  std::vector<std::string> out;
  for (const Op& op : graph.body()) {
    if (!op.is("Constant")) out.push_back(keys.at(op.result()));
  }
  return out;
}

constexpr std::string_view kNet = R"(graph @g(%x: f32[1,2,8,8]) -> %y {
  %w = Constant {value = dense<f32[4,2,1,1]: 1, 2, 3, 4, 5, 6, 7, 8>}
  %v = Constant {value = dense<f32[4,4,1,1]: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16>}
  %c = Conv %x, %w
  %r = Relu %c
  %d = Conv %r, %v
  %e = Conv %d, %v
  %s = Add %e, %r
  %n = Constant {value = dense<i64[2]: 1, 256>}
  %y = Reshape %s, %n
})";

TEST(StructuralKeys, EachValueHasItsOwn) {
  const auto keys = keys_of(*parsed(kNet));
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
  EXPECT_THAT(keys[0], HasSubstr("Conv-"));
  EXPECT_EQ(keys[3], keys[2] + "#2");  // weights that are used twice
}

TEST(StructuralKeys, NamesAndBatchDoNotMatter) {
  const auto keys = keys_of(*parsed(kNet));
  EXPECT_EQ(keys_of(*parsed(R"(graph @other(%image: f32[7,2,8,8]) -> %out {
    %v2 = Constant {value = dense<f32[4,4,1,1]: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16>}
    %w1 = Constant {value = dense<f32[4,2,1,1]: 1, 2, 3, 4, 5, 6, 7, 8>}
    %a = Conv %image, %w1 "first"
    %b = Relu %a
    %f = Conv %b, %v2
    %h = Conv %f, %v2
    %i = Add %h, %b
    %dims = Constant {value = dense<i64[2]: 7, 256>}
    %out = Reshape %i, %dims
  })")),
            keys);
}

TEST(StructuralKeys, WeightsAndAttributesDo) {
  const auto keys = keys_of(*parsed(kNet));
  std::string text(kNet);
  text.replace(text.find("7, 8>"), 5, "7, 9>");
  EXPECT_NE(keys_of(*parsed(text))[0], keys[0]);
  EXPECT_EQ(keys_of(*parsed(text))[2], keys[2]);  // behind weights of its own
  text = kNet;
  text.replace(text.find("Conv %x, %w"), 11, "Conv %x, %w {strides = [2, 2]}");
  text.replace(text.find("1, 256"), 6, "1, 64");
  EXPECT_NE(keys_of(*parsed(text))[0], keys[0]);
}

// The second half alone: values after weights have the same keys; the others get theirs from the keys at the cut.
TEST(StructuralKeys, PartsOfANetworkKeepThem) {
  const auto keys = keys_of(*parsed(kNet));
  const auto part = parsed(R"(graph @part(%r: f32[1,4,8,8]) -> %y {
    %v = Constant {value = dense<f32[4,4,1,1]: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16>}
    %d = Conv %r, %v
    %e = Conv %d, %v
    %s = Add %e, %r
    %n = Constant {value = dense<i64[2]: 1, 256>}
    %y = Reshape %s, %n
  })");
  EXPECT_EQ(keys_of(*part)[0], keys[2]);
  EXPECT_EQ(keys_of(*part)[1], keys[3]);
  EXPECT_NE(keys_of(*part)[2], keys[4]);
  EXPECT_EQ(keys_of(*part, {{0, keys[1]}}), std::vector<std::string>(keys.begin() + 2, keys.end()));
}

}  // namespace
}  // namespace tenon::quant
