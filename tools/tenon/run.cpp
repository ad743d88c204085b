#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>

#include <tenon-ext/quant/accuracy.hpp>
#include <tenon/onnx/test_data.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/tensor/compare.hpp>

#include "measure.hpp"
#include "session.hpp"
#include "statistics.hpp"
#include "values.hpp"

namespace tenon::cli {
namespace {

struct RunCommand {
  ModelOptions model;
  InputOptions inputs;
  ToleranceOptions tolerance;
  std::string output_dir, shadow;
  int top = 0, repeats = 1;
  std::optional<int> warm_up;  // unmeasured runs; by default one before statistics
  bool stats = false;
};

Json describe(const ValueInfo& info, const Datum& value) {
  Json out = {{"name", info.name}, {"type", value.absent() ? "absent" : value.type().to_string()}};
  if (!value.is_tensor() || !value.tensor().element().is_number() || value.tensor().size() == 0) return out;
  const Tensor& tensor = value.tensor();
  double least = INFINITY, most = -INFINITY, sum = 0;
  int64_t not_finite = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double x = tensor.double_at(i);
    if (!std::isfinite(x)) {
      ++not_finite;
      continue;
    }
    least = std::min(least, x);
    most = std::max(most, x);
    sum += x;
  }
  if (not_finite < tensor.size()) {
    out["min"] = least;
    out["max"] = most;
    out["mean"] = sum / static_cast<double>(tensor.size() - not_finite);
  }
  out["not_finite"] = not_finite;
  return out;
}

// The greatest elements of each row of a [rows, classes] output.
Json top_classes(const Tensor& scores, int count) {
  const int64_t classes = scores.rank() == 0 ? 1 : scores.dims().back();
  Json rows = Json::array();
  for (int64_t row = 0; classes > 0 && row < scores.size() / classes; ++row) {
    std::vector<int64_t> order(static_cast<size_t>(classes));
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto better = [&](int64_t a, int64_t b) {
      return scores.double_at(row * classes + a) > scores.double_at(row * classes + b);
    };
    const auto kept = std::min<int64_t>(count, classes);
    std::partial_sort(order.begin(), order.begin() + kept, order.end(), better);
    Json best = Json::array();
    for (int64_t i = 0; i < kept; ++i) {
      best.push_back({{"class", order[static_cast<size_t>(i)]},
                      {"score", scores.double_at(row * classes + order[static_cast<size_t>(i)])}});
    }
    rows.push_back(std::move(best));
  }
  return rows;
}

Result<void> write_outputs(const std::string& folder, const CompiledModel& model, const std::vector<Datum>& outputs) {
  std::error_code status;
  std::filesystem::create_directories(folder, status);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueInfo& info = model.outputs()[i];
    TENON_OK(write_test_data(str(folder, "/output_", i, ".pb"), outputs[i], info.type, info.name));
  }
  return {};
}

// The elementwise and the overall comparison, for the document and as a sentence.
struct Verdict {
  Comparison comparison;
  bool ok = false;
  std::string to_string() const {
    return str(ok ? "equal" : "DIFFERENT", ", max|a-b| / max|b| = ", comparison.relative_max, ok ? "" : "; ",
               ok ? "" : comparison.difference);
  }
  void add_to(Json& entry) const {
    entry["equal"] = ok;
    entry["relative_max"] = comparison.relative_max;
    entry["difference"] = comparison.difference;
  }
};
Verdict judge(const Datum& value, const Datum& expected, const RunCommand& command) {
  Verdict verdict{compare(value, expected, command.tolerance.elements())};
  verdict.ok = command.tolerance.accepts(verdict.comparison);
  return verdict;
}

// Another target that repeats a share of the runs.
struct Shadow {
  std::unique_ptr<CompiledModel> model;
  double share = 0;
};

