// Determines which stages are needed, their order, and along which indices copies repeat.
#include <algorithm>

#include <tenon/program/pipeline/plan_internal.hpp>

namespace tenon::program {

namespace {

// --- order ---

enum class Mark : uint8_t { none, open, done };

Result<void> visit_stage(Plan& plan, int stage, std::vector<Mark>& marks) {
  Mark& mark = marks[static_cast<size_t>(stage)];
  if (mark == Mark::done) return {};
  if (mark == Mark::open)
    return error(Code::invalid_argument, "stage '", plan.spec(stage).name, "' needs its own results");
  mark = Mark::open;
  for (const ReadSpec& read : plan.spec(stage).reads)
    if (const int producer = plan.buffer(read.buffer).producer; producer >= 0)
      TENON_OK(visit_stage(plan, producer, marks), "in what stage '", plan.spec(stage).name, "' reads");
  mark = Mark::done;
  plan.order.push_back(stage);
  return {};
}

Result<void> find_producers(Plan& plan) {
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) {
    const StageSpec& spec = plan.spec(s);
    if (spec.writes.empty()) return error(Code::invalid_argument, "stage '", spec.name, "' writes nothing");
    for (int w = 0; w < static_cast<int>(spec.writes.size()); ++w) {
      BufferPlan& b = plan.buffer(spec.writes[static_cast<size_t>(w)].buffer);
      const std::string& name = plan.buffer_spec(spec.writes[static_cast<size_t>(w)].buffer).name;
      if (b.producer >= 0)
        return error(Code::invalid_argument, "buffer '", name, "' is written by stages '", plan.spec(b.producer).name,
                     "' and '", spec.name, "'");
      if (b.role == Role::input || b.role == Role::constant)
        return error(Code::invalid_argument, "stage '", spec.name, "' writes ",
                     b.role == Role::input ? "input" : "constant", " '", name, "'");
      b.producer = s;
      b.write = w;
    }
  }
  return {};
}

Result<void> check_stage(const Plan& plan, int s) {
  const StageSpec& spec = plan.spec(s);
  const StagePlan& stage = plan.stage(s);
  for (const LoopOver& loop : spec.loops)
    if (stage.index_of(loop.index.name()) < 0)
      return error(Code::invalid_argument, "stage '", spec.name, "' loops over '", loop.index.name(),
                   "', which is no index of its results");
  for (const auto& [read, write] : spec.in_place)
    if (read < 0 || read >= static_cast<int>(spec.reads.size()) || write < 0 ||
        write >= static_cast<int>(spec.writes.size()))
      return error(Code::invalid_argument, "stage '", spec.name, "' in place: read ", read, " and result ", write,
                   " of ", spec.reads.size(), " and ", spec.writes.size());
  for (const ReadSpec& read : spec.reads) {
    const BufferPlan& b = plan.buffer(read.buffer);
    if (b.producer < 0 && !plan.is_declared(read.buffer))
      return error(Code::invalid_argument, "stage '", spec.name, "' reads buffer '", plan.buffer_spec(read.buffer).name,
                   "', which is no input and which no stage writes");
  }
  return {};
}

void collect_indices(Plan& plan, int s) {
  StagePlan& stage = plan.stage(s);
  for (const WriteSpec& write : plan.spec(s).writes)
    for (const std::string& index : write.indices)
      if (stage.index_of(index) < 0) stage.indices.push_back(index);
}

}  // namespace

Result<void> order_stages(Plan& plan) {
  TENON_OK(find_producers(plan));
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) collect_indices(plan, s);
  std::vector<Mark> marks(plan.stages.size());
  for (const int output : plan.outputs) {
    if (plan.buffer(output).producer < 0)
      return error(Code::invalid_argument, "output '", plan.buffer_spec(output).name, "' is written by no stage");
    TENON_OK(visit_stage(plan, plan.buffer(output).producer, marks));
  }
  for (const int s : plan.order) {
    plan.stage(s).needed = true;
    TENON_OK(check_stage(plan, s));
    for (int r = 0; r < static_cast<int>(plan.spec(s).reads.size()); ++r)
      plan.buffer(plan.spec(s).reads[static_cast<size_t>(r)].buffer).uses.push_back({s, r});
  }
  return {};
}

// --- repetition ---

namespace {

// 1 where `e` is the same for all values of the index.
Expr is_same_along(const Expr& e, const std::string& index) {
  if (!depends_on(e, index)) return 1;
  if (e.kind() != ExprKind::select || depends_on(e.operands()[0], index)) return 0;
  return select(e.operands()[0], is_same_along(e.operands()[1], index), is_same_along(e.operands()[2], index));
}

// Conditions are evaluated outside of the stage, where its indices are not defined.
bool mentions_any(const Expr& e, const std::vector<std::string>& indices) {
  return std::ranges::any_of(indices, [&](const std::string& i) { return depends_on(e, i); });
}

}  // namespace

void find_repeats(Plan& plan) {
  for (const int s : plan.order) {
    StagePlan& stage = plan.stage(s);
    const StageSpec& spec = plan.spec(s);
    const bool one_map = spec.is_copy() && spec.parts.size() == 1 && !spec.parts[0].part && spec.padding_read < 0;
    stage.repeats.assign(stage.indices.size(), Expr(one_map ? 1 : 0));
    for (size_t i = 0; one_map && i < stage.indices.size(); ++i) {
      for (const Expr& e : spec.parts[0].map)
        stage.repeats[i] *= is_same_along(with_known_bounds(plan, e).first, stage.indices[i]);
      if (mentions_any(stage.repeats[i], stage.indices)) stage.repeats[i] = 0;
    }
  }
}

Expr Plan::one_place(int buffer_id, size_t dim) const {
  const BufferPlan& b = buffer(buffer_id);
  if (b.role != Role::local || b.alias || b.producer < 0) return 0;
  for (const BufferSpec::DimSpec& d : buffer_spec(buffer_id).dims)
    if (d.stride || d.fold) return 0;
  const StagePlan& s = stage(b.producer);
  return s.repeats[static_cast<size_t>(s.index_of(spec(b.producer).writes[static_cast<size_t>(b.write)].indices[dim]))];
}

}  // namespace tenon::program
