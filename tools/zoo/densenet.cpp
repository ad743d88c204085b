// DenseNet-121: Huang et al. 2016, "Densely Connected Convolutional Networks". Each layer reads the results of all
// earlier ones.
#include "architectures.hpp"

namespace tenon::zoo {
namespace {

Value* norm_relu(Net& net, Value* x) { return net.relu("relu", net.batch_norm("norm", x)); }

}  // namespace

void densenet121(Net& net, const Options& options) {
  const int64_t growth = channels(options, 32);
  const std::vector<int64_t> blocks =
      options.size == Size::tiny ? std::vector<int64_t>{2, 3, 4, 3} : std::vector<int64_t>{6, 12, 24, 16};
  Value* x = net.conv_norm("stem", image(net, options), 2 * growth, {.kernel = 7, .stride = 2});
  x = net.max_pool("pool", x, {.kernel = 3, .stride = 2, .pad = 1});
  for (size_t b = 0; b < blocks.size(); ++b) {
    Net::Scope in_block(net, str("block", b + 1));
    for (int64_t i = 0; i < blocks[b]; ++i) {
      Net::Scope in_layer(net, str("layer", i + 1));
      Value* y = net.conv_norm("conv1", norm_relu(net, x), 4 * growth);
      y = net.conv("conv2", y, growth, {.kernel = 3, .bias = false});
      x = net.concat("joined", {x, y}, 1);
    }
    if (b + 1 == blocks.size()) break;
    Net::Scope in_transition(net, "transition");
    x = net.conv("conv", norm_relu(net, x), net.dim(x, 1) / 2, {.bias = false});
    x = net.average_pool("pool", x, {.kernel = 2, .stride = 2});
  }
  x = norm_relu(net, x);
  net.output(net.classifier("classifier", net.global_pool("average", x), classes(options)), "scores");
}

}  // namespace tenon::zoo
