// Quotients by loop-invariant divisors, as products.
//
//   %s = ...                        %s = ...   %h, %l of %s   %o = OddDivisor %s
//   loop { %q = Div %x, %s }        loop { %q = DivStanding %x, %s, %h, %l, %o }
//
// As for constants (passes/division.cpp): 1 / s = h + l, with h rounded towards 0 and l of the same sign, so that
// infinities, zeros and NaN are correct:
//
//   %h = Div 1 - 2^-23, %s          1 / s less one to two units in the last place, so that the remainder has its sign
//   %r = Fnma %h, %s, 1             r = 1 - h s
//   %c = ClampLow 2^-60, %r         where s is 0, infinite or NaN: any number, so that l has the sign of h
//   %p = Mul %c, %h   %l = Fma %p, %c, %p    h r + h r^2
//
//   %r = Mul %x, %l   %q = Fma %x, %h, %r
//
// s is odd (in the sense of OddDivisor) where h or l may not be a normal number; there the divider is used. DivStanding
// is the two products, with one check of o for several vectors; where s is known to be moderate (body/numbers.hpp) the
// check is omitted.
//
// Accuracy: this cannot be proved correctly rounded for all x. It gives the quotient except for one in a million
// (beyond 2^100 one in ten), and there the float next to it; below 2^-100 it is within two units in the last place.
//
// Cost: two operations with a throughput of one cycle, instead of a division with one of five cycles or more. It does
// not pay in loops where each vector unit has as much other work for each quotient. Preparing a divisor takes as long
// as several quotients, and relatively longer the more units there are for products, since only one unit divides.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "x86/names.hpp"
#include "x86/passes/quotients.hpp"

namespace tenon::x86 {
namespace {

class StandingDivisors {
 public:
  StandingDivisors(const LinearKernel& kernel, const PassOptions& options)
      : kernel_(kernel), options_(options), quotients_(kernel, options), made_(kernel.registers.size(), kUnmade) {
    std::vector<double> trips{1};  // trip counts of the open loops
    size_t stretch_end = 0;
    double beside = 0;
    for (size_t i = 0; i < kernel.body.size(); ++i) {
      const Instruction& one = kernel.body[i];
      if (one.op == kLoopBegin) trips.push_back(trips_of(kernel.loops[static_cast<size_t>(one.number)]));
      if (one.op == kTailBegin) trips.push_back(1);
      if (one.op == kLoopEnd || one.op == kTailEnd) trips.pop_back();
      if (i >= stretch_end) std::tie(stretch_end, beside) = quotients_.stretch_from(i);
      if (quotients_.holds(one)) {
        if (one.attributes.find(kModerate)) moderate_.insert(one.in[1]);
        if (beside <= quotients_.unit_cycles_of(one)) count(one, trips);
      }
      // A constant without factors is left to the divider.
      for (const RegisterId id : one.out) made(id) = one.op == kScalar || made(id) != kUnmade ? 0 : trips.size();
    }
  }

  bool has(RegisterId id) const {
    const auto found = gains_.find(id);
    return found != gains_.end() && found->second >= 1 && made_[static_cast<size_t>(id)] > 0;
  }
  bool has_any() const {
    return std::ranges::any_of(gains_, [&](const auto& gain) { return has(gain.first); });
  }
  bool is_moderate(RegisterId id) const { return moderate_.contains(id); }
  bool is_quotient(const Instruction& one) const { return quotients_.holds(one); }

 private:
  // An open extent counts as a large trip count.
  double trips_of(const Loop& loop) const {
    const auto dim = static_cast<size_t>(loop.dim);
    const int64_t extent = dim < kernel_.extents.size() ? kernel_.extents[dim] : -1;
    return extent < 0 ? 1e9 : static_cast<double>(extent / loop.increment);
  }
  // Counts a quotient in main loops, loops of single vectors and tails, as if each of them traversed the whole row.
  // Preparing the factors stalls a row, with little other work to overlap.
  void count(const Instruction& quotient, const std::vector<double>& trips) {
    // Divider cycles, per vector unit, from which it pays: for moderate divisors, and for checked ones with several
    // units.
    constexpr double kLeastQuotients = 20, kLeastCycles = 64, kLeastChecked = 128;
    const RegisterId divisor = quotient.in[1];
    const size_t begin = made(divisor);
    if (begin == kUnmade || begin == 0) return;
    double gain = 1 / kLeastQuotients;
    const double cycles = quotients_.unit_cycles_of(quotient);
    if (options_.vector_units > 1) gain = std::max(gain, cycles / kLeastChecked);
    if (is_moderate(divisor)) gain = cycles / kLeastCycles;
    for (size_t depth = begin; depth < trips.size(); ++depth) gain *= trips[depth];
    gains_[divisor] += gain;
  }
  const LinearKernel& kernel_;
  const PassOptions& options_;
  const Quotients quotients_;
  static constexpr size_t kUnmade = ~size_t{0};
  size_t& made(RegisterId id) { return made_[static_cast<size_t>(id)]; }
  std::vector<size_t> made_;  // number of loops open where each register is written, plus one; 0: more than once
  std::map<RegisterId, double> gains_;  // by divisor: time saved, relative to the cost of its factors
  std::set<RegisterId> moderate_;
};

// Appends the products, or DivStanding, in place of `quotient`.
void write_quotient(LinearKernel& kernel, const Instruction& quotient, const DivisorFactors& by) {
  const auto make = [&](Name op, RegisterIds in, RegisterId out) {
    Instruction one = quotient;
    one.op = op, one.in = std::move(in), one.out = RegisterIds{out};
    one.attributes = {};
    kernel.body.push_back(std::move(one));
    return out;
  };
  const RegisterId x = quotient.in[0];
  if (by.odd >= 0)
    return void(make("DivStanding", {x, quotient.in[1], by.parts.high, by.parts.low, by.odd}, quotient.out[0]));
  make(kFma, {x, by.parts.high, make(kMul, {x, by.parts.low}, kernel.add_lanes(kF32))}, quotient.out[0]);
}

}  // namespace

void divide_by_standing(LinearKernel& kernel, const PassOptions& options) {
  if (!has_any(kernel, {kDiv})) return;
  const StandingDivisors standing(kernel, options);
  if (!standing.has_any()) return;
  std::map<RegisterId, DivisorFactors> factors;
  std::vector<Instruction> old = std::exchange(kernel.body, {});
  kernel.body.reserve(old.size() + old.size() / 4);
  FactorWriter writer(kernel);
  for (Instruction& one : old) {
    if (is_border(one.op)) writer.begin_stretch();
    const int label = one.label;
    const RegisterIds out = one.out;
    const auto by = standing.is_quotient(one) ? factors.find(one.in[1]) : factors.end();
    if (by != factors.end())
      write_quotient(kernel, one, by->second);
    else
      kernel.body.push_back(std::move(one));
    for (const RegisterId id : out)
      if (standing.has(id)) factors[id] = writer.write_factors(id, standing.is_moderate(id), label);
  }
}

}  // namespace tenon::x86
