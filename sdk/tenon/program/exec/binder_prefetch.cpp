// The code of hints. They do not count as uses of memory: where memory is reused, lines of other values are fetched,
// which does no harm.
#include <algorithm>
#include <ranges>

#include <tenon/program/exec/binder_internal.hpp>
#include <tenon/program/exec/prefetch_internal.hpp>

namespace tenon::program::detail {

namespace {

// Hints with more lines, or more stretches of them, do not become separate instructions.
constexpr uint64_t kMostLines = 4096;
constexpr size_t kMostStretches = 8;

// Contiguous lines, repeated at a stride.
struct Stretch {
  int64_t offset = 0;  // bytes
  int32_t lines = 0;
  int32_t rows = 1;
  int64_t stride = 0;  // bytes

  bool is_followed_by(const Stretch& next) const {
    return next.lines == lines && (rows == 1 || next.offset == offset + rows * stride);
  }
};

// Merges sequences of equal stretches.
void add_rows(const std::vector<Stretch>& stretches, std::vector<Stretch>& out) {
  for (const Stretch& next : stretches) {
    if (out.empty() || !out.back().is_followed_by(next)) {
      out.push_back(next);
      continue;
    }
    Stretch& last = out.back();
    if (last.rows == 1) last.stride = next.offset - last.offset;
    ++last.rows;
  }
}

// The portion as stretches of lines relative to the base; none: too many.
std::optional<std::vector<Stretch>> stretches(std::vector<LineDim> dims, const Prefetch& s, uint64_t element_bytes) {
  uint64_t bytes = element_bytes;
  for (const LineDim& d : dims)
    if (d.extent == 0 || __builtin_mul_overflow(bytes, d.extent, &bytes)) return {};
  if (bytes / static_cast<uint64_t>(s.parts) > kMostLines * kLineBytes) return {};
  std::vector<Stretch> out;
  for_each_line(0, dims, element_bytes, static_cast<uint64_t>(s.part), static_cast<uint64_t>(s.parts),
                [&out](uint64_t line) {
                  const auto at = static_cast<int64_t>(line);
                  if (!out.empty() && at == out.back().offset + out.back().lines * static_cast<int64_t>(kLineBytes))
                    ++out.back().lines;
                  else
                    out.push_back({at, 1});
                });
  std::vector<Stretch> rows;
  add_rows(out, rows);
  if (rows.size() > kMostStretches) return {};
  return rows;
}

}  // namespace

Result<void> Binder::emit(const Prefetch& s) {
  const SymbolicBuffer& has = *scope_.find(s.region.buffer);
  if (!std::ranges::all_of(has.dims, is_unfolded)) return {};  // ring buffers are not prefetched
  const auto element_bytes = program_.buffer(s.region.buffer).element.bits() / 8;
  // Where nothing is left after cropping, the condition is known to be false at bind time.
  const auto is_empty = [](const Expr& extent) { return extent.is_constant() && extent.constant() <= 0; };
  if (std::ranges::any_of(s.region.box, [&](const Range& r) { return is_empty(resolved(r.extent)); }))
    return {};
  const Box box = scope_.cropped(s.region);
  if (std::ranges::any_of(box, [&](const Range& r) { return is_empty(r.extent); })) return {};
  Expr base = address_of(has);
  std::vector<LineDim> dims;
  for (size_t d = 0; d < box.size(); ++d) {
    const Expr stride = scope_.simplified(has.dims[d].stride);
    base += (box[d].min - has.dims[d].min) * stride;
    if (box[d].extent.is_constant() && stride.is_constant())
      dims.push_back({static_cast<uint64_t>(box[d].extent.constant()), stride.constant()});
  }
  if (dims.size() == box.size())
    if (const auto lines = stretches(std::move(dims), s, static_cast<uint64_t>(element_bytes))) {
      const Value at = registers_.value(scope_.simplified(base));
      for (const Stretch& stretch : *lines) {
        Instr instr{s.access == Access::out ? Op::write_soon : Op::read_soon};
        instr.a = at;
        instr.number = stretch.offset;
        instr.last = stretch.lines;
        instr.first = stretch.rows;
        instr.b.number = stretch.stride;
        body().push_back(instr);
      }
      return {};
    }
  return emit_in_general(s, has, element_bytes);
}

Result<void> Binder::emit_in_general(const Prefetch& s, const SymbolicBuffer& has, int64_t element_bytes) {
  PrefetchCode made{.base = registers_.value(address_of(has)),
                    .element_bytes = element_bytes,
                    .part = s.part,
                    .parts = s.parts,
                    .writes = s.access == Access::out};
  for (size_t d = 0; d < has.dims.size(); ++d) {
    const SymbolicDim& dim = has.dims[d];
    const Range range = s.region.box.empty() ? Range{dim.min, dim.extent} : s.region.box[d];
    made.dims.push_back({registers_.value(resolved(range.min)), registers_.value(resolved(range.extent)),
                         registers_.value(dim.min), registers_.value(dim.extent),
                         registers_.value(scope_.simplified(dim.stride))});
  }
  Instr instr{Op::prefetch};
  instr.index = static_cast<int32_t>(code().prefetches.size());
  code().prefetches.push_back(std::move(made));
  body().push_back(instr);
  return {};
}

}  // namespace tenon::program::detail
