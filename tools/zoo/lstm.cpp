// A classifier of token sequences: a bidirectional and a forward LSTM layer (Hochreiter and Schmidhuber 1997).
#include <cmath>

#include "architectures.hpp"

namespace tenon::zoo {
namespace {

// [length, batch, in] -> [length, batch, directions * hidden].
Value* lstm_layer(Net& net, std::string_view name, Value* x, int64_t hidden, int64_t directions) {
  const int64_t inputs = net.dim(x, 2);
  const auto deviation = [](int64_t fan_in) { return 1 / std::sqrt(static_cast<double>(fan_in)); };
  Net::Scope scope(net, name);
  Value* y = net.op("LSTM", "cells",
                    {x, net.weight("input_weight", {directions, 4 * hidden, inputs}, deviation(inputs)),
                     net.weight("recurrent_weight", {directions, 4 * hidden, hidden}, deviation(hidden)),
                     net.weight("bias", {directions, 8 * hidden}, 0.1)},
                    {{"direction", directions == 2 ? "bidirectional" : "forward"}, {"hidden_size", hidden}});
  // [length, directions, batch, hidden]
  return net.reshape("joined", net.transpose("by_batch", y, {0, 2, 1, 3}), {0, 0, directions * hidden});
}

}  // namespace

void lstm(Net& net, const Options& options) {
  const bool tiny = options.size == Size::tiny;
  const int64_t length = tiny ? 12 : 64, vocabulary = tiny ? 100 : 10000, hidden = tiny ? 16 : 256;
  Value* tokens = net.index_input("tokens", {length, options.batch}, vocabulary);
  Value* x = net.op("Mul", "embedded", {net.embedding("embedding", tokens, vocabulary, hidden), net.scalar("two", 2)});
  x = lstm_layer(net, "layer1", x, hidden, 2);
  x = lstm_layer(net, "layer2", x, hidden, 1);
  Value* last =
      net.op("Squeeze", "last", {net.slice("last.slice", x, 0, length - 1, length), net.ints("last.axis", {0})});
  net.output(net.classifier("classifier", last, tiny ? 5 : 20), "scores");
}

}  // namespace tenon::zoo
