// Seeded abstract operator graphs with the shapes of networks, for measuring the memory planner.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include <tenon/runtime/memory_order.hpp>

namespace tenon::bench {

enum class GraphFamily : uint8_t { skips, unet, dense, branches, transformer, random, power_law, training };
inline constexpr std::array<std::string_view, 8> kGraphFamilies = {"chain with skips", "U-net",  "dense blocks",
                                                                   "branches",         "transformer", "random graph",
                                                                   "power-law sizes",  "training"};

class OperatorGraphMaker {
 public:
  // About `count` nodes, never more than that.
  OperatorGraphMaker(GraphFamily family, size_t count, uint64_t seed) : family_(family), count_(count), random_(seed) {}

  std::vector<OrderNode> make() {
    add(draw(64, 4096) * 64, {});
    while (!full()) {
      switch (family_) {
        case GraphFamily::skips: skips(); break;
        case GraphFamily::unet: unet(); break;
        case GraphFamily::dense: dense(); break;
        case GraphFamily::branches: branches(); break;
        case GraphFamily::transformer: transformer(); break;
        case GraphFamily::random: random_node(draw(64, 1 << 16)); break;
        case GraphFamily::power_law: random_node(power_law()); break;
        case GraphFamily::training: training(); break;
      }
    }
    return std::move(nodes_);
  }

 private:
  bool full() const { return nodes_.size() >= count_; }
  size_t draw(size_t low, size_t high) { return low + static_cast<size_t>(random_() % (high - low + 1)); }
  bool chance(size_t percent) { return random_() % 100 < percent; }
  size_t last() const { return nodes_.size() - 1; }
  size_t bytes(size_t node) const { return nodes_[node].result_bytes; }
  // A full graph accepts no more nodes; the last one is returned instead.
  size_t add(size_t bytes, std::vector<size_t> operands) {
    if (!full()) nodes_.push_back({.result_bytes = std::max<size_t>(bytes, 4), .operands = std::move(operands)});
    return last();
  }
  size_t chain(size_t from, size_t length, size_t bytes) {
    for (size_t i = 0; i < length; ++i) from = add(bytes, {from});
    return from;
  }
  // Pareto with exponent 1.2: most are small, a few hold most bytes.
  size_t power_law() {
    const double u = (static_cast<double>(random_() >> 11) + 1) / 0x1p53;
    return static_cast<size_t>(std::min(64.0 * std::pow(u, -1 / 1.2), 0x1p30));
  }

  // Residual blocks, sometimes with half the resolution.
  void skips() {
    const size_t from = last();
    const size_t out = chance(15) ? bytes(from) * draw(1, 3) / 2 : bytes(from);
    const size_t inner = chance(50) ? out : std::max<size_t>(out / 4, 64);
    size_t x = add(out, {chain(from, draw(1, 4), inner)});
    const size_t skip = out == bytes(from) ? from : add(out, {from});
    x = add(out, {x, skip});
    if (chance(10) && nodes_.size() > 8) add(out, {x, draw(nodes_.size() - 8, x)});
    if (bytes(last()) > (1u << 24)) add(1 << 16, {last()});
  }

  void unet() {
    const size_t depth = draw(2, 6);
    std::vector<size_t> skips;
    size_t x = chain(last(), draw(1, 3), draw(1 << 10, 1 << 22));
    for (size_t level = 0; level < depth; ++level) {
      skips.push_back(x = chain(x, draw(1, 3), bytes(x)));
      x = add(bytes(x) / 2, {x});
    }
    for (; !skips.empty(); skips.pop_back()) {
      const size_t up = add(bytes(skips.back()), {x});
      x = chain(add(bytes(up) + bytes(skips.back()), {up, skips.back()}), draw(1, 3), bytes(up));
    }
  }

  // Each layer reads the concatenation of all earlier ones.
  void dense() {
    const size_t growth = draw(16, 4096) * 16, layers = draw(4, 32);
    size_t features = last();
    for (size_t i = 0; i < layers; ++i) {
      const size_t made = add(growth, {add(growth * 4, {features})});
      features = add(bytes(features) + growth, {features, made});
    }
    add(std::max<size_t>(bytes(features) / 4, 64), {features});
  }

  void branches() {
    const size_t from = last();
    std::vector<size_t> ends;
    size_t sum = 0;
    for (size_t i = draw(2, 6); i > 0; --i) {
      ends.push_back(chain(from, draw(1, 5), draw(16, 1 << 14) * 4));
      sum += bytes(ends.back());
    }
    const size_t joined = add(sum, std::move(ends));
    if (chance(30)) add(draw(16, 1 << 14) * 4, {joined});
  }

  void transformer() {
    const size_t tokens = draw(16, 512), width = draw(1, 16) * 64, heads = draw(1, 12), plane = tokens * width * 4;
    size_t x = add(plane, {last()});
    for (size_t layer = draw(1, 6); layer > 0; --layer) {
      const size_t norm = add(plane, {x});
      const size_t q = add(plane, {norm}), k = add(plane, {norm}), v = add(plane, {norm});
      const size_t scores = chain(add(heads * tokens * tokens * 4, {q, k}), draw(1, 3), heads * tokens * tokens * 4);
      x = add(plane, {x, add(plane, {add(plane, {scores, v})})});
      x = add(plane, {x, add(plane, {chain(add(plane, {x}), draw(1, 4), plane * 4)})});
    }
  }

  // Mostly recent operands, some from far back.
  void random_node(size_t bytes) {
    std::vector<size_t> operands;
    for (size_t i = draw(1, 3); i > 0; --i) {
      const size_t reach = chance(90) ? std::min<size_t>(nodes_.size(), 12) : std::min<size_t>(nodes_.size(), 400);
      operands.push_back(nodes_.size() - draw(1, reach));
    }
    add(bytes, std::move(operands));
  }

  // Forward layers whose results the backward ones read in reverse order; then the weights' gradients, used
  // immediately.
  void training() {
    std::vector<size_t> forward;
    size_t x = last();
    for (size_t i = draw(8, 200); i > 0; --i) {
      x = add(chance(20) ? draw(64, 1 << 16) * 4 : bytes(x), {x});
      forward.push_back(x);
    }
    size_t gradient = add(bytes(x), {x});
    for (; !forward.empty() && !full(); forward.pop_back()) {
      const size_t weight = add(draw(64, 1 << 12) * 4, {gradient, forward.back()});
      add(4, {weight});
      gradient = add(bytes(forward.back()), {gradient, forward.back()});
    }
  }

  GraphFamily family_;
  size_t count_;
  std::mt19937_64 random_;
  std::vector<OrderNode> nodes_;
};

}  // namespace tenon::bench
