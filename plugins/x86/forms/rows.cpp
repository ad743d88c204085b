// Forms for rows beyond the last-level cache that several sweeps walk, by which cache holds them.
#include <algorithm>
#include <optional>

#include <tenon/snippet/emit.hpp>

#include "x86/forms/forms.hpp"

namespace tenon::x86 {
namespace {

// A body that folds rows alone and walks them again: bytes of one element in tensors that move on with the rows, in
// those that rows right behind one another share, as a mask of keys for all heads and queries, and in a value that
// sweeps keep. Of a single row all tensors count as moving on. What varies over some of several folded dims is little.
struct RowBytes {
  int64_t moving = 0, standing = 0, kept = 0;  // moving 0: it is another body
  int64_t narrowest = INT64_MAX;               // of one tensor that moves on
};
RowBytes row_bytes_of(const snippet::Body& body) {
  const snippet::DimSet row = body.all_dims() >> body.first_of_row() << body.first_of_row();
  if (body.rank() == 0 || body.reduced_dims() != row) return {};
  const auto varies = [&](const snippet::BodyPort& port) {
    return body.values[static_cast<size_t>(port.value)].varies;
  };
  const auto is_swept = [&](const snippet::BodyPort& port) { return (varies(port) & row) == row; };
  if (std::ranges::none_of(body.outputs, is_swept)) return {};
  const auto moves_on = [&](const snippet::BodyPort& port) {
    return body.first_of_row() == 0 || (varies(port) >> (body.first_of_row() - 1) & 1) != 0;
  };
  RowBytes bytes;
  for (const snippet::BodyPort& input : body.inputs) {
    if (!is_swept(input)) continue;
    const int64_t element = input.element.bits() / 8;
    (moves_on(input) ? bytes.moving : bytes.standing) += element;
    if (moves_on(input)) bytes.narrowest = std::min(bytes.narrowest, element);
  }
  for (const snippet::BodyValue& value : body.values)
    bytes.kept = std::max<int64_t>(bytes.kept, value.element.bits() / 8);
  return bytes;
}

// Folds of which each wants the one before.
int folds_behind_one_another(const snippet::Body& body) {
  std::vector<int> folds(body.values.size(), 0);
  int most = 0;
  for (const snippet::BodyNode& node : body.nodes) {
    int& made = folds[static_cast<size_t>(node.result)];
    for (const snippet::ValueId operand : node.operands) made = std::max(made, folds[static_cast<size_t>(operand)]);
    most = std::max(most, made += snippet::is_reduction(node.op));
  }
  return most;
}

// Loads are held against stores by their place in pages of so many alone.
constexpr int64_t kPageBytes = 4096;

bool fetches_ahead(const FormMaker::Tier& tier) { return tier.passes.prefetch_reads.lines > 0; }
bool stores_past_caches(const FormMaker::Tier& tier) { return tier.passes.stream_stores; }

// What is fetched beside `order`, where `next` row is.
void fetch_in_order(FormPasses& passes, RowOrder order, NextRow next) {
  passes.next_row = next;
  if (is_to_second(next)) {
    passes.far_by_halves = false;
    passes.streams.each = 1;
  }
  if (order == RowOrder::skewed_twice) {  // lines are wanted later
    passes.prefetch_reads.lines *= 2;
    passes.prefetch_reads.together = passes.prefetch_reads.lines;
  }
}

}  // namespace

FormMaker::Costly FormMaker::costly_of(const snippet::Body& body) const {
  Costly costly = Costly::none;
  std::vector<char> folded(body.values.size(), 0), kept(body.values.size(), 0);
  for (const snippet::BodyPort& output : body.outputs) kept[static_cast<size_t>(output.value)] = 1;
  for (auto node = body.nodes.rbegin(); node != body.nodes.rend(); ++node) {
    const bool wanted = folded[static_cast<size_t>(node->result)] != 0;
    const bool is_swept = (body.values[static_cast<size_t>(node->result)].varies & body.reduced_dims()) != 0;
    if (wanted && is_swept &&
        snippet::cycles_of_node(body, *node, table_, target_) > snippet::LowerOptions{}.resweep_cycles) {
      if (kept[static_cast<size_t>(node->result)] != 0) return Costly::stored;
      costly = Costly::folded;
    }
    if (wanted || snippet::is_reduction(node->op))
      for (const snippet::ValueId operand : node->operands) folded[static_cast<size_t>(operand)] = 1;
    if (kept[static_cast<size_t>(node->result)] != 0 && !snippet::is_reduction(node->op))
      for (const snippet::ValueId operand : node->operands) kept[static_cast<size_t>(operand)] = 1;
  }
  return costly;
}

// Rows that several sweeps walk, by the nearest cache that holds one with the next, and with what sweeps keep.
void FormMaker::add_rows(std::vector<Tier>& tiers, const snippet::Body& body) const {
  const MemorySpace *second = target_.memory("l2"), *third = target_.memory("l3");
  const RowBytes bytes = row_bytes_of(body);
  if (!second || bytes.moving == 0) return;
  const bool costly = costly_of(body) != Costly::none;
  const int64_t again = bytes.moving + bytes.standing, kept = again + bytes.moving + bytes.kept,
                all = costly ? kept : again + bytes.moving;
  const auto l1 = static_cast<int64_t>(first_cache_bytes()), l2 = static_cast<int64_t>(second->size_bytes),
             l3 = third ? static_cast<int64_t>(third->size_bytes) : 0;
  // The second level has no room for values that are kept beside long rows, and a sweep that reads several tensors from
  // it no time for more: the last one waits for stores. Two tensors are read again from there as fast as what they make
  // is written and read, from other levels not.
  const NextRow early = NextRow::before_last, late = NextRow::last;
  const struct {
    std::string_view suffix;
    int64_t most;
    NextRow when;
    bool lines, near, joined;
  } ranges[] = {{".l1", l1 / kept, early, true, true, true},
                {".l2", l2 / 2 / all, costly || bytes.moving <= bytes.kept ? early : late, false, true, false},
                {".l2.again", l2 / all, costly ? early : late, false, false, false},
                {".l3", std::min(l2 / again, l3 / all), late, false, true, false},
                {".l3.joined", l3 / kept, late, false, true, true}};
  // Behind these come sweeps that are merged, whose sums have other bits: at the same rows, whether or not it is known
  // that there is one row alone.
  const int64_t border = snippet::may_merge_sweeps(body) ? l3 / (2 * again + bytes.kept) : INT64_MAX;
  const Tier any = tiers.back();
  const bool several = body.first_of_row() + 1 < body.rank();  // folded dims
  // Those up to twice as long as rows that go together gain nothing.
  int64_t least = 2 * any.lower.longest_row_again + 1;
  for (const auto& range : ranges) {
    const int64_t most = std::min(range.most, border);
    if (least > most) continue;
    if (several && !range.lines) break;  // of several dims, longer ones gain nothing
    Tier& tier = tiers.emplace_back(any);
    tier.suffix += range.suffix;
    tier.calls.rows = {.least = least, .most = most};
    tier.lower.resweep_cycles = range.near ? snippet::LowerOptions{}.resweep_cycles : kMovedVectorCycles;
    tier.lower.keep_near = range.near, tier.lower.keep_joined = range.joined;
    if (fetches_ahead(any)) tier.passes.next_row = range.when;
    tier.passes.next_row_lines = range.lines;
    tier.lower.held_vectors = 0;  // the next row is fetched along with a sweep
    least = most + 1;
  }
}

// Rows beyond the last-level cache, and for each order of them (RowOrder), of how many elements those are that go so.
struct FormMaker::FarRows {
  using Lengths = irgen::RowRange;
  static constexpr Lengths kNone{.least = 1, .most = 0};

