// Graphs that are one snippet, run as programs on machine code.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenon/ir/text.hpp>
#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/snippet_kernels.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>
#include <tenon/support/check.hpp>

#include "x86/compiler.hpp"

namespace tenon::x86::testing {

// `text`: the graph.
inline Result<std::vector<Datum>> run_snippet(const std::string& text, const std::shared_ptr<Compiler>& compiler,
                                              const std::vector<Datum>& inputs, irgen::SnippetOptions options = {},
                                              ParallelFor& threads = serial()) {
  TENON_TRY(graph, parse_graph(text));
  snippet::TokenizeOptions tokenize;
  tokenize.can_emit = [&](const codegen::Signature& s) { return compiler->can_emit(s); };
  TENON_TRY(snippets, snippet::tokenize_snippets(*graph, tokenize));
  TENON_CHECK(snippets == 1, snippets, " snippets: ", text);
  const irgen::SnippetKernels kernels("x86", compiler, options);
  TENON_TRY(runner, irgen::GraphRunner::prepare(*graph, kernels));
  return runner->run(inputs, {.parallel = threads});
}

}  // namespace tenon::x86::testing
