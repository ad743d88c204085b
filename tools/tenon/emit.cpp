// tenon emit: the code that a target generates for a model, with the operator next to each line.
#include "session.hpp"

namespace tenon::cli {
namespace {

struct Listing {
  std::string text;
  Json segments = Json::array();
};

// The listings of all segments that have one. None at all is an error with the reason of each target.
Result<Listing> listing_of(const CompiledModel& model) {
  Listing all;
  std::string refusals;
  for (const CompiledModel::Segment& segment : model.segments()) {
    const auto listing = segment.executable->listing();
    if (!listing.ok()) {
      if (listing.error().code() != Code::unsupported) return listing.error();
      refusals += str("\n  ", segment.target, ": ", listing.error().message());
      continue;
    }
    all.text += *listing;
    all.segments.push_back({{"target", segment.target}, {"listing", *listing}});
  }
  if (all.segments.empty()) return error(Code::unsupported, "no target generated code for this model", refusals);
  return all;
}

}  // namespace

void add_emit(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("emit", "Show the code that a target generates, the operator beside each line");
  auto options = std::make_shared<ModelOptions>();
  auto output = std::make_shared<std::string>();
  options->add_to(*command);
  command->add_option("-o,--output", *output, "Write it to this file")->check(file_name());
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, options, output] {
    const auto work = [&]() -> Result<void> {
      TENON_TRY(model, options->load(session));
      TENON_TRY(listing, listing_of(*model), "model '", options->model, "'");
      if (output->empty()) {
        session.say(listing.text);
      } else {
        TENON_OK(write_text(*output, listing.text));
        session.say(str("wrote ", *output));
      }
      session.result({{"segments", std::move(listing.segments)}});
      return {};
    };
    const auto done = work();
    exit_code = done.ok() ? kDone : session.fail(done.error());
  });
}

}  // namespace tenon::cli
