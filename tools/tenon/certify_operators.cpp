// Operators one by one: a target must run what it claims to run.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tenon/compile/compile.hpp>
#include <tenon/support/memory.hpp>

#include "certify.hpp"
#include "certify_samples.hpp"

namespace tenon::cli {
namespace {

using ModelPtr = std::unique_ptr<CompiledModel>;

// The state that one process has for the target.
class Workbench {
 public:
  Workbench(const Certification& run, std::string target) : run_(run), target_(std::move(target)) {}

  Result<TargetBackend*> backend() {
    if (!backend_) {
      registry_ = std::make_unique<TargetRegistry>(run_.search);
      TENON_TRY(opened, registry_->open(target_));
      backend_ = std::move(opened);
    }
    return backend_.get();
  }
  Result<ModelPtr> compiled(const Sample& sample) {
    CompileOptions options;
    options.targets = {target_};
    options.prepare = false;  // because values are compared
    return compile(sample.graph->clone(), *registry_, options);
  }
  bool runs_there(const CompiledModel& model) const {
    return std::ranges::any_of(model.placement().entries,
                               [&](const PlacementEntry& entry) { return entry.target == backend_->name(); });
  }

 private:
  const Certification& run_;
  const std::string target_;
  std::unique_ptr<TargetRegistry> registry_;
  std::unique_ptr<TargetBackend> backend_;
};

bool identical(const std::vector<Datum>& a, const std::vector<Datum>& b) {
  return std::ranges::equal(a, b, [](const Datum& x, const Datum& y) {
    return x.is_tensor() && y.is_tensor() ? x.tensor().identical(y.tensor()) : x.is_tensor() == y.is_tensor();
  });
}

// ---- Honesty -------------------------------------------------------------------------------------------------------

struct OperatorRun {
  size_t taken = 0, elsewhere = 0, refused = 0;
  std::string refusal;
};

// The reason why the target refuses the operator; "" if it does not.
Result<std::string> refusal_of(const TargetBackend& backend, const Op& op) {
  const auto first = backend.refuses(op), second = backend.refuses(op);
  const std::string once = first ? first->reason : "", again = second ? second->reason : "";
  if (first.has_value() != second.has_value() || once != again) {
    const auto said = [](const auto& refusal) {
      return refusal ? quote(refusal->reason) : std::string("that it runs");
    };
    return error(Code::plugin, "refuses() says ", said(first), ", and asked again ", said(second));
  }
  if (first && std::ranges::all_of(once, [](char c) { return c == ' ' || c == '\n' || c == '\t'; }))
    return error(Code::plugin, "refuses() gives no reason; users see it, so a sentence with numbers");
  return once;
}

Result<void> run_sample(const Sample& sample, Workbench& bench, const std::function<void(std::string_view)>& stage,
                        OperatorRun& out) {
  TENON_TRY(backend, bench.backend());
  stage("refuses()");
  TENON_TRY(refusal, refusal_of(*backend, sample.op()));
  if (!refusal.empty()) {
    ++out.refused;
    if (out.refusal.empty()) out.refusal = refusal;
    return {};
  }
  stage("compiling");
  TENON_TRY(model, bench.compiled(sample), "compiling what refuses() does not refuse");
  (bench.runs_there(*model) ? out.taken : out.elsewhere) += 1;
  stage("running");
  TENON_TRY(outputs, model->run(sample.inputs), "running what refuses() does not refuse");
  const std::string difference = difference_of(outputs, sample.expected);
  if (difference.empty()) return {};
  return error(Code::plugin, "differs from the reference: ", difference);
}

Check check_operator(const std::string& op, Workbench& bench, const std::function<void(const std::string&)>& stage) {
  OperatorRun seen;
  std::vector<std::string> failures;
  stage("the reference, before the target was asked");
  const auto samples = samples_of(op);
  for (const Sample& sample : samples) {
    const auto done = run_sample(
        sample, bench, [&](std::string_view what) { stage(str(what, " ", sample.text)); }, seen);
    if (!done.ok()) failures.push_back(str(sample.text, ": ", done.error().to_string()));
  }
  const std::string of = str(" of ", samples.size(), " instances");
  if (!failures.empty()) {
    return {"", op, Verdict::failed,
            str(failures.size(), of, failures.size() == 1 ? " is" : " are", " wrong, the first is ", failures.front())};
  }
  if (samples.empty()) return {"", op, Verdict::not_applicable, "the reference runs no instance of it"};
  if (seen.taken + seen.elsewhere == 0)
    return {"", op, Verdict::not_applicable, str("refused in all", of, ": ", seen.refusal)};
  return {"", op, Verdict::passed,
          str(seen.taken, of, " run and agree with the reference",
              seen.elsewhere ? str(", ", seen.elsewhere, " are left to constants or the fallback") : std::string(),
              seen.refused ? str(", ", seen.refused, " refused: ", seen.refusal) : std::string())};
}

// ---- Executables and errors ----------------------------------------------------------------------------------------

// The result of one aspect for one operator: an error, or this code if the aspect does not apply.
using Aspect = Result<void>;
constexpr Code kNotAsked = Code::cancelled;
Error not_asked(std::string_view why) { return error(kNotAsked, why); }

Aspect repeats(const CompiledModel& model, const Sample& sample, const std::vector<Datum>& outputs) {
  TENON_TRY(again, model.run(sample.inputs));
  if (identical(outputs, again)) return {};
  const std::string difference = [&] {
    for (size_t i = 0; i < std::min(outputs.size(), again.size()); ++i)
      if (const auto found = compare(again[i], outputs[i], {.rtol = 0, .atol = 0}); !found.equal)
        return found.difference;
    return std::string("bits that are equal as numbers");
  }();
  return error(Code::plugin, "the same inputs give other outputs in a second run: ", difference);
}

Aspect runs_on_threads(Workbench& bench, const Sample& sample, const std::vector<Datum>& outputs) {
  constexpr int kThreads = 2, kRuns = 8;
  ModelPtr models[kThreads];
  for (ModelPtr& model : models) {
    TENON_TRY(compiled, bench.compiled(sample));
    model = std::move(compiled);
  }
  Result<void> done[kThreads];
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int run = 0; run < kRuns && done[t].ok(); ++run) {
        const auto made = models[t]->run(sample.inputs);
        if (!made.ok())
          done[t] = made.error();
        else if (!identical(*made, outputs))
          done[t] = error(Code::plugin, "run ", run, " of thread ", t,
                          " gives other outputs than one thread; two executables share something that they write");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Result<void>& one : done) TENON_OK(std::move(one));
  return {};
}

// An output between two guard areas, which must not be written.
class FencedTensor {
 public:
  static Result<FencedTensor> make(ElementType element, const Dims& dims) {
    FencedTensor out;
    TENON_TRY(like, Tensor::allocate(element, dims));
    out.bytes_ = like.bytes();
    TENON_TRY(block, allocate_aligned(out.bytes_ + 2 * kFence));
    out.block_ = std::shared_ptr<std::byte[]>(std::move(block));
    std::fill_n(out.block_.get(), out.bytes_ + 2 * kFence, kMark);
    TENON_TRY(tensor, Tensor::share(element, dims, out.block_, out.block_.get() + kFence, out.bytes_));
    out.tensor_ = std::move(tensor);
    return out;
  }
  const Tensor& tensor() const { return tensor_; }
  Result<void> check(const std::string& name) const {
    for (size_t i = 0; i < kFence; ++i) {
      if (block_[kFence - 1 - i] != kMark)
        return error(Code::plugin, "byte ", i + 1, " before output '", name, "' of ", bytes_, " bytes was written");
      if (block_[kFence + bytes_ + i] != kMark)
        return error(Code::plugin, "byte ", i + 1, " behind output '", name, "' of ", bytes_, " bytes was written");
    }
    return {};
  }

