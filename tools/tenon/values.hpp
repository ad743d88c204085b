// Inputs and expected outputs of a model, from files or generated, and tolerances for outputs.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <tenon/support/result.hpp>
#include <tenon/tensor/compare.hpp>

#include "session.hpp"

namespace tenon::cli {

// DIR is an ONNX test-data folder: input_0.pb ... in the order of the model's inputs, output_0.pb ... likewise.
struct TestData {
  std::map<size_t, Datum> inputs, outputs;
};

// --data DIR, --input NAME=FILE, --seed N.
struct InputOptions {
  std::string data;
  std::vector<std::string> files;
  uint64_t seed = 1;

  void add_to(CLI::App& command);
  // Reads the folder of --data; empty without it.
  Result<TestData> read_data(const std::vector<ValueInfo>& inputs, const std::vector<ValueInfo>& outputs) const;
  // Inputs from --input, then from --data, then seeded.
  Result<std::vector<Datum>> gather(const ModelOptions& model, const std::vector<ValueInfo>& inputs,
                                    const TestData& data) const;
};

// --rtol and --atol.
struct ToleranceOptions {
  double rtol = -1, atol = -1;

  void add_to(CLI::App& command);
  Tolerance elements() const;
  // Without either option, whole networks are judged by max|a-b| / max|b| as well, because single elements near zero
  // are not meaningful there. This is the tolerance; 0: not used.
  double relative_max() const { return rtol < 0 && atol < 0 ? 1e-3 : 0; }
  bool accepts(const Comparison& comparison) const {
    return comparison.equal || (relative_max() > 0 && comparison.relative_max <= relative_max());
  }
};

}  // namespace tenon::cli
