// Quotients by what stands while a loop runs, as products.
//
//   %s = ...                        %s = ...   %k = DivisorScale %s   %h = DivisorHigh %s, %k   %l = DivisorLow ...
//   loop { %q = Div %x, %s }        loop { %t = Mul %x, %k   %r = Mul %t, %l   %q = Fma %t, %h, %r }
//
// As by constants (passes/division.cpp): 1 / (s k) = h + l, with h towards 0 and l of its sign, so that infinities,
// zeros and NaN come out right; k, a power of two, keeps all in range. Here no sum can be told to be right for all x:
// it is the quotient but for one in a million, and there the number beside it; below 2^-100 within two units of the
// last place. Three operations of one cycle where the machine divides in five and more: not in loops that find as much
// to do beside the quotient. What is made of a divisor takes as long as several quotients.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

using snippet::RegisterIds;

const Name kDiv("Div"), kMul("Mul"), kFma("Fma"), kScale("DivisorScale"), kHigh("DivisorHigh"), kLow("DivisorLow");

class StandingDivisors {
 public:
  StandingDivisors(const LinearKernel& kernel, const PassOptions& options)
      : kernel_(kernel), options_(options), alike_(kernel, Uses(kernel)) {
    static const Name kBegin("LoopBegin"), kTail("TailBegin"), kEnd("LoopEnd"), kTailEnd("TailEnd"), kScalar("Scalar");
    std::vector<double> trips{1};  // of the loops that are open
    size_t stretch_end = 0;
    bool pays = false;
    for (size_t i = 0; i < kernel.body.size(); ++i) {
      const Instruction& one = kernel.body[i];
      if (one.op == kBegin) trips.push_back(trips_of(kernel.loops[static_cast<size_t>(one.number)]));
      if (one.op == kTail) trips.push_back(1);
      if (one.op == kEnd || one.op == kTailEnd) trips.pop_back();
      if (i >= stretch_end) std::tie(stretch_end, pays) = stretch_from(i);
      if (pays && is_quotient(one)) count(one.in[1], trips);
      // A constant that has no factors is left to the machine.
      for (const RegisterId id : one.out) made_[id] = one.op == kScalar || made_.contains(id) ? 0 : trips.size();
    }
  }

  bool has(RegisterId id) const {
    // Those by which main loops, single vectors and tails divide, as if each of them walked the row.
    constexpr double kLeastQuotients = 20;
    const auto made = made_.find(id);
    const auto found = quotients_.find(id);
    return found != quotients_.end() && found->second >= kLeastQuotients && made->second > 0;
  }
  // Of vectors.
  bool is_quotient(const Instruction& one) const {
    return one.op == kDiv && !one.memory && kernel_.registers[static_cast<size_t>(one.out[0])].element == kF32 &&
           !alike_.holds(one.out[0]);
  }

 private:
  // Of open extents: many.
  double trips_of(const Loop& loop) const {
    const auto dim = static_cast<size_t>(loop.dim);
    const int64_t extent = dim < kernel_.extents.size() ? kernel_.extents[dim] : -1;
    return extent < 0 ? 1e9 : static_cast<double>(extent / loop.increment);
  }
  // Where the instructions end that no border parts from the one at `begin`, and whether they wait for quotients.
  std::pair<size_t, bool> stretch_from(size_t begin) const {
    constexpr double kMostBeside = 10;  // cycles for a quotient
    size_t end = begin + 1;
    double beside = 0, quotients = 0;
    for (; end < kernel_.body.size() && !is_border(kernel_.body[end].op); ++end) {
      const Instruction& one = kernel_.body[end];
      is_quotient(one) ? quotients += 1 : beside += options_.cycles ? options_.cycles(kernel_, one) : 1;
    }
    return {end, beside <= kMostBeside * quotients};
  }
  void count(RegisterId divisor, const std::vector<double>& trips) {
    const auto made = made_.find(divisor);
    if (made == made_.end() || made->second == 0) return;
    double vectors = 1;
    for (size_t depth = made->second; depth < trips.size(); ++depth) vectors *= trips[depth];
    quotients_[divisor] += vectors;
  }

  const LinearKernel& kernel_;
  const PassOptions& options_;
  const Alike alike_;
  std::map<RegisterId, size_t> made_;  // how many loops are open, and one; 0: more than once
  std::map<RegisterId, double> quotients_;
};

// Registers of what to multiply by.
struct Factors {
  RegisterId scale = -1, high = -1, low = -1;
};

Factors write_factors(LinearKernel& kernel, RegisterId divisor, int label) {
  const auto make = [&](Name op, RegisterIds in) {
    const RegisterId out = kernel.add_lanes(kF32);
    kernel.body.push_back({.op = op, .in = std::move(in), .out = {out}, .label = label});
    return out;
  };
  const RegisterId scale = make(kScale, {divisor}), high = make(kHigh, {divisor, scale});
  return {scale, high, make(kLow, {divisor, scale, high})};
}

void write_quotient(LinearKernel& kernel, const Instruction& quotient, const Factors& by) {
  const auto make = [&](Name op, RegisterIds in, RegisterId out) {
    Instruction one = quotient;
    one.op = op, one.in = std::move(in), one.out = RegisterIds{out};
    kernel.body.push_back(std::move(one));
    return out;
  };
  const RegisterId x = make(kMul, {quotient.in[0], by.scale}, kernel.add_lanes(kF32));
  const RegisterId rest = make(kMul, {x, by.low}, kernel.add_lanes(kF32));
  make(kFma, {x, by.high, rest}, quotient.out[0]);
}

}  // namespace

void divide_by_standing(LinearKernel& kernel, const PassOptions& options) {
  if (std::ranges::none_of(kernel.body, [](const Instruction& one) { return one.op == kDiv; })) return;
  const LinearKernel old = kernel;
  const StandingDivisors standing(old, options);
  std::map<RegisterId, Factors> factors;
  kernel.body.clear();
  for (const Instruction& one : old.body) {
    const auto by = standing.is_quotient(one) ? factors.find(one.in[1]) : factors.end();
    if (by != factors.end())
      write_quotient(kernel, one, by->second);
    else
      kernel.body.push_back(one);
    for (const RegisterId id : one.out)
      if (standing.has(id)) factors[id] = write_factors(kernel, id, one.label);
  }
}

}  // namespace tenon::x86
