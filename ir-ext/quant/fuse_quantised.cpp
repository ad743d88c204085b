#include <algorithm>

#include <tenon-ext/fused/elementwise.hpp>
#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/fused/pooling.hpp>
#include <tenon-ext/quant/accumulator_internal.hpp>
#include <tenon-ext/quant/operators.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon/ops/arithmetic.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/matmul.hpp>
#include <tenon/ops/movement.hpp>
#include <tenon/ops/pooling.hpp>
#include <tenon/passes/change.hpp>

namespace tenon::quant {
namespace {

using MaybeQuantised = Result<std::optional<Quantised>>;

// Moves elements only: the same on integers.
bool moves_only(const Op& op) {
  static const Name kMoves[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Identity"};
  return std::find(std::begin(kMoves), std::end(kMoves), op.name()) != std::end(kMoves);
}

// ---- Averages ----

// The window of a mean: kernel_shape, strides, pads, dilations; nullopt where elements do not all count alike.
Result<std::optional<Attributes>> mean_window(const Op& op, const Shape& x) {
  if (isa<AveragePool>(op)) {
    const auto kernel = op.attr<Attribute::Integers>("kernel_shape");
    TENON_TRY(window, explicit_window(op, {kernel.begin(), kernel.end()}, x, op.result()->type().shape()));
    if (!window) return window;
    const auto& pads = *window->find("pads")->get_if<Attribute::Integers>();
    const bool padded = std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; });
    // With ceil_mode, what lies behind the stated padding does not count even so.
    if (padded && (op.attr<int64_t>("count_include_pad", 0) == 0 || op.attr<int64_t>("ceil_mode", 0) != 0)) {
      return std::optional<Attributes>();
    }
    window->set("kernel_shape", kernel);
    return window;
  }
  Attribute::Integers kernel;
  for (size_t d = 2; d < x.dims().size(); ++d) kernel.push_back(x[d].value());
  return std::optional<Attributes>(Attributes{{"kernel_shape", kernel}});
}

// GlobalAveragePool by another name: all axes of the image, kept.
bool is_mean_of_image(const Op& op) {
  if (!op.is("ReduceMean") || op.attr<int64_t>("keepdims", 1) == 0) return false;
  const Shape& x = op.operand(0)->type().shape();
  auto axes = constant_ints_of(op.operand(1));
  if (!axes || !x.ranked() || x.rank() < 3) return false;
  for (int64_t& axis : *axes) axis += axis < 0 ? x.rank() : 0;
  std::sort(axes->begin(), axes->end());
  if (axes->size() != static_cast<size_t>(x.rank()) - 2) return false;
  for (size_t i = 0; i < axes->size(); ++i) {
    if ((*axes)[i] != static_cast<int64_t>(i) + 2) return false;
  }
  return true;
}
bool is_mean(const Op& op) { return isa<AveragePool>(op) || isa<GlobalAveragePool>(op) || is_mean_of_image(op); }

// multiplier / 2^shift as close to `ratio` as 15 bits and the accumulators allow: sums are `elements` * 128 at most.
struct Fraction {
  int64_t multiplier = 0, shift = 0;
};
std::optional<Fraction> fraction_of(double ratio, int64_t elements) {
  for (int64_t shift = fused::kMostShift; shift >= 0; --shift) {
    const double multiplier = std::nearbyint(std::ldexp(ratio, static_cast<int>(shift)));
    const int64_t room = INT32_MAX - (shift > 0 ? int64_t{1} << (shift - 1) : 0);
    if (multiplier >= 1 && multiplier <= 32767 && multiplier <= static_cast<double>(room / 128 / elements)) {
      return Fraction{static_cast<int64_t>(multiplier), shift};
    }
  }
  return std::nullopt;
}

// ---- The rewriting ----

class IntegerLayers {
 public:
  IntegerLayers(Graph& graph, std::vector<IntegerValue>* values) : body_(graph.body()), values_(values) {}

  Result<Change> run() {
    for (Op* op : body_.ops()) {
      auto done = isa<Round>(op) ? round(*op) : pass_through(*op);
      if (!done.ok()) return std::move(done).error().with_frame(op->describe());
    }
    for (Op* op : dead_) erase_dead(*op);
    return change_;
  }

 private:
  Builder before(Op& op) const { return Builder(body_, &op); }

  // `made` in place of what `op` gives.
  Result<void> replace(Op& op, const Quantised& made) {
    Value& old = *op.result();
    if (made.value->name().empty()) made.value->set_name(old.name());
    if (made.value->producer()->label().empty()) made.value->producer()->set_label(label_of(op));
    if (values_) values_->push_back({made.value->name(), made.value->producer()->name().str(), made.exponent});
    Builder builder = before(op);
    TENON_TRY(real, builder.op(Dequantize::name(), {made.value}, {{"exponent", made.exponent}}));
    if (!old.name().empty()) real->set_name(str(old.name(), ".real"));
    change_ = Change::yes;
    dead_.push_back(&op);
    return replace_value(old, *real);
  }
  // That of the operator whose result is rounded.
  static std::string label_of(const Op& op) {
    const Op* producer = op.operand(0) ? op.operand(0)->producer() : nullptr;
    return !op.label().empty() || !producer ? op.label() : producer->label();
  }

