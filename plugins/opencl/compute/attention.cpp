// Attention by online softmax: a job has some rows of queries of one head and traverses the keys block by block. Scores
// of a block are in registers. The state of a row is its greatest score, the sum of exponentials, and the weighted sum
// of values; the sums are rescaled when a greater score comes (Milakov and Gimelshein 2018). Scores are written to
// memory only where qk_matmul_output asks for them. Q, K, V of narrow floats are computed in f32.
//
//   local memory   a block of keys, transposed, DEPTH elements of each at a time; the block's values
//   registers      ROWS rows by KEYS scores; ROWS by COLUMNS sums; wider heads have several jobs
//
// In work groups an item has one row. Its query is in local memory as well, because in global memory it is a row away
// from those of adjacent items, and is read for each block of keys. The weights of a block are in local memory, too,
// because they would otherwise be an array in private memory; scores and sums are registers, since all loops over them
// are unrolled.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <tenon/ops/attention.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/attention.hpp"
#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/heads.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

constexpr int kMostColumns = 128, kVectorsOfGroup = 4, kLeastDepth = 16;
constexpr int kMostQueryRows = 32;  // of a work item in a group of one

constexpr std::string_view kMask =
    "if (n[23] == 1) bias = (TV)MASK_OF(MASK(bias_at + i * n[22])); "
    "else if (j0 + LANES <= n[23]) bias = MASK_OF_V(MASKV(bias_at + i * n[22] + j0)); "
    "else { T some[LANES]; for (int c = 0; c < LANES; ++c) "
    "some[c] = j0 + c < n[23] ? MASK_OF(MASK(bias_at + i * n[22] + j0 + c)) : -INFINITY; bias = VLOAD(0, some); }";

std::optional<int64_t> extent_of(const Type& type, size_t from_end) {
  const auto dims = type.shape().static_dims();
  if (!dims || dims->size() <= from_end) return std::nullopt;
  return (*dims)[dims->size() - 1 - from_end];
}

// As many rows and columns as the heads have, where that is known.
void fit_group(AttentionTile& tile, int64_t value_size, int bytes, const ComputeTarget& target) {
  const auto fits = [&] { return tile.local_elements() * bytes <= target.local_bytes; };
  tile.group = target.work_group, tile.vectors = kVectorsOfGroup;
  while (2 * tile.columns <= kMostColumns && tile.columns < value_size) tile.columns *= 2;
  // Columns last: those that do not fit have a job of their own, which computes the scores again.
  while (!fits() && tile.depth > kLeastDepth) tile.depth /= 2;
  while (!fits() && tile.columns > tile.lanes) tile.columns /= 2;
  while (!fits() && tile.vectors > 1) tile.vectors /= 2;
  while (!fits() && tile.lanes > 2) tile.lanes /= 2, tile.columns /= 2;
  while (!fits() && tile.depth > 1) tile.depth /= 2;
}

AttentionTile choose_attention_tile(const KernelRequest& request, ElementType work, const ComputeTarget& target) {
  AttentionTile tile;
  const int bytes = static_cast<int>(work.bits()) / 8;
  tile.lanes = std::max(target.lanes * 4 / bytes, 2);
  const bool packed = request.operands[2].shape().rank() == 3;
  const auto rows = extent_of(request.operands[0], 1);
  const int64_t value_size = packed ? kMostColumns : extent_of(request.operands[2], 0).value_or(kMostColumns);
  tile.columns = tile.lanes;
  if (target.work_group > 1) {
    fit_group(tile, value_size, bytes, target);
    return tile;
  }
  while (tile.rows < kMostQueryRows && (!rows || tile.rows < *rows)) tile.rows *= 2;
  const auto doubled = [&] {
    AttentionTile wider = tile;
    wider.columns *= 2;
    return wider;
  };
  while (2 * tile.columns <= kMostColumns && tile.columns < value_size &&
         doubled().local_elements() * bytes <= target.local_bytes)
    tile = doubled();
  return tile;
}

