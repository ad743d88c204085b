// The exit code of the example programs.
#pragma once
#include <cstdio>

#include <tenon/support/result.hpp>

namespace example {

// For main(): 0, or 1 after printing the error on standard error.
inline int exit_code(const tenon::Result<void>& done) {
  if (!done.ok()) std::fprintf(stderr, "error: %s\n", done.error().to_string().c_str());
  return done.ok() ? 0 : 1;
}

}  // namespace example
