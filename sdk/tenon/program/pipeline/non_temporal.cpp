// Rewrites a pipeline with non-temporal results of loops into one without: they are computed in a buffer of the loop,
// and copied.
#include <algorithm>

#include <tenon/program/pipeline/pipeline_data_internal.hpp>

namespace tenon::program {

namespace {

bool is_non_temporal(const StageSpec& spec) { return std::ranges::any_of(spec.loops, &LoopOver::non_temporal); }

class Rewriting {
 public:
  explicit Rewriting(const PipelineData& data) : data_(data) {}

  Result<PipelineData> run() {
    const size_t stages = data_.stages.size();
    std::vector<int> owner_of;  // the new owner of a stage's loops
    for (size_t s = 0; s < stages; ++s) owner_of.push_back(static_cast<int>(s));
    for (size_t s = 0; s < stages; ++s) {
      if (!is_non_temporal(data_.stages[s])) continue;
      TENON_OK(check(data_.stages[s]), "stage '", data_.stages[s].name, "'");
      owner_of[s] = static_cast<int>(data_.stages.size());
      data_.stages.push_back(copying(data_.stages[s]));
    }
    const auto move_to_owner = [&](std::optional<LoopName>& at) {
      if (at && at->stage >= 0) at->stage = owner_of[static_cast<size_t>(at->stage)];
    };
    for (StageSpec& spec : data_.stages) move_to_owner(spec.compute_at);
    for (BufferSpec& spec : data_.buffers) move_to_owner(spec.store_at);
    return std::move(data_);
  }

 private:
  static Result<void> check(const StageSpec& spec) {
    if (spec.is_copy())
      return error(Code::unsupported,
                   "its loops say non_temporal, and it is a copy: only what kernels make is stored non-temporally");
    for (size_t i = 1; i < spec.loops.size(); ++i)
      if (spec.loops[i].non_temporal)
        return error(Code::invalid_argument, "its loop over ", spec.loops[i].index,
                     " says non_temporal, which is for the innermost one, over ", spec.loops[0].index);
    return {};
  }

  // The stage that takes over the loops of `spec` and writes its results.
  StageSpec copying(StageSpec& spec) {
    StageSpec out;
    out.name = spec.name + "_out";
    out.kernel = non_temporal_kernel();
    out.writes_non_temporal = true;
    out.loops = std::exchange(spec.loops, {});
    out.loops.front().non_temporal = false;
    out.compute_at = std::exchange(spec.compute_at, std::nullopt);
    for (WriteSpec& write : spec.writes) {
      Windows same;
      for (const std::string& index : write.indices) same.emplace_back(Expr::symbol(index));
      out.writes.push_back(write);
      write.buffer = near(write.buffer);
      out.reads.push_back({write.buffer, std::move(same)});
    }
    return out;
  }

  int near(int far) {
    const BufferSpec& spec = data_.buffers[static_cast<size_t>(far)];
    BufferSpec made{.name = spec.name + "_near", .element = spec.element, .rank = spec.rank};
    while (std::ranges::count(data_.buffers, made.name, &BufferSpec::name)) made.name += "_";
    for (const BufferSpec::DimSpec& dim : spec.dims) made.dims.push_back({.alignment = dim.alignment});
    data_.buffers.push_back(std::move(made));
    return static_cast<int>(data_.buffers.size()) - 1;
  }

  PipelineData data_;
};

}  // namespace

Result<PipelineData> with_non_temporal_results(const PipelineData& data) {
  if (std::ranges::none_of(data.stages, is_non_temporal)) return data;
  return Rewriting(data).run();
}

}  // namespace tenon::program
