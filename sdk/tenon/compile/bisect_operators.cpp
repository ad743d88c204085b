// Runs operators one by one on their target, on the operands that the reference computes.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include <tenon/compile/bisect_internal.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/plugin/graph_values.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>

namespace tenon::bisecting {
namespace {

using Data = std::vector<Datum>;

Result<Data> run_reference(const Graph& graph, std::span<const Datum> inputs, ParallelFor& parallel) {
  TENON_TRY(interpreter, Interpreter::prepare(graph));
  return interpreter->run(inputs, parallel);
}

// Compiles a graph for one target as a model. `phases`: the phases have not been run on it.
Result<std::unique_ptr<CompiledModel>> build_alone(std::unique_ptr<Graph> graph, TargetBackend& backend, bool phases) {
  TENON_OK(verify(*graph));
  CompiledModel::Parts parts;
  parts.name = graph->name();
  parts.inputs = inputs_of(graph->body());
  parts.outputs = outputs_of(graph->body());
  CompiledModel::Segment segment{backend.name(), nullptr, {}, {}};
  for (size_t i = 0; i < parts.inputs.size(); ++i) segment.inputs.push_back(parts.slots++);
  for (size_t i = 0; i < parts.outputs.size(); ++i) segment.outputs.push_back(parts.slots++);
  parts.output_slots = segment.outputs;
  if (phases) TENON_OK(run_phases(*graph, backend));
  TENON_TRY(executable, backend.build(std::move(graph)));
  segment.executable = std::move(executable);
  parts.segments.push_back(std::move(segment));
  return CompiledModel::assemble(std::move(parts));
}

// "(f32[2,3], f32[3]) -> f32[2,3]"
std::string types_of(const Op& op) {
  std::string operands, results;
  for (const Value* operand : op.operands())
    operands += str(operands.empty() ? "" : ", ", operand ? str(operand->type()) : "absent");
  for (size_t i = 0; i < op.result_count(); ++i) results += str(results.empty() ? "" : ", ", op.result(i)->type());
  return str("(", operands, ") -> ", op.result_count() == 1 ? results : str("(", results, ")"));
}

std::string name_of(const Value& value) { return value.name().empty() ? str("result ", value.index()) : value.name(); }

// The snippet `op` of `graph`, with its body cut after `last` and its result as the output, as a graph of its own.
// Inputs are those of `operands` (all of the snippet's) that the body still reads.
struct CutSnippet {
  std::unique_ptr<Graph> graph;
  Data inputs;
};
CutSnippet cut_snippet(const Op& op, const Op& last, std::span<const Datum> operands) {
  const Region& body = op.region(0);
  std::unordered_map<const Value*, bool> read;
  std::vector<const Op*> kept;
  const auto read_operands = [&](const Op& reader) {
    for (const Value* operand : reader.operands())
      if (operand) read[operand] = true;
  };
  for (const Op* at = &last; at; at = at->previous()) {
    bool needed = at == &last;
    for (size_t i = 0; i < at->result_count(); ++i) needed = needed || read.contains(at->result(i));
    if (!needed) continue;
    kept.push_back(at);
    read_operands(*at);
  }
  CutSnippet cut{std::make_unique<Graph>(str(op.label(), ", cut behind ", last.describe())), {}};
  Region& outer = cut.graph->body();
  std::vector<Value*> values;
  std::vector<const Value*> ports;
  for (size_t i = 0; i < body.input_count(); ++i) {
    if (!read.contains(body.input(i))) continue;
    ports.push_back(body.input(i));
    const Tensor* constant = constant_of(op.operand(i));
    if (constant) {
      values.push_back(Builder(outer).constant(*constant, op.operand(i)->name()));
    } else {
      values.push_back(outer.add_input(str("operand", i), op.operand(i)->type()));
      cut.inputs.push_back(operands[i]);
    }
  }
  std::vector<Type> types;
  for (size_t i = 0; i < last.result_count(); ++i) types.push_back(last.result(i)->type());
  Op& made = outer.create(op.name(), values, types, op.attributes());
  made.set_label(op.label());
  Region& inner = made.add_region();
  ValueMap map;
  for (const Value* port : ports) map[port] = inner.add_input(port->name(), port->type());
  for (auto at = kept.rbegin(); at != kept.rend(); ++at) clone_op(**at, inner, nullptr, map);
  for (size_t i = 0; i < last.result_count(); ++i) {
    inner.add_output(map.at(last.result(i)), str("out", i));
    outer.add_output(made.result(i), str("out", i));
  }
  return cut;
}

class Search {
 public:
  Search(const PassWalk& walk, std::span<const Datum> inputs, size_t slots, const BisectOptions& options,
         ParallelFor& parallel, BisectReport& report)
      : walk_(walk), slots_(slots), options_(options), parallel_(parallel), report_(report) {
    std::copy(inputs.begin(), inputs.end(), slots_.begin());
  }

