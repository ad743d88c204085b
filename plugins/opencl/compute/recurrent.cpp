// RNN, GRU, LSTM: a job is one direction of one entry of the batch, and steps through time; its work items share the
// hidden units. The state is in local memory, in the type of sums: h before and after the step, and c of an LSTM or
// r * h of a GRU. Activations are computed in doubles where the device has them, as in the reference.
#include <algorithm>
#include <cctype>
#include <cmath>

#include <tenon/ops/recurrent.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// n: 0 time, 1 batch, 2 inputs, 3 hidden units, 4 directions; then strides in rows: of X from time to time and entry to
// entry (5, 6); of Y from time to time, direction to direction, entry to entry (7 to 9); of the states from direction
// to direction and entry to entry (10, 11).
constexpr std::string_view kLayerHead = R"(
    const long I = n[2], H = n[3], d = item % n[4], b = item / n[4];
    const long stated = LENGTH(b), wrong = stated < 0 || stated > n[0], length = wrong ? 0 : stated;
    const long state_at = (d * n[10] + b * n[11]) * H;
    const int backwards = REVERSE || d == 1;
    for (long i = LOCAL_ID; i < H; i += LOCAL_SIZE) {
      STATE(0, i) = INITIAL_H(state_at + i);
      STATE(2, i) = INITIAL_C(state_at + i);
      for (long t = length; t < n[0]; ++t) Y((t * n[7] + d * n[8] + b * n[9]) * H + i, (T)0);
    }
    SYNC;
    for (long count = 0; count < length; ++count) {
      const long t = backwards ? length - 1 - count : count, now = count & 1, next = 1 - now;
      const long x_at = (t * n[5] + b * n[6]) * I, y_at = (t * n[7] + d * n[8] + b * n[9]) * H;
)";
constexpr std::string_view kTail = R"(
        STATE(next, i) = fresh;
        Y(y_at + i, fresh);
      }
      SYNC;
    }
    for (long i = LOCAL_ID; i < H; i += LOCAL_SIZE) {
      Y_H(state_at + i, STATE(length & 1, i));
      Y_C(state_at + i, STATE(2, i));
    }
    if (wrong) FAULT;
    SYNC;
)";
constexpr std::string_view kEachUnit = "      for (long i = LOCAL_ID; i < H; i += LOCAL_SIZE) {\n";

// The contributions of x and of a row of the state to a gate.
constexpr std::string_view kDots = R"(
#define LINE(gate) ((d * GATES + (gate)) * H + i)
#define FROM_X(gate) dot_x(a0, a1, x_at, LINE(gate) * I, I)
#define FROM_STATE(gate, row) dot_state(a2, &STATE(row, 0), LINE(gate) * H, H)
#define BIAS_X(gate) BIAS((d * 2 * GATES + (gate)) * H + i)
#define BIAS_H(gate) BIAS((d * 2 * GATES + GATES + (gate)) * H + i)
#define GATE(gate) (FROM_X(gate) + FROM_STATE(gate, now) + BIAS_X(gate) + BIAS_H(gate))
static T dot_x(__global const uchar* a0, __global const uchar* a1, long x, long w, long count) {
  TV lanes = (TV)0;
  long k = 0;
  for (; k + LANES <= count; k += LANES) lanes = fma(XV(x + k), WV(w + k), lanes);
  T sum = sum_of(lanes);
  for (; k < count; ++k) sum += X(x + k) * W(w + k);
  return sum;
}
static T dot_state(__global const uchar* a2, __local const T* state, long r, long count) {
  TV lanes = (TV)0;
  long k = 0;
  for (; k + LANES <= count; k += LANES) lanes = fma(VLOAD(0, state + k), RV(r + k), lanes);
  T sum = sum_of(lanes);
  for (; k < count; ++k) sum += state[k] * R(r + k);
  return sum;
}
)";

constexpr std::string_view kRnnStep = "        const T fresh = (T)ACT_0(GATE(0));\n";
constexpr std::string_view kLstmStep = R"(
        const S old = STATE(2, i), input = ACT_0((S)GATE(0) + PEEPHOLE(0) * old);
        const S forget = COUPLED ? 1 - input : ACT_0((S)GATE(2) + PEEPHOLE(2) * old);
        const S cell = forget * old + input * ACT_1((S)GATE(3));
        const T fresh = (T)(ACT_0((S)GATE(1) + PEEPHOLE(1) * cell) * ACT_2(cell));
        STATE(2, i) = (T)cell;
)";
// Computed first: r * h of all units, which the last gate multiplies.
constexpr std::string_view kGruReset = R"(
      for (long i = LOCAL_ID; i < H; i += LOCAL_SIZE) STATE(2, i) = (T)(ACT_0((S)GATE(1)) * (S)STATE(now, i));
      SYNC;
)";
constexpr std::string_view kGruStep = R"(
        const S recurrent = (S)FROM_STATE(2, 2) + (S)BIAS_H(2);
        const S candidate = ACT_1((S)(FROM_X(2) + BIAS_X(2)) + recurrent);
        const S update = ACT_0((S)GATE(0));
        const T fresh = (T)((1 - update) * candidate + update * (S)STATE(now, i));
)";
constexpr std::string_view kGruLinearStep = R"(
        const S recurrent = (S)FROM_STATE(2, now) + (S)BIAS_H(2);
        const S candidate = ACT_1((S)(FROM_X(2) + BIAS_X(2)) + ACT_0((S)GATE(1)) * recurrent);
        const S update = ACT_0((S)GATE(0));
        const T fresh = (T)((1 - update) * candidate + update * (S)STATE(now, i));
)";

