// From two layouts to nests of loops with constant strides.
#include <algorithm>
#include <numeric>
#include <optional>

#include <tenon/support/str.hpp>
#include <tenon/tensor/layout_internal.hpp>
#include <tenon/tensor/reorder_internal.hpp>
#include <tenon/tensor/reorder_tiles.hpp>

namespace tenon {

using detail::Nest;
using detail::NestLoop;
using detail::ReorderProgram;

namespace {

// Beyond, elements go one by one: pieces of one period, and nests.
constexpr int64_t kMaxPeriod = 1 << 14;
constexpr size_t kMaxNests = 4096;

// The least common multiple, or the limit when that is less.
int64_t lcm_up_to(int64_t limit, int64_t a, int64_t b) {
  return a >= limit || b >= limit ? limit : std::min(std::lcm(a, b), limit);
}

// Distance in bits between neighbouring values of a digit.
struct BitDigit {
  int64_t place = 1, extent = 1, bits = 0;
};

// What one variable of a layout adds to the bit offset, as a function of the values x of a group of dims: z = (x / div
// mod size) + offset, mod fold, then its digits.
struct Term {
  int64_t div = 1, size = 1, offset = 0, fold = 0;
  std::vector<BitDigit> digits;  // by rising place, the first one at 1

  int64_t at(int64_t x) const {
    int64_t z = x / div % size + offset;
    if (fold) z %= fold;
    int64_t bits = 0;
    for (const BitDigit& digit : digits) bits += z / digit.place % digit.extent * digit.bits;
    return bits;
  }
  // Whether the offset goes on from x - 1 to x with the stride of the first digit.
  bool is_border(int64_t x) const {
    if (x % div != 0) return false;
    const int64_t y = x / div % size;
    int64_t z = y + offset;
    if (fold) z %= fold;
    if (div > 1 || y == 0 || (fold && z == 0)) return true;
    return digits.size() > 1 && z % digits[1].place == 0;
  }
};

// One side of a group: its variables from the outermost in. Their offsets add up.
struct Side {
  std::vector<Term> terms;

