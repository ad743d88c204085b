#include <tenon/tensor/reorder_vectors_internal.hpp>

#include <algorithm>

namespace tenon::detail {
namespace {

// out[i] = the element first + i * stride of all `in` together, where element e is in in[e / n], or in in[e % kVectors]
// if they are interleaved.
template <class T, int64_t kBytes, int kVectors, class At>
TENON_INLINE void pick(const VectorOf<T, kBytes> (&in)[kVectors], VectorOf<T, kBytes>& out, const At& at) {
  constexpr int kCount = Vector<T, kBytes>::kCount;
  out = in[0];
#pragma GCC unroll 4
  for (int v = 1; v < kVectors; ++v) {
    // Lanes of the vectors up to v are in place after this step; the first one also orders those of in[0].
    VectorOf<T, kBytes> order;
#pragma GCC unroll 64
    for (int i = 0; i < kCount; ++i) {
      const auto [vector, lane] = at(i);
      order[i] = static_cast<T>(vector == v ? kCount + lane : vector == 0 && v == 1 ? lane : i);
    }
    out = __builtin_shuffle(out, in[v], order);
  }
}

// Scalar code for less than a vector.
template <class T, int kPlanes, bool kSplit>
TENON_INLINE void move_elements(const std::byte* source, std::byte* destination, int64_t pitch, int64_t begin,
                                int64_t end) {
  constexpr int64_t kSize = sizeof(T);
  for (int64_t i = begin; i < end; ++i) {
#pragma GCC unroll 4
    for (int64_t p = 0; p < kPlanes; ++p) {
      const int64_t mixed = (i * kPlanes + p) * kSize, plane = p * pitch + i * kSize;
      std::memcpy(destination + (kSplit ? plane : mixed), source + (kSplit ? mixed : plane), kSize);
    }
  }
}

template <class T, int64_t kBytes, int kPlanes, bool kSplit>
TENON_INLINE void move_vectors(const std::byte* source, std::byte* destination, int64_t pitch, int64_t first) {
  constexpr int kCount = Vector<T, kBytes>::kCount;
  constexpr int64_t kSize = sizeof(T);
  VectorOf<T, kBytes> in[kPlanes], out;
  struct Place {
    int vector, lane;
  };
#pragma GCC unroll 4
  for (int p = 0; p < kPlanes; ++p) {
    const std::byte* from = source + (kSplit ? first * kPlanes * kSize + p * kBytes : p * pitch + first * kSize);
    std::memcpy(&in[p], from, kBytes);
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPlanes; ++p) {
    pick<T, kBytes>(in, out, [p](int i) {
      const int number = kSplit ? i * kPlanes + p : p * kCount + i;
      return kSplit ? Place{number / kCount, number % kCount} : Place{number % kPlanes, number / kPlanes};
    });
    std::byte* to = destination + (kSplit ? p * pitch + first * kSize : first * kPlanes * kSize + p * kBytes);
    std::memcpy(to, &out, kBytes);
  }
}

// The last vectors overlap those before them.
template <class T, int64_t kBytes, int kPlanes, bool kSplit>
TENON_INLINE bool move_planes(const std::byte* source, std::byte* destination, int64_t pitch, int64_t count) {
  constexpr int64_t kCount = Vector<T, kBytes>::kCount;
  if (count < kCount) return false;
  for (int64_t i = 0; i + kCount <= count; i += kCount) {
    move_vectors<T, kBytes, kPlanes, kSplit>(source, destination, pitch, i);
  }
  if (count % kCount) move_vectors<T, kBytes, kPlanes, kSplit>(source, destination, pitch, count - kCount);
  return true;
}

// Without byte shuffles, vectors of three planes would be split into elements.
template <class T, int kPlanes>
constexpr bool kShufflesInBaseline = kPlanes != 3 || sizeof(T) >= 4;

template <class T, int kPlanes, bool kSplit>
void planes_baseline(const std::byte* source, std::byte* destination, int64_t pitch, int64_t count) {
  if constexpr (kShufflesInBaseline<T, kPlanes>) {
    if (move_planes<T, 16, kPlanes, kSplit>(source, destination, pitch, count)) return;
  }
  move_elements<T, kPlanes, kSplit>(source, destination, pitch, 0, count);
}

#if defined(__x86_64__)
template <class T, int kPlanes, bool kSplit>
[[gnu::target("avx2")]] void planes_avx2(const std::byte* source, std::byte* destination, int64_t pitch,
                                         int64_t count) {
  if (move_planes<T, 16, kPlanes, kSplit>(source, destination, pitch, count)) return;
  move_elements<T, kPlanes, kSplit>(source, destination, pitch, 0, count);
}

#define TENON_AVX512 [[gnu::target(TENON_TARGET_AVX512)]]
template <class T, int kPlanes, bool kSplit>
TENON_AVX512 void planes_avx512(const std::byte* source, std::byte* destination, int64_t pitch, int64_t count) {
  if (move_planes<T, 64, kPlanes, kSplit>(source, destination, pitch, count)) return;
  if (move_planes<T, 16, kPlanes, kSplit>(source, destination, pitch, count)) return;
  move_elements<T, kPlanes, kSplit>(source, destination, pitch, 0, count);
}
#endif

bool machine_runs([[maybe_unused]] ReorderIsa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == ReorderIsa::avx2) return __builtin_cpu_supports("avx2");
  if (isa == ReorderIsa::avx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi");
  }
#endif
  return isa == ReorderIsa::baseline;
}

}  // namespace

std::vector<ReorderIsa> reorder_isas() {
  std::vector<ReorderIsa> out;
  for (const ReorderIsa isa : {ReorderIsa::baseline, ReorderIsa::avx2, ReorderIsa::avx512}) {
    if (machine_runs(isa)) out.push_back(isa);
  }
  return out;
}

#define TENON_PLANES(ISA, SPLIT) \
  { planes_##ISA<T, 2, SPLIT>, planes_##ISA<T, 3, SPLIT>, planes_##ISA<T, 4, SPLIT> }
#define TENON_KERNELS(ISA) \
  { TENON_PLANES(ISA, false), TENON_PLANES(ISA, true) }

template <class T>
const PlaneKernels& plane_kernels([[maybe_unused]] ReorderIsa isa) {
#if defined(__x86_64__)
  static constexpr PlaneKernels kAvx512 = TENON_KERNELS(avx512), kAvx2 = TENON_KERNELS(avx2);
  if (isa == ReorderIsa::avx512) return kAvx512;
  if (isa == ReorderIsa::avx2) return kAvx2;
#endif
  static constexpr PlaneKernels kBaseline = TENON_KERNELS(baseline);
  return kBaseline;
}
template const PlaneKernels& plane_kernels<uint8_t>(ReorderIsa);
template const PlaneKernels& plane_kernels<uint16_t>(ReorderIsa);
template const PlaneKernels& plane_kernels<uint32_t>(ReorderIsa);
template const PlaneKernels& plane_kernels<uint64_t>(ReorderIsa);

}  // namespace tenon::detail
