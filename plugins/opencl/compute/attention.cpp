// Attention by running softmax: a job has some rows of queries of one head and walks the keys block by block. Scores
// of a block live in registers; what a row has seen so far is its greatest score, the sum of exponentials, and the
// weighted sum of values, which shrink when a greater score comes (Milakov and Gimelshein 2018). Scores see memory only
// where qk_matmul_output asks for them. Q, K, V of narrow floats are computed in f32.
//
//   local memory   a block of keys, transposed, DEPTH elements of each at a time; the block's values
//   registers      ROWS rows by KEYS scores; ROWS by COLUMNS sums, of which wider heads have several jobs
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <tenon/ops/attention.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

constexpr int kVectorsOfKeys = 2, kDepth = 64, kMostColumns = 128;
constexpr int kMicroRows = 4;  // rows whose sums are in registers at once
constexpr int kMostRows = 32;  // of a work item that is alone

// n: 0 rows, 1 keys of K, 2 of the past, 3 and 4 elements of a head of Q and V, 5 heads of Q, 6 of them for each of K,
// 7 heads of K, then elements from batch to batch, head to head, row to row: 8 of Q, 11 of K, 14 of V, 17 of Y; 20 of
// the mask from batch to batch, head to head, row to row; 23 elements of its row, 24 bits of the scale, 25 jobs of
// rows, 26 jobs of columns, 27 jobs, 28 rows of present_key and of present_value.
constexpr std::string_view kJob = R"(
    const long L = n[0], past = n[2], keys = past + n[1], D = n[3], DV = n[4], heads = n[5];
    if (item < n[27]) {
      const long job_row = item % n[25] * (ROWS * LOCAL_SIZE), row0 = job_row + LOCAL_ID * ROWS;
      const long column0 = item / n[25] % n[26] * COLUMNS;
      const long head = item / n[25] / n[26] % heads, batch = item / n[25] / n[26] / heads;
      const long kv_head = head / n[6], past_row = (batch * n[7] + kv_head) * past;
      const long q_at = batch * n[8] + head * n[9], k_at = batch * n[11] + kv_head * n[12];
      const long v_at = batch * n[14] + kv_head * n[15] + column0, y_at = batch * n[17] + head * n[18] + column0;
      const long bias_at = batch * n[20] + head * n[21], shown_at = (batch * heads + head) * L * keys;
      const long length = NONPAD(batch), diagonal = DIAGONAL(batch);
      const long end = SHOWS ? keys : VISIBLE(min(job_row + ROWS * LOCAL_SIZE, L) - 1);
      const T scale = BITS(n[24]);
      T top[ROWS], total[ROWS];
      int seen[ROWS];
      TV s[ROWS * VECTORS], sums[ROWS * SUMS];
      for (int r = 0; r < ROWS; ++r) top[r] = -INFINITY, total[r] = 0, seen[r] = 0;
      for (int i = 0; i < ROWS * SUMS; ++i) sums[i] = (TV)0;
)";

// Scores of a block of keys, up to what is added to them.
constexpr std::string_view kPackKeys = R"(
        for (int i = 0; i < ROWS * VECTORS; ++i) s[i] = (TV)0;
        for (long d0 = 0; d0 < D; d0 += DEPTH) {
          const int depth = (int)min((long)DEPTH, D - d0);
          for (long t = LOCAL_ID; t < KEYS; t += LOCAL_SIZE) {
            const long j = k0 + t, own = k_at + (j - past) * n[13] + d0, before = (past_row + j) * D + d0;
            for (int d = 0; d < depth; ++d)
              KEY(d, t) = j >= keys ? (T)0 : j < past ? PAST_K(before + d) : K(own + d);
          }
          SYNC;
          for (int r = 0; r < ROWS; r += MICRO) {
)";
constexpr std::string_view kPackKeysEnd = R"(
          }
          SYNC;
        }
)";