void define_attention_tile(ComputeSource& source, const AttentionTile& tile, ElementType work) {
  const bool wide = work == kF64;
  source.vectors_of(tile.lanes);
  source.define("T", scalar_name(work));
  source.define("TV", lanes_name(work, tile.lanes));
  source.define("TI", lanes_name(wide ? kI64 : kI32, tile.lanes));
  source.define("LANES", tile.lanes);
  source.define("VECTORS", tile.vectors);
  source.define("KEYS", tile.keys());
  source.define("ROWS", tile.rows);
  source.define("MICRO", tile.micro());
  source.define("SUMS", tile.sums());
  source.define("COLUMNS", tile.columns);
  source.define("DEPTH", tile.depth);
  source.define("VLOAD", str("vload", tile.lanes));
  source.define("VSTORE", str("vstore", tile.lanes));
  source.define("BITS(word)", wide ? "as_double(word)" : "as_float((uint)(word))");
  std::string numbers = "((TI)(0";
  for (int lane = 1; lane < tile.lanes; ++lane) numbers += str(", ", lane);
  source.define("LANE_NUMBERS", numbers + "))");
  source.functions(lanes_function("most_of", "fmax", work, tile.lanes));
  source.functions(lanes_function("sum_of", "+", work, tile.lanes));
  source.local("  __local TV key_panel[DEPTH * KEY_PITCH], value_panel[KEYS * SUMS];\n");
  source.define("KEY_PITCH", tile.key_pitch());
  source.define("KEY(d, t)", "((__local T*)key_panel)[(d) * (KEY_PITCH * LANES) + (t)]");
  source.define("VALUE(t, c)", "((__local T*)value_panel)[(t) * COLUMNS + (c)]");
  if (!tile.together()) {
    source.define("WEIGHT(row, t)", "(((T*)s)[(row) * KEYS + (t)])");
    source.define("KEEP(row, v, weight)", "s[(row) * VECTORS + (v)] = (weight)");
    return;
  }
  source.local("  __local T query_panel[DEPTH * ROW_PITCH], weight_panel[KEYS * ROW_PITCH];\n");
  source.define("ROW_PITCH", tile.row_pitch());
  source.define("QUERY(row, d)", "query_panel[(d) * ROW_PITCH + (row)]");
  source.define("WEIGHT(row, t)", "weight_panel[(t) * ROW_PITCH + (row)]");
  // An item only reads what it has stored itself.
  std::string kept;
  for (int lane = 0; lane < tile.lanes; ++lane)
    kept += str(lane ? ", " : "", "WEIGHT(LOCAL_ID, (v) * LANES + ", lane, ") = (weight).s", "0123456789abcdef"[lane]);
  source.define("KEEP(row, v, weight)", kept);
}

void define_mask(ComputeSource& source, const KernelRequest& request, ElementType work) {
  const bool nonpad = request.passes(6), causal = request.op.attr<int64_t>("is_causal", 0) != 0;
  if (nonpad) source.load("NONPAD_OF", 6, kI64);
  source.define("NONPAD(batch)", nonpad ? "min(keys, NONPAD_OF(batch))" : "keys");
  source.define("DIAGONAL(batch)", nonpad ? "(NONPAD_OF(batch) - L)" : "past");
  source.define("VISIBLE(i)", causal ? "clamp(min(length, (i) + 1 + diagonal), 0l, keys)"
                                     : "(clamp(length, 0l, keys) + 0 * diagonal)");
  const float cap = request.op.attr<float>("softcap", 0.0f);
  source.define_float("SOFTCAP", cap);
  source.define("CAP(x)", cap > 0 ? "x = (T)SOFTCAP * tanh(x / (T)SOFTCAP)" : "");
  source.define("ADD_MASK", request.passes(3) ? kMask : std::string_view());
  if (!request.passes(3)) return;
  const bool truths = request.operands[3].element().is_bool();
  source.load("MASK", 3, work);
  source.define("MASK_OF(m)", truths ? "((m) != 0 ? (T)0 : (T)-INFINITY)" : "(m)");
  source.define("MASK_OF_V(m)", truths ? "select((TV)-INFINITY, (TV)0, (m) != (TV)0)" : "(m)");
}

// SHOW(stage): outputs x as `qk_matmul_output_mode` says. Of the jobs that differ in columns, one does that.
void define_shown(ComputeSource& source, const KernelRequest& request, ElementType work) {
  const bool shows = request.results.size() > 3;
  source.define("SHOWS", shows ? 1 : 0);
  if (!shows) {
    source.define("SHOW(stage)", "");
    return;
  }
  source.store("SHOWN", 3, work);
  source.define("MODE", request.op.attr<int64_t>("qk_matmul_output_mode", 0));
  source.define("SHOW(stage)",
                "if ((stage) == MODE && column0 == 0) { T some[LANES]; VSTORE(x, 0, some); "
                "for (int c = 0; c < LANES && j0 + c < keys; ++c) SHOWN(shown_at + i * keys + j0 + c, some[c]); }");
}

// ---- A launch ----

// Strides of a mask, which may have fewer axes: from batch to batch, head to head, row to row; and elements of a row.
Result<std::array<int64_t, 4>> mask_strides(const Op& op, const Dims& mask, const Dims& scores) {
  std::array<int64_t, 4> made{};
  const size_t rank = mask.size();
  bool fits = rank <= 4;
  int64_t stride = 1;
  made[3] = rank == 0 ? 1 : mask.back();
  for (size_t from_end = 0; fits && from_end < rank; ++from_end) {
    const int64_t extent = mask[rank - 1 - from_end], wanted = scores[3 - from_end];
    fits = extent == 1 || extent == wanted || (from_end == 0 && extent < wanted);
    if (from_end > 0) made[3 - from_end] = extent == 1 ? 0 : stride;
    stride *= extent;
  }
  if (fits) return made;
  return error(Code::unsupported, "attn_mask ", mask, " of ", op.describe(), " does not broadcast to the scores ",
               scores);
}

