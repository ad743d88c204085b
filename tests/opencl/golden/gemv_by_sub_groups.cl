// Gemm dense, for some device
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

ushort to_bfloat(float x) {
  const uint bits = as_uint(x);
  return isnan(x) ? (ushort)((bits >> 16) | 0x40u) : (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#ifdef cl_khr_subgroups
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
#define TENON_NEAR(element, vector) struct __attribute__((packed, aligned(sizeof(element)))) { vector v; }
#define TENON_WHOLE(vector, at) (((size_t)(at) & (sizeof(vector) - 1)) == 0)
#define TENON_EACH2(from) (from)[0], (from)[1]
#define TENON_EACH4(from) TENON_EACH2(from), TENON_EACH2((from) + 2)
#define TENON_EACH8(from) TENON_EACH4(from), TENON_EACH4((from) + 4)
#define TENON_EACH16(from) TENON_EACH8(from), TENON_EACH8((from) + 8)
#define TENON_LOAD(element, lanes, from) (TENON_WHOLE(element##lanes, from) ? \
  *(__global const element##lanes*)(from) : (element##lanes)(TENON_EACH##lanes(from)))
#define TENON_STORE(element, lanes, to, x) do { \
  if (TENON_WHOLE(element##lanes, to)) *(__global element##lanes*)(to) = x; \
  else ((__global TENON_NEAR(element, element##lanes)*)(to))->v = x; \
} while (0)
#define LOCAL_ID (long)get_local_id(0)
#define LOCAL_SIZE (long)get_local_size(0)
#define SYNC barrier(CLK_LOCAL_MEM_FENCE)
#define A_STEP 1
#define ALPHA as_float(1065353216u)
#define BETA as_float(1065353216u)
#define AFTER(x, row, at, count) (void)0
#define T float
#define TV float4
#define MULTIPLY_ADD(a, b, c) fma((a), (b), (c))
#define ROWS 1
#define VECTORS 1
#define LANES 4
#define COLUMNS 4
#define VLOAD vload4
#define BLOCK_COLUMNS 8
#define ACROSS 2
#define SLICES 32
#define OWN (int)(get_sub_group_id() * get_max_sub_group_size() + get_sub_group_local_id())
#define SUB_GROUP (int)get_max_sub_group_size()
#define VSTORE vstore4
#define APART 1
#define TOGETHER max(min(SLICES, (SUB_GROUP & -SUB_GROUP) / APART), 1)
#define EACH_STEP(together) for (int apart = APART * max((together) / 2, 1); apart >= APART; apart /= 2)
#define ADD_STEP(x, together) { const T other = sub_group_shuffle(x, min(get_sub_group_local_id() ^ (uint)apart, get_sub_group_size() - 1)); x = (together) > 1 ? (x) + other : (x); }
#define SLICE_OF(own) ((own) % SLICES)
#define ACROSS_OF(own) ((own) / SLICES)
#define SUMS_AT(row, vector) ((row) * ACROSS + (vector))
#define CHAINS 4
#define SUM_OF(x) sum_of(x)
#define STEPS_OF_A(from, k) AV((from) + (k))
#define LINE(row) ((batch * M + (row)) * N)
#define A(i) ((float)((__global const float*)a0)[i])
#define AV(i) TENON_LOAD(float, 4, ((__global const float*)a0) + (i))
#define A_TYPE __global const float*
#define A_AT(i) ((__global const float*)a0 + (i))
#define A_FROM(p, i) ((float)(p)[i])
#define B(i) ((float)((__global const float*)a1)[i])
#define BV(i) TENON_LOAD(float, 4, ((__global const float*)a1) + (i))
#define PLACE(place, e) (void)0
#define PLACE_BEHIND(to, place, e, j) (void)0
#define IN_LINE(place, length) 1
#define FINISH(place, e, j, count, x) tenon_finish(f, (e) + (j), count, 0, x, r0)
#define FINISH_WHOLE(place, e, j, x) tenon_finish(f, (e) + (j), 4, 1, x, r0)
static float sum_of(float4 x4) {  // Gemm dense
  const float2 x2 = x4.lo + x4.hi;  // Gemm dense
  const float x1 = x2.x + x2.y;  // Gemm dense
  return x1;  // Gemm dense
}
void tenon_finish(__global const long* f, long e, int count, int whole, float4 x, __global uchar* r0) {
  float4 f0;
  f0 = x;
   {
    const float4 stored = f0;
    if (whole || count == 4) {
      TENON_STORE(float, 4, (__global float*)r0 + e, stored);
    }
    else {
      float some[4];
      vstore4(stored, 0, some);
      int done = 0;
      if (count & 2) { TENON_STORE(float, 2, (__global float*)r0 + e + done, vload2(0, some + done)); done += 2; }
      if (count & 1) ((__global float*)r0 + e)[done] = some[done];
    }
  }
}
__kernel __attribute__((intel_reqd_sub_group_size(16))) __attribute__((reqd_work_group_size(64, 1, 1)))
void tenon_compute(__global const long* words, long first, __global uchar* q0, __global uchar* q1, __global uchar* q2) {
  __local TV parts[2];
  __local T pieces[256];
  __global const long* n = words + first;
  __global uchar* a0 = q0 + n[0];
  __global uchar* a1 = q1 + n[1];
  __global uchar* r0 = q2 + n[2];
  const int step = (int)n[3];
  const long items = n[4];
  __global const long* f = n + 5;
  n = f + 0;
  for (long item = get_group_id(0); item < items; item += get_num_groups(0)) {

    const int own = OWN, slice = SLICE_OF(own), across = ACROSS_OF(own);  // Gemm dense
    const long M = n[0], N = n[1], K = n[2], row_blocks = (M + ROWS - 1) / ROWS;  // Gemm dense
    const long column_blocks = (N + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;  // Gemm dense
    const long row0 = item % row_blocks * ROWS, column0 = item / row_blocks % column_blocks * BLOCK_COLUMNS;  // Gemm dense
    const long batch = item / row_blocks / column_blocks;  // Gemm dense
    const long a_row = n[3], a_step = n[4], b_step = n[5], b_column = n[6];  // Gemm dense
    long a_at = 0, b_at = 0, outer = batch;  // Gemm dense
    for (long d = n[10] - 1; d >= 0; --d) {  // Gemm dense
      const long index = outer % n[11 + 3 * d];  // Gemm dense
      outer /= n[11 + 3 * d];  // Gemm dense
      a_at += index * n[12 + 3 * d];  // Gemm dense
      b_at += index * n[13 + 3 * d];  // Gemm dense
    }

    long rows[ROWS];  // Gemm dense
#pragma unroll  // Gemm dense
    for (int r = 0; r < ROWS; ++r) rows[r] = a_at + min(row0 + r, M - 1) * a_row;  // Gemm dense

    for (int c = 0; c < LANES; c += CHAINS) {  // Gemm dense
      T found[ROWS * CHAINS];  // Gemm dense
      long from[CHAINS];  // Gemm dense
      TV sums[ROWS * CHAINS];  // Gemm dense
#pragma unroll  // Gemm dense
      for (int i = 0; i < CHAINS; ++i) from[i] = b_at + min(column0 + across * LANES + c + i, N - 1) * b_column;  // Gemm dense
#pragma unroll  // Gemm dense
      for (int i = 0; i < ROWS * CHAINS; ++i) sums[i] = (TV)0, found[i] = (T)0;  // Gemm dense
      long whole = K / LANES * LANES;  // Gemm dense
      if (slice < SLICES && across < ACROSS) {  // Gemm dense
#pragma unroll 2  // Gemm dense
        for (long k = slice * LANES; k < whole; k += SLICES * LANES) {  // Gemm dense
          TV b[CHAINS];  // Gemm dense
#pragma unroll  // Gemm dense
          for (int i = 0; i < CHAINS; ++i) b[i] = BV(from[i] + k);  // Gemm dense: reads %weights
#pragma unroll  // Gemm dense
          for (int r = 0; r < ROWS; ++r) {  // Gemm dense
            const TV a = STEPS_OF_A(rows[r], k);  // Gemm dense
#pragma unroll  // Gemm dense
            for (int i = 0; i < CHAINS; ++i) sums[r * CHAINS + i] = MULTIPLY_ADD(a, b[i], sums[r * CHAINS + i]);  // Gemm dense
          }
        }
#pragma unroll  // Gemm dense
        for (int r = 0; r < ROWS; ++r)  // Gemm dense
#pragma unroll  // Gemm dense
          for (int i = 0; i < CHAINS; ++i) {  // Gemm dense
            T sum = SUM_OF(sums[r * CHAINS + i]);  // Gemm dense
            for (long k = whole + slice; k < K; k += SLICES) sum += A(rows[r] + k * A_STEP) * B(from[i] + k);  // Gemm dense: reads %row, reads %weights
            found[r * CHAINS + i] = sum;  // Gemm dense
          }
      }

      const int together = TOGETHER;  // Gemm dense
      EACH_STEP(together) {  // Gemm dense
#pragma unroll  // Gemm dense
        for (int i = 0; i < ROWS * CHAINS; ++i) ADD_STEP(found[i], together);  // Gemm dense
      }
      if (slice < SLICES && across < ACROSS && slice % together == 0) {  // Gemm dense
#pragma unroll  // Gemm dense
        for (int i = 0; i < ROWS * CHAINS; ++i)  // Gemm dense
          pieces[(i * ACROSS + across) * SLICES + slice / together] = found[i];  // Gemm dense
      }
      SYNC;  // Gemm dense

      for (int i = own; i < ROWS * CHAINS * ACROSS; i += LOCAL_SIZE) {  // Gemm dense
        const int row = i / (CHAINS * ACROSS), chain = i / ACROSS % CHAINS, vector = i % ACROSS;  // Gemm dense
        const __local T* of = pieces + ((row * CHAINS + chain) * ACROSS + vector) * SLICES;  // Gemm dense
        T sum = of[0];  // Gemm dense
        for (int piece = 1; piece < SLICES / together; ++piece) sum += of[piece];  // Gemm dense
        ((__local T*)parts)[(row * ACROSS + vector) * LANES + c + chain] = sum;  // Gemm dense
      }
      SYNC;  // Gemm dense
    }

    for (int i = own; i < ROWS * ACROSS; i += LOCAL_SIZE) {  // Gemm dense
      const long row = row0 + i / ACROSS, at = column0 + i % ACROSS * LANES;  // Gemm dense
      if (row < M && at < N) {  // Gemm dense
        const int count = (int)min((long)LANES, N - at);  // Gemm dense
        const long line = LINE(row) + at;  // Gemm dense
        PLACE(place, line);  // Gemm dense
        TV x = parts[SUMS_AT(i / ACROSS, i % ACROSS)];  // Gemm dense
        AFTER(x, row, at, count);  // Gemm dense
        FINISH(place, line, 0, count, x);  // Gemm dense: writes %y
      }
    }
    SYNC;  // Gemm dense
  }
}

