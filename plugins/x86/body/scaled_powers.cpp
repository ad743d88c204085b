#include "x86/body/scaled_powers.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::Body;
using snippet::BodyNode;
using snippet::ValueId;

constexpr int64_t kExponent = 80;
constexpr float kScale = 0x1p-80f, kLeastNormal = 0x1p-126f;

class Scaler {
 public:
  explicit Scaler(Body body) : body_(std::move(body)), makers_(body_.values.size()), users_(body_.values.size()) {
    for (size_t i = 0; i < body_.nodes.size(); ++i) {
      makers_[index(body_.nodes[i].result)] = i;
      for (const ValueId operand : body_.nodes[i].operands) users_[index(operand)].push_back(i);
    }
  }

  Body run() && {
    const bool has_powers = std::ranges::any_of(body_.nodes, [](const BodyNode& node) { return node.op == kExp; });
    if (!has_powers) return std::move(body_);
    plans_.resize(body_.nodes.size());
    for (const BodyNode& node : body_.nodes)
      if (is_below_greatest(node)) plan(node);
    return rewritten();
  }

 private:
  // How a node is rewritten.
  enum class Plan : uint8_t { as_it_is, power, sum, scaled_sum, reciprocal, product, quotient };

  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  const BodyNode* maker(ValueId id, Name op) const {
    const auto at = makers_[index(id)];
    return at && body_.nodes[*at].op == op ? &body_.nodes[*at] : nullptr;
  }
  bool is_output(ValueId id) const {
    return std::ranges::find(body_.outputs, id, &snippet::BodyPort::value) != body_.outputs.end();
  }
  bool is_number(ValueId id, float number) const {
    const BodyNode* scalar = maker(id, kScalar);
    return scalar && *scalar->attributes.find(kBits)->get_if<int64_t>() == int64_t{std::bit_cast<uint32_t>(number)};
  }

  // A power of x minus the maximum of its row: at least one in the row is 1, or NaN.
  bool is_below_greatest(const BodyNode& node) const {
    if (node.op != kExp || !node.attributes.has("below_1") || is_output(node.result)) return false;
    const BodyNode* difference = maker(node.operands[0], kSub);
    const BodyNode* greatest = difference ? maker(difference->operands[1], kReduceMax) : nullptr;
    return greatest && greatest->operands[0] == difference->operands[0];
  }

  // The sum of the power, if all its other readers divide by that sum.
  const BodyNode* sum_of(const BodyNode& power) const {
    const auto& users = users_[index(power.result)];
    const auto is_sum = [&](size_t user) { return body_.nodes[user].op == kReduceSum; };
    const auto found = std::ranges::find_if(users, is_sum);
    if (found == users.end()) return nullptr;
    const BodyNode& sum = body_.nodes[*found];
    const bool all = std::ranges::all_of(users, [&](size_t user) {
      return &body_.nodes[user] == &sum || is_quotient(body_.nodes[user], power.result, sum.result) ||
             is_product(body_.nodes[user], power.result, sum.result);
    });
    return all ? &sum : nullptr;
  }
  bool is_quotient(const BodyNode& node, ValueId power, ValueId sum) const {
    return node.op == kDiv && node.operands[0] == power && node.operands[1] == sum;
  }
  // A product with the reciprocal, which only such products read.
  bool is_product(const BodyNode& node, ValueId power, ValueId sum) const {
    if (node.op != kMul || node.operands[0] == node.operands[1]) return false;
    const ValueId other = node.operands[node.operands[0] == power ? 1 : 0];
    const BodyNode* reciprocal = maker(other, kDiv);
    if (!reciprocal || reciprocal->operands[1] != sum || !is_number(reciprocal->operands[0], 1) || is_output(other))
      return false;
    return std::ranges::all_of(users_[index(other)], [&](size_t user) {
      const BodyNode& of = body_.nodes[user];
      return of.op == kMul && of.operands[0] != of.operands[1] && std::ranges::count(of.operands, power) == 1;
    });
  }

