#include "report_page.hpp"

#include <algorithm>

#include <tenon/support/html.hpp>
#include <tenon/support/str.hpp>

#include "statistics.hpp"

namespace tenon::cli {
namespace {

// Longer tables are collapsed; this many bars fit on a screen.
constexpr size_t kRowsOpen = 30, kMostBars = 2000;

std::string escaped(const Json& text) { return html_escaped(text.get<std::string>()); }

// Names come from models: bytes that are not UTF-8 are replaced, as in the document.
std::string valid_utf8(const std::string& page) {
  return Json::parse(Json(page).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

std::string megabytes(const Json& bytes) { return fixed(bytes.get<double>() / 1e6, 3); }
std::string percent(const Json& share) { return fixed(100 * share.get<double>(), 1); }
// For small kernels, a tenth of a microsecond would be too coarse; unknown times are left empty.
std::string time_us(const Json& us) {
  const double value = us.get<double>();
  return value > 0 ? fixed(value, value < 1 ? 3 : 1) : "";
}

// Cells are already HTML.
class Table {
 public:
  explicit Table(const std::vector<std::string>& heads = {}) {
    if (!heads.empty()) add(heads, "th");
  }
  void row(const std::vector<std::string>& cells) {
    add(cells, "td");
    ++rows_;
  }
  // The whole table; a long one is collapsed to its title.
  std::string text(const std::string& title) const {
    return str("<details", rows_ > kRowsOpen ? "" : " open", "><summary>", title, " (", rows_, ")</summary>\n<table>\n",
               text_, "</table>\n</details>\n");
  }

 private:
  void add(const std::vector<std::string>& cells, const char* element) {
    text_ += "<tr>";
    for (const std::string& cell : cells) text_ += str("<", element, ">", cell, "</", element, ">");
    text_ += "</tr>\n";
  }
  std::string text_;
  size_t rows_ = 0;
};

std::string paragraph(const std::string& text) { return str("<p>", text, "</p>\n"); }

std::string listed(const Json& texts) {
  std::string out;
  for (const Json& text : texts) out += str(out.empty() ? "" : ", ", escaped(text));
  return out;
}

std::string head(const Json& report) {
  const Json& host = report["host"];
  Table facts;
  facts.row({"model", escaped(report["model"])});
  facts.row({"targets", listed(report["targets"])});
  facts.row({"host", str(escaped(host["processor"]), ", ", host["hardware_threads"].get<unsigned>(),
                         " hardware threads, ", escaped(host["system"]))});
  facts.row({"made at", escaped(report["made_at"])});
  facts.row({"compiled in", str(fixed(report["compile_ms"].get<double>(), 1), " ms")});
  facts.row(
      {"median", str(fixed(report["median_ms"].get<double>(), 3), " ms over ", report["runs"].get<int>(), " runs on ",
                     report["threads"].get<int>(), " threads; least ", fixed(report["min_ms"].get<double>(), 3),
                     " ms; inputs of seed ", report["seed"].get<uint64_t>())});
  facts.row({"peak memory", str(fixed(report["peak_rss_mb"].get<double>(), 1), " MB of this process")});
  return facts.text("Facts");
}

std::string placement(const Json& placement) {
  std::string out = "<h2>What ran where and why</h2>\n";
  if (placement["operators"].empty()) return out + paragraph("The model has no operators.");
  Table targets({"target", "operators"}), reasons({"times", "target", "why it refused"});
  for (const auto& [target, count] : placement["operators_by_target"].items())
    targets.row({html_escaped(target), str(count.get<int>())});
  out += targets.text("Operators by target");
  out += paragraph(str(placement["fallbacks"].get<int>(), " of ", placement["operators"].size(),
                       " operators were refused by a target that was asked before the one that runs them."));
  for (const Json& reason : placement["reasons"])
    reasons.row({str(reason["count"].get<int>()), escaped(reason["target"]), escaped(reason["reason"])});
  if (!placement["reasons"].empty()) out += reasons.text("Reasons");
  Table operators({"operator", "label", "target", "refused by"});
  for (const Json& op : placement["operators"]) {
    std::string refusals;
    for (const Json& refusal : op["refusals"])
      refusals += str(refusals.empty() ? "" : "<br>", escaped(refusal["target"]), ": ", escaped(refusal["reason"]));
    operators.row({escaped(op["op"]), escaped(op["label"]), escaped(op["target"]), refusals});
  }
  return out + operators.text("All operators, in the order of the graph");
}

std::string fusion(const Json& fusion) {
  std::string out = "<h2>Fusion</h2>\n";
  if (fusion["kernels"].empty()) return out + paragraph("No target generated kernels for this model, or none tells.");
  out += paragraph(str(fusion["operators"].get<size_t>(), " operators in ", fusion["kernels"].size(),
                       " generated kernels: ", megabytes(fusion["bytes_unfused"]), " MB walked one by one, ",
                       megabytes(fusion["bytes_fused"]), " MB fused; predicted ", time_us(fusion["predicted_us"]),
                       " us, measured ", time_us(fusion["measured_us"]), " us."));
  Table kernels(
      {"kernel", "target", "operators", "MB unfused", "MB fused", "predicted us", "measured us", "code bytes"});
  for (const Json& kernel : fusion["kernels"])
    kernels.row({escaped(kernel["name"]), escaped(kernel["target"]), listed(kernel["operators"]),
                 megabytes(kernel["bytes_unfused"]), megabytes(kernel["bytes_fused"]), time_us(kernel["predicted_us"]),
                 time_us(kernel["measured_us"]), str(kernel["code_bytes"].get<size_t>())});
  return out + kernels.text("Kernels");
}

std::string arena_text(const Json& arena) {
  return str(arena["arena_bytes"].get<size_t>(), " bytes; no plan needs less than ",
             arena["arena_lower_bound_bytes"].get<size_t>(), " (efficiency ", percent(arena["efficiency"]), "%)");
}

std::string memory(const Json& memory, std::span<const MemoryChart> charts) {
  std::string out =
      "<h2>Memory map</h2>\n" + paragraph(str("Of one run: ", arena_text(memory),
                                              ". That is memory of the parts, which share it where they can, and of ",
                                              "values that go from one part to another; pictures are of parts."));
  Table segments({"part", "target", "arena"});
  for (size_t i = 0; i < memory["segments"].size(); ++i) {
    const Json& segment = memory["segments"][i];
    const bool drawn = segment["spaces"].get<size_t>() > 0;
    segments.row({str(i), escaped(segment["target"]),
                  arena_text(segment) + (drawn ? "" : "; the target does not tell where its values lie")});
  }
  if (!memory["segments"].empty()) out += segments.text("Parts of the model");
  for (size_t i = 0; i < charts.size(); ++i) {
    const Json& space = memory["spaces"][i];
    // The first pictures are expanded: as many as somebody would scroll past.
    constexpr size_t kPicturesOpen = 4;
    out += str("<details", i < kPicturesOpen ? " open" : "", "><summary>part ", space["segment"].get<size_t>(), " on ",
               escaped(space["target"]), ", space ", escaped(space["space"]), ": ", arena_text(space), "; ",
               space["blocks"].size(), " blocks</summary>\n", chart_to_svg(charts[i]), "</details>\n");
  }
  return out;
}

std::string step_name(const Json& step) {
  const std::string label = escaped(step["label"]);
  return label.empty() ? escaped(step["op"]) : str(escaped(step["op"]), " ", label);
}

// Steps run to the right. If there are very many, each bar represents adjacent steps, with the height of the longest.
std::string bars(const Json& steps) {
  const size_t together = (steps.size() + kMostBars - 1) / kMostBars;
  const auto longer = [](const Json& a, const Json& b) { return a["us"].get<double>() < b["us"].get<double>(); };
  const double most = (*std::max_element(steps.begin(), steps.end(), longer))["us"].get<double>();
  const double width = 1000 / static_cast<double>((steps.size() + together - 1) / together);
  std::string out = "<svg class=\"timeline\" viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\">\n";
  for (size_t i = 0; i < steps.size(); i += together) {
    const auto begin = steps.begin() + static_cast<ptrdiff_t>(i);
    const auto end = steps.begin() + static_cast<ptrdiff_t>(std::min(steps.size(), i + together));
    const Json& step = *std::max_element(begin, end, longer);
    const double us = step["us"].get<double>(), height = most > 0 ? 1000 * us / most : 0;
    out += str("<rect x=\"", fixed(static_cast<double>(i / together) * width, 3), "\" y=\"", fixed(1000 - height, 2),
               "\" width=\"", fixed(width, 3), "\" height=\"", fixed(height, 2), "\" fill=\"",
               html_colour(step["op"].get<std::string>()), "\"><title>step ", i,
               together > 1 ? str(" and on, the longest of ", end - begin) : "", ": ", step_name(step), ", ",
               fixed(us, us < 1 ? 3 : 1), " us, ", percent(step["share"]), "%</title></rect>\n");
  }
  return out + "</svg>\n";
}

std::string timeline(const Json& timeline) {
  std::string out = "<h2>Timeline</h2>\n";
  const Json& steps = timeline["steps"];
  if (steps.empty()) return out + paragraph("No step was timed: there is none, or the target does not tell.");
  out += paragraph(str(steps.size(), " steps of one run, ", time_us(timeline["total_us"]),
                       " us together; each bar is as high as its step took, the highest is the slowest."));
  out += bars(steps);
  const std::vector<std::string> heads = {"step", "operator", "us", "% of all", "counted by the device"};
  const auto row_of = [&](size_t i) -> std::vector<std::string> {
    std::string counters;
    for (const auto& [name, count] : steps[i]["counters"].items())
      counters += str(counters.empty() ? "" : ", ", html_escaped(name), " ", count.get<int64_t>());
    return {str(i), step_name(steps[i]), time_us(steps[i]["us"]), percent(steps[i]["share"]), counters};
  };
  Table slowest(heads), all(heads);
  for (const Json& i : timeline["slowest"]) slowest.row(row_of(i.get<size_t>()));
  for (size_t i = 0; i < steps.size(); ++i) all.row(row_of(i));
  return out + slowest.text("The slowest") + all.text("All steps, in order");
}

}  // namespace

std::string report_page(const Json& report, std::span<const MemoryChart> charts) {
  const std::string title = str("Report of ", escaped(report["model"]));
  return valid_utf8(str(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>", title,
      "</title>\n<style>\nbody { font: 14px sans-serif; margin: 2em }\n", "table { border-collapse: collapse }\n",
      "th, td { border: 1px solid #ccc; padding: 2px 8px; text-align: left; vertical-align: top }\n",
      "summary { cursor: pointer; margin: .5em 0 }\n",
      "svg.timeline { width: 100%; height: 30vh; border: 1px solid #999 }\n", chart_style(),
      "</style>\n</head>\n<body>\n<h1>", title, "</h1>\n", head(report), placement(report["placement"]),
      fusion(report["fusion"]), memory(report["memory"], charts), timeline(report["timeline"]), "</body>\n</html>\n"));
}

}  // namespace tenon::cli
