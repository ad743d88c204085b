// tenon quantise: converts a float model with inputs, or a model with its own scales, to fused integer layers.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <tenon-ext/quant/accuracy.hpp>
#include <tenon-ext/quant/calibrate.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/onnx/export.hpp>
#include <tenon/onnx/test_data.hpp>
#include <tenon/passes/standard.hpp>

#include "session.hpp"
#include "statistics.hpp"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

struct QuantiseCommand {
  std::string model, data, output, method = "minmax", profile_in, profile_out;
  int random = 0, threads = 0;
  uint64_t seed = 1;
};

// ---- Inputs ----

// Reads a folder with input_0.pb ..., one for each of the graph's inputs.
Result<std::vector<Datum>> read_sample(const fs::path& folder, const Graph& graph) {
  std::vector<Datum> inputs;
  for (size_t i = 0; i < graph.body().input_count(); ++i) {
    const Value& input = *graph.body().input(i);
    TENON_TRY(value, read_test_data((folder / str("input_", i, ".pb")).string(), input.type()), "input '", input.name(),
              "'");
    inputs.push_back(std::move(value));
  }
  return inputs;
}

// Reads DIR itself, or each of its folders, in order.
Result<quant::Samples> read_samples(const std::string& folder, const Graph& graph) {
  std::vector<fs::path> folders;
  std::error_code status;
  if (fs::exists(fs::path(folder) / "input_0.pb", status)) {
    folders.push_back(folder);
  } else {
    for (const auto& entry : fs::directory_iterator(folder, status)) {
      if (fs::exists(entry.path() / "input_0.pb", status)) folders.push_back(entry.path());
    }
  }
  if (folders.empty()) {
    return error(Code::not_found, "'", folder, "' has no input_0.pb, and no folder with one");
  }
  std::sort(folders.begin(), folders.end());
  quant::Samples samples;
  for (const fs::path& sample : folders) {
    TENON_TRY(inputs, read_sample(sample, graph), sample.string());
    samples.push_back(std::move(inputs));
  }
  return samples;
}

// Normally distributed floats, like normalised images; integers 0 or 1; unknown extents 1.
Result<quant::Samples> random_samples(const QuantiseCommand& command, const Graph& graph) {
  std::mt19937_64 random(command.seed);
  std::normal_distribution<double> normal;
  quant::Samples samples(static_cast<size_t>(command.random));
  for (std::vector<Datum>& inputs : samples) {
    for (size_t i = 0; i < graph.body().input_count(); ++i) {
      const Type& type = graph.body().input(i)->type();
      if (!type.is_tensor() || !type.shape().ranked() || !type.element().is_number()) {
        return error(Code::unsupported, "input '", graph.body().input(i)->name(), "' is ", type,
                     "; give samples with --data");
      }
      Dims dims;
      for (const Dim& dim : type.shape().dims()) dims.push_back(dim.is_static() ? dim.value() : 1);
      TENON_TRY(tensor, Tensor::zeros(type.element(), dims));
      for (int64_t k = 0; k < tensor.size(); ++k) {
        tensor.set_double(k, type.element().is_float() ? normal(random) : static_cast<double>(random() % 2));
      }
      inputs.emplace_back(std::move(tensor));
    }
  }
  return samples;
}

Result<quant::Samples> gather_samples(const QuantiseCommand& command, const Graph& graph) {
  quant::Samples samples;
  if (!command.data.empty()) {
    TENON_TRY(read, read_samples(command.data, graph));
    samples = std::move(read);
  }
  if (command.random > 0) {
    TENON_TRY(made, random_samples(command, graph));
    std::move(made.begin(), made.end(), std::back_inserter(samples));
  }
  return samples;
}

// ---- Profiles ----

// The profile from --profile, extended by the samples.
Result<quant::Profile> make_profile(const QuantiseCommand& command, const Graph& graph, const quant::Samples& samples,
                                    ParallelFor& pool) {
  quant::Profile profile;
  if (!command.profile_in.empty()) {
    TENON_TRY(text, read_text(command.profile_in));
    TENON_TRY(read, quant::Profile::parse(text, command.profile_in));
    profile = std::move(read);
  } else {
    TENON_OK(quant::calibrate(graph, samples, profile, pool), "calibrating '", graph.name(), "'");
  }
  if (!command.profile_out.empty()) TENON_OK(write_text(command.profile_out, profile.to_json()));
  return profile;
}

// ---- The model ----

struct Quantised {
  std::unique_ptr<Graph> expected;  // floats, or the model with its own scales
  std::unique_ptr<Graph> rounded;   // with quant.Round
  std::unique_ptr<Graph> graph;     // integers
  std::vector<quant::IntegerValue> values;
  bool calibrated = false;
};

Result<void> optimise(Graph& graph) {
  TENON_TRY(passes, standard_passes());
  TENON_OK(passes.run(graph), "optimising '", graph.name(), "'");
  return {};
}

Result<Quantised> quantise(const QuantiseCommand& command, std::unique_ptr<Graph> graph, const quant::Samples& samples,
                           ParallelFor& pool) {
  Quantised made;
  made.calibrated = !quant::has_scales(*graph);
  if (made.calibrated) {
    TENON_OK(optimise(*graph));
    if (samples.empty() && command.profile_in.empty()) {
      return error(Code::invalid_argument, "'", command.model,
                   "' has no scales: give inputs to calibrate it with (--data, --random) or a profile (--profile)");
    }
    made.expected = graph->clone();
    TENON_TRY(profile, make_profile(command, *graph, samples, pool));
    const auto method = command.method == "kl" ? quant::Method::kl : quant::Method::minmax;
    TENON_OK(quant::insert_rounds(*graph, profile, method));
  } else {
    TENON_OK(quant::expand_quantised(*graph));
    made.expected = graph->clone();
    TENON_OK(quant::round_to_powers(*graph));
  }
  made.rounded = graph->clone();
  TENON_OK(quant::legalise_quantised(*graph, &made.values), "quantising '", graph->name(), "'");
  TENON_OK(verify(*graph), "the verifier, after quantising");
  made.graph = std::move(graph);
  return made;
}

