#include <tenon/program/exec/ring_turns_internal.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <tenon/program/exec/arithmetic_internal.hpp>

namespace tenon::program::detail {
namespace {

// A cycle is simulated for each register: at most this many evaluations (a tenth of a millisecond) and this many jumps
// (16 KB); otherwise views are placed in each iteration.
constexpr int64_t kMostLooks = 1 << 15;
constexpr size_t kMostJumps = 1024;

// A register, and its value a given number of iterations after the loop's beginning, minus its initial value where that
// is not a number.
struct Word {
  Place place;
  std::function<int64_t(int64_t iterations)> at;
};

constexpr auto kFoldOfDim = static_cast<Place>(offsetof(DimView, fold));

// The stepped registers of a loop, and its views in rings, a given number of iterations after it begins at known
// positions. The level and the views outlive it.
class Cycle {
 public:
  explicit Cycle(const Registers::LevelCode& level) : level_(level) {
    for (size_t i = 0; i < level.ring_steps.size(); ++i) ring_of_[level.ring_steps[i].place] = i;
  }

  // `most` if it is longer.
  int64_t length(int64_t most) const {
    int64_t length = 1;
    for (const RingStep& step : level_.ring_steps) {
      const int64_t own = step.modulus / std::gcd(step.modulus, step.by), times = own / std::gcd(length, own);
      if (times > most / length) return most;
      length *= times;
    }
    return length;
  }

  bool can_tell(const RingView& view) const {
    if (!view.base.known() && is_made_in_loop(view.base.place)) return false;
    return std::ranges::all_of(view.folds, [&](const Fold& fold) {
      const bool has_place = fold.place.known() || ring_of_.contains(fold.place.place);
      return has_place && fold.fold.known() && fold.stride.known() && fold.extent.known();
    });
  }

  Word ring(size_t i) const {
    return {level_.ring_steps[i].place, [this, i](int64_t n) { return place(i, n); }};
  }
  Word beside(const BesideStep& step) const {
    const size_t i = ring_of_.at(step.ring);
    return {step.place, [this, i, &step](int64_t n) {
              const RingStep& ring = level_.ring_steps[i];
              const int64_t begun_anew = floor_divide(level_.ring_begins[i].number + n * ring.by, ring.modulus);
              return add(multiply(n, step.by), -multiply(begun_anew, step.back));
            }};
  }
  // For a view that can be determined; minus its base if that is a register.
  Word base(const RingView& view) const {
    return {view.view, [this, &view](int64_t n) {
              int64_t base = view.base.known() ? view.base.number : 0;
              for (const Fold& fold : view.folds)
                if (fold.fold.number > 0 && !wraps(fold, n))
                  base = add(base, multiply(place(fold, n), fold.stride.number));
              return base;
            }};
  }
  Word fold(const Fold& fold) const {
    return {fold.dim + kFoldOfDim, [this, &fold](int64_t n) { return wraps(fold, n) ? fold.fold.number : 0; }};
  }

 private:
  int64_t place(size_t ring, int64_t n) const {
    const RingStep& step = level_.ring_steps[ring];
    return floor_modulo(level_.ring_begins[ring].number + n * step.by, step.modulus);
  }
  int64_t place(const Fold& fold, int64_t n) const {
    return fold.place.known() ? fold.place.number : place(ring_of_.at(fold.place.place), n);
  }
  bool wraps(const Fold& fold, int64_t n) const {
    return fold.fold.number > 0 && place(fold, n) + fold.extent.number > fold.fold.number;
  }
  bool is_made_in_loop(Place place) const {
    const auto is_it = [&](const auto& made) { return made.place == place; };
    return std::ranges::any_of(level_.ring_steps, is_it) || std::ranges::any_of(level_.beside_steps, is_it) ||
           std::ranges::any_of(level_.increments, is_it) ||
           std::ranges::any_of(level_.header, [&](const Instr& i) { return i.to == place; });
  }

