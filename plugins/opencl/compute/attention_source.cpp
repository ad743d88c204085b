// The text of an attention kernel (attention.hpp).
#include <string_view>

#include <tenon/support/str.hpp>

#include "opencl/compute/attention.hpp"

namespace tenon::opencl {
namespace {

// n: 0 rows, 1 keys of K, 2 of the past, 3 and 4 elements of a head of Q and V, 5 heads of Q, 6 of them for each of K,
// 7 heads of K, then strides from batch to batch, head to head, row to row: 8 of Q, 11 of K, 14 of V, 17 of Y; 20 of
// the mask from batch to batch, head to head, row to row; 23 elements of its row, 24 bits of the scale, 25 jobs of
// rows, 26 jobs of columns, 27 jobs, 28 rows of present_key and of present_value.
constexpr std::string_view kAttentionJob = R"(
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
      const long query_row = n[10], key_row = n[13], value_row = n[16];
      const T scale = BITS(n[24]);
      T top[ROWS], total[ROWS];
      int seen[ROWS];
      TV s[ROWS * VECTORS], sums[ROWS * SUMS];
      for (int r = 0; r < ROWS; ++r) top[r] = -INFINITY, total[r] = 0, seen[r] = 0;
UNROLL
      for (int i = 0; i < ROWS * SUMS; ++i) sums[i] = (TV)0;
)";

// The scores of a block of keys, before the bias.
constexpr std::string_view kPackKeys = R"(
        for (int i = 0; i < ROWS * VECTORS; ++i) s[i] = (TV)0;
        for (long d0 = 0; d0 < D; d0 += DEPTH) {
          const int depth = (int)min((long)DEPTH, D - d0);
          for (long t = LOCAL_ID; t < KEYS; t += LOCAL_SIZE) {
            const long j = k0 + t, own = k_at + (j - past) * key_row + d0, before = (past_row + j) * D + d0;
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
// Adjacent items load adjacent elements. Queries are loaded once, if local memory holds whole ones.
constexpr std::string_view kPackKeysTogether = R"(
UNROLL
        for (int i = 0; i < VECTORS; ++i) s[i] = (TV)0;
        for (long d0 = 0; d0 < D; d0 += DEPTH) {
          const int depth = (int)min((long)DEPTH, D - d0);
          if (k0 == 0 || D > DEPTH)
            for (int i = LOCAL_ID; i < LOCAL_SIZE * DEPTH; i += LOCAL_SIZE) {
              const int r = i / DEPTH, d = i % DEPTH;
              QUERY(r, d) = d < depth ? Q(q_at + min(job_row + r, L - 1) * query_row + d0 + d) : (T)0;
            }
          for (int i = LOCAL_ID; i < KEYS * DEPTH; i += LOCAL_SIZE) {
            const int t = i / DEPTH, d = i % DEPTH;
            const long j = k0 + t, own = k_at + (j - past) * key_row + d0 + d, before = (past_row + j) * D + d0 + d;
            KEY(d, t) = d >= depth || j >= keys ? (T)0 : j < past ? PAST_K(before) : K(own);
          }
          SYNC;
)";
constexpr std::string_view kPackKeysTogetherEnd = R"(          SYNC;
        }
)";

// What is done with the scores x of a row, one vector at a time.
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

constexpr std::string_view kSoften = R"(
        for (int r = 0; r < ROWS && row0 + r < L; ++r) {
          const long i = row0 + r, limit = VISIBLE(i);
          TV most = (TV)top[r];
UNROLL
          for (int v = 0; v < VECTORS; ++v) {
BIAS
            seen[r] |= any(bias != (TV)-INFINITY);
            most = fmax(most, x);
            s[r * VECTORS + v] = x;
          }
          const T now = most_of(most), shift = now == -INFINITY ? 0 : now, shrink = exp(top[r] - shift);
          TV sum = (TV)0;
UNROLL
          for (int v = 0; v < VECTORS; ++v) {
            const TV weight = exp(s[r * VECTORS + v] - shift);
            KEEP(r, v, weight);
            sum += weight;
          }
          top[r] = now;
          total[r] = total[r] * shrink + sum_of(sum);
          if (shrink != 1)
UNROLL
            for (int c = 0; c < SUMS; ++c) sums[r * SUMS + c] *= shrink;
        }
)";

constexpr std::string_view kPackValues = R"(
        for (long t = LOCAL_ID; t < KEYS; t += LOCAL_SIZE) {
          const long j = k0 + t, own = v_at + (j - past) * value_row, before = (past_row + j) * DV + column0;
          const long count = min((long)COLUMNS, DV - column0);
          for (int c = 0; c < COLUMNS; ++c)
            VALUE(t, c) = c >= count || j >= keys ? (T)0 : j < past ? PAST_V(before + c) : V(own + c);
        }
)";
// Adjacent items load adjacent columns.
constexpr std::string_view kPackValuesTogether = R"(
        for (int i = LOCAL_ID; i < KEYS * COLUMNS; i += LOCAL_SIZE) {
          const int t = i / COLUMNS, c = i % COLUMNS;
          const long j = k0 + t, own = v_at + (j - past) * value_row + c, before = (past_row + j) * DV + column0 + c;
          VALUE(t, c) = c >= DV - column0 || j >= keys ? (T)0 : j < past ? PAST_V(before) : V(own);
        }
)";
constexpr std::string_view kSumValuesTogether = R"(        SYNC;
        const int steps = (int)min((long)KEYS, end - k0);
