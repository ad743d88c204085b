#include <tenon/ops/recurrent.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/float_work.hpp>
#include <tenon/reference/gemm.hpp>

namespace tenon {
namespace {

// ---- activations ----

struct ActivationDef {
  std::string_view name;  // lower case
  bool takes_alpha, takes_beta;
  double alpha, beta;  // if none is stated
  double (*apply)(double x, double alpha, double beta);
};
constexpr ActivationDef kActivations[] = {
    {"relu", false, false, 0, 0, [](double x, double, double) { return x > 0 ? x : 0; }},
    {"tanh", false, false, 0, 0, [](double x, double, double) { return std::tanh(x); }},
    {"sigmoid", false, false, 0, 0, [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {"affine", true, true, 1, 0, [](double x, double a, double b) { return a * x + b; }},
    {"leakyrelu", true, false, 0.01, 0, [](double x, double a, double) { return x >= 0 ? x : a * x; }},
    {"thresholdedrelu", true, false, 1, 0, [](double x, double a, double) { return x > a ? x : 0; }},
    {"scaledtanh", true, true, 1, 1, [](double x, double a, double b) { return a * std::tanh(b * x); }},
    {"hardsigmoid", true, true, 0.2, 0.5, [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); }},
    {"elu", true, false, 1, 0, [](double x, double a, double) { return x >= 0 ? x : a * std::expm1(x); }},
    {"softsign", false, false, 0, 0, [](double x, double, double) { return x / (1 + std::abs(x)); }},
    {"softplus", false, false, 0, 0,
     [](double x, double, double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
};

struct Activation {
  const ActivationDef* def = nullptr;
  double alpha = 0, beta = 0, clip = INFINITY;
  double operator()(double x) const { return def->apply(std::clamp(x, -clip, clip), alpha, beta); }
};

// `count` per direction: those of the attribute, or `fallback` for every direction. Alphas and betas are assigned, in
// order, to the activations that take one.
Result<std::vector<Activation>> activations_of(const Op& op, int64_t directions,
                                               const std::vector<std::string>& fallback) {
  auto names = op.attr<Attribute::Texts>("activations");
  if (names.empty()) names = fallback;
  if (names.size() == fallback.size() && directions == 2) {
    const auto forward = names;  // a vector must not insert a range of its own
    names.insert(names.end(), forward.begin(), forward.end());
  }
  if (names.size() != fallback.size() * directions) {
    return error(Code::invalid_argument, op.describe(), " has ", names.size(), " activations, ", directions,
                 " directions need ", fallback.size() * directions);
  }
  const auto alphas = op.attr<Attribute::Reals>("activation_alpha"),
             betas = op.attr<Attribute::Reals>("activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<Activation> out;
  for (std::string name : names) {
    const std::string stated = name;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto def =
        std::find_if(std::begin(kActivations), std::end(kActivations), [&](const auto& d) { return d.name == name; });
    if (def == std::end(kActivations)) {
      return error(Code::invalid_argument, op.describe(), " has the activation '", stated,
                   "', which no recurrent layer knows");
    }
    Activation activation{def, def->alpha, def->beta, op.attr<float>("clip", INFINITY)};
    if (def->takes_alpha && alpha < alphas.size()) activation.alpha = alphas[alpha++];
    if (def->takes_beta && beta < betas.size()) activation.beta = betas[beta++];
    out.push_back(activation);
  }
  return out;
}

// ---- what the three layers share ----

// Sizes, and offsets in either layout.
struct Sizes {
  int64_t time, batch, input, hidden, directions, gates;
  bool batch_first;

  int64_t x_row(int64_t t, int64_t b) const { return batch_first ? b * time + t : t * batch + b; }
  int64_t y_row(int64_t t, int64_t d, int64_t b) const {
    return (batch_first ? (b * time + t) * directions + d : (t * directions + d) * batch + b) * hidden;
  }
  int64_t state_row(int64_t d, int64_t b) const { return (batch_first ? b * directions + d : d * batch + b) * hidden; }
  int64_t lines() const { return gates * hidden; }
};

// Operands in the work type; invalid tensors for absent ones.
struct Operands {
  Tensor x, w, r, b, lengths, initial_h, initial_c, peepholes;
};

Result<Operands> read_operands(EvalContext& context, ElementType work) {
  Operands operands;
  Tensor* const all[] = {&operands.x,       &operands.w,         &operands.r,         &operands.b,
                         &operands.lengths, &operands.initial_h, &operands.initial_c, &operands.peepholes};
  for (size_t i = 0; i < context.operand_count() && i < std::size(all); ++i) {
    if (!context.has_operand(i)) continue;
    TENON_TRY(tensor, i == 4 ? Result<Tensor>(context.tensor(i)) : in_work_type(context.tensor(i), work));
    *all[i] = std::move(tensor);
  }
  return operands;
}

template <class T>
const T* part(const Tensor& tensor, int64_t index, int64_t size) {
  return tensor.valid() ? tensor.as<T>().data() + index * size : nullptr;
}

// One direction of one layer. Every buffer has one row per batch entry.
template <class T>
class Direction {
 public:
  Direction(const Sizes& sizes, const Operands& operands, int64_t direction, ParallelFor& parallel)
      : s(sizes),
        from_x(sizes.time * sizes.batch * sizes.lines()),
        from_h(sizes.batch * sizes.lines()),
        h(sizes.batch * sizes.hidden),
        c(sizes.batch * sizes.hidden),
        r_(part<T>(operands.r, direction, sizes.lines() * sizes.hidden)),
        parallel_(parallel) {
    // x W' of all steps at once.
    gemm<T>(s.time * s.batch, s.lines(), s.input, MatrixView<T>{operands.x.as<T>().data(), s.input, 1},
            MatrixView<T>{part<T>(operands.w, direction, s.lines() * s.input), 1, s.input}, from_x.data(), s.lines(),
            Store::overwrite, parallel);
    if (const T* biases = part<T>(operands.b, direction, 2 * s.lines())) {
      bias_x.assign(biases, biases + s.lines());
      bias_h.assign(biases + s.lines(), biases + 2 * s.lines());
    } else {
      bias_x.assign(s.lines(), T(0));
      bias_h = bias_x;
    }
    for (int64_t b = 0; b < s.batch; ++b) {
      const auto load = [&](const Tensor& initial, std::vector<T>& state) {
        if (initial.valid())
          std::copy_n(initial.as<T>().data() + s.state_row(direction, b), s.hidden, &state[b * s.hidden]);
      };
      load(operands.initial_h, h);
      load(operands.initial_c, c);
    }
  }

  // from_h[:, first .. first + lines) = states R' for these lines of R.
  void multiply_states(const std::vector<T>& states, int64_t first, int64_t lines) {
    gemm<T>(s.batch, lines, s.hidden, MatrixView<T>{states.data(), s.hidden, 1},
            MatrixView<T>{r_ + first * s.hidden, 1, s.hidden}, from_h.data() + first, s.lines(), Store::overwrite,
            parallel_);
  }

  const Sizes& s;
  std::vector<T> from_x, from_h, h, c, bias_x, bias_h;

 private:
  const T* r_;
  ParallelFor& parallel_;
};

// Calls `step`(direction state, its number, active) for all times of each direction. active[b] is the row of x that
// entry b reads in this step, or -1 after the end of its sequence. The step updates h and c of the active entries.
template <class T, class Step>
void run_layer(const Sizes& s, const Operands& operands, bool reverse, T* y, T* y_h, T* y_c, ParallelFor& parallel,
               Step&& step) {
  if (y) std::fill_n(y, s.time * s.directions * s.batch * s.hidden, T(0));
  for (int64_t d = 0; d < s.directions; ++d) {
    Direction<T> direction(s, operands, d, parallel);
    const bool backwards = reverse || d == 1;
    std::vector<int64_t> active(s.batch);
    for (int64_t i = 0; i < s.time; ++i) {
      const auto time_of = [&](int64_t b) -> int64_t {
        const int64_t length = operands.lengths.valid() ? operands.lengths.int_at(b) : s.time;
        return i >= length ? -1 : backwards ? length - 1 - i : i;
      };
      for (int64_t b = 0; b < s.batch; ++b) active[b] = time_of(b) < 0 ? -1 : s.x_row(time_of(b), b);
      step(direction, d, active);
      for (int64_t b = 0; y && b < s.batch; ++b) {
        if (active[b] >= 0) std::copy_n(&direction.h[b * s.hidden], s.hidden, y + s.y_row(time_of(b), d, b));
      }
    }
    for (int64_t b = 0; b < s.batch; ++b) {
      if (y_h) std::copy_n(&direction.h[b * s.hidden], s.hidden, y_h + s.state_row(d, b));
      if (y_c) std::copy_n(&direction.c[b * s.hidden], s.hidden, y_c + s.state_row(d, b));
    }
  }
}

// Calls body(b, row of from_x, row of from_h, h, c) for the active entries.
template <class T, class Body>
void for_active(Direction<T>& direction, const std::vector<int64_t>& active, Body&& body) {
  const Sizes& s = direction.s;
  for (int64_t b = 0; b < s.batch; ++b) {
    if (active[b] < 0) continue;
    body(b, &direction.from_x[active[b] * s.lines()], &direction.from_h[b * s.lines()], &direction.h[b * s.hidden],
         &direction.c[b * s.hidden]);
  }
}

template <class T>
struct RnnStep {
  const std::vector<Activation>& activations;
  void operator()(Direction<T>& direction, int64_t d, const std::vector<int64_t>& active) const {
    direction.multiply_states(direction.h, 0, direction.s.lines());
    for_active(direction, active, [&](int64_t, const T* x, const T* r, T* h, T*) {
      for (int64_t i = 0; i < direction.s.hidden; ++i) {
        h[i] = static_cast<T>(activations[d](x[i] + r[i] + direction.bias_x[i] + direction.bias_h[i]));
      }
    });
  }
};

template <class T>
struct GruStep {
  const std::vector<Activation>& activations;
  bool linear_before_reset;
  void operator()(Direction<T>& direction, int64_t d, const std::vector<int64_t>& active) const {
    const int64_t hidden = direction.s.hidden, n = 2 * hidden;
    const Activation &f = activations[2 * d], &g = activations[2 * d + 1];
    const auto& [bias_x, bias_h] = std::tie(direction.bias_x, direction.bias_h);
    direction.multiply_states(direction.h, 0, linear_before_reset ? 3 * hidden : 2 * hidden);
    std::vector<T> reset_h(direction.h.size());
    std::vector<double> reset(direction.h.size());
    for_active(direction, active, [&](int64_t b, const T* x, const T* r, const T* h, T*) {
      for (int64_t i = 0; i < hidden; ++i) {
        const int64_t at = b * hidden + i, line = hidden + i;
        reset[at] = f(x[line] + r[line] + bias_x[line] + bias_h[line]);
        reset_h[at] = static_cast<T>(reset[at] * h[i]);
      }
    });
    if (!linear_before_reset) direction.multiply_states(reset_h, n, hidden);
    for_active(direction, active, [&](int64_t b, const T* x, const T* r, T* h, T*) {
      for (int64_t i = 0; i < hidden; ++i) {
        const double recurrent = static_cast<double>(r[n + i]) + bias_h[n + i];
        const double fresh =
            g(x[n + i] + bias_x[n + i] + (linear_before_reset ? reset[b * hidden + i] : 1) * recurrent);
        const double update = f(x[i] + r[i] + bias_x[i] + bias_h[i]);
        h[i] = static_cast<T>((1 - update) * fresh + update * h[i]);
      }
    });
  }
};

template <class T>
struct LstmStep {
  const std::vector<Activation>& activations;
  const Tensor& peepholes;
  bool input_forget;
  void operator()(Direction<T>& direction, int64_t d, const std::vector<int64_t>& active) const {
    const int64_t hidden = direction.s.hidden;
    const Activation &f = activations[3 * d], &g = activations[3 * d + 1], &out = activations[3 * d + 2];
    const T* p = part<T>(peepholes, d, 3 * hidden);
    direction.multiply_states(direction.h, 0, direction.s.lines());
    for_active(direction, active, [&](int64_t, const T* x, const T* r, T* h, T* c) {
      for (int64_t i = 0; i < hidden; ++i) {
        const auto gate = [&](int64_t number) -> double {
          const int64_t line = number * hidden + i;
          return x[line] + r[line] + direction.bias_x[line] + direction.bias_h[line];
        };
        const auto peep = [&](int64_t number, double cell) { return p ? p[number * hidden + i] * cell : 0; };
        const double old = c[i], input = f(gate(0) + peep(0, old));
        const double forget = input_forget ? 1 - input : f(gate(2) + peep(2, old));
        const double cell = forget * old + input * g(gate(3));
        h[i] = static_cast<T>(f(gate(1) + peep(1, cell)) * out(cell));
        c[i] = static_cast<T>(cell);
      }
    });
  }
};

// Evaluates a layer with `gates` gates; make_step.template operator()<T>(activations, operands) returns its step.
template <class MakeStep>
Result<void> layer(EvalContext& context, int64_t gates, const std::vector<std::string>& fallback,
                   MakeStep&& make_step) {
  const ElementType work = work_type(context.tensor(0).element());
  const std::string direction = context.attr<std::string>("direction", "forward");
  TENON_TRY(operands, read_operands(context, work));
  const bool batch_first = context.attr<int64_t>("layout", 0) != 0;
  const Dims& x = operands.x.dims();
  const Sizes sizes{x[batch_first ? 1 : 0],
                    x[batch_first ? 0 : 1],
                    x[2],
                    operands.r.dim(2),
                    direction == "bidirectional" ? 2 : 1,
                    gates,
                    batch_first};
  TENON_TRY(activations, activations_of(context.op(), sizes.directions, fallback));
  for (int64_t b = 0; operands.lengths.valid() && b < sizes.batch; ++b) {
    const int64_t length = b < operands.lengths.size() ? operands.lengths.int_at(b) : -1;
    if (length < 0 || length > sizes.time) {
      return error(Code::invalid_argument, "sequence_lens has ", operands.lengths.size(), " elements for a batch of ",
                   sizes.batch, ", element ", b, " is ", length, "; it must lie in [0, ", sizes.time, "]");
    }
  }
  std::vector<WorkResult> results;
  for (size_t i = 0; i < context.result_count(); ++i) {
    TENON_TRY(result, WorkResult::make(context, i, work));
    results.push_back(std::move(result));
  }
  with_work_type(work, [&]<class T>() {
    const auto data = [&](size_t i) { return i < results.size() ? results[i].data<T>() : nullptr; };
    run_layer<T>(sizes, operands, direction == "reverse", data(0), data(1), data(2), context.parallel(),
                 make_step.template operator()<T>(activations, operands));
  });
  for (WorkResult& result : results) TENON_OK(result.deliver());
  return {};
}

Result<void> rnn(EvalContext& context) {
  return layer(context, 1, {"Tanh"},
               []<class T>(const auto& activations, const Operands&) { return RnnStep<T>{activations}; });
}

Result<void> gru(EvalContext& context) {
  const bool linear = context.attr<int64_t>("linear_before_reset", 0) != 0;
  return layer(context, 3, {"Sigmoid", "Tanh"}, [linear]<class T>(const auto& activations, const Operands&) {
    return GruStep<T>{activations, linear};
  });
}

Result<void> lstm(EvalContext& context) {
  const bool coupled = context.attr<int64_t>("input_forget", 0) != 0;
  return layer(context, 4, {"Sigmoid", "Tanh", "Tanh"},
               [coupled]<class T>(const auto& activations, const Operands& operands) {
                 return LstmStep<T>{activations, operands.peepholes, coupled};
               });
}

const EvaluatorRegistration kRecurrentRegistered({{RNN::kName, rnn}, {GRU::kName, gru}, {LSTM::kName, lstm}});

}  // namespace
}  // namespace tenon
