// Writing graphs as ONNX models: IR version 13, opset 28 of ai.onnx, which is what the normal form of the graph says.
// (An older opset would need each rule of the upgrade backwards; few could say the same.)
//
// Operators named "domain.Name" go to that domain: the newest version that Tenon knows, else the one that property
// "opset.DOMAIN" states, else 1. Properties go back to where import found them. Names of inputs and outputs are written
// as they are, those of other values made unique where they are not. Constants that stand before all other operators of
// a region become initializers. Importing the result gives an equal graph, except that an Identity stands before an
// output whose name is not that of a value of its own.
#pragma once
#include <optional>
#include <string>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

struct ExportOptions {
  // Tensors of at least this many bytes go to a second file, as ONNX's external data; none: everything in one file,
  // which can hold 2 GiB.
  std::optional<size_t> external_data_threshold = {};
  // The name of that file, beside the model; empty: the model's file name with ".data" behind it.
  std::string external_data_file = {};
};

// Errors: an element type that ONNX lacks; two inputs or outputs of one name; a file that cannot be written.
TENON_API Result<void> export_model(const Graph& graph, const std::string& path, const ExportOptions& options = {});
// All in one.
TENON_API Result<std::string> export_model_bytes(const Graph& graph);

}  // namespace tenon
