// ONNX backend cases: finding them, running them, comparing. What runs a model is a callback, so that one library
// serves the tests of the reference and the command line with any target.
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
  std::string suite;  // the folder that the case lies in: "node", "light" ...
  std::string name;
  std::string model;                   // path
  std::vector<std::string> data_sets;  // folders; none for a light model
  std::string light_output;            // path; empty for others
  std::string primary_op;              // of node cases, from index.csv; else empty
  bool random = false;                 // values cannot be matched: only count, types and shapes are compared
  Tolerance tolerance;
  std::string
      fault;  // why the stored data cannot be matched by anybody; empty but for a few cases of Debian's older set
};

// Every case under `folder`, by suite and name. Tolerances come from a case's data.json, else from the index.csv that
// lies in `folder` or above it, else they are the defaults. An error when the folder is not there or has no case.
Result<std::vector<Case>> find_cases(const std::string& folder);
// Where the cases of this machine are: $TENON_SHARED/onnx-backend-tests, else `beside`/onnx-backend-tests, else
// Debian's libonnx-testdata; an error that says where was looked.
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
  std::string reason;  // of what did not pass
  std::string ran_on;
};
// A case with a fault is not run: unsupported. Errors of Code::unsupported, from import, preparation or run, make a
// case unsupported; any other makes it failed.
Outcome run_case(const Case& one, const Prepare& prepare);

// The inputs and expected outputs of a data set, by the types of `graph`.
struct DataSet {
  std::vector<Datum> inputs, outputs;
};
Result<DataSet> read_data_set(const Graph& graph, const std::string& folder);
// As many outputs as expected, each within `tolerance`; a sentence about the first that is not, else "".
std::string compare_outputs(std::span<const Datum> got, std::span<const Datum> expected, const Tolerance& tolerance,
                            bool random);

}  // namespace tenon::conformance
