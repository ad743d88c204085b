// What calls and copies see of buffers: addresses, views in the frame, and what has to hold of a box.
#include <algorithm>
#include <span>

#include <tenon/program/exec/binder_internal.hpp>

namespace tenon::program::detail {

Expr Binder::address_of(const SymbolicBuffer& box) {
  MemoryRoot& root = root_of(box);
  const Expr in_slot = address_of(root) + scope_.simplified(box.offset);
  if (root.slots == 1) return in_slot;
  limit_workers(box.root, root.slots);
  return in_slot + worker() * root.slot_bytes;
}

void Binder::set_base(const SymbolicBuffer& box, Place view) {
  const MemoryRoot& root = root_of(box);
  const Expr offset = scope_.simplified(box.offset);
  if (root.slots > 1 || root.level > 0 || root.grows || !offset.is_constant()) {
    registers_.into(address_of(box), view);
    return;
  }
  (root.block >= 0 ? code().planned_bases : code().argument_bases).push_back({view, root.place, offset.constant()});
}

void Binder::limit_workers(BufferId id, int64_t slots) {
  for (const int32_t number : worker_loops_) {
    LoopCode& loop = code().loops[static_cast<size_t>(number)];
    if (slots >= loop.slots) continue;
    loop.slots = slots;
    loop.slots_of = name(id);
  }
}

// Looks back a little only: there may be as many shapes as calls.
constexpr size_t kMostLookedAt = 16;

Place Binder::find_dims(const SymbolicBuffer& box) const {
  for (const auto& level : dims_known_) {
    const size_t looked_at = std::min(level.size(), kMostLookedAt);
    for (const auto& [dims, place] : std::span(level).last(looked_at))
      if (dims == box.dims) return place;
  }
  return -1;
}

OperandCode Binder::operand_in_known_dims(const SymbolicBuffer& box, ElementType element, Place view, Place dims) {
  code().views.push_back({view, dims, static_cast<int32_t>(box.dims.size()), element});
  set_base(box, view);
  use(box.root);
  return {view, {0, view}};
}

OperandCode Binder::operand(const SymbolicBuffer& box, ElementType element, Place view, Site& site,
                            const Label& label) {
  const bool shares = std::ranges::all_of(box.dims, is_unfolded);
  if (const Place known = shares ? find_dims(box) : -1; known >= 0)
    return operand_in_known_dims(box, element, view, known);
  const Place dims = registers_.new_words(box.dims.size() * (sizeof(DimView) / sizeof(int64_t)));
  for (size_t d = 0; d < box.dims.size(); ++d) {
    const Place at = dims + static_cast<Place>(d * sizeof(DimView));
    registers_.into(box.dims[d].min, at);
    registers_.into(box.dims[d].extent, at + kWord);
    registers_.into(scope_.simplified(box.dims[d].stride), at + 2 * kWord);
  }
  if (shares) {
    auto& known = dims_known_.back();
    if (known.size() == 2 * kMostLookedAt) known.erase(known.begin(), known.begin() + kMostLookedAt);
    known.emplace_back(box.dims, dims);
    return operand_in_known_dims(box, element, view, dims);
  }
  code().views.push_back({view, dims, static_cast<int32_t>(box.dims.size()), element});
  OperandCode made{view, {0, view}, static_cast<int32_t>(site.folds.size()), 0, label()};
  Expr base = address_of(box);
  for (size_t d = 0; d < box.dims.size(); ++d) {
    const SymbolicDim& dim = box.dims[d];
    if (is_unfolded(dim)) continue;
    const Place at = dims + static_cast<Place>(d * sizeof(DimView));
    const Expr place = scope_.place_in_ring(dim.min, dim.fold);
    if (dim.fold.is_constant() && prove_le(place + dim.extent, dim.fold, scope_.assumptions())) {
      base += place * dim.stride;  // it never wraps
      continue;
    }
    const bool takes_rings = !site.call || site.call->kernel->takes_folded;
    if (takes_rings && dim.fold.is_constant() && prove_lt(dim.fold, place + dim.extent, scope_.assumptions())) {
      registers_.into(dim.fold, at + 3 * kWord);  // it always does
      continue;
    }
    site.folds.push_back(
        {at, registers_.value(place), registers_.value(dim.fold), registers_.value(scope_.simplified(dim.stride))});
  }
  made.last_fold = static_cast<int32_t>(site.folds.size());
  if (made.first_fold == made.last_fold)
    registers_.into(base, view);
  else
    made.base = registers_.value(base);
  use(box.root);
  return made;
}

// As numbers, which most views of graphs are.
bool Binder::lies_within_its_root(const SymbolicBuffer& box, ElementType element) {
  const SymbolicSpread spread = spread_of(box.dims, element);
  const MemoryRoot& root = root_of(box);
  const Expr begin = scope_.simplified(box.offset - spread.base);
  if (!begin.is_constant() || !spread.bytes.is_constant()) return false;
  return prove_not_negative(begin - root.low) && prove_not_negative(root.high - begin - spread.bytes);
}

void Binder::guard(const Region& r, const SymbolicBuffer& box, const Label& label, Site& site) {
  if (r.box.empty() && !box.general) return;  // all of a buffer that lies where it was made
  const SymbolicBuffer& has = *scope_.find(r.buffer);
  const auto need = [&](const Expr& not_negative, const auto&... what) {
    if (prove_not_negative(not_negative)) return;
    Expr nonempty = 1;
    for (const SymbolicDim& d : box.dims) nonempty *= less(0, d.extent);
    const Expr e = scope_.simplified(select(scope_.simplified(nonempty), not_negative, 0));
    if (prove_not_negative(e)) return;
    site.guards.push_back({registers_.value(e), static_cast<int32_t>(code().messages.size())});
    code().messages.push_back(str(label(), ": ", what...));
  };
  for (size_t d = 0; d < r.box.size(); ++d) {
    const Expr above = scope_.simplified(box.dims[d].min - has.dims[d].min);
    need(above, "dim ", d, ": the box begins before the buffer '", name(r.buffer), "'");
    need(scope_.simplified(has.dims[d].extent - above - box.dims[d].extent), "dim ", d,
         ": the box ends behind the buffer '", name(r.buffer), "'");
  }
  if (!box.general || lies_within_its_root(box, program_.buffer(r.buffer).element)) return;
  Expr low = box.offset, high = box.offset + program_.buffer(r.buffer).element.bits() / 8;
  for (const SymbolicDim& d : box.dims) {
    const Expr reach = (places_of(d) - 1) * d.stride;
    low += min(reach, 0);
    high += max(reach, 0);
  }
  const MemoryRoot& root = root_of(box);
  need(scope_.simplified(low - root.low), "'", name(r.buffer), "' reaches below the memory of '", name(box.root), "'");
  need(scope_.simplified(root.high - high), "'", name(r.buffer), "' reaches beyond the memory of '", name(box.root),
       "'");
}

void Binder::written(const SymbolicBuffer& box, Site& site) {
  if (site.written.empty() && options_.statistics)
    for (const SymbolicDim& d : box.dims) site.counted.push_back(registers_.value(d.extent));
  site.written.push_back(box.root);
  for (const SymbolicDim& d : box.dims) {
    const bool certain = d.extent.is_constant() ? d.extent.constant() > 0 : prove_le(1, d.extent, scope_.assumptions());
    if (!certain) site.extents.push_back(registers_.value(d.extent));
  }
}

}  // namespace tenon::program::detail
