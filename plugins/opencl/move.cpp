#include "opencl/move.hpp"

#include <algorithm>

#include <tenon/support/str.hpp>

namespace tenon::opencl {
namespace {

struct MoveDim {
  int64_t extent, to, from;  // strides in bytes
};

// Dim 0 is the fastest. Drops dims of extent 1 and merges dims that are contiguous.
std::vector<MoveDim> joined_dims(const program::FlatOperand& to, const program::FlatOperand& from) {
  std::vector<MoveDim> dims;
  for (size_t d = 0; d < to.dims.size(); ++d) {
    const MoveDim dim{to.dims[d].extent, to.dims[d].stride, from.dims[d].stride};
    if (dim.extent == 1) continue;
    MoveDim* before = dims.empty() ? nullptr : &dims.back();
    if (before && dim.to == before->to * before->extent && dim.from == before->from * before->extent)
      before->extent *= dim.extent;
    else
      dims.push_back(dim);
  }
  return dims;
}

}  // namespace

MovePlan plan_move(const program::FlatOperand& to, const program::FlatOperand& from) {
  MovePlan plan{.to = to.offset_bytes, .from = from.offset_bytes};
  const int64_t element = to.element.bits() / 8;
  std::vector<MoveDim> dims = joined_dims(to, from);
  const bool dense = dims.empty() || (dims[0].to == element && dims[0].from == element);
  if (dims.size() <= 1 && dense) {
    plan.bytes = element * (dims.empty() ? 1 : dims[0].extent);
    return plan;
  }
  plan.unit_bytes = static_cast<int>(std::min<int64_t>(element & -element, 8));
  if (plan.unit_bytes < element)
    dims.insert(dims.begin(), {element / plan.unit_bytes, plan.unit_bytes, plan.unit_bytes});
  plan.rows = 1;
  for (size_t d = 1; d < dims.size(); ++d) plan.rows *= dims[d].extent;
  plan.table = {plan.to, plan.from, plan.rows, static_cast<int64_t>(dims.size()) - 1};
  for (const MoveDim& dim : dims) plan.table.insert(plan.table.end(), {dim.extent, dim.to, dim.from});
  return plan;
}

std::string move_source(int unit_bytes, int64_t work_group) {
  const std::string_view unit = unit_bytes == 8   ? "ulong"
                                : unit_bytes == 4 ? "uint"
                                : unit_bytes == 2 ? "ushort"
                                                  : "uchar";
  const bool by_rows = work_group == 1;
  const std::string copy = str("*(__global ", unit, "*)(to + at + i * to_step) = *(__global const ", unit,
                               "*)(from + origin + i * from_step);\n");
  return str("__kernel __attribute__((reqd_work_group_size(", work_group, ", 1, 1)))\nvoid ", kMoveKernel,
             "(__global const long* words, long first, __global uchar* to, __global const uchar* from) {\n"
             "  __global const long* table = words + first;\n"
             "  const long outer = table[3];\n"
             "  const long extent = table[4], to_step = table[5], from_step = table[6];\n"
             "  const long pieces = table[2]",
             by_rows ? "" : " * extent",
             ";\n"
             "  for (long piece = get_global_id(0); piece < pieces; piece += get_global_size(0)) {\n"
             "    long at = table[0], origin = table[1], rest = piece",
             by_rows ? "" : " / extent",
             ";\n"
             "    for (long d = 1; d <= outer; ++d) {\n"
             "      const long index = rest % table[4 + 3 * d];\n"
             "      rest /= table[4 + 3 * d];\n"
             "      at += index * table[5 + 3 * d];\n"
             "      origin += index * table[6 + 3 * d];\n"
             "    }\n",
             by_rows ? "    for (long i = 0; i < extent; ++i)\n      " : "    const long i = piece % extent;\n    ",
             copy,
             "  }\n"
             "}\n");
}

}  // namespace tenon::opencl
