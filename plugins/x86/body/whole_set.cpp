#include "x86/body/whole_set.hpp"

#include <algorithm>
#include <limits>

#include "x86/names.hpp"

namespace tenon::x86 {

namespace {

constexpr uint64_t kTopBit = uint64_t{1} << 63;

}  // namespace

WholeSet::WholeSet(ElementType type) : type_(type) {
  if (type.bits() >= 64)
    all_ = {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  else if (type.is_signed_int())
    all_ = {-(int64_t{1} << (type.bits() - 1)), (int64_t{1} << (type.bits() - 1)) - 1};
  else
    all_ = {0, (int64_t{1} << type.bits()) - 1};
}

WholeSet::WholeSet(ElementType type, uint64_t bits, bool below, bool equal, bool above) : WholeSet(type) {
  const int64_t at = number_of(bits);
  if (below && at > all_.first) add({all_.first, at - 1});
  if (equal) add({at, at});
  if (above && at < all_.last) add({at + 1, all_.last});
}

int64_t WholeSet::number_of(uint64_t bits) const {
  const int unused = 64 - type_.bits();
  if (type_.is_signed_int()) return static_cast<int64_t>(bits << unused) >> unused;
  return static_cast<int64_t>(unused > 0 ? bits << unused >> unused : bits ^ kTopBit);
}

uint64_t WholeSet::bits_of(int64_t number) const {
  const auto bits = static_cast<uint64_t>(number);
  if (type_.bits() < 64) return bits & ((uint64_t{1} << type_.bits()) - 1);
  return type_.is_signed_int() ? bits : bits ^ kTopBit;
}

void WholeSet::add(const Stretch& next) {
  if (!stretches_.empty() && stretches_.back().last + 1 == next.first)
    stretches_.back().last = next.last;
  else
    stretches_.push_back(next);
}

WholeSet WholeSet::common(const WholeSet& other) const {
  WholeSet out(type_);
  for (const Stretch& a : stretches_)
    for (const Stretch& b : other.stretches_)
      if (const Stretch both{std::max(a.first, b.first), std::min(a.last, b.last)}; both.first <= both.last)
        out.add(both);
  return out;
}

// An interval that exceeds the greatest number wraps around to the least.
WholeSet WholeSet::of(std::vector<Stretch> stretches) const {
  std::vector<Stretch> whole;
  for (const Stretch& one : stretches) {
    if (one.first <= one.last) {
      whole.push_back(one);
      continue;
    }
    whole.push_back({all_.first, one.last});
    whole.push_back({one.first, all_.last});
  }
  std::ranges::sort(whole, {}, &Stretch::first);
  WholeSet out(type_);
  for (const Stretch& one : whole) out.add(one);
  return out;
}

WholeSet WholeSet::more(uint64_t y) const {
  std::vector<Stretch> moved;
  if (stretches_.size() == 1 && stretches_[0] == all_) return *this;
  for (const Stretch& one : stretches_)
    moved.push_back({number_of(bits_of(one.first) + y), number_of(bits_of(one.last) + y)});
  return of(std::move(moved));
}

WholeSet WholeSet::negated() const {
  std::vector<Stretch> turned;
  if (stretches_.size() == 1 && stretches_[0] == all_) return *this;
  for (const Stretch& one : stretches_)
    turned.push_back({number_of(uint64_t{0} - bits_of(one.last)), number_of(uint64_t{0} - bits_of(one.first))});
  return of(std::move(turned));
}

WholeSet WholeSet::others() const {
  WholeSet out(type_);
  int64_t next = all_.first;
  for (const Stretch& one : stretches_) {
    if (one.first > next) out.add({next, one.first - 1});
    if (one.last == all_.last) return out;
    next = one.last + 1;
  }
  out.add({next, all_.last});
  return out;
}

std::optional<WholeSet::Comparison> WholeSet::as_comparison() const {
  const std::vector<Stretch> beside = others().stretches_;
  if (stretches_.empty()) return Comparison{kLess};
  if (beside.empty()) return Comparison{kEqual};
  const auto with = [&](Name op, int64_t number) { return Comparison{op, bits_of(number)}; };
  const Stretch& one = stretches_.front();
  if (stretches_.size() == 1 && one.first == one.last) return with(kEqual, one.first);
  if (beside.size() == 1 && beside[0].first == beside[0].last) return with(kNotEqual, beside[0].first);
  if (stretches_.size() == 1 && one.first == all_.first) return with(kLessOrEqual, one.last);
  if (stretches_.size() == 1 && one.last == all_.last) return with(kGreaterOrEqual, one.first);
  return std::nullopt;
}

}  // namespace tenon::x86
