#include <tenon/tensor/reorder_parts_internal.hpp>

#include <algorithm>
#include <numeric>

#include <tenon/support/check.hpp>

namespace tenon::detail {
namespace {

// The longest period; beyond, elements are copied one by one.
constexpr int64_t kMaxPeriod = 1 << 14;

// The least common multiple, or the limit if that is less.
int64_t lcm_up_to(int64_t limit, int64_t a, int64_t b) {
  return a >= limit || b >= limit ? limit : std::min(std::lcm(a, b), limit);
}

Term term_of(const Layout& layout, int variable, int64_t div) {
  const LayoutData& data = layout.data();
  const LayoutVariable& v = data.variable(variable);
  return {.variable = variable,
          .div = div,
          .size = std::max<int64_t>(layout.variable_extent(variable), 1),
          .offset = v.offset,
          .fold = v.fold,
          .digits = digits_of(data, layout.bytes_per_bank() * 8, variable)};
}

// The variables of `layout` that contain `dims`, which must be whole groups of them in this order.
std::optional<Side> side_of(const Layout& layout, const std::vector<int>& dims) {
  Side side;
  int64_t div = 1;
  size_t end = dims.size();
  while (end > 0) {
    const auto holds_last = [&](const LayoutVariable& v) { return !v.dims.empty() && v.dims.back() == dims[end - 1]; };
    const auto it = std::ranges::find_if(layout.variables(), holds_last);
    if (it == layout.variables().end() || it->dims.size() > end) return std::nullopt;
    if (!std::ranges::equal(it->dims, std::span(dims).subspan(end - it->dims.size(), it->dims.size()))) {
      return std::nullopt;
    }
    side.terms.push_back(term_of(layout, static_cast<int>(it - layout.variables().begin()), div));
    div *= side.terms.back().size;
    end -= it->dims.size();
  }
  std::ranges::reverse(side.terms);
  return side;
}

NestLoop loop_at(const Group& group, int64_t place, int64_t count) {
  if (count == 1) return {};
  return {count, group.from.at(place), group.to.at(place)};
}

// Padding after the last value within its innermost block, if it is contiguous.
int64_t zeros_behind(const Group& group, int64_t element_bits) {
  const Term& term = group.to.terms.back();
  if (group.to.terms.size() != 1 || term.offset || term.fold || term.digits[0].bits != element_bits) return 0;
  const int64_t block = term.digits[0].extent;
  return round_up(group.extent, block) - group.extent;
}

}  // namespace

int64_t Term::at(int64_t x) const {
  int64_t z = x / div % size + offset;
  if (fold) z %= fold;
  int64_t bits = 0;
  for (const BitDigit& digit : digits) bits += z / digit.place % digit.extent * digit.bits;
  return bits;
}

bool Term::is_border(int64_t x) const {
  if (x % div != 0) return false;
  const int64_t y = x / div % size;
  int64_t z = y + offset;
  if (fold) z %= fold;
  if (div > 1 || y == 0 || (fold && z == 0)) return true;
  return digits.size() > 1 && z % digits[1].place == 0;
}

int64_t Side::at(int64_t x) const {
  int64_t bits = 0;
  for (const Term& term : terms) bits += term.at(x);
  return bits;
}

bool Side::is_border(int64_t x) const {
  return std::ranges::any_of(terms, [&](const Term& term) { return term.is_border(x); });
}

int64_t Side::period(int64_t limit) const {
  const Term& outer = terms.front();
  const auto times = [&](int64_t z) { return multiply(z, outer.div) ? z : limit; };
  int64_t period = lcm_up_to(limit, outer.div, times(outer.fold ? outer.fold : 1));
  for (const BitDigit& digit : outer.digits) period = lcm_up_to(limit, period, times(digit.place));
  return period;
}

std::optional<std::vector<int64_t>> Side::places() const {
  std::vector<int64_t> out;
  for (size_t t = terms.size(); t-- > 0;) {
    const Term& term = terms[t];
    if (term.offset || term.fold) return std::nullopt;
    if (t > 0 && term.size % term.digits.back().place != 0) return std::nullopt;
    for (const BitDigit& digit : term.digits) out.push_back(digit.place * term.div);
  }
  return out;
}

std::vector<BitDigit> digits_of(const LayoutData& data, int64_t bank_bits, int variable) {
  std::vector<BitDigit> digits, out;
  for (size_t j = 0; j < data.parts.digits.size(); ++j) {
    const LayoutDigit& digit = data.parts.digits[j];
    if (digit.variable != variable || (digit.extent <= 1 && digit.place != 1)) continue;
    int64_t bits = data.weight[j];
    switch (digit.space) {
      case LayoutSpace::device:
      case LayoutSpace::bank: bits *= bank_bits; break;
      case LayoutSpace::address: bits *= data.parts.word_bits; break;
      case LayoutSpace::lane: bits *= data.parts.lane_msb ? -data.parts.element_bits : data.parts.element_bits; break;
    }
    digits.push_back({digit.place, digit.extent, bits});
  }
  std::ranges::sort(digits, {}, [](const BitDigit& d) { return std::pair(d.place, d.extent); });
  for (const BitDigit& digit : digits) {
    if (!out.empty() && (out.back().extent == 1 || digit.bits == out.back().bits * out.back().extent)) {
      const int64_t extent = out.back().extent;
      if (extent == 1) out.back().bits = digit.bits;
      out.back().extent = extent * digit.extent;
    } else {
      out.push_back(digit);
    }
  }
  // The last digit has room for every value.
  if (out.empty()) out.push_back({});
  return out;
}

std::optional<std::vector<Group>> groups_of(const Layout& from, const Layout& to) {
  std::vector<Group> out;
  std::vector<bool> done(from.shape().size());
  for (size_t d = 0; d < done.size(); ++d) {
    if (done[d]) continue;
    // The longest of the variables that contain the dim; the others must not extend beyond it.
    const LayoutVariable* widest = nullptr;
    for (const Layout* layout : {&from, &to}) {
      for (const LayoutVariable& v : layout->variables()) {
        const bool holds = std::ranges::find(v.dims, static_cast<int>(d)) != v.dims.end();
        if (holds && (!widest || v.dims.size() > widest->dims.size())) widest = &v;
      }
    }
    TENON_CHECK(widest, "dim ", d, " is in no variable");
    Group group;
    group.name = widest->name;
    group.dims = widest->dims;
    for (const int dim : widest->dims) {
      if (done[static_cast<size_t>(dim)]) return std::nullopt;
      done[static_cast<size_t>(dim)] = true;
      group.extent *= from.shape()[static_cast<size_t>(dim)];
    }
    auto from_side = side_of(from, widest->dims), to_side = side_of(to, widest->dims);
    if (!from_side || !to_side) return std::nullopt;
    group.from = std::move(*from_side);
    group.to = std::move(*to_side);
    out.push_back(std::move(group));
  }
  return out;
}

bool keep_least(const Layout& to, std::vector<Group>& groups) {
  if (to.injective()) return true;
  for (Group& group : groups) {
    for (const Term& term : group.to.terms) {
      int64_t values = term.fold ? std::min(term.size, term.fold) : term.size;
      // Ragged digits have no strides, so none repeats values with a stride of 0.
      for (size_t i = to.is_ragged() ? 0 : term.digits.size(); i-- > 0;) {
        const BitDigit& digit = term.digits[i];
        if (digit.bits != 0 || digit.place >= values) continue;
        if (i + 1 < term.digits.size() && term.digits[i + 1].place < values) return false;
        values = digit.place;
      }
      if (values == term.size) continue;
      if (group.to.terms.size() > 1) return false;
      group.extent = values;
    }
  }
  return true;
}

std::optional<std::vector<int64_t>> common_places(const Group& group) {
  auto places = group.from.places(), more = group.to.places();
  if (!places || !more) return std::nullopt;
  places->insert(places->end(), more->begin(), more->end());
  places->push_back(1);
  std::ranges::sort(*places);
  const auto same = std::ranges::unique(*places);
  places->erase(same.begin(), same.end());
  std::erase_if(*places, [&](int64_t p) { return p > 1 && p >= group.extent; });
  for (size_t i = 0; i + 1 < places->size(); ++i) {
    if ((*places)[i + 1] % (*places)[i] != 0) return std::nullopt;
  }
  return places;
}

std::vector<Part> nested_parts(const Group& group, const std::vector<int64_t>& places, int64_t element_bits) {
  std::vector<Part> out;
  int64_t x = 0;
  for (size_t top = places.size(); top-- > 0;) {
    const int64_t count = (group.extent - x) / places[top];
    if (count == 0) continue;
    Part part{group.from.at(x), group.to.at(x), {loop_at(group, places[top], count)}};
    for (size_t i = top; i-- > 0;) part.loops.push_back(loop_at(group, places[i], places[i + 1] / places[i]));
    out.push_back(std::move(part));
    x += count * places[top];
  }
  if (out.empty()) return out;
  const auto loops = std::ranges::count_if(out.back().loops, [](const NestLoop& loop) { return loop.count > 1; });
  if (loops <= 1 && (loops == 0 || out.back().loops.back().count > 1)) {
    out.back().zeros = zeros_behind(group, element_bits);
  }
  return out;
}

std::optional<std::vector<Part>> piecewise_parts(const Group& group, ReorderPieces& pieces) {
  const int64_t limit = std::min(group.extent, kMaxPeriod + 1);
  const int64_t period = lcm_up_to(limit, group.from.period(limit), group.to.period(limit));
  if (period > kMaxPeriod) return std::nullopt;
  const int64_t repeats = group.extent / period;
  const NestLoop outer{repeats, repeats > 1 ? group.from.at(period) - group.from.at(0) : 0,
                       repeats > 1 ? group.to.at(period) - group.to.at(0) : 0};
  std::vector<Part> out;
  const auto add = [&](int64_t begin, int64_t end, const NestLoop& repeat) {
    for (int64_t x = begin; x < end;) {
      int64_t stop = x + 1;
      while (stop < end && !group.from.is_border(stop) && !group.to.is_border(stop)) ++stop;
      NestLoop run{stop - x, 0, 0};
      if (run.count > 1) {
        run.from = group.from.at(x + 1) - group.from.at(x);
        run.to = group.to.at(x + 1) - group.to.at(x);
      }
      out.push_back({group.from.at(x), group.to.at(x), {repeat, run}});
      if (begin == 0) pieces.pieces.emplace_back(x, run.count);
      x = stop;
    }
  };
  add(0, period, outer);
  if (repeats * period < group.extent) add(repeats * period, group.extent, {});
  pieces.variable = group.name;
  pieces.period = period;
  return out;
}

}  // namespace tenon::detail
