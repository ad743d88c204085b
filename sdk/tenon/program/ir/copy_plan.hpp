// Copies of boxes by any map of indices: the implementation of the Copy statement.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/program/ir/kernel.hpp>
#include <tenon/program/ir/statement.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/inline_vector.hpp>

namespace tenon::program {

// An expression compiled to a list of steps on a stack of values, for frequent evaluation: no names, no heap.
class IndexCode {
 public:
  // `names` are the symbols in the order of their values; any other symbol is an error.
  static Result<IndexCode> make(const Expr& e, std::span<const std::string> names);
  // Nothing where a step divides by zero or leaves int64, unless a select discards its result. Expr::evaluate() then
  // decides: it returns an error, or the value of parts that need more than 64 bits.
  std::optional<int64_t> run(std::span<const int64_t> values) const;

 private:
  enum class Op : uint8_t { constant, value, add, multiply, floordiv, mod, min, max, select, at_least_0, is_0 };
  struct Step {
    Op op;
    int64_t number;  // of a constant; else the index of the value
  };
  Result<void> append(const Expr& e, std::span<const std::string> names);
  Result<void> append_folded(const Expr& e, Op op, std::span<const std::string> names);
  Result<void> append_sum(const Expr& e, std::span<const std::string> names);
  Result<void> append_product(const Expr& e, std::span<const std::string> names);
  void push(Op op, int64_t number = 0) { steps_.push_back({op, number}); }

  static constexpr size_t kMaxDepth = 64;
  InlineVector<Step, 3> steps_;  // i + 1 has three
};

// A copy, ready to run on buffers with any bounds. Rows along one dim of the destination that read the source with a
// fixed stride are moved as rows (as one block where both strides are those of an element); otherwise elements are
// moved one by one.
class TENON_API CopyPlan {
 public:
  static Result<CopyPlan> make(const Copy& copy, ElementType element);
  // Symbols of the map that are not indices, in the order in which run() takes their values.
  const std::vector<std::string>& parameters() const { return parameters_; }
  // Buffers are cropped to the boxes of the copy; `padding` is null unless a region pads. Allocates no heap memory; may
  // be called from several threads. Fails when an index without padding is outside the source, and where
  // Expr::evaluate() of an index fails, with its error.
  Result<void> run(const BufferView& destination, const BufferView& source, const BufferView* padding,
                   std::span<const int64_t> parameters) const;

 private:
  struct Job;
  bool move_whole(Job& job) const;
  Result<void> run_rows(Job& job) const;
  Result<void> row(Job& job) const;
  Result<void> by_element(Job& job) const;
  Result<void> pad(Job& job, int64_t from, int64_t to) const;
  Result<void> outside(const Job& job) const;
  Result<int64_t> evaluated(const Job& job, size_t source_dim) const;

  size_t element_bytes_ = 0;
  std::string stage_;
  std::vector<std::string> parameters_;
  std::vector<std::string> names_;  // of indices, then of parameters
  std::vector<Expr> exprs_;         // the map, for cases in which its steps give no value
  std::vector<IndexCode> map_;      // per dim of the source
  // per dim of the source and destination: the step, if it is fixed
  std::vector<std::vector<std::optional<IndexCode>>> by_;
  bool pads_ = false;
  std::vector<std::byte> element_;
};

}  // namespace tenon::program
