// The passes of the snippet room, which is below the passes in the layering.
#pragma once
#include <tenon/passes/pass_manager.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

// Turns memory-bound operators into snippets, for a target whose limits the options state.
TENON_API Pass tokenize_snippets_pass(snippet::TokenizeOptions options);

}  // namespace tenon
