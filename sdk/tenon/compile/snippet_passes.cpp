#include <tenon/compile/snippet_passes.hpp>

#include <utility>

namespace tenon {
namespace {

const PassRegistration kSnippetPassesRegistered({{
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

Pass tokenize_snippets_pass(snippet::TokenizeOptions options) {
  return {.name = "tokenize-snippets",
          .contract = "Needs types. Keeps values that leave snippets. Leaves snippet.Subgraph operators.",
          .run = [options = std::move(options)](Graph& graph) -> Result<Change> {
            TENON_TRY(made, snippet::tokenize_snippets(graph, options));
            return made ? Change::yes : Change::no;
          }};
}

}  // namespace tenon
