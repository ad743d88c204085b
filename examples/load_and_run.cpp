// Loads a model, compiles it for the best target of this machine, runs it, and compares the outputs with the stored
// ones.
//
//   load_and_run MODEL.onnx TEST_DATA_FOLDER [TARGET]
#include <cstdio>
#include <future>
#include <string>
#include <vector>

#include <tenon/compile/compile.hpp>
#include <tenon/onnx/test_data.hpp>
#include <tenon/tensor/compare.hpp>

#include "exit_code.hpp"

using namespace tenon;

namespace {

// Several concurrent runs, since any number of threads may share a compiled model.
Result<std::vector<Datum>> run_at_once(const CompiledModel& model, const std::vector<Datum>& inputs, int runs) {
  std::vector<std::future<Result<std::vector<Datum>>>> pending;
  for (int i = 0; i < runs; ++i) pending.push_back(model.run_async(inputs));  // inputs are shared, not copied
  std::vector<Datum> outputs;
  for (auto& future : pending) {
    TENON_TRY(made, future.get());
    outputs = std::move(made);
  }
  return outputs;
}

Result<void> check(const Datum& got, const Datum& expected, const std::string& name) {
  const Comparison comparison = compare(got, expected);
  std::printf("output '%s' %s: max|a-b| / max|b| = %g\n", name.c_str(), got.type().to_string().c_str(),
              comparison.relative_max);
  if (comparison.relative_max > 1e-3) return error(Code::internal, "output '", name, "': ", comparison.difference);
  return {};
}

Result<void> load_and_run(const std::string& path, const std::string& data, const std::string& target) {
  // The available targets: those of the plugins found, and the reference, which is always available.
  TargetRegistry registry;
  // The model is read, checked, optimised, partitioned by target, and compiled.
  TENON_TRY(model, compile_file(path, registry, {.targets = {target}}));
  std::printf("%s\n", model->placement().to_string().c_str());

  std::vector<Datum> inputs;
  for (size_t i = 0; i < model->inputs().size(); ++i) {
    TENON_TRY(value, read_test_data(str(data, "/input_", i, ".pb"), model->inputs()[i].type));
    inputs.push_back(std::move(value));
  }
  TENON_TRY(outputs, model->run(inputs));
  TENON_TRY(again, run_at_once(*model, inputs, 4));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueInfo& output = model->outputs()[i];
    TENON_TRY(expected, read_test_data(str(data, "/output_", i, ".pb"), output.type));
    TENON_OK(check(outputs[i], expected, output.name));
    TENON_OK(check(again[i], expected, output.name), "in the background");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: load_and_run MODEL.onnx TEST_DATA_FOLDER [TARGET]\n");
    return 2;
  }
  return example::exit_code(load_and_run(argv[1], argv[2], argc > 3 ? argv[3] : "auto"));
}
