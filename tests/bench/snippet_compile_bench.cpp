// The cost of compiling a kernel, without any cache: processor time of one thread, medians.
//
//   snippet_compile_bench [ROUNDS [FILTER]]     FILTER: what a case's name or target contains
//
//   20 operators     body, lowering, passes, registers, code, and memory that may run, of one snippet; of known
//                    extents, and of open ones: what compiling makes, and with what the first large calls make. Of
//                    floats that are gated; and with a normalisation, a softmax, casts to narrow types, two outputs and
//                    operands that are broadcast along rows, down columns and along both
//   1000 and more    tokenised and compiled: as one snippet, and as many of ten with matrix products between them; of
//                    bytes and booleans, whose vectors are joined by fours
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include <tenon/ir/text.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>
#include <tenon/support/check.hpp>
#include <tenon/support/median.hpp>
#include <tenon/support/str.hpp>
#include <tenon/target/load.hpp>

#include "interleaved.hpp"
#include "x86/code/jit_memory.hpp"
#include "x86/compiler.hpp"

namespace tenon::x86 {
namespace {

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  TENON_CHECK(graph.ok(), graph.ok() ? "" : graph.error().to_string());
  return *std::move(graph);
}

// Ten operators of a network on `x`, with values named after `block`.
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
  return parsed(str(text, "%y = Neg ", last, "\n}"));
}

// The same for bytes and booleans, with five operators per block.
std::unique_ptr<Graph> byte_network(int blocks) {
  std::string text = "graph @g(%x: u8[N], %a: u8[N], %b: u8[N]) -> %y {\n", last = "%x";
  for (int block = 0; block < blocks; ++block) {
    const auto name = [&](const char* what) { return str("%", what, block); };
    text += str(name("l"), " = Less ", last, ", %a\n", name("g"), " = Greater ", last, ", %b\n", name("c"), " = And ",
                name("l"), ", ", name("g"), "\n", name("w"), " = Where ", name("c"), ", %a, ", last, "\n", name("v"),
                " = Add ", name("w"), ", %b\n");
    last = name("v");
  }
  return parsed(str(text, "%y = BitwiseNot ", last, "\n}"));
}

// A skip connection, its normalisation and a gate.
constexpr std::string_view kNormalised =
    R"(graph @g(%x: f32[N,768], %r: f32[N,768], %b: f32[768], %s: f32[768], %o: f32[768]) -> %y {
  %v0 = Add %x, %b
  %v1 = Add %v0, %r
  %v2 = LayerNormalization %v1, %s, %o {axis = -1}
  %v3 = Relu %v2
  %v4 = Mul %v3, %v1
  %v5 = Sigmoid %v4
  %v6 = Mul %v5, %v4
  %v7 = Sub %v6, %b
  %v8 = Tanh %v7
  %v9 = Add %v8, %v3
  %v10 = Abs %v9
  %v11 = Max %v10, %v6
  %v12 = Mul %v11, %s
  %v13 = Add %v12, %o
  %v14 = Erf %v13
  %v15 = Mul %v14, %v12
  %v16 = Sub %v15, %r
  %v17 = Neg %v16
  %v18 = Sqrt %v10
  %y = Add %v17, %v18
})";

// Scores with a mask, their softmax, and operators after it.
constexpr std::string_view kSoftmax = R"(graph @g(%x: f32[B,H,N,M], %m: f32[B,1,1,M], %w: f32[H,1,1]) -> %y {
  %v0 = Mul %x, %w
  %v1 = Add %v0, %m
  %v2 = Tanh %v1
  %v3 = Mul %v2, %w
  %v4 = Sub %v3, %m
  %v5 = Abs %v4
  %v6 = Max %v5, %v1
  %v7 = Softmax %v6 {axis = -1}
  %v8 = Mul %v7, %v7
  %v9 = Add %v8, %v7
  %v10 = Sqrt %v9
  %v11 = Sub %v10, %w
  %v12 = Relu %v11
  %v13 = Mul %v12, %v7
  %v14 = Neg %v13
  %v15 = Exp %v14
  %v16 = Min %v15, %v8
  %v17 = Add %v16, %m
  %v18 = Mul %v17, %w
  %y = Abs %v18
})";

