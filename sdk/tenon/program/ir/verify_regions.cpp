#include <tenon/program/ir/labels.hpp>
#include <tenon/program/ir/verify_internal.hpp>

namespace tenon::program::detail {

Result<void> Verifier::check_id(BufferId id) const {
  if (id < 0 || static_cast<size_t>(id) >= program_.buffers.size())
    return wrong("buffer number ", id, " does not exist: there are ", program_.buffers.size());
  return {};
}

Result<const SymbolicBuffer*> Verifier::visible(BufferId id) const {
  TENON_OK(check_id(id));
  const SymbolicBuffer* found = scope_.find(id);
  if (found == nullptr)
    return wrong("buffer '", name(id), "' is not visible here",
                 ever_defined_.contains(id) ? ": it is used after its end" : "");
  if (freed_.contains(found->root))
    return wrong("buffer '", name(id), "' is used after the free of '", name(found->root), "'");
  return found;
}

Result<void> Verifier::check_expr(const Expr& e) const {
  for (const std::string& symbol : e.symbols()) {
    if (const auto meta = parse_meta(symbol)) {
      const auto id = program_.find_buffer(meta->buffer);
      if (!id) return wrong("the symbol ", symbol, ": no buffer is called '", meta->buffer, "'");
      TENON_OK(visible(*id), "the symbol ", symbol);
    }
    if (!scope_.first_unknown(Expr::symbol(symbol)).empty()) return wrong("the symbol ", symbol, " is not known here");
  }
  return {};
}

Result<void> Verifier::check_new(BufferId id, size_t rank) const {
  TENON_OK(check_id(id));
  if (buffer(id).role != Role::local) return wrong("'", name(id), "' is declared, and cannot be made by a statement");
  if (scope_.find(id) != nullptr) return wrong("buffer '", name(id), "' is made again where it is visible");
  return check_rank(id, rank);
}

Result<void> Verifier::check_rank(BufferId id, size_t rank) const {
  if (rank == static_cast<size_t>(buffer(id).rank)) return {};
  return wrong("buffer '", name(id), "' has rank ", buffer(id).rank, ", the statement gives it ", rank, " dims");
}

Result<void> Verifier::check_view(BufferId id, BufferId source, size_t rank) const {
  TENON_OK(visible(source));
  if (id != source) {
    TENON_OK(check_new(id, rank));
  } else {
    TENON_OK(check_rank(id, rank));
  }
  if (buffer(id).element != buffer(source).element)
    return wrong("'", name(id), "' has elements of ", buffer(id).element, ", its source '", name(source), "' of ",
                 buffer(source).element);
  return {};
}

Result<const SymbolicBuffer*> Verifier::check_box(const Region& r) const {
  TENON_TRY(found, visible(r.buffer));
  if (r.box.empty()) return found;
  if (r.box.size() != found->dims.size())
    return wrong("the box of '", name(r.buffer), "' has ", r.box.size(), " ranges, the buffer has rank ",
                 found->dims.size());
  for (const Range& range : r.box) {
    TENON_OK(check_expr(range.min));
    TENON_OK(check_expr(range.extent));
  }
  return found;
}

Result<void> Verifier::check_region(const Region& r) {
  TENON_TRY(found, check_box(r));
  return r.box.empty() ? Result<void>() : check_bounds(r, *found);
}

Result<void> Verifier::check_bounds(const Region& r, const SymbolicBuffer& found) {
  std::vector<SymbolicDim> box;
  for (const Range& range : r.box) {
    box.push_back({scope_.resolve(range.min), scope_.resolve(range.extent), 0, 0});
    if (!prove_le(1, box.back().extent, scope_.assumptions())) return {};
  }
  for (size_t d = 0; d < box.size(); ++d) {
    const SymbolicDim& has = found.dims[d];
    const Expr end = box[d].min + box[d].extent, limit = has.min + has.extent;
    if (prove_lt(box[d].min, has.min, scope_.assumptions()) || prove_lt(limit, end, scope_.assumptions()))
      return wrong("dim ", d, " of the box leaves '", name(r.buffer), "': it has indices from ", box[d].min,
                   " to before ", end, ", the buffer from ", has.min, " to before ", limit);
  }
  return {};
}

Result<void> Verifier::check_read(const Region& r) {
  TENON_OK(check_region(r));
  const BufferId root = scope_.find(r.buffer)->root;
  if (written_[static_cast<size_t>(root)] || coming_.contains(root)) return {};
  return wrong("'", name(r.buffer), "' is read", r.buffer == root ? "" : ", which is '" + name(root) + "'",
               ", and nothing has written it before");
}

Result<void> Verifier::check_write(const Region& r) {
  TENON_OK(check_region(r));
  const BufferId root = scope_.find(r.buffer)->root;
  const Role role = buffer(root).role;
  if (role == Role::input || role == Role::constant)
    return wrong("'", name(r.buffer), "' is written", r.buffer == root ? "" : ", which is '" + name(root) + "'", ", ",
                 role == Role::input ? "an input" : "a constant");
  written_[static_cast<size_t>(root)] = true;
  return {};
}

}  // namespace tenon::program::detail
