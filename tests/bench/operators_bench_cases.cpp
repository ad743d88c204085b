#include "bench/operators_bench_cases.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <tenon/ir/op_def.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/support/str.hpp>

namespace tenon::bench {
namespace {

constexpr std::array<std::string_view, 12> kTypes = {"f32", "f16", "bf16", "i8",  "i16", "i32",
                                                     "i64", "u8",  "u16",  "u32", "u64", "bool"};

// All combinations of attributes with few values or flags; others keep their defaults.
std::vector<std::string> attribute_lists(const OpDef& op) {
  std::vector<std::string> lists = {""};
  for (const AttributeDef& attribute : op.attributes()) {
    std::vector<std::string> longer;
    for (const std::string& list : lists) {
      for (const std::string& value : attribute.one_of)
        longer.push_back(str(list, list.empty() ? "" : ", ", attribute.name.view(), " = \"", value, "\""));
    }
    if (!longer.empty()) lists = std::move(longer);
  }
  if (op.name() == Name("Mod")) lists.push_back("fmod = 1");
  return lists;
}

// The graph of one operator whose operands are all tensors of `type`, or of the types that it declares separately.
std::string single(const OpDef& op, size_t operands, std::string_view type, int64_t elements,
                   const std::string& attributes) {
  std::string heads, uses;
  for (size_t i = 0; i < operands; ++i) {
    const OperandDef& operand = op.operands()[std::min(i, op.operands().size() - 1)];
    const auto set = op.type_vars().find(operand.type_var);
    const bool flags = set != op.type_vars().end() && std::string_view(set->second.text()) == kBoolType.text();
    heads += str(i ? ", " : "", "%x", i, ": ", flags ? "bool" : type, "[", elements, "]");
    uses += str(i ? ", " : " ", "%x", i);
  }
  return str("graph @g(", heads, ") -> %y {\n%y = ", op.name().view(), uses,
             attributes.empty() ? "" : str(" {", attributes, "}"), "\n}");
}

bool stands(const std::string& text) {
  auto graph = parse_graph(text, "case");
  return graph.ok() && verify(**graph).ok();
}

// A graph over a shape: $T is the element type, $S the shape, $C, $H and $W its second to fourth extents.
struct Pattern {
  std::string_view name, graph;
};

constexpr Pattern kRows[] = {
    {"Softmax", "(%x: $T$S) -> %y {\n%y = Softmax %x {axis = -1}\n}"},
    {"LogSoftmax", "(%x: $T$S) -> %y {\n%y = LogSoftmax %x {axis = -1}\n}"},
    {"LayerNormalization",
     "(%x: $T$S, %s: $T[$C], %b: $T[$C]) -> %y {\n%y = LayerNormalization %x, %s, %b {axis = -1}\n}"},
    {"RMSNormalization", "(%x: $T$S, %s: $T[$C]) -> %y {\n%y = RMSNormalization %x, %s {axis = -1}\n}"},
    {"LpNormalization", "(%x: $T$S) -> %y {\n%y = LpNormalization %x {axis = -1, p = 2}\n}"},
    {"ReduceSum", "(%x: $T$S) -> %y {\n%a = Constant {value = dense<i64[1]: -1>}\n%y = ReduceSum %x, %a\n}"},
    {"ReduceMax", "(%x: $T$S) -> %y {\n%a = Constant {value = dense<i64[1]: -1>}\n%y = ReduceMax %x, %a\n}"},
    {"ReduceL2", "(%x: $T$S) -> %y {\n%a = Constant {value = dense<i64[1]: -1>}\n%y = ReduceL2 %x, %a\n}"},
    {"ReduceProd", "(%x: $T$S) -> %y {\n%a = Constant {value = dense<i64[1]: -1>}\n%y = ReduceProd %x, %a\n}"},
    {"ReduceLogSumExp",
     "(%x: $T$S) -> %y {\n%a = Constant {value = dense<i64[1]: -1>}\n%y = ReduceLogSumExp %x, %a\n}"},
    {"ArgMax", "(%x: $T$S) -> %y {\n%y = ArgMax %x {axis = -1}\n}"},
    {"CumSum", "(%x: $T$S) -> %y {\n%a = Constant {value = dense<i64[]: -1>}\n%y = CumSum %x, %a\n}"},
    {"scaled and masked softmax",
     "(%x: $T$S, %m: $T[1,$C], %k: $T[1]) -> %y {\n%p = Mul %x, %k\n%q = Add %p, %m\n%y = Softmax %q {axis = -1}\n}"},
    {"RMS norm of a residual",
     "(%x: $T$S, %z: $T$S, %s: $T[$C]) -> %y, %r {\n%r = Add %x, %z\n%y = RMSNormalization %r, %s {axis = -1}\n}"},
    {"swish gate", "(%x: $T$S, %z: $T$S) -> %y {\n%s = Sigmoid %x\n%w = Mul %x, %s\n%y = Mul %w, %z\n}"},
    {"bias and GELU", "(%x: $T$S, %b: $T[$C]) -> %y {\n%p = Add %x, %b\n%y = Gelu %p {approximate = \"tanh\"}\n}"},
};
constexpr Pattern kColumns[] = {
    {"Softmax of axis 1", "(%x: $T$S) -> %y {\n%y = Softmax %x {axis = 1}\n}"},
    {"ReduceSum of axis 1", "(%x: $T$S) -> %y {\n%a = Constant {value = dense<i64[1]: 1>}\n%y = ReduceSum %x, %a\n}"},
    {"ReduceMax of axis 1", "(%x: $T$S) -> %y {\n%a = Constant {value = dense<i64[1]: 1>}\n%y = ReduceMax %x, %a\n}"},
    {"LpNormalization of axis 1", "(%x: $T$S) -> %y {\n%y = LpNormalization %x {axis = 1, p = 2}\n}"},
    {"ArgMax of axis 1", "(%x: $T$S) -> %y {\n%y = ArgMax %x {axis = 1}\n}"},
    {"CumSum of axis 1", "(%x: $T$S) -> %y {\n%a = Constant {value = dense<i64[]: 1>}\n%y = CumSum %x, %a\n}"},
};
constexpr Pattern kImages[] = {
    {"BatchNormalization",
     "(%x: $T$S, %s: $T[$C], %b: $T[$C], %m: $T[$C], %v: $T[$C]) -> %y {\n%y = BatchNormalization %x, %s, %b, %m, "
     "%v\n}"},
    {"InstanceNormalization", "(%x: $T$S, %s: $T[$C], %b: $T[$C]) -> %y {\n%y = InstanceNormalization %x, %s, %b\n}"},
    {"GroupNormalization",
     "(%x: $T$S, %s: $T[$C], %b: $T[$C]) -> %y {\n%y = GroupNormalization %x, %s, %b {num_groups = 8}\n}"},
    {"MeanVarianceNormalization", "(%x: $T$S) -> %y {\n%y = MeanVarianceNormalization %x\n}"},
    {"LRN", "(%x: $T$S) -> %y {\n%y = LRN %x {size = 5}\n}"},
    {"GlobalAveragePool", "(%x: $T$S) -> %y {\n%y = GlobalAveragePool %x\n}"},
    {"PRelu", "(%x: $T$S, %s: $T[$C,1,1]) -> %y {\n%y = PRelu %x, %s\n}"},
    {"squeeze and excite", "(%x: $T$S, %s: $T[1,$C,1,1]) -> %y {\n%g = Sigmoid %s\n%y = Mul %x, %g\n}"},
    {"layer norm of channels",
     "(%x: $T$S, %s: $T[$C,1,1], %b: $T[$C,1,1]) -> %y {\n%a = Constant {value = dense<i64[1]: 1>}\n%m = ReduceMean "
     "%x, %a\n"
     "%d = Sub %x, %m\n%q = Mul %d, %d\n%v = ReduceMean %q, %a\n%t = Sqrt %v\n%n = Div %d, %t\n%o = Mul %n, %s\n%y = "
     "Add %o, %b\n}"},
    {"Pad", "(%x: $T$S) -> %y {\n%p = Constant {value = dense<i64[8]: 0,0,1,1,0,0,1,1>}\n%y = Pad %x, %p\n}"},
    {"Pad of a Relu",
     "(%x: $T$S) -> %y {\n%r = Relu %x\n%p = Constant {value = dense<i64[8]: 0,0,1,1,0,0,1,1>}\n%y = Pad %r, %p\n}"},
    {"Split of channels", "(%x: $T$S) -> %y, %z {\n%y, %z = Split %x {axis = 1, num_outputs = 2}\n}"},
    {"Concat of channels", "(%x: $T$S, %z: $T$S) -> %y {\n%y = Concat %x, %z {axis = 1}\n}"},
    {"channel shuffle",
     "(%x: $T$S) -> %y {\n%a = Constant {value = dense<i64[5]: 0,2,-1,$H,$W>}\n%r = Reshape %x, %a\n"
     "%t = Transpose %r {perm = [0,2,1,3,4]}\n%b = Constant {value = dense<i64[4]: 0,$C,$H,$W>}\n%y = Reshape %t, "
     "%b\n}"},
    {"Transpose to channels last", "(%x: $T$S) -> %y {\n%y = Transpose %x {perm = [0,2,3,1]}\n}"},
    {"Transpose of planes", "(%x: $T$S) -> %y {\n%y = Transpose %x {perm = [0,1,3,2]}\n}"},
    {"SpaceToDepth", "(%x: $T$S) -> %y {\n%y = SpaceToDepth %x {blocksize = 2}\n}"},
    {"DepthToSpace", "(%x: $T$S) -> %y {\n%y = DepthToSpace %x {blocksize = 2}\n}"},
    {"every second pixel",
     "(%x: $T$S) -> %y {\n%b = Constant {value = dense<i64[2]: 0,0>}\n%e = Constant {value = dense<i64[2]: $H,$W>}\n"
     "%a = Constant {value = dense<i64[2]: 2,3>}\n%s = Constant {value = dense<i64[2]: 2,2>}\n%y = Slice %x, %b, %e, "
     "%a, %s\n}"},
    {"nearest pixels, twice the size",
     "(%x: $T$S) -> %y {\n%s = Constant {value = dense<f32[4]: 1,1,2,2>}\n%y = Resize %x, _, %s "
     "{mode = \"nearest\", nearest_mode = \"floor\", coordinate_transformation_mode = \"asymmetric\"}\n}"},
};

std::string replaced(std::string_view text, std::string_view type, const std::vector<int64_t>& shape) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      made += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'T': made += type; break;
      case 'S': made += str(shape); break;
      case 'C': made += str(shape[1]); break;
      case 'H': made += str(shape[2]); break;
      default: made += str(shape[3]); break;
    }
  }
  return made;
}

