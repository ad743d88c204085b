#include <tenon/program/schedule/measured_schedule.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>

#include <tenon/program/exec/arguments_internal.hpp>
#include <tenon/program/ir/text.hpp>
#include <tenon/program/schedule/candidates_internal.hpp>
#include <tenon/program/schedule/machine_readings.hpp>
#include <tenon/program/schedule/timing_internal.hpp>
#include <tenon/support/median.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::program {

namespace {

using detail::Candidates;
using detail::PlannedStages;
using detail::seconds_of;

constexpr std::string_view kScheduleMagic = "tenon-schedule 1";
constexpr uint32_t kOrderSeed = 1;
// The first rounds are looks, short ones, at all candidates: two, in different order, since a disturbance of some
// milliseconds slows down all runs of one look.
constexpr int kLooks = 2;
// Of candidates whose share of a round is within this factor of the least, any may be the fastest at another moment:
// the prediction decides.
constexpr double kNearlyAsFast = 1.05;
// Drops candidates whose fastest run takes more than this factor of the overall fastest: with more runs it becomes less
// likely that all of them were disturbed.
double hopeless_after(int round) { return round < kLooks ? 1.5 : round < 5 ? 1.2 : round < 10 ? 1.1 : 1.05; }

// The caller's memory, and memory allocated where there is none.
class Memory {
 public:
  static Result<Memory> of(const Program& program, const Arguments& arguments) {
    TENON_OK(detail::check_shapes(program, arguments));
    Memory memory;
    for (const Buffer& b : program.buffers) {
      if (b.role == Role::local) continue;
      const BufferArgument& given = arguments.buffers.find(b.name)->second;
      std::byte* data = given.data;
      if (data == nullptr) {
        TENON_TRY(spread, detail::spread_of(given.dims, b.element), "buffer '", b.name, "'");
        TENON_TRY(made, allocate_aligned(static_cast<size_t>(spread.bytes())), "memory for buffer '", b.name, "'");
        std::memset(made.get(), 0, static_cast<size_t>(spread.bytes()));
        data = made.get() - spread.low;
        memory.made_.push_back(std::move(made));
      }
      memory.buffers_.push_back(data);
    }
    return memory;
  }
  Result<void> make_arena(int64_t bytes) {
    TENON_TRY(made, allocate_aligned(static_cast<size_t>(bytes)), "an arena");
    arena_ = std::move(made);
    arena_bytes_ = static_cast<size_t>(bytes);
    return {};
  }
  Result<void> run(BoundProgram& program) const {
    return program.run(buffers_, {.arena = {arena_.get(), arena_bytes_}});
  }

 private:
  std::vector<std::byte*> buffers_;
  std::vector<AlignedBytes> made_;
  AlignedBytes arena_;  // shared by all, so that none gains from the position of its memory
  size_t arena_bytes_ = 0;
};

struct Contender {
  size_t candidate;
  BoundProgram program;
  std::optional<double> least = {};  // of all rounds
  std::vector<double> seconds = {};  // of each round after the looks, in which the caches held other candidates' lines
  int rounds = 0;
  double typical() const { return seconds.empty() ? *least : median(seconds); }
};

class Measurement {
 public:
  Measurement(Candidates candidates, const Arguments& arguments, const MeasureOptions& options)
      : candidates_(std::move(candidates)), arguments_(arguments), options_(options) {}

  Result<MeasuredReport> run(Pipeline& pipeline) {
    for (size_t i = 0; i < candidates_.size(); ++i)
      report_.candidates.push_back({candidates_.describe(i), candidates_.predicted_seconds(i)});
    TENON_TRY(whole, candidates_.whole());
    const ContentKey key = key_of(whole);
    if (!is_in_files(key)) {
      TENON_OK(measure(whole));
      const std::string text = kept();
      if (options_.files) options_.files->store(key, std::as_bytes(std::span(text)));
    }
    candidates_.apply(PlannedStages::with_hints_to_try(candidates_.groups(report_.chosen)), pipeline);
    return std::move(report_);
  }

 private:
  ContentKey key_of(const Program& whole) const {
    std::string text =
        str(kScheduleMagic, "\n", machine_identity(cache_bytes_of_machine()), print(whole), options_.bind.threads);
    for (const auto& [name, value] : detail::sizes_of(arguments_)) text += str("\n", name, " = ", value);
    for (const auto& candidate : report_.candidates)
      for (const std::string& group : candidate.groups) text += "\n" + group;
    return ContentKey::of(text);
  }

  // The description of the chosen candidate.
  std::string kept() const {
    std::string text = str(kScheduleMagic, "\n");
    for (const std::string& group : report_.candidates[report_.chosen].groups) text += group + "\n";
    return text;
  }
  bool is_in_files(const ContentKey& key) {
    const auto bytes = options_.files ? options_.files->load(key) : std::nullopt;
    if (!bytes) return false;
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    for (report_.chosen = 0; report_.chosen < report_.candidates.size(); ++report_.chosen)
      if (text == kept()) return report_.from_files = true;
    report_.chosen = 0;
    options_.files->distrusted(key, "it holds no schedule of this pipeline");
    return false;
  }