// What becomes of the scores x of a row, a vector at a time.
constexpr std::string_view kBias = R"(
            const long j0 = k0 + v * LANES;
            TV x = s[r * VECTORS + v] * scale;
            SHOW(0);
            CAP(x);
            SHOW(1);
            TV bias = (TV)0;
            ADD_MASK;
            const TI hidden = LANE_NUMBERS >= (TI)clamp(limit - j0, 0l, (long)LANES);
            bias = select(bias, (TV)-INFINITY, hidden);
            x = select(x + bias, (TV)-INFINITY, hidden);
            SHOW(2);
)";

constexpr std::string_view kMask =
    "if (n[23] == 1) bias = (TV)MASK_OF(MASK(bias_at + i * n[22])); "
    "else if (j0 + LANES <= n[23]) bias = MASK_OF_V(MASKV(bias_at + i * n[22] + j0)); "
    "else { T some[LANES]; for (int c = 0; c < LANES; ++c) "
    "some[c] = j0 + c < n[23] ? MASK_OF(MASK(bias_at + i * n[22] + j0 + c)) : -INFINITY; bias = VLOAD(0, some); }";

constexpr std::string_view kSoften = R"(
        for (int r = 0; r < ROWS && row0 + r < L; ++r) {
          const long i = row0 + r, limit = VISIBLE(i);
          TV most = (TV)top[r];
          for (int v = 0; v < VECTORS; ++v) {
BIAS
            seen[r] |= any(bias != (TV)-INFINITY);
            most = fmax(most, x);
            s[r * VECTORS + v] = x;
          }
          const T now = most_of(most), shift = now == -INFINITY ? 0 : now, shrink = exp(top[r] - shift);
          TV sum = (TV)0;
          for (int v = 0; v < VECTORS; ++v) {
            const TV weight = exp(s[r * VECTORS + v] - shift);
            s[r * VECTORS + v] = weight;
            sum += weight;
          }
          top[r] = now;
          total[r] = total[r] * shrink + sum_of(sum);
          if (shrink != 1)
            for (int c = 0; c < SUMS; ++c) sums[r * SUMS + c] *= shrink;
        }
)";

constexpr std::string_view kPackValues = R"(
        for (long t = LOCAL_ID; t < KEYS; t += LOCAL_SIZE) {
          const long j = k0 + t, own = v_at + (j - past) * n[16], before = (past_row + j) * DV + column0;
          const long count = min((long)COLUMNS, DV - column0);
          for (int c = 0; c < COLUMNS; ++c)
            VALUE(t, c) = c >= count || j >= keys ? (T)0 : j < past ? PAST_V(before + c) : V(own + c);
        }
        SYNC;
        const int steps = (int)min((long)KEYS, end - k0);
        for (int r = 0; r < ROWS; r += MICRO)
          for (int c = 0; c < SUMS; ++c) {
)";

constexpr std::string_view kStore = R"(
      for (int r = 0; r < ROWS && row0 + r < L; ++r)
        for (int c = 0; c < SUMS; ++c) {
          T some[LANES];
          VSTORE(sums[r * SUMS + c], 0, some);
          const int count = (int)min((long)LANES, DV - column0 - c * LANES);
          for (int i = 0; i < count; ++i)
            Y(y_at + (row0 + r) * n[19] + c * LANES + i, seen[r] ? some[i] / total[r] : (T)0);
        }
)";

// Probabilities, when what they are divided by is known: scores once more.
constexpr std::string_view kShowProbabilities = R"(
        for (int r = 0; r < ROWS && row0 + r < L; ++r) {
          const long i = row0 + r, limit = VISIBLE(i);
          for (int v = 0; v < VECTORS; ++v) {
BIAS
            x = seen[r] ? exp(x - (top[r] == -INFINITY ? 0 : top[r])) / total[r] : (TV)0;
            SHOW(3);
          }
        }
)";

