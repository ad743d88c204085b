// Uses the exports of libtenon_runtime.so, and nothing of the compiler.
#include <cstdio>

#include <tenon/support/memory.hpp>
#include <tenon/support/result.hpp>

int main() {
  const auto block = tenon::allocate_aligned(100);
  const auto refused = tenon::allocate_aligned(~size_t{0});
  if (!block.ok() || refused.ok()) return 1;
  std::puts(refused.error().to_string().c_str());
  return 0;
}