// "TARGET:PERCENT%": repeats that share of the runs there and compares. If a target has prepared the graph, the
// prepared graph is repeated: its values are not those of the model, and say_preparations reports how far they differ.
Result<Shadow> open_shadow(const RunCommand& command, const std::vector<Preparation>& preparations, Session& session) {
  if (command.shadow.empty()) return Shadow{};
  const auto colon = command.shadow.rfind(':');
  double percent = -1;
  if (colon != std::string::npos && command.shadow.ends_with('%')) {
    const char* end = command.shadow.data() + command.shadow.size() - 1;
    const auto [stop, code] = std::from_chars(command.shadow.data() + colon + 1, end, percent);
    if (code != std::errc() || stop != end) percent = -1;
  }
  if (!(percent > 0 && percent <= 100)) {
    return error(Code::invalid_argument, "--shadow '", command.shadow,
                 "' should be TARGET:PERCENT%, such as reference:1%");
  }
  if (CompiledModel::is_artefact(command.model.model))
    return error(Code::invalid_argument, "'", command.model.model,
                 "' is a compiled artefact, and nothing else runs what it holds; leave out --shadow, or name the model");
  ModelOptions options = command.model;
  options.targets = {command.shadow.substr(0, colon)};
  if (preparations.empty()) {
    TENON_TRY(model, options.load(session), "compiling for the shadow target");
    return Shadow{std::move(model), percent / 100};
  }
  TENON_TRY(compile_options, options.compile_options());
  compile_options.prepare = false;
  TENON_TRY(model, compile(preparations.back().after->clone(), session.registry(), compile_options),
            "compiling what was prepared for the shadow target");
  return Shadow{std::move(model), percent / 100};
}

// The results of the runs. Outputs and profile are those of the last one.
struct Runs {
  std::vector<double> milliseconds;  // sorted
  std::vector<OpProfile> profile;
  std::vector<Datum> outputs;
  Json shadows = Json::array();
  int shadowed = 0;
  bool shadows_agree = true;
  double median() const { return milliseconds[milliseconds.size() / 2]; }
};

Result<void> compare_shadow(const RunCommand& command, const CompiledModel& shadow, const std::vector<Datum>& inputs,
                            ThreadPool& pool, int run, Runs& runs) {
  TENON_TRY(expected, shadow.run(inputs, {&pool, nullptr}), "the shadow run");
  ++runs.shadowed;
  for (size_t k = 0; k < runs.outputs.size(); ++k) {
    const Verdict verdict = judge(runs.outputs[k], expected[k], command);
    runs.shadows_agree = runs.shadows_agree && verdict.ok;
    Json entry = {{"run", run}, {"output", shadow.outputs()[k].name}};
    verdict.add_to(entry);
    runs.shadows.push_back(std::move(entry));
  }
  return {};
}

Result<Runs> repeat_runs(const RunCommand& command, const CompiledModel& model, const Shadow& shadow,
                         const std::vector<Datum>& inputs, ThreadPool& pool) {
  Runs runs;
  runs.outputs.resize(model.outputs().size());
  // Statistics are for runs with code, arena and outputs in place, as in a long-running process.
  for (int i = 0; i < command.warm_up.value_or(command.stats ? 1 : 0); ++i)
    TENON_OK(model.run_into(inputs, runs.outputs, {&pool, nullptr}), "the warm-up run");
  double due = 1;  // the first run is always shadowed
  for (int i = 0; i < command.repeats; ++i) {
    runs.profile.clear();
    const auto start = std::chrono::steady_clock::now();
    TENON_OK(model.run_into(inputs, runs.outputs, {&pool, command.stats ? &runs.profile : nullptr}));
    runs.milliseconds.push_back(milliseconds_since(start));
    if (shadow.model && due >= 1) {
      due -= 1;
      TENON_OK(compare_shadow(command, *shadow.model, inputs, pool, i, runs));
    }
    due += shadow.share;
  }
  std::sort(runs.milliseconds.begin(), runs.milliseconds.end());
  return runs;
}

