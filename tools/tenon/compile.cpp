#include "session.hpp"

namespace tenon::cli {

void add_compile(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("compile", "Compile a model into an artefact that runs without the compiler");
  auto options = std::make_shared<ModelOptions>();
  auto output = std::make_shared<std::string>();
  options->add_to(*command);
  command->add_option("-o,--output", *output, "The artefact to write")->required()->check(file_name());
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, options, output] {
    const auto work = [&]() -> Result<void> {
      TENON_TRY(model, options->load(session));
      TENON_OK(model->save(*output));
      session.say(model->placement().to_string());
      if (!model->layouts().empty()) session.say(model->layouts().to_string());
      session.say(str("wrote ", *output));
      Json targets = Json::object();
      for (const auto& entry : model->placement().entries) {
        targets[entry.target] = targets.value(entry.target, 0) + 1;
      }
      session.result({{"output", *output}, {"operators_by_target", targets}, {"segments", model->segments().size()},
                      {"layouts", Json::parse(model->layouts().to_json())}});
      return {};
    };
    const auto done = work();
    exit_code = done.ok() ? kDone : session.fail(done.error());
  });
}

}  // namespace tenon::cli
