// Random graphs as machine code against the reference: every snippet on buffers that end at guard pages, its work cut
// into pieces, on both instruction sets.
//
// TENON_FUZZ_SEEDS sets how many seeds each test takes, TENON_FUZZ_FIRST the first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>

#include <support_lib/guarded.hpp>
#include <support_lib/random_dag.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/snippet/canonical.hpp>
#include <tenon/snippet/params.hpp>
#include <tenon/snippet/subgraph.hpp>
#include <tenon/snippet/tokenize.hpp>
#include <tenon/tensor/compare.hpp>

#include "x86/compiler.hpp"
#include "x86/kernel_support.hpp"

namespace tenon::x86 {
namespace {

using tenon::testing::GuardAt;
using tenon::testing::Guarded;
using tenon::testing::pick;

uint32_t from_environment(const char* name, uint32_t fallback) {
  const char* text = std::getenv(name);
  return text ? static_cast<uint32_t>(std::strtoul(text, nullptr, 10)) : fallback;
}

// So small that random graphs have code of all forms: for tensors in the caches, and beyond either.
TargetDescription with_small_caches(TargetDescription target) {
  target.memories = {{.name = "l2", .size_bytes = 100}, {.name = "l3", .size_bytes = 200}};
  return target;
}

// A graph on one instruction set, snippet by snippet.
class Runner {
 public:
  Runner(Isa isa, bool contract)
      : compiler_(with_small_caches(testing::target_of(isa)), **jitter_table(), {.contract = contract}) {}

  // Snippets of the graph.
  size_t tokenize(Graph& graph) {
    snippet::TokenizeOptions options;
    options.can_emit = [&](const codegen::Signature& s) { return compiler_.can_emit(s); };
    auto made = snippet::tokenize_snippets(graph, options);
    TENON_CHECK(made.ok(), made.ok() ? "" : made.error().to_string());
    return *made;
  }

  std::vector<Tensor> run(const Graph& graph, const std::vector<Datum>& inputs, std::mt19937& random) {
    std::map<const Value*, Tensor> values;
    for (size_t i = 0; i < inputs.size(); ++i) values[graph.body().input(i)] = inputs[i].tensor();
    for (const Op& op : graph.body()) {
      if (const Tensor* constant = isa<Constant>(op) ? constant_of(op.result(0)) : nullptr) {
        values[op.result(0)] = *constant;
        continue;
      }
      std::vector<Tensor> results =
          isa<snippet::Subgraph>(op) ? run_snippet(op, values, random) : run_reference(op, values);
      for (size_t i = 0; i < results.size(); ++i) values[op.result(i)] = results[i];
    }
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < graph.body().output_count(); ++i) outputs.push_back(values.at(graph.body().output(i)));
    return outputs;
  }

  size_t snippets = 0, past_caches = 0;  // that ran; whose stores might go past the caches

 private:
  static std::vector<Tensor> run_reference(const Op& op, const std::map<const Value*, Tensor>& values) {
    std::vector<Datum> operands;
    for (size_t i = 0; i < op.operand_count(); ++i)
      operands.emplace_back(op.operand(i) ? Datum(values.at(op.operand(i))) : Datum());
    auto made = evaluate(op.name(), operands, op.attributes(), op.result_count());
    TENON_CHECK(made.ok(), made.ok() ? "" : made.error().to_string());
    std::vector<Tensor> results;
    for (const Datum& datum : *made) results.push_back(datum.tensor());
    return results;
  }

  std::vector<Tensor> run_snippet(const Op& op, const std::map<const Value*, Tensor>& values, std::mt19937& random) {
    ++snippets;
    auto body = snippet::make_body(op);
    TENON_CHECK(body.ok(), body.ok() ? "" : body.error().to_string());
    auto code = compiler_.compile_snippet(*body);
    TENON_CHECK(code.ok(), code.ok() ? "" : code.error().to_string());
    std::deque<Guarded<std::byte>> buffers;
    std::vector<Dims> shapes;
    std::vector<void*> addresses;
    for (const size_t operand : snippet::body_operands(op)) {
      const Tensor& tensor = values.at(op.operand(operand));
      buffers.emplace_back(std::span<const std::byte>(tensor.data(), tensor.bytes()));
      addresses.push_back(buffers.back().data());
      shapes.push_back(tensor.dims());
    }
    std::vector<Tensor> results;
    for (size_t i = 0; i < op.result_count(); ++i) {
      const Type& type = op.result(i)->type();
      results.push_back(*Tensor::zeros(type.element(), *type.shape().static_dims()));
      buffers.emplace_back(results.back().bytes(), pick(random, 0, 1) ? GuardAt::end : GuardAt::lines);
      std::memset(buffers.back().data(), 0xa5, results.back().bytes());
      addresses.push_back(buffers.back().data());
      shapes.push_back(results.back().dims());
    }
    call(**code, shapes, addresses, random);
    for (size_t i = 0; i < results.size(); ++i)
      std::memcpy(results[i].mutable_data(), addresses[addresses.size() - results.size() + i], results[i].bytes());
    return results;
  }

