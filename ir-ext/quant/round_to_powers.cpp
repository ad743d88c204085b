#include <cmath>
#include <optional>

#include <tenon-ext/quant/float_forms_internal.hpp>
#include <tenon-ext/quant/operators.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon-ext/quant/scales.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ops/quantize.hpp>
#include <tenon/passes/change.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::quant {
namespace {

// The step of one constant scale of 8-bit integers.
template <class View>
std::optional<Step> step_of_view(const View& view, ElementType element) {
  const Tensor* scale = constant_of(view.scale());
  const Tensor* zero = constant_of(view.zero_point());
  if (!scale || scale->size() != 1 || view.block_size() != 0 || (view.zero_point() && !zero)) return std::nullopt;
  if ((element != kI8 && element != kU8) || !(scale->double_at(0) > 0) || !std::isfinite(scale->double_at(0))) {
    return std::nullopt;
  }
  return split_step(symmetric_step(scale->double_at(0), zero ? zero->int_at(0) : 0, element));
}

bool same_numbers(const Value* a, const Value* b) {
  const Tensor *left = constant_of(a), *right = constant_of(b);
  if (!a || !b) return (!a || (left && left->int_at(0) == 0)) && (!b || (right && right->int_at(0) == 0));
  return left && right && left->size() == 1 && right->size() == 1 && left->double_at(0) == right->double_at(0);
}

Result<Value*> rounded(Op& before, Value* x, const Step& step) {
  Builder builder(*before.parent(), &before);
  return make_round(builder, x, step);
}

// Whether this restores the quantised value, except for rounding.
bool is_way_back(const QuantizeLinear& quantize, const DequantizeLinear& back) {
  return is_f32(back.result()) && same_numbers(quantize.scale(), back.scale()) &&
         same_numbers(quantize.zero_point(), back.zero_point());
}

// The uses of the integers: conversion to reals with the same scale or with another one, or anything else.
struct Readers {
  std::vector<DequantizeLinear> back;
  bool others = false;
};
Readers readers_of(const QuantizeLinear& quantize) {
  Readers readers;
  for (const Use* use : quantize.result()->uses()) {
    const auto back = dyn_cast<DequantizeLinear>(use->user());
    if (!back)
      readers.others = true;
    else if (is_way_back(quantize, back))
      readers.back.push_back(back);
  }
  return readers;
}

void name_like(Value& value, const Value& other) {
  if (value.name().empty()) value.set_name(other.name());
}

Result<Change> round_before(Op& op) {
  const QuantizeLinear quantize(op);
  const auto step = step_of_view(quantize, op.result()->type().element());
  if (!step || !is_f32(quantize.x()) || producer_as<Round>(quantize.x())) return Change::no;
  const Readers readers = readers_of(quantize);
  if (readers.back.empty() && !readers.others) return Change::no;
  TENON_TRY(round, rounded(op, quantize.x(), *step));
  for (const DequantizeLinear& back : readers.back) TENON_OK(replace_value(*back.result(), *round));
  name_like(*round, *quantize.x());
  op.set_operand(0, round);
  return Change::yes;
}

// Weights become floats: other integers will be made from them.
Result<Change> fold_weights(Op& op) {
  const DequantizeLinear back(op);
  std::vector<Datum> operands;
  for (const Value* operand : op.operands()) {
    const Tensor* tensor = constant_of(operand);
    if (operand && !tensor) return Change::no;
    operands.push_back(tensor ? Datum(*tensor) : Datum());
  }
  TENON_TRY(floats, evaluate(op.name(), std::move(operands), op.attributes()));
  Builder builder(*op.parent(), &op);
  TENON_OK(replace_value(*back.result(), *builder.constant(floats[0].tensor())));
  return Change::yes;
}

// For integers from outside, or constants.
Result<Change> round_after(Op& op) {
  const DequantizeLinear back(op);
  if (constant_of(back.x())) return fold_weights(op);
  if (producer_as<QuantizeLinear>(back.x()) || !is_f32(op.result())) return Change::no;
  const auto step = step_of_view(back, back.x()->type().element());
  const bool done = op.result()->has_one_use() && isa<Round>(op.result()->first_use()->user());
  if (!step || done || !op.next()) return Change::no;
  TENON_TRY(round, rounded(*op.next(), op.result(), *step));
  name_like(*round, *op.result());
  for (const Use* use : op.result()->uses()) {
    if (use->user() != round->producer()) use->user()->set_operand(use->index(), round);
  }
  return Change::yes;
}

}  // namespace

Result<Change> round_to_powers(Graph& graph) {
  Change change = Change::no;
  for (Op* op : graph.body().ops()) {
    auto done = isa<QuantizeLinear>(op)     ? round_before(*op)
                : isa<DequantizeLinear>(op) ? round_after(*op)
                                            : Result<Change>(Change::no);
    if (!done.ok()) return std::move(done).error().with_frame(op->describe());
    if (*done == Change::yes) change = Change::yes;
  }
  return change;
}

namespace {

const PassRegistration kRoundToPowersRegistered({{
    .name = "round-to-powers",
    .contract =
        "QuantizeLinear and DequantizeLinear with one constant scale become quant.Round with the step that "
        "i8 needs for their numbers.\nNeeds inferred types; changes numbers; leaves dead producers for remove-dead.",
    .run = round_to_powers,
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon::quant
