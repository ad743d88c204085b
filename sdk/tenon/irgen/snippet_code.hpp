// SnippetCode: what a target made of one snippet, in one or several forms, and the compilers that make it.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/body/body_bounds.hpp>
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::irgen {

// One way to run a snippet, with params and loops of its own kernel.
struct SnippetForm {
  snippet::LinearKernel kernel;
  void (*run)(const int64_t* params) = nullptr;  // reentrant; keeps nothing from call to call
  std::shared_ptr<const void> memory = nullptr;  // keeps `run` where it is
  size_t code_bytes = 0;                         // for reports
  int64_t least_row = 0;                         // calls with fewer elements in the innermost dim are not for it
  // Its stores are non-temporal. Then each row of each output begins at a multiple of kAlignBytes, no output lies
  // on an input, and where results are read again they alone have to make CallRange::least_bytes: others would be
  // wanted in the caches.
  bool non_temporal = false;
  // With non_temporal: rows may begin anywhere. Addresses of outputs, in elements, then lie alike modulo the kernel's
  // lanes.
  bool any_rows = false;
  // With non_temporal: outputs may begin anywhere, and so may their rows.
  bool whole_items = false;
};

// Elements of a row (Body::first_of_row()).
struct RowRange {
  int64_t least = 0, most = std::numeric_limits<int64_t>::max();
  bool holds(int64_t row) const { return least <= row && row <= most; }
  bool operator==(const RowRange&) const = default;
};

// Calls that a form may be for.
struct CallRange {
  double least_bytes = 0;   // of all tensors
  bool joins_rows = false;  // only those whose short rows snippet::rows_to_join() joins
  RowRange rows = {};
  RowRange innermost = {};  // of the innermost dim alone, which has a multiple of `multiple`
  int64_t multiple = 1;
  bool holds_rows(int64_t row, int64_t innermost_elements) const {
    return rows.holds(row) && innermost.holds(innermost_elements) && innermost_elements % multiple == 0;
  }
  bool several_rows = false;  // not those of a single row
  // Only where the rows of all outputs begin at whole lines as those of the first do, or only where some do not.
  std::optional<bool> rows_aligned = std::nullopt;
  // Of tensors, for one fold (CallPlan::folded_bytes() of kColumns).
  double least_folded_bytes = 0, most_folded_bytes = std::numeric_limits<double>::infinity();
  static constexpr int64_t kColumns = 256;
  double most_item_bytes = std::numeric_limits<double>::infinity();  // the same, of all columns
  int64_t most_folded = std::numeric_limits<int64_t>::max();         // elements that a fold takes
};

// A form for large calls, which most snippets never see: made when the first call of that size is planned. Any thread;
// those who come meanwhile wait for it.
class TENON_API FormOnDemand {
 public:
  using Make = std::function<Result<SnippetForm>(const snippet::Body& body)>;
  FormOnDemand(const CallRange& calls, Make make) : calls_(calls), make_(std::move(make)) {}

  const CallRange& calls() const { return calls_; }
  // `body`: of the code that it belongs to. The form lives as long as this. An error is not kept: who asks next tries
  // again.
  Result<const SnippetForm*> get(const snippet::Body& body) const;

 private:
  const CallRange calls_;
  const Make make_;
  mutable std::mutex mutex_;
  mutable std::optional<SnippetForm> form_;
};

// A snippet's code, for all extents of its ports. Any thread.
struct SnippetCode {
  snippet::Body body;
  SnippetForm form;  // serves any call
  // By ascending calls().least_bytes. A call is run by the last that may serve it.
  std::vector<std::unique_ptr<const FormOnDemand>> larger = {};
  double cycles_per_element = 1;  // of the body's space, as predicted: how small a piece for a thread may be
};

// Kept dims of known extents that calls neither cut, for threads, nor join (CallPlan::write_known): all of small
// bodies, else the innermost where it is short and other dims are cut. `lanes`: of the kernel.
TENON_API snippet::DimSet whole_dims(const snippet::Body& body, int lanes, double cycles_per_element);

// Do calls of a body of known extents walk several of its short rows as one? Of open extents: false.
TENON_API bool joins_rows(const snippet::Body& body, int lanes);

class TENON_API SnippetCompiler {
 public:
  virtual ~SnippetCompiler();
  // Any thread. The same code for bodies that compute the same, as far as it can be told cheaply.
  virtual Result<std::shared_ptr<const SnippetCode>> compile(const snippet::Body& body) = 0;
  // Does it make code of bodies whose outputs are parts of tensors (BodyPort::cuts)?
  virtual bool writes_parts() const { return false; }
  // How exact its code is, for the self-check. Borrows the compiler. Without it: every operator is rounded correctly.
  virtual snippet::BoundRules bound_rules() const;
};

}  // namespace tenon::irgen
