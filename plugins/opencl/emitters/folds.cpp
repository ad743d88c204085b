// Reductions over lanes: by halving an item's vector, then over the items of a chunk. Items exchange values within
// their sub-group where the device has sub-groups, and otherwise through local memory.
#include <tenon/support/str.hpp>

#include "opencl/emitters/emitters.hpp"
#include "opencl/emitters/pattern.hpp"

namespace tenon::opencl {
namespace {

using namespace codegen;

// The pattern of a reduction, and its element type.
struct Fold {
  std::string_view op, pattern;
  ElementType element;
};

// The reduction of two scalars, as a scalar. There are no vectors of one lane: in a vector of two, the second lane is
// unused.
Result<std::string> folded(SourceContext& c, const Fold& fold, std::string_view a, std::string_view b) {
  const std::string type = lanes_name(fold.element, 2);
  const std::string operands[] = {str("(", type, ")(", a, ")"), str("(", type, ")(", b, ")")};
  TENON_TRY(text, expand(c, fold.pattern, {fold.element, 2, operands}));
  return str("(", text, ").x");
}

// ---- In sub-groups ----

struct SubGroupFold {
  std::string_view op;
  LaneTypes types;
  std::string_view text;  // computes `whole` from the value of each item, $0
};

// The result of sub_group_reduce_max for floats is unspecified where one is NaN. Therefore integers in the order of the
// floats are used, with every NaN mapped to the end that wins.
constexpr std::string_view kMaxOfFloats =
    R"(const $I size = as_$I(~($U)0 >> 1), bits = as_$I($0), key = isnan($0) ? size : bits ^ (bits >> $b & size);
const $I most = sub_group_reduce_max(key);
whole = as_$T(most ^ (most >> $b & size));)";
constexpr std::string_view kMinOfFloats =
    R"(const $I size = as_$I(~($U)0 >> 1), bits = as_$I($0), key = isnan($0) ? ~size : bits ^ (bits >> $b & size);
const $I least = sub_group_reduce_min(key);
whole = as_$T(least ^ (least >> $b & size));)";

constexpr SubGroupFold kSubGroupFolds[] = {
    {"Add", kFloatLanes, "whole = sub_group_reduce_add($0);"},
    {"Add", kIntLanes, "whole = as_$T(sub_group_reduce_add($u0));"},
    {"Max", kFloatLanes, kMaxOfFloats},
    {"Max", kIntLanes, "whole = sub_group_reduce_max($0);"},
    {"Min", kFloatLanes, kMinOfFloats},
    {"Min", kIntLanes, "whole = sub_group_reduce_min($0);"},
};
// Any operator: $1 combines `whole` and `other`. Sub-groups may have any size; all of their items execute as many
// steps, at least one: PoCL 6.0 loses values around a loop that shuffles and has no iteration.
constexpr std::string_view kByShuffles = R"(const uint size = get_sub_group_size(), own = get_sub_group_local_id();
uint n = 1;
while (2 * n < get_max_sub_group_size()) n *= 2;
whole = $0;
for (; n > 0; n /= 2) {
  const $T other = sub_group_shuffle(whole, min(own + n, size - 1));
  if (own + n < size) whole = $1;
}
whole = sub_group_broadcast(whole, 0);)";

// The text for a reduction in a sub-group; empty where there is none.
std::string_view sub_group_text(const SourceContext& c, const Fold& fold) {
  if (!c.sub_groups().there) return {};
  for (const SubGroupFold& row : kSubGroupFolds)
    if (row.op == fold.op && row.types.contains(fold.element)) return row.text;
  return c.sub_groups().shuffle ? kByShuffles : std::string_view();
}

