// Boxes of stages and buffers, as expressions over the enclosing loops.
#include <tenon/program/pipeline/plan_internal.hpp>

namespace tenon::program {

Window lifted(const Plan& plan, Window w, const Path& path, size_t depth) {
  for (size_t i = path.size(); i > depth; --i) {
    const LoopPlan& loop = plan.loop(path[i - 1]);
    if (depends_on_loop(plan, w, path[i - 1]))
      w = substituted(w, {{loop.lo, loop.range.first}, {loop.hi, loop.range.last}});
  }
  return w;
}

bool depends_on_loop(const Plan& plan, const Window& w, int loop) {
  const LoopPlan& l = plan.loop(loop);
  for (const Expr* e : {&w.first, &w.last})
    if (depends_on(*e, l.lo) || depends_on(*e, l.hi)) return true;
  return false;
}

std::vector<Window> index_box(const Plan& plan, int s, size_t depth) {
  const StagePlan& stage = plan.stage(s);
  std::vector<Window> box = stage.required;
  if (depth < stage.location.size()) {
    for (Window& w : box) w = lifted(plan, w, stage.location, depth);
    return box;
  }
  for (size_t i = 0; i < stage.own.size() && stage.location.size() + i < depth; ++i) {
    const LoopPlan& loop = plan.loop(stage.own[i]);
    box[static_cast<size_t>(loop.index)] = {Expr::symbol(loop.lo), Expr::symbol(loop.hi)};
  }
  return box;
}

namespace {

// The indices of the stage from the perspective of the read.
SymbolWindows windows_of_indices(const Plan& plan, const Use& use, const std::vector<Window>& indices) {
  const StageSpec& spec = plan.spec(use.stage);
  const StagePlan& stage = plan.stage(use.stage);
  SymbolWindows symbols;
  symbols.reserve(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) symbols.emplace_back(stage.indices[i], indices[i]);
  if (spec.is_copy() && use.read != spec.padding_read)
    if (const CopyPart& part = spec.parts[static_cast<size_t>(use.read)]; part.part) {
      const int index = stage.index_of(spec.writes[0].indices[static_cast<size_t>(part.part_dim)]);
      Window& w = symbols[static_cast<size_t>(index)].second;
      w = intersected(w, *part.part);
    }
  return symbols;
}

}  // namespace

std::vector<Window> read_box(const Plan& plan, const Use& use, const std::vector<Window>& indices) {
  const SymbolWindows symbols = windows_of_indices(plan, use, indices);
  std::vector<Window> box;
  for (const Window& w : plan.spec(use.stage).reads[static_cast<size_t>(use.read)].windows)
    box.push_back(image(w, symbols));
  return box;
}

Expr first_read(const Plan& plan, const Use& use, const std::vector<Window>& indices, size_t dim) {
  return first_of_image(plan.spec(use.stage).reads[static_cast<size_t>(use.read)].windows[dim],
                        windows_of_indices(plan, use, indices));
}

Window with_known_bounds(const Plan& plan, Window w) {
  // Bounds may be defined by other bounds; such a chain is finite.
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Window next = substituted(w, plan.known_bounds);
    if (next == w) break;
    w = next;
  }
  return w;
}

std::vector<Window> write_box(const Plan& plan, int s, int write, const std::vector<Window>& indices) {
  std::vector<Window> box;
  for (const std::string& index : plan.spec(s).writes[static_cast<size_t>(write)].indices)
    box.push_back(indices[static_cast<size_t>(plan.stage(s).index_of(index))]);
  return box;
}

std::vector<Window> whole_box(const Plan& plan, int buffer) {
  const BufferPlan& b = plan.buffer(buffer);
  const BufferSpec& spec = plan.buffer_spec(buffer);
  if (b.role == Role::local) return write_box(plan, b.producer, b.write, index_box(plan, b.producer, 0));
  std::vector<Window> box;
  for (int d = 0; d < spec.rank; ++d)
    box.push_back(with_known_bounds(plan, {min_of(spec.name, d), max_of(spec.name, d)}));
  return box;
}

}  // namespace tenon::program
