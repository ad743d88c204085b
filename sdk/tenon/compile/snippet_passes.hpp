// The passes of the snippet room, which lies below the passes.
#pragma once
#include <tenon/passes/pass_manager.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

// Memory-bound operators become snippets, for a target whose limits the options say.
TENON_API Pass tokenize_snippets_pass(snippet::TokenizeOptions options);

}  // namespace tenon
