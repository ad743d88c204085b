// Two user-defined passes: a declarative rewrite, which turns x * sigmoid(x) into Swish, and a plain function, which
// counts. A manager runs them, verifies the graph after each, and reports their times.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <tenon/ir/text.hpp>
#include <tenon/passes/rewrite.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/tensor/compare.hpp>

#include "exit_code.hpp"

using namespace tenon;

namespace {

// The first pair becomes one Swish. In the second, the sigmoid has another user and must remain.
constexpr std::string_view kGraph = R"(
graph @gates(%x: f32[2,4]) -> (%b, gate: %t) {
  %s = Sigmoid %x
  %a = Mul %x, %s
  %t = Sigmoid %a
  %b = Mul %t, %a
}
)";

// The framework handles uses, types and names, and operands in either order: Mul is commutative by its definition.
std::vector<Rewrite> swish_rewrites() {
  using namespace pattern;
  return {
      Rewrite("swish").match(op("Mul", {any("x"), op("Sigmoid", {any("x")})})).into("Swish", {"x"}),
  };
}

using Histogram = std::map<std::string, int>;
Result<Change> count_operators(Graph& graph, Histogram& counts) {
  for_each_op(graph.body(), [&](Op& op) { ++counts[op.name().str()]; });
  return Change::no;
}

Result<std::vector<Datum>> evaluated(const Graph& graph) {
  TENON_TRY(interpreter, Interpreter::prepare(graph));
  return interpreter->run(std::vector<Datum>{Tensor::of<float>({2, 4}, {-3, -1, -0.5f, 0, 0.25f, 1, 2, 8})});
}

Result<void> run() {
  TENON_TRY(graph, parse_graph(kGraph, "gates"));
  TENON_TRY(before, evaluated(*graph));

  Histogram counts;
  PassManager passes("example");
  // infer-types, which rewrites need, is inserted before it from the registry.
  TENON_OK(passes.add(rewrite_pass("fuse-swish", "x * sigmoid(x) becomes Swish.", swish_rewrites())));
  TENON_OK(passes.add({.name = "count-operators", .contract = "Changes nothing.", .run = [&](Graph& g) {
                         return count_operators(g, counts);
                       }}));
  TENON_TRY(report, passes.run(*graph, {.verify_each = true}));
  std::printf("%s\n%s\n", print(*graph).c_str(), report.to_string().c_str());

  if (counts != Histogram{{"Swish", 1}, {"Sigmoid", 1}, {"Mul", 1}}) {
    return error(Code::internal, "one of the two should have become Swish");
  }
  // A pass preserves the meaning of the graph.
  TENON_TRY(after, evaluated(*graph));
  for (size_t i = 0; i < before.size(); ++i) {
    const Comparison comparison = compare(after[i], before[i], {.rtol = 1e-6, .atol = 1e-7});
    if (!comparison.equal) return error(Code::internal, "output ", i, ": ", comparison.difference);
  }
  return {};
}

}  // namespace

int main() { return example::exit_code(run()); }
