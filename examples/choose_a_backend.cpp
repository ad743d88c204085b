// Chooses targets at run time: lists the available ones, compiles for several in order of preference, and shows where
// each operator was placed and why, and what happens without fallback.
//
//   choose_a_backend MODEL TARGET [TARGET]...     names, or the YAML files of target descriptions
#include <cstdio>
#include <string>
#include <vector>

#include <tenon/compile/compile.hpp>

#include "exit_code.hpp"

using namespace tenon;

namespace {

void list_targets(TargetRegistry& registry) {
  std::printf("targets:\n");
  for (const TargetStatus& target : registry.targets()) {
    std::printf("  %-16s %s\n", target.name.c_str(), target.available ? "available" : target.reason.c_str());
  }
  std::printf("auto would take '%s'\n\n", registry.best_target().c_str());
}

void explain(const PlacementReport& placement) {
  std::printf("%s\n", placement.to_string().c_str());
  for (const PlacementEntry& entry : placement.entries) {
    for (const auto& [target, reason] : entry.refusals) {
      std::printf("  %s '%s' runs on %s: %s\n", entry.op.c_str(), entry.label.c_str(), entry.target.c_str(),
                  reason.c_str());
    }
  }
}

Result<void> choose(const std::string& model, const std::vector<std::string>& targets) {
  TargetRegistry registry;
  list_targets(registry);

  // Each operator is placed on the first target that accepts it, or on the reference if none does.
  TENON_TRY(compiled, compile_file(model, registry, {.targets = targets}));
  explain(compiled->placement());
  std::printf("%zu parts run one after another\n\n", compiled->segments().size());

  // An application may forbid the fallback. Needing it is then an error that names the operator and the reasons.
  const auto strict = compile_file(model, registry, {.targets = targets, .no_fallback = true});
  std::printf("without fallback: %s\n", strict.ok() ? "the targets run all of it" : strict.error().to_string().c_str());
  // It may also require a minimum share of operators on the first target.
  const auto half = compile_file(model, registry, {.targets = targets, .min_coverage = 0.5});
  std::printf("at least half on the first: %s\n", half.ok() ? "yes" : half.error().to_string().c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: choose_a_backend MODEL TARGET [TARGET]...\n");
    return 2;
  }
  return example::exit_code(choose(argv[1], std::vector<std::string>(argv + 2, argv + argc)));
}