  RowBytes bytes;
  int folds = 1;               // of which each wants the one before
  bool costly = false;         // sweeps compute what is not made again for nothing
  bool stored = false;         // and an output is made of that
  bool merges = false;         // two folds, which may be one
  bool one_loop = false;       // goes as fast as the walks alone, or what is costly has nowhere to wait for these
  bool three_walks = false;    // have registers at once
  bool fetched_ahead = false;  // lines from main memory
  bool into_second = false;    // where these are fetched: the second-level cache
  int64_t shortest = 0;
  int64_t l1 = 0, l2 = 0;  // bytes
  std::optional<int64_t> l3;

  int64_t page() const { return kPageBytes / bytes.narrowest; }
  int64_t again() const { return bytes.moving + bytes.standing; }
  int64_t all() const { return again() + bytes.kept; }
  bool are_of_one_tensor() const { return !fetched_ahead && bytes.moving <= bytes.kept; }
  bool go_alone() const { return are_of_one_tensor() && !one_loop; }
  bool are_fetched() const { return fetching().least <= fetching().most; }
  // What waits is no longer than what is read of main memory, which takes the more time; not of 16 bits.
  bool are_wide() const { return bytes.moving >= bytes.kept; }

  // Skewed orders read one row while they write another, and a load is held up by a store to the same place of another
  // page: at every element where rows are whole pages. Where these orders are faster but for that, none but such rows
  // go one by one.
  bool skew_but_for_pages() const {
    return !fetched_ahead && (!are_of_one_tensor() || (one_loop && bytes.standing == 0));
  }
  int64_t multiple(RowOrder order) const { return !is_skewed(order) && skew_but_for_pages() ? page() : 1; }