  // ---- Operators that stay what they are, on integers ----

  Result<void> pass_through(Op& op) {
    const auto x = quantised(op.operand(0));
    if (!x || op.result_count() == 0) return {};
    if (isa<MaxPool>(op)) return max_pool(op, *x);
    if (moves_only(op)) return move(op, *x);
    // A Round behind it takes it along, with a scale of its own.
    const auto clip = clip_of(op);
    const bool rounded = op.result()->has_one_use() && isa<Round>(op.result()->first_use()->user());
    return clip && !rounded ? cut(op, *x, *clip) : Result<void>();
  }

  Result<void> max_pool(Op& op, const Quantised& x) {
    if (op.result_count() > 1 && op.result(1)->used()) return {};
    const auto kernel = op.attr<Attribute::Integers>("kernel_shape");
    TENON_TRY(window, explicit_window(op, {kernel.begin(), kernel.end()}, op.operand(0)->type().shape(),
                                      op.result()->type().shape()));
    if (!window) return {};
    window->set("kernel_shape", kernel);
    Builder builder = before(op);
    TENON_TRY(y, builder.op(fused::QMaxPool::name(), {x.value}, *std::move(window)));
    return replace(op, {y, x.exponent});
  }

  Result<void> move(Op& op, const Quantised& x) {
    std::vector<Value*> operands = op.operands();
    operands[0] = x.value;
    Builder builder = before(op);
    TENON_TRY(y, builder.op(op.name(), operands, op.attributes()));
    return replace(op, {y, x.exponent});
  }

  Result<void> cut(Op& op, const Quantised& x, const ClipRange& clip) {
    Attributes attributes;
    set_epilogue(attributes, 0, clip, x.exponent);
    Builder builder = before(op);
    TENON_TRY(y, builder.op(Requantize::name(), {x.value}, std::move(attributes)));
    return replace(op, {y, x.exponent});
  }

  // ---- What a Round ends ----

  // Rounding and picking or moving elements commute: before them it ends what an accumulator can do.
  Result<void> round_earlier(const Round& round, Op& producer) {
    Builder builder = before(producer);
    TENON_TRY(rounded, builder.op(Round::name(), {producer.operand(0)}, {{"exponent", round.exponent()}}));
    rounded->set_name(producer.operand(0)->name());
    producer.set_operand(0, rounded);
    TENON_OK(this->round(*rounded->producer()));
    return pass_through(producer);
  }

  Result<void> round(Op& op) {
    const auto round = cast<Round>(op);
    Op* const producer = round.input()->producer();
    if (producer && (isa<MaxPool>(producer) || moves_only(*producer)) && round.input()->has_one_use() &&
        !quantised(producer->operand(0))) {
      TENON_OK(round_earlier(round, *producer));
    }
    if (const auto x = quantised(round.input()); x && x->exponent == round.exponent()) {
      dead_.push_back(&op);
      change_ = Change::yes;
      return replace_value(*op.result(), *round.input());
    }
    ClipRange clip;
    Value* const real = without_clips(round.input(), clip);
    TENON_TRY(made, rounded(op, real, clip, round.exponent()));
    if (made) return replace(op, *made);
    Builder builder = before(op);
    TENON_TRY(y, builder.op(Quantize::name(), {round.input()}, {{"exponent", round.exponent()}}));
    return replace(op, {y, round.exponent()});
  }

  // What Relus and Clips that nobody else reads stand on.
  static Value* without_clips(Value* real, ClipRange& clip) {
    while (real->producer() && real->has_one_use()) {
      const auto found = clip_of(*real->producer());
      if (!found) break;
      clip.cut(found->least, found->greatest);
      real = real->producer()->operand(0);
    }
    return real;
  }

  MaybeQuantised rounded(Op& op, Value* real, const ClipRange& clip, int64_t exponent) {
    Builder builder = before(op);
    TENON_TRY(accumulator, accumulator_of(builder, real));
    if (accumulator) return some(finish(builder, *accumulator, std::nullopt, clip, exponent));
    if (const auto x = quantised(real)) return some(requantised(builder, *x, clip, exponent));
    Op* const producer = real->producer();
    if (!producer || !real->has_one_use()) return std::optional<Quantised>();
    if (producer->is("Add")) return sum(builder, *producer, clip, exponent);
    if (is_mean(*producer)) return mean(builder, *producer, clip, exponent);
    return std::optional<Quantised>();
  }
  static MaybeQuantised some(Result<Quantised> made) {
    if (!made.ok()) return std::move(made).error();
    return std::optional<Quantised>(*made);
  }

