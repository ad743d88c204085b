// Reading ONNX models: IR versions 3 to 13, opsets 1 to 28 of ai.onnx, from a file or from memory.
//
// Normal form of what comes out:
//   - every operator of ai.onnx has the meaning, attributes and operands of opset 28; older nodes are upgraded.
//   Operators of
//     other domains are named "domain.Name", those of ai.onnx just "Name"
//   - model-local functions are inlined; initializers and every form of constant are Constant operators
//   - subgraphs are regions: If then_branch, else_branch; Loop, Scan and SequenceMap their body; else in the order of
//   the
//     attributes' names
//   - ai.onnx.preview.training.Gradient is replaced by the operators of the reverse mode
//   - trailing absent operands are dropped; names of values, nodes (as labels), inputs, outputs and symbolic dims stay
//   - types are inferred; what the file declares about values must agree
//   - properties() holds "ir_version", "opset.DOMAIN" ("opset.ai.onnx"), "producer_name", "producer_version", "domain",
//     "model_version", "doc_string", "graph.doc_string", "metadata.KEY", as far as the file has them
//
// Whatever the bytes are, the answer is a graph or an error: sizes, nesting, recursion and amplification are bounded,
// and external data is read beneath its folder only, through no link.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

struct ImportOptions {
  // Where external data lies; empty: the folder of the model's file. From memory there is no such folder, and external
  // data is refused unless one is given here.
  std::string external_data_folder;
  // Initializers that are listed among the inputs too may be given anew at each run: keep them as inputs, instead of
  // the constants that they are by default.
  bool keep_overridable_inputs = false;
  // Keep operators that nobody defined, without inferred types; verify() will name them. By default all of them are
  // named in one error of Code::unsupported.
  bool allow_unknown_ops = false;
  // Most nodes that inlining functions may make; 0: 20,000 or 64 times the nodes of the file, whichever is more.
  size_t max_inlined_nodes = 0;
  // Levels of subgraphs, and of function calls, inside each other.
  size_t max_depth = 64;
};

// Weights are held once: those of external data are mapped, the others are read into their tensors.
TENON_API Result<std::unique_ptr<Graph>> import_model(const std::string& path, const ImportOptions& options = {});
// `where` names the bytes in messages.
TENON_API Result<std::unique_ptr<Graph>> import_model_bytes(std::span<const std::byte> bytes,
                                                            const ImportOptions& options = {},
                                                            std::string_view where = "the model");

}  // namespace tenon
