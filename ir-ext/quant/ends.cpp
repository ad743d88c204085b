#include <tenon-ext/quant/ends_internal.hpp>

#include <algorithm>
#include <cstdlib>
#include <unordered_set>

#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/quant/accumulator_internal.hpp>
#include <tenon-ext/quant/float_forms_internal.hpp>
#include <tenon-ext/quant/operators.hpp>
#include <tenon/ops/arithmetic.hpp>
#include <tenon/ops/elementwise_views.hpp>
#include <tenon/passes/change.hpp>

namespace tenon::quant {
namespace {

// ---- Sixteen bits ----

// Weights of at least -127, which can be negated.
Result<Tensor> negatable(const Tensor& weights) {
  TENON_TRY(out, weights.clone());
  for (int8_t& w : out.mutable_as<int8_t>()) w = std::max<int8_t>(w, -127);
  return out;
}
template <class T>
Result<Tensor> negated(const Tensor& x) {
  TENON_TRY(out, x.clone());
  for (T& value : out.mutable_as<T>()) value = static_cast<T>(-value);
  return out;
}

// The largest magnitude of an accumulator over all inputs.
int64_t bound_of(const Tensor& weights, const Tensor* bias) {
  const int64_t outputs = weights.dim(0), each = outputs == 0 ? 0 : weights.size() / outputs;
  int64_t most = 0;
  for (int64_t o = 0; o < outputs; ++o) {
    int64_t sum = bias ? std::abs(bias->int_at(o)) : 0;
    for (int64_t k = 0; k < each; ++k) sum += 128 * std::abs(weights.int_at(o * each + k));
    most = std::max(most, sum);
  }
  return most;
}

// The least shift after which the bound fits 8 bits; nullopt if sums may exceed 30 bits.
std::optional<int64_t> shift_for(int64_t bound) {
  if (bound >= int64_t{1} << 30) return std::nullopt;
  int64_t shift = 0;
  while (((bound + (int64_t{1} << shift >> 1)) >> shift) > 127) ++shift;
  return shift;
}

Result<Value*> dequantised(Builder& builder, const Quantised& x) {
  return builder.op(Dequantize::name(), {x.value}, {{"exponent", x.exponent}});
}

class Widener {
 public:
  Widener(Builder& builder, Accumulator accumulator, std::string label)
      : builder_(builder), accumulator_(std::move(accumulator)), label_(std::move(label)) {}

  // Null if sums might wrap around.
  Result<Value*> widen() {
    TENON_TRY(weights, negatable(*constant_of(accumulator_.w)));
    const Tensor* bias = constant_of(accumulator_.bias);
    const auto shift = shift_for(bound_of(weights, bias));
    if (!shift) return nullptr;
    TENON_TRY(opposite, negated<int8_t>(weights));
    accumulator_.w = builder_.constant(std::move(weights), accumulator_.w->name());
    TENON_TRY(high, finish(builder_, accumulator_, std::nullopt, {}, accumulator_.exponent + *shift));
    name(high, ".high");
    TENON_TRY(coarse, dequantised(builder_, high));
    if (*shift == 0) return coarse;
    Accumulator rest = accumulator_;
    rest.w = builder_.constant(std::move(opposite));
    if (bias) {
      TENON_TRY(minus, negated<int32_t>(*bias));
      rest.bias = builder_.constant(std::move(minus));
    }
    TENON_TRY(low, finish(builder_, rest, high, {}, accumulator_.exponent + std::max<int64_t>(0, *shift - 8)));
    name(low, ".low");
    TENON_TRY(fine, dequantised(builder_, low));
    return builder_.op("Sub", {coarse, fine});
  }

 private:
  void name(const Quantised& made, const char* part) {
    if (!label_.empty()) made.value->producer()->set_label(label_ + part);
  }

  Builder& builder_;
  Accumulator accumulator_;
  const std::string label_;
};

// ---- Factors ----

// The constant of a Mul of `value` and a constant scalar that is valid as a factor; nullopt otherwise.
std::optional<float> scale_of(const Op& op, const Value* value) {
  if (!op.is("Mul")) return std::nullopt;
  const Tensor* tensor = float_constant(op.operand(op.operand(0) == value ? 1 : 0));
  if (!tensor || tensor->size() != 1) return std::nullopt;
  const float number = tensor->as<float>()[0];
  return number >= 0x1p-20f && number <= 0x1p20f ? std::optional(number) : std::nullopt;
}

void multiply_factor(Op& op, float by) { op.set_attr("factor", op.attr<float>("factor", 1) * by); }

bool join_before(Op& quantize) {
  Op* const mul = quantize.operand(0)->producer();
  if (!mul || !mul->is("Mul") || !quantize.operand(0)->has_one_use()) return false;
  Value* const x = mul->operand(float_constant(mul->operand(0)) ? 1 : 0);
  const auto number = scale_of(*mul, x);
  if (!number || x->type() != mul->result()->type()) return false;
  multiply_factor(quantize, 1 / *number);
  quantize.set_operand(0, x);
  erase_dead(*mul);
  return true;
}

Result<bool> join_behind(Op& dequantize) {
  Value* const x = dequantize.result();
  if (!x->has_one_use()) return false;
  Op& mul = *x->first_use()->user();
  const auto number = scale_of(mul, x);
  if (!number || x->type() != mul.result()->type()) return false;
  multiply_factor(dequantize, *number);
  TENON_OK(replace_value(*mul.result(), *x));
  erase_dead(mul);
  return true;
}

}  // namespace

Result<Change> widen_products(Region& body) {
  Change change = Change::no;
  // From the last one, so that a bias comes before its product.
  std::vector<Op*> ops = body.ops();
  for (auto it = ops.rbegin(); it != ops.rend(); ++it) {
    Op& op = **it;
    if (op.result_count() != 1 || !op.result()->used()) continue;
    Builder builder(body, &op);
    TENON_TRY(accumulator, accumulator_under(builder, op), op.describe());
    if (!accumulator) continue;
    TENON_TRY(y, Widener(builder, *std::move(accumulator), op.label()).widen(), op.describe());
    if (!y) continue;
    TENON_OK(replace_value(*op.result(), *y));
    change = Change::yes;
  }
  std::unordered_set<const Op*> gone;  // with a product, those that nobody else reads
  for (auto it = ops.rbegin(); change == Change::yes && it != ops.rend(); ++it) {
    if (gone.contains(*it) || (*it)->has_uses() || !is_product(**it)) continue;
    erase_dead(**it, [&](const Op& op) { gone.insert(&op); });
  }
  return change;
}

Result<Change> join_factors(Region& body) {
  Change change = Change::no;
  for (Op* op : body.ops()) {
    if (isa<Quantize>(*op) && join_before(*op)) change = Change::yes;
  }
  // The product after each, which is erased, is further down in that list.
  std::vector<Op*> dequantizes = body.ops();
  std::erase_if(dequantizes, [](const Op* op) { return !isa<Dequantize>(*op); });
  for (Op* op : dequantizes) {
    TENON_TRY(joined, join_behind(*op));
    if (joined) change = Change::yes;
  }
  return change;
}

}  // namespace tenon::quant
