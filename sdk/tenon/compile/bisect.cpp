#include <tenon/compile/bisect.hpp>

#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <tenon/compile/bisect_internal.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/normalization.hpp>
#include <tenon/plugin/reference_backend.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/hash.hpp>

namespace tenon {
namespace bisecting {
namespace {

// Finds the largest difference; a number compared with NaN counts as a larger difference than all others.
void locate(ValueDifference& difference, const Tensor& got, const Tensor& expected) {
  const ElementType element = expected.element();
  if (got.element() != element || got.dims() != expected.dims() || !element.is_number()) return;
  constexpr double kFarthest = std::numeric_limits<double>::infinity();
  int64_t worst = -1;
  double most = 0;
  for (int64_t i = 0; i < expected.size() && most < kFarthest; ++i) {
    const double a = got.double_at(i), b = expected.double_at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double apart = std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : kFarthest;
    if (apart > most) most = apart, worst = i;
  }
  if (worst < 0) return;
  difference.located = true;
  difference.got = got.double_at(worst);
  difference.expected = expected.double_at(worst);
  difference.index.resize(expected.dims().size());
  for (size_t dim = difference.index.size(); dim-- > 0; worst /= expected.dims()[dim])
    difference.index[dim] = worst % expected.dims()[dim];
}

ValueDifference as_difference(const std::string& name, const Datum& got, const Datum& expected,
                              const Comparison& comparison) {
  ValueDifference out{.value = name, .text = comparison.difference};
  out.max_abs = comparison.max_abs;
  out.relative_max = comparison.relative_max;
  out.mismatches = comparison.mismatches;
  if (got.is_tensor() && expected.is_tensor()) locate(out, got.tensor(), expected.tensor());
  if (out.located)
    out.text = str("element ", out.index, " is ", out.got, ", should be ", out.expected, "; ", out.mismatches, " of ",
                   expected.tensor().size(), " beyond tolerance, max|a-b| / max|b| = ", out.relative_max);
  return out;
}

}  // namespace

std::optional<ValueDifference> differs(const std::string& name, const Datum& got, const Datum& expected,
                                       const BisectOptions& options) {
  const Comparison comparison = compare(got, expected, options.tolerance);
  if (comparison.equal || (options.relative_max > 0 && comparison.relative_max <= options.relative_max))
    return std::nullopt;
  return as_difference(name, got, expected, comparison);
}

ValueDifference distance(const std::string& name, const Datum& got, const Datum& expected) {
  return as_difference(name, got, expected, compare(got, expected, {0, 0}));
}

std::string shortened(const Op& op) {
  constexpr int64_t kShownElements = 8;
  return print(op, {.elide_beyond = kShownElements});
}

bool is_random(const Op& op) {
  if (op.def() && op.def()->has(Trait::random) && !op.attributes().find("seed")) {
    const Tensor* training = isa<Dropout>(op) && op.operand(2) ? constant_of(op.operand(2)) : nullptr;
    const bool passes_through = isa<Dropout>(op) && (!op.operand(2) || (training && training->double_at(0) == 0));
    if (!passes_through) return true;
  }
  for (size_t i = 0; i < op.region_count(); ++i)
    for (const Op& inner : op.region(i))
      if (is_random(inner)) return true;
  return false;
}

namespace {

std::vector<Op*> random_ops(const Graph& graph) {
  std::vector<Op*> out;
  for (Op& op : graph.body())
    if (is_random(op)) out.push_back(&op);
  return out;
}

}  // namespace

Result<Settled> settle_random(const Graph& model, std::span<const Datum> inputs, ParallelFor& parallel) {
  Settled settled{nullptr, {inputs.begin(), inputs.end()}, {}};
  if (random_ops(model).empty()) return settled;
  const auto drawing = model.clone();
  const size_t outputs = drawing->body().output_count();
  for (Op* op : random_ops(*drawing)) {
    settled.ops.push_back({op->name().str(), op->label(), "it is random, and has no seed"});
    for (size_t i = 0; i < op->result_count(); ++i)
      drawing->body().add_output(op->result(i), str("random ", drawing->body().output_count()));
  }
  TENON_TRY(interpreter, Interpreter::prepare(*drawing));
  TENON_TRY(drawn, interpreter->run(inputs, parallel), "drawing what random operators give");
  settled.model = model.clone();
  Region& body = settled.model->body();
  size_t next = outputs;
  const std::vector<Op*> ops = random_ops(*settled.model);
  for (Op* op : ops) {
    for (size_t i = 0; i < op->result_count(); ++i, ++next) {
      Value* value = op->result(i);
      if (!value->used()) continue;
      value->replace_all_uses_with(body.add_input(value->name(), drawn[next].type()));
      settled.inputs.push_back(drawn[next]);
    }
  }
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) (*op)->erase();
  return settled;
}

}  // namespace bisecting