  int64_t at(int64_t x) const {
    int64_t bits = 0;
    for (const Term& term : terms) bits += term.at(x);
    return bits;
  }
  bool is_border(int64_t x) const {
    return std::ranges::any_of(terms, [&](const Term& term) { return term.is_border(x); });
  }
  // at(x + period) - at(x) is the same for all x. 0: beyond `limit`.
  int64_t period(int64_t limit) const {
    const Term& outer = terms.front();
    const auto times = [&](int64_t z) { return detail::multiply(z, outer.div) ? z : limit; };
    int64_t period = lcm_up_to(limit, outer.div, times(outer.fold ? outer.fold : 1));
    for (const BitDigit& digit : outer.digits) period = lcm_up_to(limit, period, times(digit.place));
    return period;
  }
  // Places in x, when they are a radix chain of x.
  std::optional<std::vector<int64_t>> places() const {
    std::vector<int64_t> out;
    for (size_t t = terms.size(); t-- > 0;) {
      const Term& term = terms[t];
      if (term.offset || term.fold) return std::nullopt;
      if (t > 0 && term.size % term.digits.back().place != 0) return std::nullopt;
      for (const BitDigit& digit : term.digits) out.push_back(digit.place * term.div);
    }
    return out;
  }
};

// Dims that a variable of either layout holds together, with x as their row-major mix.
struct Group {
  std::string name;
  int64_t extent = 1;
  Side from, to;
};

// A part of a group's values: base offsets and loops.
struct Part {
  int64_t from = 0, to = 0;
  std::vector<NestLoop> loops;
};

// The digits that matter, with those joined that go on with one stride.
std::vector<BitDigit> digits_of(const detail::LayoutData& data, int64_t bank_bits, int variable) {
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

int64_t base_bits(const detail::LayoutData& data, int64_t bank_bits) {
  const Layout::Parts& parts = data.parts;
  return data.base_bank * bank_bits + data.base_word * parts.word_bits +
         (parts.lane_msb ? parts.word_bits - parts.element_bits : 0);
}

Term term_of(const Layout& layout, int variable, int64_t div) {
  const detail::LayoutData& data = layout.data();
  const LayoutVariable& v = data.variable(variable);
  return {.div = div,
          .size = std::max<int64_t>(layout.variable_extent(variable), 1),
          .offset = v.offset,
          .fold = v.fold,
          .digits = digits_of(data, layout.bytes_per_bank() * 8, variable)};
}

// The variables of `layout` that hold `dims`, which have to be whole runs of them in this order.
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

// Nothing when the fused dims of both layouts cross.
std::optional<std::vector<Group>> groups_of(const Layout& from, const Layout& to) {
  std::vector<Group> out;
  std::vector<bool> done(from.shape().size());
  for (size_t d = 0; d < done.size(); ++d) {
    if (done[d]) continue;
    // The longest of the variables that hold the dim; of the others none may reach out of it.
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

// The union of both radix chains below the extent, when each place divides the next one.
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

NestLoop loop_at(const Group& group, int64_t place, int64_t count) {
  if (count == 1) return {};
  return {count, group.from.at(place), group.to.at(place)};
}

std::vector<Part> nested_parts(const Group& group, const std::vector<int64_t>& places) {
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
  return out;
}

// Nothing when the period is too long.
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

// Loops of one element from here on go up in the destination, from the outermost in.
void sort_and_join(Nest& nest) {
  std::vector<NestLoop> out;
  std::erase_if(nest.loops, [](const NestLoop& loop) { return loop.count == 1; });
  for (NestLoop& loop : nest.loops) {
    if (loop.to >= 0) continue;
    nest.from_base += loop.from * (loop.count - 1);
    nest.to_base += loop.to * (loop.count - 1);
    loop.from = -loop.from;
    loop.to = -loop.to;
  }
  std::ranges::stable_sort(nest.loops, std::greater(), &NestLoop::to);
  for (const NestLoop& loop : nest.loops) {
    if (!out.empty() && out.back().from == loop.from * loop.count && out.back().to == loop.to * loop.count) {
      out.back() = {out.back().count * loop.count, loop.from, loop.to};
    } else {
      out.push_back(loop);
    }
  }
  nest.loops = std::move(out);
}

bool is_whole_bytes(const Nest& nest) {
  const auto whole = [](int64_t bits) { return bits % 8 == 0; };
  return whole(nest.unit) && whole(nest.from_base) && whole(nest.to_base) &&
         std::ranges::all_of(nest.loops, [&](const NestLoop& loop) { return whole(loop.from) && whole(loop.to); });
}

// How many outer loops may be cut between threads: bits of one byte belong to one iteration.
size_t count_disjoint(const Nest& nest) {
  const int64_t start = nest.to_base % 8;
  int64_t span = nest.unit;  // what the loops inside take up
  size_t disjoint = nest.loops.size();
  for (size_t i = nest.loops.size(); i-- > 0;) {
    const NestLoop& loop = nest.loops[i];
    if (loop.to % 8 != 0 || loop.to < detail::round_up(start + span, 8)) disjoint = i;
    span += loop.to * (loop.count - 1);
  }
  return disjoint;
}

void prepare(Nest& nest) {
  sort_and_join(nest);
  if (!nest.loops.empty() && nest.loops.back().from == nest.unit && nest.loops.back().to == nest.unit) {
    nest.unit *= nest.loops.back().count;
    nest.loops.pop_back();
  }
  if (!is_whole_bytes(nest)) {
    nest.kind = Nest::Kind::bits;
    nest.disjoint = count_disjoint(nest);
    return;
  }
  nest.unit /= 8;
  nest.from_base /= 8;
  nest.to_base /= 8;
  for (NestLoop& loop : nest.loops) {
    loop.from /= 8;
    loop.to /= 8;
  }
  nest.disjoint = nest.loops.size();
  if (!detail::can_transpose(nest.unit) || nest.loops.size() < 2 || nest.loops.back().to != nest.unit) return;
  const auto reader = std::ranges::find(nest.loops, nest.unit, &NestLoop::from);
  if (reader == nest.loops.end()) return;
  nest.kind = Nest::Kind::transpose;
  nest.disjoint = nest.loops.size() - 1;
  std::rotate(reader, reader + 1, nest.loops.end() - 1);
}

// The loops as a reader wants to see them: tails as marks, not as nests of their own.
void describe(ReorderProgram& program, const std::vector<Group>& groups,
              const std::vector<std::optional<std::vector<int64_t>>>& places) {
  std::vector<std::pair<ReorderLoop, size_t>> loops;  // with the group
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<int64_t>& p = *places[g];
    for (size_t i = p.size(); i-- > 0;) {
      const bool top = i + 1 == p.size();
      const int64_t count = top ? detail::ceil_div(groups[g].extent, p[i]) : p[i + 1] / p[i];
      if (count == 1) continue;
      loops.push_back(
          {{count, groups[g].from.at(p[i]), groups[g].to.at(p[i]), !top && groups[g].extent % p[i + 1] != 0}, g});
    }
  }
  std::ranges::stable_sort(loops, std::greater(), [](const auto& loop) { return std::abs(loop.first.to_bits); });
  for (const auto& [loop, g] : loops) {
    ReorderLoop* last = program.loops.empty() ? nullptr : &program.loops.back();
    const bool nests = last && !loop.tail && !last->tail && last->from_bits == loop.from_bits * loop.count &&
                       last->to_bits == loop.to_bits * loop.count;
    if (nests) {
      *last = {last->count * loop.count, loop.from_bits, loop.to_bits, false};
    } else {
      program.loops.push_back(loop);
    }
    program.tail = program.tail || loop.tail;
  }
}

// False: elements one by one.
bool make_nests(ReorderProgram& program) {
  const auto has_strides = [](const Layout& layout) {
    return layout.has_digits() && !layout.is_ragged() && !layout.data().has_xor;
  };
  const Layout &from = program.from, &to = program.to;
  if (!has_strides(from) || !has_strides(to) || !to.injective()) return false;
  const auto groups = groups_of(from, to);
  if (!groups) return false;
  std::vector<std::vector<Part>> parts;
  std::vector<std::optional<std::vector<int64_t>>> places;
  size_t count = 1;
  for (const Group& group : *groups) {
    places.push_back(common_places(group));
    if (places.back()) {
      parts.push_back(nested_parts(group, *places.back()));
    } else {
      ReorderPieces pieces;
      auto cut = piecewise_parts(group, pieces);
      if (!cut) return false;
      program.pieces.push_back(std::move(pieces));
      parts.push_back(std::move(*cut));
    }
    count *= parts.back().size();
    if (count > kMaxNests) return false;
  }
  if (program.pieces.empty()) describe(program, *groups, places);
  for (size_t n = 0; n < count; ++n) {
    Nest nest;
    nest.from_base = base_bits(from.data(), from.bytes_per_bank() * 8);
    nest.to_base = base_bits(to.data(), to.bytes_per_bank() * 8);
    nest.unit = to.element_bits();
    size_t rest = n;
    for (size_t g = parts.size(); g-- > 0;) {
      const Part& part = parts[g][rest % parts[g].size()];
      rest /= parts[g].size();
      nest.from_base += part.from;
      nest.to_base += part.to;
      nest.loops.insert(nest.loops.begin(), part.loops.begin(), part.loops.end());
    }
    prepare(nest);
    program.nests.push_back(std::move(nest));
  }
  return true;
}

ReorderKind kind_of(const ReorderProgram& program) {
  if (program.from.same_function(program.to)) return ReorderKind::no_op;
  if (program.nests.empty()) return ReorderKind::elements;
  if (!program.pieces.empty()) return ReorderKind::pieces;
  // Runs that are longer than an element of any machine type stay runs, though they are moved in tiles, too.
  const auto has = [&](Nest::Kind kind) {
    return std::ranges::any_of(program.nests, [&](const Nest& nest) {
      return nest.kind == kind && (kind != Nest::Kind::transpose || nest.unit <= 8);
    });
  };
  if (has(Nest::Kind::bits)) return ReorderKind::bits;
  if (has(Nest::Kind::transpose)) return ReorderKind::transpose;
  return program.nests.size() == 1 && program.nests[0].loops.empty() ? ReorderKind::copy : ReorderKind::runs;
}

std::string stride_text(int64_t bits, int64_t element_bits) {
  return bits % element_bits == 0 ? str(bits / element_bits) : str(bits, "b");
}

}  // namespace

std::string_view reorder_kind_name(ReorderKind kind) {
  constexpr std::string_view kNames[] = {"no-op", "copy", "runs", "transpose", "bits", "pieces", "elements"};
  return kNames[static_cast<size_t>(kind)];
}

double BandwidthTable::at(int64_t run_bytes) const {
  if (entries.empty()) return 1;
  double found = entries.front().bytes_per_second;
  for (const Entry& entry : entries) {
    if (entry.run_bytes <= run_bytes) found = entry.bytes_per_second;
  }
  return found;
}

const Layout& ReorderPlan::from() const { return program_->from; }
const Layout& ReorderPlan::to() const { return program_->to; }
ReorderKind ReorderPlan::kind() const { return program_->kind; }
const std::vector<ReorderLoop>& ReorderPlan::loops() const { return program_->loops; }
const std::vector<ReorderPieces>& ReorderPlan::pieces() const { return program_->pieces; }
bool ReorderPlan::has_tail() const { return program_->tail; }

std::string ReorderPlan::to_string() const {
  std::string out(reorder_kind_name(kind()));
  const int64_t w = to().element_bits();
  if (!loops().empty() || !pieces().empty()) out += ':';
  for (const ReorderLoop& loop : loops()) {
    out += str(" [", loop.count, loop.tail ? "~ " : " ", stride_text(loop.from_bits, w), " ",
               stride_text(loop.to_bits, w), "]");
  }
  for (const ReorderPieces& pieces : pieces()) {
    out += str(" ", pieces.variable, " every ", pieces.period, ":");
    for (const auto& [start, length] : pieces.pieces) out += str(" [", start, " ", length, "]");
  }
  return out;
}

Result<ReorderPlan> plan_reorder(const Layout& from, const Layout& to) {
  if (from.shape() != to.shape()) {
    return error(Code::invalid_argument, "a reorder from shape ", from.shape(), " (", from.to_string(), ") to shape ",
                 to.shape(), " (", to.to_string(), "); both layouts have to be of one tensor");
  }
  if (from.element_bits() != to.element_bits()) {
    return error(Code::invalid_argument, "a reorder from elements of ", from.element_bits(), " bits (",
                 from.to_string(), ") to elements of ", to.element_bits(), " bits (", to.to_string(),
                 "); cast the elements first");
  }
  auto program = std::make_shared<ReorderProgram>();
  program->from = from;
  program->to = to;
  program->fills =
      to.fill() && !to.is_view() && (!to.injective() || to.valid_elements() * to.element_bits() != to.bytes() * 8);
  if (to.valid_elements() > 0 && !make_nests(*program)) {
    program->loops.clear();
    program->pieces.clear();
    program->nests.clear();
    program->tail = false;
  }
  program->kind = kind_of(*program);
  return ReorderPlan(std::move(program));
}

Result<double> reorder_cost(const Layout& from, const Layout& to, const BandwidthTable& bandwidth) {
  TENON_TRY(plan, plan_reorder(from, to));
  if (plan.kind() == ReorderKind::no_op) return 0.0;
  const int64_t w = from.element_bits();
  const auto bandwidth_of = [&](const Layout& layout) {
    return bandwidth.at(std::max<int64_t>(layout.run().length * w / 8, 1));
  };
  const double read = static_cast<double>(from.valid_elements()) * static_cast<double>(w) / 8;
  return read / bandwidth_of(from) + static_cast<double>(to.bytes()) / bandwidth_of(to) + bandwidth.setup_seconds;
}

}  // namespace tenon