// A row of present_key, or of present_value behind them.
constexpr std::string_view kPresent = R"(
    } else {
      const long line = item - n[27], values = line >= n[28], row = values ? line - n[28] : line;
      const long j = row % keys, kv_head = row / keys % n[7], batch = row / keys / n[7], size = values ? DV : D;
      const long before = ((batch * n[7] + kv_head) * past + j) * size;
      if (values) {
        const long own = batch * n[14] + kv_head * n[15] + (j - past) * n[16];
        for (long d = LOCAL_ID; d < size; d += LOCAL_SIZE)
          PRESENT_V(row * size + d, j < past ? PAST_V(before + d) : V(own + d));
      } else {
        const long own = batch * n[11] + kv_head * n[12] + (j - past) * n[13];
        for (long d = LOCAL_ID; d < size; d += LOCAL_SIZE)
          PRESENT_K(row * size + d, j < past ? PAST_K(before + d) : K(own + d));
      }
    }
)";

struct AttentionTile {
  int lanes = 1, rows = 1, columns = 1;
  int micro() const { return std::min(rows, kMicroRows); }
  int sums() const { return columns / lanes; }
};

std::optional<int64_t> extent_of(const Type& type, size_t from_end) {
  const auto dims = type.shape().static_dims();
  if (!dims || dims->size() <= from_end) return std::nullopt;
  return (*dims)[dims->size() - 1 - from_end];
}

// Rows and columns as many as the heads have, where that is known.
AttentionTile choose_attention_tile(const KernelRequest& request, ElementType work, const ComputeTarget& target) {
  AttentionTile tile;
  const int bytes = static_cast<int>(work.bits()) / 8;
  tile.lanes = std::max(target.lanes * 4 / bytes, 2);
  const bool packed = request.operands[2].shape().rank() == 3;
  const auto rows = extent_of(request.operands[0], 1), size = packed ? std::nullopt : extent_of(request.operands[2], 0);
  const int most = target.work_group == 1 ? kMostRows : 1;
  while (tile.rows < most && (!rows || tile.rows < *rows)) tile.rows *= 2;
  tile.columns = tile.lanes;
  const auto local = [&](int columns) { return int64_t{kVectorsOfKeys} * tile.lanes * (kDepth + columns) * bytes; };
  while (2 * tile.columns <= kMostColumns && (!size || tile.columns < *size) &&
         local(2 * tile.columns) <= target.local_bytes)
    tile.columns *= 2;
  return tile;
}

// name(x): the lanes of x, two halves at a time.
std::string reduction(std::string_view name, std::string_view both, ElementType work, int lanes) {
  const std::string_view type = scalar_name(work);
  std::string text = str("static ", type, " ", name, "(", lanes_name(work, lanes), " x", lanes, ") {\n");
  for (int half = lanes / 2; half >= 1; half /= 2) {
    const std::string from = str("x", 2 * half), a = from + (half > 1 ? ".lo" : ".x"),
                      b = from + (half > 1 ? ".hi" : ".y");
    const std::string made = both == "+" ? str(a, " + ", b) : str(both, "(", a, ", ", b, ")");
    text += str("  const ", type, half > 1 ? str(half) : std::string(), " x", half, " = ", made, ";\n");
  }
  return text + "  return x1;\n}\n";
}

// sum[row][vector] += factor[row] * panel[vector] over steps, with names instead of indices: registers.
struct MicroProduct {
  int rows, vectors;
  std::string_view indent, loop;  // over `step`
  std::string (*sum)(int row, int vector);
  std::string (*panel)(int vector);
  std::string (*factor)(int row);

  std::string text() const {
    std::string before, loads, adds, after;
    for (int v = 0; v < vectors; ++v) loads += str(indent, "  const TV panel", v, " = ", panel(v), ";\n");
    for (int r = 0; r < rows; ++r) {
      adds += str(indent, "  const TV factor", r, " = (TV)", factor(r), ";\n");
      for (int v = 0; v < vectors; ++v) {
        const std::string name = str("s", r, "_", v);
        before += str(indent, "TV ", name, " = ", sum(r, v), ";\n");
        adds += str(indent, "  ", name, " = fma(factor", r, ", panel", v, ", ", name, ");\n");
        after += str(indent, sum(r, v), " = ", name, ";\n");
      }
    }
    return str(before, indent, loop, " {\n", loads, adds, indent, "}\n", after);
  }
};

