// Random products and convolutions followed by random elementwise operators, compared with the reference bit for bit:
// operands are small integers, so that every order of a sum gives the same.
//
// TENON_FUZZ_SEEDS sets the number of seeds, TENON_FUZZ_FIRST the first. One graph has kProducts of them, because a
// device's compiler is slow for each program.
#include <support_lib/environment.hpp>

#include "fuzz_support.hpp"
#include "graph_support.hpp"

namespace tenon::opencl::testing {
namespace {

constexpr int kProducts = 6;

class RandomProducts : public RandomLines {
 public:
  using RandomLines::RandomLines;

  std::string text() {
    std::string outputs;
    for (int i = 0; i < kProducts; ++i) {
      Dims dims;
      std::string value = one_of(3) == 0 ? matmul(dims) : one_of(3) == 0 ? gemm(dims) : conv(dims);
      for (int64_t left = one_of(6); left > 0; --left) value = elementwise(value, dims);
      outputs += str(i ? ", " : "", value);
    }
    return graph(outputs);
  }

 private:
  std::string matmul(Dims& dims) {
    const int64_t m = extent(70), k = extent(50), n = extent(90);
    Dims a{m, k}, b{k, n};
    dims = {m, n};
    if (one_of(2)) {
      const int64_t batch = extent(3);
      a.insert(a.begin(), one_of(2) ? batch : 1), dims.insert(dims.begin(), batch);
      if (a[0] == 1 || one_of(2)) b.insert(b.begin(), batch);
    }
    return add(str("MatMul ", add_input(a), ", ", add_input(b)));
  }

  std::string gemm(Dims& dims) {
    const int64_t m = extent(40), k = extent(80), n = extent(60);
    const int64_t trans_a = one_of(2), trans_b = one_of(2);
    dims = {m, n};
    std::string text =
        str("Gemm ", add_input(trans_a ? Dims{k, m} : Dims{m, k}), ", ", add_input(trans_b ? Dims{n, k} : Dims{k, n}));
    const Dims c[] = {{n}, {m, 1}, {m, n}, {1}};
    if (one_of(4)) text += str(", ", add_input(c[one_of(4)]));
    return add(str(text, " {transA = ", trans_a, ", transB = ", trans_b, ", alpha = 2.0, beta = -1.0}"));
  }

  std::string conv(Dims& dims) {
    const int64_t rank = 1 + one_of(3), group = one_of(3) ? 1 : 1 + one_of(4);
    const int64_t channels = extent(12), outputs = extent(40) * (one_of(4) ? 1 : 2);
    Dims x{1 + one_of(2), channels * group}, w{outputs * group, channels};
    dims = {x[0], outputs * group};
    std::string strides, dilations, begin, end;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t kernel = 1 + one_of(4), stride = 1 + one_of(3), dilation = 1 + one_of(2);
      const int64_t low = one_of(kernel + 1), high = one_of(kernel + 1), reach = (kernel - 1) * dilation + 1;
      const int64_t in = std::max<int64_t>(reach - low - high, 1) + one_of(d + 1 == rank ? 40 : 6);
      x.push_back(in), w.push_back(kernel), dims.push_back((in + low + high - reach) / stride + 1);
      const std::string comma = d ? ", " : "";
      strides += str(comma, stride), dilations += str(comma, dilation);
      begin += str(comma, low), end += str(", ", high);
    }
    std::string text = str("Conv ", add_input(x), ", ", add_input(w));
    if (one_of(2)) text += str(", ", add_input({outputs * group}));
    return add(str(text, " {group = ", group, ", strides = [", strides, "], dilations = [", dilations, "], pads = [",
                   begin, end, "]}"));
  }

  // Exact operators, with an operand that is broadcast along some dims.
  std::string elementwise(const std::string& value, const Dims& dims) {
    static constexpr const char* kUnary[] = {"Relu", "Neg", "Abs", "Ceil"};
    static constexpr const char* kBinary[] = {"Add", "Sub", "Max", "Min"};
    if (one_of(3) == 0) return add(str(kUnary[one_of(4)], " ", value));
    Dims other = dims;
    for (int64_t& extent : other)
      if (one_of(2)) extent = 1;
    while (!other.empty() && (other.front() == 1 || dims.size() > other.size()) && other.front() == 1 && one_of(2))
      other.erase(other.begin());
    const std::string operand = add_input(other);
    return one_of(2) ? add(str(kBinary[one_of(4)], " ", value, ", ", operand))
                     : add(str(kBinary[one_of(4)], " ", operand, ", ", value));
  }
};

class OpenclComputeFuzz : public OpenclTest {
 protected:
  void right(const TargetDescription& description, uint32_t seeds);
};

void OpenclComputeFuzz::right(const TargetDescription& description, uint32_t seeds) {
  auto backend = create_backend(guarded_target(description));
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  const uint32_t first = tenon::testing::first_seed();
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    RandomProducts products(seed);
    const std::string text = products.text();
    const auto graph = parse_graph(text);
    ASSERT_TRUE(graph.ok()) << graph.error().to_string() << "\n" << text;
    std::vector<Datum> inputs;
    for (size_t i = 0; i < products.inputs(); ++i) inputs.emplace_back(products.input(i));
    std::vector<OpProfile> profile;
    expect_reference(*stream, **backend, **graph, inputs, {.rtol = 0, .atol = 0}, &profile);
    EXPECT_EQ(profile.size(), static_cast<size_t>(kProducts)) << text;
    if (HasFailure()) return;
  }
}

TEST_F(OpenclComputeFuzz, RandomProductsWithEpiloguesHaveTheBitsOfTheReference) {
  right(cpu_target(), tenon::testing::seeds(3));
}

// Group sizes: that of targets/opencl-gpu.yaml, and one that is not a power of two.
TEST_F(OpenclComputeFuzz, SoTheyHaveInWorkGroups) {
  for (const char* group : {"64", "6"}) {
    SCOPED_TRACE(str("groups of ", group));
    TargetDescription groups = cpu_target();
    groups.options.add("work_group", Setting::word(group));
    groups.options.add("lanes", Setting::word("4"));
    right(groups, tenon::testing::seeds(1));
  }
}

}  // namespace
}  // namespace tenon::opencl::testing