 private:
  static constexpr size_t kFence = 4 * kAlignBytes;
  static constexpr std::byte kMark{0xA5};
  size_t bytes_ = 0;
  std::shared_ptr<std::byte[]> block_;
  Tensor tensor_;
};

Aspect keeps_memory(const CompiledModel& model, const Sample& sample, const std::vector<Datum>& outputs) {
  std::vector<FencedTensor> places;
  std::vector<Datum> into, inputs;
  for (const Datum& output : outputs) {
    if (!output.is_tensor() || output.tensor().element().is_string()) return not_asked("texts and lists have no place");
    TENON_TRY(place, FencedTensor::make(output.tensor().element(), output.tensor().dims()));
    into.emplace_back(place.tensor());
    places.push_back(std::move(place));
  }
  for (const Datum& input : sample.inputs) {
    if (!input.is_tensor()) return not_asked("texts and lists have no place");
    TENON_TRY(copy, input.tensor().clone());
    inputs.emplace_back(std::move(copy));
  }
  TENON_OK(model.run_into(inputs, into));
  for (size_t i = 0; i < places.size(); ++i) TENON_OK(places[i].check(model.outputs()[i].name));
  if (!identical(into, outputs))
    return error(Code::plugin,
                 "outputs in memory that is not zero differ: some element is not written, or read before");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].tensor().identical(sample.inputs[i].tensor()))
      return error(Code::plugin, "input '", model.inputs()[i].name, "' was written");
  return {};
}

