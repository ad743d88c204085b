#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "x86/body/identities_internal.hpp"
#include "x86/body/linear_sums.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::BodyNode;
using snippet::ValueId;

const Name kBitwiseNot("BitwiseNot");

class SumIdentities final : public NodeIdentities {
 public:
  explicit SumIdentities(NewBody& body) : body_(body) {
    for (const snippet::BodyPort& input : body.body().inputs) type_of_[input.value] = input.element;
  }

  std::optional<ValueId> of(BodyNode& node) override { return body_.is_int(node.result) ? as_sum(node) : std::nullopt; }

 private:
  static size_t index(ValueId id) { return NewBody::index(id); }
  static ElementType wrapped_to(const BodyNode& wrap) {
    static const Name kTo("to");
    return ElementType::parse(*wrap.attributes.find(kTo)->get_if<std::string>()).value_or(ElementType{});
  }

  struct Sums {
    LinearSum exact, low;  // modulo the width of the type; modulo the width of Wraps, looking through them
  };
  int lane_bits(ValueId id) const { return body_.element(id).bits(); }
  Sums own(ValueId id) const { return {LinearSum::of(id, lane_bits(id)), LinearSum::of(id, lane_bits(id))}; }
  const Sums& sums_of(ValueId id) {
    if (sums_.size() < body_.value_count()) sums_.resize(body_.value_count());
    std::optional<Sums>& found = sums_[index(id)];
    return found ? *found : found.emplace(own(id));
  }
  bool renames(const BodyNode& node) const {
    return node.op == kConvert && body_.is_int(node.operands[0]) &&
           lane_bits(node.operands[0]) == lane_bits(node.result);
  }
  std::optional<LinearSum> sum(const BodyNode& node, LinearSum Sums::*which) {
    const int bits = lane_bits(node.result);
    const auto in = [&](size_t i) -> LinearSum { return sums_of(node.operands[i]).*which; };
    if (node.op == kScalar)
      return LinearSum{.constant = static_cast<uint64_t>(*node.attributes.find(kBits)->get_if<int64_t>())}.of_bits(
          bits);
    if (std::ranges::any_of(node.operands, [&](ValueId id) { return !body_.is_int(id) || lane_bits(id) != bits; }))
      return std::nullopt;
    if (node.op == kAdd) return sum_of(in(0), in(1));
    if (node.op == kSub) return sum_of(in(0), in(1).times(~uint64_t{0}));
    if (node.op == kNeg) return in(0).times(~uint64_t{0});
    if (node.op == kBitwiseNot)
      return sum_of(in(0).times(~uint64_t{0}), LinearSum{.constant = ~uint64_t{0}}.of_bits(bits));
    if (renames(node)) return in(0);
    if (node.op != kMul) return std::nullopt;
    for (const size_t i : {size_t{0}, size_t{1}})
      if (const LinearSum factor = sums_of(node.operands[i]).exact; factor.terms.empty())
        return in(1 - i).times(factor.constant);
    return std::nullopt;
  }
  void see_sum(const BodyNode& node) {
    Sums made = own(node.result);
    if (node.op == kWrap) {
      made.low = sums_of(node.operands[0]).low.of_bits(wrapped_to(node).bits());
    } else {
      if (auto exact = sum(node, &Sums::exact)) made.exact = *std::move(exact);
      if (auto low = sum(node, &Sums::low)) made.low = *std::move(low);
    }
    if (made.exact.terms.size() > LinearSum::kMostTerms) made.exact = own(node.result).exact;
    if (made.low.terms.size() > LinearSum::kMostTerms) made.low = made.exact;
    sums_of(node.result);
    sums_[index(node.result)] = std::move(made);
  }

