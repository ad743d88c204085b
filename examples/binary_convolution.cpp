// A binary convolution in any layout: the algorithm is written once, on logical indices (binary_convolution.hpp), and
// layouts are set on its values. If both operands are packed, the operator's evaluator runs on whole words. The same
// words as integers in a graph of generic operators (binary_convolution_graph.hpp) run on any target, as generated code
// on targets that generate code.
#include "binary_convolution.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ops/infer_util.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/tensor/reorder.hpp>

#include "binary_convolution_graph.hpp"
#include "exit_code.hpp"

using namespace tenon;

namespace example {

constexpr std::string_view kName = "example.BinaryConv";
constexpr ElementType kBit(ElementKind::uint, 1);
constexpr TypeSet kBits("u1 tensors", [](ElementType element) { return element == kBit; });

BinaryConvolution sizes_of(const Dims& a, const Dims& f) {
  return {.bs = a[0], .ic = a[1], .ih = a[2], .iw = a[3], .oc = f[0], .kh = f[2], .kw = f[3]};
}

Result<std::vector<Type>> infer(const InferContext& context) {
  const auto a = context.type(0).shape().static_dims(), f = context.type(1).shape().static_dims();
  if (!a || !f || a->size() != 4 || f->size() != 4) {
    return error(Code::invalid_argument, context.op().describe(),
                 " needs two operands of rank 4 and known extents, not ", context.type(0), " and ", context.type(1));
  }
  const BinaryConvolution p = sizes_of(*a, *f);
  if ((*a)[1] != (*f)[1] || p.oh() < 1 || p.ow() < 1) {
    return error(Code::invalid_argument, context.op().describe(), ": filters ", context.type(1), " do not fit ",
                 context.type(0), "; both have as many channels, and the window lies inside of the image");
  }
  return one_type(kI32, Shape(p.b_shape()));
}

// An operand's bits in the layout of its value.
struct LaidOut {
  Layout layout;
  std::vector<std::byte> bytes;
  BitTensor bits() const { return {layout, bytes}; }
};

// An evaluator gets row-major tensors.
Result<LaidOut> lay_out(const Value& value, const Tensor& tensor) {
  TENON_TRY(plain, Layout::row_major(tensor.dims(), 1));
  LaidOut out{plain, std::vector<std::byte>(tensor.data(), tensor.data() + tensor.bytes())};
  if (!value.layout()) return out;
  const ValueLayout& wanted = *value.layout();
  TENON_TRY(layout, Layout::parse(wanted.text, wanted.dims, tensor.dims(), 1));
  TENON_TRY(plan, plan_reorder(plain, layout));
  out.bytes.assign(static_cast<size_t>(layout.bytes()), std::byte{0});
  TENON_OK(plan.run({tensor.data(), tensor.bytes()}, out.bytes));
  out.layout = std::move(layout);
  return out;
}

// Whether each word contains the channels of one group, starting at the first one.
bool holds_channel_groups(const Layout& layout) {
  return layout.lanes() > 1 && layout.lanes() <= 64 && layout.word_bits() <= 64 && !layout.lane_msb() &&
         layout.lanes_along(layout.dims()[1]) == layout.lanes();
}

Result<void> evaluate(EvalContext& context) {
  const Tensor &a = context.tensor(0), &f = context.tensor(1);
  const BinaryConvolution p = sizes_of(a.dims(), f.dims());
  TENON_TRY(laid_a, lay_out(*context.op().operand(0), a));
  TENON_TRY(laid_f, lay_out(*context.op().operand(1), f));
  TENON_TRY(output, context.output(0));
  const auto values = output->mutable_as<int32_t>();
  const auto b = [&](int64_t n, int64_t c, int64_t h, int64_t w) -> int32_t& {
    return values[static_cast<size_t>(((n * p.oc + c) * p.oh() + h) * p.ow() + w)];
  };
  const BitTensor a_bits = laid_a.bits(), f_bits = laid_f.bits();
  const bool packed = holds_channel_groups(laid_a.layout) && holds_channel_groups(laid_f.layout) &&
                      laid_a.layout.lanes() == laid_f.layout.lanes();
  if (!packed) {
    binary_convolution(p, a_bits, f_bits, b);
    return {};
  }
  const ChannelGroups groups = ChannelGroups::of(laid_a.layout, p.ic);
  if (context.attr<std::string>("groups", "vectors") == "vectors") {
    popcount_convolution(p, groups, WordVectors(a_bits), WordVectors(f_bits), b);
    return {};
  }
  TENON_TRY(a_integers, GroupIntegers::view(a_bits));
  TENON_TRY(f_integers, GroupIntegers::view(f_bits));
  popcount_convolution(p, groups, a_integers, f_integers, b);
  return {};
}

Result<void> register_operator() {
  TENON_OK(register_op(OpDef(kName)
                           .summary("ic * kh * kw - 2 * the number of bits in which the window of A differs from F")
                           .operand("a", "T")
                           .operand("f", "T")
                           .result("b", "U")
                           .types("T", kBits)
                           .types("U", kIntTypes)
                           .attribute("groups", std::string("vectors"))  // or "integers"
                           .traits(Trait::pure | Trait::layout_aware)
                           .infer(infer)));
  return register_evaluator(kName, evaluate);
}

}  // namespace example

