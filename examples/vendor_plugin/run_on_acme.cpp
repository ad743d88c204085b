// run_on_acme PLUGIN.so TARGET.yaml: how an integrator uses the plugin. Part of the graph runs on the device, the rest
// on the reference; the results must equal those of the reference alone.
#include <cstdio>
#include <string>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/tensor/compare.hpp>

#include "acme_ops.hpp"

namespace {

constexpr std::string_view kModel = R"(graph @example(%x: f32[2,3]) -> %z {
  %two = Constant {value = dense<f32[]: 2.0>}
  %one = Constant {value = dense<f32[]: 1.0>}
  %m = Mul %x, %two "scale"
  %a = Add %m, %one "shift"
  %r = Relu %a "act"
  %e = Exp %r "exp"
  %z = Add %e, %x "skip"
})";

tenon::Result<bool> run(const std::string& plugin, const std::string& yaml) {
  tenon::TargetRegistry registry({.paths = {plugin}});
  const tenon::Datum x = tenon::Tensor::of<float>({2, 3}, {-3, -1, 0, 0.25f, 1, 2});
  std::vector<std::vector<tenon::Datum>> outputs;
  std::vector<tenon::OpProfile> ran;
  for (const std::string& target : {yaml, std::string("reference")}) {
    TENON_TRY(graph, tenon::parse_graph(kModel));
    TENON_TRY(model, tenon::compile(std::move(graph), registry, {.targets = {target}}));
    std::printf("%s", model->placement().to_string().c_str());
    tenon::RunOptions options;
    if (target == yaml) options.profile = &ran;
    TENON_TRY(made, model->run({&x, 1}, options));
    outputs.push_back(std::move(made));
  }
  bool fused = false;
  for (const auto& op : ran) {
    std::printf("ran %s\n", op.op.c_str());
    fused = fused || op.op == acme::ScaleShift::kName;
  }
  const auto comparison = tenon::compare(outputs[0][0], outputs[1][0], {.rtol = 1e-6, .atol = 1e-6});
  std::printf("fused: %s, results: %s\n", fused ? "yes" : "no",
              comparison.equal ? "equal" : comparison.difference.c_str());
  return fused && comparison.equal;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: run_on_acme PLUGIN.so TARGET.yaml\n");
    return 2;
  }
  const auto done = run(argv[1], argv[2]);
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return done.ok() && *done ? 0 : 1;
}
