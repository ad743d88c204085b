#include "vta/stream_order.hpp"

#include <algorithm>
#include <deque>

namespace tenon::vta {
namespace {

struct Token {
  uint32_t from = 0;
  Clock done{};
};

// Advances units as far as tokens allow, in any order. The clocks do not depend on that order, because each queue has
// one unit that pushes and one that pops.
class Walk {
 public:
  Walk(const std::vector<Instruction>& stream, StreamOrder& order) : stream_(stream), order_(order) {}

  Result<void> run() {
    order_.entries.resize(stream_.size());
    for (size_t i = 0; i < stream_.size(); ++i) {
      TENON_TRY(use, tokens_of(stream_[i]), "instruction ", i, ": ", print(stream_[i]));
      uses_.push_back(use);
      auto& lane = lanes_[static_cast<size_t>(stream_[i].unit())];
      order_.entries[i].unit = stream_[i].unit();
      order_.entries[i].place = static_cast<uint32_t>(lane.size());
      lane.push_back(static_cast<uint32_t>(i));
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t unit = 0; unit < kUnits; ++unit)
        while (done_[unit] < lanes_[unit].size() && step(unit)) moved = true;
    }
    for (size_t unit = 0; unit < kUnits; ++unit)
      if (done_[unit] < lanes_[unit].size()) order_.stuck.push_back(lanes_[unit][done_[unit]]);
    for (const auto& queue : tokens_)
      for (const Token& token : queue) order_.left_over.push_back(token.from);
    return {};
  }

 private:
  // Executes the unit's next instruction, if its tokens are available.
  bool step(size_t unit) {
    const uint32_t number = lanes_[unit][done_[unit]];
    for (const auto& queue : uses_[number].pops)
      if (queue && tokens_[static_cast<size_t>(*queue)].empty()) return false;
    Clock& now = clocks_[unit];
    for (const auto& queue : uses_[number].pops) {
      if (!queue) continue;
      auto& tokens = tokens_[static_cast<size_t>(*queue)];
      for (size_t u = 0; u < kUnits; ++u) now[u] = std::max(now[u], tokens.front().done[u]);
      tokens.pop_front();
    }
    order_.entries[number].before = now;
    now[unit] = static_cast<uint32_t>(++done_[unit]);
    for (const auto& queue : uses_[number].pushes)
      if (queue) tokens_[static_cast<size_t>(*queue)].push_back({number, now});
    return true;
  }

  const std::vector<Instruction>& stream_;
  StreamOrder& order_;
  std::vector<TokenUse> uses_;
  std::array<std::vector<uint32_t>, kUnits> lanes_;
  std::array<size_t, kUnits> done_{};
  std::array<Clock, kUnits> clocks_{};
  std::array<std::deque<Token>, kTokenQueues> tokens_;
};

}  // namespace

Result<StreamOrder> order_of(const std::vector<Instruction>& stream) {
  StreamOrder order;
  TENON_OK(Walk(stream, order).run());
  return order;
}

}  // namespace tenon::vta