  // Main memory is read fastest by a sweep that does nothing else, and written fastest by one that reads from the first
  // level: rows of one tensor that lie there go one by one, sweep by sweep. What is costly waits in the output, whose
  // lines come while it is computed; beside it stands what waited there for the row before, until it is written back.
  Lengths alone() const {
    if (!go_alone()) return kNone;
    return {.least = shortest, .most = l1 / (costly || are_fetched() ? 2 : 1) / all()};
  }

  // Instead of three walks in one loop: the one that computes what waits fetches the next row. It waits in the output
  // where the first level holds that row by row, else in scratch memory.
  bool are_paged() const { return are_of_one_tensor() && skew_but_for_pages() && stored && three_walks; }
  Lengths paged() const {
    return are_paged() ? Lengths{.least = page(), .most = l1 / (are_wide() ? 4 : 2) / all()} : kNone;
  }
  Lengths paged_near() const {
    return are_paged() && are_wide() ? Lengths{.least = paged().most + 1, .most = l1 / all()} : kNone;
  }

  // Beyond the first level, or nearly: the sweep that stores fetches the next row into the second, so that main memory
  // is read and written at once. No other sweep reads from main memory then, so lines come whole and in one stretch.
  // Rows that share nothing and are folded once gain more from being skewed.
  // Where lines are fetched ahead into the second level anyway, skewed rows are as fast but those that the first level
  // does not hold beside what all rows share, up to an eighth of the second, of one tensor that is folded twice.
  Lengths fetching() const {
    if (costly || (folds < 2 && bytes.standing == 0)) return kNone;
    const Lengths lengths{.least = l1 / (one_loop ? 1 : 2) / all() + 1, .most = l2 / 2 / all()};
    if (!fetched_ahead) return lengths;
    if (!into_second || bytes.moving > bytes.kept || folds < 2 || bytes.standing == 0) return kNone;
    return {.least = std::max(lengths.least, l1 / all() + 1), .most = l2 / 8 / all()};
  }

