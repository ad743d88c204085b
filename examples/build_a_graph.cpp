// Builds a graph in C++, inspects it, writes it as an ONNX model, reads it back, and runs it.
#include <cstdio>
#include <string>
#include <vector>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/onnx/export.hpp>

#include "exit_code.hpp"

using namespace tenon;

namespace {

// y = relu(x * w + b) over any number of rows: N is a symbol.
Result<std::unique_ptr<Graph>> build() {
  auto graph = std::make_unique<Graph>("layer");
  Region& body = graph->body();
  Value* x = body.add_input("x", Type(kF32, Shape{Dim(Expr::symbol("N")), 2}));

  // A builder creates operators at one place, here at the end of the body, and infers the types of their results.
  Builder builder(body);
  Value* w = builder.constant(Tensor::of<float>({2, 3}, {1, 0, -1, 0, 1, 1}), "w");
  Value* b = builder.constant(Tensor::of<float>({3}, {0.5f, -10, 0}), "b");
  TENON_TRY(product, builder.op("MatMul", {x, w}));
  TENON_TRY(sum, builder.op("Add", {product, b}));
  TENON_TRY(y, builder.op("Relu", {sum}));
  y->set_name("y");
  body.add_output(y, "y");
  TENON_OK(verify(*graph));
  return graph;
}

// Errors are found during construction: two rows of weights do not fit three columns of input.
Result<void> build_wrongly() {
  Graph graph("wrong");
  Value* x = graph.body().add_input("x", Type(kF32, Shape{4, 3}));
  Builder builder(graph.body());
  Value* w = builder.constant(Tensor::of<float>({2, 1}, {1, 1}), "w");
  TENON_TRY(product, builder.op("MatMul", {x, w}));
  graph.body().add_output(product, "y");
  return {};
}

Result<void> run() {
  TENON_TRY(graph, build());
  std::printf("%s\n", print(*graph).c_str());
  const auto wrong = build_wrongly();
  if (wrong.ok()) return error(Code::internal, "a graph that cannot be was built");
  std::printf("the wrong one: %s\n\n", wrong.error().to_string().c_str());

  const std::string path = "build_a_graph.onnx";  // in the current folder
  TENON_OK(export_model(*graph, path));
  TENON_TRY(read, load_graph(path));
  std::string difference;
  if (!same_graph(*graph, *read, {}, &difference))
    return error(Code::internal, "what was read differs: ", difference);

  TargetRegistry registry;
  TENON_TRY(model, compile(std::move(read), registry));
  TENON_TRY(outputs, model->run(std::vector<Datum>{Tensor::of<float>({2, 2}, {1, 2, 3, 4})}));
  const Tensor& y = outputs[0].tensor();
  std::printf("y = %s", y.to_string().c_str());
  for (const float v : y.as<float>()) std::printf(" %g", v);
  std::printf("\n");
  if (!y.identical(Tensor::of<float>({2, 3}, {1.5f, 0, 1, 3.5f, 0, 1}))) return error(Code::internal, "y is wrong");
  return {};
}

}  // namespace

int main() { return example::exit_code(run()); }
