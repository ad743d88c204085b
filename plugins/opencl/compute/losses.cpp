// Classification losses: one item per position, or one item for all positions where they are summed, in order.
#include <tenon/ops/loss.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/compute_source.hpp"
#include "opencl/compute/windows.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

using irgen::KernelRequest;

// n: 0 classes, 1 positions of an image, 2 positions of an item.
constexpr std::string_view kLossBody = R"(
    const long classes = n[0], inner = n[1], places = n[2];
    S sum = 0, weights = 0;
    int wrong = 0;
    for (long place = item * places; place < (item + 1) * places; ++place) {
      const long from = place / inner * classes * inner + place % inner;
      PREPARE
      const long wanted = CLASS(place);
      S loss = 0;
      if (!IGNORED(wanted)) {
        const int outside = wanted < 0 || wanted >= classes;
        wrong |= outside;
        const long at = outside ? 0 : wanted;
        const S weight = WEIGHT(at);
        loss = -weight * ((S)X(from + at * inner) - BASE);
        sum += loss, weights += weight;
      }
      if (EACH) Y(place, loss);
    }
    if (!EACH) Y(0, MEAN ? sum / weights : sum);
    if (wrong) FAULT;
)";

// The logarithm of the sum of exponentials, which is subtracted from the logits of a position.
constexpr std::string_view kLogSum =
    "S top = (S)X(from); for (long c = 1; c < classes; ++c) top = fmax(top, (S)X(from + c * inner)); "
    "S total = 0; for (long c = 0; c < classes; ++c) total += exp((S)X(from + c * inner) - top); "
    "const S base = top + log(total); LOG_PROBABILITIES";

Result<ComputeKernel> make_loss(const KernelRequest& request, const ComputeTarget& target, bool of_scores) {
  const Op* op = &request.op;
  const ElementType work = work_type_of(request.operands[0].element());
  if (!work.is_float()) return error(Code::unsupported, "scores of ", request.operands[0].element());
  const auto reduction = op->attr<std::string>("reduction", "mean");
  ComputeSource source(request, target);
  source.define("S", scalar_name(sum_type_of(work, target)));
  source.load("X", 0, work);
  source.load("CLASS", 1, kI64);
  source.store("Y", 0, work);
  if (op->operand(2))
    source.load("WEIGHT", 2, work);
  else
    source.define("WEIGHT(c)", 1);
  const Attribute* ignored = op->attributes().find("ignore_index");
  const int64_t* ignore = ignored ? ignored->get_if<int64_t>() : nullptr;
  source.define("IGNORED(c)", ignore ? str("((c) == ", *ignore, "l)") : std::string("0"));
  source.define("EACH", reduction == "none" ? 1 : 0);
  source.define("MEAN", reduction == "mean" ? 1 : 0);
  source.define("BASE", of_scores ? "base" : "(S)0");
  source.define("PREPARE", of_scores ? kLogSum : std::string_view());
  if (op->result_count() > 1) {
    source.store("LOG_PROBABILITY", 1, work);
    source.define(
        "LOG_PROBABILITIES",
        "for (long c = 0; c < classes; ++c) LOG_PROBABILITY(from + c * inner, (S)X(from + c * inner) - base);");
  } else {
    source.define("LOG_PROBABILITIES", "");
  }
  source.can_fail();
  return source.kernel(kLossBody, [each = reduction == "none"](const CallShapes& shapes) -> Result<ComputeLaunch> {
    const Dims& x = shapes.operands[0];
    const int64_t inner = elements_of(spatial_of(x)), places = x[0] * inner;
    return ComputeLaunch{{x[1], inner, each ? 1 : places}, each ? places : 1};
  });
}

Result<ComputeKernel> make_nll(const KernelRequest& request, const ComputeTarget& target) {
  return make_loss(request, target, false);
}
Result<ComputeKernel> make_cross_entropy(const KernelRequest& request, const ComputeTarget& target) {
  return make_loss(request, target, true);
}

constexpr ComputeRow kLossRows[] = {{NegativeLogLikelihoodLoss::kName, make_nll},
                                    {SoftmaxCrossEntropyLoss::kName, make_cross_entropy}};

}  // namespace

std::span<const ComputeRow> loss_rows() { return kLossRows; }

}  // namespace tenon::opencl
