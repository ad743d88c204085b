// Casts from and to 8-bit floats, by tables that the reference fills. Such a float is one of 256 numbers, and the
// border between two of them is found by bisection over f32, with the reference as oracle. Rounding, saturation and NaN
// are therefore those of the reference, whatever the type.
#include <algorithm>
#include <bit>

#include <tenon/ops/cast.hpp>
#include <tenon/support/str.hpp>
#include <tenon/tensor/numeric.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

bool is_small_float(ElementType element) { return element.is_float() && element.bits() == 8; }
// Whether f32 holds all of its values.
bool is_f32_float(ElementType element) { return element == kF32 || element == kF16 || element == kBF16; }

// n, for an 8-bit source: the bits of its 256 numbers as f32.
constexpr std::string_view kDecode = "    const float x = as_float((uint)n[X(item)]);\n";
constexpr std::string_view kRead = "    const float x = X(item);\n";
constexpr std::string_view kWrite = "    Y(item, x);\n";
// n, for an 8-bit result, after that: the number of pieces of nonnegative and of negative numbers; then for each piece
// its begin, as bits without the sign, and its code. The last piece that begins at or before x applies.
constexpr std::string_view kEncode = R"(
    __global const long* table = n + TABLE;
    const uint bits = as_uint(x), size = bits & 0x7fffffffu;
    const long negative = bits >> 31;
    __global const long* pieces = table + 2 + negative * 2 * table[0];
    long low = 0, high = table[negative];
    while (high - low > 1) {
      const long middle = (low + high) / 2;
      if (pieces[2 * middle] <= (long)size) low = middle; else high = middle;
    }
    Y(item, (uchar)pieces[2 * low + 1]);
)";

Result<std::vector<int64_t>> decoded(ElementType element) {
  TENON_TRY(codes, Tensor::allocate(element, {256}));
  for (size_t i = 0; i < 256; ++i) codes.mutable_data()[i] = static_cast<std::byte>(i);
  TENON_TRY(numbers, convert(codes, kF32));
  std::vector<int64_t> made;
  for (const float number : numbers.as<float>()) made.push_back(std::bit_cast<uint32_t>(number));
  return made;
}

// The codes of f32 numbers, given by their bits.
Result<std::vector<int64_t>> codes_of(const std::vector<uint32_t>& bits, ElementType element,
                                      const ConvertOptions& options) {
  TENON_TRY(numbers, Tensor::allocate(kF32, {static_cast<int64_t>(bits.size())}));
  std::ranges::transform(bits, numbers.mutable_as<float>().begin(), [](uint32_t b) { return std::bit_cast<float>(b); });
  TENON_TRY(codes, convert(numbers, element, options));
  std::vector<int64_t> made;
  for (size_t i = 0; i < bits.size(); ++i) made.push_back(static_cast<int64_t>(codes.data()[i]));
  return made;
}

// Finds the pieces of the f32 numbers of one sign that have the same code. Each code covers one interval: a range whose
// ends have the same code is part of a piece; any other range is halved. The reference is called once for all ranges of
// a length.
struct Piece {
  uint32_t begin;
  int64_t code;
};
Result<std::vector<Piece>> pieces_of(uint32_t sign, ElementType element, const ConvertOptions& options) {
  std::vector<Piece> ends;  // of ranges, in order
  for (const uint32_t bits : {0u, 0x7f800000u, 0x7fc00000u, 0x7fffffffu}) ends.push_back({bits, 0});
  std::vector<uint32_t> asked;
  for (const Piece& end : ends) asked.push_back(end.begin | sign);
  TENON_TRY(codes, codes_of(asked, element, options));
  for (size_t i = 0; i < ends.size(); ++i) ends[i].code = codes[i];
  while (true) {
    asked.clear();
    for (size_t i = 0; i + 1 < ends.size(); ++i)
      if (ends[i].code != ends[i + 1].code && ends[i + 1].begin - ends[i].begin > 1)
        asked.push_back((ends[i].begin + (ends[i + 1].begin - ends[i].begin) / 2) | sign);
    if (asked.empty()) break;
    TENON_TRY(middle, codes_of(asked, element, options));
    for (size_t i = 0; i < asked.size(); ++i) ends.push_back({asked[i] & ~sign, middle[i]});
    std::ranges::sort(ends, {}, &Piece::begin);
    // In a run of equal codes the first and the last are enough.
    std::vector<Piece> kept;
    for (size_t i = 0; i < ends.size(); ++i) {
      const bool inside =
          i > 0 && i + 1 < ends.size() && ends[i - 1].code == ends[i].code && ends[i].code == ends[i + 1].code;
      if (!inside) kept.push_back(ends[i]);
    }
    ends = std::move(kept);
  }
  std::vector<Piece> pieces;
  for (const Piece& end : ends)
    if (pieces.empty() || pieces.back().code != end.code) pieces.push_back(end);
  return pieces;
}

Result<std::vector<int64_t>> encoded(ElementType element, const ConvertOptions& options) {
  TENON_TRY(positive, pieces_of(0, element, options));
  TENON_TRY(negative, pieces_of(0x80000000u, element, options));
  std::vector<int64_t> made{static_cast<int64_t>(positive.size()), static_cast<int64_t>(negative.size())};
  for (const auto* list : {&positive, &negative})
    for (const Piece& piece : *list) made.insert(made.end(), {piece.begin, piece.code});
  return made;
}

Result<ComputeKernel> make_cast(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType from = request.operands[0].element(), to = request.results[0].element();
  const bool decodes = is_small_float(from), encodes = is_small_float(to);
  if ((!decodes && !encodes) || (!decodes && !is_f32_float(from)) || (!encodes && !is_f32_float(to)))
    return error(Code::unsupported, "a cast from ", from, " to ", to,
                 " is a snippet, of extents that are known, or has no form on the device");
  std::vector<int64_t> numbers;
  if (decodes) {
    TENON_TRY(table, decoded(from));
    numbers = std::move(table);
  }
  ComputeSource source(request, target);
  source.define("TABLE", numbers.size());
  if (encodes) {
    TENON_TRY(table, encoded(to, convert_options_of(request.op)));
    numbers.insert(numbers.end(), table.begin(), table.end());
    source.store_raw("Y", 0);
  } else {
    source.store("Y", 0, kF32);
  }
  decodes ? source.load_raw("X", 0) : source.load("X", 0, kF32);
  return source.kernel(str(decodes ? kDecode : kRead, encodes ? kEncode : kWrite),
                       [numbers = std::move(numbers)](const CallShapes& shapes) -> Result<ComputeLaunch> {
                         return ComputeLaunch{numbers, elements_of(shapes.results[0])};
                       });
}

constexpr ComputeRow kSmallFloatRows[] = {{Cast::kName, make_cast}, {CastLike::kName, make_cast}};

}  // namespace

std::span<const ComputeRow> small_float_rows() { return kSmallFloatRows; }

}  // namespace tenon::opencl
