// Reads ONNX models: IR versions 3 to 13, opsets 1 to 28 of ai.onnx, from a file or from memory.
//
// Normal form of the resulting graph:
//   - every operator of ai.onnx has the meaning, attributes and operands of opset 28; older nodes are upgraded.
//     Operators of other domains are named "domain.Name", those of ai.onnx just "Name"
//   - model-local functions are inlined; initializers and every form of constant are Constant operators
//   - subgraphs are regions: If then_branch, else_branch; Loop, Scan and SequenceMap their body; others in the order of
//     the attributes' names
//   - ai.onnx.preview.training.Gradient is replaced by the operators of reverse-mode differentiation
//   - trailing absent operands are dropped; names of values, nodes (as labels), inputs, outputs and symbolic dims are
//     kept
//   - types are inferred; what the file declares about values must agree
//   - properties() holds "ir_version", "opset.DOMAIN" ("opset.ai.onnx"), "producer_name", "producer_version", "domain",
//     "model_version", "doc_string", "graph.doc_string", "metadata.KEY", where the file has them
//
// Any bytes give a graph or an error: sizes, nesting, recursion and amplification are bounded, and external data is
// read only from its folder, through no link.
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
  // The folder of external data; empty: the folder of the model's file. For a model from memory there is no such
  // folder, and external data is refused unless one is given here.
  std::string external_data_folder;
  // Keep initializers that are also listed as inputs, and so may be replaced in each run, as inputs. By default they
  // become constants.
  bool keep_overridable_inputs = false;
  // Keep undefined operators, without inferred types; verify() will report them. By default they are all listed in one
  // error, Code::unsupported.
  bool allow_unknown_ops = false;
  // The most nodes that inlining functions may create; 0: 20,000 or 64 times the nodes of the file, whichever is more.
  size_t max_inlined_nodes = 0;
  // Nesting depth of subgraphs, and of function calls.
  size_t max_depth = 64;
};

// Weights are held in memory once: external data is mapped, other weights are read into their tensors.
TENON_API Result<std::unique_ptr<Graph>> import_model(const std::string& path, const ImportOptions& options = {});
// `where` is the name of the bytes in messages.
TENON_API Result<std::unique_ptr<Graph>> import_model_bytes(std::span<const std::byte> bytes,
                                                            const ImportOptions& options = {},
                                                            std::string_view where = "the model");

}  // namespace tenon
