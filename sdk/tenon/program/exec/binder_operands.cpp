// The operands of calls and copies: addresses, views in the frame, and conditions on boxes.
#include <algorithm>

#include <tenon/program/exec/binder_internal.hpp>
#include <tenon/support/hash.hpp>

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

size_t DimsHash::operator()(const std::vector<SymbolicDim>& dims) const {
  uint64_t hash = dims.size();
  for (const SymbolicDim& d : dims)
    for (const Expr* e : {&d.min, &d.extent, &d.stride, &d.fold}) hash = hash_mix(hash, e->hash());
  return hash;
}

Place Binder::new_dims(const std::vector<SymbolicDim>& dims) {
  const Place place = registers_.new_words(dims.size() * (sizeof(DimView) / sizeof(int64_t)));
  for (size_t d = 0; d < dims.size(); ++d) {
    const Place at = place + static_cast<Place>(d * sizeof(DimView));
    registers_.into(dims[d].min, at);
    registers_.into(dims[d].extent, at + kWord);
    registers_.into(dims[d].stride, at + 2 * kWord);
    registers_.into(dims[d].fold, at + 3 * kWord);
  }
  return place;
}

Place Binder::shared_dims(const std::vector<SymbolicDim>& dims) {
  for (const auto& level : dims_known_)
    if (const auto known = level.find(dims); known != level.end()) return known->second;
  return dims_known_.back()[dims] = new_dims(dims);
}

OperandCode Binder::operand(const SymbolicBuffer& box, ElementType element, Place view, Site& site,
                            const Label& label) {
  use(box.root);
  const bool takes_rings = !site.call || site.call->kernel->takes_folded;
  SymbolicBuffer seen = box;  // by the kernel
  std::vector<size_t> in_run;
  for (size_t d = 0; d < box.dims.size(); ++d) {
    SymbolicDim& dim = seen.dims[d];
    dim.stride = scope_.simplified(dim.stride);
    if (is_unfolded(dim)) continue;
    const Expr place = scope_.place_in_ring(dim.min, dim.fold);
    if (dim.fold.is_constant() && prove_le(place + dim.extent, dim.fold, scope_.assumptions())) {
      seen.offset += place * dim.stride;  // it never wraps around
    } else if (dim.fold.is_constant() && takes_rings && prove_lt(dim.fold, place + dim.extent, scope_.assumptions())) {
      continue;  // it always does
    } else {
      in_run.push_back(d);
    }
    dim.fold = 0;
  }
  const Place dims = in_run.empty() ? shared_dims(seen.dims) : new_dims(seen.dims);
  code().views.push_back({view, dims, static_cast<int32_t>(box.dims.size()), element});
  if (in_run.empty()) {
    set_base(seen, view);
    return {view, {}, {}};
  }
  const Expr address = address_of(seen);
  RingView rings{view, registers_.value(address), {}};
  size_t level = registers_.level_of(address);
  for (const size_t d : in_run) {
    const Expr &places = box.dims[d].fold, first = scope_.place_in_ring(box.dims[d].min, places);
    rings.folds.push_back({dims + static_cast<Place>(d * sizeof(DimView)), registers_.value(first),
                           registers_.value(places), registers_.value(seen.dims[d].stride),
                           registers_.value(seen.dims[d].extent)});
    for (const Expr& e : {first, seen.dims[d].extent, places, seen.dims[d].stride})
      level = std::max(level, registers_.level_of(e));
  }
  if (!takes_rings) return {view, std::move(rings), label()};
  Instr instr{Op::ring};
  instr.index = static_cast<int32_t>(code().rings.size());
  code().rings.push_back(std::move(rings));
  registers_.set_at_begin(std::move(instr), level);
  return {view, {}, {}};
}

// Evaluated in numbers, which suffices for most views of graphs.
bool Binder::lies_within_its_root(const SymbolicBuffer& box, ElementType element) {
  const SymbolicSpread spread = spread_of(box.dims, element);
  const MemoryRoot& root = root_of(box);
  const Expr begin = scope_.simplified(box.offset - spread.base);
  if (!begin.is_constant() || !spread.bytes.is_constant()) return false;
  return prove_not_negative(begin - root.low) && prove_not_negative(root.high - begin - spread.bytes);
}

void Binder::guard(const Region& r, const SymbolicBuffer& box, const Label& label, Site& site) {
  if (r.box.empty() && !box.general) return;  // a whole buffer, where it was allocated
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