  // Returns an existing value that equals the node, or turns `node` into one that takes fewer operators.
  std::optional<ValueId> as_sum(BodyNode& node) {
    if (node.op == kWrap) return as_wrapped_sum(node);
    see_sum(node);
    if (!sums(node.op)) return std::nullopt;
    const LinearSum exact = sums_of(node.result).exact;
    if (exact == own(node.result).exact) return std::nullopt;
    if (exact.terms.empty()) return write_number(node, exact.constant), std::nullopt;
    if (exact.terms.size() == 1 && exact.terms[0].second == 1 && exact.constant == 0) {
      const ValueId x = exact.terms[0].first;
      return body_.alike(x, node.result) ? std::optional(x) : std::nullopt;
    }
    const auto [place, is_new] = by_sum_.try_emplace({exact, {}, body_.element(node.result)}, node.result);
    if (!is_new && body_.alike(place->second, node.result)) return place->second;
    if (std::ranges::any_of(node.operands, [&](ValueId id) { return is_sum(id) && body_.is_for_one(id); }))
      write(node, exact, &Sums::exact);
    remember(node.result, exact);
    return std::nullopt;
  }
  std::optional<ValueId> as_wrapped_sum(BodyNode& node) {
    see_sum(node);
    const ElementType type = wrapped_to(node);
    const ValueId x = node.operands[0];
    const LinearSum low = sums_of(node.result).low;
    if (low.bits != type.bits()) return std::nullopt;  // only fewer bits are known
    if (low.terms.size() == 1 && low.terms[0].second == 1 && low.constant == 0) {
      const ValueId of = low.terms[0].first;
      if (const auto known = type_of_.find(of);
          known != type_of_.end() && known->second == type && body_.alike(of, node.result))
        return of;
    }
    const auto [place, is_new] = by_sum_.try_emplace({low, type, body_.element(node.result)}, node.result);
    if (!is_new && body_.alike(place->second, node.result)) return place->second;
    type_of_[node.result] = type;
    if (low.terms.empty()) {
      write_number(node, type.is_signed_int() ? with_sign(low.constant, low.bits) : low.constant);
      return std::nullopt;
    }
    const BodyNode* const sum = body_.maker(x);
    const auto goes = [&](ValueId id) { return is_sum(id) && body_.is_for_one(id); };
    if (sum && body_.is_for_one(x) && is_sum(x) && std::ranges::any_of(sum->operands, goes)) {
      BodyNode made = *sum;
      if (write(made, low, &Sums::low)) {
        made.result = body_.add_value(body_.value(x));
        node.operands[0] = made.result;
        see_sum(made);
        body_.keep(std::move(made));
      }
    }
    remember(node.result, low);
    return std::nullopt;
  }
  // Whether it is computed by an operator of sums, or is a Wrap of such.
  bool is_sum(ValueId id) const {
    const BodyNode* const made = maker_of_sum(id);
    return made && sums(made->op);
  }
  const BodyNode* maker_of_sum(ValueId id) const {
    const BodyNode* made = body_.maker(id);
    while (made && (made->op == kWrap || renames(*made))) made = body_.maker(made->operands[0]);
    return made;
  }
  static bool sums(Name op) {
    static const Name kSums[] = {kAdd, kSub, kNeg, kMul, kBitwiseNot};
    return std::ranges::find(kSums, op) != std::end(kSums);
  }

  // Records a value that is a sum.
  void remember(ValueId id, const LinearSum& sum) {
    for (const auto& term : sum.terms) {
      std::vector<ValueId>& found = with_term_[term.first];
      found.push_back(id);
      if (found.size() > kMostCandidates) found.erase(found.begin());
    }
  }

