// Writes graphs as ONNX models: IR version 13, opset 28 of ai.onnx, to which the graph's normal form corresponds.
// (An older opset would need the inverse of each upgrade rule, and few upgrades can be inverted.)
//
// Operators named "domain.Name" are written to that domain, in the newest version that Tenon knows, else the one that
// property "opset.DOMAIN" states, else 1. Properties are written to the fields that import read them from. Names of
// inputs and outputs are unchanged; those of other values are made unique where necessary. Constants that precede all
// other operators of a region become initializers. Importing the result gives an equal graph, except that an Identity
// precedes an output whose name differs from that of its value.
#pragma once
#include <optional>
#include <string>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

struct ExportOptions {
  // Tensors of at least this many bytes are written to a second file, as ONNX's external data; none: everything is in
  // one file, which can hold 2 GiB.
  std::optional<size_t> external_data_threshold = {};
  // The name of that file, in the model's folder; empty: the model's file name followed by ".data".
  std::string external_data_file = {};
};

// Errors: an element type that ONNX lacks; two inputs or outputs with the same name; a file that cannot be written.
TENON_API Result<void> export_model(const Graph& graph, const std::string& path, const ExportOptions& options = {});
// Everything in one byte string.
TENON_API Result<std::string> export_model_bytes(const Graph& graph);

}  // namespace tenon