namespace {

std::string graph_text(std::string_view groups) {
  return str("graph @binary(%A: u1[2,6,4,4], %F: u1[3,6,3,3]) -> %B {\n  %B = ", example::kName,
             " %A, %F {groups = ", quote(groups), "}\n}\n");
}

// Random bits.
Result<Tensor> bits(Dims dims, uint32_t seed) {
  TENON_TRY(out, Tensor::zeros(example::kBit, std::move(dims)));
  for (int64_t i = 0; i < out.size(); ++i) {
    seed = seed * 1664525 + 1013904223;
    out.mutable_data()[i / 8] |= static_cast<std::byte>((seed >> 31) << (i % 8));
  }
  return out;
}

struct Choice {
  const char *a, *f, *groups;
};

Result<Tensor> run_in(const Choice& choice, const std::vector<Datum>& inputs) {
  TENON_TRY(graph, parse_graph(graph_text(choice.groups), "binary"));
  // The algorithm above is unchanged.
  if (*choice.a) TENON_OK(set_layout(*graph, "A", choice.a));
  if (*choice.f) TENON_OK(set_layout(*graph, "F", choice.f, "OIHW"));
  TENON_TRY(interpreter, Interpreter::prepare(*graph));
  TENON_TRY(outputs, interpreter->run(inputs));
  return outputs[0].tensor();
}

Result<Tensor> run_on(const std::string& target, TargetRegistry& registry, const std::vector<Datum>& words) {
  TENON_TRY(graph,
            parse_graph(example::popcount_graph({.bs = 2, .ic = 6, .ih = 4, .iw = 4, .oc = 3, .kh = 3, .kw = 3})));
  TENON_TRY(model, compile(std::move(graph), registry, {.targets = {target}, .no_fallback = true}));
  TENON_TRY(outputs, model->run(words));
  return outputs[0].tensor();
}

Result<example::BitTensor> row_major(const Tensor& tensor) {
  TENON_TRY(layout, Layout::row_major(tensor.dims(), 1));
  return example::BitTensor(layout, {tensor.data(), tensor.bytes()});
}

Result<void> run_generic(const Tensor& a, const Tensor& f, const Tensor& plain) {
  TENON_TRY(a_bits, row_major(a));
  TENON_TRY(f_bits, row_major(f));
  TENON_TRY(a_words, example::channel_words(a_bits, "NCHW"));
  TENON_TRY(f_words, example::channel_words(f_bits, "OIHW"));
  TargetRegistry registry;
  for (const std::string target : {"reference", "x86-avx2", "x86-avx512"}) {
    const auto targets = registry.targets();
    const auto here = [&](const TargetStatus& status) { return status.name == target && status.available; };
    if (std::none_of(targets.begin(), targets.end(), here)) continue;
    TENON_TRY(b, run_on(target, registry, {a_words, f_words}));
    std::printf("words of 32 channels, generic operators on %s: %s\n", target.c_str(),
                b.identical(plain) ? "the same" : "different");
    if (!b.identical(plain)) return error(Code::internal, "target ", target, " changed the result");
  }
  return {};
}

Result<void> run() {
  TENON_OK(example::register_operator());
  TENON_TRY(a, bits({2, 6, 4, 4}, 1));
  TENON_TRY(f, bits({3, 6, 3, 3}, 2));
  const std::vector<Datum> inputs{a, f};
  TENON_TRY(plain, run_in({"", "", "vectors"}, inputs));
  std::printf("B =");
  for (const int32_t v : plain.as<int32_t>()) std::printf(" %d", v);
  std::printf("\n");

  const Choice choices[] = {
      {"NHWC", "OHWI", "vectors"},                // single elements
      {"NHWC<6c:8>", "OHWI<6i:8>", "vectors"},    // a vector of 1-bit elements for each pixel
      {"NHWC<6c:8>", "OHWI<6i:8>", "integers"},   // one integer of 6 bits for each pixel
      {"NHWC<4c:16>", "OHWI<4i:16>", "vectors"},  // the second word of each pixel has two lanes of padding
      {"[2h]NHWC<6c>", "OHWI<6i>", "integers"},   // dense, with rows in two banks
  };
  for (const Choice& choice : choices) {
    TENON_TRY(b, run_in(choice, inputs));
    std::printf("A in %s, F in %s, %s: %s\n", choice.a, choice.f, choice.groups,
                b.identical(plain) ? "the same" : "different");
    if (!b.identical(plain)) return error(Code::internal, "a layout changed the result");
  }
  return run_generic(a, f, plain);
}

}  // namespace

int main() { return example::exit_code(run()); }
