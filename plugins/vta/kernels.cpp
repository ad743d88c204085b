#include "vta/kernels.hpp"

#include <algorithm>

#include <tenon/ir/builder.hpp>

#include "vta/pack.hpp"

namespace tenon::vta {
namespace {

Dims static_dims(const Value& value) { return value.type().shape().static_dims().value_or(Dims{}); }

std::string constant_name(const Op& op, std::string_view suffix) {
  const std::string& result = op.result()->name();
  return str(result.empty() ? op.label() : result, ".", suffix);
}

// Builds the body of a kernel.
class Body {
 public:
  explicit Body(Op& kernel) : kernel_(kernel) {
    for (size_t i = 0; i < kernel.operand_count(); ++i)
      region().add_input(kernel.operand(i)->name(), kernel.operand(i)->type());
  }
  Region& region() { return kernel_.region(0); }
  Value* input(size_t i) { return region().input(i); }
  Value* add(Name name, std::initializer_list<Value*> operands, Type type, Attributes attributes) {
    const std::vector<Value*> all(operands);
    return region().create(name, all, {std::move(type)}, std::move(attributes)).result();
  }
  Value* zero(const Dims& dims) { return add(ZeroOp::name(), {}, Type(kI32, Shape(dims)), {{names().shape, dims}}); }
  Value* alu(AluOp op, Value* acc, int64_t immediate) {
    return add(Name(AluOpView::kName), {acc}, acc->type(),
               {{names().op, kAluNames[static_cast<size_t>(op)]}, {names().immediate, immediate}});
  }

 private:
  Op& kernel_;
};

Value* write_term(Body& body, const Term& term, const TermWeights& weights, Value* acc, Value* x, Value* w) {
  Attributes attributes;
  set_window(attributes, term.rows, term.cols, extents_of(static_dims(*x)), extents_of(static_dims(*acc)));
  if (!w) attributes.set(names().scale, weights.scale);
  if (weights.group != 1) attributes.set(names().group, weights.group);
  const std::vector<Value*> operands = w ? std::vector{acc, x, w} : std::vector{acc, x};
  acc = body.region().create(GemmOp::name(), operands, {acc->type()}, std::move(attributes)).result();
  return term.left_shift > 0 ? body.alu(AluOp::shr, acc, -term.left_shift) : acc;
}

Value* write_layer(Body& body, const DeviceOp& made, const Layer& layer, const Dims& dims) {
  Value* acc = body.zero(dims);
  size_t next = made.operands.size();
  for (size_t t = 0; t < layer.terms.size(); ++t) {
    Value* w = made.weights[t].w.valid() ? body.input(next++) : nullptr;
    acc = write_term(body, layer.terms[t], made.weights[t], acc, body.input(layer.terms[t].operand), w);
  }
  if (layer.multiplier != 1) acc = body.alu(AluOp::mul, acc, layer.multiplier);
  if (made.bias.valid())
    acc = body.add(Name(AluOpView::kName), {acc, body.input(next)}, acc->type(), {{names().op, "add"}});
  return made.rounding > 0 ? body.alu(AluOp::add, acc, made.rounding) : acc;
}

Attributes limits_of(const Layer& layer) {
  Attributes attributes{{names().min, layer.clip_min}, {names().max, layer.clip_max}};
  if (layer.shift > 0) attributes.set(names().shift, layer.shift);
  return attributes;
}

Value* write_pool(Body& body, const PoolLayer& pool, const Dims& dims) {
  Value* x = body.input(0);
  Value* acc = body.alu(AluOp::min, body.zero(dims), -128);
  Attributes attributes;
  set_window(attributes, pool.rows, pool.cols, extents_of(static_dims(*x)), extents_of(dims));
  return body.add(MaxOp::name(), {acc, x}, acc->type(), std::move(attributes));
}

// The constant operands, which follow the activations.
std::vector<Value*> constant_operands(const DeviceOp& made, Op& at) {
  Builder builder(*at.parent(), &at);
  std::vector<Value*> operands;
  for (const TermWeights& weights : made.weights)
    if (weights.w.valid()) operands.push_back(builder.constant(weights.w, constant_name(at, "w")));
  if (made.bias.valid()) operands.push_back(builder.constant(made.bias, constant_name(at, "bias")));
  return operands;
}

}  // namespace

Op& write_kernel(const DeviceOp& made, Op& at) {
  std::vector<Value*> operands = made.operands;
  for (Value* constant : constant_operands(made, at)) operands.push_back(constant);
  Op& kernel = at.parent()->create(Kernel::name(), operands, {made.result->type()}, {{names().of, made.op}}, &at);
  kernel.set_label(made.label);
  kernel.result()->set_name(made.result->name());
  kernel.add_region();
  Body body(kernel);
  const Dims dims = static_dims(*made.result);
  const auto* layer = std::get_if<Layer>(&made.work);
  Value* acc = layer ? write_layer(body, made, *layer, dims) : write_pool(body, std::get<PoolLayer>(made.work), dims);
  Value* y = body.add(NarrowOp::name(), {acc}, Type(kI8, Shape(dims)), layer ? limits_of(*layer) : Attributes{});
  body.region().add_output(y, "y");
  return kernel;
}

// ---- Reading ----

namespace {

class Reader {
 public:
  Reader(const Kernel& kernel, const Hardware& hardware) : kernel_(kernel), hardware_(hardware) {}

