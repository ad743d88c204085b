#include <op-cases/draw.hpp>

namespace tenon::testing {
namespace {

// ---- Windows -------------------------------------------------------------------------------------------------------

struct Windowed {
  Dims x, kernel;
  Attributes attributes;
};
// With 1 or 2 spatial axes: windows that overlap and windows with gaps, with and without padding.
Windowed windowed(R& r, int64_t channels, bool pool, bool negative_pads = false) {
  Windowed w{{pick(r, 1, 3), channels}, {}, {}};
  Integers strides, dilations, begin, end;
  const auto rank = pick(r, 1, 2);
  for (int64_t axis = 0; axis < rank; ++axis) {
    w.x.push_back(pick(r, 7, 11));
    w.kernel.push_back(pick(r, 1, 3));
    strides.push_back(pick(r, 1, 3));
    dilations.push_back(pick(r, 1, 2));
    for (Integers* pads : {&begin, &end}) pads->push_back(pick(r, negative_pads ? -1 : 0, w.kernel.back() - 1));
  }
  const int64_t way = pick(r, 0, 5);
  w.attributes = {{"strides", strides}, {"dilations", dilations}};
  if (way < 4) {
    begin.insert(begin.end(), end.begin(), end.end());
    w.attributes.set("pads", begin);
  } else {
    w.attributes.set("auto_pad", way == 4 ? "SAME_UPPER" : "SAME_LOWER");
  }
  if (pool) {
    w.attributes.set("kernel_shape", w.kernel);
    w.attributes.set("ceil_mode", way < 4 ? pick(r, 0, 1) : 0);
  }
  return w;
}

struct Grouped {
  int64_t group, in, out;  // channels of one group
  explicit Grouped(R& r) : group(pick(r, 0, 1) ? 1 : pick(r, 2, 3)), in(pick(r, 1, 3)), out(pick(r, 1, 3)) {}
};
Dims joined(Dims head, const Dims& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

DrawnOp convolution(R& r) {
  const Grouped g(r);
  Windowed w = windowed(r, g.group * g.in, false, true);
  w.attributes.set("group", g.group);
  return {{floats(w.x), floats(joined({g.group * g.out, g.in}, w.kernel)),
           pick(r, 0, 1) ? floats({g.group * g.out}) : absent()},
          w.attributes};
}

DrawnOp convolution_transposed(R& r) {
  const Grouped g(r);
  Windowed w = windowed(r, g.group * g.in, false);
  for (size_t d = 2; d < w.x.size(); ++d) w.x[d] -= 4;
  w.attributes.set("group", g.group);
  return {{floats(w.x), floats(joined({g.group * g.in, g.out}, w.kernel)),
           pick(r, 0, 1) ? floats({g.group * g.out}) : absent()},
          w.attributes};
}

DrawnOp convolution_of_bytes(R& r) {
  const Grouped g(r);
  Windowed w = windowed(r, g.group * g.in, false);
  w.attributes.set("group", g.group);
  return {{of(kU8, w.x, 0, 255), of(kI8, joined({g.group * g.out, g.in}, w.kernel)), of(kU8, {}, 0, 255),
           of(kI8, pick(r, 0, 1) ? Dims{} : Dims{g.group * g.out})},
          w.attributes};
}

DrawnOp qlinear_convolution(R& r) {
  DrawnOp integer = convolution_of_bytes(r);
  const Tensor w = integer.operands[1].draw(r);
  const Dims lines = pick(r, 0, 1) ? Dims{} : Dims{w.dim(0)};
  const auto tiny = [](Dims dims) {
    return DrawnOperand{[=](R& random) {
      Tensor x = *Tensor::zeros(kF32, dims);
      for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(pick(random, 1, 8)) / 256);
      return x;
    }};
  };
  return {{integer.operands[0], tiny({}), integer.operands[2], integer.operands[1], tiny(lines), of(kI8, lines),
           tiny({}), of(kU8, {}, 100, 150), pick(r, 0, 1) ? of(kI32, {w.dim(0)}) : absent()},
          integer.attributes};
}

DrawnOp pooled(R& r) {
  const Windowed w = windowed(r, pick(r, 1, 3), true);
  return {{floats(w.x)}, w.attributes};
}

}  // namespace

void add_windows(OpCases& cases) {
  for (int i = 0; i < 3; ++i) {
    cases.emplace("Conv", convolution);
    cases.emplace("ConvTranspose", convolution_transposed);
    cases.emplace("MaxPool", pooled);
    cases.emplace("LpPool", pooled);
    cases.emplace("AveragePool", [](R& r) -> DrawnOp {
      DrawnOp op = pooled(r);
      op.attributes.set("count_include_pad", pick(r, 0, 1));
      return op;
    });
  }
  cases.emplace("ConvTranspose", [](R& r) -> DrawnOp {
    return {{floats({1, 2, pick(r, 3, 5), 4}), floats({2, 2, 3, 2})},
            {{"strides", Integers{2, 3}}, {"output_shape", Integers{pick(r, 6, 8), 11}}}};
  });
  cases.emplace("ConvTranspose", [](R& r) -> DrawnOp {
    return {{floats({1, 2, pick(r, 3, 5), 4}), floats({2, 2, 3, 2})},
            {{"strides", Integers{2, 3}}, {"output_padding", Integers{1, 2}}, {"pads", Integers{1, 0, 1, 1}}}};
  });
  cases.emplace("ConvInteger", convolution_of_bytes);
  cases.emplace("QLinearConv", qlinear_convolution);
  cases.emplace("MaxPool", [](R& r) -> DrawnOp {
    DrawnOp op = pooled(r);
    op.results = 2;
    return op;
  });
  for (const char* name : {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}) {
    cases.emplace(name, [](R& r) -> DrawnOp { return {{floats(random_dims(r, 2, 4, 4))}}; });
  }
  cases.emplace("MaxUnpool", [](R& r) -> DrawnOp {
    return {{floats({1, 2, 2, 2}), once(r, of(kI64, {1, 2, 2, 2}, 0, 31))},
            {{"kernel_shape", Integers{2, 2}}, {"strides", Integers{2, 2}}}};
  });
  cases.emplace("CausalConvWithState", [](R& r) -> DrawnOp {
    const int64_t n = pick(r, 1, 3), c = pick(r, 1, 3), t = pick(r, 1, 8), k = pick(r, 2, 4);
    return {{floats({n, c, t}), floats({c, 1, k}), pick(r, 0, 1) ? floats({c}) : absent(), floats({n, c, k - 1})},
            {},
            size_t(pick(r, 1, 2))};
  });
  cases.emplace("DeformConv", [](R& r) -> DrawnOp {
    const Grouped g(r);
    const int64_t batch = pick(r, 2, 3);
    return {{floats({batch, g.group * g.in, 5, 4}), floats({g.group * g.out, g.in, 2, 2}), floats({batch, 8, 4, 3}),
             floats({g.group * g.out})},
            {{"group", g.group}}};
  });
}

// ---- Images --------------------------------------------------------------------------------------------------------

namespace {

// Boxes of one image: `lead` columns of zeros, then two corners.
DrawnOperand boxes(int64_t count, int64_t lead) {
  return {[=](R& r) {
            Tensor x = *Tensor::zeros(kF32, {count, lead + 4});
            for (int64_t i = 0; i < x.size(); ++i) {
              const int64_t column = i % (lead + 4) - lead;
              if (column >= 0) x.set_double(i, static_cast<double>(pick(r, 0, 2) + (column >= 2 ? 3 : 0)));
            }
            return x;
          },
          false, /*finite=*/true};
}

constexpr const char* kCoordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
constexpr const char* kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
constexpr const char* kModes[] = {"nearest", "linear", "cubic"};

DrawnOp resized(R& r) {
  const Dims x{pick(r, 1, 2), pick(r, 1, 2), pick(r, 3, 9), pick(r, 3, 9)};
  const std::string coordinates = kCoordinates[pick(r, 0, 6)];
  DrawnOp op{{floats(x), absent()},
             {{"mode", kModes[pick(r, 0, 2)]},
              {"coordinate_transformation_mode", coordinates},
              {"nearest_mode", kRoundings[pick(r, 0, 3)]},
              {"exclude_outside", pick(r, 0, 1)},
              {"antialias", pick(r, 0, 1)}}};
  if (coordinates == "tf_crop_and_resize") {
    std::vector<float> roi{0, 0, 0, 0, 1, 1, 1, 1};
    roi[2] = static_cast<float>(pick(r, -1, 2)) / 4, roi[7] = static_cast<float>(pick(r, 2, 5)) / 4;
    op.operands[1] = fixed(Tensor::of<float>({8}, roi));
  }
  if (pick(r, 0, 1)) {
    constexpr float kScales[] = {0.5f, 0.6f, 1, 1.5f, 2, 2.7f};
    op.operands.push_back(fixed(Tensor::of<float>({4}, {1, 1, kScales[pick(r, 0, 5)], kScales[pick(r, 0, 5)]})));
  } else {
    op.operands.push_back(absent());
    op.operands.push_back(ints({x[0], x[1], pick(r, 1, 12), pick(r, 0, 2) ? pick(r, 1, 12) : x[3]}));
  }
  return op;
}

}  // namespace

void add_images(OpCases& cases) {
  for (int i = 0; i < 6; ++i) cases.emplace("Resize", resized);
  cases.emplace("GridSample", [](R& r) -> DrawnOp {
    const int64_t n = pick(r, 1, 3);
    return {{floats({n, pick(r, 1, 3), 4, 3}), floats({n, pick(r, 1, 3), pick(r, 1, 3), 2})}, {{"mode", "linear"}}};
  });
  cases.emplace("AffineGrid", [](R& r) -> DrawnOp {
    const int64_t n = pick(r, 2, 3);
    return {{floats({n, 2, 3}), ints({n, 1, 2, 3})}};
  });
  cases.emplace("Col2Im", [](R& r) -> DrawnOp {
    return {{floats({pick(r, 1, 3), 4 * pick(r, 1, 3), 12}), ints({4, 5}), ints({2, 2})}};
  });
  cases.emplace("MaxRoiPool", [](R& r) -> DrawnOp {
    return {{floats({1, pick(r, 1, 3), 6, 6}), boxes(pick(r, 1, 4), 1)}, {{"pooled_shape", Integers{2, 2}}}};
  });
  cases.emplace("RoiAlign", [](R& r) -> DrawnOp {
    const int64_t count = pick(r, 1, 4);
    return {{floats({2, pick(r, 1, 3), 6, 6}), boxes(count, 0), of(kI64, {count}, 0, 1)},
            {{"output_height", 2}, {"output_width", 2}}};
  });
  cases.emplace("NonMaxSuppression", [](R& r) -> DrawnOp {
    return {{fixed(*boxes(4, 0).draw(r).reshaped({1, 4, 4})), of(kF32, {1, 1, 4}), number(3)}};
  });
  cases.emplace("DepthToSpace", [](R& r) -> DrawnOp {
    const int64_t b = pick(r, 1, 3);
    return {{floats({2, b * b * pick(r, 1, 3), pick(r, 1, 3), pick(r, 1, 3)})},
            {{"blocksize", b}, {"mode", pick(r, 0, 1) ? "DCR" : "CRD"}}};
  });
  cases.emplace("SpaceToDepth", [](R& r) -> DrawnOp {
    const int64_t b = pick(r, 1, 3);
    return {{floats({2, pick(r, 1, 3), b * pick(r, 1, 3), b * pick(r, 1, 3)})}, {{"blocksize", b}}};
  });
}

}  // namespace tenon::testing
