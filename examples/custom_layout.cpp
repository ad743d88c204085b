// Sets layouts on values of a small model by name: the algorithm and the results are unchanged.
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <tenon/ir/text.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/reference/interpreter.hpp>

#include "exit_code.hpp"

using namespace tenon;

namespace {

// A convolution with its activation and pool, and bits packed from the positive values.
constexpr std::string_view kModel = R"(
graph @block(%image: f32[1,6,8,8], %weight: f32[17,6,3,3]) -> (%pool_out, %positive) {
  %conv1_out = Conv %image, %weight {pads = [1, 1, 1, 1]} : f32[1,17,8,8]
  %relu_out = Relu %conv1_out : f32[1,17,8,8]
  %pool_out = MaxPool %relu_out {kernel_shape = [2, 2], strides = [2, 2]} : f32[1,17,4,4]
  %positive = Cast %relu_out {to = type<u4[*]>} : u4[1,17,8,8]
}
)";

Tensor random_tensor(std::mt19937& random, Dims dims) {
  Tensor tensor = *Tensor::zeros(kF32, std::move(dims));
  for (float& value : tensor.mutable_as<float>()) value = static_cast<float>(random() % 17) - 8;
  return tensor;
}

Result<void> put_layouts(Graph& graph) {
  TENON_OK(set_layout(graph, "image", "NHWC"));                              // as text
  TENON_OK(set_layout(graph, "conv1_out", LayoutName::NCHW16c));             // by its usual name: blocks, with padding
  TENON_OK(set_layout(graph, "relu_out", "[4h]NCHW"));                       // rows are distributed over 4 banks
  TENON_OK(set_layout(graph, "positive", "NHWC<6c:32>"));                    // 6 channels of 4 bits share a 32-bit word
  TENON_OK(set_layout(graph, "weight", "(o, i, h, w) -> (h, w, i, o)"));     // an index map
  return set_layout(graph, "pool_out", [](Expr n, Expr c, Expr h, Expr w) {  // the same from C++
    LayoutMap map;
    map.address = {n, floordiv(c, 8), h, w};
    map.lanes = {mod(c, 8)};
    return map;
  });
}

Result<void> run() {
  TENON_TRY(plain, parse_graph(kModel, "kModel"));
  TENON_OK(verify(*plain));
  const auto laid_out = plain->clone();
  TENON_OK(put_layouts(*laid_out));
  TENON_OK(verify(*laid_out));
  std::printf("%s\n", print(*laid_out).c_str());

  const auto wrong = set_layout(*laid_out, "conv1_ot", "NHWC");
  if (wrong.ok()) return error(Code::internal, "a value that is not there got a layout");
  std::printf("a wrong name: %s\n\n", wrong.error().to_string().c_str());

  std::mt19937 random(1);
  const std::vector<Datum> inputs = {random_tensor(random, {1, 6, 8, 8}), random_tensor(random, {17, 6, 3, 3})};
  TENON_TRY(before, Interpreter::prepare(*plain));
  // With NaNs in all padding, to show that nothing depends on its content.
  TENON_TRY(after, Interpreter::prepare(*laid_out, {.poison_padding = PoisonPadding::nan}));
  TENON_TRY(wanted, before->run(inputs));
  TENON_TRY(got, after->run(inputs));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool same = wanted[i].tensor().identical(got[i].tensor());
    std::printf("output '%s': %s\n", plain->body().output_name(i).c_str(), same ? "equal" : "DIFFERENT");
    if (!same) return error(Code::internal, "layouts changed a result");
  }
  return {};
}

}  // namespace

int main() { return example::exit_code(run()); }