  Result<AnyLayer> read() {
    layer_.name = kernel_->label();
    TENON_TRY(output, image_of(static_dims(*kernel_.result()), hardware_));
    layer_.output = output;
    for (Op& op : kernel_.body()) {
      if (op.is(ZeroOp::name())) continue;
      if (auto max = dyn_cast<MaxOp>(op)) return read_pool(max);
      if (auto gemm = dyn_cast<GemmOp>(op)) {
        TENON_OK(read_term(gemm));
      } else if (op.is(NarrowOp::name())) {
        layer_.shift = integer_of(op.attributes(), names().shift, 0);
        layer_.clip_min = integer_of(op.attributes(), names().min, -128);
        layer_.clip_max = integer_of(op.attributes(), names().max, 127);
      } else if (op.name() == Name(AluOpView::kName)) {
        TENON_OK(read_alu(AluOpView(op)));
      } else {
        return wrong(op);
      }
    }
    if (layer_.terms.empty()) return error(Code::invalid_argument, kernel_->describe(), " has no sum in its body");
    return AnyLayer(std::move(layer_));
  }

 private:
  static Error wrong(const Op& op) {
    return error(Code::invalid_argument, op.describe(), " is not what packed kernels on whole tensors have");
  }
  Result<size_t> input_of(const Op& op, const Value* value) const {
    if (value && !value->producer() && value->region() == &kernel_.body()) return value->index();
    return wrong(op);
  }

  Result<void> read_term(const GemmOp& gemm) {
    const auto form = gemm.attr<std::string>(names().form);
    if (form.empty() || !gemm.w()) return wrong(gemm.op());
    Term term;
    TENON_TRY(operand, input_of(gemm.op(), gemm.x()));
    TENON_TRY(weights, input_of(gemm.op(), gemm.w()));
    TENON_TRY(image, image_of(static_dims(*gemm.x()), hardware_));
    const WindowAttributes window = window_of(gemm->attributes());
    term.operand = operand, term.weights = weights, term.input = image;
    term.rows = window.rows, term.cols = window.cols;
    term.rows.skips = term.rows.kernel == 1 && term.rows.stride > 1 && term.rows.pad == 0;
    term.diagonal = form != "dense", term.one_weight = form == "uniform";
    term.groups = integer_of(gemm->attributes(), names().groups, 1);
    layer_.terms.push_back(term);
    return {};
  }

  // Shifts are to the left, and apply to the partial sum.
  Result<void> read_alu(const AluOpView& alu) {
    const auto op = alu.attr<std::string>(names().op);
    const int64_t immediate = integer_of(alu->attributes(), names().immediate, 0);
    if (alu.vector()) {
      TENON_TRY(operand, input_of(alu.op(), alu.vector()));
      layer_.bias = true, layer_.bias_operand = operand;
    } else if (op == "shr" && immediate < 0 && !layer_.terms.empty()) {
      layer_.terms.back().left_shift = -immediate;
    } else if (op == "mul") {
      layer_.multiplier = immediate;
    } else if (op == "add") {
      layer_.rounding = immediate;
    } else if (op != "min") {  // part of a pool, whose layer implies it
      return wrong(alu.op());
    }
    return {};
  }

  Result<AnyLayer> read_pool(const MaxOp& max) {
    TENON_OK(input_of(max.op(), max.x()));
    TENON_TRY(input, image_of(static_dims(*max.x()), hardware_));
    const WindowAttributes window = window_of(max->attributes());
    return AnyLayer(PoolLayer{layer_.name, input, layer_.output, window.rows, window.cols});
  }

  const Kernel& kernel_;
  const Hardware& hardware_;
  Layer layer_{.name = {}, .terms = {}, .output = {}};
};

}  // namespace

std::vector<TensorType> tensors_of(const Kernel& kernel) {
  std::vector<TensorType> tensors;
  for (size_t i = 0; i < kernel.body().input_count(); ++i) tensors.push_back(kernel.body().input(i)->type().tensor());
  tensors.push_back(kernel.result()->type().tensor());
  return tensors;
}

Result<AnyLayer> layer_of(const Kernel& kernel, const Hardware& hardware) { return Reader(kernel, hardware).read(); }

Kernel new_kernel(const Kernel& kernel, std::span<Value* const> operands) {
  Op& old = kernel.op();
  Op& made = old.parent()->create(Kernel::name(), operands, {old.result()->type()}, old.attributes(), &old);
  made.set_label(old.label());
  made.result()->set_name(old.result()->name());
  made.result()->set_layout(old.result()->shared_layout());
  Region& body = made.add_region();
  for (const Value* operand : operands) body.add_input(operand->name(), operand->type());
  return Kernel(made);
}

void finish_kernel(Kernel& made, Value* result, Kernel& replaced) {
  made.body().add_output(result, replaced.body().output_name(0));
  replaced.result()->replace_all_uses_with(made.result());
  replaced->erase();
}

}  // namespace tenon::vta
