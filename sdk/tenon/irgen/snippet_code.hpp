// SnippetCode: the code that a target generates for one snippet, in one or several forms, and the compilers that make
// it.
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

// One way to run a snippet, with the params and loops of its own kernel.
struct SnippetForm {
  snippet::LinearKernel kernel;
  void (*run)(const int64_t* params) = nullptr;  // reentrant; keeps no state between calls
  std::shared_ptr<const void> memory = nullptr;  // owns the code
  size_t code_bytes = 0;                         // for reports
  int64_t least_row = 0;                         // not used for calls with fewer elements in the innermost dim
  // Its stores are non-temporal. Each row of each output must then begin at a multiple of kAlignBytes, and no output
  // may share memory with an input. Where results are read again, they alone must reach CallRange::least_bytes: smaller
  // ones are wanted in the caches.
  bool non_temporal = false;
  // With non_temporal: rows may begin anywhere. Addresses of outputs, in elements, must then be congruent modulo the
  // kernel's lanes.
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

// Calls that a form may serve.
struct CallRange {
  double least_bytes = 0;   // of all tensors
  bool joins_rows = false;  // only calls whose short rows snippet::rows_to_join() joins
  RowRange rows = {};
  RowRange innermost = {};  // of the innermost dim alone, whose extent is a multiple of `multiple`
  int64_t multiple = 1;
  bool holds_rows(int64_t row, int64_t innermost_elements) const {
    return rows.holds(row) && innermost.holds(innermost_elements) && innermost_elements % multiple == 0;
  }
  bool several_rows = false;  // not calls of a single row
  // True: only where the rows of all outputs are aligned to lines as their first rows are. False: only where some are
  // not.
  std::optional<bool> rows_aligned = std::nullopt;
  // Of tensors, for one fold (CallPlan::folded_bytes() of kColumns).
  double least_folded_bytes = 0, most_folded_bytes = std::numeric_limits<double>::infinity();
  static constexpr int64_t kColumns = 256;
  double most_item_bytes = std::numeric_limits<double>::infinity();  // the same, for all columns
  int64_t most_folded = std::numeric_limits<int64_t>::max();         // elements that a fold reduces
};

// A form for large calls, which most snippets never get: made when the first call of that size is planned. Thread-safe;
// concurrent callers wait for it.
class TENON_API FormOnDemand {
 public:
  using Make = std::function<Result<SnippetForm>(const snippet::Body& body)>;
  FormOnDemand(const CallRange& calls, Make make) : calls_(calls), make_(std::move(make)) {}

  const CallRange& calls() const { return calls_; }
  // `body`: of the code that it belongs to. The form lives as long as this object. Errors are not cached: the next call
  // tries again.
  Result<const SnippetForm*> get(const snippet::Body& body) const;

 private:
  const CallRange calls_;
  const Make make_;
  mutable std::mutex mutex_;
  mutable std::optional<SnippetForm> form_;
};

// A snippet's code, for all extents of its ports. Thread-safe.
struct SnippetCode {
  snippet::Body body;
  SnippetForm form;  // serves any call
  // By ascending calls().least_bytes. The last one that may serve a call runs it.
  std::vector<std::unique_ptr<const FormOnDemand>> larger = {};
  double cycles_per_element = 1;  // of the body's space, as predicted; limits how small a piece per thread may be
};

// Kept dims of known extents that calls neither cut, for threads, nor join (CallPlan::write_known): all dims of small
// bodies, else the innermost where it is short and other dims are cut. `lanes`: of the kernel.
TENON_API snippet::DimSet whole_dims(const snippet::Body& body, int lanes, double cycles_per_element);

// How many short rows of a body of known extents calls join into one. Open extents, or none: 1.
TENON_API int64_t rows_joined(const snippet::Body& body, int lanes);
// Whether they join several.
inline bool joins_rows(const snippet::Body& body, int lanes) { return rows_joined(body, lanes) > 1; }

class TENON_API SnippetCompiler {
 public:
  virtual ~SnippetCompiler();
  // Thread-safe. Returns the same code for bodies that are found equivalent by a cheap test.
  virtual Result<std::shared_ptr<const SnippetCode>> compile(const snippet::Body& body) = 0;
  // Whether it generates code for bodies whose outputs are parts of tensors (BodyPort::cuts).
  virtual bool writes_parts() const { return false; }
  // The accuracy of its code, for the self-check. Borrows the compiler. Default: every operator is rounded correctly.
  virtual snippet::BoundRules bound_rules() const;
};

}  // namespace tenon::irgen
