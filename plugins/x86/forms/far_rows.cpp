// The tables of orders, one for each class of machine. What each pays is in docs/performance/lessons/rows-far.md.
//
// Common to all: what is stored beside the fold of the next row overlaps with the reads of that, the walks between with
// nothing, so rows are skewed where nothing is better; where two folds may be one, those go merged that no near cache
// holds.
#include "x86/forms/far_rows.hpp"

#include <algorithm>

namespace tenon::x86 {
namespace {

using Lengths = irgen::RowRange;
constexpr Lengths kNone{.least = 1, .most = 0};

bool is_any(const Lengths& lengths) { return lengths.least <= lengths.most; }

// Rows of which `cache` bytes hold three, and what is kept of one.
int64_t of_three_walks(const FarRows& rows, int64_t cache) { return cache / (3 * rows.bytes.moving + rows.bytes.kept); }
bool go_twice(const FarRows& rows) { return rows.costly && rows.three_walks; }

// A loop that reads several rows out of L2 lets go of the lines that it fetches from main memory: what
// all rows share has to lie in `shared` bytes, with a row and what is kept of it. Where two folds may be one, those go
// merged that L2 does not hold; costly ones, whose powers that makes twice, beyond half of the last.
int64_t longest_skewed(const FarRows& rows, int64_t shared) {
  if (rows.folds > 1 && rows.bytes.standing > 0) return shared / rows.bytes.all();
  if (rows.merges && !rows.costly) return rows.l2 / rows.bytes.again();
  if (rows.merges && rows.l3) return *rows.l3 / 2 / rows.bytes.all();
  return Lengths{}.most;
}

// The walk that keeps what is costly is not the first, which finds the next row where that has fetched it.
NextRow next_of_skewed(const FarRows& rows) { return rows.costly ? NextRow::last : NextRow::none; }

// Main memory is read fastest by a sweep that does nothing else, and written fastest by one that reads from L1: rows of
// one tensor that lie there go one by one, sweep by sweep. What is costly waits in the output, whose lines come while
// it is computed; beside it stands what waited there for the row before, until it is written back.
//
// Beyond L1, or nearly, the sweep that stores fetches the next row into L2, so that main memory is
// read and written at once. No other sweep reads from main memory then, so lines come whole and in one stretch. Rows
// that share nothing and are folded once gain more from being skewed, and so do costly ones: of these, the walk that
// computes what is costly fetches the next row, where L1 does not hold one beside that.
//
// Skewed orders read one row while they write another, and a load is held up by a store to the same place of another
// page: at every element where rows are whole pages. Where these orders are faster but for that, none but such rows go
// one by one: of what is stored and costly, the walk that computes it fetches the next row, and it waits in the output
// where L1 holds that row by row, else in scratch memory.
std::vector<FarOrder> without_fetches(const FarRows& rows) {
  // Loads are held against stores by their place in pages of so many alone.
  constexpr int64_t kPageBytes = 4096;
  const RowBytes& bytes = rows.bytes;
  const int64_t all = bytes.all(), page = kPageBytes / bytes.narrowest;
  const bool of_one_tensor = bytes.moving <= bytes.kept, go_alone = of_one_tensor && !rows.one_loop,
             skew_but_for_pages = !of_one_tensor || (rows.one_loop && bytes.standing == 0);
  // What waits is no longer than what is read of main memory, which takes the more time; not of 16 bits.
  const bool wide = bytes.moving >= bytes.kept;

  Lengths fetching = kNone;
  if (!rows.costly && (rows.folds > 1 || bytes.standing > 0))
    fetching = {.least = rows.l1 / (rows.one_loop ? 1 : 2) / all + 1, .most = rows.l2 / 2 / all};
  Lengths alone = kNone;
  if (go_alone) alone = {.least = rows.shortest, .most = rows.l1 / (rows.costly || is_any(fetching) ? 2 : 1) / all};

  Lengths skewed{.least = rows.shortest, .most = longest_skewed(rows, rows.l1)};
  if (rows.folds > 1 && go_alone)
    skewed.least = is_any(fetching) ? fetching.most + 1 : std::max(rows.shortest, alone.most + 1);
  // Three walks in one loop: beyond, two are faster (docs/performance/lessons/rows-far.md, Zen 4).
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

// Three walks are as fast as far as L2 holds what they read.
std::vector<FarOrder> fetched_into_first(const FarRows& rows) {
  const Lengths skewed{.least = rows.shortest, .most = longest_skewed(rows, rows.l1)};
  Lengths twice = kNone, merged = kNone;
  if (go_twice(rows)) twice = {.least = skewed.least, .most = std::min(skewed.most, of_three_walks(rows, rows.l2))};
  if (rows.merges && !rows.costly) merged = {.least = rows.l2 / rows.bytes.again() + 1};
  return {{.suffix = ".skewed", .order = RowOrder::skewed, .lengths = skewed, .next = next_of_skewed(rows)},
          {.suffix = ".skewed.twice", .order = RowOrder::skewed_twice, .lengths = twice},
          {.suffix = ".skewed.merged", .order = RowOrder::skewed, .lengths = merged, .merged = true}};
}

// L2 has room for what all rows share, beside a row and the next. Skewed rows are as fast as those whose
// next one is fetched by the sweep that stores, but for those of one tensor, folded twice, that L1 does
// not hold beside what all rows share, up to an eighth of L2.
//
// What all rows share comes again for each from L3 where the second does not hold it beside two rows: then
// several of one tensor are stored together.
//
// Three walks out of L2 gain nothing from lines that are fetched there, too, and lose a twentieth: those
// go to the first. So do those of merged rows whose powers are made twice: that costs less than keeping them where the
// levels behind the first are slow, as here, and vectors long; not of 16 bits, of which less is read again.
std::vector<FarOrder> fetched_into_second(const FarRows& rows) {
  const RowBytes& bytes = rows.bytes;
  const bool of_one_tensor = bytes.moving <= bytes.kept;
  const bool merges_costly = go_twice(rows) && rows.merges && bytes.narrowest >= bytes.kept;
  Lengths skewed{.least = rows.shortest, .most = longest_skewed(rows, rows.l2 / 2)}, merged = kNone;
  if (merges_costly) {
    merged = {.least = rows.shortest};
    // None is made twice where none is stored, and several tensors are more than their powers. Beside what all rows
    // share, three walks are faster out of L1 alone, else out of three quarters of L2.
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
