// Attention compared with the reference, with random shapes and options.
//
// The comparison has a tolerance: an online softmax divides at the end, and sums block by block, in a different order
// from the reference. The compared values are weighted means of values in [-1, 1], each of whose terms has an error of
// a few units of f32. Narrow floats are rounded once more when they are stored, and may then differ by one unit.
//
// TENON_FUZZ_SEEDS sets the number of seeds, TENON_FUZZ_FIRST the first.
#include <limits>

#include <support_lib/environment.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon/tensor/compare.hpp>

#include "graph_support.hpp"

namespace tenon::opencl::testing {
namespace {

double tolerance_of(ElementType element) {
  if (element == kF64) return 1e-12;
  if (element == kF16) return 2e-3;
  return element == kBF16 ? 1.6e-2 : 2e-5;
}

std::string text_of(ElementType element, const Dims& dims) {
  std::string text = str(element, "[");
  for (size_t d = 0; d < dims.size(); ++d) text += str(d ? "," : "", dims[d]);
  return text + "]";
}

class RandomAttention {
 public:
  explicit RandomAttention(uint32_t seed) : random_(seed) {
    constexpr ElementType kElements[] = {kF32, kF32, kF32, kF16, kBF16, kF64};
    element_ = kElements[one_of(6)];
    const int64_t batch = 1 + one_of(2), kv_heads = 1 + one_of(3), heads = kv_heads * (1 + one_of(3));
    const int64_t rows = extent(70), own = extent(90), size = extent(70), value_size = extent(150);
    const bool with_past = one_of(3) == 0, packed = !with_past && one_of(3) == 0;
    const int64_t past = with_past ? extent(40) : 0, keys = past + own;
    const auto dims = [&](int64_t h, int64_t length, int64_t of) {
      return packed ? Dims{batch, length, h * of} : Dims{batch, h, length, of};
    };
    add_input("q", element_, dims(heads, rows, size));
    add_input("k", element_, dims(kv_heads, own, size));
    add_input("v", element_, dims(kv_heads, own, value_size));
    add_mask({batch, heads, rows, keys});
    if (with_past) {
      add_input("pk", element_, {batch, kv_heads, past, size});
      add_input("pv", element_, {batch, kv_heads, past, value_size});
    } else {
      call_ += ", _, _";
    }
    if (!with_past && one_of(4) == 0) {
      add_input("n", kI64, {batch});
      most_ = keys;
    }
    if (packed) attribute(str("q_num_heads = ", heads, ", kv_num_heads = ", kv_heads));
    if (one_of(2)) attribute("is_causal = 1");
    if (one_of(3) == 0) attribute("softcap = 1.5");
    if (one_of(3) == 0) attribute("scale = 0.75");
    const int64_t results = one_of(2) ? 1 : one_of(2) ? 3 : 4;
    if (results == 4) attribute(str("qk_matmul_output_mode = ", one_of(4)));
    names_ = results == 1 ? "%y" : results == 3 ? "%y, %nk, %nv" : "%y, %nk, %nv, %s";
  }

  std::string text() const {
    const std::string outputs = names_ == "%y" ? names_ : str("(", names_, ")");
    return str("graph @g(", inputs_text_, ") -> ", outputs, " { ", names_, " = Attention ", call_, " {", attributes_,
               "} }");
  }
  ElementType element() const { return element_; }

  std::vector<Datum> inputs() {
    std::vector<Datum> made;
    for (const auto& [name, element, dims] : inputs_) {
      Tensor tensor = tenon::testing::random_tensor(random_, element, dims);
      if (name == "n")
        for (int64_t& length : tensor.mutable_as<int64_t>()) length = one_of(most_ + 1);
      if (name == "m" && element == kF32) hide(tensor);
      made.emplace_back(std::move(tensor));
    }
    return made;
  }

 private:
  struct Input {
    std::string name;
    ElementType element;
    Dims dims;
  };

  int64_t one_of(int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(random_); }
  // Half of the extents are around the length of a vector, or 0.
  int64_t extent(int64_t most) {
    constexpr int64_t kEdges[] = {0, 1, 1, 15, 16, 17, 32, 33};
    return one_of(2) ? kEdges[one_of(8)] : 1 + one_of(most);
  }
  void attribute(const std::string& text) { attributes_ += str(attributes_.empty() ? "" : ", ", text); }
  void add_input(const std::string& name, ElementType element, const Dims& dims) {
    inputs_text_ += str(inputs_.empty() ? "" : ", ", "%", name, ": ", text_of(element, dims));
    call_ += str(inputs_.empty() ? "" : ", ", "%", name);
    inputs_.push_back({name, element, dims});
  }
  // Adds a mask in half of the cases. It may have fewer axes, be broadcast along some, or be shorter than the keys.
  void add_mask(Dims dims) {
    if (one_of(2)) {
      call_ += ", _";
      return;
    }
    if (one_of(4) == 0) dims[3] = dims[3] > 1 ? 1 + one_of(dims[3]) : dims[3];
    for (int64_t& extent : dims)
      if (one_of(4) == 0) extent = 1;
    dims.erase(dims.begin(), dims.begin() + one_of(4));
    add_input("m", one_of(2) ? kBool : kF32, dims);
  }
  // Sets some positions and some whole rows to -inf.
  void hide(Tensor& mask) {
    const auto all = mask.mutable_as<float>();
    const size_t width = mask.dims().empty() ? 1 : static_cast<size_t>(std::max<int64_t>(mask.dims().back(), 1));
    for (size_t i = 0; i < all.size(); ++i)
      if (one_of(5) == 0 || i / width % 3 == 1) all[i] = -std::numeric_limits<float>::infinity();
  }

