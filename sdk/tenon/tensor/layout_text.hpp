// What can be said of a layout's text before there is a tensor (docs/layouts.md has the grammar).
#pragma once
#include <string_view>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// An error where Layout::parse() refuses `text` whatever the tensor.
TENON_API Result<void> check_layout_text(std::string_view text);

}  // namespace tenon
