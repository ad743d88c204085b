// A report as an HTML page.
#pragma once
#include <span>
#include <string>

#include <tenon/runtime/memory_chart.hpp>

#include "session.hpp"

namespace tenon::cli {

// One self-contained HTML page from the document that `tenon report --json` prints. `charts` are the pictures of its
// memory.spaces, in the same order. Names are escaped.
std::string report_page(const Json& report, std::span<const MemoryChart> charts);

}  // namespace tenon::cli
