// The model-local functions of a model, and what can be determined before a graph is built: the number of nodes after
// inlining, and which operators are undefined.
#pragma once
#include <onnx.pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include <tenon/support/result.hpp>

namespace tenon::onnx {

namespace format = ::tenon::onnx_format;

// Domain ("" for ai.onnx) to version.
using Opsets = std::map<std::string, int64_t, std::less<>>;
using NodeList = google::protobuf::RepeatedPtrField<format::NodeProto>;

// "" for "ai.onnx".
std::string_view plain_domain(std::string_view domain);
// Tenon's name of an operator: "Conv", "ai.onnx.ml.LabelEncoder".
std::string full_name(std::string_view domain, std::string_view op);
// The newest version of a domain's operators that Tenon knows; nullopt for foreign domains.
std::optional<int64_t> newest_opset(std::string_view domain);
// "node 3 Conv 'layer1/conv'".
std::string describe_node(const format::NodeProto& node, int index);
// Errors: versions that are out of range for the domains that Tenon knows, or that are not numbers.
Result<Opsets> read_opsets(const google::protobuf::RepeatedPtrField<format::OperatorSetIdProto>& imports);

class FunctionTable {
 public:
  // `model` must outlive the table. Two functions of the same name are an error.
  static Result<FunctionTable> build(const format::ModelProto& model);

  // The function that `node` calls; null when it is an operator.
  const format::FunctionProto* find(const format::NodeProto& node) const;
  const Opsets& opsets(const format::FunctionProto& function) const { return opsets_.at(&function); }

  struct Survey {
    uint64_t nodes = 0;   // of all graphs, after inlining; saturates
    uint64_t stored = 0;  // in the file: each called function is counted once
    // "Foo" (domain "my.ops", opset 3) of node 7 Foo 'n', 2 nodes in all (did you mean 'Fo'?)
    std::vector<std::string> unknown_ops;
  };
  // Linear in the size of the file, regardless of the size after inlining. Functions that call themselves, directly or
  // indirectly, and nesting beyond `max_depth` are errors.
  Result<Survey> survey(const NodeList& nodes, const Opsets& opsets, size_t max_depth) const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload
  struct Walk;
  std::map<Key, const format::FunctionProto*> functions_;
  std::map<const format::FunctionProto*, Opsets> opsets_;
};

}  // namespace tenon::onnx
