#include <op-cases/draw.hpp>

namespace tenon::testing {
namespace {

// ---- Products ------------------------------------------------------------------------------------------------------

struct Matrices {
  Dims a, b;
};
Matrices matrices(R& r) {
  const Dims batch = random_dims(r, 0, 2, 3);
  const int64_t m = pick(r, 1, 5), k = pick(r, 1, 5), n = pick(r, 1, 5);
  Matrices out{narrowed(r, batch), narrowed(r, batch)};
  out.a.insert(out.a.end(), {m, k});
  out.b.insert(out.b.end(), {k, n});
  if (pick(r, 0, 5) == 0) out.a = {k};
  if (pick(r, 0, 5) == 0) out.b = {k};
  return out;
}

DrawnOp matmul(R& r) {
  const Matrices m = matrices(r);
  return {{floats(m.a), floats(m.b)}};
}

DrawnOp gemm(R& r) {
  const int64_t m = pick(r, 1, 5), k = pick(r, 1, 5), n = pick(r, 1, 5), ta = pick(r, 0, 1), tb = pick(r, 0, 1);
  return {{floats(ta ? Dims{k, m} : Dims{m, k}), floats(tb ? Dims{n, k} : Dims{k, n}),
           pick(r, 0, 1) ? floats(narrowed(r, {m, n})) : absent()},
          {{"transA", ta}, {"transB", tb}, {"alpha", 0.5f}}};
}

DrawnOp einsum(R& r) {
  const int64_t i = pick(r, 1, 4), j = pick(r, 1, 4), k = pick(r, 1, 4);
  switch (pick(r, 0, 5)) {
    case 0: return {{floats({i, j}), floats({j, k})}, {{"equation", "ij,jk->ik"}}};
    case 1: return {{floats({i, j, k})}, {{"equation", "ijk->kj"}}};
    case 2: return {{floats({i, i, j})}, {{"equation", "iij->ij"}}};
    case 3: return {{floats({2, i, j}), floats({j, k})}, {{"equation", "...ij,jk"}}};
    case 4: return {{floats({i, j}), floats({1, k}), floats({k})}, {{"equation", "ij,ik,k->kji"}}};
    default: return {{floats({i, 2, j}), floats({i, k, j})}, {{"equation", "bqd,bkd->bqk"}}};
  }
}

// Scales in [1, 8] / 64.
DrawnOperand scales(Dims dims) {
  return {[=](R& random) {
    Tensor x = *Tensor::zeros(kF32, dims);
    for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(pick(random, 1, 8)) / 64);
    return x;
  }};
}

// One number for the whole, or one per line: as a vector or with the other dims.
Dims line_dims(R& r, const Dims& matrix, bool rows) {
  const int64_t way = matrix.size() < 2 ? 0 : pick(r, 0, 2);
  if (way == 0) return {};
  Dims dims = matrix;
  const size_t line = dims.size() - (rows ? 2 : 1);
  if (way == 1) return {dims[line]};
  dims[dims.size() - (rows ? 1 : 2)] = 1;
  return dims;
}

DrawnOp matmul_integer(R& r) {
  const Matrices m = matrices(r);
  return {{of(kU8, m.a, 0, 255), of(kI8, m.b, -128, 127), of(kU8, line_dims(r, m.a, true), 0, 255),
           of(kI8, line_dims(r, m.b, false), -128, 127)}};
}

DrawnOp qlinear_matmul(R& r) {
  const Matrices m = matrices(r);
  const Dims a = line_dims(r, m.a, true), b = line_dims(r, m.b, false);
  return {{of(kU8, m.a, 0, 255), scales(a), of(kU8, a, 120, 130), of(kU8, m.b, 0, 255), scales(b), of(kU8, b, 120, 130),
           scales({}), of(kU8, {}, 120, 130)}};
}

DrawnOp quantized(R& r, bool back) {
  const Dims x = random_dims(r, 1, 3, 7);
  const int64_t axis = random_axis(r, x.size()), way = pick(r, 0, 2), block = pick(r, 1, 3);
  Dims scale;
  if (way == 1) scale = {x[normal(axis, x.size())]};
  if (way == 2) {
    scale = x;
    int64_t& along = scale[normal(axis, x.size())];
    along = (along + block - 1) / block;
  }
  const bool has_zero = pick(r, 0, 1);
  DrawnOp op{{back ? of(kI8, x, -100, 100) : floats(x), scales(scale)},
             {{"axis", axis}, {"block_size", way == 2 ? block : 0}}};
  if (has_zero) op.operands.push_back(of(kI8, scale));
  if (!back && !has_zero) op.attributes.set("output_dtype", Type(kI8, Shape()));
  return op;
}

}  // namespace