  const Registers::LevelCode& level_;
  std::unordered_map<Place, size_t> ring_of_;
};

// The most frequent increment.
int64_t usual(const std::vector<int64_t>& added) {
  std::unordered_map<int64_t, int64_t> times;
  int64_t best = added[0];
  for (const int64_t by : added)
    if (++times[by] > times[best]) best = by;
  return best;
}

std::optional<RingTurns> turns_of(const std::vector<Word>& words, int64_t length) {
  RingTurns turns;
  std::map<int64_t, std::vector<Step>> jumps;  // by iterations to them
  size_t count = 0;
  std::vector<int64_t> added(static_cast<size_t>(length));
  for (const Word& word : words) {
    int64_t now = word.at(0);
    for (int64_t n = 0; n < length; ++n) {
      const int64_t next = word.at(n + 1);
      added[static_cast<size_t>(n)] = add(next, -now);
      now = next;
    }
    const int64_t by = usual(added);
    if (by != 0) turns.steps.push_back({word.place, by});
    for (int64_t n = 0; n < length; ++n) {
      const int64_t more = add(added[static_cast<size_t>(n)], -by);
      if (more == 0) continue;
      if (++count > kMostJumps) return std::nullopt;
      jumps[n + 1].push_back({word.place, more});
    }
  }
  for (const auto& [at, of_turn] : jumps) {
    const auto first = static_cast<int32_t>(turns.jumps.size());
    turns.jumps.insert(turns.jumps.end(), of_turn.begin(), of_turn.end());
    const auto next = jumps.upper_bound(at);
    const int64_t to_next = next != jumps.end() ? next->first - at : jumps.begin()->first + length - at;
    turns.turns.push_back({to_next, first, static_cast<int32_t>(turns.jumps.size())});
  }
  if (!jumps.empty()) turns.first = jumps.begin()->first;
  return turns;
}

// Initialises it before the loop: with its value then, and `base` where that is a register.
Instr begin_of(const Word& word, const Value& base, ByteCode& code) {
  Instr instr{base.known() ? Op::set : Op::linear, word.place};
  instr.number = word.at(0);
  if (base.known()) return instr;
  instr.first = static_cast<int32_t>(code.terms.size());
  code.terms.push_back({base.place, 1});
  instr.last = static_cast<int32_t>(code.terms.size());
  return instr;
}

bool is_view(const Instr& i) { return i.op == Op::ring; }

// The views with which iterations begin; none where one of them cannot be determined.
std::vector<const RingView*> views_of(const Registers::LevelCode& level, const Cycle& cycle, const ByteCode& code) {
  std::vector<const RingView*> views;
  for (const Instr& i : level.header) {
    if (!is_view(i)) continue;
    views.push_back(&code.rings[static_cast<size_t>(i.index)]);
    if (!cycle.can_tell(*views.back())) return {};
  }
  return views;
}

}  // namespace

std::optional<RingTurns> take_ring_turns(Registers::LevelCode& level, int64_t iterations, const Registers& registers,
                                         ByteCode& code) {
  if (level.ring_steps.empty() || !std::ranges::all_of(level.ring_begins, &Value::known)) return std::nullopt;
  const Cycle cycle(level);
  const std::vector<const RingView*> views = views_of(level, cycle, code);
  std::vector<Word> words;
  std::vector<std::pair<size_t, Value>> placed;  // words of views, by number, with the addend of each
  std::unordered_map<Place, int64_t> read_here;  // positions in rings, with the number of reads
  for (const BesideStep& step : level.beside_steps) {
    ++read_here[step.ring];
    words.push_back(cycle.beside(step));
  }
  for (const RingView* view : views) {
    placed.emplace_back(words.size(), view->base);
    words.push_back(cycle.base(*view));
    for (const Fold& fold : view->folds) {
      if (!fold.place.known()) ++read_here[fold.place.place];
      placed.emplace_back(words.size(), Value{});
      words.push_back(cycle.fold(fold));
    }
  }
  for (size_t i = 0; i < level.ring_steps.size(); ++i) {
    const Place place = level.ring_steps[i].place;
    const auto here = read_here.find(place);
    if (here == read_here.end() || here->second != registers.times_given(place)) words.push_back(cycle.ring(i));
  }
  const int64_t length = cycle.length(iterations);
  if (length > kMostLooks / static_cast<int64_t>(words.size() + 1)) return std::nullopt;
  std::optional<RingTurns> turns = turns_of(words, length);
  if (!turns) return std::nullopt;
  level.ring_steps.clear();
  level.beside_steps.clear();
  if (!views.empty()) std::erase_if(level.header, is_view);
  for (const auto& [number, base] : placed) level.entry.push_back(begin_of(words[number], base, code));
  return turns;
}

}  // namespace tenon::program::detail