  Result<void> run(const WalkedGraph& placed, const WalkedGraph& finished) {
    for (const auto& [slot, tensor] : finished.cut.constants) slots_[slot] = Datum(tensor);
    for (size_t i = 0; i < finished.cut.parts.size() && !report_.op; ++i) {
      const GraphPart& part = finished.cut.parts[i];
      // Operators that the reference can run are examined as compiled; otherwise as placed, unless that gains nothing.
      through_phases_ =
          !Interpreter::prepare(*part.graph).ok() && Interpreter::prepare(*placed.cut.parts[i].graph).ok();
      graph_ = through_phases_ ? placed.cut.parts[i].graph.get() : part.graph.get();
      backend_ = walk_.backends()[part.target].get();
      TENON_OK(look_at(part), "looking at the operators of '", backend_->name(), "'");
    }
    if (nearest_ && (!report_.op || report_.op->in_company)) report_.nearest = std::move(nearest_);
    return {};
  }

 private:
  // A part of the graph with its inputs and expected results; unknown data are absent.
  struct Piece {
    std::unique_ptr<Graph> graph;
    Data inputs;
    std::vector<const Value*> results;
    bool known = true;  // of all inputs
  };
  Piece piece_of(std::span<Op* const> ops) const {
    std::vector<const Value*> values;
    CutGraph cut = cut_graph(*graph_, graph_->name(), ops, [&](const Value& value) {
      values.push_back(&value);
      return values.size() - 1;
    });
    Piece piece{std::move(cut.graph), {}, {}};
    for (const size_t input : cut.inputs) {
      const auto found = values_.find(values[input]);
      piece.known = piece.known && found != values_.end();
      piece.inputs.push_back(found == values_.end() ? Datum() : found->second);
    }
    for (const size_t output : cut.outputs) piece.results.push_back(values[output]);
    return piece;
  }

  Result<void> look_at(const GraphPart& part) {
    const Region& body = graph_->body();
    values_.clear();
    for (size_t i = 0; i < body.input_count(); ++i)
      if (const auto& data = slots_[part.inputs[i]]) values_[body.input(i)] = *data;
    std::vector<Op*> ops;
    for (Op& op : body)
      if (!isa<Constant>(op)) ops.push_back(&op);
    for (Op* op : ops) {
      TENON_OK(alone(*op), op->describe());
      if (report_.op) return {};
    }
    if (ops.size() > 1) TENON_OK(in_company(ops));
    for (size_t i = 0; i < body.output_count(); ++i) {
      const Value* value = body.output(i);
      if (const Tensor* tensor = value ? constant_of(value) : nullptr)
        slots_[part.outputs[i]] = Datum(*tensor);
      else if (const auto found = values_.find(value); found != values_.end())
        slots_[part.outputs[i]] = found->second;
    }
    return {};
  }

  void skip(const Op& op, std::string reason) {
    report_.not_compared.push_back({op.name().str(), op.label(), std::move(reason)});
  }

  WrongOperator wrong(const Op& op) const {
    WrongOperator out{.target = backend_->name(),
                      .op = op.name().str(),
                      .label = op.label(),
                      .text = shortened(op),
                      .types = types_of(op)};
    out.through_phases = through_phases_;
    for (size_t i = 0; i < op.region_count(); ++i)
      for (const Op& inner : op.region(i))
        if (!inner.label().empty()) out.nodes.push_back(str(inner.name(), " ", inner.label()));
    return out;
  }

  // The first result that differs.
  std::optional<ValueDifference> first_difference(const Data& got, const Data& expected,
                                                  std::span<const Value* const> results) const {
    for (size_t i = 0; i < got.size(); ++i)
      if (auto difference = differs(name_of(*results[i]), got[i], expected[i], options_)) return difference;
    return std::nullopt;
  }