  std::mt19937 random_;
  ElementType element_;
  std::vector<Input> inputs_;
  std::string inputs_text_, call_, attributes_, names_;
  int64_t most_ = 0;
};

class OpenclAttention : public OpenclTest {
 protected:
  void expect_on_device(TargetBackend& backend, const std::string& text, const std::vector<Datum>& inputs,
                        double tolerance) {
    auto graph = parse_graph(text);
    ASSERT_TRUE(graph.ok()) << graph.error().to_string() << "\n" << text;
    for (const Op& op : (*graph)->body()) EXPECT_FALSE(backend.refuses(op)) << op.describe();
    expect_reference(*stream, backend, **graph, inputs, {.rtol = tolerance, .atol = tolerance});
  }
};

TEST_F(OpenclAttention, OfRandomShapesIsTheReference) {
  auto backend = create_backend(cpu_target());
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  const uint32_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(24);
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    RandomAttention attention(seed);
    const std::string text = attention.text();
    expect_on_device(**backend, text, attention.inputs(), tolerance_of(attention.element()));
  }
}

// A single kernel that allocates no memory for the scores, of which there are two million.
TEST_F(OpenclAttention, ScoresAreInNoMemory) {
  constexpr std::string_view kText =
      "graph @g(%q: f32[1,2,1024,16], %k: f32[1,2,1024,16], %v: f32[1,2,1024,16]) -> %z { %y = Attention %q, %k, %v "
      "{is_causal = 1}\n %z = Neg %y }";
  auto backend = *create_backend(cpu_target());
  auto graph = *parse_graph(kText);
  auto executable = *compiled(*backend, graph->clone());
  std::mt19937 random(7);
  std::vector<Datum> inputs;
  for (int i = 0; i < 3; ++i) inputs.emplace_back(tenon::testing::random_tensor(random, kF32, {1, 2, 1024, 16}));
  std::vector<OpProfile> profile;
  const auto got = run_on(*stream, *executable, inputs, {.profile = &profile});
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_EQ(profile.size(), 2u);
  EXPECT_LE(executable->arena_bytes(), size_t{2} * 1024 * 16 * 4 + 4096) << "the result, and nothing else";
  const Comparison comparison = compare((*got)[0], on_reference(*graph, inputs)[0], {.rtol = 2e-5, .atol = 2e-5});
  EXPECT_TRUE(comparison.equal) << comparison.difference;
}

// Work groups of several items share the panels; each item has rows of its own.
TEST_F(OpenclAttention, OfWorkGroupsIsTheReference) {
  for (const int64_t group : {8, 64}) {
    TargetDescription target = cpu_target();
    target.options.add("work_group", Setting::word(str(group)));
    auto backend = create_backend(target);
    ASSERT_TRUE(backend.ok()) << backend.error().to_string();
    const uint32_t first = tenon::testing::first_seed() + 900, seeds = tenon::testing::seeds(4) / 2;
    for (uint32_t seed = first; seed < first + seeds; ++seed) {
      SCOPED_TRACE(str("seed ", seed, ", groups of ", group));
      RandomAttention attention(seed);
      const std::string text = attention.text();
      expect_on_device(**backend, text, attention.inputs(), tolerance_of(attention.element()));
    }
  }
}

// The device refuses a mask that does not broadcast; the reference, which runs refused operators, reports the error.
TEST_F(OpenclAttention, AMaskThatDoesNotFitIsAnError) {
  auto backend = *create_backend(cpu_target());
  auto graph = *parse_graph(
      "graph @g(%q: f32[1,1,4,8], %k: f32[1,1,6,8], %v: f32[1,1,6,8], %m: f32[3,6]) -> %y { %y = Attention %q, %k, %v, "
      "%m }");
  auto executable = *compiled(*backend, std::move(graph));
  std::mt19937 random(7);
  std::vector<Datum> inputs;
  for (const Dims& dims : {Dims{1, 1, 4, 8}, Dims{1, 1, 6, 8}, Dims{1, 1, 6, 8}, Dims{3, 6}})
    inputs.emplace_back(tenon::testing::random_tensor(random, kF32, dims));
  const auto got = run_on(*stream, *executable, inputs);
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().to_string().find("attn_mask [3, 6] does not broadcast"), std::string::npos)
      << got.error().to_string();
}

}  // namespace
}  // namespace tenon::opencl::testing