void add_products(OpCases& cases) {
  for (int i = 0; i < 3; ++i) {
    cases.emplace("MatMul", matmul);
    cases.emplace("Einsum", einsum);
    cases.emplace("QuantizeLinear", [](R& r) { return quantized(r, false); });
    cases.emplace("DequantizeLinear", [](R& r) { return quantized(r, true); });
  }
  cases.emplace("Gemm", gemm);
  cases.emplace("MatMulInteger", matmul_integer);
  cases.emplace("QLinearMatMul", qlinear_matmul);
  cases.emplace("DynamicQuantizeLinear", [](R& r) -> DrawnOp { return {{floats(random_dims(r, 1, 3))}, {}, 3}; });
  cases.emplace("ai.onnx.ml.TreeEnsemble", [](R& r) -> DrawnOp {
    return {{floats({pick(r, 1, 5), 3})},
            {{"n_targets", 2},
             {"tree_roots", Integers{0}},
             {"nodes_featureids", Integers{0, 2}},
             {"nodes_modes", Tensor::of<uint8_t>({2}, {0, 0})},
             {"nodes_splits", Tensor::of<float>({2}, {0, 0.5f})},
             {"nodes_truenodeids", Integers{1, 0}},
             {"nodes_falsenodeids", Integers{2, 1}},
             {"nodes_trueleafs", Integers{0, 1}},
             {"nodes_falseleafs", Integers{1, 1}},
             {"leaf_targetids", Integers{0, 1, 1}},
             {"leaf_weights", Tensor::of<float>({3}, {1, 2, 3})}}};
  });
  cases.emplace("ai.onnx.ml.ArrayFeatureExtractor", [](R& r) -> DrawnOp {
    const int64_t features = pick(r, 2, 4), taken = pick(r, 1, 4);
    return {{floats({pick(r, 1, 3), features}), of(kI64, {taken}, 0, features - 1)}};
  });
  cases.emplace("NegativeLogLikelihoodLoss", [](R& r) -> DrawnOp {
    constexpr const char* kReductions[] = {"none", "none", "sum", "mean"};
    return {{floats({3, 4, 2}), of(kI64, {3, 2}, 0, 3), pick(r, 0, 1) ? positive({4}) : absent()},
            {{"reduction", kReductions[pick(r, 0, 3)]}}};
  });
  cases.emplace("SoftmaxCrossEntropyLoss", [](R& r) -> DrawnOp {
    return {{floats({3, 4, 2}), of(kI64, {3, 2}, 0, 3)}, {{"reduction", pick(r, 0, 1) ? "none" : "mean"}}, 2};
  });
}

// ---- Attention and recurrence --------------------------------------------------------------------------------------

