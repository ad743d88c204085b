// What calls and copies see of buffers: addresses, views in the frame, and what has to hold of a box.
#include <algorithm>

#include <tenon/program/exec/binder_internal.hpp>

namespace tenon::program::detail {

Expr Binder::address_of(const SymbolicBuffer& box) {
  const MemoryRoot& root = root_of(box);
  if (root.slots > 1) limit_workers(box.root, root.slots);
  return root.address + scope_.simplified(box.offset) + (root.slots > 1 ? worker() * root.slot_bytes : Expr(0));
}

void Binder::limit_workers(BufferId id, int64_t slots) {
  for (const int32_t number : worker_loops_) {
    LoopCode& loop = code().loops[static_cast<size_t>(number)];
    if (slots >= loop.slots) continue;
    loop.slots = slots;
    loop.slots_of = name(id);
  }
}

Place Binder::find_dims(const SymbolicBuffer& box) const {
  for (const auto& level : dims_known_)
    for (const auto& [dims, place] : level)
      if (dims == box.dims) return place;
  return -1;
}

OperandCode Binder::operand(const SymbolicBuffer& box, ElementType element, Place view, Site& site, std::string label) {
  OperandCode made{view, {}, static_cast<int32_t>(site.folds.size()), 0, std::move(label)};
  const auto rank = static_cast<int32_t>(box.dims.size());
  const bool shares = std::ranges::all_of(box.dims, is_unfolded);
  if (const Place known = shares ? find_dims(box) : -1; known >= 0) {
    code().views.push_back({view, known, rank, element});
    made.base = {0, view};
    made.last_fold = made.first_fold;
    registers_.into(address_of(box), view);
    use(box.root);
    return made;
  }
  const Place dims = registers_.new_words(box.dims.size() * (sizeof(DimView) / sizeof(int64_t)));
  code().views.push_back({view, dims, rank, element});
  if (shares) dims_known_.back().emplace_back(box.dims, dims);
  Expr base = address_of(box);
  for (int32_t d = 0; d < rank; ++d) {
    const SymbolicDim& dim = box.dims[static_cast<size_t>(d)];
    const Place at = dims + d * static_cast<Place>(sizeof(DimView));
    registers_.into(dim.min, at);
    registers_.into(dim.extent, at + kWord);
    registers_.into(scope_.simplified(dim.stride), at + 2 * kWord);
    if (is_unfolded(dim)) continue;
    const Expr place = scope_.simplified(mod(dim.min, max(dim.fold, 1)));
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
  made.base = {0, view};
  if (made.first_fold == made.last_fold)
    registers_.into(base, view);
  else
    made.base = registers_.value(base);
  use(box.root);
  return made;
}

void Binder::guard(const Region& r, const SymbolicBuffer& box, const std::string& label, Site& site) {
  const SymbolicBuffer& has = *scope_.find(r.buffer);
  Expr nonempty = 1;
  for (const SymbolicDim& d : box.dims) nonempty *= less(0, d.extent);
  nonempty = scope_.simplified(nonempty);
  const auto need = [&](const Expr& not_negative, const auto&... what) {
    if (prove_not_negative(not_negative)) return;
    const Expr e = scope_.simplified(select(nonempty, not_negative, 0));
    if (prove_not_negative(e)) return;
    site.guards.push_back({registers_.value(e), static_cast<int32_t>(code().messages.size())});
    code().messages.push_back(str(label, ": ", what...));
  };
  for (size_t d = 0; d < r.box.size(); ++d) {
    const Expr above = scope_.simplified(box.dims[d].min - has.dims[d].min);
    need(above, "dim ", d, ": the box begins before the buffer '", name(r.buffer), "'");
    need(scope_.simplified(has.dims[d].extent - above - box.dims[d].extent), "dim ", d,
         ": the box ends behind the buffer '", name(r.buffer), "'");
  }
  if (!box.general) return;
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

void Binder::written(const SymbolicBuffer& box, Site& site, std::vector<std::string>& names) {
  if (names.empty())
    for (const SymbolicDim& d : box.dims) site.counted.push_back(registers_.value(d.extent));
  names.push_back(name(box.root));
  for (const SymbolicDim& d : box.dims)
    if (!prove_le(1, d.extent, scope_.assumptions())) site.extents.push_back(registers_.value(d.extent));
}

}  // namespace tenon::program::detail
