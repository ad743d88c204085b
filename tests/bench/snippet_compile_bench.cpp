// What making a kernel takes, without any cache: processor time of one thread, medians.
//
//   snippet_compile_bench [ROUNDS]
//
//   20 operators     body, lowering, passes, registers, code, and memory that may run, of one snippet; of known
//                    extents, and of open ones: what compiling makes, and with what the first large calls make
//   1000 operators   tokenised and compiled: as one snippet, and as 100 of ten with matrix products between them; of
//                    bytes and booleans, whose vectors are joined by fours
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include <tenon/ir/text.hpp>
#include <tenon/snippet/canonical.hpp>
#include <tenon/snippet/subgraph.hpp>
#include <tenon/snippet/tokenize.hpp>
#include <tenon/support/check.hpp>
#include <tenon/support/median.hpp>
#include <tenon/support/str.hpp>

#include "interleaved.hpp"
#include "x86/code/jit_memory.hpp"
#include "x86/compiler.hpp"

namespace tenon::x86 {
namespace {

// Ten operators of a network on `x`, of values named after `block`.
std::string block_text(const std::string& x, int block, std::string& out) {
  const auto name = [&](int i) { return str("%v", block, "_", i); };
  out = name(9);
  return str(name(0), " = Add ", x, ", %b\n", name(1), " = Relu ", name(0), "\n", name(2), " = Mul ", name(1), ", ", x,
             "\n", name(3), " = Sigmoid ", name(2), "\n", name(4), " = Mul ", name(3), ", ", name(2), "\n", name(5),
             " = Sub ", name(4), ", %b\n", name(6), " = Tanh ", name(5), "\n", name(7), " = Add ", name(6), ", ",
             name(1), "\n", name(8), " = Abs ", name(7), "\n", name(9), " = Max ", name(8), ", ", name(4), "\n");
}

std::unique_ptr<Graph> network(int blocks, bool products, std::string_view rows) {
  std::string text = str("graph @g(%x: f32[", rows, ",64], %b: f32[64], %w: f32[64,64]) -> %y {\n"), last = "%x";
  for (int block = 0; block < blocks; ++block) {
    std::string out;
    text += block_text(last, block, out);
    if (products) text += str("%p", block, " = MatMul ", out, ", %w\n");
    last = products ? str("%p", block) : out;
  }
  auto graph = parse_graph(str(text, "%y = Neg ", last, "\n}"));
  TENON_CHECK(graph.ok(), graph.ok() ? "" : graph.error().to_string());
  return *std::move(graph);
}

// The same of bytes and booleans, five operators a block.
std::unique_ptr<Graph> byte_network(int blocks) {
  std::string text = "graph @g(%x: u8[N], %a: u8[N], %b: u8[N]) -> %y {\n", last = "%x";
  for (int block = 0; block < blocks; ++block) {
    const auto name = [&](const char* what) { return str("%", what, block); };
    text += str(name("l"), " = Less ", last, ", %a\n", name("g"), " = Greater ", last, ", %b\n", name("c"), " = And ",
                name("l"), ", ", name("g"), "\n", name("w"), " = Where ", name("c"), ", %a, ", last, "\n", name("v"),
                " = Add ", name("w"), ", %b\n");
    last = name("v");
  }
  auto graph = parse_graph(str(text, "%y = BitwiseNot ", last, "\n}"));
  TENON_CHECK(graph.ok(), graph.ok() ? "" : graph.error().to_string());
  return *std::move(graph);
}

double median_ms(int rounds, const std::function<void()>& work) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const double begin = bench::now_us(/*processor_time=*/true);
    work();
    times.push_back((bench::now_us(/*processor_time=*/true) - begin) / 1e3);
  }
  return median(times);
}

// Every kernel of the graph, ready to run.
size_t compile_all(const Graph& graph, const Compiler& compiler, Compiler::Forms forms) {
  size_t made = 0;
  for (const Op& op : graph.body()) {
    if (!isa<snippet::Subgraph>(op)) continue;
    const auto body = snippet::make_body(op);
    auto objects = body.ok() ? compiler.assemble_snippet(*body, forms) : body.error();
    TENON_CHECK(objects.ok(), objects.ok() ? "" : objects.error().to_string());
    for (CodeObject& object : *objects)
      TENON_CHECK(JitMemory::shared().add(std::make_shared<CodeObject>(std::move(object))).ok(), "no memory for code");
    ++made;
  }
  return made;
}

struct Subject {
  const char* name;
  int blocks;      // of ten operators, or five of bytes
  bool products;   // between the blocks
  bool tokenised;  // already, when the clock starts
  std::string_view rows = "N";
  Compiler::Forms forms = Compiler::Forms::first;
  bool bytes = false;
};

void measure(const Subject& subject, Isa isa, int rounds) {
  TargetDescription target;
  target.name = isa_name(isa);
  target.features = {"avx", "avx2", "fma", "f16c", "bmi2"};
  if (isa == Isa::avx512)
    target.features.insert(target.features.end(), {"avx512f", "avx512bw", "avx512dq", "avx512vl"});
  target.memories = {{.name = "l2", .size_bytes = 1 << 20}, {.name = "l3", .size_bytes = 32 << 20}};
  const Compiler compiler(target, **jitter_table());
  snippet::TokenizeOptions options;
  options.can_emit = [&](const codegen::Signature& s) { return compiler.can_emit(s); };
  const auto tokenise = [&](Graph& graph) {
    TENON_CHECK(snippet::tokenize_snippets(graph, options).ok(), "tokenising");
  };
  const auto plain =
      subject.bytes ? byte_network(subject.blocks) : network(subject.blocks, subject.products, subject.rows);
  const auto done = plain->clone();
  tokenise(*done);
  size_t made = 0;
  const double ms = median_ms(rounds, [&] {
    if (subject.tokenised) return void(made = compile_all(*done, compiler, subject.forms));
    const auto graph = plain->clone();
    tokenise(*graph);
    made = compile_all(*graph, compiler, subject.forms);
  });
  std::printf("%-8s %-38s %4zu snippets %9.3f ms\n", std::string(isa_name(isa)).c_str(), subject.name, made, ms);
}

}  // namespace
}  // namespace tenon::x86

int main(int count, char** arguments) {
  using namespace tenon::x86;
  const int rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 21;
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    measure({"20 operators, known extents", 2, false, true, "256", Compiler::Forms::all}, isa, rounds);
    measure({"20 operators, open extents", 2, false, true}, isa, rounds);
    measure({"20 operators, open extents, all forms", 2, false, true, "N", Compiler::Forms::all}, isa, rounds);
    measure({"1000 operators, one snippet", 100, false, false}, isa, (rounds + 3) / 4);
    measure({"1000 operators, products between", 100, true, false}, isa, (rounds + 3) / 4);
    for (const auto& [name, blocks] : {std::pair("1000 operators of bytes", 200), {"4000 operators of bytes", 800}})
      measure({.name = name, .blocks = blocks, .bytes = true}, isa, (rounds + 3) / 4);
  }
}
