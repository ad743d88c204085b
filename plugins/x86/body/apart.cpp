#include "x86/body/apart.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include <tenon/snippet/lower/lower.hpp>

#include "x86/body/factors.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::Body;
using snippet::BodyNode;
using snippet::ValueId;

using Values = std::vector<ValueId>;

const Name kOddDivisor("OddDivisor"), kDivStanding("DivStanding");

struct ApartFactors {
  QuotientParts parts;
  ValueId odd = -1;  // where the divisor is odd
};

class Divider {
 public:
  Divider(const Body& body, int lanes, double units, const std::function<double(const Body&, const BodyNode&)>& cycles)
      : body_(body), lanes_(lanes) {
    double quotients = 0, beside = 0;
    for (const BodyNode& node : body.nodes) {
      if (!moves(node.result)) continue;
      (is_quotient(node) ? quotients : beside) += is_quotient(node) ? 1 : cycles(body, node);
      if (is_quotient(node)) cycles_ = cycles(body, node) * units;
    }
    // It pays where other work takes at most as long as the divider.
    pays_ = beside <= cycles_ * quotients && quotients > 0;
  }

  Body run() && {
    if (!pays_) return std::move(body_);
    std::vector<BodyNode> all;
    for (BodyNode& node : body_.nodes) {
      if (is_quotient(node) && pays(node))
        divide(node, all);
      else
        all.push_back(std::move(node));
    }
    body_.nodes = std::move(all);
    return std::move(body_);
  }

 private:
  const snippet::BodyValue& value(ValueId id) const { return body_.values[static_cast<size_t>(id)]; }
  bool moves(ValueId id) const { return body_.rank() > 0 && (value(id).varies >> (body_.rank() - 1) & 1) != 0; }
  bool is_quotient(const BodyNode& node) const {
    return node.op == kDiv && value(node.result).element == kF32 && moves(node.result) &&
           snippet::goes_apart(body_, node.operands[1], lanes_);
  }
  // Instead, one element of each factor is loaded per row.
  bool pays(const BodyNode& quotient) const {
    constexpr double kCycles = 16;
    double vectors = 1;
    for (size_t d = body_.rank(); d-- > 0 && (value(quotient.operands[1]).varies >> d & 1) == 0;)
      vectors *= static_cast<double>(body_.dims[d].extent.constant()) / (d + 1 == body_.rank() ? lanes_ : 1);
    return vectors * cycles_ > kCycles;
  }

  void divide(const BodyNode& quotient, std::vector<BodyNode>& all) {
    const ValueId divisor = quotient.operands[1];
    const auto made_like = [&](ValueId like) {
      return [&, like](Name op, Values operands) {
        return body_.append({.op = op, .operands = std::move(operands), .label = quotient.label}, value(like), all);
      };
    };
    const auto number = [&](float x) {
      all.push_back(body_.make_scalar(kF32, std::bit_cast<uint32_t>(x)));
      return all.back().result;
    };
    const auto [by, is_new] = factors_.try_emplace(divisor);
    if (is_new) by->second.parts = parts_of_divisor(divisor, made_like(divisor), number);
    auto& [parts, odd] = by->second;
    const ValueId x = quotient.operands[0];
    BodyNode made{.op = kFma, .result = quotient.result, .label = quotient.label};
    if (quotient.attributes.has(kModerate)) {
      made.operands = {x, parts.high, made_like(quotient.result)(kMul, {x, parts.low})};
    } else {
      if (odd < 0)
        odd = body_.append({.op = kOddDivisor, .operands = {divisor}, .label = quotient.label},
                           {.element = kBool, .varies = value(divisor).varies}, all);
      made.op = kDivStanding;
      made.operands = {x, divisor, parts.high, parts.low, odd};
    }
    all.push_back(std::move(made));
  }

  Body body_;
  const int lanes_;
  double cycles_ = 0;  // of all units per quotient
  bool pays_ = false;
  std::map<ValueId, ApartFactors> factors_;  // by divisor
};

}  // namespace

Body with_factors_apart(const Body& body, int lanes, double units,
                        const std::function<double(const Body&, const BodyNode&)>& cycles) {
  return Divider(body, lanes, units, cycles).run();
}

}  // namespace tenon::x86
