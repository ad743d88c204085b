#include "opencl_bench_cases.hpp"

#include <initializer_list>

#include <tenon/support/str.hpp>

namespace tenon::opencl {
namespace {

Work elementwise(int64_t elements) {
  return {.name = str("chain of 5, ", elements / 256, " KB"),
          .text = str("graph @chain(%x: f32[", elements,
                      "]) -> %y {\n %a = Relu %x\n %b = Mul %a, %x\n %c = Add %b, %a\n %d = Sub %c, %x\n %y = Abs "
                      "%d\n}"),
          .shapes = {{elements}},
          .result = {elements},
          .amount = 8.0 * static_cast<double>(elements),
          .unit = "GB/s"};
}

// Row reductions: `text` from %x of [rows, columns] to %y, which has `written` elements.
Work rows(std::string_view name, int64_t rows, int64_t columns, const std::string& text, int64_t written) {
  return {.name = str(name, " of ", rows, "x", columns),
          .text = str("graph @rows(%x: f32[", rows, ",", columns, "]) -> %y {\n ", text, "\n}"),
          .shapes = {{rows, columns}},
          .result = {written},
          .amount = 4.0 * static_cast<double>(rows * columns + written),
          .unit = "GB/s"};
}

Work layer_norm(int64_t rows, int64_t columns) {
  return {.name = str("LayerNormalization of ", rows, "x", columns),
          .text = str("graph @g(%x: f32[", rows, ",", columns, "], %s: f32[", columns, "], %b: f32[", columns,
                      "]) -> %y {\n %y = LayerNormalization %x, %s, %b {axis = -1}\n}"),
          .shapes = {{rows, columns}, {columns}, {columns}},
          .result = {rows * columns},
          .amount = 8.0 * static_cast<double>(rows * columns + columns),
          .unit = "GB/s"};
}

std::string dims_text(const Dims& dims) {
  std::string text;
  for (const int64_t dim : dims) text += str(text.empty() ? "" : ",", dim);
  return str("f32[", text, "]");
}

Work product(const HandProduct& p) {
  Work work{.name = str(p.transposed ? "Gemm transB " : "MatMul ", p.batch > 1 ? str(p.batch, "x") : "", p.m, "x", p.k,
                        "x", p.n, p.bias ? " bias" : "", p.relu ? " Relu" : "")};
  Dims a{p.m, p.k}, b = p.transposed ? Dims{p.n, p.k} : Dims{p.k, p.n};
  work.result = {p.m, p.n};
  if (p.batch > 1)
    for (Dims* dims : {&a, &b, &work.result}) dims->insert(dims->begin(), p.batch);
  work.shapes = {a, b};
  work.text = str("graph @g(%a: ", dims_text(a), ", %b: ", dims_text(b));
  if (p.bias) work.text += str(", %c: f32[", p.n, "]"), work.shapes.push_back({p.n});
  work.text += str(") -> %y {\n %m = ", p.transposed ? "Gemm %a, %b {transB = 1}" : "MatMul %a, %b", "\n");
  std::string last = "m";
  if (p.bias) work.text += " %s = Add %m, %c\n", last = "s";
  if (p.relu) work.text += str(" %r = Relu %", last, "\n"), last = "r";
  work.text += "}";
  work.text.replace(work.text.find("%y"), 2, str("%", last));
  work.amount = 2.0 * static_cast<double>(p.batch * p.m * p.n * p.k);
  work.hand = product_by_hand(p);
  return work;
}

Work convolution(const HandConv& c, bool depthwise) {
  const int64_t pad = c.kernel / 2;
  Work work{.name = str(depthwise ? "Conv depthwise " : "Conv ", c.channels, "x", c.size, "x", c.size, ", ",
                        depthwise ? "" : str(c.outputs, " of "), c.kernel, "x", c.kernel, c.stride > 1 ? "/2" : "",
                        c.relu ? " Relu" : "")};
  const Dims x{1, c.channels, c.size, c.size}, w{c.outputs, depthwise ? 1 : c.channels, c.kernel, c.kernel};
  work.text =
      str("graph @g(%x: ", dims_text(x), ", %w: ", dims_text(w), ") -> ", c.relu ? "%y" : "%c",
          " {\n %c = Conv %x, %w {", "strides = [", c.stride, ", ", c.stride, "], pads = [", pad, ", ", pad, ", ", pad,
          ", ", pad, "], group = ", depthwise ? c.channels : 1, "}\n", c.relu ? " %y = Relu %c\n" : "", "}");
  work.shapes = {x, w};
  work.result = {1, c.outputs, c.out(), c.out()};
  work.amount = 2.0 * static_cast<double>(c.outputs * c.out() * c.out() * w[1] * c.kernel * c.kernel);
  if (depthwise)
    work.hand = depthwise_by_hand(c);
  else if (c.kernel == 1)
    work.hand =
        product_by_hand({.m = c.outputs, .n = c.size * c.size, .k = c.channels, .relu = c.relu, .swapped = true});
  else
    work.hand = conv_by_hand(c);
  return work;
}

Work max_pool(const HandConv& c) {
  return {.name = str("MaxPool ", c.channels, "x", c.size, "x", c.size, ", 3x3/2"),
          .text = str("graph @g(%x: f32[1,", c.channels, ",", c.size, ",", c.size,
                      "]) -> %y {\n %y = MaxPool %x {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}\n}"),
          .shapes = {{1, c.channels, c.size, c.size}},
          .result = {1, c.channels, c.size / 2, c.size / 2},
          .amount = 4.0 * 1.25 * static_cast<double>(c.channels * c.size * c.size),
          .unit = "GB/s",
          .hand = max_pool_by_hand(c)};
}

}  // namespace

std::vector<Work> elementwise_works() {
  std::vector<Work> all;
  for (const int64_t elements : {1 << 16, 1 << 20, 1000003, 1 << 24, 1 << 26}) all.push_back(elementwise(elements));
  for (const auto& [count, columns] :
       {std::pair<int64_t, int64_t>{4096, 1024}, {65536, 1024}, {32768, 197}, {1024, 65536}}) {
    all.push_back(rows("Softmax", count, columns, "%y = Softmax %x {axis = -1}", count * columns));
    all.push_back(rows("ReduceMean", count, columns,
                       "%a = Constant {value = dense<i64[1]: 1>} : i64[1]\n %y = ReduceMean %x, %a {keepdims = 0}",
                       count));
    all.push_back(layer_norm(count, columns));
  }
  all.push_back(rows("ReduceMax of columns", 65536, 1024,
                     "%a = Constant {value = dense<i64[1]: 0>} : i64[1]\n %y = ReduceMax %x, %a {keepdims = 0}", 1024));
  return all;
}

std::vector<Work> arithmetic_works() {
  std::vector<Work> all;
  for (const HandProduct& p : std::initializer_list<HandProduct>{
           {.m = 256, .n = 256, .k = 256},
           {.m = 1024, .n = 1024, .k = 1024},
           {.m = 128, .n = 768, .k = 768},
           {.m = 128, .n = 768, .k = 768, .relu = true},
           {.m = 128, .n = 768, .k = 768, .bias = true, .relu = true},
           {.m = 128, .n = 3072, .k = 768, .bias = true},
           {.m = 128, .n = 768, .k = 768, .transposed = true},
           {.m = 128, .n = 128, .k = 64, .batch = 12},
           {.m = 128, .n = 64, .k = 128, .batch = 12},
           {.m = 1, .n = 1024, .k = 1024},
           {.m = 1, .n = 1024, .k = 1024, .transposed = true},
           {.m = 1, .n = 4096, .k = 4096, .transposed = true},
           // No round numbers.
           {.m = 197, .n = 770, .k = 770},
           {.m = 197, .n = 1000, .k = 770, .bias = true},
           {.m = 50, .n = 770, .k = 330, .transposed = true},
           {.m = 197, .n = 197, .k = 64, .batch = 12},
           {.m = 1, .n = 1024, .k = 770},
       })
    all.push_back(product(p));
  for (const HandConv& c : std::initializer_list<HandConv>{
           {.channels = 64, .size = 56, .outputs = 64},
           {.channels = 64, .size = 56, .outputs = 64, .relu = true},
           {.channels = 128, .size = 28, .outputs = 128},
           {.channels = 256, .size = 14, .outputs = 256},
           {.channels = 512, .size = 7, .outputs = 512},
           {.channels = 128, .size = 28, .outputs = 256, .stride = 2},
           {.channels = 3, .size = 224, .outputs = 64, .kernel = 7, .stride = 2},
           {.channels = 3, .size = 224, .outputs = 32, .kernel = 3, .stride = 2},
           {.channels = 64, .size = 56, .outputs = 256, .kernel = 1},
           {.channels = 256, .size = 14, .outputs = 1024, .kernel = 1},
           {.channels = 256, .size = 14, .outputs = 1024, .kernel = 1, .relu = true},
           {.channels = 24, .size = 57, .outputs = 40},
           {.channels = 40, .size = 29, .outputs = 24, .relu = true},
           {.channels = 24, .size = 61, .outputs = 40, .stride = 2},
           {.channels = 24, .size = 57, .outputs = 40, .kernel = 1},
       })
    all.push_back(convolution(c, false));
  for (const HandConv& c : std::initializer_list<HandConv>{
           {.channels = 144, .size = 56, .outputs = 144},
           {.channels = 96, .size = 112, .outputs = 96, .stride = 2},
           {.channels = 384, .size = 14, .outputs = 384},
           {.channels = 40, .size = 57, .outputs = 40},
       })
    all.push_back(convolution(c, true));
  all.push_back(max_pool({.channels = 64, .size = 112}));
  return all;
}

}  // namespace tenon::opencl
