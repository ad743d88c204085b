// What the pass assign-layouts added to a graph, and why: for people, and as JSON for tools.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/support/export.hpp>

namespace tenon {

struct LayoutStep {
  enum class Kind : uint8_t {
    reorder,   // layout.Reorder
    scrub,     // layout.Scrub: `to` is `from`
    constant,  // a constant converted to another layout at compile time: no cost at run time
  };
  Kind kind = Kind::reorder;
  std::string tensor;    // name of the value
  std::string from, to;  // texts of the layouts; "row-major" where there is none
  int64_t bytes = 0;     // reorder: read and written; scrub: of the padding; constant: in the new layout
  double cost = 0;       // in the unit of TargetBackend::layout_costs()
  // Operators that need this layout, as Op::describe() names them; "output 'y'"; "pin of 'x'" for a user's layout.
  std::vector<std::string> forced_by;
  bool operator==(const LayoutStep&) const = default;
};
TENON_API std::string_view layout_step_kind_name(LayoutStep::Kind kind);

struct TENON_API LayoutReport {
  std::vector<LayoutStep> steps;  // in the order of the graph
  double cost = 0;                // of all kernels, reorders and scrubs
  double kernel_cost = 0;
  // No assignment of layouts costs less; equals `cost` if `proven`.
  double lower_bound = 0;
  bool proven = true;

  size_t count(LayoutStep::Kind kind) const;
  int64_t bytes() const;  // of reorders and scrubs
  bool empty() const { return steps.empty(); }
  void append(const LayoutReport& other);  // of another part of the model
  // A table and a line of totals; "" when empty.
  std::string to_string() const;
  // {"cost", "kernel_cost", "lower_bound", "proven", "bytes", "steps": [{"kind", "tensor", "from", "to", "bytes",
  // "cost", "forced_by"}]}
  std::string to_json() const;
};

}  // namespace tenon