  // In pieces, in any order, each with scratch memory of its own.
  void call(const CompiledSnippet& code, const std::vector<Dims>& shapes, const std::vector<void*>& addresses,
            std::mt19937& random) {
    auto plan = snippet::CallPlan::make(code.body, code.kernel, shapes);
    TENON_CHECK(plan.ok(), plan.ok() ? "" : plan.error().to_string());
    if (plan->empty()) return;
    const snippet::Split split = plan->split(pick(random, 1, 4), 1);
    std::vector<int64_t> order(static_cast<size_t>(split.chunks()));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::shuffle(order.begin(), order.end(), random);
    Guarded<std::byte> scratch((plan->scratch_bytes() + 63) / 64 * 64);
    std::vector<int64_t> words(plan->words());
    const auto run = any_code(code, *plan, addresses, random);
    for (const int64_t chunk : order) {
      std::memset(scratch.data(), 0xff, scratch.values().size());
      plan->fill(words, addresses, scratch.data(), split, chunk);
      run(words.data());
    }
  }

  using Code = void (*)(const int64_t*);
  Code any_code(const CompiledSnippet& code, const snippet::CallPlan& plan, const std::vector<void*>& addresses,
                std::mt19937& random) {
    std::vector<Code> codes = {code.run};
    for (const auto& variant : code.variants) {
      bool serves = true;
      for (size_t i = code.body.inputs.size(); variant.past_caches && i < addresses.size(); ++i)
        serves &= plan.rows_aligned(i, kAlignBytes) && reinterpret_cast<uintptr_t>(addresses[i]) % kAlignBytes == 0;
      if (serves) codes.push_back(variant.run);
      past_caches += serves && variant.past_caches;
    }
    return codes[static_cast<size_t>(pick(random, 0, static_cast<int>(codes.size()) - 1))];
  }

  Compiler compiler_;
};

std::vector<Tensor> on_reference(const Graph& graph, const std::vector<Datum>& inputs) {
  auto interpreter = Interpreter::prepare(graph);
  TENON_CHECK(interpreter.ok(), interpreter.ok() ? "" : interpreter.error().to_string());
  auto made = (*interpreter)->run(inputs);
  TENON_CHECK(made.ok(), made.ok() ? "" : made.error().to_string());
  std::vector<Tensor> outputs;
  for (const Datum& datum : *made) outputs.push_back(datum.tensor());
  return outputs;
}

class SnippetFuzz : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  int lanes() const { return lanes_of(GetParam(), kF32); }
};

// No contraction, no reordered sums: bit for bit, but for the bits of a NaN.
TEST_P(SnippetFuzz, ExactOperatorsHaveTheBitsOfTheReference) {
  Runner runner(GetParam(), false);
  const uint32_t first = from_environment("TENON_FUZZ_FIRST", 1), seeds = from_environment("TENON_FUZZ_SEEDS", 60);
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    tenon::testing::RandomDag dag({.seed = seed, .exact = true, .lanes = lanes()});
    auto graph = dag.build();
    const std::vector<Datum> inputs = dag.inputs(*graph);
    const std::vector<Tensor> expected = on_reference(*graph, inputs);
    auto fused = graph->clone();
    runner.tokenize(*fused);
    ASSERT_TRUE(verify(*fused).ok()) << verify(*fused).error().to_string();
    std::mt19937 random(seed);
    const std::vector<Tensor> got = runner.run(*fused, inputs, random);
    for (size_t i = 0; i < got.size(); ++i) {
      const Comparison comparison = compare(got[i], expected[i], {.rtol = 0, .atol = 0});
      ASSERT_TRUE(comparison.equal) << "output " << i << ": " << comparison.difference << "\n"
                                    << print(*graph) << print(*fused);
    }
  }
  EXPECT_GT(runner.snippets, seeds / 2);
  EXPECT_GT(runner.past_caches, seeds / 20);
}