#pragma unroll 2
        for (int t = 0; t < steps; ++t) {
          const TV weight = (TV)WEIGHT(LOCAL_ID, t);
UNROLL
          for (int c = 0; c < SUMS; ++c) sums[c] = fma(weight, value_panel[t * SUMS + c], sums[c]);
        }
        SYNC;
)";
constexpr std::string_view kSumValues = R"(        SYNC;
        const int steps = (int)min((long)KEYS, end - k0);
        for (int r = 0; r < ROWS; r += MICRO)
          for (int c = 0; c < SUMS; ++c) {
)";

// Loops that are not unrolled use an array of their own, because an array with a variable index is not in registers.
constexpr std::string_view kStoredTogether = R"(
      TV stored[SUMS];
UNROLL
      for (int c = 0; c < SUMS; ++c) stored[c] = sums[c];
)";
constexpr std::string_view kStore = R"(
      for (int r = 0; r < ROWS && row0 + r < L; ++r)
        for (int c = 0; c < SUMS; ++c) {
          T some[LANES];
          VSTORE(STORED[r * SUMS + c], 0, some);
          const int count = (int)min((long)LANES, DV - column0 - c * LANES);
          for (int i = 0; i < count; ++i)
            Y(y_at + (row0 + r) * n[19] + c * LANES + i, seen[r] ? some[i] / total[r] : (T)0);
        }
)";

// Probabilities, when the divisor is known: computes the scores once more.
constexpr std::string_view kShowProbabilities = R"(
        for (int r = 0; r < ROWS && row0 + r < L; ++r) {
          const long i = row0 + r, limit = VISIBLE(i);
UNROLL
          for (int v = 0; v < VECTORS; ++v) {
BIAS
            x = seen[r] ? exp(x - (top[r] == -INFINITY ? 0 : top[r])) / total[r] : (TV)0;
            SHOW(3);
          }
        }
)";

// A row of present_key or, after these, of present_value.
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

// sum[row][vector] += factor[row] * panel[vector] over steps. Uses names instead of indices, so that all are registers.
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
  if (tile.together()) {
    const MicroProduct product{1,
                               tile.vectors,
                               "          ",
                               "#pragma unroll 4\n          for (int step = 0; step < depth; ++step)",
                               [](int, int v) { return str("s[", v, "]"); },
                               [](int v) { return str("key_panel[step * KEY_PITCH + ", v, "]"); },
                               [](int) { return std::string("QUERY(LOCAL_ID, step)"); }};
    return str(kPackKeysTogether, product.text(), kPackKeysTogetherEnd);
  }
  const MicroProduct product{
      tile.micro(),
      tile.vectors,
      "            ",
      "for (int step = 0; step < depth; ++step)",
      [](int r, int v) { return str("s[(r + ", r, ") * VECTORS + ", v, "]"); },
      [](int v) { return str("key_panel[step * KEY_PITCH + ", v, "]"); },
      [](int r) { return str("Q(q_at + min(row0 + r + ", r, ", L - 1) * query_row + d0 + step)"); }};
  return str(kPackKeys, product.text(), kPackKeysEnd);
}

std::string sums_text(const AttentionTile& tile) {
  if (tile.together()) return str(kPackValuesTogether, kSumValuesTogether);
  const MicroProduct product{tile.micro(),
                             1,
                             "            ",
                             "for (int step = 0; step < steps; ++step)",
                             [](int r, int) { return str("sums[(r + ", r, ") * SUMS + c]"); },
                             [](int) { return std::string("value_panel[step * SUMS + c]"); },
                             [](int r) { return str("WEIGHT(r + ", r, ", step)"); }};
  return str(kPackValues, kSumValues, product.text(), "          }\n        SYNC;\n");
}

// Replaces each `name` by `by`.
std::string replaced(std::string text, std::string_view name, std::string_view by) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + by.size()))
    text.replace(at, name.size(), by);
  return text;
}

constexpr std::string_view kEachBlock = "      for (long k0 = 0; k0 < end; k0 += KEYS) {\n";

}  // namespace

int64_t AttentionTile::local_elements() const {
  const int64_t panels = int64_t{depth} * key_pitch() * lanes + int64_t{keys()} * columns;
  return together() ? panels + (depth + keys()) * row_pitch() : panels;
}

std::string attention_body(const AttentionTile& tile, bool probabilities) {
  const std::string scores = scores_text(tile);
  std::string text = str(kAttentionJob, kEachBlock, scores, kSoften, sums_text(tile), "      }\n",
                         tile.together() ? kStoredTogether : "", kStore);
  text = replaced(std::move(text), "STORED", tile.together() ? "stored" : "sums");
  if (probabilities) text += str(kEachBlock, scores, kShowProbabilities, "      }\n");
  text = replaced(std::move(text), "BIAS\n", kBias);
  return str(replaced(std::move(text), "UNROLL\n", tile.together() ? "#pragma unroll\n" : ""), kPresent);
}

}  // namespace tenon::opencl
