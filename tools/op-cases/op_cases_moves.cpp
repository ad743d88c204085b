#include <numeric>

#include <op-cases/draw.hpp>

namespace tenon::testing {
namespace {

// ---- Moves ---------------------------------------------------------------------------------------------------------

DrawnOp transposed(R& r) {
  const Dims dims = random_dims(r, 1, 4);
  Integers perm(dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::shuffle(perm.begin(), perm.end(), r);
  return {{floats(dims)}, pick(r, 0, 3) ? Attributes{{"perm", perm}} : Attributes{}};
}

DrawnOp concatenated(R& r) {
  const Dims dims = random_dims(r, 1, 3);
  const int64_t axis = random_axis(r, dims.size());
  DrawnOp op{{}, {{"axis", axis}}};
  for (int64_t count = pick(r, 1, 4); count-- > 0;) {
    Dims part = dims;
    part[normal(axis, dims.size())] = pick(r, 0, 4);
    op.operands.push_back(floats(part));
  }
  return op;
}

DrawnOp split(R& r) {
  Dims dims = random_dims(r, 1, 3);
  const int64_t axis = random_axis(r, dims.size()), count = pick(r, 1, 3);
  int64_t& along = dims[normal(axis, dims.size())];
  if (pick(r, 0, 1)) {
    along = pick(r, count, 9);
    return {{floats(dims)}, {{"axis", axis}, {"num_outputs", count}}, static_cast<size_t>(count)};
  }
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) lengths.push_back(pick(r, 1, 4));
  along = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  return {{floats(dims), ints(lengths)}, {{"axis", axis}}, static_cast<size_t>(count)};
}

DrawnOp sliced(R& r) {
  const Dims dims = random_dims(r, 1, 3, 9);
  std::vector<int64_t> starts, ends, axes, steps;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (pick(r, 0, 2) == 0) continue;
    const bool back = pick(r, 0, 1);
    axes.push_back(static_cast<int64_t>(d) - (pick(r, 0, 1) ? static_cast<int64_t>(dims.size()) : 0));
    steps.push_back(pick(r, 1, 3) * (back ? -1 : 1));
    const int64_t low = pick(r, 0, dims[d] - 1), high = pick(r, low, dims[d] - 1);
    starts.push_back(back ? high - (pick(r, 0, 1) ? dims[d] : 0) : low);
    ends.push_back(back ? (low == 0 ? INT64_MIN : low - 1) : pick(r, 0, 1) ? INT64_MAX : high + 1);
  }
  return {{floats(dims), ints(starts), ints(ends), ints(axes), ints(steps)}};
}

DrawnOp padded(R& r, const char* mode) {
  const Dims dims = random_dims(r, 1, 3, 6);
  const bool negative = pick(r, 0, 2) == 0, reflects = std::string(mode) == "reflect";
  std::vector<int64_t> before, after;
  for (const int64_t dim : dims) {
    const int64_t most = reflects ? std::min<int64_t>(dim - 1, 4) : 4, least = negative && dim > 2 ? -1 : 0;
    // What is cropped is not mirrored, so it leaves fewer elements to mirror.
    before.push_back(pick(r, least, least < 0 ? 0 : most));
    after.push_back(pick(r, least, least < 0 ? std::min<int64_t>(most, dim - 3) : most));
  }
  before.insert(before.end(), after.begin(), after.end());
  DrawnOp op{{floats(dims), ints(before)}, {{"mode", mode}}};
  if (pick(r, 0, 1)) op.operands.push_back(floats({}));
  return op;
}

// The same elements with another shape: factors of a number grouped in two ways.
DrawnOp reshaped(R& r) {
  std::vector<int64_t> factors;
  for (int64_t count = pick(r, 1, 5); count-- > 0;) factors.push_back(pick(r, 1, 3));
  const auto grouped = [&] {
    Dims dims{1};
    for (const int64_t factor : factors) {
      if (pick(r, 0, 1)) dims.push_back(1);
      dims.back() *= factor;
    }
    return dims;
  };
  const Dims from = grouped();
  Dims to = grouped();
  if (pick(r, 0, 2) == 0) std::reverse(to.begin(), to.end());
  return {{floats(from), ints(to)}};
}

DrawnOp squeezed(R& r) {
  Dims dims;
  std::vector<int64_t> axes;
  for (const int64_t dim : random_dims(r, 1, 3)) {
    if (pick(r, 0, 1)) {
      axes.push_back(static_cast<int64_t>(dims.size()));
      dims.push_back(1);
    }
    dims.push_back(dim);
  }
  DrawnOp op{{floats(dims)}};
  if (pick(r, 0, 1)) op.operands.push_back(ints(axes));
  return op;
}

}  // namespace

