#include <algorithm>

#include <tenon/program/pipeline/emit_internal.hpp>

namespace tenon::program::detail {

View Emitter::moving_view(int b) {
  const BufferSpec& spec = plan_.buffer_spec(b);
  const Storage& storage = plan_.buffer(b).storage;
  View view{id(b), memory_.at(b), 0, {}, {}};
  const std::string memory = program_.buffer(view.source).name;
  for (int d = 0; d < spec.rank; ++d) {
    const size_t i = static_cast<size_t>(d);
    Dim dim{here(storage.box[i].first), here(extent(storage.box[i])), stride_of(memory, d), {}};
    if (d == storage.ring_dim) dim.fold = storage.ring;
    if (storage.linear && d == storage.linear->dim) {
      dim.min = here(storage.linear->anchor);
      dim.extent = storage.linear->extent;
      view.offset = place_of_window(b) * stride_of(memory, d);
    }
    view.dims.push_back(std::move(dim));
  }
  return view;
}

Statement Emitter::begin_of_period(int b, const std::vector<Window>& written) {
  const LinearWindow& w = *plan_.buffer(b).storage.linear;
  const BufferId memory = memory_.at(b);
  Copy copy{{memory, {}}, {memory, {}}, {}, {}, {}, 1, str("window ", plan_.buffer_spec(b).name)};
  for (int d = 0; d < plan_.buffer_spec(b).rank; ++d) {
    const Window& here_written = written[static_cast<size_t>(d)];
    const bool along = d == w.dim;
    const Expr from =
        along ? here(w.anchor) - place_of_window(b) : here(plan_.buffer(b).storage.box[static_cast<size_t>(d)].first);
    Range range{here(here_written.first) - from, here(here_written.last) - here(here_written.first) + 1};
    if (along) range = {max(range.min, w.period), range.min + range.extent - max(range.min, w.period)};
    copy.source.box.push_back(range);
    if (along) range.min = range.min - w.period;
    copy.destination.box.push_back(range);
    copy.indices.push_back(str("place", d));
    copy.map.push_back(Expr::symbol(copy.indices.back()) + (along ? w.period : Expr(0)));
  }
  return copy;
}

View Emitter::alias_view(int b) {
  const Alias& alias = *plan_.buffer(b).alias;
  const BufferPlan& buffer = plan_.buffer(b);
  const std::vector<Window> box =
      write_box(plan_, buffer.producer, buffer.write, computed_box(plan_, buffer.producer, level(b), Iteration::any));
  const std::string parent = visible_name(alias.of);
  Substitution at_first, at_zero;
  for (size_t d = 0; d < box.size(); ++d) {
    at_first[std::string(alias_index(static_cast<int>(d)).name())] = here(box[d].first);
    at_zero[std::string(alias_index(static_cast<int>(d)).name())] = 0;
  }
  View view{id(b), id(alias.of), 0, {}, {}};
  std::vector<Expr> strides(box.size(), Expr(0));
  std::vector<int> rings(box.size(), -1);  // per dim of the view: the dim of the ring buffer
  for (size_t j = 0; j < alias.map.size(); ++j) {
    const Expr map = here(alias.map[j]);
    const int dim = static_cast<int>(j);
    const Expr stride = stride_of(parent, dim);
    const bool ring = is_ring(alias.of, dim);
    // A ring buffer is seen as a whole: a view with fewer indices would not be a ring, and would have other positions.
    if (!ring) view.offset += (map.substitute(at_first) - min_of(parent, dim)) * stride;
    for (size_t d = 0; d < box.size(); ++d) {
      Substitution at_one = at_zero;
      at_one[std::string(alias_index(static_cast<int>(d)).name())] = 1;
      const Expr steps = map.substitute(at_one) - map.substitute(at_zero);
      strides[d] += steps * stride;
      if (ring && !steps.is_constant(0)) rings[d] = dim;
    }
  }
  for (size_t d = 0; d < box.size(); ++d) {
    if (rings[d] < 0)
      view.dims.push_back({here(box[d].first), here(extent(box[d])), strides[d], {}});
    else
      view.dims.push_back(
          {min_of(parent, rings[d]), extent_of(parent, rings[d]), strides[d], fold_of(parent, rings[d])});
  }
  return view;
}

bool Emitter::is_ring(int b, int dim) const {
  if (plan_.is_declared(b)) return false;
  const BufferPlan& buffer = plan_.buffer(b);
  if (!buffer.alias) return buffer.storage.ring_dim == dim;
  for (size_t j = 0; j < buffer.alias->map.size(); ++j)
    if (buffer.alias->map[j] == alias_index(dim) && is_ring(buffer.alias->of, static_cast<int>(j))) return true;
  return false;
}

Statement Emitter::wrapped(const Shown& what, Statement body) {
  if (const View* v = std::get_if<View>(&what)) {
    View view = *v;
    view.body = std::move(body);
    return view;
  }
  return Allocate{std::get<Allocation>(what), std::move(body)};
}

std::vector<Shown> Emitter::views_at(const Path& path) {
  std::vector<Shown> out;
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
    if (has_memory(b) && moves(b) && level_path(b) == path) out.emplace_back(moving_view(b));
  for (const int b : aliases_in_order())
    if (level_path(b) == path) out.emplace_back(alias_view(b));
  return out;
}

std::vector<int> Emitter::aliases_in_order() const {
  std::vector<std::pair<int, int>> found;
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) {
    const BufferPlan& buffer = plan_.buffer(b);
    if (!buffer.alias || buffer.alias->same() || buffer.producer < 0 || !plan_.stage(buffer.producer).needed) continue;
    int depth = 0;
    for (int a = b; plan_.buffer(a).alias; a = plan_.buffer(a).alias->of) ++depth;
    found.emplace_back(depth, b);
  }
  std::ranges::sort(found);
  std::vector<int> out;
  for (const auto& [depth, b] : found) out.push_back(b);
  return out;
}

}  // namespace tenon::program::detail
