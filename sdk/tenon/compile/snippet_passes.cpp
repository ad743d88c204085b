// Passes of the snippet room, which lies below the passes.
#include <tenon/passes/pass_manager.hpp>
#include <tenon/snippet/tokenize.hpp>

namespace tenon {
namespace {

const PassRegistration kRegistered({{
    .name = "tokenize-snippets",
    .contract =
        "Memory-bound operators that run in one nest of loops become snippet.Subgraph operators, as if a target\n"
        "had an emitter for everything. Needs inferred types; keeps names of values and outputs.",
    .run = [](Graph& graph) -> Result<Change> {
      TENON_TRY(made, snippet::tokenize_snippets(graph));
      return Change{made != 0};
    },
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon
