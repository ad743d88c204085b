#include <tenon/ops/signal.hpp>

#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

// The single number of integer operand `i`; unknown when it is not known.
Dim number_operand(const InferContext& context, size_t i) {
  const auto dims = context.has_operand(i) ? context.dims_value(i) : std::nullopt;
  return dims && dims->size() == 1 ? (*dims)[0] : Dim();
}

Result<void> require_positive(const InferContext& context, std::string_view what, const Dim& number) {
  if (!number.is_static() || number.value() > 0) return {};
  return error(Code::invalid_argument, what, " of ", context.op().describe(), " is ", number, "; it must be positive");
}

Dim half_and_one(const Dim& length) {
  return length.known() ? extent(floordiv(length.expr(), Expr(2)) + Expr(1)) : Dim();
}

// Checks that the last axis holds real numbers or pairs.
Result<void> check_complex_axis(const InferContext& context, const Shape& shape, bool real_only) {
  const Dim& last = shape.dims().back();
  if (!last.is_static() || last.value() == 1 || (last.value() == 2 && !real_only)) return {};
  return error(Code::invalid_argument, "the last axis of operand 0 of ", context.op().describe(), " must have extent 1",
               real_only ? " (real numbers, as onesided asks for)" : " or 2", ", it is ", context.type(0));
}

InferredTypes infer_dft(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  TENON_OK(require_rank_at_least(context, 0, 2));
  if (!input.shape.ranked()) return one_type(input.element, Shape());
  const bool inverse = context.attr<int64_t>("inverse", 0) != 0, onesided = context.attr<int64_t>("onesided", 0) != 0;
  TENON_OK(check_complex_axis(context, input.shape, onesided && !inverse));
  const Dim given_axis = context.has_operand(2) ? number_operand(context, 2) : Dim(-2);
  if (!given_axis.is_static()) return one_type(input.element, unknown_shape(input.shape.rank()));
  TENON_TRY(axis, normalize_axis(given_axis.value(), input.shape.rank()), "operand 'axis' of DFT");
  if (axis == input.shape.rank() - 1) {
    return error(Code::invalid_argument, "operand 'axis' of DFT is ", given_axis,
                 ", which is the axis of complex numbers");
  }
  const auto along = static_cast<size_t>(axis);
  Dim length = input.shape[along];
  if (inverse && onesided) length = Dim(2) * (length - Dim(1));
  if (context.has_operand(1)) length = number_operand(context, 1);
  TENON_OK(require_positive(context, "the length", length));
  input.shape[along] = onesided && !inverse ? half_and_one(length) : length;
  input.shape[static_cast<size_t>(input.shape.rank()) - 1] = onesided && inverse ? 1 : 2;
  return one_type(input.element, std::move(input.shape));
}

InferredTypes infer_stft(const InferContext& context) {
  TENON_TRY(signal, context.tensor(0));
  TENON_OK(require_rank(context, 0, 3));
  const bool onesided = context.attr<int64_t>("onesided", 1) != 0;
  if (!signal.shape.ranked()) return one_type(signal.element, unknown_shape(4));
  TENON_OK(check_complex_axis(context, signal.shape, onesided));
  Dim length = signal.shape[1];
  const Type& window = context.type(2);
  if (context.has_operand(2)) {
    TENON_OK(require_rank(context, 2, 1));
    length = window.is_tensor() && window.shape().ranked() ? window.shape()[0] : Dim();
  }
  if (context.has_operand(3)) {
    const Dim asked = number_operand(context, 3);
    if (context.has_operand(2) && certainly_differ(asked, length)) {
      return error(Code::invalid_argument, "operand 'frame_length' of STFT is ", asked, ", its window has ", length,
                   " points");
    }
    length = asked;
  }
  const Dim step = number_operand(context, 1);
  TENON_OK(require_positive(context, "operand 'frame_step'", step));
  TENON_OK(require_positive(context, "the frame length", length));
  const Dim rest = signal.shape[1] - length;
  if (rest.is_static() && rest.value() < 0) {
    return error(Code::invalid_argument, "a frame of STFT has ", length, " points, the signal ", signal.shape[1]);
  }
  const Dim frames = rest.known() && step.is_static() ? extent(floordiv(rest.expr(), step.expr()) + Expr(1)) : Dim();
  return one_type(signal.element, {signal.shape[0], frames, onesided ? half_and_one(length) : length, 2});
}

ElementType output_element(const InferContext& context) {
  return context.attr<Type>("output_datatype", Type(kF32, Shape())).element();
}

