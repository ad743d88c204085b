#include <tenon/snippet/body/body_elements.hpp>

#include <tenon/tensor/numeric.hpp>

namespace tenon::snippet {

int64_t element_count(DimSet set, const Dims& extents) {
  int64_t count = 1;
  for (size_t d = 0; d < extents.size(); ++d)
    if (set >> d & 1) count *= extents[d];
  return count;
}

std::vector<size_t> element_places(DimSet from, DimSet to, const Dims& extents) {
  std::vector<size_t> at;
  const int64_t count = element_count(to, extents);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0, stride = 1;
    for (size_t d = extents.size(); d-- > 0;) {
      if (!(to >> d & 1)) continue;
      const int64_t position = rest % extents[d];
      rest /= extents[d];
      if (!(from >> d & 1)) continue;
      offset += position * stride;
      stride *= extents[d];
    }
    at.push_back(static_cast<size_t>(offset));
  }
  return at;
}

PortLayout layout_of(const BodyPort& port, DimSet varies, const Dims& extents) {
  PortLayout made{.strides = std::vector<int64_t>(extents.size(), 0)};
  auto cut = port.cuts.begin();
  int64_t next = made.bytes = port.element.bits() / 8;  // bytes of the inner dims, with gaps; and without
  for (size_t d = extents.size() + 1; d-- > 0;) {
    if (d < extents.size() && (varies >> d & 1)) {
      made.strides[d] = next;
      next *= extents[d];
      made.bytes *= extents[d];
    }
    for (; cut != port.cuts.end() && cut->dim == static_cast<int>(d); ++cut) {
      const int64_t each = next / cut->box;
      made.begin_bytes += each * cut->begin;
      next = each * cut->whole;
    }
  }
  return made;
}

uint64_t lane_of_memory(ElementType memory, uint64_t bits) {
  if (memory == kF16 || memory == kBF16) return encode_float(kF32, decode_float(memory, bits));
  if (!memory.is_signed_int() || memory.bits() >= 32) return bits;
  const int unused = 64 - memory.bits();
  return static_cast<uint32_t>(static_cast<int64_t>(bits << unused) >> unused);
}

uint64_t memory_of_lane(ElementType memory, uint64_t bits) {
  if (memory == kF16 || memory == kBF16) return encode_float(memory, decode_float(kF32, bits));
  return memory.bits() >= 64 ? bits : bits & ((uint64_t{1} << memory.bits()) - 1);
}

}  // namespace tenon::snippet
