#include <algorithm>
#include <bit>

#include <tenon/program/ir/verify_internal.hpp>

namespace tenon::program::detail {

Result<void> Verifier::check_dims(const std::vector<Dim>& dims) const {
  for (size_t d = 0; d < dims.size(); ++d) {
    TENON_OK(check_expr(dims[d].min));
    TENON_OK(check_expr(dims[d].extent));
    if (dims[d].stride) TENON_OK(check_expr(*dims[d].stride));
    if (dims[d].fold) TENON_OK(check_expr(*dims[d].fold));
    if (prove_lt(scope_.resolve(dims[d].extent), 0, scope_.assumptions()))
      return wrong("dim ", d, " has the extent ", dims[d].extent, ", which is negative");
  }
  return {};
}

Result<void> Verifier::check_allocation(const Allocation& a) {
  TENON_OK(check_new(a.buffer, a.dims.size()));
  TENON_OK(check_dims(a.dims));
  TENON_OK(check_expr(a.slots));
  if (a.align_bytes < 0 || (a.align_bytes != 0 && !std::has_single_bit(static_cast<uint64_t>(a.align_bytes))))
    return wrong("'", name(a.buffer), "' is aligned to ", a.align_bytes, " bytes, which is no power of two");
  if (prove_lt(scope_.resolve(a.slots), 1, scope_.assumptions()))
    return wrong("'", name(a.buffer), "' has ", a.slots, " slots, at least 1 is needed");
  written_[static_cast<size_t>(a.buffer)] = false;
  loops_at_[a.buffer] = loops_;
  return {};
}

Result<void> Verifier::check(const Allocate& s) {
  const Allocation& a = s.allocation;
  TENON_OK(check_allocation(a));
  TENON_OK(with_buffer(a.buffer, scope_.allocation(a), s.body));
  freed_.erase(a.buffer);
  loops_at_.erase(a.buffer);
  return {};
}

Result<void> Verifier::check(const Free& s) {
  TENON_OK(visible(s.buffer));
  const auto at = loops_at_.find(s.buffer);
  if (at == loops_at_.end()) return wrong("'", name(s.buffer), "' is no allocation around this statement");
  if (at->second != loops_)
    return wrong("'", name(s.buffer), "' is freed inside of a loop that does not hold its allocation");
  freed_.insert(s.buffer);
  return {};
}

Result<void> Verifier::check(const Crop& s) {
  TENON_OK(check_view(s.buffer, s.source, s.box.size()));
  TENON_OK(check_rank(s.source, s.box.size()));
  return with_buffer(s.buffer, scope_.crop(s), s.body);
}

Result<void> Verifier::check(const Slice& s) {
  const auto left = std::count(s.at.begin(), s.at.end(), std::nullopt);
  TENON_OK(check_view(s.buffer, s.source, static_cast<size_t>(left)));
  TENON_OK(check_rank(s.source, s.at.size()));
  return with_buffer(s.buffer, scope_.slice(s), s.body);
}

Result<void> Verifier::check(const Transpose& s) {
  TENON_OK(check_view(s.buffer, s.source, s.order.size()));
  for (const int d : s.order)
    if (d < 0 || d >= buffer(s.source).rank)
      return wrong("dim ", d, " of '", name(s.source), "' does not exist: it has rank ", buffer(s.source).rank);
  return with_buffer(s.buffer, scope_.transpose(s), s.body);
}

Result<void> Verifier::check(const View& s) {
  TENON_OK(visible(s.source));
  TENON_OK(check_new(s.buffer, s.dims.size()));
  TENON_OK(check_dims(s.dims));
  return with_buffer(s.buffer, scope_.view(s), s.body);
}

Result<void> Verifier::check(const Call& s) {
  if (s.kernel == nullptr || s.kernel->run == nullptr) return wrong("a call has no kernel");
  for (size_t i = 0; i < s.operands.size(); ++i)
    if (s.operands[i].access != Access::out) TENON_OK(check_read(s.operands[i].region), "operand ", i);
  for (size_t i = 0; i < s.operands.size(); ++i)
    if (s.operands[i].access != Access::in) TENON_OK(check_write(s.operands[i].region), "operand ", i);
  return {};
}

Result<void> Verifier::check(const Copy& s) {
  TENON_OK(check_expr(s.predicate));
  TENON_OK(check_read(s.source), "the source");
  const Region* padding = std::get_if<Region>(&s.padding);
  if (padding) TENON_OK(check_read(*padding), "the padding");
  TENON_OK(check_write(s.destination), "the destination");
  TENON_OK(check_map(s));
  const ElementType element = buffer(s.destination.buffer).element;
  for (const Region* r : {&s.source, padding})
    if (r && buffer(r->buffer).element != element)
      return wrong("the destination has elements of ", element, ", '", name(r->buffer), "' of ",
                   buffer(r->buffer).element);
  if (const auto* bytes = std::get_if<Copy::Element>(&s.padding);
      bytes && bytes->size() * 8 != static_cast<size_t>(element.bits()))
    return wrong("the padding has ", bytes->size(), " bytes, an element of ", element, " has ", element.bits() / 8);
  if (padding && buffer(padding->buffer).rank != 0 && buffer(padding->buffer).rank != buffer(s.destination.buffer).rank)
    return wrong("the padding '", name(padding->buffer), "' has rank ", buffer(padding->buffer).rank, ": 0 or ",
                 buffer(s.destination.buffer).rank, " are possible");
  return {};
}

Result<void> Verifier::check_map(const Copy& s) {
  if (s.indices.size() != static_cast<size_t>(buffer(s.destination.buffer).rank))
    return wrong("the destination has rank ", buffer(s.destination.buffer).rank, ", ", s.indices.size(),
                 " indices are named");
  if (s.map.size() != static_cast<size_t>(buffer(s.source.buffer).rank))
    return wrong("the source has rank ", buffer(s.source.buffer).rank, ", the map has ", s.map.size(), " expressions");
  for (const std::string& index : s.indices) {
    TENON_OK(check_symbol(index));
    scope_.define(index, Expr::symbol(index));
  }
  for (const Expr& e : s.map) TENON_OK(check_expr(e));
  for (const std::string& index : s.indices) scope_.erase(index);
  return {};
}

Result<void> Verifier::check(const Prefetch& s) {
  if (s.access == Access::inout) return wrong("a prefetch says in or out: will the box be read or written first?");
  if (s.part < 0 || s.part >= s.parts || s.parts > kMostParts)
    return wrong("part ", s.part, " of ", s.parts, ": parts are numbered from 0, and there are at most ", kMostParts);
  TENON_OK(check_box(s.region));
  return {};
}

}  // namespace tenon::program::detail