void say_placement(const CompiledModel& model, Session& session, Json& document) {
  session.say(model.placement().to_string());
  Json placement = Json::object();
  for (const auto& entry : model.placement().entries) placement[entry.target] = placement.value(entry.target, 0) + 1;
  document["operators_by_target"] = placement;
}

std::string output_line(const Json& entry) {
  std::string line = str("output '", entry["name"].get<std::string>(), "': ", entry["type"].get<std::string>());
  if (entry.contains("min")) {
    line += str("  min ", entry["min"].get<double>(), "  max ", entry["max"].get<double>(), "  mean ",
                entry["mean"].get<double>());
  }
  return line;
}

// False if an output does not match the data.
bool say_outputs(const RunCommand& command, const CompiledModel& model, const std::vector<Datum>& outputs,
                 const TestData& data, Session& session, Json& document) {
  bool good = true;
  document["outputs"] = Json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    Json entry = describe(model.outputs()[i], outputs[i]);
    session.say(output_line(entry));
    if (const auto expected = data.outputs.find(i); expected != data.outputs.end()) {
      const Verdict verdict = judge(outputs[i], expected->second, command);
      good = good && verdict.ok;
      verdict.add_to(entry);
      session.say(str("  against ", command.inputs.data, ": ", verdict.to_string()));
    }
    document["outputs"].push_back(std::move(entry));
  }
  return good;
}

// Prints each difference; for outputs that agree, how closely.
void say_shadow(const RunCommand& command, const Runs& runs, Session& session, Json& document) {
  if (command.shadow.empty()) return;
  document["shadow"] = runs.shadows;
  double worst = 0;
  for (const Json& entry : runs.shadows) {
    worst = std::max(worst, entry["relative_max"].get<double>());
    if (!entry["equal"].get<bool>())
      session.say(str("shadow: run ", entry["run"].get<int>(), ", output '", entry["output"].get<std::string>(),
                      "': ", entry["difference"].get<std::string>()));
  }
  session.say(str("shadow ", command.shadow, ": ", runs.shadowed, runs.shadowed == 1 ? " run" : " runs", " of ",
                  runs.milliseconds.size(), " repeated, ", runs.shadows_agree ? "all outputs equal" : "DIFFERENT",
                  ", worst max|a-b| / max|b| = ", worst));
}

void say_top(const RunCommand& command, const std::vector<Datum>& outputs, Session& session, Json& document) {
  if (command.top <= 0 || outputs.empty() || !outputs[0].is_tensor() || !outputs[0].tensor().element().is_number())
    return;
  const Json classes = top_classes(outputs[0].tensor(), command.top);
  for (const Json& row : classes) {
    session.say("top classes:");
    for (const Json& best : row)
      session.say(str("  ", best["class"].get<int64_t>(), "  ", fixed(best["score"].get<double>(), 6)));
  }
  document["top"] = classes;
}

// Reports on what the targets' passes did before operators were placed: whether the outputs equal those of the prepared
// graph bit for bit, and how far these are from the original graph. False if they are not equal.
Result<bool> say_preparations(const RunCommand& command, const std::vector<Preparation>& preparations,
                              const std::vector<Datum>& inputs, const std::vector<Datum>& outputs, ThreadPool& pool,
                              Session& session, Json& document) {
  if (preparations.empty()) return true;
  TENON_TRY(prepared, Interpreter::prepare(*preparations.back().after));
  TENON_TRY(exact, prepared->run(inputs, pool), "the prepared graph on the reference");
  TENON_TRY(original, Interpreter::prepare(*preparations.front().before));
  TENON_TRY(wanted, original->run(inputs, pool), "the graph before preparation on the reference");
  bool right = true;
  document["prepared_by"] = Json::array();
  for (const Preparation& preparation : preparations) document["prepared_by"].push_back(preparation.target);
  document["preparation"] = Json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_tensor() || !outputs[i].tensor().element().is_number()) continue;
    const bool equal = outputs[i].tensor().identical(exact[i].tensor());
    // Parts that other targets run in floats may differ in bits.
    right = right && (equal || judge(outputs[i], exact[i], command).ok);
    quant::Distance distance;
    distance.add(outputs[i].tensor(), wanted[i].tensor());
    const std::string& name = preparations.front().before->body().output_name(i);
    session.say(str("prepared for ", preparations.back().target, ": output '", name, "' ",
                    equal ? "has the bits of" : "DIFFERS from",
                    " the prepared graph on the reference; against the model ", "SQNR ", fixed(distance.sqnr_db(), 1),
                    " dB, largest difference ", fixed(distance.max_abs, 6)));
    const double sqnr = distance.sqnr_db();
    document["preparation"].push_back({{"output", name},
                                       {"equal", equal},
                                       {"sqnr_db", std::isfinite(sqnr) ? Json(sqnr) : Json()},
                                       {"max_abs", distance.max_abs}});
  }
  return right;
}

