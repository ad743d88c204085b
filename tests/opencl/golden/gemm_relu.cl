// MatMul dense with snippet.Subgraph positive, for some device
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

ushort to_bfloat(float x) {
  const uint bits = as_uint(x);
  return isnan(x) ? (ushort)((bits >> 16) | 0x40u) : (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#define TENON_NEAR(element, vector) struct __attribute__((packed, aligned(sizeof(element)))) { vector v; }
#define TENON_LOAD(element, lanes, from) (((__global const TENON_NEAR(element, element##lanes)*)(from))->v)
#define TENON_STORE(element, lanes, to, x) ((__global TENON_NEAR(element, element##lanes)*)(to))->v = x
#define LOCAL_ID 0
#define LOCAL_SIZE 1
#define SYNC
#define A_STEP 1
#define AFTER(x, row, at, count) (void)0
#define T float
#define TV float4
#define MULTIPLY_ADD(a, b, c) fma((a), (b), (c))
#define ROWS 8
#define VECTORS 2
#define LANES 4
#define COLUMNS 8
#define VLOAD vload4
#define DEPTH 512
#define PANEL(k, v) panel[(k) * VECTORS + (v)]
#define BLOCK_ROWS 256
#define PARTIAL(row, v) partial[(row) * VECTORS + (v)]
#define ROW_OF_A(row) (a_at + (row) * a_row)
#define START(row) 0
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
void tenon_finish(__global const long* f, long e, int count, int whole, float4 x, __global uchar* r0) {
  float4 f0;
  float4 f1;
  float4 f2;
  f0 = x;
  // Relu positive: %1:f32@v1 = Scalar {bits = 0x0}
  f1 = (float4)(as_float((uint)0ul));
  // Relu positive: %2:f32@v2 = ClampLow %0, %1
  f2 = select(f0, f1, f0 < f1);
   {
    const float4 stored = f2;
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
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void tenon_compute(__global const long* words, long first, __global uchar* q0, __global uchar* q1, __global uchar* q2) {
  __local TV panel[DEPTH * VECTORS];
  __local TV partial[BLOCK_ROWS * VECTORS];
  __global const long* n = words + first;
  __global uchar* a0 = q0 + n[0];
  __global uchar* a1 = q1 + n[1];
  __global uchar* r0 = q2 + n[2];
  const int step = (int)n[3];
  const long items = n[4];
  __global const long* f = n + 5;
  n = f + 2;
  const long workers = get_global_size(0), begin = items * get_global_id(0) / workers;
  const long end = items * (get_global_id(0) + 1) / workers;
  for (long item = begin; item < end; ++item) {

    const long M = n[0], N = n[1], K = n[2], job_rows = n[9];  // MatMul dense
    const long a_row = n[3], a_step = n[4], b_step = n[5], b_column = n[6];  // MatMul dense
    const long row_blocks = (M + job_rows - 1) / job_rows, column_blocks = (N + COLUMNS - 1) / COLUMNS;  // MatMul dense
    const long row0 = item % row_blocks * job_rows, row1 = min(M, row0 + job_rows);  // MatMul dense
    // The last block of columns is moved back to be a whole one: what two of them have is the same.  // MatMul dense
    const long column = min(item / row_blocks % column_blocks * COLUMNS, max(N - COLUMNS, 0l));  // MatMul dense
    const long batch = item / row_blocks / column_blocks;  // MatMul dense
    long a_at = 0, b_at = 0, outer = batch;  // MatMul dense
    for (long d = n[10] - 1; d >= 0; --d) {  // MatMul dense
      const long index = outer % n[11 + 3 * d];  // MatMul dense
      outer /= n[11 + 3 * d];  // MatMul dense
      a_at += index * n[12 + 3 * d];  // MatMul dense
      b_at += index * n[13 + 3 * d];  // MatMul dense
    }

    for (long k0 = 0; k0 == 0 || k0 < K; k0 += DEPTH) {  // MatMul dense
    const long depth = min((long)DEPTH, K - k0);  // MatMul dense

    for (long k = LOCAL_ID; k < depth; k += LOCAL_SIZE)  // MatMul dense
      for (int v = 0; v < VECTORS; ++v) {  // MatMul dense
        const long first = column + v * LANES, from = b_at + (k0 + k) * b_step + first * b_column;  // MatMul dense
        if (b_column == 1 && first + LANES <= N) {  // MatMul dense
          PANEL(k, v) = BV(from);  // MatMul dense: reads %weights
        } else {  // MatMul dense
          T some[LANES];  // MatMul dense
          for (int c = 0; c < LANES; ++c) some[c] = first + c < N ? B(from + c * b_column) : (T)0;  // MatMul dense: reads %weights
          PANEL(k, v) = VLOAD(0, some);  // MatMul dense
        }
      }
    SYNC;  // MatMul dense
    for (long row = row0 + LOCAL_ID * ROWS; row < row1; row += LOCAL_SIZE * ROWS) {  // MatMul dense
      A_TYPE row_0 = A_AT(ROW_OF_A(min(row + 0, row1 - 1)) + k0 * A_STEP);  // MatMul dense
      A_TYPE row_1 = A_AT(ROW_OF_A(min(row + 1, row1 - 1)) + k0 * A_STEP);  // MatMul dense
      A_TYPE row_2 = A_AT(ROW_OF_A(min(row + 2, row1 - 1)) + k0 * A_STEP);  // MatMul dense
      A_TYPE row_3 = A_AT(ROW_OF_A(min(row + 3, row1 - 1)) + k0 * A_STEP);  // MatMul dense
      A_TYPE row_4 = A_AT(ROW_OF_A(min(row + 4, row1 - 1)) + k0 * A_STEP);  // MatMul dense
      A_TYPE row_5 = A_AT(ROW_OF_A(min(row + 5, row1 - 1)) + k0 * A_STEP);  // MatMul dense
      A_TYPE row_6 = A_AT(ROW_OF_A(min(row + 6, row1 - 1)) + k0 * A_STEP);  // MatMul dense
      A_TYPE row_7 = A_AT(ROW_OF_A(min(row + 7, row1 - 1)) + k0 * A_STEP);  // MatMul dense
      TV s0_0, s0_1, s1_0, s1_1, s2_0, s2_1, s3_0, s3_1, s4_0, s4_1, s5_0, s5_1, s6_0, s6_1, s7_0, s7_1;  // MatMul dense
      if (k0 > 0) {  // MatMul dense
        s0_0 = PARTIAL(row - row0 + 0, 0);  // MatMul dense
        s0_1 = PARTIAL(row - row0 + 0, 1);  // MatMul dense
        s1_0 = PARTIAL(row - row0 + 1, 0);  // MatMul dense
        s1_1 = PARTIAL(row - row0 + 1, 1);  // MatMul dense
        s2_0 = PARTIAL(row - row0 + 2, 0);  // MatMul dense
        s2_1 = PARTIAL(row - row0 + 2, 1);  // MatMul dense
        s3_0 = PARTIAL(row - row0 + 3, 0);  // MatMul dense
        s3_1 = PARTIAL(row - row0 + 3, 1);  // MatMul dense
        s4_0 = PARTIAL(row - row0 + 4, 0);  // MatMul dense
        s4_1 = PARTIAL(row - row0 + 4, 1);  // MatMul dense
        s5_0 = PARTIAL(row - row0 + 5, 0);  // MatMul dense
        s5_1 = PARTIAL(row - row0 + 5, 1);  // MatMul dense
        s6_0 = PARTIAL(row - row0 + 6, 0);  // MatMul dense
        s6_1 = PARTIAL(row - row0 + 6, 1);  // MatMul dense
        s7_0 = PARTIAL(row - row0 + 7, 0);  // MatMul dense
        s7_1 = PARTIAL(row - row0 + 7, 1);  // MatMul dense
      } else {  // MatMul dense
        s0_0 = s0_1 = (TV)START(min(row + 0, row1 - 1));  // MatMul dense
        s1_0 = s1_1 = (TV)START(min(row + 1, row1 - 1));  // MatMul dense
        s2_0 = s2_1 = (TV)START(min(row + 2, row1 - 1));  // MatMul dense
        s3_0 = s3_1 = (TV)START(min(row + 3, row1 - 1));  // MatMul dense
        s4_0 = s4_1 = (TV)START(min(row + 4, row1 - 1));  // MatMul dense
        s5_0 = s5_1 = (TV)START(min(row + 5, row1 - 1));  // MatMul dense
        s6_0 = s6_1 = (TV)START(min(row + 6, row1 - 1));  // MatMul dense
        s7_0 = s7_1 = (TV)START(min(row + 7, row1 - 1));  // MatMul dense
      }
      for (long k1 = 0; k1 < depth; k1 += 256)  // MatMul dense
      for (long k = k1, k2 = min(k1 + 256, (long)depth); k < k2; ++k) {  // MatMul dense
        const TV b0 = PANEL(k, 0);  // MatMul dense
        const TV b1 = PANEL(k, 1);  // MatMul dense
        TV repeated;  // MatMul dense
        repeated = (TV)A_FROM(row_0, k * A_STEP);  // MatMul dense: reads %rows
        s0_0 = MULTIPLY_ADD(repeated, b0, s0_0);  // MatMul dense
        s0_1 = MULTIPLY_ADD(repeated, b1, s0_1);  // MatMul dense
        repeated = (TV)A_FROM(row_1, k * A_STEP);  // MatMul dense: reads %rows
        s1_0 = MULTIPLY_ADD(repeated, b0, s1_0);  // MatMul dense
        s1_1 = MULTIPLY_ADD(repeated, b1, s1_1);  // MatMul dense
        repeated = (TV)A_FROM(row_2, k * A_STEP);  // MatMul dense: reads %rows
        s2_0 = MULTIPLY_ADD(repeated, b0, s2_0);  // MatMul dense
        s2_1 = MULTIPLY_ADD(repeated, b1, s2_1);  // MatMul dense
        repeated = (TV)A_FROM(row_3, k * A_STEP);  // MatMul dense: reads %rows
        s3_0 = MULTIPLY_ADD(repeated, b0, s3_0);  // MatMul dense
        s3_1 = MULTIPLY_ADD(repeated, b1, s3_1);  // MatMul dense
        repeated = (TV)A_FROM(row_4, k * A_STEP);  // MatMul dense: reads %rows
        s4_0 = MULTIPLY_ADD(repeated, b0, s4_0);  // MatMul dense
        s4_1 = MULTIPLY_ADD(repeated, b1, s4_1);  // MatMul dense
        repeated = (TV)A_FROM(row_5, k * A_STEP);  // MatMul dense: reads %rows
        s5_0 = MULTIPLY_ADD(repeated, b0, s5_0);  // MatMul dense
        s5_1 = MULTIPLY_ADD(repeated, b1, s5_1);  // MatMul dense
        repeated = (TV)A_FROM(row_6, k * A_STEP);  // MatMul dense: reads %rows
        s6_0 = MULTIPLY_ADD(repeated, b0, s6_0);  // MatMul dense
        s6_1 = MULTIPLY_ADD(repeated, b1, s6_1);  // MatMul dense
        repeated = (TV)A_FROM(row_7, k * A_STEP);  // MatMul dense: reads %rows
        s7_0 = MULTIPLY_ADD(repeated, b0, s7_0);  // MatMul dense
        s7_1 = MULTIPLY_ADD(repeated, b1, s7_1);  // MatMul dense
      }
      if (k0 + depth < K) {  // MatMul dense
        PARTIAL(row - row0 + 0, 0) = s0_0;  // MatMul dense
        PARTIAL(row - row0 + 0, 1) = s0_1;  // MatMul dense
        PARTIAL(row - row0 + 1, 0) = s1_0;  // MatMul dense
        PARTIAL(row - row0 + 1, 1) = s1_1;  // MatMul dense
        PARTIAL(row - row0 + 2, 0) = s2_0;  // MatMul dense
        PARTIAL(row - row0 + 2, 1) = s2_1;  // MatMul dense
        PARTIAL(row - row0 + 3, 0) = s3_0;  // MatMul dense
        PARTIAL(row - row0 + 3, 1) = s3_1;  // MatMul dense
        PARTIAL(row - row0 + 4, 0) = s4_0;  // MatMul dense
        PARTIAL(row - row0 + 4, 1) = s4_1;  // MatMul dense
        PARTIAL(row - row0 + 5, 0) = s5_0;  // MatMul dense
        PARTIAL(row - row0 + 5, 1) = s5_1;  // MatMul dense
        PARTIAL(row - row0 + 6, 0) = s6_0;  // MatMul dense
        PARTIAL(row - row0 + 6, 1) = s6_1;  // MatMul dense
        PARTIAL(row - row0 + 7, 0) = s7_0;  // MatMul dense
        PARTIAL(row - row0 + 7, 1) = s7_1;  // MatMul dense
        continue;  // MatMul dense
      }
      int whole = row + ROWS <= row1 && column + COLUMNS <= N;  // MatMul dense
      const long line_0 = LINE(row) + column;  // MatMul dense
      PLACE(place_0, line_0);  // MatMul dense
      whole = whole && IN_LINE(place_0, COLUMNS);  // MatMul dense
      const long line_1 = line_0 + N;  // MatMul dense
      PLACE_BEHIND(place_1, place_0, line_0, N);  // MatMul dense
      whole = whole && IN_LINE(place_1, COLUMNS);  // MatMul dense
      const long line_2 = line_1 + N;  // MatMul dense
      PLACE_BEHIND(place_2, place_1, line_1, N);  // MatMul dense
      whole = whole && IN_LINE(place_2, COLUMNS);  // MatMul dense
      const long line_3 = line_2 + N;  // MatMul dense
      PLACE_BEHIND(place_3, place_2, line_2, N);  // MatMul dense
      whole = whole && IN_LINE(place_3, COLUMNS);  // MatMul dense
      const long line_4 = line_3 + N;  // MatMul dense
      PLACE_BEHIND(place_4, place_3, line_3, N);  // MatMul dense
      whole = whole && IN_LINE(place_4, COLUMNS);  // MatMul dense
      const long line_5 = line_4 + N;  // MatMul dense
      PLACE_BEHIND(place_5, place_4, line_4, N);  // MatMul dense
      whole = whole && IN_LINE(place_5, COLUMNS);  // MatMul dense
      const long line_6 = line_5 + N;  // MatMul dense
      PLACE_BEHIND(place_6, place_5, line_5, N);  // MatMul dense
      whole = whole && IN_LINE(place_6, COLUMNS);  // MatMul dense
      const long line_7 = line_6 + N;  // MatMul dense
      PLACE_BEHIND(place_7, place_6, line_6, N);  // MatMul dense
      whole = whole && IN_LINE(place_7, COLUMNS);  // MatMul dense
      if (whole) {  // MatMul dense
        AFTER(s0_0, row + 0, column + 0 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_0, line_0, 0 * LANES, s0_0);  // MatMul dense: goes on with positive
        AFTER(s0_1, row + 0, column + 1 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_0, line_0, 1 * LANES, s0_1);  // MatMul dense: goes on with positive
        AFTER(s1_0, row + 1, column + 0 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_1, line_1, 0 * LANES, s1_0);  // MatMul dense: goes on with positive
        AFTER(s1_1, row + 1, column + 1 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_1, line_1, 1 * LANES, s1_1);  // MatMul dense: goes on with positive
        AFTER(s2_0, row + 2, column + 0 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_2, line_2, 0 * LANES, s2_0);  // MatMul dense: goes on with positive
        AFTER(s2_1, row + 2, column + 1 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_2, line_2, 1 * LANES, s2_1);  // MatMul dense: goes on with positive
        AFTER(s3_0, row + 3, column + 0 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_3, line_3, 0 * LANES, s3_0);  // MatMul dense: goes on with positive
        AFTER(s3_1, row + 3, column + 1 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_3, line_3, 1 * LANES, s3_1);  // MatMul dense: goes on with positive
        AFTER(s4_0, row + 4, column + 0 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_4, line_4, 0 * LANES, s4_0);  // MatMul dense: goes on with positive
        AFTER(s4_1, row + 4, column + 1 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_4, line_4, 1 * LANES, s4_1);  // MatMul dense: goes on with positive
        AFTER(s5_0, row + 5, column + 0 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_5, line_5, 0 * LANES, s5_0);  // MatMul dense: goes on with positive
        AFTER(s5_1, row + 5, column + 1 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_5, line_5, 1 * LANES, s5_1);  // MatMul dense: goes on with positive
        AFTER(s6_0, row + 6, column + 0 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_6, line_6, 0 * LANES, s6_0);  // MatMul dense: goes on with positive
        AFTER(s6_1, row + 6, column + 1 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_6, line_6, 1 * LANES, s6_1);  // MatMul dense: goes on with positive
        AFTER(s7_0, row + 7, column + 0 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_7, line_7, 0 * LANES, s7_0);  // MatMul dense: goes on with positive
        AFTER(s7_1, row + 7, column + 1 * LANES, LANES);  // MatMul dense
        FINISH_WHOLE(place_7, line_7, 1 * LANES, s7_1);  // MatMul dense: goes on with positive
        continue;  // MatMul dense
      }
      const TV sums[ROWS * VECTORS] = {s0_0, s0_1, s1_0, s1_1, s2_0, s2_1, s3_0, s3_1, s4_0, s4_1, s5_0, s5_1, s6_0, s6_1, s7_0, s7_1};  // MatMul dense

      for (int r = 0; r < ROWS && row + r < row1; ++r) {  // MatMul dense
        const long line = LINE(row + r) + column;  // MatMul dense
        PLACE(place, line);  // MatMul dense
        for (int v = 0; v < VECTORS; ++v) {  // MatMul dense
          const long at = column + v * LANES;  // MatMul dense
          const int count = (int)min((long)LANES, N - at);  // MatMul dense
          if (count <= 0) break;  // MatMul dense
          TV x = sums[r * VECTORS + v];  // MatMul dense
          AFTER(x, row + r, at, count);  // MatMul dense
          FINISH(place, line, v * LANES, count, x);  // MatMul dense: goes on with positive
        }
      }
    }
    SYNC;  // MatMul dense
    }
  }
}