// Bytes and halves to floats and back, with two outputs, and with broadcast columns and rows.
constexpr std::string_view kCasts =
    R"(graph @g(%x: u8[N,64,M], %h: f16[N,64,M], %c: f32[64,1], %r: f32[M]) -> (%y, %z) {
  %v0 = Cast %x {to = type<f32[*]>}
  %v1 = Cast %h {to = type<f32[*]>}
  %v2 = Sub %v0, %c
  %v3 = Mul %v2, %r
  %v4 = Add %v3, %v1
  %v5 = Sigmoid %v4
  %v6 = Mul %v5, %v4
  %v7 = Greater %v6, %c
  %v8 = Where %v7, %v6, %v1
  %v9 = Floor %v8
  %v10 = Cast %v9 {to = type<i32[*]>}
  %v11 = Cast %v10 {to = type<f32[*]>}
  %v12 = Sub %v8, %v11
  %v13 = Mul %v12, %c
  %v14 = Add %v13, %r
  %v15 = Abs %v14
  %v16 = Min %v15, %v6
  %v17 = Div %v16, %c
  %y = Cast %v17 {to = type<i8[*]>}
  %z = Cast %v12 {to = type<f16[*]>}
})";

double median_ms(int rounds, const std::function<void()>& work) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const double begin = bench::now_us(/*processor_time=*/true);
    work();
    times.push_back((bench::now_us(/*processor_time=*/true) - begin) / 1e3);
  }
  return median(times);
}

struct Made {
  size_t snippets = 0, forms = 0;
};

// Compiles every kernel of the graph.
Made compile_all(const Graph& graph, const Compiler& compiler, Compiler::Forms forms) {
  Made made;
  for (const Op& op : graph.body()) {
    if (!isa<snippet::Subgraph>(op)) continue;
    const auto body = snippet::make_body(op);
    auto objects = body.ok() ? compiler.assemble_snippet(*body, forms) : body.error();
    TENON_CHECK(objects.ok(), objects.ok() ? "" : objects.error().to_string());
    for (CodeObject& object : *objects)
      TENON_CHECK(JitMemory::shared().add(std::make_shared<CodeObject>(std::move(object))).ok(), "no memory for code");
    ++made.snippets;
    made.forms += objects->size();
  }
  return made;
}

struct Subject {
  std::string name;
  std::unique_ptr<Graph> graph;
  bool tokenised = false;  // already, when the clock starts
  Compiler::Forms forms = Compiler::Forms::first;
};

std::vector<Subject> subjects() {
  std::vector<Subject> made;
  made.push_back({"20 operators, known extents", network(2, false, "256"), true, Compiler::Forms::all});
  const std::pair<const char*, std::function<std::unique_ptr<Graph>()>> open[] = {
      {"20 operators, open extents", [] { return network(2, false, "N"); }},
      {"20 operators, casts, two outputs", [] { return parsed(kCasts); }},
      {"20 operators, normalised", [] { return parsed(kNormalised); }},
      {"20 operators, softmax", [] { return parsed(kSoftmax); }}};
  for (const auto& [name, graph] : open) {
    made.push_back({name, graph(), true});
    made.push_back({str(name, ", all forms"), graph(), true, Compiler::Forms::all});
  }
  made.push_back({"1000 operators, one snippet", network(100, false, "N")});
  made.push_back({"1000 operators, products between", network(100, true, "N")});
  made.push_back({"10000 operators, one snippet", network(1000, false, "N")});
  made.push_back({"10000 operators, products between", network(1000, true, "N")});
  made.push_back({"1000 operators of bytes", byte_network(200)});
  made.push_back({"4000 operators of bytes", byte_network(800)});
  return made;
}

void measure(const Subject& subject, const TargetDescription& target, int rounds) {
  const Compiler compiler(target, **jitter_table());
  snippet::TokenizeOptions options;
  options.can_emit = [&](const codegen::Signature& s) { return compiler.can_emit(s); };
  const auto tokenise = [&](Graph& graph) {
    TENON_CHECK(snippet::tokenize_snippets(graph, options).ok(), "tokenising");
  };
  const auto done = subject.graph->clone();
  tokenise(*done);
  Made made;
  const double ms = median_ms(rounds, [&] {
    if (subject.tokenised) return void(made = compile_all(*done, compiler, subject.forms));
    const auto graph = subject.graph->clone();
    tokenise(*graph);
    made = compile_all(*graph, compiler, subject.forms);
  });
  std::printf("%-12s %-44s %4zu snippets %4zu forms %9.3f ms\n", target.name.c_str(), subject.name.c_str(),
              made.snippets, made.forms, ms);
  std::fflush(stdout);
}

}  // namespace
}  // namespace tenon::x86

int main(int count, char** arguments) {
  using namespace tenon::x86;
  const int rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 21;
  const std::string filter = count > 2 ? arguments[2] : "";
  for (const char* name : {"x86-avx2", "x86-avx512"}) {
    const auto target = tenon::load_target(tenon::str(TENON_SOURCE_DIR "/targets/", name, ".yaml"));
    TENON_CHECK(target.ok(), target.ok() ? "" : target.error().to_string());
    for (const Subject& subject : subjects())
      if (tenon::str(name, " ", subject.name).find(filter) != std::string::npos)
        measure(subject, *target, subject.tokenised ? rounds : (rounds + 3) / 4);
  }
}