namespace {

using bisecting::differs;
using bisecting::shortened;

// Runs the parts of a graph at some point of the walk on the reference, one after another. Code::unsupported: an
// operator is unknown to the reference.
Result<std::vector<Datum>> run_on_reference(const WalkedGraph& walked, std::span<const Datum> inputs,
                                            ParallelFor& parallel) {
  std::vector<Datum> slots(walked.cut.slots);
  std::copy(inputs.begin(), inputs.end(), slots.begin());
  for (const auto& [slot, tensor] : walked.cut.constants) slots[slot] = Datum(tensor);
  for (const GraphPart& part : walked.cut.parts) {
    std::vector<Datum> operands;
    for (const size_t slot : part.inputs) operands.push_back(slots[slot]);
    TENON_TRY(interpreter, Interpreter::prepare(*part.graph));
    TENON_TRY(results, interpreter->run(operands, parallel));
    for (size_t i = 0; i < results.size(); ++i) slots[part.outputs[i]] = std::move(results[i]);
  }
  std::vector<Datum> outputs;
  for (const size_t slot : walked.cut.output_slots) outputs.push_back(slots[slot]);
  return outputs;
}

// Operators that the reference does not run, by name.
std::set<std::string> without_reference(const WalkedGraph& walked) {
  std::set<std::string> names;
  for (const GraphPart& part : walked.cut.parts)
    for_each_op(std::as_const(*part.graph).body(), [&](const Op& op) {
      if (!reference_runs(op)) names.insert(op.name().str());
    });
  return names;
}

// An operator, or an output: its text, and a key that identifies it whatever else the graph contains.
struct Line {
  std::string key, text;
};
// Of the whole graph in its order, constants after everything else.
std::vector<Line> lines_of(const WalkedGraph& walked) {
  std::vector<Line> lines, constants;
  for (const GraphPart& part : walked.cut.parts) {
    for (const Op& op : part.graph->body()) {
      Line line;
      line.key = line.text = shortened(op);
      // With elided elements, or without names of operands, different constants would have the same text.
      const Tensor* tensor = isa<Constant>(op) ? constant_of(op.result()) : nullptr;
      if (tensor && !tensor->element().is_string()) line.key += str("#", hash_bytes({tensor->data(), tensor->bytes()}));
      for (const Value* operand : op.operands())
        line.key += operand && operand->producer() ? str("#", operand->producer()->name(), operand->index()) : "#";
      (tensor ? constants : lines).push_back(std::move(line));
    }
  }
  // Output names of several parts are the parts' own.
  if (walked.cut.parts.size() == 1) {
    const Region& body = walked.cut.parts[0].graph->body();
    for (size_t i = 0; i < body.output_count(); ++i) {
      const Value* value = body.output(i);
      const Op* producer = value ? value->producer() : nullptr;
      const std::string text =
          str("output '", body.output_name(i), "' of ", producer ? producer->describe() : "an input");
      lines.push_back({text, text});
    }
  }
  lines.insert(lines.end(), constants.begin(), constants.end());
  return lines;
}
std::vector<std::string> only_in(const std::vector<Line>& lines, const std::vector<Line>& others) {
  std::multiset<std::string_view> left;
  for (const Line& other : others) left.insert(other.key);
  std::vector<std::string> out;
  for (const Line& line : lines) {
    if (const auto found = left.find(line.key); found != left.end())
      left.erase(found);
    else
      out.push_back(line.text);
  }
  return out;
}

class Bisection {
 public:
  Bisection(const Graph& model, std::span<const Datum> inputs, const PassWalk& walk, const BisectOptions& options,
            ParallelFor& parallel)
      : model_(model), inputs_(inputs), walk_(walk), options_(options), parallel_(parallel) {}

  // `got`: the results of the compiled model.
  Result<BisectReport> run(const Result<std::vector<Datum>>& got) {
    TENON_TRY(oracle, ask_oracle());
    ++report_.target_runs;
    TENON_TRY(finished, walk_.run(model_.clone()));
    report_.steps = finished.steps;
    if (options_.prepared) TENON_OK(compare_with_prepared(finished.prepared_steps));
    if (oracle || options_.prepared) {
      if (!got.ok())
        report_.error = got.error().to_string();
      else
        report_.differences = differences_of(*got);
      report_.agrees = got.ok() && report_.differences.empty();
      if (report_.agrees) return std::move(report_);
      TENON_OK(find_pass(finished));
      if (report_.pass) return std::move(report_);
    }
    TENON_TRY(placed, walk_.run(model_.clone(), finished.prepared_steps + 1));
    TENON_OK(bisecting::find_wrong_operator(walk_, placed, finished, inputs_, options_, parallel_, report_));
    // Without an oracle only the operators can be compared.
    if (!oracle && !options_.prepared) report_.agrees = !report_.op;
    return std::move(report_);
  }

 private:
  enum class Verdict : uint8_t { good, bad, unknown };
  struct Trial {
    Verdict verdict = Verdict::good;
    std::string phase, pass, error;
    bool in_preparation = false;
    std::optional<ValueDifference> difference;
    std::set<std::string> without_reference;
  };

