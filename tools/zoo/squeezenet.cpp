// SqueezeNet 1.1: Iandola et al. 2016, "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters".
#include "architectures.hpp"

namespace tenon::zoo {
namespace {

// A few channels from a 1x1 convolution, then four times as many from each of a 1x1 and a 3x3 convolution in parallel.
Value* fire(Net& net, std::string_view name, Value* x, int64_t squeezed, int64_t expanded) {
  Net::Scope scope(net, name);
  x = net.conv("squeeze", x, squeezed, {}, Activation::relu);
  return net.concat("joined",
                    {net.conv("expand1x1", x, expanded, {}, Activation::relu),
                     net.conv("expand3x3", x, expanded, {.kernel = 3}, Activation::relu)},
                    1);
}

}  // namespace

void squeezenet(Net& net, const Options& options) {
  const PoolShape pool{.kernel = 3, .stride = 2, .ceil = true};
  const auto grow = [&](std::string_view name, Value* x, int64_t squeezed) {
    return fire(net, name, x, channels(options, squeezed), channels(options, 4 * squeezed));
  };
  Value* x = net.conv("stem", image(net, options), channels(options, 64), {.kernel = 3, .stride = 2, .pad = 0},
                      Activation::relu);
  x = net.max_pool("pool1", x, pool);
  x = grow("fire2", x, 16);
  x = grow("fire3", x, 16);
  x = net.max_pool("pool2", x, pool);
  x = grow("fire4", x, 32);
  x = grow("fire5", x, 32);
  x = net.max_pool("pool3", x, pool);
  x = grow("fire6", x, 48);
  x = grow("fire7", x, 48);
  x = grow("fire8", x, 64);
  x = grow("fire9", x, 64);
  x = net.conv("classifier", x, classes(options), {}, Activation::relu);
  net.output(net.global_pool("average", x), "scores");
}

}  // namespace tenon::zoo