std::string scores_text(const AttentionTile& tile) {
  const MicroProduct product{tile.micro(),
                             kVectorsOfKeys,
                             "            ",
                             "for (int step = 0; step < depth; ++step)",
                             [](int r, int v) { return str("s[(r + ", r, ") * VECTORS + ", v, "]"); },
                             [](int v) { return str("key_panel[step * VECTORS + ", v, "]"); },
                             [](int r) { return str("Q(q_at + min(row0 + r + ", r, ", L - 1) * n[10] + d0 + step)"); }};
  return str(kPackKeys, product.text(), kPackKeysEnd);
}

std::string sums_text(const AttentionTile& tile) {
  const MicroProduct product{tile.micro(),
                             1,
                             "            ",
                             "for (int step = 0; step < steps; ++step)",
                             [](int r, int) { return str("sums[(r + ", r, ") * SUMS + c]"); },
                             [](int) { return std::string("value_panel[step * SUMS + c]"); },
                             [](int r) { return str("WEIGHT(r + ", r, ", step)"); }};
  return str(kPackValues, product.text(), "          }\n        SYNC;\n");
}

std::string replaced(std::string_view text, std::string_view name, std::string_view by) {
  std::string made(text);
  const size_t at = made.find(name);
  return made.replace(at, name.size(), by);
}

constexpr std::string_view kEachBlock = "      for (long k0 = 0; k0 < end; k0 += KEYS) {\n";

std::string body_of(const AttentionTile& tile, bool probabilities) {
  const std::string scores = scores_text(tile);
  std::string text =
      str(kJob, kEachBlock, scores, replaced(kSoften, "BIAS\n", kBias), sums_text(tile), "      }\n", kStore);
  if (probabilities) text += str(kEachBlock, scores, replaced(kShowProbabilities, "BIAS\n", kBias), "      }\n");
  return str(text, kPresent);
}

void define_attention_tile(ComputeSource& source, const AttentionTile& tile, ElementType work) {
  const bool wide = work == kF64;
  source.vectors_of(tile.lanes);
  source.define("T", scalar_name(work));
  source.define("TV", lanes_name(work, tile.lanes));
  source.define("TI", lanes_name(wide ? kI64 : kI32, tile.lanes));
  source.define("LANES", tile.lanes);
  source.define("VECTORS", kVectorsOfKeys);
  source.define("KEYS", kVectorsOfKeys * tile.lanes);
  source.define("ROWS", tile.rows);
  source.define("MICRO", tile.micro());
  source.define("SUMS", tile.sums());
  source.define("COLUMNS", tile.columns);
  source.define("DEPTH", kDepth);
  source.define("VLOAD", str("vload", tile.lanes));
  source.define("VSTORE", str("vstore", tile.lanes));
  source.define("BITS(word)", wide ? "as_double(word)" : "as_float((uint)(word))");
  std::string numbers = "((TI)(0";
  for (int lane = 1; lane < tile.lanes; ++lane) numbers += str(", ", lane);
  source.define("LANE_NUMBERS", numbers + "))");
  source.functions(reduction("most_of", "fmax", work, tile.lanes));
  source.functions(reduction("sum_of", "+", work, tile.lanes));
  source.local("  __local TV key_panel[DEPTH * VECTORS], value_panel[KEYS * SUMS];\n");
  source.define("KEY(d, t)", "((__local T*)key_panel)[(d) * KEYS + (t)]");
  source.define("VALUE(t, c)", "((__local T*)value_panel)[(t) * COLUMNS + (c)]");
  source.define("WEIGHT(row, t)", "(((T*)s)[(row) * KEYS + (t)])");
}

