#include "certify_samples.hpp"

#include "session.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <op-cases/op_cases.hpp>
#include <op-cases/random_tensor.hpp>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/support/hash.hpp>
#include <tenon/tensor/compare.hpp>

namespace tenon::cli {
namespace {

using testing::DrawnOp;
using testing::pick;

constexpr int kDraws = 8;                   // for each way to draw an operator
constexpr int kKnown = 3;                   // of these, with operands known at compile time
constexpr int kTries = 4;                   // with other extents that the operator accepts
constexpr int64_t kMostElements = 1 << 14;  // per operand

// An operator with its operands, before it is checked whether it is valid.
struct Instance {
  Name op;
  std::vector<Datum> operands;
  std::vector<bool> fixed;
  Attributes attributes;
  size_t results = 1;
};

Result<std::unique_ptr<Graph>> graph_of(const Instance& one) {
  auto graph = std::make_unique<Graph>("certified");
  Builder builder(graph->body());
  std::vector<Value*> operands;
  for (size_t i = 0; i < one.operands.size(); ++i) {
    const Datum& operand = one.operands[i];
    operands.push_back(operand.absent() ? nullptr
                       : one.fixed[i]   ? builder.constant(operand.tensor())
                                        : graph->body().add_input(str("x", i), operand.type()));
  }
  TENON_TRY(results, builder.ops(one.op, operands, one.results, one.attributes));
  for (size_t i = 0; i < results.size(); ++i) graph->body().add_output(results[i], str("y", i));
  TENON_OK(verify(*graph));
  return graph;
}

Result<Sample> sample_of(const Instance& one) {
  Sample sample;
  TENON_TRY(graph, graph_of(one));
  std::vector<std::string> types;
  for (size_t i = 0; i < one.operands.size(); ++i) {
    types.push_back(one.operands[i].absent() ? "-" : str(one.fixed[i] ? "constant " : "", one.operands[i].type()));
    if (!one.operands[i].absent() && !one.fixed[i]) sample.inputs.push_back(one.operands[i]);
  }
  std::string list;
  for (const std::string& type : types) list += (list.empty() ? "" : ", ") + type;
  sample.text = str(one.op, " (", list, ")");
  TENON_TRY(interpreter, Interpreter::prepare(*graph));
  TENON_TRY(expected, interpreter->run(sample.inputs));
  sample.expected = std::move(expected);
  sample.graph = std::move(graph);
  return sample;
}

// Small and positive unless it is a float, so that nothing saturates, and nothing is divided by 0.
Tensor in_type(const Tensor& from, ElementType element) {
  Tensor out = *Tensor::zeros(element, from.dims());
  for (int64_t i = 0; i < from.size(); ++i) {
    const double value = from.double_at(i);
    if (element.is_float())
      out.set_double(i, value);
    else
      out.set_int(i, 1 + static_cast<int64_t>(std::abs(value) * 4) % 7);
  }
  return out;
}

// Converts all operands of the element type in which most floats or integers are drawn to `element`.
Instance retyped(Instance one, ElementType element) {
  for (Datum& operand : one.operands) {
    const bool drawn =
        operand.is_tensor() && (operand.tensor().element() == kF32 || operand.tensor().element() == kI32);
    if (drawn) operand = Datum(in_type(operand.tensor(), element));
  }
  return one;
}

// The elements of `from`, repeated.
Tensor stretched(const Tensor& from, Dims dims) {
  Tensor out = *Tensor::zeros(from.element(), std::move(dims));
  for (int64_t i = 0; from.size() > 0 && i < out.size(); ++i) {
    const int64_t source = i % from.size();
    if (from.element().is_string())
      out.mutable_as<std::string>()[i] = from.as<std::string>()[source];
    else
      store_bits(out.mutable_data(), from.element().bits(), i, load_bits(from.data(), from.element().bits(), source));
  }
  return out;
}

// Replaces one extent of the operands that vary by `extent`, wherever it occurs at the same position from the right.
Instance resized(Instance one, int64_t extent, std::mt19937& random) {
  std::vector<std::pair<size_t, int64_t>> places;  // position from the right, and the extent there
  for (size_t i = 0; i < one.operands.size(); ++i) {
    if (one.operands[i].absent() || one.fixed[i]) continue;
    const Dims& dims = one.operands[i].tensor().dims();
    for (size_t d = 0; d < dims.size(); ++d) places.emplace_back(dims.size() - d, dims[d]);
  }
  if (places.empty()) return one;
  const auto [place, was] = places[static_cast<size_t>(pick(random, 0, static_cast<int64_t>(places.size()) - 1))];
  for (size_t i = 0; i < one.operands.size(); ++i) {
    if (one.operands[i].absent() || one.fixed[i]) continue;
    Dims dims = one.operands[i].tensor().dims();
    if (dims.size() < place || dims[dims.size() - place] != was) continue;
    dims[dims.size() - place] = extent;
    if (*element_count(dims) > kMostElements || one.operands[i].tensor().element().bits() > 64) continue;
    one.operands[i] = Datum(stretched(one.operands[i].tensor(), std::move(dims)));
  }
  return one;
}

// All operands but the first are known, as weights, bounds and numbers of models usually are: whole, or a single number
// for each.
Instance known(Instance one, bool numbers) {
  for (size_t i = 1; i < one.operands.size(); ++i) {
    if (one.operands[i].absent() || one.fixed[i]) continue;
    one.fixed[i] = true;
    if (numbers) one.operands[i] = Datum(stretched(one.operands[i].tensor(), {}));
  }
  return one;
}

bool all_fixed_but_first(const Instance& one) {
  return std::all_of(one.fixed.begin() + !one.fixed.empty(), one.fixed.end(), [](bool fixed) { return fixed; });
}

Instance drawn(const std::string& name, const testing::DrawOp& draw, std::mt19937& random) {
  const DrawnOp made = draw(random);
  Instance one{Name(name), {}, {}, made.attributes, made.results};
  for (const auto& operand : made.operands) {
    one.operands.push_back(operand.draw ? Datum(operand.draw(random)) : Datum());
    one.fixed.push_back(operand.constant);
  }
  return one;
}

// The distance between numbers of this type near 1.
double step_of(ElementType element) { return element == kF16 ? 0x1p-10 : element == kBF16 ? 0x1p-7 : 0; }

}  // namespace

std::vector<std::string> sampled_operators() {
  std::vector<std::string> out;
  for (const auto& [name, draw] : testing::op_cases())
    if (out.empty() || out.back() != name) out.push_back(name);
  return out;
}

std::vector<Sample> samples_of(const std::string& op) {
  static const ElementType kTypes[] = {kF16, kBF16, kF64, kI32, kI64, kI8, kU8, kU32};
  constexpr int64_t kExtents[] = {0, 1, 17, 33, 67};
  std::vector<Sample> out;
  std::mt19937 random(static_cast<std::mt19937::result_type>(fnv1a(op)));
  const auto add = [&](const Instance& one) {
    auto sample = sample_of(one);
    if (sample.ok()) out.push_back(*std::move(sample));
    return sample.ok();
  };
  const auto [first, last] = testing::op_cases().equal_range(op);
  for (auto draw = first; draw != last; ++draw) {
    for (int i = 0; i < kDraws; ++i) {
      const Instance one = drawn(op, draw->second, random);
      add(one);
      add(retyped(one, kTypes[static_cast<size_t>(i) % std::size(kTypes)]));
      const int64_t extent = kExtents[static_cast<size_t>(i) % std::size(kExtents)];
      for (int tries = 0; tries < kTries; ++tries)
        if (add(resized(one, extent, random))) break;
    }
    for (int i = 0; i < kKnown; ++i) {
      const Instance one = drawn(op, draw->second, random);
      if (all_fixed_but_first(one)) break;
      add(known(one, /*numbers=*/false));
      add(known(one, /*numbers=*/true));
    }
  }
  return out;
}

Result<Sample> sample_of_model(const std::string& path) {
  TENON_TRY(graph, load_graph(path));
  TENON_TRY(interpreter, Interpreter::prepare(*graph), "the reference");
  std::vector<ValueInfo> infos;
  for (size_t i = 0; i < graph->body().input_count(); ++i)
    infos.push_back({graph->body().input(i)->name(), graph->body().input(i)->type()});
  TENON_TRY(inputs, seeded_inputs(infos, ModelOptions(), /*seed=*/1));
  TENON_TRY(expected, interpreter->run(inputs), "the reference");
  return Sample{path, std::move(graph), std::move(inputs), std::move(expected)};
}

std::string difference_of(const std::vector<Datum>& got, const std::vector<Datum>& expected) {
  if (got.size() != expected.size()) return str(got.size(), " outputs, ", expected.size(), " expected");
  for (size_t i = 0; i < got.size(); ++i) {
    Tolerance tolerance;
    const bool is_float = expected[i].is_tensor() && expected[i].tensor().element().is_float();
    if (is_float) tolerance.rtol = std::max(tolerance.rtol, 4 * step_of(expected[i].tensor().element()));
    const Comparison comparison = compare(got[i], expected[i], tolerance);
    if (comparison.equal || (is_float && comparison.relative_max <= tolerance.rtol)) continue;
    return str("result ", i, ": ", comparison.difference);
  }
  return "";
}

}  // namespace tenon::cli