// The graph with each operator's result off by a few units in the last place.
std::unique_ptr<Graph> shaken(const Graph& graph, std::mt19937& random) {
  auto moved = graph.clone();
  std::vector<Op*> ops;
  for (Op& op : moved->body())
    if (!isa<Constant>(op)) ops.push_back(&op);
  for (Op* op : ops) {
    Builder builder(moved->body(), op->next());
    Value* factor = builder.constant_scalar(kF32, 1 + static_cast<double>(pick(random, -4, 4)) * 0x1p-23);
    const std::vector<Use*> uses = op->result(0)->uses();
    auto product = builder.op("Mul", {op->result(0), factor});
    TENON_CHECK(product.ok(), product.ok() ? "" : product.error().to_string());
    for (Use* use : uses) use->user()->set_operand(use->index(), *product);
  }
  return moved;
}

// Functions within their ulp, sums in another order, contraction. How much of that a graph turns into what depends on
// the graph: the yardstick is what the reference's own results do when inputs change by two units in the last place and
// the result of each operator by four. On top of it 16 units of the largest value, for what happens to be steady.
TEST_P(SnippetFuzz, SmoothOperatorsAreAsCloseAsTheGraphAllows) {
  Runner runner(GetParam(), true);
  const uint32_t first = from_environment("TENON_FUZZ_FIRST", 1), seeds = from_environment("TENON_FUZZ_SEEDS", 60);
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    tenon::testing::RandomDag dag({.seed = seed, .exact = false, .lanes = lanes()});
    auto graph = dag.build();
    const std::vector<Datum> inputs = dag.inputs(*graph);
    const std::vector<Tensor> expected = on_reference(*graph, inputs);
    std::mt19937 random(seed);
    std::vector<std::vector<Tensor>> shaken_results;
    for (int k = 0; k < 4; ++k) {
      std::vector<Datum> moved;
      for (const Datum& input : inputs) {
        Tensor tensor = *input.tensor().clone();
        for (float& x : tensor.mutable_as<float>()) x *= 1 + static_cast<float>(pick(random, -2, 2)) * 0x1p-23f;
        moved.emplace_back(std::move(tensor));
      }
      shaken_results.push_back(on_reference(*shaken(*graph, random), moved));
    }
    auto fused = graph->clone();
    runner.tokenize(*fused);
    const std::vector<Tensor> got = runner.run(*fused, inputs, random);
    for (size_t i = 0; i < got.size(); ++i) {
      const auto a = got[i].as<float>(), b = expected[i].as<float>();
      float largest = 0;
      for (const float x : b)
        if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
      double moved = 0;
      for (const auto& other : shaken_results)
        for (size_t e = 0; e < b.size(); ++e)
          if (std::isfinite(b[e]) && std::isfinite(other[i].as<float>()[e]))
            moved = std::max(moved, std::abs(double{other[i].as<float>()[e]} - b[e]));
      const double allowed = 8 * moved + 16 * 0x1p-23 * largest + 1e-37;
      for (size_t e = 0; e < b.size(); ++e) {
        if (!std::isfinite(b[e]) || std::isnan(a[e])) {
          // Where the reference's own neighbours overflow or not, either is right.
          const bool steady = std::all_of(shaken_results.begin(), shaken_results.end(), [&](const auto& other) {
            return std::isfinite(other[i].template as<float>()[e]) == std::isfinite(b[e]);
          });
          if (steady) {
            ASSERT_EQ(std::isnan(a[e]), std::isnan(b[e])) << "output " << i << " element " << e << "\n"
                                                          << print(*graph);
          }
          continue;
        }
        ASSERT_LE(std::abs(double{a[e]} - b[e]), allowed)
            << "output " << i << " element " << e << ": " << a[e] << " against " << b[e] << "\n"
            << print(*graph) << print(*fused);
      }
    }
  }
  EXPECT_GT(runner.snippets, seeds / 2);
  EXPECT_GT(runner.past_caches, seeds / 20);
}

INSTANTIATE_TEST_SUITE_P(Both, SnippetFuzz, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
