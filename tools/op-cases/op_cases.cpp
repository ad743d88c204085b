#include <op-cases/draw.hpp>

namespace tenon::testing {
namespace {

// ---- Element by element --------------------------------------------------------------------------------------------

DrawOp unary(ElementType element = kF32, Attributes attributes = {}) {
  return [=](R& r) -> DrawnOp { return {{of(element, random_dims(r, 0, 4), 0, 1)}, attributes}; };
}
DrawOp binary(ElementType element = kF32, Attributes attributes = {}) {
  return [=](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 0, 4);
    const int64_t low = element.is_bool() || element == kU32 ? 0 : 1, high = element.is_bool() ? 1 : 7;
    DrawnOp op{{of(element, dims, low, high), of(element, narrowed(r, dims), low, high)}, attributes};
    if (pick(r, 0, 1)) std::swap(op.operands[0], op.operands[1]);
    return op;
  };
}
DrawnOp three(R& r) {
  const Dims dims = random_dims(r, 1, 4);
  return {{floats(narrowed(r, dims)), floats(dims), floats(narrowed(r, dims))}};
}

}  // namespace

void add_pointwise(OpCases& cases) {
  for (const char* name : {"Abs",
                           "Acos",
                           "Acosh",
                           "Asin",
                           "Asinh",
                           "Atan",
                           "Atanh",
                           "Ceil",
                           "Celu",
                           "Cos",
                           "Cosh",
                           "Elu",
                           "Erf",
                           "Exp",
                           "Floor",
                           "Gelu",
                           "HardSigmoid",
                           "HardSwish",
                           "Identity",
                           "IsInf",
                           "IsNaN",
                           "LeakyRelu",
                           "Log",
                           "Mish",
                           "Neg",
                           "Reciprocal",
                           "Relu",
                           "Round",
                           "Selu",
                           "Shrink",
                           "Sigmoid",
                           "Sign",
                           "Sin",
                           "Sinh",
                           "Softplus",
                           "Softsign",
                           "Sqrt",
                           "Swish",
                           "Tan",
                           "Tanh",
                           "ThresholdedRelu",
                           "ai.onnx.ml.Binarizer",
                           "layout.Reorder",
                           "layout.Scrub"}) {
    cases.emplace(name, unary());
  }
  for (const char* name : {"Add", "Sub", "Mul", "Div", "Pow", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    cases.emplace(name, binary());
  }
  for (const char* name : {"Add", "Mod", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal"})
    cases.emplace(name, binary(kI32));
  for (const char* name : {"And", "Or", "Xor"}) cases.emplace(name, binary(kBool));
  for (const char* name : {"Max", "Min", "Sum", "Mean"}) cases.emplace(name, three);
  cases.emplace("Not", unary(kBool));
  cases.emplace("BitwiseNot", unary(kI32));
  cases.emplace("BitShift", binary(kU32, {{"direction", "LEFT"}}));
  cases.emplace("Cast", unary(kF32, {{"to", Type(kF16, Shape())}}));
  cases.emplace("BitCast", unary(kF32, {{"to", Type(kI32, Shape())}}));
  cases.emplace("CastLike", [](R& r) -> DrawnOp { return {{floats(random_dims(r, 0, 3)), of(kI8, {2})}}; });
  cases.emplace("Where", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 1, 4);
    return {{bools(narrowed(r, dims)), floats(narrowed(r, dims)), floats(dims)}};
  });
  cases.emplace("PRelu", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 1, 4);
    return {{floats(dims), floats(narrowed(r, dims))}};
  });
  cases.emplace("Clip", [](R& r) -> DrawnOp {
    return {{floats(random_dims(r, 0, 3)), floats({}), pick(r, 0, 1) ? floats({}) : absent()}};
  });
  cases.emplace("SwiGLU", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 0, 3);
    return {{floats(dims), floats(dims)}};
  });
  cases.emplace("Dropout", [](R& r) -> DrawnOp {
    return {{floats(random_dims(r, 1, 3)), absent(), fixed(Tensor::of<bool>({}, {false}))}, {}, size_t(pick(r, 1, 2))};
  });
  cases.emplace("StringConcat", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 1, 3);
    return {{texts(dims), texts(narrowed(r, dims))}};
  });
  cases.emplace("RegexFullMatch", [](R& r) -> DrawnOp {
    return {{texts(random_dims(r, 1, 3))}, {{"pattern", "[ab]*"}}};
  });
  cases.emplace("ai.onnx.ml.LabelEncoder", [](R& r) -> DrawnOp {
    return {{of(kI64, random_dims(r, 1, 3), 0, 4)},
            {{"keys_int64s", Integers{0, 1, 2}}, {"values_int64s", Integers{10, 20, 30}}}};
  });
  for (const char* name : {"Adagrad", "Momentum", "Adam"}) {
    const size_t states = std::string(name) == "Adam" ? 2 : 1;
    Attributes attributes;
    if (std::string(name) == "Momentum") attributes = {{"alpha", 0.5f}, {"beta", 0.5f}, {"mode", "nesterov"}};
    cases.emplace(str("ai.onnx.preview.training.", name), [=](R& r) -> DrawnOp {
      const Dims dims[2] = {random_dims(r, 1, 2), random_dims(r, 1, 2)};
      DrawnOp op{{positive({}), number(3)}, attributes, 2 * (states + 1)};
      for (size_t group = 0; group < states + 2; ++group) {
        for (const Dims& d : dims) op.operands.push_back(positive(d));
      }
      return op;
    });
  }
}