// ---- Activations ----

struct ActivationText {
  std::string_view name;  // lower case
  bool takes_alpha, takes_beta;
  double alpha, beta;  // defaults
  std::string_view text;
};
constexpr ActivationText kActivations[] = {
    {"relu", false, false, 0, 0, "x > 0 ? x : (S)0"},
    {"tanh", false, false, 0, 0, "tanh(x)"},
    {"sigmoid", false, false, 0, 0, "1 / (1 + exp(-x))"},
    {"affine", true, true, 1, 0, "alpha * x + beta"},
    {"leakyrelu", true, false, 0.01, 0, "x >= 0 ? x : alpha * x"},
    {"thresholdedrelu", true, false, 1, 0, "x > alpha ? x : (S)0"},
    {"scaledtanh", true, true, 1, 1, "alpha * tanh(beta * x)"},
    {"hardsigmoid", true, true, 0.2, 0.5, "clamp(alpha * x + beta, (S)0, (S)1)"},
    {"elu", true, false, 1, 0, "x >= 0 ? x : alpha * expm1(x)"},
    {"softsign", false, false, 0, 0, "x / (1 + fabs(x))"},
    {"softplus", false, false, 0, 0, "fmax(x, (S)0) + log1p(exp(-fabs(x)))"},
};

// Defines functions ACT_0(x) ... for the activations of a direction. Alphas and betas are assigned, in order, to those
// that have them.
Result<void> define_activations(ComputeSource& source, const Op& op, size_t directions,
                                const std::vector<std::string>& fallback) {
  auto names = op.attr<Attribute::Texts>("activations");
  if (names.empty()) names = fallback;
  const size_t each = fallback.size();
  for (size_t i = 0; names.size() < each * directions && i < each; ++i) names.push_back(std::string(names[i]));
  if (names.size() != each * directions)
    return error(Code::unsupported, op.describe(), " has ", names.size(), " activations for ", directions,
                 " directions");
  const auto alphas = op.attr<Attribute::Reals>("activation_alpha"),
             betas = op.attr<Attribute::Reals>("activation_beta");
  const float clip = op.attr<float>("clip", INFINITY);
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    std::ranges::transform(names[i], names[i].begin(), [](unsigned char c) { return std::tolower(c); });
    const auto found = std::ranges::find(kActivations, std::string_view(names[i]), &ActivationText::name);
    if (found == std::end(kActivations))
      return error(Code::unsupported, op.describe(), " has the activation '", names[i], "'");
    const double a = found->takes_alpha && alpha < alphas.size() ? alphas[alpha++] : found->alpha;
    const double b = found->takes_beta && beta < betas.size() ? betas[beta++] : found->beta;
    source.define_wide(str("ALPHA_", i), a);
    source.define_wide(str("BETA_", i), b);
    const std::string bound = std::isinf(clip) ? "" : "  x = x > (S)CLIP ? (S)CLIP : x < -(S)CLIP ? -(S)CLIP : x;\n";
    source.functions(str("static S act_", i, "(S x) {\n  const S alpha = ALPHA_", i, ", beta = BETA_", i, ";\n", bound,
                         "  return ", found->text, ";\n}\n"));
  }
  source.define_float("CLIP", clip);
  for (size_t i = 0; i < each; ++i)
    source.define(str("ACT_", i, "(x)"),
                  directions == 1 ? str("act_", i, "(x)") : str("(d == 0 ? act_", i, "(x) : act_", each + i, "(x))"));
  return {};
}

// ---- The layers ----

struct Layer {
  size_t gates;
  std::vector<std::string> activations;
  std::string before, step;
};

bool batch_first(const Op& op) { return op.attr<int64_t>("layout", 0) != 0; }

