// A program with its bindings to the shapes that it has been run with. A few are cached, each with as many contexts as
// there are concurrent runs. Some shapes may have a program of their own.
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/irgen/from_graph.hpp>
#include <tenon/program/exec/bound_program.hpp>
#include <tenon/runtime/memory_chart.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/spare.hpp>

namespace tenon::irgen {

// State of one run at a time.
struct ProgramContext {
  program::BoundProgram bound;
  std::vector<std::byte*> buffers;  // of declared buffers, in order; those of constants are set
};

// The program for one set of scalars.
struct BoundShape {
  std::vector<int64_t> scalars;  // in the order of Program::scalars
  std::vector<Dims> input_dims, output_dims;
  std::optional<GraphProgram> own;      // replaces the general program
  std::vector<size_t> inputs, outputs;  // indices of them among the buffers of a context
  std::vector<std::byte*> buffers;      // initial buffers of a new context: constants are set
  std::string refusal;                  // why it cannot be bound to the scalars; "" when it can
  size_t arena_bytes = 0, arena_lower_bound_bytes = 0, lendable_bytes = 0;

  Spare<ProgramContext> spare;  // the last one released, if it has not been taken since
  std::mutex mutex;
  std::vector<std::unique_ptr<ProgramContext>> contexts;  // at least one, of which others are forked
  std::vector<ProgramContext*> idle;                      // without the spare one
};

// Holds a context during one run. The shape outlives it.
class TENON_API ContextLease {
 public:
  ContextLease(BoundShape& shape, ProgramContext* context) : shape_(&shape), context_(context) {}
  ContextLease(ContextLease&& other) noexcept
      : shape_(std::exchange(other.shape_, nullptr)), context_(other.context_) {}
  ~ContextLease();
  ProgramContext* operator->() const { return context_; }
  ProgramContext& operator*() const { return *context_; }

 private:
  BoundShape* shape_;  // null when moved from
  ProgramContext* context_;
};

class TENON_API ProgramCache {
 public:
  // Called before a program is bound to scalars.
  using Check = std::function<Result<void>(const SymbolValues&)>;
  // An equivalent program for these scalars alone; empty: the general program serves them.
  using Special = std::function<std::optional<GraphProgram>(const SymbolValues&)>;
  ProgramCache(GraphProgram program, program::BindOptions options, Check check, Special special = {});

  const GraphProgram& program() const { return program_; }
  // Bound to these values; the most recent kMostShapes are kept. Thread-safe; each binding is made once.
  std::shared_ptr<BoundShape> shape(const SymbolValues& scalars);

  // The most recent cached one for which `serves` holds; null: none. No heap allocation.
  template <class Serves>
  std::shared_ptr<BoundShape> find(const Serves& serves) {
    const std::lock_guard lock(mutex_);
    for (auto shape = shapes_.begin(); shape != shapes_.end(); ++shape) {
      if (!serves(std::as_const(**shape))) continue;
      shapes_.splice(shapes_.begin(), shapes_, shape);
      return shapes_.front();
    }
    return nullptr;
  }

  // Makes a new context when all existing ones are in use.
  static Result<ContextLease> acquire(BoundShape& shape);
  // Of the cached shape that needs most.
  size_t arena_bytes() const;
  size_t arena_lower_bound_bytes() const;
  size_t lendable_bytes() const;
  size_t own_bytes() const;  // arena_bytes() without lendable_bytes()
  // Of the shape that was run last; empty where no shape is bound.
  std::vector<MemoryChart> memory_charts() const;

  static constexpr size_t kMostShapes = 16;

 private:
  Result<void> bind(BoundShape& shape, const SymbolValues& scalars) const;
  size_t most(size_t BoundShape::*bytes) const;  // with the mutex held

  GraphProgram program_;
  program::BindOptions options_;
  Check check_;
  Special special_;
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<BoundShape>> shapes_;  // the most recent first
};

}  // namespace tenon::irgen
