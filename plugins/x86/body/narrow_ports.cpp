#include "x86/body/narrow_ports.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::Body;
using snippet::BodyNode;
using snippet::BodyPort;
using snippet::ValueId;

bool is_comparison(Name op) {
  static const std::unordered_set<Name> kAll{"Equal", "NotEqual", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
  return kAll.contains(op);
}

class Narrower {
 public:
  explicit Narrower(const Body& body) : body_(body), asked_(body.values.size()), numbers_(body.values.size()) {}

  Body run() && {
    const auto is_wide = [](const snippet::BodyValue& value) { return value.element.bits() == 64; };
    if (std::ranges::none_of(body_.values, is_wide) || !see()) return std::move(body_);
    for (const BodyPort& port : body_.inputs)
      if (port.element.bits() == 64 && !narrow(port.value)) return std::move(body_);
    return rewritten();
  }

 private:
  struct Asked {
    bool whole = false;     // converted to f32
    bool low = false;       // its low bits are read
    double magnitude = -1;  // the greatest magnitude of the numbers that it is compared with; -1: none
    bool is_input = false;
    ElementType lane = kI64;  // the chosen lane type
  };
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  ElementType element(ValueId id) const { return body_.values[index(id)].element; }
  bool is_wide(ValueId id) const { return element(id).bits() == 64; }

  // Collects the uses of each input; false if any other value is 64 bits wide.
  bool see() {
    for (const BodyPort& port : body_.inputs) asked_[index(port.value)].is_input = true;
    for (const BodyPort& output : body_.outputs)
      if (is_wide(output.value)) return false;
    for (const BodyNode& node : body_.nodes) {
      if (is_wide(node.result)) {
        if (node.op != kScalar || element(node.result) != kI64) return false;
        numbers_[index(node.result)] = *node.attributes.find("bits")->get_if<int64_t>();
      } else if (std::ranges::any_of(node.operands, [&](ValueId id) { return is_wide(id); }) && !ask(node)) {
        return false;
      }
    }
    return true;
  }

  bool ask(const BodyNode& node) {
    const auto& in = node.operands;
    if (std::ranges::any_of(in, [&](ValueId id) { return element(id) != kI64; })) return false;
    if (node.op == kConvert && asked_[index(in[0])].is_input) {
      const ElementType to = element(node.result);
      asked_[index(in[0])].whole |= to == kF32, asked_[index(in[0])].low |= to == kI32 || to == kU32;
      return to == kF32 || to == kI32 || to == kU32;
    }
    if (!is_comparison(node.op)) return false;
    for (const size_t x : {0, 1}) {
      const auto& number = numbers_[index(in[1 - x])];
      if (!asked_[index(in[x])].is_input || !number) continue;
      double& magnitude = asked_[index(in[x])].magnitude;
      magnitude = std::max(magnitude, std::abs(static_cast<double>(*number)));
      return true;
    }
    return false;
  }

  bool narrow(ValueId id) {
    Asked& asked = asked_[index(id)];
    if (element(id) != kI64) return false;
    if (asked.low)
      asked.lane = asked.whole || asked.magnitude >= 0 ? kI64 : kU32;
    else if (asked.whole)
      asked.lane = asked.magnitude < 0x1p24 ? kF32 : kI64;
    else
      asked.lane = asked.magnitude < 0x1p31 - 1 ? kI32 : kI64;
    return asked.lane != kI64;
  }

  Body rewritten() {
    std::vector<ValueId> same(body_.values.size());
    for (size_t i = 0; i < same.size(); ++i) same[i] = static_cast<ValueId>(i);
    std::vector<BodyNode> all;
    for (BodyNode& node : body_.nodes) {
      if (is_wide(node.result)) continue;
      for (ValueId& operand : node.operands) operand = same[index(operand)];
      if (node.op == kConvert && asked_[index(node.operands[0])].lane == kF32) {
        same[index(node.result)] = node.operands[0];
        continue;
      }
      if (is_comparison(node.op) && is_wide(node.operands[0]))
        for (const size_t x : {0, 1})
          if (numbers_[index(node.operands[x])])
            all.push_back(number(node, x, asked_[index(node.operands[1 - x])].lane));
      all.push_back(std::move(node));
    }
    body_.nodes = std::move(all);
    for (BodyPort& output : body_.outputs) output.value = same[index(output.value)];
    // Includes numbers that nothing reads any more.
    for (size_t i = 0; i < asked_.size(); ++i)
      if (body_.values[i].element.bits() == 64) body_.values[i].element = asked_[i].is_input ? asked_[i].lane : kI32;
    return std::move(body_);
  }

  // The number of operand `at` of `node`, as a constant in another lane type.
  BodyNode number(BodyNode& node, size_t at, ElementType lane) {
    const int64_t value = *numbers_[index(node.operands[at])];
    const uint32_t bits =
        lane == kF32 ? std::bit_cast<uint32_t>(static_cast<float>(value)) : static_cast<uint32_t>(value);
    BodyNode made = body_.make_scalar(lane, bits, node.label);
    node.operands[at] = made.result;
    return made;
  }

  Body body_;
  std::vector<Asked> asked_;                     // by value
  std::vector<std::optional<int64_t>> numbers_;  // by value: its number, if it is a 64-bit constant
};

}  // namespace

Body with_narrow_ports(const Body& body) { return Narrower(body).run(); }

}  // namespace tenon::x86
