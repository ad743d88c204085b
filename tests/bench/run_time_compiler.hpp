// Loops in C++ that the system's compiler makes into functions while the program runs.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenon/support/result.hpp>

namespace tenon::bench {

// A loop over `in` and `out`, one pointer a tensor.
using CompiledLoop = void (*)(const void* const* in, void* const* out, const int64_t* extents);

// A shared object in memory as long as it lives.
class CompiledLoops {
 public:
  // $CXX, else c++, with `flags`. Errors: no compiler, and what it says of the text (which stays where the error
  // tells).
  static Result<CompiledLoops> compile(const std::string& text, const std::vector<std::string>& flags);

  // Null: there is none of this name.
  CompiledLoop find(const std::string& name) const;

 private:
  std::shared_ptr<void> library_;
};

}  // namespace tenon::bench
