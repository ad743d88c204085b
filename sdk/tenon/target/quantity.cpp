#include <tenon/target/quantity.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

namespace tenon {
namespace {

constexpr UnitName kBytes[] = {{"B", 1}, {"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30}};
constexpr UnitName kHertz[] = {{"Hz", 1}, {"kHz", 1'000}, {"MHz", 1'000'000}, {"GHz", 1'000'000'000}};
constexpr UnitName kCycles[] = {{"cycle", 1}, {"cycles", 1}};
constexpr UnitName kBits[] = {{"bit", 1}, {"bits", 1}};
// Rates have separate decimal and binary prefixes, as in data sheets.
constexpr UnitName kBandwidth[] = {
    {"B/cycle", 1},          {"B/s", 1},
    {"KB/s", 1'000},         {"KiB/s", 1ull << 10},
    {"MB/s", 1'000'000},     {"MiB/s", 1ull << 20},
    {"GB/s", 1'000'000'000}, {"GiB/s", 1ull << 30},
};
constexpr std::string_view kPerCycle = "B/cycle";
// The largest bandwidth whose bytes per second are exact in a double.
constexpr uint64_t kMaxBytesPerSecond = 1ull << 53;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// digits / 10^fraction_digits, followed by `unit`.
struct Decimal {
  uint64_t digits = 0;
  uint64_t scale = 1;  // 10^fraction digits
  std::string_view unit;
};

Result<Decimal> parse_decimal(std::string_view text, std::string_view subject, std::string_view sample) {
  const auto malformed = [&] {
    return error(Code::invalid_argument, subject, " is ", quote(text), "; expected a number",
                 sample.empty() ? "" : " with its unit", sample.empty() ? "" : ", such as ", sample);
  };
  if (text.starts_with('-')) return error(Code::invalid_argument, subject, " is ", text, "; it may not be negative");
  Decimal decimal;
  size_t i = 0;
  bool whole = false, fraction = false;
  const auto take_digit = [&](char c) {
    return !__builtin_mul_overflow(decimal.digits, uint64_t{10}, &decimal.digits) &&
           !__builtin_add_overflow(decimal.digits, static_cast<uint64_t>(c - '0'), &decimal.digits);
  };
  const auto too_long = [&] { return error(Code::invalid_argument, subject, " is ", text, ", more than 2^64 - 1"); };
  for (; i < text.size() && is_digit(text[i]); ++i, whole = true)
    if (!take_digit(text[i])) return too_long();
  if (whole && i < text.size() && text[i] == '.') {
    size_t end = ++i;
    while (end < text.size() && is_digit(text[end])) ++end;
    fraction = end > i;
    size_t last = end;
    while (last > i && text[last - 1] == '0') --last;  // trailing zeros have no effect and could overflow
    for (; i < last; ++i)
      if (!take_digit(text[i]) || __builtin_mul_overflow(decimal.scale, uint64_t{10}, &decimal.scale))
        return too_long();
    i = end;
    if (!fraction) return malformed();
  }
  if (!whole) return malformed();
  decimal.unit = trim(text.substr(i));
  return decimal;
}

Result<UnitName> find_unit(const Decimal& decimal, std::span<const UnitName> units, std::string_view text,
                           std::string_view subject) {
  std::string list;
  for (const auto& unit : units) {
    if (unit.text == decimal.unit) return unit;
    list += str(list.empty() ? "" : ", ", unit.text);
  }
  if (decimal.unit.empty())
    return error(Code::invalid_argument, subject, " is ", text, " with no unit; write one of ", list, " behind it");
  return error(Code::invalid_argument, subject, " has the unit ", quote(decimal.unit), "; write one of ", list);
}

std::string sample_of(std::span<const UnitName> units) { return units.empty() ? "" : str("64 ", units.back().text); }

std::string fixed(double value) {
  std::array<char, 400> buffer;
  return {buffer.data(),
          std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed).ptr};
}

// decimal * factor if it is whole and fits.
Result<uint64_t> scaled(const Decimal& decimal, uint64_t factor, std::string_view text, std::string_view subject,
                        std::string_view base) {
  const uint64_t common = std::gcd(factor, decimal.scale);
  const uint64_t divisor = decimal.scale / common;
  if (decimal.digits % divisor != 0)
    return error(Code::invalid_argument, subject, " is ", text, ", which is not a whole number",
                 base.empty() ? "" : str(" of ", base));
  uint64_t value = 0;
  if (__builtin_mul_overflow(decimal.digits / divisor, factor / common, &value))
    return error(Code::invalid_argument, subject, " is ", text, ", more than 2^64 - 1", base.empty() ? "" : " ", base);
  return value;
}

}  // namespace

std::span<const UnitName> unit_names(Unit unit) {
  switch (unit) {
    case Unit::none: return {};
    case Unit::bytes: return kBytes;
    case Unit::hertz: return kHertz;
    case Unit::cycles: return kCycles;
    case Unit::bits: return kBits;
  }
  return {};
}

std::span<const UnitName> bandwidth_unit_names() { return kBandwidth; }

Result<uint64_t> parse_quantity(std::string_view text, Unit unit, std::string_view subject) {
  const auto units = unit_names(unit);
  TENON_TRY(decimal, parse_decimal(text, subject, sample_of(units)));
  if (units.empty()) {
    if (decimal.unit.empty()) return scaled(decimal, 1, text, subject, "");
    return error(Code::invalid_argument, subject, " is ", quote(text), "; it takes a plain number, without ",
                 quote(decimal.unit));
  }
  TENON_TRY(found, find_unit(decimal, units, text, subject));
  return scaled(decimal, found.factor, text, subject, units.front().text);
}

Result<Bandwidth> parse_bandwidth(std::string_view text, std::string_view subject) {
  TENON_TRY(decimal, parse_decimal(text, subject, sample_of(kBandwidth)));
  TENON_TRY(found, find_unit(decimal, kBandwidth, text, subject));
  Bandwidth bandwidth;
  uint64_t whole = 0;
  if (found.text == kPerCycle) {
    bandwidth.bytes = static_cast<double>(decimal.digits) / static_cast<double>(decimal.scale);
    whole = static_cast<uint64_t>(std::min(std::ceil(bandwidth.bytes), 0x1p63));
  } else {
    TENON_TRY(bytes, scaled(decimal, found.factor, text, subject, "B/s"));
    bandwidth = {static_cast<double>(bytes), Bandwidth::Per::second};
    whole = bytes;
  }
  if (whole == 0) return error(Code::invalid_argument, subject, " is ", text, "; it must be above 0");
  if (whole > kMaxBytesPerSecond)
    return error(Code::invalid_argument, subject, " is ", text, "; at most 2^53 B can be stated");
  return bandwidth;
}

std::string format_quantity(uint64_t value, Unit unit) {
  const auto units = unit_names(unit);
  if (units.empty()) return str(value);
  const UnitName* best = nullptr;
  for (const auto& candidate : units)
    if (!best || value % candidate.factor == 0) best = &candidate;
  if (best->factor == 1 && units.size() > 1 && units[1].factor == 1) best = value == 1 ? &units[0] : &units[1];
  return str(value / best->factor, " ", best->text);
}

std::string format_bandwidth(const Bandwidth& bandwidth) {
  if (bandwidth.per == Bandwidth::Per::cycle) return str(fixed(bandwidth.bytes), " ", kPerCycle);
  const UnitName* best = nullptr;
  for (const auto& candidate : kBandwidth) {
    const auto factor = static_cast<double>(candidate.factor);
    if (candidate.text != kPerCycle && std::fmod(bandwidth.bytes, factor) == 0) best = &candidate;
  }
  return str(fixed(best ? bandwidth.bytes / static_cast<double>(best->factor) : bandwidth.bytes), " ",
             best ? best->text : "B/s");
}

}  // namespace tenon