  // False: the reference cannot run the model.
  Result<bool> ask_oracle() {
    const auto interpreter = Interpreter::prepare(model_);
    if (!interpreter.ok() && interpreter.error().code() == Code::unsupported) {
      report_.notes.push_back(str("the whole model is not compared, nor are passes: ", interpreter.error().message()));
      return false;
    }
    if (!interpreter.ok()) return interpreter.error();
    TENON_TRY(outputs, (*interpreter)->run(inputs_, parallel_), "the model on the reference");
    ++report_.reference_runs;
    report_.oracle = outputs;
    expected_ = std::move(outputs);
    return true;
  }

  Result<void> compare_with_prepared(int64_t steps) {
    TENON_TRY(prepared, walk_.run(model_.clone(), steps));
    TENON_TRY(outputs, run_on_reference(prepared, inputs_, parallel_), "the prepared graph on the reference");
    ++report_.reference_runs;
    expected_ = std::move(outputs);
    first_step_ = steps;
    return {};
  }

  std::vector<ValueDifference> differences_of(const std::vector<Datum>& outputs) const {
    std::vector<ValueDifference> out;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (auto difference = differs(model_.body().output_name(i), outputs[i], expected_[i], options_))
        out.push_back(*std::move(difference));
    return out;
  }

  // Runs the graph after some steps on the reference.
  Trial judge(const WalkedGraph& walked) {
    Trial trial{.phase = walked.phase, .pass = walked.pass, .in_preparation = walked.in_preparation};
    const auto outputs = run_on_reference(walked, inputs_, parallel_);
    ++report_.reference_runs;
    if (outputs.ok()) {
      auto differences = differences_of(*outputs);
      if (differences.empty()) return trial;
      trial.difference = std::move(differences[0]);
      trial.verdict = Verdict::bad;
    } else if (auto names = without_reference(walked); !names.empty()) {
      trial.without_reference = std::move(names);
      trial.verdict = Verdict::unknown;
    } else {
      trial.error = outputs.error().to_string();
      trial.verdict = Verdict::bad;
    }
    return trial;
  }

  Result<void> find_pass(const WalkedGraph& finished) {
    Trial last = judge(finished);
    if (last.verdict == Verdict::good) return {};
    const auto good = [&](int64_t steps) -> Result<bool> {
      TENON_TRY(walked, walk_.run(model_.clone(), steps));
      Trial trial = judge(walked);
      if (trial.verdict == Verdict::good) return true;
      last = std::move(trial);
      return false;
    };
    TENON_TRY(step, first_bad_step(first_step_, finished.steps, good));
    if (last.verdict == Verdict::unknown) {
      report_.notes.push_back(str("the graph is right up to run ", step - 1, " of ", finished.steps, "; run ", step,
                                  ", pass '", last.pass, "' in ", last.phase,
                                  ", makes operators that the reference "
                                  "does not run (",
                                  last.without_reference,
                                  "): that pass and later ones are judged "
                                  "with the operators' code, not by themselves"));
      return {};
    }
    report_.pass = WrongPass{.phase = last.phase,
                             .pass = last.pass,
                             .step = step,
                             .in_preparation = last.in_preparation,
                             .error = std::move(last.error),
                             .difference = std::move(last.difference)};
    TENON_TRY(before, walk_.run(model_.clone(), step - 1));
    TENON_TRY(after, walk_.run(model_.clone(), step));
    const std::vector<Line> old_lines = lines_of(before), new_lines = lines_of(after);
    report_.pass->before = only_in(old_lines, new_lines);
    report_.pass->after = only_in(new_lines, old_lines);
    return {};
  }

  const Graph& model_;
  const std::span<const Datum> inputs_;
  const PassWalk& walk_;
  const BisectOptions& options_;
  ParallelFor& parallel_;
  std::vector<Datum> expected_;
  int64_t first_step_ = 0;  // after which the graph is still right
  BisectReport report_;
};

}  // namespace

Result<BisectReport> bisect(const Graph& model, std::span<const Datum> inputs, TargetRegistry& registry,
                            const CompileOptions& compile_options, const BisectOptions& options) {
  CompileOptions traced = compile_options;
  traced.preparations = nullptr;
  traced.passes = {.verify_each = true};  // so that errors name the pass that broke the graph
  TENON_TRY(walk, PassWalk::open(registry, traced));
  TENON_OK(verify(model), "verifying graph '", model.name(), "'");
  TENON_OK(check_inputs(model, inputs));
  ParallelFor& parallel = options.parallel ? *options.parallel : default_pool();
  bisecting::Settled settled{nullptr, {inputs.begin(), inputs.end()}, {}};
  // If the reference cannot run the whole model, no values can be drawn: random operators are then kept.
  if (Interpreter::prepare(model).ok()) {
    TENON_TRY(drawn, bisecting::settle_random(model, inputs, parallel));
    settled = std::move(drawn);
  }
  const Graph& graph = settled.model ? *settled.model : model;
  TENON_TRY(compiled, compile(graph.clone(), registry, traced));
  const auto got = compiled->run(settled.inputs, {&parallel, nullptr});
  TENON_TRY(report, Bisection(graph, settled.inputs, walk, options, parallel).run(got));
  report.random = !settled.ops.empty();
  report.not_compared.insert(report.not_compared.begin(), settled.ops.begin(), settled.ops.end());
  return report;
}

}  // namespace tenon
