#include "opencl/compute/slice_folds.hpp"

#include <tenon/support/str.hpp>

namespace tenon::opencl {
namespace {

constexpr std::string_view kHalvesOfRows = R"(
    if (slice < SLICES) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) parts[(r * SLICES + slice) * ACROSS + across] = sums[r];
    }
    SYNC;
    for (int share = SLICES / 2; share > 0; share /= 2) {
      for (int i = own; i < ROWS * share * ACROSS; i += LOCAL_SIZE) {
        const int at = i / (share * ACROSS) * (SLICES * ACROSS) + i % (share * ACROSS);
        parts[at] += parts[at + share * ACROSS];
      }
      SYNC;
    }
)";
// The item that finishes an element adds the sums of sub-groups, which are in the first of TOGETHER slices.
constexpr std::string_view kSubGroupsOfRows = R"(
    const int together = TOGETHER;
    EACH_STEP(together) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        T lanes[LANES];
        VSTORE(sums[r], 0, lanes);
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) ADD_STEP(lanes[lane], together);
        sums[r] = VLOAD(0, lanes);
      }
    }
    if (slice < SLICES && slice % together == 0) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) parts[(r * SLICES + slice / together) * ACROSS + across] = sums[r];
    }
    SYNC;
    for (int i = own; i < ROWS * ACROSS; i += LOCAL_SIZE) {
      const int at = SUMS_AT(i / ACROSS, i % ACROSS);
      for (int piece = 1; piece < SLICES / together; ++piece) parts[at] += parts[at + piece * ACROSS];
    }
)";

constexpr std::string_view kHalvesOfColumns = R"(
      const int together = SLICES;
      if (slice < SLICES && across < ACROSS)
        for (int i = 0; i < ROWS * CHAINS; ++i) pieces[i * SLICES * ACROSS + own] = found[i];
      SYNC;
      for (int share = SLICES / 2; share > 0; share /= 2) {
        if (slice < share && across < ACROSS)
          for (int i = 0; i < ROWS * CHAINS; ++i)
            pieces[i * SLICES * ACROSS + own] += pieces[i * SLICES * ACROSS + own + share];
        SYNC;
      }
)";
constexpr std::string_view kSubGroupsOfColumns = R"(
      const int together = TOGETHER;
      EACH_STEP(together) {
#pragma unroll
        for (int i = 0; i < ROWS * CHAINS; ++i) ADD_STEP(found[i], together);
      }
      if (slice < SLICES && across < ACROSS && slice % together == 0) {
#pragma unroll
        for (int i = 0; i < ROWS * CHAINS; ++i)
          pieces[(i * ACROSS + across) * SLICES + slice / together] = found[i];
      }
      SYNC;
)";

}  // namespace

SliceFold slice_fold_of(bool by_columns, const ComputeTarget& target) {
  if (target.sub_groups.shuffle) return SliceFold::shuffles;
  // Where B is stored by rows, the items of a vector of columns are not adjacent.
  return target.sub_groups.there && by_columns ? SliceFold::reductions : SliceFold::halves;
}

// Items are numbered by their positions in sub-groups, since nothing else tells which items share one. All sub-groups
// except the last have the same size, so numbers stay below the group's size.
void define_slice_fold(ComputeSource& source, SliceFold fold, int64_t apart, int lanes) {
  if (fold == SliceFold::halves) return source.define("OWN", "(int)LOCAL_ID");
  source.use_sub_groups();
  source.define("OWN", "(int)(get_sub_group_id() * get_max_sub_group_size() + get_sub_group_local_id())");
  source.define("SUB_GROUP", "(int)get_max_sub_group_size()");
  source.define("VSTORE", str("vstore", lanes));
  // All items execute at least one step, and drop its sum where no slices are together: PoCL 6.0 loses values around
  // sub-group functions in conditional code, or in a loop, that is not executed.
  if (fold == SliceFold::reductions) {
    source.define("TOGETHER", "(SLICES % SUB_GROUP == 0 ? SUB_GROUP : 1)");
    source.define("EACH_STEP(together)", "");
    source.define("ADD_STEP(x, together)",
                  "{ const T sum = sub_group_reduce_add(x); x = (together) > 1 ? sum : (x); }");
    return;
  }
  source.define("APART", apart);
  source.define("TOGETHER", "max(min(SLICES, (SUB_GROUP & -SUB_GROUP) / APART), 1)");
  source.define("EACH_STEP(together)", "for (int apart = APART * max((together) / 2, 1); apart >= APART; apart /= 2)");
  source.define("ADD_STEP(x, together)",
                "{ const T other = sub_group_shuffle(x, min(get_sub_group_local_id() ^ (uint)apart, "
                "get_sub_group_size() - 1)); x = (together) > 1 ? (x) + other : (x); }");
}

std::string_view slice_fold_text(bool by_columns, SliceFold fold) {
  const bool halves = fold == SliceFold::halves;
  if (by_columns) return halves ? kHalvesOfColumns : kSubGroupsOfColumns;
  return halves ? kHalvesOfRows : kSubGroupsOfRows;
}

}  // namespace tenon::opencl
