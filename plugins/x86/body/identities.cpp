#include "x86/body/identities.hpp"

#include <algorithm>
#include <utility>

#include "x86/body/identities_internal.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {

using snippet::Body;
using snippet::BodyNode;
using snippet::ValueId;

NewBody::NewBody(Body body, std::vector<char>& rounded)
    : body_(std::move(body)), rounded_(rounded), readers_(body_.values.size(), 0), makers_(body_.values.size(), -1) {
  for (const BodyNode& node : body_.nodes)
    for (const ValueId operand : node.operands) ++readers_[index(operand)];
  for (const snippet::BodyPort& output : body_.outputs) ++readers_[index(output.value)];
}

std::vector<BodyNode> NewBody::take_nodes() { return std::exchange(body_.nodes, {}); }

bool NewBody::vary_as(std::initializer_list<ValueId> operands, ValueId result) const {
  snippet::DimSet all = 0;
  for (const ValueId operand : operands) all |= varies(operand);
  return all == varies(result);
}

const BodyNode* NewBody::maker(ValueId id) const {
  const int made = index(id) < makers_.size() ? makers_[index(id)] : -1;
  return made < 0 ? nullptr : &body_.nodes[static_cast<size_t>(made)];
}

const BodyNode* NewBody::maker(ValueId id, Name op) const {
  const BodyNode* const made = maker(id);
  return made && made->op == op ? made : nullptr;
}

void NewBody::keep(BodyNode node) {
  if (makers_.size() < body_.values.size()) makers_.resize(body_.values.size(), -1);
  makers_[index(node.result)] = static_cast<int>(body_.nodes.size());
  body_.nodes.push_back(std::move(node));
}

ValueId NewBody::scalar(ElementType lane, uint64_t bits, const std::string& label) {
  BodyNode made = made_scalar(lane, bits, label);
  const ValueId id = made.result;
  keep(std::move(made));
  return id;
}

bool NewBody::set(BodyNode& node, Name op, std::vector<ValueId> operands) {
  node.op = op;
  node.operands = std::move(operands);
  node.attributes = {};
  return true;
}

std::optional<unsigned> orders_of(Name op) {
  static const std::pair<Name, unsigned> kOrders[] = {{kLess, 1},    {kEqual, 2},    {kLessOrEqual, 3},
                                                      {kGreater, 4}, {kNotEqual, 5}, {kGreaterOrEqual, 6}};
  const auto found = std::ranges::find(kOrders, op, &std::pair<Name, unsigned>::first);
  return found == std::end(kOrders) ? std::nullopt : std::optional(found->second);
}

Body with_identities(Body given, std::vector<char>& rounded) {
  NewBody body(std::move(given), rounded);
  std::vector<BodyNode> nodes = body.take_nodes();
  const auto by_choice = choice_identities(body, nodes), by_order = order_identities(body),
             by_fraction = whole_number_identities(body), by_conversion = conversion_identities(body, nodes),
             by_fold = fold_identities(body), by_integer = integer_identities(body), by_sum = sum_identities(body);
  std::vector<ValueId> same;  // the existing value that each value equals
  for (size_t i = 0; i < body.value_count(); ++i) same.push_back(static_cast<ValueId>(i));
  for (BodyNode& node : nodes) {
    for (ValueId& operand : node.operands) operand = same[NewBody::index(operand)];
    by_choice->of(node);
    std::optional<ValueId> is = by_order->of(node);
    if (!is) is = by_fraction->of(node);
    if (!is) is = by_conversion->of(node);
    if (!is) by_fold->of(node);
    if (!is) is = by_sum->of(node);
    if (!is) is = by_integer->of(node);  // last, because it must see nodes in the form in which they are kept
    if (is && body.alike(*is, node.result)) {
      same[NewBody::index(node.result)] = *is;
      continue;
    }
    body.keep(std::move(node));
  }
  for (snippet::BodyPort& output : body.body().outputs) output.value = same[NewBody::index(output.value)];
  return std::move(body.body());
}

}  // namespace tenon::x86