Result<ComputeLaunch> launch_of(const Op& op, const CallShapes& shapes, int64_t most_hidden) {
  const Dims &x = shapes.operands[0], &r = shapes.operands[2];
  const bool first = batch_first(op);
  const int64_t time = x[first ? 1 : 0], batch = x[first ? 0 : 1], hidden = r[2], directions = r[0];
  if (hidden > most_hidden)
    return error(Code::unsupported, op.describe(), " has ", hidden, " hidden units; local memory has room for ",
                 most_hidden);
  if (op.operand(4) && elements_of(shapes.operands[4]) != batch)
    return error(Code::unsupported, "sequence_lens of ", op.describe(), " are ", shapes.operands[4]);
  ComputeLaunch made{{time, batch, x[2], hidden, directions}, directions * batch};
  const Dims rows = first ? Dims{1, time, directions, 1, time * directions, 1, directions}
                          : Dims{batch, 1, directions * batch, batch, 1, batch, 1};
  made.numbers.insert(made.numbers.end(), rows.begin(), rows.end());
  return made;
}

void define_layer_ports(ComputeSource& source, ElementType work) {
  source.load("X", 0, work);
  source.load("W", 1, work);
  source.load("R", 2, work);
  source.load_optional("BIAS", 3, work, "(T)0");
  source.load_optional("LENGTH", 4, kI64, "n[0]");
  source.load_optional("INITIAL_H", 5, work, "(T)0");
  source.load_optional("INITIAL_C", 6, work, "(T)0");
  source.load_optional("P", 7, work, "(T)0");
  source.define("PEEPHOLE(gate)", "(S)P((d * 3 + (gate)) * H + i)");
  source.store_optional("Y", 0, work);
  source.store_optional("Y_H", 1, work);
  source.store_optional("Y_C", 2, work);
}

Result<ComputeKernel> make_layer(const KernelRequest& request, const ComputeTarget& target, const Layer& layer) {
  const Op* op = &request.op;
  const ElementType work = work_type_of(request.operands[0].element());
  const auto r = request.operands[2].shape().static_dims();
  const auto direction = op->attr<std::string>("direction", "forward");
  const int bytes = static_cast<int>(work.bits()) / 8, lanes = std::max(target.lanes * 4 / bytes, 2);
  // Three rows of the state may take half of local memory.
  const int64_t room = std::max<int64_t>(target.local_bytes / 2 / (3 * bytes), 1);
  const int64_t hidden = r && (*r)[2] <= room ? std::max<int64_t>((*r)[2], 1) : room;
  ComputeSource source(request, target);
  source.of_group();
  source.can_fail();
  source.vectors_of(lanes);
  source.define("T", scalar_name(work));
  source.define("TV", lanes_name(work, lanes));
  source.define("S", scalar_name(sum_type_of(work, target)));
  source.define("LANES", lanes);
  source.define("VLOAD", str("vload", lanes));
  source.define("GATES", layer.gates);
  source.define("HIDDEN", hidden);
  source.define("REVERSE", direction == "reverse" ? 1 : 0);
  source.define("COUPLED", op->attr<int64_t>("input_forget", 0) != 0 ? 1 : 0);
  source.local("  __local T state[3 * HIDDEN];\n");
  source.define("STATE(row, i)", "state[(row) * HIDDEN + (i)]");
  define_layer_ports(source, work);
  source.functions(lanes_function("sum_of", "+", work, lanes));
  source.functions(kDots);
  TENON_OK(define_activations(source, *op, direction == "bidirectional" ? 2 : 1, layer.activations));
  return source.kernel(str(kLayerHead, layer.before, kEachUnit, layer.step, kTail),
                       [op, hidden](const CallShapes& shapes) { return launch_of(*op, shapes, hidden); });
}

Result<ComputeKernel> make_rnn(const KernelRequest& request, const ComputeTarget& target) {
  return make_layer(request, target, {1, {"Tanh"}, "", std::string(kRnnStep)});
}
Result<ComputeKernel> make_gru(const KernelRequest& request, const ComputeTarget& target) {
  const bool linear = request.op.attr<int64_t>("linear_before_reset", 0) != 0;
  return make_layer(
      request, target,
      {3, {"Sigmoid", "Tanh"}, std::string(linear ? "" : kGruReset), std::string(linear ? kGruLinearStep : kGruStep)});
}
Result<ComputeKernel> make_lstm(const KernelRequest& request, const ComputeTarget& target) {
  return make_layer(request, target, {4, {"Sigmoid", "Tanh", "Tanh"}, "", std::string(kLstmStep)});
}

constexpr ComputeRow kRecurrentRows[] = {{RNN::kName, make_rnn}, {GRU::kName, make_gru}, {LSTM::kName, make_lstm}};

}  // namespace

std::span<const ComputeRow> recurrent_rows() { return kRecurrentRows; }

}  // namespace tenon::opencl
