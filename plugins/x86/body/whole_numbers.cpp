#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "x86/body/identities_internal.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::BodyNode;
using snippet::ValueId;

bool drops_fraction(Name op) {
  static const Name kNames[] = {"Floor", "Ceil", "Trunc", "RoundEven"};
  return std::ranges::find(kNames, op) != std::end(kNames);
}

bool is_whole_number(const BodyNode& scalar) {
  const auto number = std::bit_cast<float>(static_cast<uint32_t>(*scalar.attributes.find(kBits)->get_if<int64_t>()));
  return std::trunc(number) == number;
}

// Floats without a fraction, infinities and NaN. Their sums and products have no fraction either: results that are
// rounded have a magnitude of 2^24 and more.
class WholeNumbers final : public NodeIdentities {
 public:
  explicit WholeNumbers(NewBody& body) : body_(body) {}

  std::optional<ValueId> of(BodyNode& node) override {
    if (drops_fraction(node.op) && is_whole(node.operands[0])) return node.operands[0];
    if (whole_.size() < body_.value_count()) whole_.resize(body_.value_count(), 0);
    whole_[NewBody::index(node.result)] = makes_whole(node);
    return std::nullopt;
  }

 private:
  // Does not recognise Scalars made by other identities.
  bool is_whole(ValueId id) const {
    if (NewBody::index(id) < whole_.size() && whole_[NewBody::index(id)]) return true;
    const BodyNode* const scalar = body_.element(id) == kF32 ? body_.maker(id, kScalar) : nullptr;
    return scalar && is_whole_number(*scalar);
  }
  bool makes_whole(const BodyNode& node) const {
    static const Name kNames[] = {kAdd, kSub, kMul, kNeg, kAbs, kMax, kMin, kClampLow, kClampHigh};
    const auto whole = [&](ValueId id) { return is_whole(id); };
    if (body_.element(node.result) != kF32) return false;
    if (drops_fraction(node.op)) return true;
    if (node.op == kConvert)
      return body_.element(node.operands[0]).is_int() || body_.element(node.operands[0]).is_bool();
    if (node.op == kScalar) return is_whole_number(node);
    if (node.op == kWhere) return whole(node.operands[1]) && whole(node.operands[2]);
    return std::ranges::find(kNames, node.op) != std::end(kNames) && std::ranges::all_of(node.operands, whole);
  }

  NewBody& body_;
  std::vector<char> whole_;  // by value
};

}  // namespace

std::unique_ptr<NodeIdentities> whole_number_identities(NewBody& body) { return std::make_unique<WholeNumbers>(body); }

}  // namespace tenon::x86
