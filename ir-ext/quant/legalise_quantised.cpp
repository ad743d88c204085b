#include <algorithm>

#include <tenon-ext/quant/operators.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon-ext/quant/qlinear.hpp>

namespace tenon::quant {
namespace {

bool is_quantised(const Op& op) {
  static const Name kNames[] = {"QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul",
                                "ConvInteger",    "MatMulInteger",    Round::name()};
  return is_qlinear(op) || std::find(std::begin(kNames), std::end(kNames), op.name()) != std::end(kNames);
}

}  // namespace

bool has_scales(const Graph& graph) { return std::any_of(graph.body().begin(), graph.body().end(), is_quantised); }

Result<Change> legalise_quantised(Graph& graph, std::vector<IntegerValue>* values) {
  if (!has_scales(graph)) return Change::no;
  PassManager passes("legalise-quantised");
  for (const char* pass : {"infer-types", "expand-quantised", "fold-constants", "fold-batch-norm", "round-to-powers",
                           "remove-dead", "fold-constants"}) {
    TENON_OK(passes.add(pass));
  }
  std::map<std::string, double> factors;
  TENON_OK(passes.add(Pass{.name = "fold-factors", .contract = "see there", .run = [&factors](Graph& g) {
                             return fold_factors(g, &factors);
                           }}));
  TENON_OK(passes.add(Pass{.name = "fuse-quantised", .contract = "see there", .run = [values](Graph& g) {
                             return fuse_quantised(g, values);
                           }}));
  TENON_OK(passes.add("share-common"));
  TENON_OK(passes.add("remove-dead"));
  TENON_TRY(report, passes.run(graph));
  for (size_t i = 0; values && i < values->size(); ++i) {
    const auto factor = factors.find((*values)[i].name);
    if (factor != factors.end()) (*values)[i].factor = factor->second;
  }
  const bool changed =
      std::any_of(report.passes.begin(), report.passes.end(), [](const PassTiming& pass) { return pass.changed; });
  return changed ? Change::yes : Change::no;
}

namespace {

const PassRegistration kLegaliseQuantisedRegistered({{
    .name = "legalise-quantised",
    .contract = "Quantised models of ONNX (QDQ, QLinearConv, ConvInteger ...) become fused integer layers whose scales "
                "are powers of two:\nexpand-quantised, round-to-powers, fold-factors, fuse-quantised. Needs nothing; "
                "changes numbers; "
                "float models stay as they are.",
    .run = [](Graph& graph) { return legalise_quantised(graph); },
}});

}  // namespace
}  // namespace tenon::quant
