#include <tenon/program/schedule/adaptive_program.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <tenon/program/exec/run_trials_internal.hpp>
#include <tenon/program/schedule/candidates_internal.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::program {

using detail::Candidates;
using detail::RunTrials;

namespace {

// The first run of a block finds in the caches what another schedule has left there. One of three timed runs is
// disturbed more often than all of them, and what happens during one of two blocks does not decide.
constexpr RunTrials::Blocks kBlocks{
    .of_each = 2, .settling_runs = 1, .timed_runs = 3, .hopeless = 1.15, .confirmations = 2, .most_loss = 0.01};

RunTrials trials_of(size_t ways, const std::function<double()>& clock) {
  return clock ? RunTrials(ways, kBlocks, clock) : RunTrials(ways, kBlocks);
}

}  // namespace

struct AdaptiveProgram::Impl {
  // By way of the trials.
  std::vector<BoundProgram> programs;
  std::vector<size_t> candidate_of;

  std::vector<Candidate> candidates;
  AdaptOptions options;
  std::optional<RunTrials> trials;
  int64_t lendable_bytes = 0;
  AlignedBytes arena;  // of lendable_bytes, unless runs provide it

  Result<void> bind(Candidates& offered) {
    std::optional<Error> first;
    for (size_t i = 0; i < offered.size(); ++i) {
      candidates.push_back({offered.describe(i), offered.predicted_seconds(i)});
      Result<BoundProgram> bound = bind(offered, i);
      if (!bound.ok()) {
        candidates[i].refused = bound.error().message();
        if (!first) first = bound.error();
        continue;
      }
      lendable_bytes = std::max(lendable_bytes, bound->lendable_bytes());
      programs.push_back(*std::move(bound));
      candidate_of.push_back(i);
    }
    if (programs.empty()) return *first;
    return complete();
  }
  // One with arenas that runs cannot provide has its own.
  Result<BoundProgram> bind(Candidates& offered, size_t which) const {
    BindOptions bind = options.bind;
    bind.arena_of_runs = true;
    TENON_TRY(bound, offered.bind(which, bind));
    if (bound.lendable_bytes() > 0 || options.bind.arena_of_runs) return bound;
    return offered.bind(which, options.bind);
  }
  Result<void> complete() {
    trials.emplace(trials_of(programs.size(), options.clock));
    if (options.bind.arena_of_runs || lendable_bytes == 0) return {};
    TENON_TRY(made, allocate_aligned(static_cast<size_t>(lendable_bytes)), "an arena for all schedules");
    arena = std::move(made);
    return {};
  }

  Result<void> run(std::span<std::byte* const> buffers, const RunWith& with) {
    RunWith lent = with;
    if (arena && static_cast<int64_t>(with.arena.size()) < lendable_bytes)
      lent.arena = {arena.get(), static_cast<size_t>(lendable_bytes)};
    if (with.statistics || with.observer) return programs[trials->chosen()].run(buffers, lent);
    const size_t way = trials->begin_run();
    Result<void> ran = programs[way].run(buffers, lent);
    if (ran.ok()) {
      trials->end_run();
      return ran;
    }
    if (way == trials->chosen()) return ran;
    TENON_OK(programs[trials->chosen()].run(buffers, lent));
    trials->drop(way);
    candidates[candidate_of[way]].refused = ran.error().message();
    return {};
  }
};

Result<AdaptiveProgram> AdaptiveProgram::bind(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                              const std::vector<BufferRef>& outputs, const Arguments& shapes,
                                              const CostModel& model, const AdaptOptions& options) {
  const auto made = [&]() -> Result<std::unique_ptr<Impl>> {
    TENON_TRY(offered,
              Candidates::of(pipeline, inputs, outputs, shapes, model, options.most_times, options.most_candidates));
    auto impl = std::make_unique<Impl>();
    impl->options = options;
    TENON_OK(impl->bind(offered));
    return impl;
  };
  TENON_TRY(impl, made(), "binding the schedules of '", pipeline.name(), "'");
  return AdaptiveProgram(std::move(impl));
}

Result<AdaptiveProgram> AdaptiveProgram::fork() const {
  auto impl = std::make_unique<Impl>();
  impl->candidates = impl_->candidates;
  impl->options = impl_->options;
  impl->lendable_bytes = impl_->lendable_bytes;
  const size_t chosen = impl_->trials->chosen();
  const auto add = [&](size_t way) -> Result<void> {
    TENON_TRY(forked, impl_->programs[way].fork());
    impl->programs.push_back(std::move(forked));
    impl->candidate_of.push_back(impl_->candidate_of[way]);
    return {};
  };
  TENON_OK(add(chosen));
  for (size_t way = 0; way < impl_->programs.size(); ++way)
    if (way != chosen && impl->candidates[impl_->candidate_of[way]].refused.empty()) TENON_OK(add(way));
  TENON_OK(impl->complete());
  return AdaptiveProgram(std::move(impl));
}

AdaptiveProgram::AdaptiveProgram(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AdaptiveProgram::AdaptiveProgram(AdaptiveProgram&&) noexcept = default;
AdaptiveProgram& AdaptiveProgram::operator=(AdaptiveProgram&&) noexcept = default;
AdaptiveProgram::~AdaptiveProgram() = default;

Result<void> AdaptiveProgram::run(std::span<std::byte* const> buffers, const RunWith& with) {
  return impl_->run(buffers, with);
}

Result<void> AdaptiveProgram::run(const Arguments& arguments) {
  TENON_TRY(buffers, impl_->programs.front().pointers_of(arguments));
  return impl_->run(buffers, {});
}

int64_t AdaptiveProgram::lendable_bytes() const { return impl_->lendable_bytes; }
size_t AdaptiveProgram::chosen() const { return impl_->candidate_of[impl_->trials->chosen()]; }

std::vector<AdaptiveProgram::Candidate> AdaptiveProgram::candidates() const {
  std::vector<Candidate> out = impl_->candidates;
  for (size_t way = 0; way < impl_->programs.size(); ++way)
    out[impl_->candidate_of[way]].relative_time = impl_->trials->relative_time(way);
  return out;
}

std::string AdaptiveProgram::to_string() const {
  std::string out;
  for (size_t i = 0; const Candidate& c : candidates()) {
    out += str(i++ == chosen() ? "* " : "  ", c.predicted_seconds * 1e3, " ms predicted, ");
    if (!c.refused.empty())
      out += "refused: " + c.refused;
    else if (c.relative_time == 0)
      out += "not tried";
    else
      out += str(c.relative_time, " of the chosen one's time");
    for (const std::string& group : c.groups) out += "; " + group;
    out += "\n";
  }
  return out;
}

}  // namespace tenon::program