void add_moves(OpCases& cases) {
  cases.emplace("Transpose", transposed);
  cases.emplace("Concat", concatenated);
  cases.emplace("Split", split);
  for (int i = 0; i < 2; ++i) {
    cases.emplace("Slice", sliced);
    cases.emplace("Reshape", reshaped);
    for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
      cases.emplace("Pad", [mode](R& r) { return padded(r, mode); });
    }
  }
  cases.emplace("Squeeze", squeezed);
  cases.emplace("Unsqueeze", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 0, 3);
    return {{floats(dims), ints({random_axis(r, dims.size() + 1)})}};
  });
  cases.emplace("Flatten", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 1, 4);
    return {{floats(dims)}, {{"axis", pick(r, 0, static_cast<int64_t>(dims.size()))}}};
  });
  cases.emplace("Tile", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 1, 3);
    std::vector<int64_t> repeats;
    for (size_t d = 0; d < dims.size(); ++d) repeats.push_back(pick(r, 1, 3));
    return {{floats(dims), ints(repeats)}};
  });
  cases.emplace("Expand", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 1, 4);
    return {{floats(narrowed(r, dims)), ints(dims)}};
  });
  cases.emplace("Trilu", [](R& r) -> DrawnOp {
    DrawnOp op{{floats(random_dims(r, 2, 3))}, {{"upper", pick(r, 0, 1)}}};
    if (pick(r, 0, 1)) op.operands.push_back(number(pick(r, -3, 3)));
    return op;
  });
  cases.emplace("ReverseSequence", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 2, 3);
    const int64_t batch = pick(r, 0, 1);
    return {{floats(dims), of(kI64, {dims[static_cast<size_t>(batch)]}, 1, dims[static_cast<size_t>(1 - batch)])},
            {{"batch_axis", batch}, {"time_axis", 1 - batch}}};
  });
  cases.emplace("CenterCropPad", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 2, 3, 7);
    return {{floats(dims), ints({pick(r, 1, 9), pick(r, 1, 9)})}, {{"axes", Integers{0, -1}}}};
  });
  cases.emplace("Shape", [](R& r) -> DrawnOp { return {{floats(random_dims(r, 2, 4))}, {{"start", pick(r, 0, 1)}}}; });
  cases.emplace("Size", [](R& r) -> DrawnOp { return {{floats(random_dims(r, 1, 4))}}; });
  cases.emplace("ConstantOfShape", [](R& r) -> DrawnOp { return {{ints(random_dims(r, 1, 3))}}; });
  cases.emplace("EyeLike", [](R& r) -> DrawnOp { return {{floats(random_dims(r, 2, 2))}, {{"k", pick(r, -2, 2)}}}; });
  cases.emplace("Range", [](R& r) -> DrawnOp { return {{number(2), number(pick(r, 5, 9)), number(2)}}; });
  cases.emplace("Constant", [](R& r) -> DrawnOp {
    return {{}, {{"value", random_tensor(r, kF32, random_dims(r, 1, 3))}}};
  });
  for (const char* name : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    cases.emplace(name, [](R& r) -> DrawnOp { return {{number(pick(r, 2, 9))}}; });
  }
  cases.emplace("MelWeightMatrix", [](R&) -> DrawnOp {
    return {{number(4), number(16), number(8192), fixed(Tensor::scalar(0.f)), fixed(Tensor::scalar(4096.f))}};
  });
}

// ---- By index ------------------------------------------------------------------------------------------------------

