#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>

#include <tenon/ir/text.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/passes/standard.hpp>

#include "program.hpp"
#include "session.hpp"

namespace tenon::cli {
namespace {

struct OptOptions {
  std::string file, passes, target, stop_after, output, program, picture;
  std::vector<std::string> dump_after;
  bool verify_each = false, timing = false, layouts = false, list = false, dot = false;
  int64_t elide = -1;
  ValueLayoutOptions value_layouts;
};

Result<std::unique_ptr<Graph>> read(const std::string& file) {
  if (file != "-") return load_graph(file);
  const std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  return parse_graph(text, "standard input");
}

// The named passes, or the standard ones; then those that the target adds, which must stay alive while they run.
struct Pipeline {
  PassManager manager;
  std::unique_ptr<TargetBackend> backend;
  std::shared_ptr<LayoutReport> layouts = std::make_shared<LayoutReport>();
};
Result<Pipeline> make_pipeline(const OptOptions& options, const Graph& graph, Session& session) {
  Pipeline pipeline;
  PassManager& manager = pipeline.manager;
  if (!options.passes.empty()) {
    for (const auto name : split(options.passes, ',')) TENON_OK(manager.add(trim(name)));
  } else {
    TENON_TRY(standard, standard_passes());
    manager = std::move(standard);
  }
  if (!options.target.empty()) {
    TENON_TRY(registry, session.usable_registry());
    TENON_TRY(backend, registry->open(options.target));
    TENON_OK(add_layouts(manager, graph, *backend, pipeline.layouts));
    TENON_OK(backend->add_tensor_sel(manager));
    TENON_OK(backend->add_tensor_sched(manager));
    TENON_OK(backend->add_mem_alloc(manager));
    TENON_OK(backend->add_code_emit(manager));
    pipeline.backend = std::move(backend);
  }
  return pipeline;
}

Result<void> write_programs(const OptOptions& options, const Graph& graph) {
  if (options.program.empty() && options.picture.empty()) return {};
  TENON_TRY(dump, dump_programs(graph), "the program of '", options.file, "'");
  if (!options.program.empty()) TENON_OK(write_text(options.program, dump.text));
  if (options.picture.empty()) return {};
  if (dump.picture.empty())
    return error(Code::unsupported, "there is no picture of the memory of '", options.file,
                 "': no program of it has an arena whose size is known, as with symbolic dims");
  return write_text(options.picture, dump.picture);
}

Result<void> run(const OptOptions& options, Session& session) {
  if (options.list) {
    Json document = Json::array();
    for (const Pass* pass : all_passes()) {
      session.say(str(pass->name, "\n    ", pass->contract));
      document.push_back({{"name", pass->name}, {"contract", pass->contract}, {"needs", pass->needs}});
    }
    session.result(document);
    return {};
  }
  TENON_TRY(graph, read(options.file));
  TENON_OK(verify(*graph), "verifying ", options.file);
  TENON_TRY(layouts, options.value_layouts.by_value());
  for (const auto& [value, layout] : layouts) TENON_OK(set_layout(*graph, value, layout));
  TENON_TRY(pipeline, make_pipeline(options, *graph, session));
  for (const std::string& name : options.dump_after)
    if (name != "*" &&
        std::ranges::find(pipeline.manager.passes(), name, &Pass::name) == pipeline.manager.passes().end())
      return error(Code::not_found, "--dump-after names '", name, "', and no such pass is to run");
  const PrintOptions print_options{.types = true, .elide_beyond = options.elide};
  PassOptions pass_options;
  pass_options.verify_each = options.verify_each;
  pass_options.stop_after = options.stop_after;
  pass_options.dump_after.insert(options.dump_after.begin(), options.dump_after.end());
  pass_options.dump = [&](const std::string& pass, const Graph& now) {
    std::fprintf(stderr, "# after %s\n%s", pass.c_str(), print(now, print_options).c_str());
  };
  TENON_TRY(report, pipeline.manager.run(*graph, pass_options));
  if (options.timing) std::fprintf(stderr, "%s", report.to_string().c_str());
  if (options.layouts) std::fprintf(stderr, "%s", pipeline.layouts->to_string().c_str());
  const std::string text = options.dot ? to_dot(*graph) : print(*graph, print_options);
  if (options.output.empty()) {
    if (!session.json) std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    TENON_OK(write_text(options.output, text));
  }
  TENON_OK(write_programs(options, *graph));
  Json passes = Json::array();
  for (const PassTiming& timing : report.passes) {
    passes.push_back({{"pass", timing.pass}, {"runs", timing.runs}, {"changed", timing.changed},
                      {"milliseconds", timing.milliseconds}});
  }
  session.result({{"passes", passes}, {"milliseconds", report.milliseconds},
                  {"layouts", Json::parse(pipeline.layouts->to_json())},
                  {"text", options.output.empty() ? Json(text) : Json()}});
  return {};
}

}  // namespace

void add_opt(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("opt", "Run passes: a graph in, text IR out");
  auto options = std::make_shared<OptOptions>();
  auto* file =
      command->add_option("FILE", options->file, "Text IR (.tir), an ONNX model, or - for text on standard input");
  command->add_option("--passes", options->passes, "Names with commas between; default: the standard passes")
      ->check(CLI::Validator([](const std::string& names) { return names.empty() ? "no pass is named" : ""; }, ""));
  command->add_option("--target", options->target,
                      "Add what this target does to its part of a graph, in all four phases");
  command
      ->add_option("--dump-after", options->dump_after,
                   "Passes after which the graph is printed on standard error; *: all")
      ->delimiter(',');
  command->add_option("--stop-after", options->stop_after, "The last pass to run");
  command->add_option("--elide", options->elide, "Leave out tensors of more elements than this")
      ->check(CLI::Range(int64_t{0}, INT64_MAX));
  command->add_option("-o,--output", options->output, "Write the text here")->check(file_name());
  command->add_option("--program", options->program, "Write the programs that the graph becomes on the host here")
      ->check(file_name());
  command->add_option("--memory", options->picture, "Write a picture of their memory over time here (HTML)")
      ->check(file_name());
  options->value_layouts.add_to(*command);
  command->add_flag("--verify-each", options->verify_each, "Verify after each pass");
  command->add_flag("--timing", options->timing, "Time of each pass, on standard error");
  command->add_flag("--layouts", options->layouts,
                    "What the target's layouts cost and who asks for them, on standard error");
  command->add_flag("--dot", options->dot, "Graphviz instead of text IR");
  command->add_flag("--list", options->list, "List the passes and their contracts");
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, options, file] {
    if (!options->list && file->count() == 0) throw CLI::RequiredError("FILE");
    const auto done = run(*options, session);
    exit_code = done.ok() ? kDone : session.fail(done.error());
  });
}

}  // namespace tenon::cli
