#include <algorithm>
#include <cmath>
#include <optional>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/matmul.hpp>
#include <tenon/ops/normalization.hpp>
#include <tenon/passes/rewrite.hpp>

namespace tenon {
namespace {

using Numbers = std::vector<double>;

// y -> y * scale + shift, with a pair of numbers per channel.
struct Affine {
  Numbers scale, shift;

  bool is_finite() const {
    const auto finite = [](double value) { return std::isfinite(value); };
    return std::all_of(scale.begin(), scale.end(), finite) && std::all_of(shift.begin(), shift.end(), finite);
  }
};

// ---- Which channel an element belongs to ----

// An operator that is linear in its constant weights and produces `channels` channels along `axis` of a result with
// `rank` axes.
struct Linear {
  Op* op;
  const Tensor* weights;
  const Tensor* bias;  // may be null
  size_t axis, rank;
  int64_t channels;
  // The channel of a weight: index / divisor % extent, plus the group's first channel for grouped ConvTranspose.
  int64_t divisor = 1, extent = 1;
  int64_t group_weights = 0;  // number of weights per group; 0: one group

  // Calls f(first, channel) for each run of `divisor` weights, which all belong to the channel.
  template <class F>
  void each_run(const F& f) const {
    const int64_t round = divisor * extent;
    for (int64_t first = 0; first < weights->size(); first += round) {
      const int64_t group = group_weights == 0 ? 0 : first / group_weights;
      for (int64_t c = 0; c < extent; ++c) f(first + c * divisor, static_cast<size_t>(group * extent + c));
    }
  }
};

int64_t product(const Dims& dims, size_t begin) {
  int64_t count = 1;
  for (size_t i = begin; i < dims.size(); ++i) count *= dims[i];
  return count;
}

bool is_foldable(ElementType element) {
  return element == kF64 || element == kF32 || element == kF16 || element == kBF16;
}

std::optional<Linear> linear_of(Op& op) {
  const Tensor* weights = constant_of(op.operand(1));
  if (!weights || !is_foldable(weights->element()) || weights->size() == 0) return std::nullopt;
  const Tensor* bias = constant_of(op.operand(2));
  if (op.operand(2) && !bias) return std::nullopt;
  const Dims& dims = weights->dims();
  const auto rank = static_cast<size_t>(weights->rank());
  if (isa<Conv>(op)) {
    return Linear{&op, weights, bias, 1, rank, dims[0], product(dims, 1), dims[0]};
  }
  if (isa<ConvTranspose>(op)) {
    const int64_t group = cast<ConvTranspose>(op).group();
    return Linear{&op, weights, bias, 1, rank, dims[1] * group, product(dims, 2), dims[1], weights->size() / group};
  }
  if (isa<Gemm>(op)) {
    // One number per column.
    if (bias && bias->rank() == 2 && bias->dim(0) != 1) return std::nullopt;
    const bool turned = cast<Gemm>(op).trans_b();
    const int64_t columns = dims[turned ? 0 : 1];
    return Linear{&op, weights, bias, 1, 2, columns, turned ? dims[1] : 1, columns};
  }
  const Type& type = op.result()->type();
  if (rank != 2 || !type.is_tensor() || !type.shape().ranked() || type.shape().rank() < 1) return std::nullopt;
  const auto result_rank = static_cast<size_t>(type.shape().rank());
  return Linear{&op, weights, nullptr, result_rank - 1, result_rank, dims[1], 1, dims[1]};
}

// A constant with one number per channel, or one for all, that broadcasts nothing else.
std::optional<Numbers> per_channel(const Tensor& tensor, const Linear& linear) {
  if (static_cast<size_t>(tensor.rank()) > linear.rank) return std::nullopt;
  const size_t missing = linear.rank - static_cast<size_t>(tensor.rank());
  for (size_t i = 0; i < tensor.dims().size(); ++i) {
    if (tensor.dim(i) != 1 && (i + missing != linear.axis || tensor.dim(i) != linear.channels)) return std::nullopt;
  }
  Numbers numbers;
  for (int64_t c = 0; c < linear.channels; ++c) numbers.push_back(tensor.double_at(tensor.size() == 1 ? 0 : c));
  return numbers;
}

// ---- The new weights ----

// Nothing if a finite weight would become infinite.
std::optional<Tensor> scaled(const Linear& linear, const Numbers& scale) {
  auto made = Tensor::allocate(linear.weights->element(), linear.weights->dims());
  if (!made.ok()) return std::nullopt;
  bool overflows = false;
  if (linear.weights->element() == kF32) {  // nearly always, and there are many
    const float* const from = linear.weights->as<float>().data();
    float* const to = made->mutable_as<float>().data();
    linear.each_run([&](int64_t first, size_t channel) {
      for (int64_t i = first; i < first + linear.divisor; ++i) {
        to[i] = static_cast<float>(static_cast<double>(from[i]) * scale[channel]);
        overflows |= std::isfinite(from[i]) && !std::isfinite(to[i]);
      }
    });
  } else {
    linear.each_run([&](int64_t first, size_t channel) {
      for (int64_t i = first; i < first + linear.divisor; ++i) {
        const double from = linear.weights->double_at(i);
        made->set_double(i, from * scale[channel]);
        overflows |= std::isfinite(from) && !std::isfinite(made->double_at(i));
      }
    });
  }
  if (overflows) return std::nullopt;
  return *std::move(made);
}

Tensor shifted(const Linear& linear, const Affine& affine, double beta) {
  Tensor bias = *Tensor::allocate(linear.weights->element(), {linear.channels});
  for (int64_t c = 0; c < linear.channels; ++c) {
    const auto at = static_cast<size_t>(c);
    const double old = linear.bias ? beta * linear.bias->double_at(linear.bias->size() == 1 ? 0 : c) : 0;
    bias.set_double(c, old * affine.scale[at] + affine.shift[at]);
  }
  return bias;
}

bool all_are(const Numbers& numbers, double wanted) {
  return std::all_of(numbers.begin(), numbers.end(), [&](double number) { return number == wanted; });
}

// The operator with `affine` folded into its weights and bias.
Result<Value*> absorbed(Builder& builder, const Linear& linear, const Affine& affine) {
  if (!affine.is_finite()) return nullptr;
  Value* weights = linear.op->operand(1);
  if (!all_are(affine.scale, 1)) {
    auto made = scaled(linear, affine.scale);
    if (!made) return nullptr;
    weights = builder.constant(*std::move(made), weights->name());
  }
  Value* x = linear.op->operand(0);
  const bool shifts = linear.bias || !all_are(affine.shift, 0);
  Attributes attributes = linear.op->attributes();
  if (isa<MatMul>(*linear.op)) {
    // Nothing is gained if only an existing addition would be replaced.
    if (all_are(affine.scale, 1)) return nullptr;
    TENON_TRY(product, builder.op(MatMul::name(), {x, weights}));
    if (!shifts) return product;
    return builder.op("Add", {product, builder.constant(shifted(linear, affine, 1))});
  }
  const bool is_gemm = isa<Gemm>(*linear.op);
  const double beta = is_gemm ? static_cast<double>(cast<Gemm>(*linear.op).beta()) : 1.0;
  if (is_gemm) attributes.erase("beta");
  if (!shifts) return builder.op(linear.op->name(), {x, weights}, attributes);
  return builder.op(linear.op->name(), {x, weights, builder.constant(shifted(linear, affine, beta))}, attributes);
}

// ---- What is absorbed ----

// y = (x - mean) / sqrt(var + epsilon) * scale + b
std::optional<Affine> affine_of_batch_norm(const Match& match, const Linear& linear) {
  const auto norm = cast<BatchNormalization>(match.root());
  if (norm.training_mode() || linear.axis != 1) return std::nullopt;
  for (const char* name : {"scale", "b", "mean", "var"}) {
    if (match.constant(name).size() != linear.channels) return std::nullopt;
  }
  Affine affine;
  for (int64_t c = 0; c < linear.channels; ++c) {
    const double deviation = std::sqrt(match.constant("var").double_at(c) + static_cast<double>(norm.epsilon()));
    affine.scale.push_back(match.constant("scale").double_at(c) / deviation);
    affine.shift.push_back(match.constant("b").double_at(c) -
                           match.constant("mean").double_at(c) * affine.scale.back());
  }
  return affine;
}

// y op constant
std::optional<Affine> affine_of_pair(const Match& match, const Linear& linear) {
  auto numbers = per_channel(match.constant("c"), linear);
  if (!numbers) return std::nullopt;
  Affine affine{Numbers(numbers->size(), 1), Numbers(numbers->size(), 0)};
  const Op& root = match.root();
  if (root.is("Mul")) {
    affine.scale = *numbers;
  } else if (root.is("Div")) {
    for (size_t c = 0; c < numbers->size(); ++c) affine.scale[c] = 1 / numbers->at(c);
  } else {
    for (size_t c = 0; c < numbers->size(); ++c) affine.shift[c] = root.is("Sub") ? -numbers->at(c) : numbers->at(c);
  }
  return affine;
}

template <std::optional<Affine> (*AffineOf)(const Match&, const Linear&)>
Result<Value*> absorb(Builder& builder, const Match& match) {
  const auto linear = linear_of(match.op("linear"));
  if (!linear || linear->weights->element() != match.root().result()->type().element()) return nullptr;
  const auto affine = AffineOf(match, *linear);
  return affine ? absorbed(builder, *linear, *affine) : Result<Value*>(nullptr);
}

Result<Change> fold_batch_norm(Graph& graph) {
  using namespace pattern;
  const auto linear = [] {
    return op({Conv::name(), ConvTranspose::name(), Gemm::name(), MatMul::name()}, {any(), constant()})
        .and_more()
        .in_order()
        .as("linear");
  };
  static const std::vector<Rewrite> rewrites = {
      Rewrite("batch-norm")
          .match(op(BatchNormalization::name(),
                    {linear(), constant("scale"), constant("b"), constant("mean"), constant("var")}))
          .with(absorb<affine_of_batch_norm>),
      Rewrite("commutative").match(op({"Mul", "Add"}, {linear(), constant("c")})).with(absorb<affine_of_pair>),
      Rewrite("ordered").match(op({"Div", "Sub"}, {linear(), constant("c")})).with(absorb<affine_of_pair>),
  };
  return apply_rewrites(graph, rewrites);
}

const PassRegistration kFoldBatchNormRegistered({{
    .name = "fold-batch-norm",
    .contract = "BatchNormalization (inference), and sums and products by channel with constants, go into the weights "
                "of the Conv,\n"
                "ConvTranspose, Gemm or MatMul before them. Needs inferred types; results differ by rounding only.",
    .run = fold_batch_norm,
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon
