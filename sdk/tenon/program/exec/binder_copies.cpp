// The code of copies: moves of boxes where possible, else plans that process each row.
#include <functional>

#include <tenon/program/exec/binder_internal.hpp>
#include <tenon/program/ir/labels.hpp>

namespace tenon::program::detail {

Binder::CopiedBoxes Binder::boxes_of(const Copy& s, Site& site) {
  CopiedBoxes boxes;
  const auto add = [&](const Region& region, const char* name) {
    const SymbolicBuffer& box = box_of(region, boxes.made.emplace_back());
    guard(
        region, box, [name] { return std::string(name); }, site);
    boxes.boxes.push_back({&box, name});
  };
  boxes.made.reserve(3);
  add(s.destination, "the destination");
  written(*boxes.boxes[0].box, site);
  add(s.source, "the source");
  if (const auto* padding = std::get_if<Region>(&s.padding)) add(*padding, "the padding");
  return boxes;
}

Result<void> Binder::emit(const Copy& s) {
  if (may_be_left_out() && does_nothing(s.predicate, scope_.region(s.destination))) return {};
  Site site;
  site.copy = &s;
  const CopiedBoxes boxes = boxes_of(s, site);
  const bool is_plain = site.extents.empty() && site.guards.empty() && resolved(s.predicate).is_constant(1) &&
                        !options_.statistics;
  if (!is_plain || !move_copy(boxes, site)) TENON_OK(plan_copy(boxes, site));
  push_site(Op::copy, std::move(site), s.predicate);
  return {};
}

bool Binder::move_copy(const CopiedBoxes& boxes, Site& site) {
  const Copy& s = *site.copy;
  const SymbolicBuffer* const padding = boxes.boxes.size() > 2 ? boxes.boxes[2].box : nullptr;
  const ElementType element = program_.buffer(s.destination.buffer).element;
  auto moves = moves_of(s, element, {*boxes.boxes[0].box, *boxes.boxes[1].box, padding}, scope_);
  if (!moves) return false;
  const bool runs = is_run(moves->moves);
  site.plain = runs ? &move_run : &move_boxes;
  site.context = registers_.new_words(sizeof(CallContext) / sizeof(int64_t));
  const Place words = registers_.new_words(kMoveWords);
  const auto set_address = [&](size_t i, const Expr& bytes, size_t word) {
    SymbolicBuffer at{boxes.boxes[i].box->root, boxes.boxes[i].box->offset + bytes, {}, false};
    use(at.root);
    set_base(at, words + static_cast<Place>(word) * kWord);
  };
  set_address(0, moves->to, kMoveTo);
  set_address(1, moves->source, kMoveSource);
  if (padding) set_address(2, moves->padding, kMovePadding);
  int64_t how = 0;
  if (runs) {
    how = moves->moves.moves[0].run_bytes;
  } else {
    code().moves.push_back(std::make_unique<const BoxMoves>(std::move(moves->moves)));
    how = static_cast<int64_t>(reinterpret_cast<uintptr_t>(code().moves.back().get()));
  }
  registers_.into(how, words + kMoveHow * kWord);
  code().contexts.push_back(
      {.context = site.context, .views = words, .scalars = words, .scalar_count = int32_t{kMoveWords}});
  return true;
}

Result<void> Binder::plan_copy(const CopiedBoxes& boxes, Site& site) {
  const Copy& s = *site.copy;
  const ElementType element = program_.buffer(s.destination.buffer).element;
  TENON_TRY(plan, CopyPlan::make(s, element), "copy '", stage_of(s), "'");
  for (const auto& [box, name] : boxes.boxes) {
    const Place view = registers_.new_words(sizeof(BufferView) / sizeof(int64_t));
    site.operands.push_back(operand(*box, element, view, site, [name = name] { return std::string(name); }));
  }
  site.parameters = registers_.new_words(plan.parameters().size());
  for (size_t i = 0; i < plan.parameters().size(); ++i)
    registers_.into(resolved(Expr::symbol(plan.parameters()[i])), site.parameters + static_cast<Place>(i) * kWord);
  site.plan = std::make_unique<const CopyPlan>(std::move(plan));
  return {};
}

}  // namespace tenon::program::detail
