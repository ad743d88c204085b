// Networks of inverted residuals: a wide depthwise convolution between two narrow, linear ends.
//   Sandler et al. 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks"
//   Tan and Le 2019, "EfficientNet: Rethinking Model Scaling"; squeeze and excitation: Hu et al. 2017
#include "architectures.hpp"

namespace tenon::zoo {
namespace {

struct Stage {
  int64_t expansion, channels, repeats, stride, kernel;
};

// Each channel times a gate that is computed from the averages of all channels.
Value* squeeze_excite(Net& net, Value* x, int64_t squeezed) {
  Net::Scope scope(net, "gate");
  Value* gate = net.op("GlobalAveragePool", "average", {x});
  gate = net.conv("squeeze", gate, squeezed, {}, Activation::swish);
  gate = net.op("Sigmoid", "sigmoid", {net.conv("excite", gate, net.dim(x, 1))});
  return net.mul("scaled", x, gate);
}

// Swish and gates nearly halve small values, but not large ones: these factors are a compromise that keeps both
// bounded.
double lift(Activation kind) { return kind == Activation::swish ? 1.15 : 1; }
constexpr double kGateLift = 1.2;

Value* inverted_residual(Net& net, Value* x, const Stage& stage, int64_t outputs, int64_t stride, Activation kind,
                         bool gated) {
  const int64_t inputs = net.dim(x, 1), wide = inputs * stage.expansion;
  const bool adds = stride == 1 && inputs == outputs;
  Value* y = x;
  if (stage.expansion != 1) y = net.conv_norm("expand", y, wide, {}, kind, lift(kind));
  y = net.conv_norm("depthwise", y, wide, {.kernel = stage.kernel, .stride = stride, .groups = wide}, kind, lift(kind));
  if (gated) y = squeeze_excite(net, y, std::max<int64_t>(inputs / 4, 1));
  y = net.conv_norm("project", y, outputs, {}, Activation::none, (adds ? kBranchGain : 0.8) * (gated ? kGateLift : 1));
  return adds ? net.add("sum", x, y) : y;
}

void inverted_residuals(Net& net, const Options& options, const std::vector<Stage>& stages, Activation kind,
                        bool gated) {
  Value* x = net.conv_norm("stem", image(net, options), channels(options, 32), {.kernel = 3, .stride = 2}, kind);
  for (size_t s = 0; s < stages.size(); ++s) {
    Net::Scope in_stage(net, str("stage", s + 1));
    for (int64_t i = 0; i < stages[s].repeats; ++i) {
      Net::Scope in_block(net, str("block", i + 1));
      x = inverted_residual(net, x, stages[s], channels(options, stages[s].channels), i == 0 ? stages[s].stride : 1,
                            kind, gated);
    }
  }
  x = net.conv_norm("head", x, channels(options, 1280), {}, kind, lift(kind));
  net.output(net.classifier("classifier", net.global_pool("average", x), classes(options)), "scores");
}

}  // namespace

void mobilenet_v2(Net& net, const Options& options) {
  inverted_residuals(net, options,
                     {{1, 16, 1, 1, 3},
                      {6, 24, 2, 2, 3},
                      {6, 32, 3, 2, 3},
                      {6, 64, 4, 2, 3},
                      {6, 96, 3, 1, 3},
                      {6, 160, 3, 2, 3},
                      {6, 320, 1, 1, 3}},
                     Activation::relu6, false);
}

void efficientnet_b0(Net& net, const Options& options) {
  inverted_residuals(net, options,
                     {{1, 16, 1, 1, 3},
                      {6, 24, 2, 2, 3},
                      {6, 40, 2, 2, 5},
                      {6, 80, 3, 2, 3},
                      {6, 112, 3, 1, 5},
                      {6, 192, 4, 2, 5},
                      {6, 320, 1, 1, 3}},
                     Activation::swish, true);
}

}  // namespace tenon::zoo