void add_indexed(OpCases& cases) {
  for (const bool known : {false, true}) {
    cases.emplace("Gather", [known](R& r) -> DrawnOp {
      Dims dims = random_dims(r, 1, 3, 6);
      const int64_t axis = random_axis(r, dims.size()), extent = ++dims[normal(axis, dims.size())];
      const DrawnOperand indices = of(kI64, random_dims(r, 0, 2, 4), -extent, extent - 1);
      return {{floats(dims), known ? once(r, indices) : indices}, {{"axis", axis}}};
    });
  }
  cases.emplace("GatherElements", [](R& r) -> DrawnOp {
    Dims dims = random_dims(r, 1, 3);
    const int64_t axis = random_axis(r, dims.size()), extent = ++dims[normal(axis, dims.size())];
    Dims taken = dims;
    for (int64_t& dim : taken) dim = pick(r, 1, dim);
    return {{floats(dims), of(kI64, taken, -extent, extent - 1)}, {{"axis", axis}}};
  });
  cases.emplace("GatherND", [](R& r) -> DrawnOp {
    const int64_t batch = pick(r, 0, 1);
    const Dims indices = batch ? Dims{3, 2, 1} : Dims{pick(r, 1, 4), 2};
    return {{floats({3, 2, 4}), of(kI64, indices, 0, 1)}, {{"batch_dims", batch}}};
  });
  cases.emplace("ScatterElements", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 1, 3);
    const int64_t axis = random_axis(r, dims.size()), extent = dims[normal(axis, dims.size())];
    Dims taken = dims;
    for (int64_t& dim : taken) dim = pick(r, 1, dim);
    return {{floats(dims), of(kI64, taken, -extent, extent - 1), floats(taken)},
            {{"axis", axis}, {"reduction", pick(r, 0, 1) ? "none" : "add"}}};
  });
  cases.emplace("ScatterND", [](R& r) -> DrawnOp {
    const int64_t count = pick(r, 1, 3);
    return {{floats({3, 2, 4}), of(kI64, {count, 2}, 0, 1), floats({count, 4})}, {{"reduction", "add"}}};
  });
  cases.emplace("TensorScatter", [](R& r) -> DrawnOp {
    const int64_t batch = pick(r, 1, 3), heads = pick(r, 1, 2);
    return {{floats({batch, heads, 5, 3}), floats({batch, heads, 2, 3}), of(kI64, {batch}, 0, 3)}};
  });
  cases.emplace("Compress", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 1, 3);
    const int64_t axis = random_axis(r, dims.size());
    Tensor keep = random_tensor(r, kBool, {dims[normal(axis, dims.size())]}, 0, 1);
    keep.set_int(0, 1);
    return {{floats(dims), fixed(keep)}, {{"axis", axis}}};
  });
  cases.emplace("OneHot", [](R& r) -> DrawnOp {
    const Dims dims = random_dims(r, 1, 3);
    return {{of(kI64, dims, -4, 4), number(4), floats({2})}, {{"axis", random_axis(r, dims.size() + 1)}}};
  });
  cases.emplace("NonZero", [](R& r) -> DrawnOp { return {{once(r, floats(random_dims(r, 1, 3)))}}; });
  cases.emplace("Unique", [](R& r) -> DrawnOp { return {{once(r, of(kI64, {pick(r, 1, 6)}, 0, 3))}, {}, 4}; });
  cases.emplace("StringSplit", [](R& r) -> DrawnOp { return {{once(r, texts(random_dims(r, 1, 2)))}, {}, 2}; });
  cases.emplace("StringNormalizer", [](R& r) -> DrawnOp { return {{once(r, texts({pick(r, 1, 4)}))}}; });
  cases.emplace("TfIdfVectorizer", [](R& r) -> DrawnOp {
    return {{of(kI64, {pick(r, 1, 4), 5}, 0, 3)},
            {{"max_gram_length", 1},
             {"min_gram_length", 1},
             {"max_skip_count", 0},
             {"mode", "TF"},
             {"ngram_counts", Integers{0}},
             {"ngram_indexes", Integers{0, 1, 2}},
             {"pool_int64s", Integers{0, 1, 2}}}};
  });
}

}  // namespace tenon::testing
