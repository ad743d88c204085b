// Forms for rows beyond the last-level cache that several sweeps walk, by which cache holds them.
#include <algorithm>

#include <tenon/snippet/emit.hpp>

#include "x86/forms/forms.hpp"

namespace tenon::x86 {
namespace {

// A body that folds rows alone and walks them again: bytes of one element in tensors that move on with the rows, in
// those that rows right behind one another share, as a mask of keys for all heads and queries, and in a value that
// sweeps keep. Of a single row all tensors count as moving on. What varies over some of several folded dims is little.
struct RowBytes {
  int64_t moving = 0, standing = 0, kept = 0;  // moving 0: it is another body
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
  for (const snippet::BodyPort& input : body.inputs)
    if (is_swept(input)) (moves_on(input) ? bytes.moving : bytes.standing) += input.element.bits() / 8;
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

bool fetches_ahead(const FormMaker::Tier& tier) { return tier.passes.prefetch_reads.lines > 0; }

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

// What is stored beside the fold of the next row overlaps with the reads of that; the walks between, with nothing. But
// a loop that reads several rows out of the second level lets go of the lines that it fetches from main memory, so what
// all rows share has to fit the first, with a row and what is kept of it; else rows that no cache holds alone are
// skewed, by two sweeps that are merged. These make powers twice: softmax waits for rows that even the last level does
// not hold with what is kept. What ends a row, short ones are.
void FormMaker::add_skewed(std::vector<Tier>& tiers, const snippet::Body& body) const {
  // Of shorter rows several go at once; the more a sweep computes, the more there is to overlap
  // (docs/performance/snippets.md).
  constexpr int64_t kLeastLines = 9, kLeastCostlyLines = 6;
  const RowBytes bytes = row_bytes_of(body);
  const MemorySpace *second = target_.memory("l2"), *third = target_.memory("l3");
  if (!second || bytes.moving == 0 || body.first_of_row() == 0) return;
  const int folds = folds_behind_one_another(body);
  const Costly computed = costly_of(body);
  const bool costly = computed != Costly::none, merges = folds == 2 && snippet::may_merge_sweeps(body);
  const int64_t beyond_second = static_cast<int64_t>(second->size_bytes) / (bytes.moving + bytes.standing) + 1;
  const Tier streaming = *std::ranges::find_if(tiers, [](const Tier& tier) { return tier.passes.stream_stores; });
  Tier skewed = streaming;
  skewed.lower.resweep_cycles = snippet::LowerOptions{}.resweep_cycles;  // what is kept stays near
  // What goes along with a walk over several dims is a loop over each of them: the same bits where no vector is cut.
  if (body.first_of_row() + 1 < body.rank()) skewed.calls.multiple = int64_t{skewed.lower.unroll} * skewed.lower.lanes;
  skewed.calls.rows.least = (costly ? kLeastCostlyLines : kLeastLines) * elements_of_line(body);
  const int64_t all = bytes.moving + bytes.standing + bytes.kept;
  if (folds > 1 && bytes.standing > 0)
    skewed.calls.rows.most = static_cast<int64_t>(first_cache_bytes()) / all;
  else if (merges && costly)
    skewed.calls.rows.most = third ? static_cast<int64_t>(third->size_bytes) / 2 / all : INT64_MAX;
  else if (merges)
    skewed.calls.rows.most = beyond_second - 1;
  // Where rows begin at lines, one loop of all walks is as fast; what is costly and in no output has nowhere to wait.
  const bool one_loop = ((costly || folds == 1) && rows_aligned(body).value_or(false)) || computed == Costly::folded;
  const bool of_one_tensor = !fetches_ahead(streaming) && bytes.moving <= bytes.kept;
  const auto first = static_cast<int64_t>(first_cache_bytes());
  Tier fetching = skewed;
  fetching.calls.rows = {.least = first / (one_loop ? 1 : 2) / all + 1,
                         .most = static_cast<int64_t>(second->size_bytes) / 2 / all};
  const bool fetches = of_one_tensor && !costly && (folds > 1 || bytes.standing > 0) &&
                       fetching.calls.rows.least <= fetching.calls.rows.most;
  if (of_one_tensor && !one_loop) {
    // Beside what waits in an output stands what waited there for the row before, until it is written back.
    const int64_t beyond = add_alone(tiers, skewed, first / (costly || fetches ? 2 : 1) / all);
    if (folds > 1) skewed.calls.rows.least = fetches ? fetching.calls.rows.most + 1 : beyond;
  }
  skewed.suffix += ".skewed";
  skewed.row_order = RowOrder::skewed;
  skewed.calls.several_rows = true;  // a single row has no next
  // The walk that keeps what is stored is then not the first, which finds the next row where that has fetched it.
  if (costly) skewed.passes.next_row = NextRow::last;
  if (skewed.calls.rows.least <= skewed.calls.rows.most) tiers.push_back(skewed);
  if (costly && isa_of(target_) == Isa::avx512) add_skewed_twice(tiers, skewed, 3 * bytes.moving + bytes.kept);
  if (costly) return;
  if (fetches) add_fetching(tiers, std::move(fetching));
  if (!merges) return;
  skewed.suffix += ".merged";
  skewed.calls.rows = {.least = beyond_second};
  skewed.lower.merge_sweeps = true;
  skewed.lower.resweep_cycles = streaming.lower.resweep_cycles;
  tiers.push_back(skewed);
}

// Where nothing is fetched ahead, main memory is read fastest by a sweep that does nothing else, and written fastest by
// one that reads from the first level: rows of one tensor that lie there go one by one, sweep by sweep, in place of
// those that would be skewed. What is costly waits in the output, whose lines come while it is computed. Returns the
// least row beyond.
int64_t FormMaker::add_alone(std::vector<Tier>& tiers, Tier alone, int64_t most) const {
  const int64_t least = alone.calls.rows.least;
  if (most < least) return least;
  alone.suffix += ".alone";
  alone.row_order = RowOrder::one_by_one;
  alone.calls.rows.most = most;
  tiers.push_back(std::move(alone));
  return most + 1;
}

// Rows that go one by one beyond the first level, or nearly, where each row shares something with the others or is
// folded twice (others gain more from being skewed): the sweep that stores fetches the next one into the
// second, so that main memory is read and written at once. No other sweep reads from main memory then, so lines come
// whole and in one stretch.
void FormMaker::add_fetching(std::vector<Tier>& tiers, Tier alone) const {
  alone.suffix += ".alone.fetching";
  alone.row_order = RowOrder::one_by_one;
  alone.calls.several_rows = true;  // a single row has no next
  alone.passes.next_row = NextRow::last_to_second;
  alone.passes.far_by_halves = false;
  alone.passes.streams.each = 1;
  tiers.push_back(std::move(alone));
}

// Three walks in one loop, where registers hold them, and the second level `row_bytes` an element: three rows, and what
// is kept of one. Nothing else is fetched then, and lines are wanted later: they are, twice as far ahead. Where none
// are fetched ahead, rows have to lie in the first level: beyond, two walks are faster (docs/performance/snippets.md,
// On a Zen 4).
void FormMaker::add_skewed_twice(std::vector<Tier>& tiers, Tier twice, int64_t row_bytes) const {
  twice.suffix += ".twice";
  twice.row_order = RowOrder::skewed_twice;
  twice.passes.next_row = NextRow::none;
  twice.passes.prefetch_reads.lines *= 2;
  twice.passes.prefetch_reads.together = twice.passes.prefetch_reads.lines;
  const auto near = static_cast<int64_t>(fetches_ahead(twice) ? target_.memory("l2")->size_bytes : first_cache_bytes());
  twice.calls.rows.most = std::min(twice.calls.rows.most, near / row_bytes);
  if (twice.calls.rows.least <= twice.calls.rows.most) tiers.push_back(std::move(twice));
}

}  // namespace tenon::x86
