// The tables of row orders, one for each class of machine. The gains are in docs/performance/lessons/rows-far.md.
//
// Common to all: a store that is fused with a reduction of the next row overlaps with its reads from memory, whereas
// sweeps in between overlap with nothing. Rows are therefore skewed where nothing better exists. Two reductions that
// may be merged are merged in rows that no near cache holds.
#include "x86/forms/far_rows.hpp"

#include <algorithm>

namespace tenon::x86 {
namespace {

using Lengths = irgen::RowRange;
constexpr Lengths kNone{.least = 1, .most = 0};

bool is_any(const Lengths& lengths) { return lengths.least <= lengths.most; }

// The longest row of which `cache` bytes hold three, and what is kept of one.
int64_t of_three_walks(const FarRows& rows, int64_t cache) { return cache / (3 * rows.bytes.moving + rows.bytes.kept); }
bool go_twice(const FarRows& rows) { return rows.costly && rows.three_walks; }

// A loop that reads several rows from L2 loses lines that it prefetches from main memory. Therefore what all rows share
// must fit into `shared` bytes, together with a row and what is kept of it. Two reductions that may be merged are
// merged where L2 does not hold such rows; costly ones, whose powers merging computes twice, beyond half of the last
// cache.
int64_t longest_skewed(const FarRows& rows, int64_t shared) {
  if (rows.folds > 1 && rows.bytes.standing > 0) return shared / rows.bytes.all();
  if (rows.merges && !rows.costly) return rows.l2 / rows.bytes.again();
  if (rows.merges && rows.l3) return *rows.l3 / 2 / rows.bytes.all();
  return Lengths{}.most;
}

// The sweep that keeps costly values is not the first one, and finds the next row where the first one has prefetched
// it.
NextRow next_of_skewed(const FarRows& rows) { return rows.costly ? NextRow::last : NextRow::none; }

// Main memory is read fastest by a sweep that does nothing else, and written fastest by one that reads from L1. Rows of
// one tensor that fit L1 are therefore processed one at a time, sweep by sweep. Costly values are kept in the output,
// whose lines arrive from memory while the values are computed. Those of the row before remain in L1 beside them until
// they are written back.
//
// For rows beyond L1, or almost so, the sweep that stores prefetches the next row into L2, so that main memory is read
// and written at the same time. No other sweep reads main memory, so it is read in whole lines and in one stretch. Rows
// that share nothing and have one reduction gain more from being skewed, and so do costly rows. In these, the sweep
// that computes the costly values prefetches the next row where L1 does not hold a row beside them.
//
// Skewed orders read one row while they write another. A load waits for an earlier store whose address has the same
// offset in a page (4K aliasing), and where rows are whole pages this happens at every element. Where skewed orders are
// otherwise faster, only such rows are processed one at a time. If values are stored and costly, the sweep that
// computes them prefetches the next row; they are kept in the output where L1 holds that row with each other row,
// otherwise in scratch memory.
std::vector<FarOrder> without_fetches(const FarRows& rows) {
  // Loads are checked against earlier stores only by their offset in pages of this size.
  constexpr int64_t kPageBytes = 4096;
  const RowBytes& bytes = rows.bytes;
  const int64_t all = bytes.all(), page = kPageBytes / bytes.narrowest;
  const bool of_one_tensor = bytes.moving <= bytes.kept, go_alone = of_one_tensor && !rows.one_loop,
             skew_but_for_pages = !of_one_tensor || (rows.one_loop && bytes.standing == 0);
  // Kept values are no wider than what is read from main memory, which takes longer; not for 16-bit values.
  const bool wide = bytes.moving >= bytes.kept;

  Lengths fetching = kNone;
  if (!rows.costly && (rows.folds > 1 || bytes.standing > 0))
    fetching = {.least = rows.l1 / (rows.one_loop ? 1 : 2) / all + 1, .most = rows.l2 / 2 / all};
  Lengths alone = kNone;
  if (go_alone) alone = {.least = rows.shortest, .most = rows.l1 / (rows.costly || is_any(fetching) ? 2 : 1) / all};

  Lengths skewed{.least = rows.shortest, .most = longest_skewed(rows, rows.l1)};
  if (rows.folds > 1 && go_alone)
    skewed.least = is_any(fetching) ? fetching.most + 1 : std::max(rows.shortest, alone.most + 1);
  // Three sweeps in one loop: for longer rows two are faster (docs/performance/lessons/rows-far.md, Zen 4).
  Lengths twice = kNone;
  if (go_twice(rows)) twice = {.least = skewed.least, .most = std::min(skewed.most, of_three_walks(rows, rows.l1))};
  Lengths far = kNone;
  if (rows.costly && wide) far = {.least = std::max(skewed.least, rows.l1 / all + 1), .most = skewed.most};
  if (is_any(far)) skewed.most = far.least - 1;

  Lengths paged = kNone, near = kNone;
  if (of_one_tensor && skew_but_for_pages && rows.stored && rows.three_walks) {
    paged = {.least = page, .most = rows.l1 / (wide ? 4 : 2) / all};
    if (wide) near = {.least = paged.most + 1, .most = rows.l1 / all};
  }
  Lengths merged = kNone;
  if (rows.merges && !rows.costly) merged = {.least = rows.l2 / bytes.again() + 1};

  const int64_t multiple = skew_but_for_pages ? page : 1;
  return {{.suffix = ".alone", .order = RowOrder::one_by_one, .lengths = alone, .multiple = multiple},
          {.suffix = ".skewed", .order = RowOrder::skewed, .lengths = skewed, .next = next_of_skewed(rows)},
          {.suffix = ".skewed.fetching", .order = RowOrder::skewed, .lengths = far, .next = NextRow::last_to_second},
          {.suffix = ".skewed.twice", .order = RowOrder::skewed_twice, .lengths = twice},
          {.suffix = ".alone.paged",
           .order = RowOrder::one_by_one,
           .lengths = paged,
           .next = NextRow::before_last_to_second,
           .multiple = multiple},
          {.suffix = ".alone.near",
           .order = RowOrder::one_by_one,
           .lengths = near,
           .next = NextRow::before_last_to_second,
           .near = true,
           .multiple = multiple},
          {.suffix = ".alone.fetching",
           .order = RowOrder::one_by_one,
           .lengths = fetching,
           .next = NextRow::last_to_second,
           .multiple = multiple},
          {.suffix = ".skewed.merged", .order = RowOrder::skewed, .lengths = merged, .merged = true}};
}

// Three sweeps in one loop are as fast as long as L2 holds what they read.
std::vector<FarOrder> fetched_into_first(const FarRows& rows) {
  const Lengths skewed{.least = rows.shortest, .most = longest_skewed(rows, rows.l1)};
  Lengths twice = kNone, merged = kNone;
  if (go_twice(rows)) twice = {.least = skewed.least, .most = std::min(skewed.most, of_three_walks(rows, rows.l2))};
  if (rows.merges && !rows.costly) merged = {.least = rows.l2 / rows.bytes.again() + 1};
  return {{.suffix = ".skewed", .order = RowOrder::skewed, .lengths = skewed, .next = next_of_skewed(rows)},
          {.suffix = ".skewed.twice", .order = RowOrder::skewed_twice, .lengths = twice},
          {.suffix = ".skewed.merged", .order = RowOrder::skewed, .lengths = merged, .merged = true}};
}

// L2 has room for what all rows share, beside a row and the next one. Skewed rows are as fast as rows whose successor
// is prefetched by the sweep that stores, except for rows of one tensor with two reductions that L1 does not hold
// beside what all rows share, up to an eighth of L2.
//
// Where L2 does not hold what all rows share beside two rows, it is read again from L3 for each row. Several rows of
// one tensor are then stored together.
//
// Three sweeps in one loop that read from L2 gain nothing from lines that are prefetched into L2 as well, and lose a
// twentieth. Those lines are prefetched into L1. So are the lines of merged rows whose powers are computed twice. That
// costs less than keeping the powers where caches after the first are slow, as here, and vectors are long; not for
// 16-bit values, of which less is read again.
std::vector<FarOrder> fetched_into_second(const FarRows& rows) {
  const RowBytes& bytes = rows.bytes;
  const bool of_one_tensor = bytes.moving <= bytes.kept;
  const bool merges_costly = go_twice(rows) && rows.merges && bytes.narrowest >= bytes.kept;
  Lengths skewed{.least = rows.shortest, .most = longest_skewed(rows, rows.l2 / 2)}, merged = kNone;
  if (merges_costly) {
    merged = {.least = rows.shortest};
    // Nothing is computed twice where nothing is stored, and where several tensors have more bytes than their powers.
    // Beside what all rows share, three sweeps are faster only from L1, otherwise from three quarters of L2.
    if (rows.stored && of_one_tensor)
      merged.least = std::max(rows.shortest, of_three_walks(rows, bytes.standing > 0 ? rows.l1 : rows.l2 / 4 * 3) + 1);
    skewed.most = std::min(skewed.most, merged.least - 1);
  } else if (rows.merges && !rows.costly) {
    merged = {.least = skewed.most + 1};
  }
  Lengths twice = kNone, far = kNone, fetching = kNone, together = kNone;
  if (rows.merges && !rows.costly && of_one_tensor && bytes.standing > 0)
    together = {.least = std::max(merged.least, rows.l2 / (bytes.all() + bytes.moving) + 1)};
  if (go_twice(rows)) {
    twice = {.least = skewed.least, .most = std::min(skewed.most, of_three_walks(rows, rows.l1))};
    far = {.least = of_three_walks(rows, rows.l1) + 1, .most = std::min(skewed.most, of_three_walks(rows, rows.l2))};
  }
  if (!rows.costly && of_one_tensor && rows.folds > 1 && bytes.standing > 0)
    fetching = {.least = rows.l1 / bytes.all() + 1, .most = rows.l2 / 8 / bytes.all()};
  return {{.suffix = ".skewed", .order = RowOrder::skewed, .lengths = skewed, .next = next_of_skewed(rows)},
          {.suffix = ".skewed.twice", .order = RowOrder::skewed_twice, .lengths = twice},
          {.suffix = ".skewed.twice.far", .order = RowOrder::skewed_twice, .lengths = far, .into_first = true},
          {.suffix = ".alone.fetching",
           .order = RowOrder::one_by_one,
           .lengths = fetching,
           .next = NextRow::last_to_second},
          {.suffix = ".skewed.merged",
           .order = RowOrder::skewed,
           .lengths = merged,
           .merged = true,
           .into_first = merges_costly},
          {.suffix = ".together",
           .order = RowOrder::stored_together,
           .lengths = together,
           .merged = true,
           .into_first = true}};
}

}  // namespace

std::vector<FarOrder> orders_of(const FarRows& rows, FetchedAhead lines) {
  switch (lines) {
    case FetchedAhead::nowhere: return without_fetches(rows);
    case FetchedAhead::into_first: return fetched_into_first(rows);
    case FetchedAhead::into_second: return fetched_into_second(rows);
  }
  return {};
}

}  // namespace tenon::x86