// Loads the first `count` bytes of `text`.
Result<std::unique_ptr<Executable>> loaded(TargetBackend& backend, const std::string& text, size_t count) {
  TENON_TRY(block, allocate_aligned(count));
  std::memcpy(block.get(), text.data(), count);
  const std::shared_ptr<std::byte[]> owner(std::move(block));
  return backend.load({owner.get(), count}, owner);
}

Aspect stores(TargetBackend& backend, const CompiledModel& model, const Sample& sample,
              const std::vector<Datum>& outputs) {
  CompiledModel::Parts parts = model.parts();
  for (auto& segment : parts.segments) {
    if (segment.target != backend.name()) continue;
    const auto stored = segment.executable->serialize();
    if (!stored.ok() && stored.error().code() == Code::unsupported) return not_asked(stored.error().message());
    TENON_OK(stored, "serialize()");
    auto made_again = loaded(backend, *stored, stored->size());
    if (!made_again.ok() && made_again.error().code() == Code::unsupported)
      return error(Code::plugin, "serialize() gives ", stored->size(), " bytes that load() says it cannot take (",
                   made_again.error().message(), "): artefacts would be written that nobody can run. Let load() take ",
                   "them, or let serialize() be unsupported, too, which it is where it is left out");
    TENON_TRY(again, std::move(made_again), "load() of what serialize() gave");
    segment.executable = std::move(again);
  }
  TENON_TRY(rebuilt, CompiledModel::assemble(std::move(parts)));
  TENON_TRY(made, rebuilt->run(sample.inputs), "running what load() gave");
  if (identical(made, outputs)) return {};
  return error(Code::plugin, "what load() makes of serialize() gives other outputs");
}

// Truncated bytes must give an error.
Aspect refuses_bytes(TargetBackend& backend, const CompiledModel& model) {
  for (const auto& segment : model.segments()) {
    if (segment.target != backend.name()) continue;
    const auto stored = segment.executable->serialize();
    if (!stored.ok()) return not_asked(stored.error().message());
    for (const size_t bytes : {size_t{0}, stored->size() / 2}) {
      if (loaded(backend, *stored, bytes).ok())
        return error(Code::plugin, "load() takes ", bytes, " of ", stored->size(), " bytes for an executable");
    }
    return {};
  }
  return not_asked("nothing of it runs on the target");
}

// Each input in turn with a wrong element type, rank and extent, and one input too few: each must give an error, and no
// crash.
Aspect refuses_inputs(const CompiledModel& model, const Sample& sample, const std::function<void(std::string)>& stage) {
  const auto refused = [&](const std::vector<Datum>& inputs, const std::string& what) -> Result<void> {
    stage(what);
    if (!model.run(inputs).ok()) return {};
    return error(Code::plugin, "it runs with ", what);
  };
  if (sample.inputs.empty()) return not_asked("it has no inputs");
  TENON_OK(refused({sample.inputs.begin(), sample.inputs.end() - 1}, str(sample.inputs.size() - 1, " inputs")));
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    if (!sample.inputs[i].is_tensor()) continue;
    const Tensor& input = sample.inputs[i].tensor();
    Dims higher = input.dims(), longer = input.dims();
    higher.insert(higher.begin(), 2);
    if (!longer.empty()) longer.back() += 1;
    const std::pair<ElementType, Dims> wrong[] = {
        {input.element() == kI16 ? kF32 : kI16, input.dims()}, {input.element(), higher}, {input.element(), longer}};
    for (const auto& [element, dims] : wrong) {
      if (element == input.element() && dims == input.dims()) continue;
      TENON_TRY(other, Tensor::zeros(element, dims));
      std::vector<Datum> inputs = sample.inputs;
      const std::string what = str("input '", model.inputs()[i].name, "' as ", other, ", declared ", input);
      inputs[i] = Datum(std::move(other));
      TENON_OK(refused(inputs, what));
    }
  }
  return {};
}

