// One function per architecture: adds its inputs, layers and outputs to a net.
#pragma once
#include <algorithm>

#include "net.hpp"
#include "zoo.hpp"

namespace tenon::zoo {

void resnet18(Net& net, const Options& options);
void resnet50(Net& net, const Options& options);
void mobilenet_v2(Net& net, const Options& options);
void squeezenet(Net& net, const Options& options);
void densenet121(Net& net, const Options& options);
void efficientnet_b0(Net& net, const Options& options);
void unet(Net& net, const Options& options);
void vit(Net& net, const Options& options);
void bert(Net& net, const Options& options);
void gpt(Net& net, const Options& options);
void gpt_decode(Net& net, const Options& options);
void lstm(Net& net, const Options& options);

// The scale of a branch that is added to its input: keeps sums over many blocks small.
inline constexpr double kBranchGain = 0.5;

// Image classifiers: 224 x 224 to 1000 classes; tiny: 64 x 64 to 100, with an eighth of the channels.
inline Value* image(Net& net, const Options& options) {
  const int64_t side = options.size == Size::tiny ? 64 : 224;
  return net.input("image", {options.batch, 3, side, side});
}
inline int64_t classes(const Options& options) { return options.size == Size::tiny ? 100 : 1000; }
inline int64_t channels(const Options& options, int64_t full) {
  return options.size == Size::tiny ? std::max<int64_t>(full / 8, 8) : full;
}

}  // namespace tenon::zoo