  // What is stored beside the fold of the next row overlaps with the reads of that; the walks between, with nothing.
  // But a loop that reads several rows out of the second level lets go of the lines that it fetches from main memory,
  // so what all rows share has to fit the first, with a row and what is kept of it, unless these lines go to the
  // second, which then holds that row and the next. Where two folds may be one, those go merged that the second level
  // does not hold; costly ones, whose powers that makes twice, as merged_costly() says, else beyond half of the last.
  Lengths skewed() const {
    Lengths lengths{.least = shortest};
    if (folds > 1 && go_alone())
      lengths.least = are_fetched() ? fetching().most + 1 : std::max(shortest, alone().most + 1);
    if (folds > 1 && bytes.standing > 0)
      lengths.most = (into_second ? l2 / 2 : l1) / all();
    else if (merges && !costly)
      lengths.most = l2 / again();
    else if (merges && l3)
      lengths.most = *l3 / 2 / all();
    if (merges_costly()) lengths.most = std::min(lengths.most, merged_costly().least - 1);
    return lengths;
  }

  // Rows that the first level does not hold beside what is costly of them: the walk that computes it fetches the next
  // one into the second level.
  Lengths skewed_fetching() const {
    if (!costly || !are_wide() || fetched_ahead) return kNone;
    const Lengths lengths = skewed();
    return {.least = std::max(lengths.least, l1 / all() + 1), .most = lengths.most};
  }
  Lengths skewed_near() const {
    Lengths lengths = skewed();
    if (skewed_fetching().least <= skewed_fetching().most) lengths.most = skewed_fetching().least - 1;
    return lengths;
  }

  // Three walks in one loop. Nothing but what they read is fetched then. Of rows that none are fetched ahead of, the
  // first level has to hold three, and what is kept of one: beyond, two walks are faster (docs/performance/snippets.md,
  // On a Zen 4).
  Lengths skewed_twice() const {
    if (!costly || !three_walks) return kNone;
    return {.least = skewed().least,
            .most = std::min(skewed().most, of_three_walks(fetched_ahead && !into_second ? l2 : l1))};
  }
  // Those that the second level gives to three walks gain nothing from lines that are fetched there, too, and lose a
  // twentieth: their own go to the first.
  Lengths skewed_twice_far() const {
    if (!costly || !three_walks || !into_second) return kNone;
    return {.least = of_three_walks(l1) + 1, .most = std::min(skewed().most, of_three_walks(l2))};
  }
  int64_t of_three_walks(int64_t cache) const { return cache / (3 * bytes.moving + bytes.kept); }

  // By two sweeps that are one. Costly ones go so without being skewed, but where merges_costly().
  Lengths merged() const {
    if (merges_costly()) return merged_costly();
    if (costly || !merges) return kNone;
    return {.least = (into_second ? skewed().most : l2 / again()) + 1};
  }

