#include <tenon/ops/softmax.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>

namespace tenon {
namespace {

Result<std::vector<Type>> infer_softmax(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  if (input.shape.ranked()) {
    TENON_OK(normalize_axis(context.attr<int64_t>("axis", -1), input.shape.rank()), context.op().describe());
  }
  return std::vector<Type>{Type(input)};
}

OpDef along_axis(Name name, std::string summary) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("input", "T")
      .result("output", "T")
      .types("T", kFloatTypes)
      .attribute("axis", int64_t{-1})
      .traits(Trait::pure | Trait::layout_aware)
      .infer(infer_softmax)
      .bounds(whole_along("axis", -1));
}

const OpRegistration kSoftmaxRegistered({
    along_axis(Softmax::kName, "e^input / sum of e^input along `axis`"),
    along_axis(LogSoftmax::kName, "The logarithm of Softmax"),
    along_axis(Hardmax::kName, "1 at the first greatest element along `axis`, 0 elsewhere"),
});

}  // namespace
}  // namespace tenon
