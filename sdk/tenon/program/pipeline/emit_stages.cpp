#include <algorithm>

#include <tenon/program/pipeline/emit_internal.hpp>

namespace tenon::program::detail {

Statement Emitter::stage(int s) {
  if (plan_.stage(s).is_view) return {};
  const StagePlan& stage = plan_.stage(s);
  std::vector<Window> indices = computed_box(plan_, s, stage.body().size(), Iteration::any);
  std::vector<std::pair<std::string, Expr>> lets;
  for (size_t i = 0; i < indices.size(); ++i) {
    name(indices[i].first, str(stage.indices[i], "_", s, "_first"), lets);
    name(indices[i].last, str(stage.indices[i], "_", s, "_last"), lets);
  }
  std::vector<Statement> done{plan_.spec(s).is_copy() ? copies(s, indices) : call(s, indices)};
  for (int w = 0; w < static_cast<int>(plan_.spec(s).writes.size()); ++w)
    if (const int b = plan_.spec(s).writes[static_cast<size_t>(w)].buffer; plan_.buffer(b).storage.linear)
      done.push_back(begin_of_period(b, write_box(plan_, s, w, indices)));
  Statement out = Block{std::move(done)};
  for (size_t i = lets.size(); i-- > 0;) out = Let{lets[i].first, lets[i].second, std::move(out)};
  return out;
}

void Emitter::name(Expr& e, const std::string& as, std::vector<std::pair<std::string, Expr>>& lets, const Expr& value) {
  lets.emplace_back(as, value);
  e = Expr::symbol(as);
}

void Emitter::name(Expr& e, const std::string& as, std::vector<std::pair<std::string, Expr>>& lets) const {
  const Expr value = here(e);
  const bool simple =
      value.operands().empty() || (value.kind() == ExprKind::sum &&
                                   std::ranges::all_of(value.operands(), [](const Expr& t) { return t.is_symbol(); }));
  if (simple)
    e = value;
  else
    name(e, as, lets, value);
}

Statement Emitter::call(int s, const std::vector<Window>& indices) {
  const StageSpec& spec = plan_.spec(s);
  Call call{spec.kernel, {}, {}, 1, spec.name};
  for (int r = 0; r < static_cast<int>(spec.reads.size()); ++r)
    call.operands.push_back(
        {Access::in, {id(spec.reads[static_cast<size_t>(r)].buffer), box(read_box(plan_, {s, r}, indices))}});
  for (int w = 0; w < static_cast<int>(spec.writes.size()); ++w)
    call.operands.push_back(
        {Access::out, {id(spec.writes[static_cast<size_t>(w)].buffer), box(write_box(plan_, s, w, indices))}});
  for (const Expr& scalar : spec.scalars) call.scalars.push_back(with_bounds(scalar));
  return call;
}

Statement Emitter::copies(int s, const std::vector<Window>& indices) {
  const StageSpec& spec = plan_.spec(s);
  std::vector<Statement> out;
  for (int r = 0; r < static_cast<int>(spec.parts.size()); ++r) {
    const CopyPart& part = spec.parts[static_cast<size_t>(r)];
    const int source = spec.reads[static_cast<size_t>(r)].buffer;
    if (const auto& alias = plan_.buffer(source).alias;
        alias && alias->of == spec.writes[0].buffer && !spec.has_padding())
      continue;
    Copy copy;
    std::vector<Window> destination = write_box(plan_, s, 0, indices);
    for (size_t d = 0; d < destination.size(); ++d) {
      const Window all = destination[d];
      destination[d].last = select(plan_.one_place(spec.writes[0].buffer, d), min(all.first, all.last), all.last);
    }
    if (part.part) {
      Window& w = destination[static_cast<size_t>(part.part_dim)];
      w = intersected(w, with_known_bounds(plan_, *part.part));
    }
    copy.destination = {id(spec.writes[0].buffer), box(destination)};
    copy.source = {id(source), box(read_box(plan_, {s, r}, indices))};
    copy.indices = spec.writes[0].indices;
    for (const Expr& e : part.map) copy.map.push_back(with_bounds(e));
    if (!spec.padding.empty()) copy.padding = spec.padding;
    if (spec.padding_read >= 0)
      copy.padding = Region{id(spec.reads[static_cast<size_t>(spec.padding_read)].buffer),
                            box(read_box(plan_, {s, spec.padding_read}, indices))};
    copy.stage = spec.name;
    out.push_back(std::move(copy));
  }
  return Block{std::move(out)};
}

}  // namespace tenon::program::detail
