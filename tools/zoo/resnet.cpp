// Residual networks: He et al. 2015, "Deep Residual Learning for Image Recognition"; the 3x3 convolution of a
// bottleneck has the stride, as in torchvision.
#include "architectures.hpp"

namespace tenon::zoo {
namespace {

enum class Block { basic, bottleneck };

Value* residual_block(Net& net, Value* x, Block kind, int64_t channels, int64_t stride) {
  const int64_t outputs = kind == Block::bottleneck ? 4 * channels : channels;
  Value* y = x;
  if (kind == Block::bottleneck) {
    y = net.conv_norm("conv1", y, channels);
    y = net.conv_norm("conv2", y, channels, {.kernel = 3, .stride = stride});
    y = net.conv_norm("conv3", y, outputs, {}, Activation::none, kBranchGain);
  } else {
    y = net.conv_norm("conv1", y, channels, {.kernel = 3, .stride = stride});
    y = net.conv_norm("conv2", y, outputs, {.kernel = 3}, Activation::none, kBranchGain);
  }
  if (stride != 1 || net.dim(x, 1) != outputs) {
    x = net.conv_norm("shortcut", x, outputs, {.stride = stride}, Activation::none);
  }
  return net.relu("relu", net.add("sum", x, y));
}

void resnet(Net& net, const Options& options, Block kind, const std::vector<int64_t>& blocks) {
  Value* x = net.conv_norm("stem", image(net, options), channels(options, 64), {.kernel = 7, .stride = 2});
  x = net.max_pool("pool", x, {.kernel = 3, .stride = 2, .pad = 1});
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    Net::Scope in_stage(net, str("stage", stage + 1));
    for (int64_t i = 0; i < blocks[stage]; ++i) {
      Net::Scope in_block(net, str("block", i + 1));
      x = residual_block(net, x, kind, channels(options, 64 << stage), i == 0 && stage > 0 ? 2 : 1);
    }
  }
  net.output(net.classifier("classifier", net.global_pool("average", x), classes(options)), "scores");
}

}  // namespace

void resnet18(Net& net, const Options& options) { resnet(net, options, Block::basic, {2, 2, 2, 2}); }
void resnet50(Net& net, const Options& options) { resnet(net, options, Block::bottleneck, {3, 4, 6, 3}); }

}  // namespace tenon::zoo