  // A power made again costs less than one that is kept where the levels behind the first are slow, as are those of
  // machines whose lines are fetched into the second, and vectors long. Not of 16 bits, of which less is read again.
  bool merges_costly() const { return costly && merges && three_walks && into_second && bytes.narrowest >= bytes.kept; }
  // None is made twice where none is stored, and several tensors are more than their powers. Beside what all rows
  // share, three walks in one loop are faster out of the first level alone, else up to three quarters of the second.
  Lengths merged_costly() const {
    if (!stored || bytes.moving > bytes.kept) return {.least = shortest};
    return {.least = std::max(shortest, of_three_walks(bytes.standing > 0 ? l1 : l2 / 4 * 3) + 1)};
  }
};

// The orders, each for the lengths that FarRows says. Of two that serve a call, the later one does.
void FormMaker::add_row_orders(std::vector<Tier>& tiers, const snippet::Body& body) const {
  const FarRows rows = far_rows_of(body, tiers);
  if (rows.bytes.moving == 0) return;
  Tier far = *std::ranges::find_if(tiers, stores_past_caches);
  far.passes.prefetch_reads.to_second = rows.into_second;
  // What goes along with a walk over several dims is a loop over each of them: the same bits where no vector is cut.
  if (body.first_of_row() + 1 < body.rank()) far.calls.multiple = int64_t{far.lower.unroll} * far.lower.lanes;
  // The walk that keeps what is costly is not the first, which finds the next row where that has fetched it.
  const NextRow skewed_next = rows.costly ? NextRow::last : NextRow::none;
  const struct {
    std::string_view suffix;
    RowOrder order;
    irgen::RowRange lengths;
    NextRow next;
    bool merged = false, near = false;
    bool into_first = false;  // lines, whatever the target says
  } orders[] = {
      {".alone", RowOrder::one_by_one, rows.alone(), NextRow::none},
      {".skewed", RowOrder::skewed, rows.skewed_near(), skewed_next},
      {".skewed.fetching", RowOrder::skewed, rows.skewed_fetching(), NextRow::last_to_second},
      {".skewed.twice", RowOrder::skewed_twice, rows.skewed_twice(), NextRow::none},
      {".skewed.twice.far", RowOrder::skewed_twice, rows.skewed_twice_far(), NextRow::none, false, false, true},
      {".alone.paged", RowOrder::one_by_one, rows.paged(), NextRow::before_last_to_second},
      {".alone.near", RowOrder::one_by_one, rows.paged_near(), NextRow::before_last_to_second, false, true},
      {".alone.fetching", RowOrder::one_by_one, rows.fetching(), NextRow::last_to_second},
      {".skewed.merged", RowOrder::skewed, rows.merged(), NextRow::none, true, false, rows.merges_costly()},
  };
  for (const auto& [suffix, order, lengths, next, merged, near, into_first] : orders) {
    if (lengths.least > lengths.most) continue;
    Tier& tier = tiers.emplace_back(far);
    tier.suffix += suffix;
    tier.row_order = order;
    tier.calls.rows = lengths;
    tier.calls.multiple = std::max(tier.calls.multiple, rows.multiple(order));
    tier.calls.several_rows = is_skewed(order) || next != NextRow::none;  // a single row has no next
    tier.lower.merge_sweeps = merged;
    tier.lower.keep_near |= near;
    if (into_first) tier.passes.prefetch_reads.to_second = false;
    if (!merged) tier.lower.resweep_cycles = snippet::LowerOptions{}.resweep_cycles;  // what is kept stays near
    fetch_in_order(tier.passes, order, next);
  }
}

FormMaker::FarRows FormMaker::far_rows_of(const snippet::Body& body, const std::vector<Tier>& tiers) const {
  // Of shorter rows several go at once; the more a sweep computes, the more there is to overlap
  // (docs/performance/snippets.md).
  constexpr int64_t kLeastLines = 9, kLeastCostlyLines = 6;
  const MemorySpace *second = target_.memory("l2"), *third = target_.memory("l3"), *host = target_.memory("host");
  FarRows rows;
  if (!second || body.first_of_row() == 0) return rows;
  const Costly computed = costly_of(body);
  rows.bytes = row_bytes_of(body);
  rows.folds = folds_behind_one_another(body);
  rows.costly = computed != Costly::none;
  rows.stored = computed == Costly::stored;
  rows.merges = rows.folds == 2 && snippet::may_merge_sweeps(body);
  rows.one_loop = ((rows.costly || rows.folds < 2) && rows_aligned(body).value_or(false)) || computed == Costly::folded;
  rows.three_walks = isa_of(target_) == Isa::avx512;
  rows.fetched_ahead = fetches_ahead(*std::ranges::find_if(tiers, stores_past_caches));
  rows.into_second = rows.fetched_ahead && host && host->prefetch_level > 1;
  rows.shortest = (rows.costly ? kLeastCostlyLines : kLeastLines) * elements_of_line(body);
  rows.l1 = static_cast<int64_t>(first_cache_bytes()), rows.l2 = static_cast<int64_t>(second->size_bytes);
  if (third) rows.l3 = static_cast<int64_t>(third->size_bytes);
  return rows;
}

}  // namespace tenon::x86
