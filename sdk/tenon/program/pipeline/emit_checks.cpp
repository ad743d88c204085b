#include <algorithm>

#include <tenon/program/pipeline/emit_internal.hpp>

namespace tenon::program::detail {

std::vector<Statement> Emitter::checks() {
  std::vector<Statement> out(plan_.checks.begin(), plan_.checks.end());
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) {
    if (!plan_.is_declared(b) || ids_[static_cast<size_t>(b)] < 0) continue;
    const BufferSpec& spec = plan_.buffer_spec(b);
    for (int d = 0; d < spec.rank; ++d) {
      check_covered(b, d, out);
      const BufferSpec::DimSpec& dim = spec.dims[static_cast<size_t>(d)];
      const auto require = [&](const Expr& a, const Expr& e, std::string_view what) {
        out.push_back(Check{equal(a, e), str(what, " of dim ", d, " of '", spec.name, "' must be ", e.to_string())});
      };
      if (dim.stride) require(stride_of(spec.name, d), *dim.stride, "the stride");
      if (dim.alignment > 1) {
        require(mod(min_of(spec.name, d), dim.alignment), 0, str("the min modulo ", dim.alignment));
        require(mod(extent_of(spec.name, d), dim.alignment), 0, str("the extent modulo ", dim.alignment));
      }
      if (dim.bounds) require(min_of(spec.name, d), dim.bounds->first, "the min");
      if (dim.bounds) require(max_of(spec.name, d), dim.bounds->last, "the last index");
    }
  }
  return out;
}

void Emitter::check_covered(int b, int d, std::vector<Statement>& out) {
  const BufferPlan& buffer = plan_.buffer(b);
  const std::string& name = plan_.buffer_spec(b).name;
  std::optional<Window> read;
  for (const Use& use : buffer.uses) {
    const Window w = read_box(plan_, use, index_box(plan_, use.stage, 0))[static_cast<size_t>(d)];
    read = read ? united(*read, w) : w;
  }
  if (!read) return;
  const Expr inside = less_equal(min_of(name, d), read->first) * less_equal(read->last, max_of(name, d));
  const Expr condition = select(less(read->last, read->first), 1, inside);
  if (condition.is_constant(1)) return;
  out.push_back(Check{condition, str("'", name, "' is read from ", read->first.to_string(), " to ",
                                     read->last.to_string(), " in dim ", d, ", beyond its bounds")});
}

}  // namespace tenon::program::detail
