#include <tenon-ext/quant/scale_families_internal.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <tenon-ext/quant/float_forms_internal.hpp>
#include <tenon-ext/quant/operators.hpp>
#include <tenon/ir/builder.hpp>

namespace tenon::quant {
namespace {

// The Round whose values `value` has, selected, moved, clipped or averaged.
Op* round_behind(const Value* value) {
  while (value->producer() && is_transparent(*value->producer())) value = value->producer()->operand(0);
  return value->producer() && isa<Round>(*value->producer()) ? value->producer() : nullptr;
}
// The Round that is the only user of `value`.
Op* round_ahead(const Value* value) {
  while (value->has_one_use()) {
    Op& user = *value->first_use()->user();
    if (isa<Round>(user)) return &user;
    if (user.result_count() == 0 || !is_transparent(user) || user.operand(0) != value) break;
    value = user.result();
  }
  return nullptr;
}

// Sets of Rounds, each represented by one of them (union-find).
class Families {
 public:
  explicit Families(Region& body) {
    for (Op* op : body.ops()) {
      if (isa<Round>(*op)) {
        order_.push_back(op);
        tie(op, round_behind(op->operand(0)));
      }
      if (!op->is("Add")) continue;
      Op* const sum = round_ahead(op->result());
      for (const size_t side : {0, 1}) tie(sum, round_behind(op->operand(side)));
    }
  }
  // In the order of the graph.
  std::vector<std::vector<Op*>> all() {
    std::map<Op*, size_t> place;
    std::vector<std::vector<Op*>> families;
    for (Op* op : order_) {
      const auto [at, first] = place.try_emplace(root(op), families.size());
      if (first) families.emplace_back();
      families[at->second].push_back(op);
    }
    return families;
  }

 private:
  Op* root(Op* op) {
    while (parent_.contains(op)) op = parent_.at(op);
    return op;
  }
  void tie(Op* a, Op* b) {
    if (!a || !b) return;
    a = root(a), b = root(b);
    if (a != b) parent_[a] = b;
  }

  std::vector<Op*> order_;
  std::map<Op*, Op*> parent_;
};

double step_of_round(Op& op) { return step_of(Round(op).exponent(), Round(op).factor()); }

// In bits; clipping a quarter of the range costs as much as a bit.
double cost(double bits) { return bits >= 0 ? bits : -2.5 * bits; }

// The power of two of `factor` with the least cost for a step.
struct Choice {
  int64_t exponent = 0;
  double cost = 0;
};
Choice choice(double step, double factor) {
  const double bits = std::log2(step / factor);
  const double low = std::floor(bits), below = cost(low - bits), above = cost(low + 1 - bits);
  return below <= above ? Choice{static_cast<int64_t>(low), below} : Choice{static_cast<int64_t>(low) + 1, above};
}

double family_cost(const std::vector<Op*>& family, double factor) {
  double sum = 0;
  for (Op* round : family) sum += choice(step_of_round(*round), factor).cost;
  return sum;
}

double best_factor(const std::vector<Op*>& family) {
  double best = 1, least = INFINITY;
  for (Op* round : family) {
    const double factor = split_step(step_of_round(*round)).factor, lost = family_cost(family, factor);
    if (lost < least - 1e-9) best = factor, least = lost;
  }
  return best;
}

}  // namespace

std::vector<std::pair<Op*, Step>> family_steps(Region& body) {
  std::vector<std::pair<Op*, Step>> steps;
  for (const std::vector<Op*>& family : Families(body).all()) {
    if (std::none_of(family.begin(), family.end(), [](const Op* op) { return op->attr<float>("factor", 1) != 1; })) {
      continue;
    }
    const double factor = best_factor(family);
    for (Op* round : family) {
      // Rounding errors must not cause the next power to be chosen.
      const int64_t exponent = choice(step_of_round(*round) * (1 - 1e-6), factor).exponent;
      steps.emplace_back(round, Step{exponent, factor});
    }
  }
  return steps;
}

}  // namespace tenon::quant
