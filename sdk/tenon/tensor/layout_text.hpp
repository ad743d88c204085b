// Checks of a layout's text that need no tensor (docs/layouts.md has the grammar).
#pragma once
#include <string_view>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// An error if Layout::parse() would refuse `text` for every tensor.
TENON_API Result<void> check_layout_text(std::string_view text);

}  // namespace tenon