  static Result<Quantised> requantised(Builder& builder, const Quantised& x, const ClipRange& clip, int64_t exponent) {
    const int64_t shift = std::clamp<int64_t>(exponent - x.exponent, -fused::kMostLeftShift, fused::kMostShift);
    Attributes attributes;
    if (shift < 0) attributes.set("left_shift", -shift);
    set_epilogue(attributes, std::max<int64_t>(0, shift), clip, x.exponent + shift);
    TENON_TRY(y, builder.op(Requantize::name(), {x.value}, std::move(attributes)));
    return Quantised{y, x.exponent + shift};
  }

  // A product takes the other term into its accumulator: the later of two products, whose term is there by then.
  MaybeQuantised sum(Builder& builder, Op& add, const ClipRange& clip, int64_t exponent) {
    if (!(add.operand(0)->type() == add.operand(1)->type())) return std::optional<Quantised>();
    for (const size_t side : later_first(add)) {
      const auto residual = quantised(add.operand(1 - side));
      if (!residual) continue;
      TENON_TRY(accumulator, accumulator_of(builder, add.operand(side)));
      if (accumulator && takes_residual(*accumulator, *residual)) {
        return some(finish(builder, *accumulator, residual, clip, exponent));
      }
    }
    const auto a = quantised(add.operand(0)), b = quantised(add.operand(1));
    if (!a || !b) return std::optional<Quantised>();
    const int64_t common = std::min(a->exponent, b->exponent), apart = std::max(a->exponent, b->exponent) - common;
    if (apart > fused::kMostLeftShift) return std::optional<Quantised>();
    const int64_t shift = std::clamp<int64_t>(exponent - common, 0, fused::kMostShift);
    Attributes attributes{{"a_shift", a->exponent - common}, {"b_shift", b->exponent - common}};
    set_epilogue(attributes, shift, clip, common + shift);
    TENON_TRY(y, builder.op(fused::QAdd::name(), {a->value, b->value}, std::move(attributes)));
    return std::optional<Quantised>(Quantised{y, common + shift});
  }
  static std::array<size_t, 2> later_first(const Op& add) {
    const Op *a = add.operand(0)->producer(), *b = add.operand(1)->producer();
    return a && (!b || b->is_before(*a)) ? std::array<size_t, 2>{0, 1} : std::array<size_t, 2>{1, 0};
  }

  MaybeQuantised mean(Builder& builder, const Op& op, const ClipRange& clip, int64_t exponent) {
    const auto x = quantised(op.operand(0));
    const Shape& shape = op.operand(0)->type().shape();
    if (!x || !shape.ranked()) return std::optional<Quantised>();
    for (size_t d = 2; d < shape.dims().size(); ++d) {
      if (!shape[d].is_static()) return std::optional<Quantised>();
    }
    TENON_TRY(window, mean_window(op, shape));
    if (!window) return std::optional<Quantised>();
    int64_t elements = 1;
    for (const int64_t extent : *window->find("kernel_shape")->get_if<Attribute::Integers>()) elements *= extent;
    const double ratio = std::ldexp(1.0, static_cast<int>(x->exponent - exponent)) / static_cast<double>(elements);
    const auto fraction = fraction_of(ratio, elements);
    if (!fraction) return std::optional<Quantised>();
    window->set("multiplier", fraction->multiplier);
    set_epilogue(*window, fraction->shift, clip, exponent);
    TENON_TRY(y, builder.op(fused::QAvgPool::name(), {x->value}, *std::move(window)));
    return std::optional<Quantised>(Quantised{y, exponent});
  }

  Region& body_;
  std::vector<IntegerValue>* values_;
  std::vector<Op*> dead_;
  Change change_ = Change::no;
};

}  // namespace

Result<Change> fuse_quantised(Graph& graph, std::vector<IntegerValue>* values) {
  return IntegerLayers(graph, values).run();
}

std::vector<FloatOperator> float_operators(const Graph& graph) {
  std::vector<FloatOperator> found;
  for (const Op& op : graph.body()) {
    const bool product = isa<Conv>(op) || isa<Gemm>(op) || isa<MatMul>(op);
    if (!product && !op.is("Add") && !is_mean(op) && !isa<MaxPool>(op)) continue;
    if (!op.result()->type().is_tensor() || !op.result()->type().element().is_float()) continue;
    std::string why = "its operands are not quantised";
    if (quantised(op.operand(0))) why = "its result is not rounded, or several read it before that";
    if (product && !constant_of(op.operand(1))) why = "its weights are no constant";
    found.push_back({op.describe(), why});
  }
  return found;
}

namespace {

const PassRegistration kRegistered({{
    .name = "fuse-quantised",
    .contract =
        "Float operators between quant.Rounds become fused.QConv, QDense, QAdd and pools on integers, with bias, "
        "residual\nand clip inside. Needs inferred types; changes numbers by rounding.",
    .run = [](Graph& graph) { return fuse_quantised(graph); },
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon::quant
