// The facts of a report as a page for a browser.
#pragma once
#include <span>
#include <string>

#include <tenon/runtime/memory_chart.hpp>

#include "session.hpp"

namespace tenon::cli {

// One HTML page that needs nothing else, of the document that `tenon report --json` prints. `charts` are the pictures
// of its memory.spaces, in their order. Names in it are escaped.
std::string report_page(const Json& report, std::span<const MemoryChart> charts);

}  // namespace tenon::cli