  // Turns `node` into one operator that computes `sum` from existing values, or from one and a constant.
  bool write(BodyNode& node, const LinearSum& sum, LinearSum Sums::*which) {
    if (sum.terms.size() == 1 && write_one(node, sum.terms[0].first, sum.terms[0].second, sum)) return true;
    if (sum.terms.size() == 2 && sum.constant == 0 &&
        write_two(node, sum.terms[0].first, sum.terms[0].second, sum.terms[1].first, sum.terms[1].second, sum.bits))
      return true;
    const std::vector<ValueId> candidates = with_term_[sum.terms[0].first];
    for (auto other = candidates.rbegin(); other != candidates.rend(); ++other) {
      const LinearSum rest = sum_of(sum, (sums_of(*other).*which).times(~uint64_t{0}));
      if (rest.bits != sum.bits || *other == node.result) continue;
      if (rest.terms.size() == 1 && rest.constant == 0 &&
          write_two(node, *other, 1, rest.terms[0].first, rest.terms[0].second, sum.bits))
        return true;
    }
    return false;
  }
  static bool is_less_1(uint64_t factor, int bits) {
    return factor == LinearSum{.constant = ~uint64_t{0}}.of_bits(bits).constant;
  }
  // Sign-extends a number of `bits` bits.
  static uint64_t with_sign(uint64_t number, int bits) {
    return static_cast<uint64_t>(static_cast<int64_t>(number << (64 - bits)) >> (64 - bits));
  }
  bool write_one(BodyNode& node, ValueId x, uint64_t factor, const LinearSum& sum) {
    if (!body_.vary_as({x}, node.result) || !body_.alike(x, node.result)) return false;
    const auto number = [&](uint64_t of) { return lane_of(node, with_sign(of, sum.bits)); };
    if (factor == 1 && sum.constant != 0) return NewBody::set(node, kAdd, {x, number(sum.constant)});
    if (is_less_1(factor, sum.bits)) {
      if (sum.constant == 0 && body_.element(x).is_signed_int()) return NewBody::set(node, kNeg, {x});
      return NewBody::set(node, kSub, {number(sum.constant), x});
    }
    return sum.constant == 0 && multiplies(node) && NewBody::set(node, kMul, {x, number(factor)});
  }
  // Whether a multiplication is already needed.
  bool multiplies(const BodyNode& node) const {
    return node.op == kMul || std::ranges::any_of(node.operands, [&](ValueId id) {
             const BodyNode* const made = maker_of_sum(id);
             return made && made->op == kMul;
           });
  }
  bool write_two(BodyNode& node, ValueId a, uint64_t of_a, ValueId b, uint64_t of_b, int bits) {
    if (!body_.vary_as({a, b}, node.result) || body_.element(a) != body_.element(node.result) ||
        body_.element(b) != body_.element(node.result))
      return false;
    if (of_a == 1 && of_b == 1) return NewBody::set(node, kAdd, {a, b});
    if (of_a == 1 && is_less_1(of_b, bits)) return NewBody::set(node, kSub, {a, b});
    return is_less_1(of_a, bits) && of_b == 1 && NewBody::set(node, kSub, {b, a});
  }
  void write_number(BodyNode& node, uint64_t number) { NewBody::set(node, kSpread, {lane_of(node, number)}); }
  // A Scalar with this number.
  ValueId lane_of(const BodyNode& like, uint64_t number) {
    const ElementType lane = body_.element(like.result);
    BodyNode made =
        body_.made_scalar(lane, lane.bits() == 32 ? uint64_t{static_cast<uint32_t>(number)} : number, like.label);
    const ValueId id = made.result;
    see_sum(made);
    body_.keep(std::move(made));
    return id;
  }

  static constexpr size_t kMostCandidates = 4;

  struct Numbered {
    LinearSum sum;
    ElementType wrapped, lane;
    auto operator<=>(const Numbered&) const = default;
  };

  NewBody& body_;
  std::unordered_map<ValueId, ElementType> type_of_;  // narrow integer types, of inputs and Wraps
  std::vector<std::optional<Sums>> sums_;
  std::map<Numbered, ValueId> by_sum_;
  std::unordered_map<ValueId, std::vector<ValueId>> with_term_;
};

}  // namespace

std::unique_ptr<NodeIdentities> sum_identities(NewBody& body) { return std::make_unique<SumIdentities>(body); }

}  // namespace tenon::x86
