#include <algorithm>

#include <tenon-ext/fused/elementwise.hpp>
#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/fused/pooling.hpp>
#include <tenon-ext/quant/accumulator_internal.hpp>
#include <tenon-ext/quant/averages_internal.hpp>
#include <tenon-ext/quant/ends_internal.hpp>
#include <tenon-ext/quant/float_forms_internal.hpp>
#include <tenon-ext/quant/operators.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon/ops/pooling.hpp>
#include <tenon/passes/change.hpp>

namespace tenon::quant {
namespace {

using MaybeQuantised = Result<std::optional<Quantised>>;

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
    TENON_TRY(widened, widen_products(body_));
    TENON_TRY(joined, join_factors(body_));
    return widened == Change::yes || joined == Change::yes ? Change::yes : change_;
  }

 private:
  Builder before(Op& op) const { return Builder(body_, &op); }

  // Replaces the result of `op` by `made`.
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
  // The label of the operator whose result is rounded.
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
    // A Round after it includes it, with a scale of its own.
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

  // Rounding commutes with selecting or moving elements: before these, it ends what an accumulator can do.
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
    if (round.factor() != 1) return {};
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

  // The value below Relus and Clips that have no other users.
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
    if (is_mean(*producer)) return quantised_mean(builder, *producer, clip, exponent);
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

  // A product adds the other term in its accumulator: the later of two products, because the term exists by then.
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

  Region& body_;
  std::vector<IntegerValue>* values_;
  std::vector<Op*> dead_;
  Change change_ = Change::no;
};

}  // namespace

Result<Change> fuse_quantised(Graph& graph, std::vector<IntegerValue>* values) {
  return IntegerLayers(graph, values).run();
}

namespace {

const PassRegistration kFuseQuantisedRegistered({{
    .name = "fuse-quantised",
    .contract =
        "Float operators between quant.Rounds become fused.QConv, QDense, QAdd and pools on integers, with bias, "
        "residual\nand clip inside. Needs inferred types; changes numbers by rounding.",
    .run = [](Graph& graph) { return fuse_quantised(graph); },
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon::quant