InferredTypes infer_window(const InferContext& context) {
  const Dim size = number_operand(context, 0);
  if (size.is_static() && size.value() < 0) {
    return error(Code::invalid_argument, "operand 'size' of ", context.op().describe(), " is ", size);
  }
  return one_type(output_element(context), {size});
}

InferredTypes infer_mel(const InferContext& context) {
  const Dim bins = number_operand(context, 0), length = number_operand(context, 1);
  TENON_OK(require_positive(context, "operand 'num_mel_bins'", bins));
  TENON_OK(require_positive(context, "operand 'dft_length'", length));
  TENON_OK(require_positive(context, "operand 'sample_rate'", number_operand(context, 2)));
  return one_type(output_element(context), {half_and_one(length), bins});
}

// ---- Bounds ----

// All of the transformed axis, and both parts of a complex number.
Result<Bounds> dft_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query, false);
  const Dim axis = query.context.has_operand(2) ? number_operand(query.context, 2) : Dim(-2);
  if (!axis.is_static()) return bounds;
  TENON_TRY(along, normalize_axis(axis.value(), query.shape.rank()));
  const auto at = static_cast<size_t>(along), last = query.box.size() - 1;
  bounds.operands[0] = inexact(follow(query, 0, each_dim(query.box.size(), {at, last})));
  for (size_t d = 0; d < last; ++d) bounds.splits[d] = d != at;
  return bounds;
}

// Frame f reads N points from f * frame_step on, where N is the window's length, or as stated, or the signal's length.
Result<Bounds> stft_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  bounds.splits[2] = bounds.splits[3] = false;
  bounds.operands[0] = inexact(follow(query, 0, {0, kWhole, kWhole}));
  const Dim step = number_operand(query.context, 1);
  const Shape* window = ranked_shape(query.context, 2);
  const Dim length = query.context.has_operand(3) ? number_operand(query.context, 3) : window ? (*window)[0] : Dim();
  if (!step.known() || !length.known() || bounds.operands[0].dims.empty()) return bounds;
  const BoxRange& frames = query.box[1];
  bounds.operands[0].dims[1] = at_most({frames.min * step.expr(), frames.max * step.expr() + length.expr() - Expr(1)});
  return bounds;
}

// Without a length of its own, a frame is as long as the signal.
Result<void> stft_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  if (query.bounds.operands[0].dims[1].whole) TENON_OK(require_whole(query, 1));
  return runs_as_it_is()(query, op);
}

OpDef window(std::string_view name, std::string_view summary) {
  return OpDef(name)
      .summary(std::string(summary))
      .operand("size", "I")
      .result("output", "T")
      .types("I", kIndexTypes)
      .types("T", kNumberTypes)
      .optional_attribute("output_datatype", AttributeKind::type)
      .attribute("periodic", int64_t{1})
      .infer(infer_window)
      .bounds(whole_operands());
}

const OpRegistration kSignalRegistered({
    OpDef(DFT::kName)
        .summary("y[k] = sum over n of x[n] exp(-2 pi i k n / N) along `axis`, or its inverse")
        .operand("input", "T")
        .optional_operand("dft_length", "I")
        .optional_operand("axis", "i64")
        .result("output", "T")
        .types("T", kFloatTypes)
        .types("I", kIndexTypes)
        .attribute("inverse", int64_t{0})
        .attribute("onesided", int64_t{0})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_dft)
        .bounds({dft_bounds, runs_as_it_is()}),
    OpDef(STFT::kName)
        .summary("The Fourier transforms of windowed frames of a signal")
        .operand("signal", "T")
        .operand("frame_step", "I")
        .optional_operand("window", "T")
        .optional_operand("frame_length", "I")
        .result("output", "T")
        .types("T", kFloatTypes)
        .types("I", kIndexTypes)
        .attribute("onesided", int64_t{1})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_stft)
        .bounds({stft_bounds, stft_sub_box}),
    window(HannWindow::kName, "1/2 - 1/2 cos(2 pi n / N)"),
    window(HammingWindow::kName, "25/46 - 21/46 cos(2 pi n / N)"),
    window(BlackmanWindow::kName, "0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)"),
    OpDef(MelWeightMatrix::kName)
        .summary("Triangular filters that take the bins of a spectrum to mel bins")
        .operand("num_mel_bins", "I")
        .operand("dft_length", "I")
        .operand("sample_rate", "I")
        .operand("lower_edge_hertz", "F")
        .operand("upper_edge_hertz", "F")
        .result("output", "T")
        .types("I", kIndexTypes)
        .types("F", kFloatTypes)
        .types("T", kNumberTypes)
        .optional_attribute("output_datatype", AttributeKind::type)
        .infer(infer_mel)
        .bounds(whole_operands()),
});

}  // namespace
}  // namespace tenon