  Result<void> alone(Op& op) {
    const Piece piece = piece_of(std::span<Op* const>({&op}));
    if (piece.results.empty()) return {};  // unused
    if (!piece.known) return skip(op, "its operands are not known"), Result<void>();
    const auto expected = run_reference(*piece.graph, piece.inputs, parallel_);
    if (!expected.ok() && expected.error().code() != Code::unsupported) return expected.error();
    const auto compiled = build_alone(piece.graph->clone(), *backend_, through_phases_);
    if (!compiled.ok()) {
      skip(op, str("it cannot be compiled alone: ", compiled.error().message()));
      if (expected.ok()) keep(piece.results, *expected);
      return {};
    }
    const auto got = (*compiled)->run(piece.inputs, {&parallel_, nullptr});
    if (!expected.ok() || is_random(op)) {
      skip(op, expected.ok() ? "it is random, and has no seed" : expected.error().message());
      if (got.ok() || expected.ok()) keep(piece.results, expected.ok() ? *expected : *got);
      return {};
    }
    keep(piece.results, *expected);
    ++report_.operators_compared;
    if (!got.ok()) {
      report_.op = wrong(op);
      report_.op->error = got.error().to_string();
      return {};
    }
    if (auto difference = first_difference(*got, *expected, piece.results)) {
      report_.op = wrong(op);
      report_.op->difference = std::move(difference);
      if (isa<snippet::Subgraph>(op)) look_into(op, *report_.op);
      return {};
    }
    for (size_t i = 0; i < got->size(); ++i) {
      ValueDifference apart = distance(name_of(*piece.results[i]), (*got)[i], (*expected)[i]);
      if (apart.relative_max <= (nearest_ ? nearest_->difference->relative_max : 0)) continue;
      nearest_ = wrong(op);
      nearest_->difference = std::move(apart);
    }
    return {};
  }

  void keep(std::span<const Value* const> results, const Data& data) {
    for (size_t i = 0; i < results.size(); ++i) values_[results[i]] = data[i];
  }

  // Finds the operator of a snippet's body. Shorter bodies may be refused, and may be right.
  void look_into(const Op& op, WrongOperator& found) {
    Data operands;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const auto value = values_.find(op.operand(i));
      operands.push_back(value == values_.end() ? Datum() : value->second);
    }
    for (const Op& last : op.region(0)) {
      if (isa<Constant>(last)) continue;
      CutSnippet cut = cut_snippet(op, last, operands);
      const auto compiled = build_alone(cut.graph->clone(), *backend_, through_phases_);
      if (!compiled.ok()) continue;
      const auto expected = run_reference(*cut.graph, cut.inputs, parallel_);
      const auto got = (*compiled)->run(cut.inputs, {&parallel_, nullptr});
      if (!expected.ok() || !got.ok()) continue;
      std::vector<const Value*> results;
      for (size_t i = 0; i < last.result_count(); ++i) results.push_back(last.result(i));
      found.body_difference = first_difference(*got, *expected, results);
      if (!found.body_difference) continue;
      found.body_operator = shortened(last);
      return;
    }
  }

  // Operators that agree on their own may differ after others: through shared memory, or through rounding.
  Result<void> in_company(std::span<Op* const> ops) {
    std::optional<ValueDifference> difference;
    std::string error;
    const auto good = [&](int64_t count) -> Result<bool> {
      const Piece piece = piece_of(ops.first(static_cast<size_t>(count)));
      Data expected;
      for (const Value* result : piece.results) {
        const auto found = values_.find(result);
        if (found == values_.end()) return true;
        expected.push_back(found->second);
      }
      const auto compiled = build_alone(piece.graph->clone(), *backend_, through_phases_);
      if (!piece.known || !compiled.ok()) return true;
      const auto got = (*compiled)->run(piece.inputs, {&parallel_, nullptr});
      auto apart = got.ok() ? first_difference(*got, expected, piece.results) : std::nullopt;
      if (got.ok() && !apart) return true;
      error = got.ok() ? "" : got.error().to_string();
      difference = std::move(apart);
      return false;
    };
    const auto count = static_cast<int64_t>(ops.size());
    TENON_TRY(all, good(count));
    if (all) return {};
    TENON_TRY(first, first_bad_step(0, count, good));
    report_.op = wrong(*ops[static_cast<size_t>(first - 1)]);
    report_.op->in_company = true;
    report_.op->error = std::move(error);
    report_.op->difference = std::move(difference);
    return {};
  }

  const PassWalk& walk_;
  std::vector<std::optional<Datum>> slots_;  // of values between parts, as far as they are known
  const BisectOptions& options_;
  ParallelFor& parallel_;
  BisectReport& report_;
  std::optional<WrongOperator> nearest_;
  // Of the part that is examined.
  const Graph* graph_ = nullptr;
  TargetBackend* backend_ = nullptr;
  bool through_phases_ = false;
  std::unordered_map<const Value*, Datum> values_;  // from the reference, or from the target where it has none
};

}  // namespace

Result<void> find_wrong_operator(const PassWalk& walk, const WalkedGraph& placed, const WalkedGraph& finished,
                                 std::span<const Datum> inputs, const BisectOptions& options, ParallelFor& parallel,
                                 BisectReport& report) {
  return Search(walk, inputs, finished.cut.slots, options, parallel, report).run(placed, finished);
}

}  // namespace tenon::bisecting
