// ONNX backend cases: finding them, running them, and comparing results. A callback runs the model, so that one library
// serves the tests of the reference as well as the command line with any target.
//
// A case is a folder with `model.onnx` and `test_data_set_*` folders of input_N.pb and output_N.pb, or a pair
// `NAME.onnx`, `NAME_output_0.pb` (the "light" models, whose only input is a ramp: element k of n is k / n).
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/compare.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::conformance {

struct Case {
  std::string suite;  // the folder of the case: "node", "light" ...
  std::string name;
  std::string model;                   // path
  std::vector<std::string> data_sets;  // folders; none for a light model
  std::string light_output;            // path; empty for others
  std::string primary_op;              // for node cases, from index.csv; else empty
  bool random = false;                 // values cannot match: only count, types and shapes are compared
  Tolerance tolerance;
  // Why the stored data cannot match; empty except for a few cases of Debian's older set.
  std::string fault;
};

// Every case under `folder`, by suite and name. Tolerances come from a case's data.json, else from the index.csv in
// `folder` or above it, else they are the defaults. An error if the folder does not exist or has no case.
Result<std::vector<Case>> find_cases(const std::string& folder);
// The folder of this machine's cases: $TENON_SHARED/onnx-backend-tests, else `beside`/onnx-backend-tests, else Debian's
// libonnx-testdata; the error lists the searched folders.
Result<std::string> default_folder(const std::string& beside);

enum class Status : uint8_t { passed, failed, unsupported };
std::string_view status_name(Status status);

// A model that is ready to run.
struct Prepared {
  std::function<Result<std::vector<Datum>>(std::span<const Datum>)> run;
  std::string ran_on;  // for the report
};
using Prepare = std::function<Result<Prepared>(std::unique_ptr<Graph>)>;
// The reference evaluators, on the calling thread.
Prepare interpreter();

struct Outcome {
  Status status = Status::failed;
  std::string reason;  // why it did not pass
  std::string ran_on;
};
// A case with a fault is not run: unsupported. Code::unsupported from import, preparation or run makes a case
// unsupported; any other error makes it failed.
Outcome run_case(const Case& one, const Prepare& prepare);

// The inputs and expected outputs of a data set, read with the types of `graph`.
struct DataSet {
  std::vector<Datum> inputs, outputs;
};
Result<DataSet> read_data_set(const Graph& graph, const std::string& folder);
// Checks that there are as many outputs as expected, each within `tolerance`; returns a sentence about the first that
// is not, else "".
std::string compare_outputs(std::span<const Datum> got, std::span<const Datum> expected, const Tolerance& tolerance,
                            bool random);

}  // namespace tenon::conformance
