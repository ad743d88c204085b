// Values in the memory of others: parts of a whole (Slice, Split, Concat), and results in the place of operands.
#include <algorithm>
#include <optional>

#include <tenon/irgen/lowering_internal.hpp>

namespace tenon::irgen::detail {
namespace {

bool is_one(const Dim& dim) { return dim.is_static() && dim.value() == 1; }

}  // namespace

// Below the first dim that is cut, all dims must be whole; above it, each must have one index.
std::optional<Expr> dense_offset(const Shape& whole, const std::vector<Expr>& begin, const Shape& box) {
  Expr offset = 0, stride = 1;
  bool cut = false;
  for (size_t d = whole.dims().size(); d-- > 0;) {
    if (cut && !is_one(box[d])) return std::nullopt;
    cut = cut || !whole[d].same_extent(box[d]);
    offset += begin[d] * stride;
    stride = stride * whole[d].expr();
  }
  return offset;
}

void Lowering::share_memory() {
  LiveBytes live(places_, order_.size());
  for (const size_t n : order_) {
    const Node& node = nodes_[n];
    if (!node.plan) continue;
    if (node.plan->form == OpForm::crop) share_crop(node, live);
    if (node.plan->form == OpForm::concat) share_concat(node, live);
  }
  share_with_gaps(live);
}

Place Lowering::place_of_part(const Value& whole, const std::vector<Expr>& begin, const Shape& box) const {
  Place at = places_.place(whole);
  const Type& type = types_.type_of(whole);
  const Shape& lies_in = at.within ? *at.within : type.shape();
  if (!at.within && !dense_offset(type.shape(), begin, box)) at.within = type.shape();
  Expr stride = type.element().bits() / 8;
  for (size_t d = begin.size(); d-- > 0;) {
    at.offset += begin[d] * stride;
    stride = stride * lies_in[d].expr();
  }
  return at;
}

std::vector<Expr> Lowering::begin_of(const OpPlan& concat, size_t rank, size_t i) {
  std::vector<Expr> begin(rank, Expr(0));
  begin[concat.axis] = concat.starts[i];
  return begin;
}

// `part` is the box of `whole` that begins at `begin`. It is placed in the memory of `whole` permanently where it
// covers all of its own storage and the peak does not grow. A part that is used as a whole elsewhere, as an output is,
// is copied at once.
void Lowering::share_part(const Value& part, const Value& whole, const std::vector<Expr>& begin, LiveBytes& live) {
  const Type& type = types_.type_of(part);
  const StorageId own = places_.root_of(part);
  const Place at = places_.place(whole);
  if (own == at.storage || places_.storage(own).kind != Storage::Kind::local || !places_.covers_root(part)) return;
  const auto offset = dense_offset(types_.type_of(whole).shape(), begin, type.shape());
  if (!offset || !live.merge_within_peak(places_.storage(own), places_.storage(at.storage))) return;
  places_.merge(own, {at.storage, at.offset + *offset * (type.element().bits() / 8)});
}

void Lowering::share_crop(const Node& node, LiveBytes& live) {
  for (size_t r = 0; r < node.results.size(); ++r)
    share_part(*node.results[r].value, *node.operands[0].value, node.plan->at[r], live);
}

void Lowering::share_concat(const Node& node, LiveBytes& live) {
  const Value& result = *node.results[0].value;
  const size_t rank = types_.type_of(result).shape().dims().size();
  for (size_t i = 0; i < node.operands.size(); ++i)
    share_part(*node.operands[i].value, result, begin_of(*node.plan, rank, i), live);
}

void Lowering::write_in_place() {
  for (size_t position = 0; position < order_.size(); ++position) {
    const Node& node = nodes_[order_[position]];
    if (!node.plan || node.plan->form != OpForm::call) continue;
    for (const InPlace& pair : node.choice().in_place) {
      const Value* operand = node.op->operand(pair.operand);
      const Value* result = node.op->result(pair.result);
      if (!operand || !result || !may_write_in_place(node, position, *operand, *result)) continue;
      places_.merge(places_.root_of(*operand), places_.place(*result));
    }
  }
}

bool Lowering::may_write_in_place(const Node& node, size_t position, const Value& operand, const Value& result) {
  const Place at = places_.place(operand);
  const Storage& storage = places_.storage(at.storage);
  if (storage.kind != Storage::Kind::local || storage.last != position || !places_.covers_root(operand)) return false;
  const Type &from = types_.type_of(operand), &to = types_.type_of(result);
  if (from.element().bits() != to.element().bits() || from.shape() != to.shape()) return false;
  // Another operand in the same memory must be read element for element as well. No other operand may be in the
  // result's place, and no other result in the operand's.
  const StorageId target = places_.root_of(result);
  for (const NodeValue& other : node.operands) {
    const StorageId root = places_.root_of(other.storage);
    if (root == target || (root == at.storage && types_.type_of(*other.value).shape() != from.shape())) return false;
  }
  return std::ranges::none_of(node.results,
                              [&](const NodeValue& r) { return places_.root_of(r.storage) == at.storage; });
}

}  // namespace tenon::irgen::detail