  Result<void> measure(const Program& whole) {
    TENON_TRY(memory, Memory::of(whole, arguments_));
    TENON_OK(bind_all(memory));
    std::vector<Contender*> left;
    for (Contender& c : contenders_) left.push_back(&c);
    std::mt19937 random(kOrderSeed);
    const double begin = now();
    for (int round = 0; round < options_.rounds && left.size() > 1; ++round) {
      if (round >= std::max(options_.fewest_rounds, 1) && now() - begin >= options_.seconds) break;
      std::ranges::shuffle(left, random);
      for (Contender* c : left) TENON_OK(time(*c, memory, round < kLooks));
      if (round + 1 >= kLooks) drop_the_hopeless(left, round);
    }
    for (const Contender& c : contenders_)
      if (c.least) {
        report_.candidates[c.candidate].seconds = c.typical();
        report_.candidates[c.candidate].runs = c.rounds;
      }
    report_.chosen = choice_of(std::move(left))->candidate;
    return {};
  }
  static const Contender* choice_of(std::vector<Contender*> left) {
    std::ranges::sort(left, {}, &Contender::candidate);  // ties: the one predicted to be the cheapest
    if (!left.front()->least) return left.front();
    if (left.front()->seconds.empty()) return *std::ranges::min_element(left, {}, &Contender::typical);
    std::vector<std::vector<double>> seconds;
    for (const Contender* c : left) seconds.push_back(c->seconds);
    const std::vector<double> parts = detail::parts_of_rounds(seconds);
    const double as_fast = kNearlyAsFast * std::ranges::min(parts);
    const auto chosen = std::ranges::find_if(parts, [&](double part) { return part <= as_fast; });
    return left[static_cast<size_t>(chosen - parts.begin())];
  }

  // Builds, binds and runs each once, which brings code and memory into the caches as for later runs.
  Result<void> bind_all(Memory& memory) {
    std::optional<Error> first;
    int64_t arena = 0;
    const auto refuse = [&](size_t candidate, const Error& why) {
      report_.candidates[candidate].refused = why.message();
      if (!first) first = why;
    };
    BindOptions bind = options_.bind;
    bind.statistics = false;
    bind.arena_of_runs = true;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      auto bound = candidates_.bind(i, bind);
      if (!bound.ok()) {
        refuse(i, bound.error());
        continue;
      }
      arena = std::max(arena, bound->lendable_bytes());
      contenders_.push_back({i, *std::move(bound)});
    }
    TENON_OK(memory.make_arena(arena));
    std::erase_if(contenders_, [&](Contender& c) {
      const Result<void> ran = memory.run(c.program);
      if (!ran.ok()) refuse(c.candidate, ran.error());
      return !ran.ok();
    });
    if (!contenders_.empty()) return {};
    return *first;
  }

  double now() const {
    if (options_.clock) return options_.clock();
    return seconds_of(options_.bind.pool ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
  }
  Result<void> time(Contender& c, const Memory& memory, bool look) const {
    const auto run = [&]() -> Result<double> {
      const double begin = now();
      TENON_OK(memory.run(c.program));
      return now() - begin;
    };
    TENON_TRY(seconds, detail::settled_seconds(run, look ? detail::kLook : detail::kSettled));
    if (!look) c.seconds.push_back(seconds);
    c.least = std::min(c.least.value_or(seconds), seconds);
    ++c.rounds;
    return {};
  }
  static void drop_the_hopeless(std::vector<Contender*>& left, int round) {
    const double least = *(*std::ranges::min_element(left, {}, &Contender::least))->least;
    const double most = hopeless_after(round) * least;
    std::erase_if(left, [&](const Contender* c) { return *c->least > most; });
  }

  Candidates candidates_;
  const Arguments& arguments_;
  const MeasureOptions& options_;
  std::vector<Contender> contenders_;
  MeasuredReport report_;
};

}  // namespace

FileCache measured_schedule_files() {
  return {FileCache::default_folder(), {.folder = "schedules", .suffix = ".schedule", .max_bytes = 4 << 20}};
}

std::string MeasuredReport::to_string() const {
  std::string out = from_files ? "from a file, nothing has run\n" : "";
  for (const Candidate& c : candidates) {
    out += str(&c == &candidates[chosen] ? "* " : "  ", c.predicted_seconds * 1e3, " ms predicted, ");
    if (c.runs > 0)
      out += str(c.seconds * 1e3, " ms in ", c.runs, " runs");
    else
      out += c.refused.empty() ? "not run" : "refused: " + c.refused;
    for (const std::string& group : c.groups) out += "; " + group;
    out += "\n";
  }
  return out;
}

Result<MeasuredReport> measured_schedule(Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                         const std::vector<BufferRef>& outputs, const Arguments& arguments,
                                         const CostModel& model, const MeasureOptions& options) {
  const auto measured = [&]() -> Result<MeasuredReport> {
    TENON_TRY(candidates, Candidates::of(pipeline, inputs, outputs, arguments, model, options.most_times,
                                         options.most_candidates));
    return Measurement(std::move(candidates), arguments, options).run(pipeline);
  };
  TENON_TRY(report, measured(), "scheduling '", pipeline.name(), "' by the clock");
  return report;
}

}  // namespace tenon::program