Result<bool> run(const RunCommand& command, Session& session) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Preparation> preparations;
  TENON_TRY(model, command.model.load(session, &preparations));
  const double compile_ms = milliseconds_since(begin);
  TENON_TRY(shadow, open_shadow(command, preparations, session));
  TENON_TRY(data, command.inputs.read_data(model->inputs(), model->outputs()));
  TENON_TRY(inputs, command.inputs.gather(command.model, model->inputs(), data));
  ThreadPool pool(command.model.threads);
  TENON_TRY(runs, repeat_runs(command, *model, shadow, inputs, pool));

  const size_t count = runs.milliseconds.size();
  Json document = {
      {"model", command.model.model}, {"compile_ms", compile_ms}, {"runs", count}, {"median_ms", runs.median()}};
  say_placement(*model, session, document);
  session.say(str("compiled in ", fixed(compile_ms, 1), " ms; ",
                  count == 1 ? "one run" : str("median of ", count, " runs"), " ", fixed(runs.median(), 3), " ms on ",
                  pool.threads(), " threads"));
  const bool right = say_outputs(command, *model, runs.outputs, data, session, document);
  TENON_TRY(exact, say_preparations(command, preparations, inputs, runs.outputs, pool, session, document));
  say_shadow(command, runs, session, document);
  say_top(command, runs.outputs, session, document);
  if (command.stats) say_statistics(*model, runs.profile, session, document);
  if (!command.output_dir.empty()) TENON_OK(write_outputs(command.output_dir, *model, runs.outputs));
  const bool ok = right && exact && runs.shadows_agree;
  document["ok"] = ok;
  session.result(document);
  return ok;
}

}  // namespace

void add_run(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("run", "Compile a model, run it, compare its outputs when there is data");
  auto options = std::make_shared<RunCommand>();
  options->model.add_to(*command);
  options->model.add_dims_to(*command);
  options->inputs.add_to(*command);
  command->add_option("--output-dir", options->output_dir, "Write the outputs here as output_N.pb")
      ->type_name("DIR")
      ->check(file_name());
  options->tolerance.add_to(*command);
  command->add_option("--shadow", options->shadow, "TARGET:PERCENT%: repeat that share of runs there and compare");
  command->add_option("--runs", options->repeats, "How often to run")->check(CLI::Range(1, 1000000));
  command->add_option("--warm-up", options->warm_up, "Unmeasured runs before; 1 with --stats, else 0")
      ->check(CLI::Range(0, 1000000));
  command->add_option("--top", options->top, "Print the largest N classes of the first output")
      ->check(CLI::Range(0, 1000));
  command->add_flag("--stats", options->stats, "Time by operator, generated kernels, memory and layouts");
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, options] {
    const auto done = run(*options, session);
    exit_code = !done.ok() ? session.fail(done.error()) : *done ? kDone : kFailed;
  });
}

}  // namespace tenon::cli
