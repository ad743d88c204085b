#include <tenon/program/pipeline/required_indices_internal.hpp>

namespace tenon::program {

namespace {

// A read of "all of a buffer" requires no more of it than other reads do.
bool mentions_bounds_of(const Window& w, const BufferSpec& spec) {
  for (int d = 0; d < spec.rank; ++d)
    for (const Expr& e : {min_of(spec.name, d), extent_of(spec.name, d)})
      if (depends_on(w.first, e.name()) || depends_on(w.last, e.name())) return true;
  return false;
}

}  // namespace

RequiredIndices::RequiredIndices(Plan& plan) : plan_(plan), spoken_of_(plan.buffers.size()) { find_spoken_of(); }

// Most pipelines refer to the bounds of no or few buffers.
void RequiredIndices::find_spoken_of() {
  for (const StageSpec& spec : plan_.data.stages) {
    for (const ReadSpec& read : spec.reads) speaks(read.windows);
    for (const CopyPart& part : spec.parts) {
      for (const Expr& e : part.map) speaks(e);
      speaks(part.keep);
      if (part.part) speaks({*part.part});
    }
    for (const Expr& e : spec.scalars) speaks(e);
    for (const LoopOver& loop : spec.loops) speaks({{loop.step, loop.workers}});
  }
  for (const BufferSpec& spec : plan_.data.buffers)
    for (const BufferSpec::DimSpec& dim : spec.dims) {
      if (dim.bounds) speaks({*dim.bounds});
      if (dim.stride) speaks(*dim.stride);
      if (dim.fold) speaks(*dim.fold);
    }
}

void RequiredIndices::speaks(const Windows& windows) {
  for (const Window& w : windows) speaks(w.first), speaks(w.last);
}

void RequiredIndices::speaks(const Expr& e) {
  for (const std::string& symbol : e.symbols())
    if (const auto meta = parse_meta(symbol))
      for (size_t b = 0; b < spoken_of_.size(); ++b)
        if (plan_.data.buffers[b].name == meta->buffer) spoken_of_[b] = true;
}

Result<void> RequiredIndices::find(int s) {
  StagePlan& stage = plan_.stage(s);
  std::vector<std::optional<Window>> required(stage.indices.size());
  const auto add = [&](int index, const Window& w) {
    std::optional<Window>& r = required[static_cast<size_t>(index)];
    r = r ? united(*r, w) : w;
  };
  for (const WriteSpec& write : plan_.spec(s).writes) {
    std::vector<std::optional<Window>> box(write.indices.size());
    require_of_buffer(write.buffer, stage.location, box);
    for (size_t d = 0; d < box.size(); ++d)
      if (box[d])
        add(stage.index_of(write.indices[d]), aligned(plan_.buffer_spec(write.buffer).dims[d].alignment, *box[d]));
  }
  stage.required.clear();
  for (size_t i = 0; i < required.size(); ++i) {
    if (!required[i])
      return error(Code::invalid_argument, "nothing says which indices '", stage.indices[i], "' are needed");
    stage.required.push_back(*required[i]);
  }
  resolve_bounds(s);
  return {};
}

void RequiredIndices::require_of_buffer(int buffer, const Path& location, std::vector<std::optional<Window>>& box) {
  const BufferPlan& b = plan_.buffer(buffer);
  const BufferSpec& spec = plan_.buffer_spec(buffer);
  const auto add = [&](size_t d, const Window& w) { box[d] = box[d] ? united(*box[d], w) : w; };
  if (b.role == Role::output) {
    // Everything for which the caller has memory; a run checks that nobody reads more.
    for (int d = 0; d < spec.rank; ++d) add(static_cast<size_t>(d), whole_box(plan_, buffer)[static_cast<size_t>(d)]);
    return;
  }
  for (const Use& use : b.uses) {
    const std::vector<Window> read = read_box(plan_, use, index_box(plan_, use.stage, location.size()));
    for (size_t d = 0; d < read.size(); ++d)
      if (!spoken_of_[static_cast<size_t>(buffer)] || !mentions_bounds_of(read[d], spec)) add(d, read[d]);
  }
}

// Boxes were computed before the bounds to which they refer.
void RequiredIndices::insert_known_bounds() {
  for (const int s : plan_.order)
    for (Window& w : plan_.stage(s).required) w = with_known_bounds(plan_, w);
  for (LoopPlan& loop : plan_.loops)
    if (!loop.dropped) {
      loop.range = with_known_bounds(plan_, loop.range);
      loop.first = loop.range.first;
    }
}

Window RequiredIndices::aligned(int64_t to, const Window& w) const {
  if (to == 1 || is_aligned(to, w)) return w;
  return {to * floordiv(w.first, to), to * floordiv(w.last, to) + (to - 1)};
}

// Whether it is all of a declared buffer whose bounds have this alignment.
bool RequiredIndices::is_aligned(int64_t to, const Window& w) const {
  for (const int b : plan_.outputs) {
    const BufferSpec& spec = plan_.buffer_spec(b);
    for (int d = 0; d < spec.rank; ++d)
      if (spec.dims[static_cast<size_t>(d)].alignment % to == 0 && w == whole_box(plan_, b)[static_cast<size_t>(d)])
        return true;
  }
  return false;
}

// Bounds of buffers that the caller does not provide: everything that is computed of them.
void RequiredIndices::resolve_bounds(int s) {
  for (const WriteSpec& write : plan_.spec(s).writes) {
    if (plan_.is_declared(write.buffer) || !spoken_of_[static_cast<size_t>(write.buffer)]) continue;
    const std::vector<Window> whole = whole_box(plan_, write.buffer);
    const std::string& name = plan_.buffer_spec(write.buffer).name;
    for (size_t d = 0; d < whole.size(); ++d) {
      plan_.known_bounds[std::string(min_of(name, static_cast<int>(d)).name())] = whole[d].first;
      plan_.known_bounds[std::string(extent_of(name, static_cast<int>(d)).name())] = whole[d].extent();
    }
  }
}

}  // namespace tenon::program