  void plan(const BodyNode& power) {
    const BodyNode* sum = sum_of(power);
    if (!sum) return;
    plans_[*makers_[index(power.result)]] = Plan::power;
    for (const size_t user : users_[index(power.result)])
      plans_[user] = body_.nodes[user].op == kMul   ? Plan::product
                     : body_.nodes[user].op == kDiv ? Plan::quotient
                                                    : Plan::sum;
    bool is_read = is_output(sum->result);
    for (const size_t user : users_[index(sum->result)]) {
      const bool factor = is_factor(body_.nodes[user], power.result);
      if (factor) plans_[user] = Plan::reciprocal;
      is_read |= !factor;
    }
    if (is_read) plans_[*makers_[index(sum->result)]] = Plan::scaled_sum;
  }
  // The reciprocal that is a factor of `power`.
  bool is_factor(const BodyNode& node, ValueId power) const {
    const auto& users = users_[index(node.result)];
    return node.op == kDiv && !users.empty() && is_product(body_.nodes[users[0]], power, node.operands[1]) &&
           is_number(node.operands[0], 1);
  }

  Body rewritten() {
    std::vector<BodyNode> old = std::exchange(body_.nodes, {});
    std::vector<ValueId> scaled(body_.values.size());  // the value that replaces a sum
    for (size_t i = 0; i < scaled.size(); ++i) scaled[i] = static_cast<ValueId>(i);
    for (size_t i = 0; i < old.size(); ++i) {
      BodyNode& node = old[i];
      if (plans_[i] != Plan::reciprocal)
        for (ValueId& operand : node.operands) operand = scaled[index(operand)];
      switch (plans_[i]) {
        case Plan::power: node.attributes.set("exponent", kExponent); break;
        case Plan::product: scale_back(std::move(node)); continue;
        case Plan::quotient: divide(std::move(node)); continue;
        case Plan::scaled_sum: {
          const ValueId sum = node.result;
          const std::string label = node.label;
          body_.nodes.push_back(std::move(node));
          scaled[index(sum)] = append({.op = kMul, .operands = {sum, number(kScale)}, .label = label}, sum);
          continue;
        }
        case Plan::sum:
        case Plan::reciprocal:
        case Plan::as_it_is: break;
      }
      body_.nodes.push_back(std::move(node));
    }
    for (snippet::BodyPort& output : body_.outputs)
      if (index(output.value) < scaled.size()) output.value = scaled[index(output.value)];
    return std::move(body_);
  }

  void divide(BodyNode quotient) {
    const ValueId result = quotient.result;
    const std::string label = quotient.label;
    scale_back({.op = kMul,
                .operands = {append(std::move(quotient), result), number(kScale)},
                .result = result,
                .label = label});
  }
  void scale_back(BodyNode product) {
    const ValueId result = product.result, least = number(kLeastNormal), half = number(kLeastNormal / 2);
    const auto make = [&](Name op, std::vector<ValueId> operands) {
      return append({.op = op, .operands = std::move(operands), .label = product.label}, result);
    };
    const ValueId more = make(kFma, {product.operands[0], product.operands[1], least});
    body_.nodes.push_back(
        {.op = kSub, .operands = {make(kSub, {more, half}), half}, .result = result, .label = product.label});
  }

  ValueId number(float number) {
    for (const auto& [made, id] : numbers_)
      if (made == number) return id;
    body_.nodes.push_back(body_.make_scalar(kF32, std::bit_cast<uint32_t>(number)));
    numbers_.emplace_back(number, body_.nodes.back().result);
    return numbers_.back().second;
  }
  // Appends a node whose result has the type and the dims of `like`.
  ValueId append(BodyNode node, ValueId like) {
    return body_.append(std::move(node), body_.values[index(like)], body_.nodes);
  }

  Body body_;
  std::vector<std::optional<size_t>> makers_;  // by value: the node that computes it
  std::vector<std::vector<size_t>> users_;
  std::vector<Plan> plans_;
  std::vector<std::pair<float, ValueId>> numbers_;
};

}  // namespace

Body with_scaled_powers(Body body) { return Scaler(std::move(body)).run(); }

}  // namespace tenon::x86
