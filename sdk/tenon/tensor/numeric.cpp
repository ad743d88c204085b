#include <tenon/tensor/numeric.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <tenon/support/check.hpp>

namespace tenon {
namespace {

// Sign, then exponent, then mantissa; the least exponent represents zero and the denormals.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  uint64_t max_finite;  // code of the largest finite magnitude
  uint64_t infinity;    // 0: the format has none
  uint64_t nan;         // as the low bits; 0: the format has none
  bool unsigned_zero;   // the code of -0 is the only NaN

  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  uint64_t sign_bit() const { return uint64_t{1} << (bits() - 1); }
};

constexpr Format kFormatF16{5, 10, 15, 0x7bff, 0x7c00, 0x7e00, false};
constexpr Format kFormatBF16{8, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, false};
constexpr Format kFormatE4M3FN{4, 3, 7, 0x7e, 0, 0x7f, false};
constexpr Format kFormatE4M3FNUZ{4, 3, 8, 0x7f, 0, 0x80, true};
constexpr Format kFormatE5M2{5, 2, 15, 0x7b, 0x7c, 0x7e, false};
constexpr Format kFormatE5M2FNUZ{5, 2, 16, 0x7f, 0, 0x80, true};
constexpr Format kFormatE2M1{2, 1, 1, 0x7, 0, 0, false};

const Format& format_of(ElementType element) {
  switch (element.kind()) {
    case ElementKind::ieee: return kFormatF16;
    case ElementKind::bf16: return kFormatBF16;
    case ElementKind::f8e4m3fn: return kFormatE4M3FN;
    case ElementKind::f8e4m3fnuz: return kFormatE4M3FNUZ;
    case ElementKind::f8e5m2: return kFormatE5M2;
    case ElementKind::f8e5m2fnuz: return kFormatE5M2FNUZ;
    case ElementKind::f4e2m1: return kFormatE2M1;
    default: break;
  }
  TENON_CHECK(false, element, " is no float format");
  return kFormatF16;
}

// 2^exponent, for exponents of normal doubles.
double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52); }

// floor(log2(magnitude)) of a positive normal double; denormals give -1023, less than any format's least exponent.
int exponent_of(double magnitude) { return static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> 52) - 1023; }

double signed_nan(bool negative) {
  return std::copysign(std::numeric_limits<double>::quiet_NaN(), negative ? -1.0 : 1.0);
}

