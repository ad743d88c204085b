#include "x86/emitters/odd_table.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string_view>
#include <utility>

namespace tenon::x86 {
namespace {

constexpr size_t kNodes = 16;  // in an interval: more than the number of terms of any series in use
constexpr double kWithin = 0x1.cp-25;
constexpr double kFarthest = 0x1p60;  // bound of ends and of their reciprocals
constexpr size_t kMostPowers512 = 7, kMostPowers256 = 8;

using Series = std::array<double, kNodes>;

// From here on `outer` is within kWithin of 1.
double end_of(OddFunction::Outer outer) { return outer == OddFunction::Outer::erf ? 3.851 : 8.732; }

// The x for which `inner` has the value `value`; 0: none within the bounds.
double inverse(const OddFunction& function, double value) {
  double low = 1 / kFarthest, high = kFarthest;
  if (!(function.inner_of(low) < value && value < function.inner_of(high))) return 0;
  for (int step = 0; step < 200 && std::nextafter(low, high) < high; ++step) {
    const double middle = std::sqrt(low) * std::sqrt(high);
    (function.inner_of(middle) < value ? low : high) = middle;
  }
  return high;
}

// [k][node]: Chebyshev polynomial k at the zeros of polynomial kNodes.
using Cosines = std::array<std::array<double, kNodes>, kNodes>;
Cosines cosines() {
  Cosines made{};
  for (size_t k = 0; k < kNodes; ++k)
    for (size_t node = 0; node < kNodes; ++node)
      made[k][node] = std::cos(static_cast<double>(k) * std::numbers::pi * (static_cast<double>(node) + 0.5) /
                               static_cast<double>(kNodes));
  return made;
}

// The Chebyshev series of f over the interval around `center`, in t from -1 to 1.
Series series_of(const OddFunction& function, double center, double half) {
  static const Cosines at = cosines();
  Series values{}, terms{};
  for (size_t node = 0; node < kNodes; ++node) values[node] = function(center + half * at[1][node]);
  for (size_t k = 0; k < kNodes; ++k) {
    for (size_t node = 0; node < kNodes; ++node) terms[k] += values[node] * at[k][node];
    terms[k] *= (k == 0 ? 1.0 : 2.0) / static_cast<double>(kNodes);
  }
  return terms;
}

double rest_of(const Series& series, size_t powers) {
  double rest = 0;
  for (size_t k = powers; k < kNodes; ++k) rest += std::abs(series[k]);
  return rest;
}

size_t powers_for(const Series& series, double within) {
  size_t powers = kNodes;
  while (powers > 1 && rest_of(series, powers - 1) <= within) --powers;
  return powers;
}

// The first `powers` terms as a polynomial in t / 2, because distances are half of t.
std::vector<double> powers_of(const Series& series, size_t powers) {
  std::vector<double> sum(powers), before(powers), last(powers);
  for (size_t k = 0; k < powers; ++k) {
    std::vector<double> next(powers);  // T_k = 2 t T_(k-1) - T_(k-2)
    if (k < 2) {
      next[k] = 1;
    } else {
      for (size_t i = 0; i + 1 < powers; ++i) next[i + 1] = 2 * last[i];
      for (size_t i = 0; i < powers; ++i) next[i] -= before[i];
    }
    for (size_t i = 0; i < powers; ++i) sum[i] += series[k] * next[i];
    before = std::exchange(last, std::move(next));
  }
  for (size_t i = 0; i < powers; ++i) sum[i] = std::ldexp(sum[i], static_cast<int>(i));
  return sum;
}

// Substitutes scale x + shift for x in a polynomial with coefficients `terms`.
std::vector<double> moved(std::span<const double> terms, double scale, double shift) {
  std::vector<double> made(terms.size());
  for (size_t next = terms.size(); next-- > 0;) {
    for (size_t i = terms.size(); i-- > 0;) made[i] = made[i] * shift + (i > 0 ? made[i - 1] * scale : 0);
    made[0] += terms[next];
  }
  return made;
}

// Intervals around multiples of `step`, with as many powers as needed, up to one that begins after `end`, where f is
// constant. The first one covers only its half above 0, as does its series.
struct Pieces {
  double step = 0;
  size_t powers = 1;
  std::vector<Series> series;  // of all intervals but the last
};

Pieces pieces_of(const OddFunction& function, double step, double end) {
  Pieces made{.step = step};
  const auto last = static_cast<size_t>(std::ceil(end / step + 0.5));
  for (size_t k = 0; k < last; ++k) {
    made.series.push_back(k == 0 ? series_of(function, step / 4, step / 4)
                                 : series_of(function, static_cast<double>(k) * step, step / 2));
    made.powers = std::max(made.powers, powers_for(made.series.back(), kWithin));
  }
  return made;
}

// The amount to add to 1 minus a polynomial of f, whose error is `rest`, so that it is nowhere negative, given that
// 1 - f is at least `least`.
double raise_of(std::span<const double> terms, double rest, double least) {
  double sum = 0;  // of the magnitudes of the terms at the end of the interval
  for (size_t i = terms.size(); i-- > 0;) sum = sum / 2 + std::abs(i == 0 ? 1 - terms[0] : terms[i]);
  const double rounded = std::ldexp(sum, -22);
  return std::max(rest + rounded - least, 0.0);
}

std::span<const float> floats_of(const Attributes& attributes, std::string_view name) {
  const Attribute* const found = attributes.find(name);
  const auto* const floats = found ? found->get_if<std::vector<float>>() : nullptr;
  return floats ? std::span<const float>(*floats) : std::span<const float>();
}

}  // namespace

double OddFunction::inner_of(double x) const {
  double sum = 0;
  for (size_t i = inner.size(); i-- > 0;) {
    if (sum != 0) sum *= x * x;  // avoids 0 times infinity
    sum += static_cast<double>(inner[i]);
  }
  return sum * x;
}

double OddFunction::operator()(double x) const {
  const double y = inner_of(x);
  return static_cast<double>(scale) * (outer == Outer::erf ? std::erf(y) : std::tanh(y));
}

std::optional<OddTable> odd_table(const OddFunction& function, Isa isa, size_t most) {
  const double end = inverse(function, end_of(function.outer));
  if (end == 0) return std::nullopt;
  OddTable table;
  table.intervals = isa == Isa::avx512 ? 16 : 8;
  const double last = static_cast<double>(table.intervals) - 1.5;  // begin of the last interval
  float per_x = static_cast<float>(last / end);
  if (per_x > last / end) per_x = std::nextafter(per_x, 0.0f);
  const double power_of_two = std::exp2(std::ceil(std::log2(end / last)));

  OddFunction unit = function;
  unit.scale = 1;
  Pieces pieces = pieces_of(unit, 1 / static_cast<double>(per_x), end);
  if (Pieces even = pieces_of(unit, power_of_two, end); even.powers <= pieces.powers) {
    pieces = std::move(even);
    table.step = static_cast<float>(pieces.step);
  } else {
    table.per_x = per_x;
  }
  if (pieces.powers > most) return std::nullopt;
  const size_t level = pieces.series.size();  // the interval where f is constant
  table.end = static_cast<float>(static_cast<double>(level) * pieces.step);

  const auto scale = static_cast<double>(function.scale);
  table.terms.resize(pieces.powers * table.intervals);
  table.lacks.resize(table.intervals);
  for (size_t k = 0; k < level; ++k) {
    std::vector<double> terms = powers_of(pieces.series[k], pieces.powers);
    if (k == 0) {
      terms = moved(terms, 2, -0.5);
      terms[0] = 0;  // f(0), without rounding errors
    }
    const double least = 1 - unit((static_cast<double>(k) + 0.5) * pieces.step);
    const double raised = raise_of(terms, rest_of(pieces.series[k], pieces.powers), least);
    table.lacks[k] = static_cast<float>((1 - terms[0] + raised) * scale);
    double factor = scale;
    for (size_t i = 0; i < terms.size(); ++i) {
      table.terms[i * table.intervals + k] = static_cast<float>(terms[i] * factor);
      if (table.step != 0) factor /= pieces.step;
    }
  }
  table.terms[level] = function.scale;
  return table;
}

std::optional<OddTable> odd_table(const OddFunction& function, Isa isa) {
  // A kernel has the same function in several loops, and is generated in several forms.
  thread_local std::optional<std::pair<std::pair<OddFunction, Isa>, std::optional<OddTable>>> last;
  if (!last || last->first != std::pair(function, isa))
    last.emplace(std::pair(function, isa),
                 odd_table(function, isa, isa == Isa::avx512 ? kMostPowers512 : kMostPowers256));
  return last->second;
}

Name odd_function_name(OddFunction::Outer outer) {
  static const Name kErf("TabulatedErf"), kTanh("TabulatedTanh");
  return outer == OddFunction::Outer::erf ? kErf : kTanh;
}

Name odd_gate_name(OddFunction::Outer outer) {
  static const Name kErf("TabulatedErfGate"), kTanh("TabulatedTanhGate");
  return outer == OddFunction::Outer::erf ? kErf : kTanh;
}

Attributes odd_function_attributes(const OddFunction& function) {
  std::vector<float> of(function.inner.begin(), function.inner.end());
  while (of.size() > 1 && of.back() == 0) of.pop_back();
  Attributes made;
  made.set("of", std::move(of));
  return made;
}

Attributes odd_gate_attributes(const OddFunction& function) {
  Attributes made = odd_function_attributes(function);
  made.set("scale", std::vector<float>{function.scale});
  return made;
}

OddFunction odd_function_of(OddFunction::Outer outer, const Attributes& attributes) {
  OddFunction made{.outer = outer};
  const auto of = floats_of(attributes, "of"), scale = floats_of(attributes, "scale");
  if (of.size() <= made.inner.size()) std::ranges::copy(of, made.inner.begin());
  if (scale.size() == 1) made.scale = scale[0];
  return made;
}

}  // namespace tenon::x86