namespace {

// ---- Along axes ----------------------------------------------------------------------------------------------------

// The axis has at least two positions, so that they can be distinguished.
DrawnOp by_axis(R& r) {
  Dims dims = random_dims(r, 1, 4);
  const int64_t axis = random_axis(r, dims.size());
  dims[normal(axis, dims.size())] += 1;
  return {{floats(dims)}, {{"axis", axis}}};
}

DrawnOp reduced(R& r) {
  const Dims dims = random_dims(r, 1, 4, 4);
  std::vector<int64_t> axes;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (pick(r, 0, 1))
      axes.push_back(static_cast<int64_t>(d) - (pick(r, 0, 1) ? static_cast<int64_t>(dims.size()) : 0));
  }
  return {{positive(dims), ints(axes)}, {{"keepdims", pick(r, 0, 1)}, {"noop_with_empty_axes", pick(r, 0, 1)}}};
}

}  // namespace

void add_along_axes(OpCases& cases) {
  for (const char* name : {"Softmax", "LogSoftmax", "Hardmax", "LpNormalization"}) cases.emplace(name, by_axis);
  for (const char* name : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
                           "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"}) {
    cases.emplace(name, reduced);
  }
  for (const char* name : {"ArgMax", "ArgMin"}) {
    cases.emplace(name, [](R& r) -> DrawnOp {
      DrawnOp op = by_axis(r);
      op.attributes.set("keepdims", pick(r, 0, 1));
      return op;
    });
  }
  for (const char* name : {"CumSum", "CumProd"}) {
    cases.emplace(name, [](R& r) -> DrawnOp {
      const Dims dims = random_dims(r, 1, 3);
      return {{positive(dims), number(random_axis(r, dims.size()))},
              {{"exclusive", pick(r, 0, 1)}, {"reverse", pick(r, 0, 1)}}};
    });
  }
  cases.emplace("TopK", [](R& r) -> DrawnOp {
    Dims dims = random_dims(r, 1, 3);
    const int64_t axis = random_axis(r, dims.size());
    dims[normal(axis, dims.size())] += 1;
    return {{floats(dims), ints({pick(r, 1, dims[normal(axis, dims.size())])})},
            {{"axis", axis}, {"largest", pick(r, 0, 1)}},
            2};
  });
  cases.emplace("BatchNormalization", [](R& r) -> DrawnOp {
    const Dims x = random_dims(r, 2, 4, 4), c{x[1]};
    const int64_t training = pick(r, 0, 1);
    return {
        {floats(x), floats(c), floats(c), floats(c), positive(c)}, {{"training_mode", training}}, training ? 3u : 1u};
  });
  cases.emplace("InstanceNormalization", [](R& r) -> DrawnOp {
    const Dims x = random_dims(r, 3, 4, 4), c{x[1]};
    return {{floats(x), floats(c), floats(c)}};
  });
  cases.emplace("GroupNormalization", [](R& r) -> DrawnOp {
    const int64_t groups = pick(r, 1, 3), channels = groups * pick(r, 1, 3);
    return {{floats({pick(r, 1, 3), channels, pick(r, 2, 3), 2}), floats({channels}), floats({channels})},
            {{"num_groups", groups}}};
  });
  cases.emplace("LayerNormalization", [](R& r) -> DrawnOp {
    const Dims x = random_dims(r, 1, 4, 4);
    return {{floats(x), floats(narrowed(r, x)), pick(r, 0, 1) ? floats(narrowed(r, x)) : absent()},
            {{"axis", random_axis(r, x.size())}},
            size_t(pick(r, 1, 3))};
  });
  cases.emplace("RMSNormalization", [](R& r) -> DrawnOp {
    const Dims x = random_dims(r, 1, 4, 4);
    return {{floats(x), floats(narrowed(r, x))}, {{"axis", random_axis(r, x.size())}}};
  });
  cases.emplace("MeanVarianceNormalization", [](R& r) -> DrawnOp { return {{floats(random_dims(r, 4, 4, 4))}}; });
  cases.emplace("LRN", [](R& r) -> DrawnOp {
    return {{floats({2, pick(r, 1, 7), 2, 3})}, {{"size", pick(r, 1, 4)}, {"alpha", 0.5f}}};
  });
  cases.emplace("Det", [](R& r) -> DrawnOp {
    Dims dims = random_dims(r, 0, 2);
    dims.insert(dims.end(), 2, pick(r, 1, 3));
    return {{floats(dims)}};
  });
  cases.emplace("DFT", [](R& r) -> DrawnOp {
    Dims dims = random_dims(r, 2, 3);
    const int64_t axis = pick(r, 0, static_cast<int64_t>(dims.size()) - 1);
    dims.push_back(pick(r, 1, 2));
    return {{floats(dims), absent(), number(axis)}};
  });
  cases.emplace("STFT", [](R& r) -> DrawnOp {
    const int64_t length = pick(r, 2, 5);
    return {{floats({pick(r, 1, 3), pick(r, 8, 20), 1}), number(pick(r, 1, 4)), absent(), number(length)}};
  });
}

const OpCases& op_cases() {
  static const OpCases all = [] {
    OpCases cases;
    for (const auto add : {add_pointwise, add_along_axes, add_windows, add_images, add_products, add_attention,
                           add_moves, add_indexed}) {
      add(cases);
    }
    return cases;
  }();
  return all;
}

}  // namespace tenon::testing