void add(std::vector<OperatorCase>& cases, std::span<const Pattern> patterns,
         const std::vector<std::vector<int64_t>>& shapes) {
  for (const Pattern& pattern : patterns) {
    for (const std::vector<int64_t>& shape : shapes) {
      for (const std::string_view type : {"f32", "f16", "bf16"}) {
        std::string text = str("graph @g", replaced(pattern.graph, type, shape));
        if (stands(text)) cases.push_back({str(pattern.name, " ", type, shape), std::move(text)});
      }
    }
  }
}

}  // namespace

std::vector<OperatorCase> elementwise_cases(int64_t elements) {
  std::vector<OperatorCase> cases;
  for (const OpDef* op : all_ops()) {
    if (!op->has(Trait::elementwise) || !op->domain().empty()) continue;
    const size_t operands = op->max_operands() == SIZE_MAX ? 3 : op->max_operands();
    if (operands == 0) continue;
    for (const std::string& attributes : attribute_lists(*op)) {
      for (const std::string_view type : kTypes) {
        std::string text = single(*op, operands, type, elements, attributes);
        if (stands(text))
          cases.push_back(
              {str(op->name().view(), " ", type, attributes.empty() ? "" : " ", attributes), std::move(text)});
      }
    }
  }
  for (const std::string_view from : kTypes) {
    for (const std::string_view to : kTypes) {
      if (from != to)
        cases.push_back({str("Cast ", from, " to ", to), str("graph @g(%x: ", from, "[", elements,
                                                             "]) -> %y {\n%y = Cast %x {to = type<", to, "[*]>}\n}")});
    }
  }
  return cases;
}

std::vector<OperatorCase> structured_cases(int64_t elements) {
  std::vector<OperatorCase> cases;
  const auto rows = [&](int64_t n) { return std::vector{elements / n, n}; };
  add(cases, kRows, {rows(77), rows(256), rows(768), rows(1024), rows(4096), rows(50257)});
  const auto planes = [&](int64_t m, int64_t n) { return std::vector{elements / (m * n), m, n}; };
  add(cases, kColumns, {planes(64, 49), planes(256, 256), planes(elements >> 12, 4096)});
  const auto images = [&](int64_t channels, int64_t side) {
    return std::vector{elements / (channels * side * side), channels, side, side};
  };
  add(cases, kImages, {images(64, 112), images(256, 28), images(512, 14)});
  return cases;
}

}  // namespace tenon::bench