double decode(const Format& format, uint64_t bits) {
  const bool negative = (bits & format.sign_bit()) != 0;
  const uint64_t code = bits & (format.sign_bit() - 1);
  if (format.unsigned_zero && bits == format.nan) return signed_nan(false);
  double magnitude = 0;
  if (code > format.max_finite) {
    if (code != format.infinity) return signed_nan(negative);
    magnitude = std::numeric_limits<double>::infinity();
  } else {
    const auto biased = static_cast<int>(code >> format.mantissa_bits);
    const uint64_t hidden = uint64_t{1} << format.mantissa_bits;
    const uint64_t mantissa = (code & (hidden - 1)) + (biased == 0 ? 0 : hidden);
    magnitude = static_cast<double>(mantissa) * power_of_two(std::max(biased, 1) - format.bias - format.mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

// The code of a finite magnitude rounded to nearest even, as if the range of exponents were unbounded.
uint64_t round_to_code(const Format& format, double magnitude) {
  const int exponent = std::max(exponent_of(magnitude), 1 - format.bias);
  // In units of the last place the significand is below 2^(mantissa_bits + 1): adding 2^52 rounds it to an integer.
  const double scaled = magnitude * power_of_two(format.mantissa_bits - exponent);
  const double rounded = (scaled + 0x1p52) - 0x1p52;
  // The exponent field of a denormal is 0; the significand of a normal carries its hidden bit into the field, as does a
  // significand that was rounded up to the next power of two.
  return (static_cast<uint64_t>(exponent + format.bias - 1) << format.mantissa_bits) + static_cast<uint64_t>(rounded);
}

uint64_t encode(const Format& format, double value, bool saturate) {
  const uint64_t sign = std::signbit(value) ? format.sign_bit() : 0;
  if (std::isnan(value)) return format.nan == 0 ? format.sign_bit() : format.nan | sign;
  const double magnitude = std::fabs(value);
  const uint64_t code = std::isinf(value) ? format.max_finite + 1 : round_to_code(format, magnitude);
  if (code > format.max_finite) {
    if (saturate || format.nan == 0) return format.max_finite | sign;
    return (format.infinity != 0 ? format.infinity : format.nan) | sign;
  }
  return code == 0 && format.unsigned_zero ? 0 : code | sign;
}

constexpr uint64_t kE8M0NaN = 0xff, kE8M0Max = 0xfe;

uint64_t encode_e8m0(double value, const ConvertOptions& options) {
  using Rounding = ConvertOptions::Rounding;
  if (std::isnan(value)) return kE8M0NaN;
  const double magnitude = std::fabs(value);
  if (magnitude < 0x1p-127) return 0;
  const auto overflow = [&] { return options.saturate ? kE8M0Max : kE8M0NaN; };
  if (std::isinf(value)) return overflow();
  const auto code = static_cast<uint64_t>(exponent_of(magnitude) + 127);
  if (code > kE8M0Max) return overflow();
  const double fraction = magnitude / power_of_two(static_cast<int>(code) - 127);  // in [1, 2)
  const bool tie_up = options.e8m0_rounding == Rounding::nearest || (code & 1) != 0;
  const bool up = options.e8m0_rounding == Rounding::up     ? fraction > 1
                  : options.e8m0_rounding == Rounding::down ? false
                                                            : fraction > 1.5 || (fraction == 1.5 && tie_up);
  const uint64_t rounded = code + (up ? 1 : 0);
  return rounded > kE8M0Max ? overflow() : rounded;
}

}  // namespace

double decode_float(ElementType format, uint64_t bits) {
  if (format == kF64) return std::bit_cast<double>(bits);
  if (format == kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (format == kF8E8M0) {
    return bits == kE8M0NaN ? signed_nan(false) : power_of_two(static_cast<int>(bits) - 127);
  }
  return decode(format_of(format), bits);
}

uint64_t encode_float(ElementType format, double value, const ConvertOptions& options) {
  if (format == kF64) return std::bit_cast<uint64_t>(value);
  if (format == kF32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (format == kF8E8M0) return encode_e8m0(value, options);
  return encode(format_of(format), value, options.saturate && format.bits() == 8);
}

namespace {

template <class Word>
uint64_t load_word(const std::byte* data, int64_t index) {
  Word word;
  std::memcpy(&word, data + static_cast<size_t>(index) * sizeof(Word), sizeof(Word));
  return word;
}
template <class Word>
void store_word(std::byte* data, int64_t index, uint64_t value) {
  const auto word = static_cast<Word>(value);
  std::memcpy(data + static_cast<size_t>(index) * sizeof(Word), &word, sizeof(Word));
}

// The position of an element in the bit stream.
struct BitPlace {
  BitPlace(int bits, int64_t index)
      : byte((static_cast<uint64_t>(index) * static_cast<uint64_t>(bits)) >> 3),
        shift(static_cast<int>((static_cast<uint64_t>(index) * static_cast<uint64_t>(bits)) & 7)),
        bytes((shift + bits + 7) / 8) {}
  uint64_t byte;
  int shift;
  int bytes;  // accessed: 1 to 9. The bytes after the last element must not be read
};

}  // namespace

uint64_t load_bits(const std::byte* data, int bits, int64_t index) {
  switch (bits) {
    case 8: return load_word<uint8_t>(data, index);
    case 16: return load_word<uint16_t>(data, index);
    case 32: return load_word<uint32_t>(data, index);
    case 64: return load_word<uint64_t>(data, index);
    default: break;
  }
  const BitPlace place(bits, index);
  const std::byte* first = data + place.byte;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  if (place.bytes == 1) return std::to_integer<uint64_t>(*first) >> place.shift & mask;
  uint64_t low = 0;
  std::memcpy(&low, first, static_cast<size_t>(std::min(place.bytes, 8)));
  low >>= place.shift;
  if (place.bytes == 9) low |= std::to_integer<uint64_t>(first[8]) << (64 - place.shift);
  return low & mask;
}

void store_bits(std::byte* data, int bits, int64_t index, uint64_t value) {
  switch (bits) {
    case 8: return store_word<uint8_t>(data, index, value);
    case 16: return store_word<uint16_t>(data, index, value);
    case 32: return store_word<uint32_t>(data, index, value);
    case 64: return store_word<uint64_t>(data, index, value);
    default: break;
  }
  const BitPlace place(bits, index);
  std::byte* first = data + place.byte;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  value &= mask;
  if (place.bytes == 1) {
    *first = (*first & ~std::byte(mask << place.shift)) | std::byte(value << place.shift);
    return;
  }
  const auto low_bytes = static_cast<size_t>(std::min(place.bytes, 8));
  uint64_t low = 0;
  std::memcpy(&low, first, low_bytes);
  low = (low & ~(mask << place.shift)) | (value << place.shift);
  std::memcpy(first, &low, low_bytes);
  if (place.bytes < 9) return;
  const auto high_mask = static_cast<std::byte>(mask >> (64 - place.shift));
  first[8] = (first[8] & ~high_mask) | static_cast<std::byte>(value >> (64 - place.shift));
}

}  // namespace tenon