namespace {

DrawnOp attention(R& r) {
  const int64_t batch = pick(r, 1, 2), kv = pick(r, 1, 2), q = kv * pick(r, 1, 2), rows = pick(r, 1, 4),
                keys = pick(r, 1, 4), size = pick(r, 1, 3), width = pick(r, 1, 3), past = pick(r, 1, 3);
  const bool flat = pick(r, 0, 1), with_past = pick(r, 0, 1), masked = pick(r, 0, 1);
  const auto heads = [&](int64_t count, int64_t length, int64_t last) {
    return floats(flat ? Dims{batch, length, count * last} : Dims{batch, count, length, last});
  };
  DrawnOp op{{heads(q, rows, size), heads(kv, keys, size), heads(kv, keys, width)}, {}};
  if (flat) op.attributes = {{"q_num_heads", q}, {"kv_num_heads", kv}};
  const int64_t total = keys + (with_past ? past : 0);
  op.operands.push_back(masked ? floats(pick(r, 0, 1) ? Dims{rows, total} : Dims{batch, 1, rows, total}) : absent());
  if (with_past) {
    op.operands.push_back(floats({batch, kv, past, size}));
    op.operands.push_back(floats({batch, kv, past, width}));
    op.results = 3;
  }
  if (pick(r, 0, 2) == 0) op.results = 4;
  op.attributes.set("is_causal", pick(r, 0, 1));
  return op;
}

DrawOp recurrent(int64_t gates) {
  return [=](R& r) -> DrawnOp {
    const int64_t steps = pick(r, 1, 4), batch = pick(r, 1, 4), in = 2, hidden = 2, way = pick(r, 0, 2),
                  directions = way == 2 ? 2 : 1, layout = pick(r, 0, 1);
    constexpr const char* kWays[] = {"forward", "reverse", "bidirectional"};
    DrawnOp op{
        {floats(layout ? Dims{batch, steps, in} : Dims{steps, batch, in}), floats({directions, gates * hidden, in}),
         floats({directions, gates * hidden, hidden}), floats({directions, 2 * gates * hidden})},
        {{"hidden_size", hidden}, {"direction", kWays[way]}, {"layout", layout}},
        gates == 4 ? 3u : 2u};
    op.operands.push_back(pick(r, 0, 1) ? of(kI32, {batch}, 1, steps) : absent());
    op.operands.push_back(floats(layout ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden}));
    if (way == 2) {
      Attribute::Texts names;
      for (int d = 0; d < 2; ++d) {
        const Attribute::Texts one = gates == 1   ? Attribute::Texts{"Tanh"}
                                     : gates == 3 ? Attribute::Texts{"Sigmoid", "Tanh"}
                                                  : Attribute::Texts{"Sigmoid", "Tanh", "Tanh"};
        names.insert(names.end(), one.begin(), one.end());
      }
      op.attributes.set("activations", names);
    }
    return op;
  };
}

}  // namespace

void add_attention(OpCases& cases) {
  for (int i = 0; i < 4; ++i) cases.emplace("Attention", attention);
  for (const auto& [name, gates] : {std::pair{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}})
    cases.emplace(name, recurrent(gates));
  cases.emplace("RotaryEmbedding", [](R& r) -> DrawnOp {
    const int64_t batch = pick(r, 1, 3), heads = pick(r, 1, 3), length = pick(r, 1, 4), flat = pick(r, 0, 1),
                  looked_up = pick(r, 0, 1);
    const Dims cache = looked_up ? Dims{5, 2} : Dims{batch, length, 2};
    DrawnOp op{
        {floats(flat ? Dims{batch, length, heads * 4} : Dims{batch, heads, length, 4}), floats(cache), floats(cache)},
        {{"interleaved", pick(r, 0, 1)}}};
    if (flat) op.attributes.set("num_heads", heads);
    if (looked_up) op.operands.push_back(of(kI64, {batch, length}, 0, 4));
    return op;
  });
  cases.emplace("LinearAttention", [](R& r) -> DrawnOp {
    const int64_t batch = pick(r, 1, 3), steps = pick(r, 1, 4);
    return {{floats({batch, steps, 4}), floats({batch, steps, 4}), floats({batch, steps, 6}), floats({batch, 2, 2, 3}),
             floats({batch, steps, 2}), floats({batch, steps, 2})},
            {{"q_num_heads", 2}, {"kv_num_heads", 2}},
            2};
  });
}

}  // namespace tenon::testing
