// Inside the room: a run of the reference without kernels, for analyses of memory accesses.
#pragma once
#include <tenon/program/exec/buffers_internal.hpp>
#include <tenon/program/exec/run.hpp>

namespace tenon::program::detail {

// Receives the actions of an interpreter in their order. An error ends the run.
class Tracer {
 public:
  virtual ~Tracer() = default;
  // A call that is made, with the boxes of its operands; a copy, with all values of its map except the indices.
  // Followed by access().
  virtual Result<void> call(const Call&, const std::vector<BoundBuffer>&) { return {}; }
  virtual Result<void> copy(const Copy&, const BoundBuffer& destination, const BoundBuffer& source,
                            const SymbolValues& symbols) {
    (void)destination, (void)source, (void)symbols;
    return {};
  }
  // A call or copy that is made reads or writes a box, in the slot of its worker.
  virtual Result<void> access(std::string_view stage, const BoundBuffer& box, bool writes) = 0;
  // A transfer: of boxes that are read and one that is written.
  virtual Result<void> start(TokenId token, const BoundBuffer& destination,
                             const std::vector<BoundBuffer>& sources) = 0;
  virtual void wait(TokenId token) = 0;
  // Iterations of a loop with several workers, numbered from 0, in ascending order.
  virtual void enter(const Loop& loop, int64_t workers) = 0;
  virtual Result<void> begin(int64_t iteration, int64_t value) = 0;
  virtual Result<void> end() = 0;
  virtual void leave() = 0;
  virtual void signal(int stage) = 0;
  virtual void await(int stage) = 0;
};

// Data pointers of the shapes are not used.
Result<void> trace(const Program& program, const Arguments& shapes, int64_t threads, Tracer& tracer);

}  // namespace tenon::program::detail