// An instance that runs on the target.
struct Asked {
  Workbench& bench;
  TargetBackend& backend;
  const CompiledModel& model;
  const Sample& sample;
  const std::vector<Datum>& outputs;
  std::function<void(std::string)> stage;
};

struct AspectGroup {
  std::string_view group, name;
  std::string_view good;  // the statement that holds for all operators that ran
  Aspect (*ask)(const Asked&);
};
// Stages refer to them by a digit.
constexpr AspectGroup kAspects[] = {
    {"executables", "repeatable", "the same inputs give the same bits twice",
     [](const Asked& a) { return repeats(a.model, a.sample, a.outputs); }},
    {"executables", "memory", "nothing around outputs and no input is written, and outputs are written wholly",
     [](const Asked& a) { return keeps_memory(a.model, a.sample, a.outputs); }},
    {"executables", "threads", "two threads, each with an executable of its own, give what one gives",
     [](const Asked& a) { return runs_on_threads(a.bench, a.sample, a.outputs); }},
    {"executables", "stored", "load() of what serialize() gave gives the same bits",
     [](const Asked& a) { return stores(a.backend, a.model, a.sample, a.outputs); }},
    {"errors", "inputs", "inputs of other counts, types and shapes are refused",
     [](const Asked& a) { return refuses_inputs(a.model, a.sample, a.stage); }},
    {"errors", "bytes", "load() refuses bytes that end too early",
     [](const Asked& a) { return refuses_bytes(a.backend, a.model); }},
};
static_assert(std::size(kAspects) <= 10);

// ---- Answers of processes ------------------------------------------------------------------------------------------

constexpr size_t kVerdicts = 3;

struct Said {
  size_t aspect;  // 0 where a task has but one check
  Verdict verdict;
  std::string sentence;
};