int64_t scale_bits(const Op& op, int64_t size, bool wide) {
  const double scale =
      op.attributes().has("scale") ? op.attr<float>("scale") : 1 / std::sqrt(static_cast<double>(size));
  return wide ? std::bit_cast<int64_t>(scale) : int64_t{std::bit_cast<uint32_t>(static_cast<float>(scale))};
}

Result<ComputeLaunch> launch_of(const Op& op, const CallShapes& shapes, const AttentionTile& tile, bool wide,
                                int64_t group) {
  const int64_t q_stated = op.attr<int64_t>("q_num_heads", 0), kv_stated = op.attr<int64_t>("kv_num_heads", 0);
  const HeadsOf q(shapes.operands[0], q_stated), k(shapes.operands[1], kv_stated), v(shapes.operands[2], kv_stated),
      y(shapes.results[0], q_stated);
  const int64_t past = shapes.operands.size() > 4 && !shapes.operands[4].empty() ? shapes.operands[4][2] : 0;
  const int64_t keys = past + k.length, rows = tile.rows * group;
  std::array<int64_t, 4> mask{};
  if (shapes.operands.size() > 3 && op.operand(3)) {
    TENON_TRY(strides, mask_strides(op, shapes.operands[3], {q.batch, q.heads, q.length, keys}));
    mask = strides;
  }
  if (shapes.operands.size() > 6 && op.operand(6) && elements_of(shapes.operands[6]) != q.batch)
    return error(Code::unsupported, "nonpad_kv_seqlen of ", op.describe(), " is ", shapes.operands[6]);
  const int64_t row_jobs = (q.length + rows - 1) / rows, column_jobs = (v.size + tile.columns - 1) / tile.columns;
  // Scores are an output even if values have no elements.
  const int64_t columns = op.result_count() > 3 ? std::max<int64_t>(column_jobs, 1) : column_jobs;
  const int64_t jobs = q.batch * q.heads * row_jobs * columns;
  const int64_t present = op.result_count() > 1 ? k.batch * k.heads * keys : 0;
  ComputeLaunch made{{q.length, k.length, past, q.size, v.size, q.heads, k.heads == 0 ? 1 : q.heads / k.heads, k.heads},
                     jobs + present * std::min<int64_t>(static_cast<int64_t>(op.result_count()) - 1, 2)};
  for (const HeadsOf& h : {q, k, v, y})
    made.numbers.insert(made.numbers.end(), {h.from_batch, h.from_head, h.from_row});
  made.numbers.insert(made.numbers.end(), mask.begin(), mask.end());
  made.numbers.insert(made.numbers.end(), {scale_bits(op, q.size, wide), std::max<int64_t>(row_jobs, 1),
                                           std::max<int64_t>(columns, 1), jobs, present});
  return made;
}

// ---- The source ----

// PAST_K and PAST_V are not read where there is no past.
void define_attention_ports(ComputeSource& source, ElementType work) {
  source.load("Q", 0, work);
  source.load("K", 1, work);
  source.load("V", 2, work);
  source.load_optional("PAST_K", 4, work, "(T)0");
  source.load_optional("PAST_V", 5, work, "(T)0");
  source.store("Y", 0, work);
  source.store_optional("PRESENT_K", 1, work);
  source.store_optional("PRESENT_V", 2, work);
}

Result<ComputeKernel> make_attention(const KernelRequest& request, const ComputeTarget& target) {
  const Op* op = &request.op;
  const ElementType work = work_type_of(request.operands[0].element());
  const AttentionTile tile = choose_attention_tile(request, work, target);
  ComputeSource source(request, target);
  source.of_group();
  define_attention_tile(source, tile, work);
  define_attention_ports(source, work);
  define_mask(source, request, work);
  define_shown(source, request, work);
  const bool probabilities = request.results.size() > 3 && op->attr<int64_t>("qk_matmul_output_mode", 0) == 3;
  return source.kernel(attention_body(tile, probabilities),
                       [op, tile, wide = work == kF64, group = target.work_group](const CallShapes& shapes) {
                         return launch_of(*op, shapes, tile, wide, group);
                       });
}

constexpr ComputeRow kAttentionRows[] = {{AttentionOp::kName, make_attention}};

}  // namespace

std::span<const ComputeRow> attention_rows() { return kAttentionRows; }

}  // namespace tenon::opencl
