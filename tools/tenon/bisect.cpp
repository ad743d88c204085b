// tenon bisect: finds the first pass, or else the first operator, that makes a compiled model differ from the loaded
// model on the reference.
#include <tenon/compile/bisect.hpp>

#include <cmath>

#include <tenon/compile/pass_walk.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/plugin/graph_values.hpp>

#include "session.hpp"
#include "values.hpp"

namespace tenon::cli {
namespace {

struct BisectCommand {
  ModelOptions model;
  InputOptions inputs;
  ToleranceOptions tolerance;
  bool prepared = false;
};

// JSON has no numbers for non-finite values.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(str(value)); }

Json to_json(const ValueDifference& difference) {
  Json out = {{"value", difference.value},
              {"difference", difference.text},
              {"max_abs", number(difference.max_abs)},
              {"relative_max", number(difference.relative_max)},
              {"mismatches", difference.mismatches},
              {"index", Json()},
              {"got", Json()},
              {"expected", Json()}};
  if (difference.located) {
    out["index"] = difference.index;
    out["got"] = number(difference.got);
    out["expected"] = number(difference.expected);
  }
  return out;
}
Json to_json(const std::optional<ValueDifference>& difference) { return difference ? to_json(*difference) : Json(); }
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json to_json(const WrongPass& pass) {
  return {{"pass", pass.pass},
          {"phase", pass.phase},
          {"run", pass.step},
          {"preparation", pass.in_preparation},
          {"error", text_or_null(pass.error)},
          {"difference", to_json(pass.difference)},
          {"before", pass.before},
          {"after", pass.after}};
}

Json to_json(const WrongOperator& op) {
  Json body;
  if (!op.body_operator.empty()) body = {{"text", op.body_operator}, {"difference", to_json(op.body_difference)}};
  return {{"op", op.op},
          {"label", op.label},
          {"target", op.target},
          {"types", op.types},
          {"text", op.text},
          {"nodes", op.nodes},
          {"all_phases", op.through_phases},
          {"in_company", op.in_company},
          {"error", text_or_null(op.error)},
          {"difference", to_json(op.difference)},
          {"body_operator", body}};
}

Json to_json(const BisectReport& report) {
  Json out = {{"agrees", report.agrees},
              {"runs", report.steps},
              {"executions", {{"reference", report.reference_runs}, {"target", report.target_runs}}},
              {"operators_compared", report.operators_compared},
              {"error", text_or_null(report.error)},
              {"outputs", Json::array()},
              {"pass", report.pass ? to_json(*report.pass) : Json()},
              {"operator", report.op ? to_json(*report.op) : Json()},
              {"nearest", report.nearest ? to_json(*report.nearest) : Json()},
              {"not_compared", Json::array()},
              {"notes", report.notes}};
  for (const ValueDifference& difference : report.differences) out["outputs"].push_back(to_json(difference));
  for (const NotCompared& op : report.not_compared)
    out["not_compared"].push_back({{"op", op.op}, {"label", op.label}, {"reason", op.reason}});
  return out;
}

std::string named(const std::string& op, const std::string& label) {
  return label.empty() ? op : str(op, " ", quote(label));
}

// Texts of operators, each line indented; only the first if there are many.
void say_operators(const std::string& title, const std::vector<std::string>& texts, const Session& session) {
  constexpr size_t kShown = 8;
  if (texts.empty()) return;
  session.say(title);
  for (size_t i = 0; i < std::min(texts.size(), kShown); ++i)
    for (const auto line : split(texts[i], '\n')) session.say(str("    ", line));
  if (texts.size() > kShown) session.say(str("    ... and ", texts.size() - kShown, " more"));
}

void say_what_differs(const std::string& whose, const std::optional<ValueDifference>& difference,
                      const std::string& error, const Session& session) {
  if (difference) session.say(str("  ", whose, " '", difference->value, "': ", difference->text));
  if (!error.empty()) session.say(str("  error: ", error));
}

void say(const WrongPass& pass, const BisectReport& report, const Session& session) {
  session.say(str("wrong pass: '", pass.pass, "', run ", pass.step, " of ", report.steps, ", in ", pass.phase));
  say_what_differs("behind it, output", pass.difference, pass.error, session);
  if (pass.in_preparation)
    session.say("  preparations may change numbers: --prepared compares with the graph that they make");
  say_operators("  it took away:", pass.before, session);
  say_operators("  it made:", pass.after, session);
}

void say(const WrongOperator& op, const Session& session) {
  session.say(
      str("  on ", op.target, ", ", op.types, op.through_phases ? ", compiled by itself through all phases" : ""));
  if (op.in_company)
    session.say("  alone it agrees: only behind the operators before it, in one executable, does it differ");
  say_what_differs("result", op.difference, op.error, session);
  if (!op.nodes.empty()) session.say(str("  of the model's operators ", op.nodes));
  if (!op.body_operator.empty()) {
    say_operators("  cut behind each operator of its body, it differs first behind", {op.body_operator}, session);
    say_what_differs("there, result", op.body_difference, "", session);
  }
  say_operators("  text:", {op.text}, session);
}

void say(const BisectReport& report, const BisectCommand& command, const Session& session) {
  const std::string subject = str(command.model.model, " on ", command.model.targets);
  const std::string oracle = command.prepared ? "the prepared graph" : "the model as loaded";
  session.say(report.agrees ? str(subject, ": agrees with ", oracle, " on the reference")
                            : str(subject, ": DIFFERENT from ", oracle, " on the reference"));
  for (const ValueDifference& difference : report.differences)
    session.say(str("  output '", difference.value, "': ", difference.text));
  if (!report.error.empty()) session.say(str("  its run failed: ", report.error));
  for (const std::string& note : report.notes) session.say(str("note: ", note));
  if (report.pass) {
    say(*report.pass, report, session);
  } else if (report.op) {
    session.say(str("wrong operator: ", named(report.op->op, report.op->label)));
    say(*report.op, session);
  } else if (!report.agrees) {
    session.say("no pass is wrong, and no operator is beyond tolerance by itself: small differences add up");
  }
  if (report.nearest) {
    session.say(str("farthest off by itself: ", named(report.nearest->op, report.nearest->label)));
    say(*report.nearest, session);
  }
  for (const NotCompared& op : report.not_compared)
    session.say(str("not compared: ", named(op.op, op.label), ": ", op.reason));
  session.say(str(report.steps, " runs of passes; executions: ", report.reference_runs, " on the reference, ",
                  report.target_runs, " on the target, and ", report.operators_compared, " operators one by one"));
}

// Reports outputs in which the data and the reference differ: neither a pass nor a target can cause that. For random
// models, the data are from other random numbers.
bool say_data(const BisectReport& report, const BisectCommand& command, const TestData& data, const Session& session,
              Json& document) {
  document["data"] = Json::array();
  bool good = true;
  for (const auto& [i, expected] : data.outputs) {
    if (i >= report.oracle.size() || report.random) continue;
    const Comparison comparison = compare(report.oracle[i], expected, command.tolerance.elements());
    const bool equal = command.tolerance.accepts(comparison);
    good = good && equal;
    document["data"].push_back({{"output", i}, {"equal", equal}, {"difference", comparison.difference}});
    if (!equal)
      session.say(str("the model on the reference differs from ", command.inputs.data, "/output_", i,
                      ".pb: ", comparison.difference));
  }
  return good;
}

Result<bool> run(const BisectCommand& command, Session& session) {
  TENON_TRY(registry, session.usable_registry());
  TENON_TRY(compile_options, command.model.compile_options());
  // A plugin's operators must be registered before its models are read.
  TENON_OK(PassWalk::open(*registry, compile_options));
  TENON_TRY(graph, load_graph(command.model.model));
  TENON_OK(verify(*graph), "verifying ", command.model.model);
  const std::vector<ValueInfo> inputs = inputs_of(graph->body());
  TENON_TRY(data, command.inputs.read_data(inputs, outputs_of(graph->body())));
  TENON_TRY(values, command.inputs.gather(command.model, inputs, data));
  ThreadPool pool(command.model.threads);
  BisectOptions options;
  options.tolerance = command.tolerance.elements();
  options.relative_max = command.tolerance.relative_max();
  options.prepared = command.prepared;
  options.parallel = &pool;
  TENON_TRY(report, bisect(*graph, values, *registry, compile_options, options));
  say(report, command, session);
  Json document = to_json(report);
  document["model"] = command.model.model;
  document["targets"] = command.model.targets;
  const bool right = say_data(report, command, data, session, document);
  session.result(document);
  return report.agrees && right;
}

}  // namespace

void add_bisect(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand(
      "bisect", "Find the first wrong pass, or else the first wrong operator, of a model on its target");
  auto options = std::make_shared<BisectCommand>();
  options->model.add_to(*command);
  options->model.add_dims_to(*command);
  options->inputs.add_to(*command);
  options->tolerance.add_to(*command);
  command->add_flag("--prepared", options->prepared,
                    "Compare with the graph that targets prepare (quantise, say), not with the model as loaded");
  Session::add_json(*command, session);
  command->footer(
      "The model as loaded, on the reference, is what all is compared with. Exit code 0: the target agrees;\n"
      "1: it differs, or an error; 2: usage. --json: agrees, pass, operator (null, or what was found), ...");
  command->callback([&session, &exit_code, options] {
    const auto done = run(*options, session);
    exit_code = !done.ok() ? session.fail(done.error()) : *done ? kDone : kFailed;
  });
}

}  // namespace tenon::cli
