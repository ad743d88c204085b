// Transformers: Vaswani et al. 2017, "Attention Is All You Need".
//   bert        encoder, normalised after each sum: Devlin et al. 2018. Gelu and attention as exporters decompose them
//   gpt         causal decoder, normalised before each branch: Radford et al. 2019 (GPT-2)
//   gpt_decode  the same for one more token, with the keys and values of the earlier ones as inputs
//   vit         encoder over patches of an image: Dosovitskiy et al. 2020
#include <cmath>

#include "architectures.hpp"

namespace tenon::zoo {
namespace {

struct Shape {
  int64_t layers, width, heads, vocabulary, length;
};
Shape shape_of(const Options& options, Shape full) {
  return options.size == Size::tiny ? Shape{2, 64, 4, 1000, 16} : full;
}
constexpr Shape kBertBase{12, 768, 12, 30522, 128};
constexpr Shape kGpt2{12, 768, 12, 50257, 64};
// For tables that also give the scores: a score is a sum over the width.
constexpr double kTokenDeviation = 0.1;

// Keys and values of earlier positions, [batch, heads, positions, width / heads], and where the extended ones go.
struct Cache {
  Value* key;
  Value* value;
};

// Additive mask (may be null) over scores [batch, heads, length, length]; `cache` (may be null) is extended.
Value* attention(Net& net, Value* x, int64_t heads, Value* mask, Cache* cache = nullptr) {
  Net::Scope scope(net, "attention");
  const int64_t width = net.dim(x, -1), depth = width / heads;
  const auto project = [&](std::string_view name) {
    Value* y = net.reshape(str(name, ".heads"), net.linear(name, x, width), {0, 0, heads, depth});
    return net.transpose(str(name, ".by_head"), y, {0, 2, 1, 3});
  };
  Value *query = project("query"), *key = project("key"), *value = project("value");
  if (cache) {
    key = cache->key = net.concat("keys", {cache->key, key}, 2);
    value = cache->value = net.concat("values", {cache->value, value}, 2);
  }
  Value* scores = net.op("MatMul", "scores", {query, net.transpose("key.transposed", key, {0, 1, 3, 2})});
  scores = net.mul("scaled", scores, net.scalar("scale", 1 / std::sqrt(static_cast<float>(depth))));
  if (mask) scores = net.add("masked", scores, mask);
  Value* shares = net.op("Softmax", "shares", {scores}, {{"axis", -1}});
  Value* mixed = net.transpose("by_position", net.op("MatMul", "mixed", {shares, value}), {0, 2, 1, 3});
  return net.linear("out", net.reshape("joined", mixed, {0, 0, width}), width, kBranchGain);
}

// x / 2 * (1 + erf(x / sqrt 2)) as separate operators.
Value* gelu_steps(Net& net, std::string_view name, Value* x) {
  Net::Scope scope(net, name);
  Value* erf = net.op("Erf", "erf", {net.op("Div", "scaled", {x, net.scalar("root_two", std::sqrt(2.0f))})});
  return net.mul("half", net.mul("product", x, net.add("shifted", erf, net.scalar("one", 1))),
                 net.scalar("one_half", 0.5f));
}

Value* feed_forward(Net& net, Value* x, bool gelu_in_steps) {
  const int64_t width = net.dim(x, -1);
  Value* y = net.linear("expand", x, 4 * width, std::sqrt(2.0));
  y = gelu_in_steps ? gelu_steps(net, "gelu", y) : net.op("Gelu", "gelu", {y}, {{"approximate", "tanh"}});
  return net.linear("contract", y, width, kBranchGain);
}

Value* pre_norm_layer(Net& net, std::string_view name, Value* x, int64_t heads, Value* mask, Cache* cache = nullptr) {
  Net::Scope scope(net, name);
  x = net.add("sum1", x, attention(net, net.layer_norm("norm1", x), heads, mask, cache));
  return net.add("sum2", x, feed_forward(net, net.layer_norm("norm2", x), false));
}

Value* post_norm_layer(Net& net, std::string_view name, Value* x, int64_t heads, Value* mask) {
  Net::Scope scope(net, name);
  x = net.layer_norm("norm1", net.add("sum1", x, attention(net, x, heads, mask)));
  return net.layer_norm("norm2", net.add("sum2", x, feed_forward(net, x, true)));
}

// 0 for visible positions, a large negative number for later positions.
Value* causal_mask(Net& net, int64_t length) {
  std::vector<float> mask(static_cast<size_t>(length * length), 0);
  for (int64_t row = 0; row < length; ++row) {
    std::fill_n(mask.begin() + row * length + row + 1, length - row - 1, -1e9f);
  }
  return net.constant("causal_mask", Tensor::of<float>({length, length}, mask));
}

// Scores over the vocabulary, by the table from which the tokens' embeddings come.
Value* next_token_scores(Net& net, Value* x, Value* table) {
  Value* features = net.layer_norm("norm", x);
  return net.op("MatMul", "scores", {features, net.transpose("token.transposed", table, {1, 0})});
}

}  // namespace

void bert(Net& net, const Options& options) {
  const Shape s = shape_of(options, kBertBase);
  Value* tokens = net.index_input("input_ids", {options.batch, s.length}, s.vocabulary);
  Value* segments = net.index_input("token_type_ids", {options.batch, s.length}, 2);
  Value* attend = net.index_input("attention_mask", {options.batch, s.length}, 2);
  Value* x = nullptr;
  {
    Net::Scope scope(net, "embeddings");
    x = net.add("sum1", net.embedding("token", tokens, s.vocabulary, s.width),
                net.embedding("segment", segments, 2, s.width));
    x = net.layer_norm("norm", net.add("sum2", x, net.weight("position", {1, s.length, s.width}, 0.5)));
  }
  // (1 - mask) * -10000 over [batch, 1, 1, length].
  Value* ignore =
      net.op("Sub", "mask.inverted",
             {net.scalar("mask.one", 1), net.op("Cast", "mask.f32", {attend}, {{"to", Type(TensorType{kF32, {}})}})});
  Value* mask = net.op("Unsqueeze", "mask.wide",
                       {net.mul("mask.scaled", ignore, net.scalar("mask.low", -1e4f)), net.ints("mask.axes", {1, 2})});
  for (int64_t i = 0; i < s.layers; ++i) x = post_norm_layer(net, str("layer", i + 1), x, s.heads, mask);
  net.output(x, "hidden");
  Value* first =
      net.op("Squeeze", "pooler.first", {net.slice("pooler.slice", x, 1, 0, 1), net.ints("pooler.axis", {1})});
  net.output(net.op("Tanh", "pooler", {net.linear("pooler.dense", first, s.width)}), "pooled");
}

void gpt(Net& net, const Options& options) {
  const Shape s = shape_of(options, kGpt2);
  Value* tokens = net.index_input("tokens", {options.batch, s.length}, s.vocabulary);
  Value* table = net.weight("token", {s.vocabulary, s.width}, kTokenDeviation);
  Value* x = net.add("embedded", net.op("Gather", "token.rows", {table, tokens}, {{"axis", 0}}),
                     net.weight("position", {1, s.length, s.width}, kTokenDeviation));
  Value* mask = causal_mask(net, s.length);
  for (int64_t i = 0; i < s.layers; ++i) x = pre_norm_layer(net, str("layer", i + 1), x, s.heads, mask);
  net.output(next_token_scores(net, x, table), "scores");
}

void gpt_decode(Net& net, const Options& options) {
  const Shape s = shape_of(options, kGpt2);
  const int64_t past = s.length - 1;
  Value* token = net.index_input("token", {options.batch, 1}, s.vocabulary);
  Value* position = net.index_input("position", {options.batch, 1}, s.length);
  Value* table = net.weight("token.table", {s.vocabulary, s.width}, kTokenDeviation);
  Value* x = net.add("embedded", net.op("Gather", "token.rows", {table, token}, {{"axis", 0}}),
                     net.embedding("positions", position, s.length, s.width));
  std::vector<Cache> caches;
  for (int64_t i = 0; i < s.layers; ++i) {
    const Dims dims{options.batch, s.heads, past, s.width / s.heads};
    caches.push_back({net.input(str("past_key", i + 1), dims), net.input(str("past_value", i + 1), dims)});
  }
  for (int64_t i = 0; i < s.layers; ++i) {
    x = pre_norm_layer(net, str("layer", i + 1), x, s.heads, nullptr, &caches[static_cast<size_t>(i)]);
  }
  net.output(next_token_scores(net, x, table), "scores");
  for (size_t i = 0; i < caches.size(); ++i) {
    net.output(caches[i].key, str("key", i + 1));
    net.output(caches[i].value, str("value", i + 1));
  }
}

void vit(Net& net, const Options& options) {
  const bool tiny = options.size == Size::tiny;
  const int64_t layers = tiny ? 2 : 12, width = tiny ? 32 : 192, heads = tiny ? 2 : 3, patch = 16;
  Value* x = net.conv("patches", image(net, options), width, {.kernel = patch, .stride = patch, .pad = 0});
  x = net.transpose("patches.last", net.reshape("patches.flat", x, {0, width, -1}), {0, 2, 1});
  Value* first =
      net.op("Expand", "class_token.batch",
             {net.weight("class_token", {1, 1, width}, 0.5), net.ints("class_token.shape", {options.batch, 1, width})});
  x = net.concat("tokens", {first, x}, 1);
  x = net.add("embedded", x, net.weight("position", {1, net.dim(x, 1), width}, 0.5));
  for (int64_t i = 0; i < layers; ++i) x = pre_norm_layer(net, str("layer", i + 1), x, heads, nullptr);
  Value* token = net.slice("class.slice", net.layer_norm("norm", x), 1, 0, 1);
  token = net.op("Squeeze", "class", {token, net.ints("class.axis", {1})});
  net.output(net.classifier("classifier", token, classes(options)), "scores");
}

}  // namespace tenon::zoo
