#include "opencl/compute/places.hpp"

#include <limits>

#include <tenon/support/str.hpp>

namespace tenon::opencl {

std::string place_functions(size_t rank) {
  const size_t last = rank - 1;
  std::string fields, divided, carried;
  for (size_t d = 0; d < rank; ++d) fields += str(d ? ", at" : "at", d);
  for (size_t d = last; d > 0; --d)
    divided += str("  const long q", d, " = tenon_quotient(e, f[", d, "], (ulong)f[", rank + d, "]);\n  place.at", d,
                   " = e - q", d, " * f[", d, "];\n  e = q", d, ";\n");
  for (size_t d = last - 1; d > 0; --d)
    carried += str("  if (++place.at", d, " < f[", d, "]) return place;\n  place.at", d, " = 0;\n");
  return str("struct tenon_place { long ", fields, "; };\n",
             "long tenon_quotient(long n, long d, ulong reciprocal) {\n"
             "  return reciprocal != 0 ? (long)mul_hi((ulong)n, reciprocal) : n / d;\n}\n",
             "struct tenon_place tenon_place_of(__global const long* f, long e) {\n  struct tenon_place place;\n",
             divided, "  place.at0 = e;\n  return place;\n}\n",
             "struct tenon_place tenon_place_behind(__global const long* f, struct tenon_place place, long e, long j) "
             "{\n  place.at",
             last, " += j;\n  if (place.at", last, " < f[", last, "]) return place;\n  place.at", last, " -= f[", last,
             "];\n  if (place.at", last, " >= f[", last, "]) return tenon_place_of(f, e + j);\n", carried,
             "  ++place.at0;\n  return place;\n}\n");
}

namespace {

// ceil(2^64 / d) has a relative error of less than d / 2^64, so quotients of n are exact while n * d < 2^64.
uint64_t reciprocal_of(uint64_t d, uint64_t elements) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  if (d < 2 || elements > kMost / d) return 0;
  return kMost / d + 1;
}

}  // namespace

std::vector<int64_t> place_numbers(const Dims& extents) {
  uint64_t elements = 1;
  for (const int64_t extent : extents) elements *= static_cast<uint64_t>(extent);
  std::vector<int64_t> numbers(extents.begin(), extents.end());
  for (const int64_t extent : extents)
    numbers.push_back(static_cast<int64_t>(reciprocal_of(static_cast<uint64_t>(extent), elements)));
  return numbers;
}

}  // namespace tenon::opencl
