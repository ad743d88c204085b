// Operators of language models that pass a state from call to call, and RotaryEmbedding: LinearAttention,
// CausalConvWithState, TensorScatter.
#include <bit>
#include <cmath>

#include <tenon/ops/attention.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/indexing.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/heads.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// ---- LinearAttention ----

// A column of a head's state does not depend on other columns: it is an item, and is kept in registers. n: 0 steps, 1
// query heads per key head, 2 key heads, 3 columns; 4 and 5 elements of a step of decay, and of one head in it; 6 of
// beta, 0 where all heads share one.
constexpr std::string_view kLinearBody = R"(
    const long steps = n[0], sharing = n[1], heads = n[2], columns = n[3];
    const long j = item % columns, head = item / columns % heads, b = item / columns / heads;
    S state[ROWS];
    for (int i = 0; i < ROWS; ++i) state[i] = PAST(((b * heads + head) * ROWS + i) * columns + j);
    for (long step = 0; step < steps; ++step) {
      const long row = b * steps + step, key = (row * heads + head) * ROWS;
      DECAY_STATE;
      S write = VALUE((row * heads + head) * columns + j);
      if (DELTA) {
        for (int i = 0; i < ROWS; ++i) write -= state[i] * (S)KEY(key + i);
        write *= BETA(row * max(n[6], 1l) + (n[6] > 1 ? head : 0));
      }
      for (int i = 0; i < ROWS; ++i) state[i] += (S)KEY(key + i) * write;
      for (long share = 0; share < sharing; ++share) {
        const long q_head = row * heads * sharing + head * sharing + share;
        S sum = 0;
        for (int i = 0; i < ROWS; ++i) sum += (S)QUERY(q_head * ROWS + i) * state[i];
        Y(q_head * columns + j, SCALE * sum);
      }
    }
    for (int i = 0; i < ROWS; ++i) PRESENT(((b * heads + head) * ROWS + i) * columns + j, state[i]);
)";
constexpr std::string_view kDecay =
    "for (int i = 0; i < ROWS; ++i) "
    "state[i] *= exp((S)DECAY(row * n[4] + (n[5] == 0 ? 0 : head * n[5] + (n[5] == 1 ? 0 : i))))";
constexpr int64_t kMostStateRows = 256;  // of a state in registers

Result<ComputeKernel> make_linear_attention(const KernelRequest& request, const ComputeTarget& target) {
  const Op* op = &request.op;
  const ElementType work = work_type_of(request.operands[0].element());
  const auto key = request.operands[1].shape().static_dims();
  const int64_t heads = std::max<int64_t>(op->attr<int64_t>("kv_num_heads"), 1), rows = key ? key->back() / heads : 0;
  if (rows < 1 || rows > kMostStateRows)
    return error(Code::unsupported, "heads of ", rows, " elements; 1 to ", kMostStateRows, " known ones have a form");
  const float stated = op->attr<float>("scale", 0.0f);
  const auto rule = op->attr<std::string>("update_rule", "gated_delta");
  ComputeSource source(request, target);
  source.define("S", scalar_name(sum_type_of(work, target)));
  source.define("ROWS", rows);
  source.define("DELTA", rule.ends_with("delta") ? 1 : 0);
  source.define_wide("SCALE", stated == 0 ? 1 / std::sqrt(static_cast<double>(rows)) : stated);
  source.define("DECAY_STATE", request.passes(4) ? kDecay : std::string_view());
  source.load("QUERY", 0, work);
  source.load("KEY", 1, work);
  source.load("VALUE", 2, work);
  source.load_optional("PAST", 3, work, "0");
  source.load_optional("DECAY", 4, work, "0");
  source.load_optional("BETA", 5, work, "0");
  source.store("Y", 0, work);
  source.store_optional("PRESENT", 1, work);
  return source.kernel(kLinearBody, [op, heads](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims &k = shapes.operands[1], &v = shapes.operands[2];
    const int64_t columns = v[2] / heads, q_heads = op->attr<int64_t>("q_num_heads");
    const auto last = [&](size_t i) {
      return i < shapes.operands.size() && op->operand(i) ? shapes.operands[i].back() : 0;
    };
    const int64_t decay = last(4), beta = last(5);
    return ComputeLaunch{{k[1], q_heads / heads, heads, columns, decay, decay / heads, beta}, k[0] * heads * columns};
  });
}

// ---- CausalConvWithState ----

// n: 0 channels, 1 steps, 2 taps, 3 items for results; the items after those write the new state.
constexpr std::string_view kCausalBody = R"(
    const long steps = n[1], taps = n[2], kept = taps - 1;
    if (item < n[3]) {
      const long row = item / steps, t = item % steps, weights = row % n[0] * taps;
      T sum = BIAS(row % n[0]);
      for (long k = 0; k < taps; ++k) sum += JOINED(row, t + k) * W(weights + k);
      Y(item, sum);
      ACTIVATE;
    } else {
      const long at = item - n[3], row = at / kept;
      PRESENT(at, JOINED(row, steps + at % kept));
    }
)";
// The activation is applied to the sum as it is stored, that is, rounded.
constexpr std::string_view kSilu = "const T rounded = GET_Y(item); Y(item, rounded / (1 + exp(-rounded)))";

