// Operands that determine the shape of a result or the source of its elements (axes, shapes, counts, positions ...),
// given at run time, when no plan has seen them: any values must give a result or an error, never a crash. Run with a
// limit of 1 MiB per tensor (set by main()), so that large sizes are refused as well.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <variant>

#include <support_lib/evaluated.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/support/memory.hpp>

namespace tenon {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::ints;
using testing::pick;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

Tensor floats(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}
Tensor counted(Dims dims) { return testing::iota(kF32, std::move(dims)); }
Tensor number(int64_t value) { return Tensor::scalar<int64_t>(value); }

TEST(HostileOperands, RunUnderALimit) { EXPECT_EQ(tensor_bytes_limit(), size_t{1} << 20); }

// ---- One wrong value each ------------------------------------------------------------------------------------------

struct Refusal {
  std::string_view name;
  Name op;
  std::vector<Datum> operands;
  Attributes attributes;
  std::string says;
  size_t results = 1;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

std::vector<Refusal> refusals() {
  const Tensor x = counted({2, 3}), scalar = counted({});
  return {
      {"CumSum", "CumSum", {x, number(2)}, {}, "axis 2"},
      {"CumSumLeast", "CumSum", {x, number(kLeast)}, {}, "axis -9223372036854775808"},
      {"ReduceSum", "ReduceSum", {x, ints({-3})}, {}, "axis -3"},
      {"ReduceSumOfScalar", "ReduceSum", {scalar, ints({0})}, {}, "axis 0"},
      {"Unsqueeze", "Unsqueeze", {x, ints({3})}, {}, "axis 3"},
      {"UnsqueezeTwice", "Unsqueeze", {x, ints({0, -4})}, {}, "twice"},
      {"Squeeze", "Squeeze", {counted({1, 3}), ints({1})}, {}, "only 1 can be dropped"},
      {"SqueezeOfScalar", "Squeeze", {scalar, ints({0})}, {}, "axis 0"},
      {"SliceAxis", "Slice", {x, ints({0}), ints({1}), ints({2})}, {}, "axis 2"},
      {"SliceStep", "Slice", {x, ints({0}), ints({1}), ints({0}), ints({0})}, {}, "step 0"},
      {"SliceOfScalar", "Slice", {scalar, ints({0}), ints({1}), ints({0})}, {}, "axis 0"},
      {"SliceOfScalarWithoutAxes", "Slice", {scalar, ints({0}), ints({1})}, {}, "axis 0"},
      {"Gather", "Gather", {x, ints({0, 2})}, {{"axis", 0}}, "index 2"},
      {"GatherLeast", "Gather", {x, ints({kLeast})}, {{"axis", 1}}, "index -9223372036854775808"},
      {"PadAxis", "Pad", {x, ints({0, 0}), Datum(), ints({2})}, {}, "axis 2"},
      {"PadOfScalar", "Pad", {scalar, ints({}), Datum(), ints({0})}, {}, "axis 0"},
      {"PadCount", "Pad", {x, ints({0, 0, 0})}, {}, "3 elements"},
      {"PadCutsTooMuch", "Pad", {x, ints({0, -2, 0, -2})}, {}, "than it has"},
      {"PadReflectsNothing", "Pad", {counted({2, 0}), ints({0, 1, 0, 1})}, {{"mode", "reflect"}}, "nothing is left"},
      {"TopK", "TopK", {x, ints({4})}, {}, "asks for 4", 2},
      {"TopKNegative", "TopK", {x, ints({-1})}, {}, "asks for -1", 2},
      {"OneHot", "OneHot", {ints({0, 1}), number(0), floats({0, 1})}, {}, "depth"},
      {"OneHotNaN", "OneHot", {ints({0, 1}), Tensor::scalar(std::nanf("")), floats({0, 1})}, {}, "depth"},
      {"Range", "Range", {number(0), number(5), number(0)}, {}, "delta"},
      {"RangeNaN", "Range", {Tensor::scalar(0.f), Tensor::scalar(std::nanf("")), Tensor::scalar(1.f)}, {}, "Range"},
      {"RangeTooLong", "Range", {number(0), number(kMost), number(1)}, {}, "bytes"},
      {"Split", "Split", {x, ints({1, 1})}, {{"axis", 1}}, "adds up to 2", 2},
      {"SplitOverflow", "Split", {x, ints({kMost, kMost})}, {{"axis", 1}}, "has the length 9223372036854775807", 2},
      {"SplitNegative", "Split", {x, ints({-1, 4})}, {{"axis", 1}}, "negative", 2},
      {"Tile", "Tile", {x, ints({1, -1})}, {}, "negative"},
      {"TileCount", "Tile", {x, ints({2})}, {}, "one per axis"},
      {"Expand", "Expand", {x, ints({2, 4})}, {}, "3"},
      {"ExpandNegative", "Expand", {x, ints({-1, 3})}, {}, "not negative"},
      {"Reshape", "Reshape", {x, ints({4})}, {}, "elements"},
      {"ReshapeTwoOpen", "Reshape", {x, ints({-1, -1})}, {}, "once only"},
      {"ReshapeZeroBeyond", "Reshape", {x, ints({6, 1, 0})}, {}, "0 at place 2"},
      {"ResizeScales", "Resize", {x, Datum(), floats({1, -1})}, {}, "scale -1"},
      {"ResizeNaN", "Resize", {x, Datum(), floats({1, std::nanf("")})}, {}, "scale nan"},
      {"ResizeCount", "Resize", {x, Datum(), floats({1})}, {}, "scales"},
      {"ResizeSizes", "Resize", {x, Datum(), Datum(), ints({2, -3})}, {}, "extent -3"},
      // 160 kB of result, and more of lists.
      {"ResizeLists",
       "Resize",
       {x, Datum(), Datum(), ints({2, 20000})},
       {{"mode", "cubic"}},
       "axis 1 of extent 20000 takes lists of"},
  };
}

class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, WithASentence) {
  const auto& [name, op, operands, attributes, says, results] = GetParam();
  EXPECT_THAT(error_of(op, operands, attributes, results), HasSubstr(says));
}
INSTANTIATE_TEST_SUITE_P(HostileOperands, Refused, ::testing::ValuesIn(refusals()),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- Any values ----------------------------------------------------------------------------------------------------

// An operand with drawn values: mostly small ones, otherwise those at which arithmetic breaks. Its length is the given
// one, and sometimes another.
struct Drawn {
  ElementType element;
  Dims dims;
};
using Part = std::variant<Datum, Drawn>;

int64_t hostile_int(std::mt19937& random) {
  constexpr int64_t kBreaking[] = {kLeast,           kLeast + 1,          kMost,     kMost - 1, kLeast / 2, kMost / 2,
                                   int64_t{1} << 32, -(int64_t{1} << 32), INT32_MAX, INT32_MIN, 1000,       -1000};
  if (pick(random, 0, 3) > 0) return pick(random, -2, 4);
  return kBreaking[pick(random, 0, static_cast<int64_t>(std::size(kBreaking)) - 1)];
}
double hostile_float(std::mt19937& random) {
  constexpr double kBreaking[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e-300, 9.3e18, -9.3e18, 3e9, -0.0};
  if (pick(random, 0, 3) > 0) return static_cast<double>(pick(random, -4, 12)) / 4;
  return kBreaking[pick(random, 0, static_cast<int64_t>(std::size(kBreaking)) - 1)];
}

Tensor draw(std::mt19937& random, const Drawn& drawn) {
  Dims dims = drawn.dims;
  if (pick(random, 0, 9) == 0) {
    if (dims.empty() || pick(random, 0, 2) == 0)
      dims.push_back(pick(random, 0, 2));
    else if (pick(random, 0, 1) == 0)
      dims.pop_back();
    else
      dims.back() = pick(random, 0, 3);
  }
  Tensor tensor = *Tensor::zeros(drawn.element, std::move(dims));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (drawn.element.is_float())
      tensor.set_double(i, hostile_float(random));
    else
      tensor.set_int(i, hostile_int(random));
  }
  return tensor;
}

struct Sweep {
  std::string_view name;
  Name op;
  std::vector<Part> operands;
  Attributes attributes;
  size_t results = 1;
};
void PrintTo(const Sweep& sweep, std::ostream* out) { *out << sweep.name; }

std::vector<Sweep> sweeps() {
  const Datum x = counted({2, 3}), image = counted({1, 2, 4, 3}), none;
  const Drawn axes{kI64, {2}}, one{kI64, {1}}, scalar{kI64, {}}, two{kI64, {2}}, four{kI64, {4}};
  const Drawn number{kF32, {}}, image_scales{kF32, {4}}, image_sizes{kI64, {4}};
  const Datum sequence = Datum::sequence({Datum(counted({2})), Datum(counted({3}))}, Type(kF32, Shape()));
  const std::vector<Part> resize_scales{image, Drawn{kF32, {8}}, image_scales};
  return {
      {"CumSum", "CumSum", {x, scalar}},
      {"CumProd", "CumProd", {x, Drawn{kI32, {1}}}},
      {"ReduceSum", "ReduceSum", {x, axes}},
      {"ReduceMeanDropped", "ReduceMean", {x, one}, {{"keepdims", 0}}},
      {"ReduceOfScalar", "ReduceMax", {Datum(counted({})), one}},
      {"Unsqueeze", "Unsqueeze", {x, axes}},
      {"Squeeze", "Squeeze", {Datum(counted({1, 3, 1})), axes}},
      {"SqueezeScalar", "Squeeze", {Datum(counted({})), one}},
      {"Slice", "Slice", {x, two, two, axes, two}},
      {"SliceFront", "Slice", {x, two, two}},
      {"SliceEmpty", "Slice", {Datum(counted({0, 3})), two, two, axes, two}},
      {"Gather", "Gather", {x, two}},
      {"GatherElements", "GatherElements", {x, Drawn{kI64, {2, 2}}}},
      {"GatherND", "GatherND", {x, Drawn{kI64, {2, 2}}}},
      {"GatherNDBatch", "GatherND", {x, Drawn{kI64, {2, 1}}}, {{"batch_dims", 1}}},
      {"ScatterElements", "ScatterElements", {x, Drawn{kI64, {2, 2}}, Datum(counted({2, 2}))}},
      {"ScatterND", "ScatterND", {x, Drawn{kI64, {2, 1}}, Datum(counted({2, 3}))}, {{"reduction", "add"}}},
      {"TensorScatter", "TensorScatter", {Datum(counted({2, 4, 3})), Datum(counted({2, 2, 3})), two}},
      {"TensorScatterCircular",
       "TensorScatter",
       {Datum(counted({2, 4, 3})), Datum(counted({2, 2, 3})), two},
       {{"mode", "circular"}}},
      {"Pad", "Pad", {x, four}},
      {"PadAxes", "Pad", {x, four, none, axes}},
      {"PadEdge", "Pad", {x, four}, {{"mode", "edge"}}},
      {"PadReflect", "Pad", {x, four}, {{"mode", "reflect"}}},
      {"PadWrap", "Pad", {x, two, none, one}, {{"mode", "wrap"}}},
      {"PadScalar", "Pad", {Datum(counted({})), two, none, one}},
      {"CenterCropPad", "CenterCropPad", {x, two}},
      {"TopK", "TopK", {x, one}, {}, 2},
      {"TopKOfNone", "TopK", {Datum(counted({0})), one}, {}, 2},
      {"OneHot", "OneHot", {two, scalar, Datum(counted({2}))}},
      {"OneHotFloat", "OneHot", {Drawn{kF32, {2}}, number, Datum(counted({2}))}},
      {"Range", "Range", {scalar, scalar, scalar}},
      {"RangeFloat", "Range", {number, number, number}},
      {"RangeI32", "Range", {Drawn{kI32, {}}, Drawn{kI32, {}}, Drawn{kI32, {}}}},
      {"Split", "Split", {x, two}, {{"axis", 1}}, 2},
      {"SplitToSequence", "SplitToSequence", {x, two}, {{"axis", 1}}},
      {"SplitToSequenceEqual", "SplitToSequence", {x, scalar}},
      {"SequenceAt", "SequenceAt", {sequence, scalar}},
      {"SequenceInsert", "SequenceInsert", {sequence, Datum(counted({1})), scalar}},
      {"SequenceErase", "SequenceErase", {sequence, scalar}},
      {"Tile", "Tile", {x, two}},
      {"Expand", "Expand", {x, two}},
      {"Reshape", "Reshape", {x, two}},
      {"ReshapeAllowzero", "Reshape", {Datum(counted({0, 3})), two}, {{"allowzero", 1}}},
      {"ConstantOfShape", "ConstantOfShape", {two}},
      {"Trilu", "Trilu", {x, scalar}},
      {"ReverseSequence", "ReverseSequence", {x, Drawn{kI64, {3}}}},
      {"ResizeScales", "Resize", resize_scales},
      {"ResizeLinear", "Resize", resize_scales, {{"mode", "linear"}}},
      {"ResizeAntialias", "Resize", resize_scales, {{"mode", "linear"}, {"antialias", 1}}},
      {"ResizeCubic", "Resize", resize_scales, {{"mode", "cubic"}, {"exclude_outside", 1}}},
      {"ResizeCrop",
       "Resize",
       resize_scales,
       {{"mode", "linear"}, {"coordinate_transformation_mode", "tf_crop_and_resize"}}},
      {"ResizeCropAntialias",
       "Resize",
       resize_scales,
       {{"mode", "cubic"}, {"antialias", 1}, {"coordinate_transformation_mode", "tf_crop_and_resize"}}},
      {"ResizeSizes", "Resize", {image, none, none, image_sizes}},
      {"ResizeSizesCubic",
       "Resize",
       {image, none, none, image_sizes},
       {{"mode", "cubic"}, {"keep_aspect_ratio_policy", "not_larger"}, {"antialias", 1}}},
      {"ResizeEmpty", "Resize", {Datum(counted({1, 0, 2, 2})), none, none, image_sizes}, {{"mode", "linear"}}},
      {"AffineGrid", "AffineGrid", {Datum(counted({1, 2, 3})), four}},
      {"GridSample", "GridSample", {image, Drawn{kF32, {1, 2, 2, 2}}}},
      {"GridSampleCubic",
       "GridSample",
       {image, Drawn{kF32, {1, 2, 2, 2}}},
       {{"mode", "cubic"}, {"padding_mode", "reflection"}}},
      {"GridSampleNearest",
       "GridSample",
       {image, Drawn{kF32, {1, 2, 2, 2}}},
       {{"mode", "nearest"}, {"padding_mode", "border"}}},
      {"Col2ImImage", "Col2Im", {Datum(counted({1, 4, 4})), two, Datum(ints({2, 2}))}},
      {"Col2ImBlock", "Col2Im", {Datum(counted({1, 4, 4})), Datum(ints({3, 3})), two}},
      {"MaxUnpool",
       "MaxUnpool",
       {Datum(counted({1, 1, 2, 2})), Drawn{kI64, {1, 1, 2, 2}}, four},
       {{"kernel_shape", Attribute::Integers{2, 2}}, {"strides", Attribute::Integers{2, 2}}}},
      {"MaxRoiPool", "MaxRoiPool", {image, Drawn{kF32, {2, 5}}}, {{"pooled_shape", Attribute::Integers{2, 2}}}},
      {"RoiAlign", "RoiAlign", {image, Drawn{kF32, {2, 4}}, two}, {{"output_height", 2}, {"output_width", 2}}},
      {"RoiAlignMax", "RoiAlign", {image, Drawn{kF32, {2, 4}}, Datum(ints({0, 0}))}, {{"mode", "max"}}},
      {"DeformConv",
       "DeformConv",
       {Datum(counted({1, 1, 3, 3})), Datum(counted({1, 1, 2, 2})), Drawn{kF32, {1, 8, 2, 2}}}},
      {"NonMaxSuppression",
       "NonMaxSuppression",
       {Drawn{kF32, {1, 4, 4}}, Drawn{kF32, {1, 1, 4}}, scalar, number, number}},
      {"DFT", "DFT", {Datum(counted({1, 4, 1})), scalar, scalar}},
      {"STFT", "STFT", {Datum(counted({1, 8, 1})), scalar, none, scalar}},
      {"HannWindow", "HannWindow", {scalar}},
      {"MelWeightMatrix", "MelWeightMatrix", {scalar, scalar, scalar, number, number}},
      {"LSTM",
       "LSTM",
       {Datum(counted({3, 2, 2})), Datum(counted({1, 8, 2})), Datum(counted({1, 8, 2})), none, Drawn{kI32, {2}}},
       {{"hidden_size", 2}}},
      {"RotaryEmbedding",
       "RotaryEmbedding",
       {Datum(counted({1, 2, 2, 4})), Datum(counted({3, 2})), Datum(counted({3, 2})), Drawn{kI64, {1, 2}}}},
      {"Attention",
       "Attention",
       {Datum(counted({1, 1, 2, 2})), Datum(counted({1, 1, 3, 2})), Datum(counted({1, 1, 3, 2})), none, none, none,
        one}},
      {"AttentionCausal",
       "Attention",
       {Datum(counted({1, 1, 2, 2})), Datum(counted({1, 1, 3, 2})), Datum(counted({1, 1, 3, 2})), none, none, none,
        one},
       {{"is_causal", 1}}},
      {"NegativeLogLikelihoodLoss", "NegativeLogLikelihoodLoss", {x, two}},
      {"SoftmaxCrossEntropyLoss", "SoftmaxCrossEntropyLoss", {x, two}, {{"ignore_index", -1}}},
      {"ArrayFeatureExtractor", "ai.onnx.ml.ArrayFeatureExtractor", {x, Drawn{kI64, {1, 2}}}},
      {"Dropout", "Dropout", {x, number, Datum(Tensor::scalar(true))}},
      {"Clip", "Clip", {x, number, number}},
      {"BitShift", "BitShift", {Drawn{kU8, {3}}, Drawn{kU8, {3}}}, {{"direction", "LEFT"}}},
      {"DivI64", "Div", {Drawn{kI64, {8}}, Drawn{kI64, {8}}}},
      {"ModI8", "Mod", {Drawn{kI8, {8}}, Drawn{kI8, {8}}}},
      {"ModFloat", "Mod", {Drawn{kF32, {8}}, Drawn{kF32, {8}}}, {{"fmod", 1}}},
      {"PowI64", "Pow", {Drawn{kI64, {8}}, Drawn{kI64, {8}}}},
      {"CastToI8", "Cast", {Drawn{kF32, {8}}}, {{"to", Type(kI8, Shape())}}},
      {"CastToU64", "Cast", {Drawn{kF64, {8}}}, {{"to", Type(kU64, Shape())}}},
      {"QuantizeLinear", "QuantizeLinear", {Drawn{kF32, {4}}, number, Datum(Tensor::scalar<int8_t>(3))}},
      {"DequantizeLinear", "DequantizeLinear", {Drawn{kI32, {4}}, number, Drawn{kI32, {}}}},
  };
}

class Survives : public ::testing::TestWithParam<Sweep> {};

TEST_P(Survives, AnyValues) {
  const Sweep& sweep = GetParam();
  ASSERT_NE(find_evaluator(sweep.op), nullptr);
  int done = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<Datum> operands;
    for (const Part& part : sweep.operands) {
      const Drawn* drawn = std::get_if<Drawn>(&part);
      operands.push_back(drawn ? Datum(draw(random, *drawn)) : std::get<Datum>(part));
    }
    const auto results = evaluate(sweep.op, operands, sweep.attributes, sweep.results);
    if (!results.ok()) {
      EXPECT_NE(results.error().code(), Code::internal) << results.error().to_string();
      continue;
    }
    ++done;
    for (const Datum& result : *results) {
      EXPECT_TRUE(!result.is_tensor() || result.tensor().bytes() <= tensor_bytes_limit());
    }
  }
  EXPECT_GT(done, 0) << "every draw was refused: the sweep tests nothing but the refusal";
}
INSTANTIATE_TEST_SUITE_P(HostileOperands, Survives, ::testing::ValuesIn(sweeps()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tenon

// The limit is read once, with the first tensor, which an operator's default creates before main(), so the program is
// restarted.
int main(int argc, char** argv) {
  constexpr const char* kVariable = "TENON_TENSOR_LIMIT";
  constexpr const char* kLimit = "1048576";
  const char* limit = std::getenv(kVariable);
  if (!limit || std::string_view(limit) != kLimit) {
    setenv(kVariable, kLimit, 1);
    execv("/proc/self/exe", argv);
    return 1;  // no such machine is known
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