void define_bias(ComputeSource& source, const KernelRequest& request, ElementType work) {
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

// SHOW(stage): x is what `qk_matmul_output_mode` wants. One of the jobs that differ in columns shows it.
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

// [B, H, L, D], or [B, L, H * D] with the heads that are stated.
struct Heads {
  int64_t batch, heads, length, size, from_batch, from_head, from_row;

  Heads(const Dims& dims, int64_t stated) {
    const bool packed = dims.size() == 3;
    batch = dims[0];
    heads = packed ? stated : dims[1];
    length = packed ? dims[1] : dims[2];
    size = packed ? dims[2] / std::max<int64_t>(1, stated) : dims[3];
    from_batch = heads * length * size;
    from_head = packed ? size : length * size;
    from_row = packed ? dims[2] : size;
  }
};

// From batch to batch, head to head, row to row, and elements of a row of a mask that may have fewer axes.
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
  const Heads q(shapes.operands[0], q_stated), k(shapes.operands[1], kv_stated), v(shapes.operands[2], kv_stated),
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
  // Scores are wanted even of values that have no elements.
  const int64_t columns = op.result_count() > 3 ? std::max<int64_t>(column_jobs, 1) : column_jobs;
  const int64_t jobs = q.batch * q.heads * row_jobs * columns;
  const int64_t present = op.result_count() > 1 ? k.batch * k.heads * keys : 0;
  ComputeLaunch made{{q.length, k.length, past, q.size, v.size, q.heads, k.heads == 0 ? 1 : q.heads / k.heads, k.heads},
                     jobs + present * std::min<int64_t>(static_cast<int64_t>(op.result_count()) - 1, 2)};
  for (const Heads& h : {q, k, v, y}) made.numbers.insert(made.numbers.end(), {h.from_batch, h.from_head, h.from_row});
  made.numbers.insert(made.numbers.end(), mask.begin(), mask.end());
  made.numbers.insert(made.numbers.end(), {scale_bits(op, q.size, wide), std::max<int64_t>(row_jobs, 1),
                                           std::max<int64_t>(columns, 1), jobs, present});
  return made;
}

// ---- The source ----

// PAST_K and PAST_V are never read where there is no past.
void define_ports(ComputeSource& source, const KernelRequest& request, ElementType work) {
  source.load("Q", 0, work);
  source.load("K", 1, work);
  source.load("V", 2, work);
  source.store("Y", 0, work);
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const std::string_view past = i == 1 ? "PAST_K" : "PAST_V", present = i == 1 ? "PRESENT_K" : "PRESENT_V";
    if (request.passes(i + 3))
      source.load(past, i + 3, work);
    else
      source.define(str(past, "(i)"), "(T)0");
    if (request.results.size() > i)
      source.store(present, i, work);
    else
      source.define(str(present, "(i, v)"), "(void)(v)");
  }
}

Result<ComputeKernel> make_attention(const KernelRequest& request, const ComputeTarget& target) {
  const Op* op = &request.op;
  const ElementType work = work_type_of(request.operands[0].element());
  const AttentionTile tile = choose_attention_tile(request, work, target);
  ComputeSource source(request, target);
  source.of_group();
  define_attention_tile(source, tile, work);
  define_ports(source, request, work);
  define_bias(source, request, work);
  define_shown(source, request, work);
  const bool probabilities = request.results.size() > 3 && op->attr<int64_t>("qk_matmul_output_mode", 0) == 3;
  return source.kernel(body_of(tile, probabilities),
                       [op, tile, wide = work == kF64, group = target.work_group](const CallShapes& shapes) {
                         return launch_of(*op, shapes, tile, wide, group);
                       });
}

constexpr ComputeRow kRows[] = {{AttentionOp::kName, make_attention}};

}  // namespace

std::span<const ComputeRow> attention_rows() { return kRows; }

}  // namespace tenon::opencl