Result<ComputeKernel> make_causal_conv(const KernelRequest& request, const ComputeTarget& target) {
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  source.define("T", scalar_name(work));
  source.load("X", 0, work);
  source.load("W", 1, work);
  source.load_optional("BIAS", 2, work, "(T)0");
  source.load_optional("PAST", 3, work, "(T)0");
  source.load_stored("Y", 0, work);
  source.store_optional("PRESENT", 1, work);
  source.define("JOINED(row, i)", "((i) < kept ? PAST((row) * kept + (i)) : X((row) * steps + (i) - kept))");
  source.define("ACTIVATE", request.op.attr<std::string>("activation", "none") == "none" ? std::string_view() : kSilu);
  const bool shows = request.results.size() > 1;
  return source.kernel(kCausalBody, [shows](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims& x = shapes.operands[0];
    const int64_t taps = shapes.operands[1][2], results = elements_of(x);
    return ComputeLaunch{{x[1], x[2], taps, results}, results + (shows ? x[0] * x[1] * (taps - 1) : 0)};
  });
}

// ---- TensorScatter ----

// n: 0 extent of the axis, 1 elements after it, 2 steps to be written, 3 lines of an entry of the batch. An item is a
// line: an index before the axis.
constexpr std::string_view kScatterBody = R"(
    const long extent = n[0], inner = n[1], length = n[2], start = START(item / n[3]);
    const int wrong = start < 0 || start > (CIRCULAR ? extent : extent - length);
    const long to = item * extent * inner, from = item * length * inner;
    for (long j = 0; j < extent * inner; ++j) Y(to + j, X(to + j));
    for (long t = 0; !wrong && t < length; ++t) {
      const long at = CIRCULAR ? (start + t) % extent : start + t;
      for (long j = 0; j < inner; ++j) Y(to + at * inner + j, UPDATE(from + t * inner + j));
    }
    if (wrong) FAULT;
)";

Result<ComputeKernel> make_tensor_scatter(const KernelRequest& request, const ComputeTarget& target) {
  const Op* op = &request.op;
  ComputeSource source(request, target);
  source.load_raw("X", 0);
  source.load_raw("UPDATE", 1);
  source.load_optional("START", 2, kI64, "0l");
  source.store_raw("Y", 0);
  source.define("CIRCULAR", op->attr<std::string>("mode", "linear") == "circular" ? 1 : 0);
  source.can_fail();
  return source.kernel(kScatterBody, [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims& x = shapes.operands[0];
    const int64_t stated = op->attr<int64_t>("axis", -2);
    const auto axis = static_cast<size_t>(stated < 0 ? stated + static_cast<int64_t>(x.size()) : stated);
    const int64_t extent = x[axis], inner = elements_of({x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end()});
    const int64_t outer = elements_of({x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis)});
    if (x[0] == 0 || axis == 0 || (op->operand(2) && elements_of(shapes.operands[2]) != x[0]))
      return error(Code::unsupported, op->describe(), " writes into a cache of ", x);
    return ComputeLaunch{{extent, inner, shapes.operands[1][axis], outer / x[0]}, outer};
  });
}

// ---- RotaryEmbedding ----

// n: 0 heads, 1 steps, 2 elements of a head, then strides from batch to batch, head to head, step to step (3 to 5); 6
// pairs that are rotated, 7 rows of the caches. An item is one step of a head.
constexpr std::string_view kRotaryBody = R"(
    const long place = item % n[1], head = item / n[1] % n[0], b = item / n[1] / n[0], pairs = n[6];
    const long at = b * n[3] + head * n[4] + place * n[5], given = POSITION(b * n[1] + place);
    const int wrong = pairs > 0 && (given < 0 || given >= n[7]);
    const long cache = (wrong ? 0 : given) * pairs;
    for (long p = 0; p < pairs; ++p) {
      const long first = at + (INTERLEAVED ? 2 * p : p), second = at + (INTERLEAVED ? 2 * p + 1 : p + pairs);
      const T c = COS(cache + p), s = SIN(cache + p), u = X(first), v = X(second);
      Y(first, u * c - v * s);
      Y(second, u * s + v * c);
    }
    for (long j = 2 * pairs; j < n[2]; ++j) Y(at + j, X(at + j));
    if (wrong) FAULT;
)";

Result<ComputeKernel> make_rotary(const KernelRequest& request, const ComputeTarget& target) {
  const Op* op = &request.op;
  const ElementType work = work_type_of(request.operands[0].element());
  ComputeSource source(request, target);
  source.define("T", scalar_name(work));
  source.load("X", 0, work);
  source.load("COS", 1, work);
  source.load("SIN", 2, work);
  if (request.passes(3))
    source.load("POSITION", 3, kI64);
  else
    source.define("POSITION(i)", "(i)");
  source.store("Y", 0, work);
  source.define("INTERLEAVED", op->attr<int64_t>("interleaved", 0) != 0 ? 1 : 0);
  source.can_fail();
  return source.kernel(kRotaryBody, [op](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const HeadsOf x(shapes.operands[0], op->attr<int64_t>("num_heads", 0));
    const int64_t stated = op->attr<int64_t>("rotary_embedding_dim", 0), pairs = (stated > 0 ? stated : x.size) / 2;
    const int64_t rows = pairs == 0 ? 0 : elements_of(shapes.operands[1]) / pairs;
    if (pairs > 0 && elements_of(shapes.operands[1]) != elements_of(shapes.operands[2]))
      return error(Code::unsupported, "the caches of ", op->describe(), " differ");
    return ComputeLaunch{{x.heads, x.length, x.size, x.from_batch, x.from_head, x.from_row, pairs, rows},
                         x.batch * x.heads * x.length};
  });
}

constexpr ComputeRow kStreamingRows[] = {{LinearAttention::kName, make_linear_attention},
                                         {CausalConvWithState::kName, make_causal_conv},
                                         {TensorScatter::kName, make_tensor_scatter},
                                         {RotaryEmbedding::kName, make_rotary}};

}  // namespace

std::span<const ComputeRow> streaming_rows() { return kStreamingRows; }

}  // namespace tenon::opencl
