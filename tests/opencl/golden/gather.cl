// Gather embed, for some device
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
#define X(i) (((__global const uint*)a0)[i])
#define INDEX(i) ((long)((__global const long*)a1)[i])
#define INDEXV(i) TENON_LOAD(long, 16, ((__global const long*)a1) + (i))
#define Y(i, v) ((__global uint*)r0)[i] = (v)
#define FAULT *fault = step
static long place(long index, long extent, int* wrong) {  // Gather embed
  const long at = index < 0 ? index + extent : index;  // Gather embed
  if (at >= 0 && at < extent) return at;  // Gather embed
  *wrong = 1;  // Gather embed
  return 0;  // Gather embed
}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void tenon_compute(__global const long* words, long first, __global uchar* q0, __global uchar* q1, __global uchar* q2, __global int* fault) {
  __global const long* n = words + first;
  __global uchar* a0 = q0 + n[0];
  __global uchar* a1 = q1 + n[1];
  __global uchar* r0 = q2 + n[2];
  const int step = (int)n[3];
  const long items = n[4];
  __global const long* f = n + 5;
  n = f + 0;
  const long workers = get_global_size(0), begin = items * get_global_id(0) / workers;
  const long end = items * (get_global_id(0) + 1) / workers;
  for (long item = begin; item < end; ++item) {

    const long count = n[0], extent = n[1], inner = n[2];  // Gather embed
    int wrong = 0;  // Gather embed
    const long from = (item / count * extent + place(INDEX(item % count), extent, &wrong)) * inner;  // Gather embed: reads %words
    if (wrong) FAULT;  // Gather embed
    for (long j = 0; j < inner; ++j) Y(item * inner + j, X(from + j));  // Gather embed: reads %table, writes %rows
  }
}