// `whole` of the results of the sub-groups. Consecutive reductions alternate between the halves of `parts`, because
// some items may still read the other half; so one barrier is enough. The barrier is unconditional, also where a single
// sub-group is the whole work group: PoCL 6.0 loses values at `if (get_num_sub_groups() > 1) barrier(...)` when it is
// not taken.
Result<void> fold_sub_groups(SourceContext& c, const Fold& fold, std::string_view text, const std::string& own) {
  TENON_TRY(with_other, folded(c, fold, "whole", "other"));
  const std::string parts = c.sub_group_array(fold.element), operands[] = {own, std::move(with_other)};
  TENON_TRY(lines, expand(c, text, {fold.element, 1, operands}));
  TENON_TRY(with_part, folded(c, fold, "whole", str(parts, "[turn + n]")));
  c.line(str(scalar_name(fold.element), " whole;"));
  c.open("");
  c.lines(lines);
  c.close();
  c.line(str("turn = ", c.items(), " - turn;"));
  c.line(str("if (get_sub_group_local_id() == 0) ", parts, "[turn + get_sub_group_id()] = whole;"));
  c.line("barrier(CLK_LOCAL_MEM_FENCE);");
  c.line(str("whole = ", parts, "[turn];"));
  c.line(str("for (uint n = 1; n < get_num_sub_groups(); ++n) whole = ", with_part, ";"));
  return {};
}

// ---- In local memory ----

// `whole` of all items, by halving.
Result<void> fold_items(SourceContext& c, const Fold& fold, const std::string& own) {
  const std::string shared = c.shared_array(fold.element), barrier = "barrier(CLK_LOCAL_MEM_FENCE);";
  TENON_TRY(text, folded(c, fold, shared + "[item]", shared + "[item + n]"));
  c.line(str(shared, "[item] = ", own, ";"));
  c.line(barrier);
  c.open(str("for (int n = ", c.items() / 2, "; n > 0; n /= 2)"));
  c.line(str("if (item < n) ", shared, "[item] = ", text, ";"));
  c.line(barrier);
  c.close();
  c.line(str("const ", scalar_name(fold.element), " whole = ", shared, "[0];"));
  c.line(barrier);
  return {};
}

// Reduces an item's lanes by halving; the first of the last two has the result.
Result<std::string> fold_vector(SourceContext& c, const Fold& fold, std::string value) {
  for (int lanes = c.lanes() / 2; lanes >= 1; lanes /= 2) {
    // There are no vectors of one lane: in a vector of two, the second lane is unused.
    const bool last = lanes == 1;
    const std::string operands[] = {last ? value : value + ".lo", last ? value + ".yx" : value + ".hi"};
    TENON_TRY(text, expand(c, fold.pattern, {fold.element, last ? 2 : lanes, operands}));
    const std::string next = str("t", lanes);
    c.line(str("const ", lanes_name(fold.element, last ? 2 : lanes), " ", next, " = ", text, ";"));
    value = next;
  }
  return value + ".x";
}

// All lanes of all items get the result.
Result<void> emit_fold_lanes(SourceContext& c, const Emission& e) {
  const Attribute* by = e.attributes.find("by");
  const std::string* op = by ? by->get_if<std::string>() : nullptr;
  const ElementType element = e.out[0].element;
  const Fold fold{op ? *op : std::string_view(), op ? fold_pattern(*op, element) : std::string_view(), element};
  if (fold.pattern.empty()) return error(Code::internal, e.op, " by '", fold.op, "'");
  c.open("");
  TENON_TRY(value, fold_vector(c, fold, c.name(e.in[0])));
  if (c.items() > 1) {
    const std::string_view text = sub_group_text(c, fold);
    TENON_OK(text.empty() ? fold_items(c, fold, value) : fold_sub_groups(c, fold, text, value));
    value = "whole";
  }
  c.assign(e.out[0], str("(", lanes_name(element, c.lanes()), ")(", value, ")"));
  c.close();
  return {};
}

}  // namespace

Result<void> add_fold_rows(JitterTable& table) {
  return add_row(table,
                 {.op = "FoldLanes", .types = kNumberLanes, .cycles = 16, .make = function_emitter<emit_fold_lanes>});
}

}  // namespace tenon::opencl
