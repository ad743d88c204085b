// Numbers with a unit, as in target files: "32 KiB", "1.2 GHz", "64 cycles", "12.8 GB/s".
// A quantity is a decimal number, optional spaces, and a unit. A missing unit is refused, so that nobody has to guess
// whether 512 means bytes or KiB. Parsing is exact: 1.5 KiB is 1536 bytes, 1.0001 B is an error.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

enum class Unit : uint8_t { none, bytes, hertz, cycles, bits };

// A spelling of a unit, and its size in base units. format_quantity uses the last name listed with a factor.
struct UnitName {
  std::string_view text;
  uint64_t factor;
};
// Every spelling of `unit`, smallest first; empty for Unit::none.
TENON_API std::span<const UnitName> unit_names(Unit unit);

struct Bandwidth {
  enum class Per : uint8_t { cycle, second };
  double bytes = 0;  // above 0; whole when `per` is second
  Per per = Per::cycle;

  // Bytes per second at `clock_hz`, which only a per-cycle bandwidth uses.
  double bytes_per_second(uint64_t clock_hz) const {
    return per == Per::second ? bytes : bytes * static_cast<double>(clock_hz);
  }
  bool operator==(const Bandwidth&) const = default;
};
TENON_API std::span<const UnitName> bandwidth_unit_names();

// `subject` opens the sentence of an error, for example "'size'". Code::invalid_argument for a missing or unknown unit,
// a value that is not a whole number of base units, or one above 2^64 - 1.
TENON_API Result<uint64_t> parse_quantity(std::string_view text, Unit unit, std::string_view subject);
TENON_API Result<Bandwidth> parse_bandwidth(std::string_view text, std::string_view subject);
// The inverse, in the largest unit that divides the value.
TENON_API std::string format_quantity(uint64_t value, Unit unit);
TENON_API std::string format_bandwidth(const Bandwidth& bandwidth);

}  // namespace tenon
