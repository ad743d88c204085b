// Forms for rows beyond the last-level cache that several sweeps traverse, by the cache that holds them.
#include <algorithm>

#include <tenon/snippet/body/emitters.hpp>

#include "x86/forms/far_rows.hpp"

namespace tenon::x86 {
namespace {

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

// The length of the longest chain of reductions each of which needs the one before.
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
bool stores_non_temporal(const FormMaker::Tier& tier) { return tier.passes.stream_stores; }

// Prefetching for `order`; `next` is the sweep that prefetches the next row.
void fetch_in_order(FormPasses& passes, RowOrder order, NextRow next) {
  passes.next_row = next;
  if (is_to_second(next)) {
    passes.far_by_halves = false;
    passes.streams.each = 1;
  }
  if (order == RowOrder::skewed_twice) {  // lines are needed later
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

// Forms by the nearest cache that holds a row, the next one and what sweeps keep.
void FormMaker::add_rows(std::vector<Tier>& tiers, const snippet::Body& body) const {
  const MemorySpace *second = target_.memory("l2"), *third = target_.memory("l3");
  const RowBytes bytes = row_bytes_of(body);
  if (!second || bytes.moving == 0) return;
  const bool costly = costly_of(body) != Costly::none;
  const int64_t again = bytes.again(), kept = again + bytes.moving + bytes.kept,
                all = costly ? kept : again + bytes.moving;
  const auto l1 = static_cast<int64_t>(first_cache_bytes()), l2 = static_cast<int64_t>(second->size_bytes),
             l3 = third ? static_cast<int64_t>(third->size_bytes) : 0;
  // L2 has no room for values that are kept beside long rows, and a sweep that reads several tensors from it has no
  // time for more: the last sweep waits for stores. Reading two tensors again from L2 is as fast as writing and reading
  // the value computed from them; from other levels it is not.
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
  // Beyond this length sweeps are merged, whose sums have other bits. The border is the same whether or not there is
  // known to be a single row.
  const int64_t border = snippet::may_merge_sweeps(body) ? l3 / (2 * again + bytes.kept) : INT64_MAX;
  const Tier any = tiers.back();
  const bool several = body.first_of_row() + 1 < body.rank();  // several reduced dims
  // Rows up to twice as long as those processed several at once gain nothing.
  int64_t least = 2 * any.lower.longest_row_again + 1;
  for (const auto& range : ranges) {
    const int64_t most = std::min(range.most, border);
    if (least > most) continue;
    if (several && !range.lines) break;  // with several reduced dims, longer rows gain nothing
    Tier& tier = tiers.emplace_back(any);
    tier.suffix += range.suffix;
    tier.calls.rows = {.least = least, .most = most};
    tier.lower.resweep_cycles = range.near ? snippet::LowerOptions{}.resweep_cycles : kMovedVectorCycles;
    tier.lower.keep_near = range.near, tier.lower.keep_joined = range.joined;
    if (fetches_ahead(any)) tier.passes.next_row = range.when;
    tier.passes.next_row_lines = range.lines;
    tier.lower.held_vectors = 0;  // a sweep prefetches the next row, so there must be loops
    least = most + 1;
  }
}

void FormMaker::add_row_orders(std::vector<Tier>& tiers, const snippet::Body& body) const {
  if (!target_.memory("l2") || body.first_of_row() == 0) return;
  const FarRows rows = far_rows_of(body);
  if (rows.bytes.moving == 0) return;
  Tier far = *std::ranges::find_if(tiers, stores_non_temporal);
  const MemorySpace* host = target_.memory("host");
  const FetchedAhead lines = !fetches_ahead(far)                ? FetchedAhead::nowhere
                             : host && host->prefetch_level > 1 ? FetchedAhead::into_second
                                                                : FetchedAhead::into_first;
  far.passes.prefetch_reads.to_second = lines == FetchedAhead::into_second;
  // A store fused with a sweep over several dims has a loop over each of them: equal bits only where no vector is cut.
  if (body.first_of_row() + 1 < body.rank()) far.calls.multiple = int64_t{far.lower.unroll} * far.lower.lanes;
  for (const FarOrder& order : orders_of(rows, lines)) {
    if (order.lengths.least > order.lengths.most) continue;
    Tier& tier = tiers.emplace_back(far);
    tier.suffix += order.suffix;
    tier.row_order = order.order;
    tier.calls.rows = order.lengths;
    tier.calls.multiple = std::max(tier.calls.multiple, order.multiple);
    // A single row has no next row.
    tier.calls.several_rows = needs_lines(order.order) || order.next != NextRow::none;
    tier.lower.merge_sweeps = order.merged;
    tier.lower.keep_near |= order.near;
    if (order.into_first) tier.passes.prefetch_reads.to_second = false;
    if (!order.merged) tier.lower.resweep_cycles = snippet::LowerOptions{}.resweep_cycles;  // kept values stay near
    fetch_in_order(tier.passes, order.order, order.next);
  }
}

FarRows FormMaker::far_rows_of(const snippet::Body& body) const {
  // Shorter rows are processed several at once. The more a sweep computes, the more can overlap
  // (docs/performance/lessons/rows.md, Orders of walking).
  constexpr int64_t kLeastLines = 9, kLeastCostlyLines = 6;
  const MemorySpace *second = target_.memory("l2"), *third = target_.memory("l3");
  const Costly computed = costly_of(body);
  FarRows rows{.bytes = row_bytes_of(body), .folds = folds_behind_one_another(body)};
  rows.costly = computed != Costly::none;
  rows.stored = computed == Costly::stored;
  rows.merges = rows.folds == 2 && snippet::may_merge_sweeps(body);
  rows.one_loop = ((rows.costly || rows.folds < 2) && rows_aligned(body).value_or(false)) || computed == Costly::folded;
  rows.three_walks = isa_of(target_) == Isa::avx512;
  rows.shortest = (rows.costly ? kLeastCostlyLines : kLeastLines) * elements_of_line(body);
  rows.l1 = static_cast<int64_t>(first_cache_bytes());
  if (second) rows.l2 = static_cast<int64_t>(second->size_bytes);
  if (third) rows.l3 = static_cast<int64_t>(third->size_bytes);
  return rows;
}

}  // namespace tenon::x86
