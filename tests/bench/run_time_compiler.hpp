// Loops in C++ that the system's compiler compiles to functions at run time.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenon/support/result.hpp>

namespace tenon::bench {

// A loop over `in` and `out`, with one pointer per tensor.
using CompiledLoop = void (*)(const void* const* in, void* const* out, const int64_t* extents);

// A shared object that is loaded for its lifetime.
class CompiledLoops {
 public:
  // $CXX, else c++, with `flags`. Errors: no compiler, or its messages about the text (the error names the file, which
  // is kept).
  static Result<CompiledLoops> compile(const std::string& text, const std::vector<std::string>& flags);

  // Null: there is no function with this name.
  CompiledLoop find(const std::string& name) const;

 private:
  std::shared_ptr<void> library_;
};

}  // namespace tenon::bench