// quant.Round as QuantizeLinear and DequantizeLinear with powers of two, which other programs can read.
Result<void> write_model(const QuantiseCommand& command, const Quantised& made) {
  if (!command.output.ends_with(".onnx")) return write_text(command.output, print(*made.graph, {.types = true}));
  const auto graph = made.rounded->clone();
  TENON_OK(quant::fold_factors(*graph), "making powers of two of the steps");
  for (Op* op : graph->body().ops()) {
    if (!op->is("quant.Round")) continue;
    Builder builder(graph->body(), op);
    TENON_TRY(parts, op->def()->decompose_fn()(builder, *op));
    op->result()->replace_all_uses_with(parts[0]);
    op->erase();
  }
  return export_model(*graph, command.output);
}

// ---- Report ----

Json distance_json(const quant::Distance& distance) {
  const double sqnr = distance.sqnr_db();
  return {{"sqnr_db", std::isfinite(sqnr) ? Json(sqnr) : Json()}, {"max_abs", distance.max_abs}};
}

void say_accuracy(const quant::Accuracy& accuracy, Session& session, Json& document) {
  Json layers = Json::array(), outputs = Json::array();
  for (const auto& [value, distance] : accuracy.layers) {
    session.say(str("  ", fixed(distance.sqnr_db(), 1), " dB  max ", fixed(distance.max_abs, 4), "  ",
                    fixed(value.factor, 3), " * 2^", value.exponent, "  ", value.op, "  ", value.name));
    Json entry = distance_json(distance);
    entry["value"] = value.name, entry["operator"] = value.op, entry["exponent"] = value.exponent;
    entry["factor"] = value.factor;
    layers.push_back(std::move(entry));
  }
  for (const quant::OutputAccuracy& output : accuracy.outputs) {
    session.say(str("output '", output.name, "': SQNR ", fixed(output.distance.sqnr_db(), 1),
                    " dB, largest difference ", fixed(output.distance.max_abs, 4), ", same top class in ",
                    output.same_top, " of ", output.rows, " rows"));
    Json entry = distance_json(output.distance);
    entry["name"] = output.name, entry["rows"] = output.rows, entry["same_top"] = output.same_top;
    outputs.push_back(std::move(entry));
  }
  document["layers"] = layers;
  document["outputs"] = outputs;
}

Result<void> run(const QuantiseCommand& command, Session& session) {
  TENON_TRY(graph, load_graph(command.model));
  TENON_OK(verify(*graph), "verifying ", command.model);
  TENON_TRY(samples, gather_samples(command, *graph));
  ThreadPool pool(command.threads);
  TENON_TRY(made, quantise(command, std::move(graph), samples, pool));
  if (!command.output.empty()) TENON_OK(write_model(command, made));
  Json document = {{"model", command.model},
                   {"calibrated", made.calibrated},
                   {"method", command.method},
                   {"samples", samples.size()},
                   {"integer_values", made.values.size()}};
  session.say(str(made.values.size(), " values in 8 bits, ",
                  made.calibrated ? str("calibrated by ", command.method) : "by the model's own scales", "; against ",
                  made.calibrated ? "floats" : "the model", " on ", samples.size(), " samples:"));
  if (!samples.empty()) {
    TENON_TRY(accuracy, quant::compare_accuracy(*made.expected, *made.graph, made.values, samples, pool));
    say_accuracy(accuracy, session, document);
  }
  document["floats"] = Json::array();
  for (const auto& [op, reason] : quant::float_operators(*made.graph)) {
    session.say(str("stays in floats: ", op, ": ", reason));
    document["floats"].push_back({{"operator", op}, {"reason", reason}});
  }
  session.result(document);
  return {};
}

}  // namespace

void add_quantise(CLI::App& app, Session& session, int& exit_code) {
  auto* command =
      app.add_subcommand("quantise", "Make 8-bit integer layers of a model, and say how far they are from it");
  auto options = std::make_shared<QuantiseCommand>();
  command->add_option("MODEL", options->model, "A float model, or one with QuantizeLinear and the like")->required();
  command->add_option("--data", options->data, "A folder with input_0.pb ..., or a folder of such folders")
      ->type_name("DIR")
      ->check(file_name());
  command->add_option("--random", options->random, "Inputs from a normal distribution")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  command->add_option("--seed", options->seed, "Seed of those inputs")->check(seed());
  command->add_option("--method", options->method, "How scales are chosen")->check(CLI::IsMember({"minmax", "kl"}));
  command->add_option("--profile", options->profile_in, "Scales from this profile instead of from runs")
      ->type_name("FILE")
      ->check(file_name());
  command->add_option("--save-profile", options->profile_out, "Write what was measured here (JSON)")
      ->type_name("FILE")
      ->check(file_name());
  command->add_option("--threads", options->threads, "Threads of the runs; 0: all")->check(CLI::Range(0, 1024));
  command->add_option("-o,--output", options->output, "Integer layers as text IR (.tir), or QDQ form (.onnx)")
      ->check(CLI::Validator(
          [](const std::string& file) {
            return file.ends_with(".tir") || file.ends_with(".onnx")
                       ? ""
                       : str("'", file, "' ends neither in .tir, for integer layers, nor in .onnx, for QDQ form");
          },
          ""));
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, options] {
    const auto done = run(*options, session);
    exit_code = done.ok() ? kDone : session.fail(done.error());
  });
}

}  // namespace tenon::cli
