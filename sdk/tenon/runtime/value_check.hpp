// ValueCheck: checks the values of each run against the declarations of an executable's inputs or outputs.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <tenon/runtime/executable.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon {

// Gives the errors of check_input and check_output (tensor/declared.hpp) for each value, in a few nanoseconds where
// there is none. Thread-safe.
class TENON_API ValueCheck {
 public:
  ValueCheck() = default;  // of no values
  explicit ValueCheck(const std::vector<ValueInfo>& infos);

  // As many values as infos: callers check the count. A symbol of dims has the same value in all of them.
  Result<void> inputs(std::span<const Datum* const> values) const;
  Result<void> inputs(std::span<const Datum> values) const;
  // Also checks that tensors on a device lie inside their buffers.
  Result<void> inputs(std::span<const RunValue> values) const;
  Result<void> output(size_t i, const Datum& value) const;
  Result<void> output(size_t i, const RunValue& value) const;

 private:
  // A dim of a tensor: its extent, or else the index of its symbol; neither: any extent.
  struct DimRule {
    int64_t extent = -1, symbol = -1;
  };
  // For a value that is declared as a tensor of a given element type and rank; others are checked in full each time.
  struct Rule {
    ElementType element;             // none: it is none of these
    Dims dims;                       // where all are numbers, ...
    std::vector<DimRule> dim_rules;  // ... else these
  };
  bool fits(size_t i, ElementType element, const Dims& dims, std::span<int64_t> symbols) const;
  bool fits(size_t i, const Datum& value, std::span<int64_t> symbols) const;
  bool fits(size_t i, const RunValue& value, std::span<int64_t> symbols) const;
  template <class Get>
  bool all_fit(size_t count, const Get& get) const;
  template <class Get>
  Result<void> host_inputs(size_t count, const Get& get) const;

  std::vector<ValueInfo> infos_;
  std::vector<Rule> rules_;
  size_t symbols_ = 0;
};

}  // namespace tenon