std::string packed(const std::vector<Said>& checks) {
  Json json = Json::array();
  for (const auto& [aspect, verdict, sentence] : checks)
    json.push_back({{"aspect", aspect}, {"verdict", verdict}, {"sentence", sentence}});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The error: how the process ended, or that no task answers so.
Result<std::vector<Said>> unpacked(const ApartAnswer& answer) {
  if (!answer.failure.empty()) return error(Code::plugin, answer.failure);
  const Json json = Json::parse(answer.text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return error(Code::plugin, kNoAnswer);
  std::vector<Said> checks;
  for (const Json& one : json) {
    const auto is_below = [&](const char* key, size_t count) {
      const auto at = one.find(key);
      return at != one.end() && at->is_number_unsigned() && *at < count;
    };
    const auto sentence = one.find("sentence");
    if (!is_below("aspect", std::size(kAspects)) || !is_below("verdict", kVerdicts) || sentence == one.end() ||
        !sentence->is_string())
      return error(Code::plugin, kNoAnswer);
    checks.push_back({one["aspect"].get<size_t>(), one["verdict"].get<Verdict>(), sentence->get<std::string>()});
  }
  return checks;
}

// Checks each aspect on an operator's first instances that run on the target. Those that do not run have failed
// elsewhere.
std::vector<Said> check_aspects(const std::string& op, Workbench& bench,
                                const std::function<void(size_t, std::string)>& stage) {
  constexpr size_t kInstances = 3;
  std::vector<Said> out;
  size_t asked = 0;
  stage(0, "the reference, before the target was asked");
  for (const Sample& sample : samples_of(op)) {
    stage(0, str("compiling ", sample.text));
    const auto backend = bench.backend();
    if (!backend.ok() || (*backend)->refuses(sample.op())) continue;
    const auto model = bench.compiled(sample);
    if (!model.ok() || !bench.runs_there(**model)) continue;
    const auto outputs = (*model)->run(sample.inputs);
    if (!outputs.ok()) continue;
    for (size_t aspect = 0; aspect < std::size(kAspects); ++aspect) {
      const auto at = [&](const std::string& more) {
        stage(aspect, str(sample.text, more.empty() ? "" : " with ", more));
      };
      at("");
      const Aspect done = kAspects[aspect].ask({bench, **backend, **model, sample, *outputs, at});
      const bool skipped = !done.ok() && done.error().code() == kNotAsked;
      out.push_back({aspect,
                     done.ok() ? Verdict::passed
                     : skipped ? Verdict::not_applicable
                               : Verdict::failed,
                     done.ok() ? "" : str(sample.text, ": ", done.error().to_string())});
    }
    if (++asked == kInstances) break;
  }
  return out;
}

// The results for operators in one aspect.
struct Tally {
  std::vector<std::string> passed, failed;
  std::string failure, skipped;
};

void add_to(Tally& tally, const std::string& op, Verdict verdict, const std::string& sentence) {
  const auto once = [&](std::vector<std::string>& ops) {
    if (ops.empty() || ops.back() != op) ops.push_back(op);
  };
  if (verdict == Verdict::passed) once(tally.passed);
  if (verdict == Verdict::not_applicable && tally.skipped.empty()) tally.skipped = sentence;
  if (verdict != Verdict::failed) return;
  if (tally.failed.empty()) tally.failure = sentence;
  once(tally.failed);
}

Check check_of(const Tally& tally, const AspectGroup& aspect, const std::string& target) {
  Check out{str(target, ", ", aspect.group), std::string(aspect.name), Verdict::passed,
            str(aspect.good, ", on ", tally.passed.size(), tally.passed.size() == 1 ? " operator" : " operators")};
  if (!tally.failed.empty()) {
    out.verdict = Verdict::failed;
    out.sentence = str(tally.failure, "; of operators ", tally.failed);
  } else if (tally.passed.empty()) {
    out.verdict = Verdict::not_applicable;
    out.sentence = tally.skipped.empty() ? "no operator runs on the target" : tally.skipped;
  }
  return out;
}

// A model that is wrong in any respect has failed; the first error is reported.
Result<Check> check_model(const std::string& path, Workbench& bench,
                          const std::function<void(const std::string&)>& stage) {
  stage("the reference, before the target was asked");
  TENON_TRY(backend, bench.backend());
  TENON_TRY(sample, sample_of_model(path));
  stage("compiling");
  TENON_TRY(model, bench.compiled(sample), "compiling");
  const auto& entries = model->placement().entries;
  const auto there = [&](const PlacementEntry& entry) { return entry.target == backend->name(); };
  const size_t count = static_cast<size_t>(std::ranges::count_if(entries, there));
  const std::string share = str(count, " of ", entries.size(), entries.size() == 1 ? " operator" : " operators");
  if (count == 0) {
    const auto refused = std::ranges::find_if(entries, [](const PlacementEntry& e) { return !e.refusals.empty(); });
    return Check{"", path, Verdict::not_applicable,
                 str(share, " on the target", refused == entries.end() ? "" : ": ",
                     refused == entries.end() ? "" : refused->refusals.front().second)};
  }
  stage("running");
  TENON_TRY(outputs, model->run(sample.inputs), "running");
  if (const std::string difference = difference_of(outputs, sample.expected); !difference.empty())
    return error(Code::plugin, "differs from the reference: ", difference);
  std::string asked, skipped;
  for (const AspectGroup& aspect : kAspects) {
    const auto at = [&](const std::string& more) { stage(str(aspect.name, more.empty() ? "" : " with ", more)); };
    at("");
    const Aspect done = aspect.ask({bench, *backend, *model, sample, outputs, at});
    if (!done.ok() && done.error().code() != kNotAsked)
      return error(Code::plugin, aspect.name, ": ", done.error().to_string());
    asked += done.ok() ? str(", ", aspect.name) : "";
    skipped += done.ok() ? "" : str("; not ", aspect.name, ": ", done.error().message());
  }
  return Check{"", path, Verdict::passed, str(share, " on the target; as on the reference", asked, skipped)};
}

std::string packed(const Check& check) { return packed(std::vector<Said>{{0, check.verdict, check.sentence}}); }

// The check of a task that has one, or how its process ended, at what stage.
Check check_of(std::string group, std::string name, const ApartAnswer& answer, const std::string& stage) {
  auto said = unpacked(answer);
  if (said.ok() && said->size() == 1)
    return {std::move(group), std::move(name), said->front().verdict, std::move(said->front().sentence)};
  return {std::move(group), std::move(name), Verdict::failed,
          str(said.ok() ? std::string(kNoAnswer) : said.error().message(), " in ", stage)};
}

}  // namespace

void certify_operators(const Certification& run, const std::string& target) {
  std::vector<std::string> ops = sampled_operators();
  std::erase_if(ops, [&](const std::string& op) { return !std::regex_search(op, run.filter); });
  const std::string group = str(target, ", operators");
  if (ops.empty()) {
    run.report({group, "all", Verdict::not_applicable, "--filter finds none of them"});
    return;
  }
  Workbench bench(run, target);  // filled only in the processes of tasks
  const Stages stages(ops.size());
  std::vector<std::optional<Check>> checks(ops.size());
  size_t done = 0, reported = 0, ran = 0;
  run_silently(
      ops.size(), {.jobs = run.jobs, .timeout_s = run.timeout_s},
      [&](size_t i) {
        return packed(check_operator(ops[i], bench, [&](const std::string& what) { stages.set(i, what); }));
      },
      [&](size_t i, const ApartAnswer& answer) {
        run.progress(str(group, ": ", ++done, "/", ops.size(), " ", ops[i]));
        Check check = check_of(group, ops[i], answer, stages.of(i));
        ran += check.verdict != Verdict::not_applicable;
        checks[i] = std::move(check);
        for (; reported < checks.size() && checks[reported]; ++reported) run.report(*checks[reported]);
      });
  if (ran == 0) {
    run.report({group, "all", Verdict::not_applicable,
                str("the target refuses all ", ops.size(), " operators, with reasons: there is nothing to run")});
  }

  const Stages at(ops.size());
  std::vector<ApartAnswer> answers(ops.size());
  done = 0;
  run_silently(
      ops.size(), {.jobs = run.jobs, .timeout_s = run.timeout_s},
      [&](size_t i) {
        return packed(check_aspects(
            ops[i], bench, [&](size_t aspect, const std::string& what) { at.set(i, str(aspect, " ", what)); }));
      },
      [&](size_t i, ApartAnswer answer) {
        run.progress(str(target, ", executables and errors: ", ++done, "/", ops.size(), " ", ops[i]));
        answers[i] = std::move(answer);
      });
  std::vector<Tally> tallies(std::size(kAspects));
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto said = unpacked(answers[i]);
    if (!said.ok()) {
      const std::string stage = at.of(i);
      const size_t aspect = stage.empty() ? 0 : std::min<size_t>(stage[0] - '0', std::size(kAspects) - 1);
      add_to(tallies[aspect], ops[i], Verdict::failed,
             str(said.error().message(), " in ", stage.size() > 2 ? stage.substr(2) : ops[i]));
      continue;
    }
    for (const Said& one : *said) add_to(tallies[one.aspect], ops[i], one.verdict, one.sentence);
  }
  for (size_t aspect = 0; aspect < tallies.size(); ++aspect)
    run.report(check_of(tallies[aspect], kAspects[aspect], target));
}

void certify_models(const Certification& run, const std::string& target) {
  const std::string group = str(target, ", models");
  Workbench bench(run, target);
  const Stages stages(run.models.size());
  run_silently(
      run.models.size(), {.jobs = 1, .timeout_s = run.timeout_s},
      [&](size_t i) {
        const std::string& path = run.models[i];
        const auto check = check_model(path, bench, [&](const std::string& what) { stages.set(i, what); });
        return packed(check.ok() ? *check : Check{"", path, Verdict::failed, check.error().to_string()});
      },
      [&](size_t i, const ApartAnswer& answer) {
        run.progress(str(group, ": ", run.models[i]));
        run.report(check_of(group, run.models[i], answer, stages.of(i)));
      });
}

}  // namespace tenon::cli
