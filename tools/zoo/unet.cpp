// U-Net: Ronneberger et al. 2015, "U-Net: Convolutional Networks for Biomedical Image Segmentation", with padded
// convolutions, so that the map of scores has the size of the image.
#include <cmath>

#include "architectures.hpp"

namespace tenon::zoo {
namespace {

Value* double_conv(Net& net, Value* x, int64_t channels) {
  x = net.conv_norm("conv1", x, channels, {.kernel = 3});
  return net.conv_norm("conv2", x, channels, {.kernel = 3});
}

// Twice the height and width, half the channels. Each result depends on one input pixel: the fan-in is the channels.
Value* upsample(Net& net, Value* x) {
  const int64_t inputs = net.dim(x, 1), outputs = inputs / 2;
  Value* weight = net.weight("up.weight", {inputs, outputs, 2, 2}, std::sqrt(2.0 / static_cast<double>(inputs)));
  return net.op("ConvTranspose", "up", {x, weight, net.weight("up.bias", {outputs}, 0.1)},
                {{"kernel_shape", Attribute::Integers{2, 2}}, {"strides", Attribute::Integers{2, 2}}});
}

}  // namespace

void unet(Net& net, const Options& options) {
  const bool tiny = options.size == Size::tiny;
  const int64_t side = tiny ? 32 : 128, width = tiny ? 8 : 32, levels = tiny ? 2 : 4;
  Value* x = net.input("image", {options.batch, 1, side, side});
  std::vector<Value*> skips;
  for (int64_t level = 0; level < levels; ++level) {
    Net::Scope scope(net, str("down", level + 1));
    x = double_conv(net, x, width << level);
    skips.push_back(x);
    x = net.max_pool("pool", x, {.kernel = 2, .stride = 2});
  }
  {
    Net::Scope scope(net, "bottom");
    x = double_conv(net, x, width << levels);
  }
  for (int64_t level = levels; level-- > 0;) {
    Net::Scope scope(net, str("up", level + 1));
    x = net.concat("joined", {skips[static_cast<size_t>(level)], upsample(net, x)}, 1);
    x = double_conv(net, x, width << level);
  }
  net.output(net.op("Sigmoid", "mask", {net.conv("scores", x, 1)}), "mask");
}

}  // namespace tenon::zoo
