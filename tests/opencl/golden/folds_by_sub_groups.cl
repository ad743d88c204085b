// snippet.Subgraph times, for some device
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF
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

float4 tenon_load_float4(__global const float* from, long count) {
  float some[4];
  for (int i = 0; i < 4; ++i) some[i] = i < count ? from[i] : 0;
  return vload4(0, some);
}

void tenon_store_float4(float4 value, __global float* to, long count) {
  float some[4];
  vstore4(value, 0, some);
  const int some_count = (int)min(count, 4l);
  for (int i = 0; i < some_count; ++i) to[i] = some[i];
}

__kernel __attribute__((intel_reqd_sub_group_size(16))) __attribute__((reqd_work_group_size(64, 1, 1)))
void tenon_snippet(__global const long* words, long first, long chunks,
    __global uchar* q0,
    __global uchar* q1,
    __global uchar* q2,
    __global uchar* q3) {
  __local float parts_float[128];
  int turn = 0;
  const long chunk = get_global_id(0) / 64;
  const int item = get_global_id(0) % 64;
  const long lane = item * 4;
  words += first + chunk * 11;
  const long w0 = words[0];
  const long w1 = words[1];
  const long w2 = words[2];
  const long w3 = words[3];
  const long w4 = words[4];
  const long w5 = words[5];
  const long w6 = words[6];
  const long w7 = words[7];
  const long w8 = words[8];
  const long w9 = words[9];
  const long w10 = words[10];
  int4 b0;
  float4 f0;
  float4 f1;
  float4 f2;
  float4 f3;
  float4 f4;
  long g4;
  long g5;
  long g6;
  __global uchar* p0;
  __global uchar* p1;
  __global uchar* p2;
  __global uchar* p3;
  // %6:g@g0 = Parameter #2
  p0 = q0 + w2;
  // %15:g@g1 = Parameter #4
  p1 = q1 + w4;
  // %16:g@g2 = Parameter #5
  p2 = q2 + w5;
  // %17:g@g3 = Parameter #6
  p3 = q3 + w6;
  // %0:g@g4 = Zero
  g4 = 0;
  // loop 0 d0 dim 0 %0 step 1 limit #0 {
  for (; g4 <= w0; g4 += 1) {
    // ReduceSum all: %1:f32@v0 = Scalar {bits = 0x0}
    f0 = (float4)(as_float((uint)0ul));
    // ReduceMax most: %2:f32@v1 = Scalar {bits = 0xff800000}
    f1 = (float4)(as_float((uint)4286578688ul));
    // ReduceProd times: %3:f32@v2 = Scalar {bits = 0x3f800000}
    f2 = (float4)(as_float((uint)1065353216ul));
    // %4:g@g5 = Zero
    g5 = 0;
    // loop 1 d1 dim 1 %4 vector step 256 limit #1 {
    for (; g5 <= w1; g5 += 256) {
      // %5:f32@v3 = Load f32 [%6 + %4]
      f3 = TENON_LOAD(float, 4, (__global const float*)(p0 + g5 * 4 + lane * 4));
      // ReduceSum all: %1:f32@v0 = Add %1, %5
      f0 = f0 + f3;
      // ReduceMax most: %2:f32@v1 = Max %2, %5
      f1 = select(f3, f1, (f1 > f3) | (f1 != f1));
      // ReduceProd times: %3:f32@v2 = Mul %3, %5
      f2 = f2 * f3;
    // }
    }
    // tail 2 d1 dim 1 %4 limit #3 -> %7:bool@m0, %8:g@g6 {
    g6 = w3 - g5;
    if (g6 > 0) {
      b0 = (int4)((int)(g6 - lane)) > (int4)(0, 1, 2, 3);
      // %9:f32@v3 = Load.partial f32 [%6 + %4], %7, %8
      f3 = ((g6 - lane) >= 4 ? TENON_LOAD(float, 4, (__global const float*)(p0 + g5 * 4 + lane * 4)) : tenon_load_float4((__global const float*)(p0 + g5 * 4 + lane * 4), (g6 - lane)));
      // ReduceSum all: %1:f32@v0 = Add %1, %9
      f0 = f0 + f3;
      // ReduceMax most: %10:f32@v4 = FillTail %9, %7 {bits = 0xff800000}
      f4 = select((float4)(as_float((uint)4286578688ul)), f3, (b0));
      // ReduceMax most: %2:f32@v1 = Max %2, %10
      f1 = select(f4, f1, (f1 > f4) | (f1 != f1));
      // ReduceProd times: %11:f32@v3 = FillTail %9, %7 {bits = 0x3f800000}
      f3 = select((float4)(as_float((uint)1065353216ul)), f3, (b0));
      // ReduceProd times: %3:f32@v2 = Mul %3, %11
      f2 = f2 * f3;
    // }
    }
    // ReduceSum all: %12:f32@v0 = FoldLanes %1 {by = "Add"}
     {
      const float2 t2 = f0.lo + f0.hi;
      const float2 t1 = t2 + t2.yx;
      float whole;
       {
        whole = sub_group_reduce_add(t1.x);
      }
      turn = 64 - turn;
      if (get_sub_group_local_id() == 0) parts_float[turn + get_sub_group_id()] = whole;
      barrier(CLK_LOCAL_MEM_FENCE);
      whole = parts_float[turn];
      for (uint n = 1; n < get_num_sub_groups(); ++n) whole = ((float2)(whole) + (float2)(parts_float[turn + n])).x;
      f0 = (float4)(whole);
    }
    // ReduceMax most: %13:f32@v1 = FoldLanes %2 {by = "Max"}
     {
      const float2 t2 = select(f1.hi, f1.lo, (f1.lo > f1.hi) | (f1.lo != f1.lo));
      const float2 t1 = select(t2.yx, t2, (t2 > t2.yx) | (t2 != t2));
      float whole;
       {
        const int size = as_int(~(uint)0 >> 1), bits = as_int(t1.x), key = isnan(t1.x) ? size : bits ^ (bits >> 31 & size);
        const int most = sub_group_reduce_max(key);
        whole = as_float(most ^ (most >> 31 & size));
      }
      turn = 64 - turn;
      if (get_sub_group_local_id() == 0) parts_float[turn + get_sub_group_id()] = whole;
      barrier(CLK_LOCAL_MEM_FENCE);
      whole = parts_float[turn];
      for (uint n = 1; n < get_num_sub_groups(); ++n) whole = (select((float2)(parts_float[turn + n]), (float2)(whole), ((float2)(whole) > (float2)(parts_float[turn + n])) | ((float2)(whole) != (float2)(whole)))).x;
      f1 = (float4)(whole);
    }
    // ReduceProd times: %14:f32@v2 = FoldLanes %3 {by = "Mul"}
     {
      const float2 t2 = f2.lo * f2.hi;
      const float2 t1 = t2 * t2.yx;
      float whole;
       {
        const uint size = get_sub_group_size(), own = get_sub_group_local_id();
        uint n = 1;
        while (2 * n < get_max_sub_group_size()) n *= 2;
        whole = t1.x;
        for (; n > 0; n /= 2) {
          const float other = sub_group_shuffle(whole, min(own + n, size - 1));
          if (own + n < size) whole = ((float2)(whole) * (float2)(other)).x;
        }
        whole = sub_group_broadcast(whole, 0);
      }
      turn = 64 - turn;
      if (get_sub_group_local_id() == 0) parts_float[turn + get_sub_group_id()] = whole;
      barrier(CLK_LOCAL_MEM_FENCE);
      whole = parts_float[turn];
      for (uint n = 1; n < get_num_sub_groups(); ++n) whole = ((float2)(whole) * (float2)(parts_float[turn + n])).x;
      f2 = (float4)(whole);
    }
    // Store.one f32 [%15], %12
    tenon_store_float4(f0, (__global float*)(p1 + lane * 4), (1 - lane));
    // Store.one f32 [%16], %13
    tenon_store_float4(f1, (__global float*)(p2 + lane * 4), (1 - lane));
    // Store.one f32 [%17], %14
    tenon_store_float4(f2, (__global float*)(p3 + lane * 4), (1 - lane));
    // %6:g@g0 = AddParameter %6 #7
    p0 = p0 + w7;
    // %15:g@g1 = AddParameter %15 #8
    p1 = p1 + w8;
    // %16:g@g2 = AddParameter %16 #9
    p2 = p2 + w9;
    // %17:g@g3 = AddParameter %17 #10
    p3 = p3 + w10;
  // }
  }
}

