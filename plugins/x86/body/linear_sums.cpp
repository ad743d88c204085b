#include "x86/body/linear_sums.hpp"

#include <algorithm>

namespace tenon::x86 {

LinearSum LinearSum::of_bits(int count) const {
  LinearSum made{.bits = std::min(bits, count)};
  const uint64_t kept = made.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << made.bits) - 1;
  made.constant = constant & kept;
  for (const auto& [value, factor] : terms)
    if ((factor & kept) != 0) made.terms.emplace_back(value, factor & kept);
  return made;
}

LinearSum LinearSum::times(uint64_t factor) const {
  LinearSum made = *this;
  made.constant *= factor;
  for (auto& term : made.terms) term.second *= factor;
  return made.of_bits(bits);
}

LinearSum sum_of(const LinearSum& a, const LinearSum& b) {
  LinearSum made{.constant = a.constant + b.constant, .bits = std::min(a.bits, b.bits)};
  auto left = a.terms.begin(), right = b.terms.begin();
  while (left != a.terms.end() || right != b.terms.end()) {
    const bool takes_left = right == b.terms.end() || (left != a.terms.end() && left->first <= right->first);
    const bool takes_right = left == a.terms.end() || (right != b.terms.end() && right->first <= left->first);
    auto& [value, factor] = made.terms.emplace_back(takes_left ? left->first : right->first, 0);
    if (takes_left) factor += left++->second;
    if (takes_right) factor += right++->second;
  }
  return made.of_bits(made.bits);
}

}  // namespace tenon::x86
