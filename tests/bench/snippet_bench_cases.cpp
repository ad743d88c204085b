#include "bench/snippet_bench_cases.hpp"

#include <regex>
#include <tuple>
#include <utility>

#include <tenon/support/str.hpp>

namespace tenon::bench {
namespace {

Case flat(std::string name, int64_t n, const std::string& signature, const std::string& body, HandLoop hand,
          std::span<const HandLoop> moves = move_one_to_one()) {
  const std::string type = str("f32[", n, "]");
  return {str(name, " ", n),
          "graph @g(" + std::regex_replace(signature, std::regex("T"), type) + " {\n" + body + "\n}",
          hand,
          moves,
          {n},
          4096};
}

// y = q (tanh((q + 0.044715 q^3) sqrt(2 / pi)) + 1) / 2
std::string tanh_gelu_of(const std::string& q) {
  return std::regex_replace(R"(%h = Constant {value = dense<f32[]: 0.5>}
%one = Constant {value = dense<f32[]: 1.0>}
%k = Constant {value = dense<f32[]: 0.044715>}
%s = Constant {value = dense<f32[]: 0.7978846>}
%three = Constant {value = dense<f32[]: 3.0>}
%p = Pow %Q, %three
%a = Mul %p, %k
%b = Add %Q, %a
%c = Mul %b, %s
%d = Tanh %c
%e = Add %d, %one
%f = Mul %Q, %e
%y = Mul %f, %h)",
                            std::regex("%Q"), "%" + q);
}

// Bytes to floats: (x / 255 - mean) / deviation for each channel.
std::string normalise_text(std::string_view image, std::string_view channels) {
  return str("graph @g(%x: u8[", image, "], %m: f32[", channels, "], %d: f32[", channels, R"(]) -> %y {
%c = Constant {value = dense<f32[]: 255.0>}
%f = Cast %x {to = type<f32[*]>}
%t0 = Div %f, %c
%t1 = Sub %t0, %m
%y = Div %t1, %d
})");
}

const std::string kUnary = "%x: T) -> %y", kBinary = "%x: T, %z: T) -> %y";

}  // namespace

Case diamond_case(int64_t n) {
  return flat("diamond", n, kBinary, R"(%c = Constant {value = dense<f32[]: 3.0>}
%lo = Constant {value = dense<f32[]: 0.0>}
%hi = Constant {value = dense<f32[]: 6.0>}
%t = Add %x, %z
%u = Add %t, %c
%v = Clip %u, %lo, %hi
%y = Mul %t, %v)",
              diamond, move_two_to_one());
}

Case several_outputs_case(int64_t n) {
  return flat("several outputs", n, "%x: T, %z: T) -> (%s, %d, %p)", R"(%s = Add %x, %z
%e = Sub %x, %z
%d = Abs %e
%q = Mul %x, %z
%p = Relu %q)",
              several_outputs, move_two_to_three());
}

Case add_relu_case(int64_t n) {
  return flat("add relu", n, kBinary, "%s = Add %x, %z\n%y = Relu %s", add_relu, move_two_to_one());
}

Case layer_norm_case(int64_t rows, int64_t n) {
  return {str("layer norm ", rows, "x", n),
          str("graph @g(%x: f32[", rows, ",", n, "], %s: f32[", n, "], %b: f32[", n, R"(]) -> %y {
%y = LayerNormalization %x, %s, %b {axis = -1, epsilon = 1e-5}
})"),
          layer_norm, move_one_to_one(), {rows, n}};
}

Case skip_layer_norm_case(int64_t rows, int64_t n) {
  return {str("skip layer norm ", rows, "x", n),
          str("graph @g(%x: f32[", rows, ",", n, "], %z: f32[", rows, ",", n, "], %s: f32[", n, "], %b: f32[", n,
              R"(]) -> %y {
%t = Add %x, %z
%y = LayerNormalization %t, %s, %b {axis = -1, epsilon = 1e-5}
})"),
          skip_layer_norm, move_two_to_one(), {rows, n}};
}

Case softmax_case(int64_t rows, int64_t n) {
  return {str("softmax ", rows, "x", n),
          str("graph @g(%x: f32[", rows, ",", n, "]) -> %y {\n%y = Softmax %x {axis = -1}\n}"),
          softmax, move_one_to_one(), {rows, n}};
}

Case sum_of_rows_case(int64_t rows, int64_t n) {
  return {str("sum of rows ", rows, "x", n), str("graph @g(%x: f32[", rows, ",", n, R"(]) -> %y {
%a = Constant {value = dense<i64[1]: 1>}
%y = ReduceSum %x, %a
})"),
          sum_rows, move_in(), {rows, n}};
}

std::vector<Case> snippet_cases() {
  std::vector<Case> all;
  const std::string half = "%h = Constant {value = dense<f32[]: 0.5>}\n%one = Constant {value = dense<f32[]: 1.0>}\n";
  // The largest are tensors of 420 MB: four times the largest last-level cache of the measured machines.
  for (const int64_t n : {1000LL, 16384LL, 401408LL, 4194304LL, 16777216LL, 110100480LL}) {
    all.push_back(flat("chain of 12", n, kUnary, R"(%c0 = Constant {value = dense<f32[]: 1.1>}
%c1 = Constant {value = dense<f32[]: 0.2>}
%c2 = Constant {value = dense<f32[]: 0.7>}
%c3 = Constant {value = dense<f32[]: 1.7>}
%c4 = Constant {value = dense<f32[]: -0.5>}
%c5 = Constant {value = dense<f32[]: 2.0>}
%c6 = Constant {value = dense<f32[]: 0.25>}
%t0 = Mul %x, %c0
%t1 = Add %t0, %c1
%t2 = Abs %t1
%t3 = Sqrt %t2
%t4 = Sub %t3, %c2
%t5 = Mul %t4, %c3
%t6 = Max %t5, %c4
%t7 = Min %t6, %c5
%t8 = Neg %t7
%t9 = Add %t8, %x
%t10 = Mul %t9, %c6
%y = Relu %t10)",
                       chain12));
    all.push_back(flat("hardswish", n, kUnary, "%y = HardSwish %x", hardswish));
    all.push_back(diamond_case(n));
    all.push_back(several_outputs_case(n));
    all.push_back(flat("erf GELU", n, kUnary, half + R"(%r = Constant {value = dense<f32[]: 1.4142135>}
%a = Div %x, %r
%b = Erf %a
%c = Add %b, %one
%d = Mul %x, %c
%y = Mul %d, %h)",
                       gelu_erf));
    all.push_back(flat("tanh GELU", n, kUnary, tanh_gelu_of("x"), gelu_tanh));
    all.push_back(flat("swish", n, kUnary, "%s = Sigmoid %x\n%y = Mul %x, %s", swish));
    all.push_back(add_relu_case(n));
  }
  const auto rows = [&](std::string name, std::string graph, HandLoop hand, std::span<const HandLoop> moves,
                        std::vector<int64_t> extents) {
    all.push_back({std::move(name), std::move(graph), hand, moves, std::move(extents), 1});
  };
  for (const auto& [name, r, n] : {std::tuple{"256x56x56", 256, 3136}, {"32768x1001", 32768, 1001}}) {
    const std::string row = str("f32[", r, ",1]");
    rows(str("BN mul add relu ", name),
         str("graph @g(%x: f32[", r, ",", n, "], %a: ", row, ", %b: ", row, ", %c: ", row, ", %d: ", row, R"() -> %y {
%t0 = Mul %x, %a
%t1 = Add %t0, %b
%t2 = Mul %t1, %c
%t3 = Add %t2, %d
%y = Relu %t3
})"),
         scale_shift_relu, move_one_to_one(), {r, n});
  }
  // As exporters of quantised models write it: one function of a byte.
  for (const int64_t n : {16384LL, 1048576LL, 16777216LL, 440401920LL}) {
    const std::string type = str("u8[", n, "]");
    all.push_back({str("u8 swish ", n), str("graph @g(%x: ", type, R"() -> %y {
%s = Constant {value = dense<f32[]: 0.03125>}
%zx = Constant {value = dense<u8[]: 128>}
%zy = Constant {value = dense<u8[]: 16>}
%a = DequantizeLinear %x, %s, %zx
%b = Sigmoid %a
%c = Mul %a, %b
%y = QuantizeLinear %c, %s, %zy
})"),
                   swish_of_bytes, move_one_to_one(), {n}, 4096});
  }
  for (const auto& [h, w] : {std::pair{1080, 1920}, {2160, 3840}}) {
    rows(str("u8 normalise planar 3x", h, "x", w), normalise_text(str("1,3,", h, ",", w), "3,1,1"), normalise_planar,
         move_bytes_to_floats(), {3, h * w});
    rows(str("u8 normalise interleaved ", h, "x", w, "x3"), normalise_text(str(h, ",", w, ",3"), "3"),
         normalise_interleaved, move_bytes_to_floats(), {h * w});
  }
  rows("broadcast 42x17x31", R"(graph @g(%x: f32[1,42,17,31], %s: f32[1,42,17,1], %b: f32[1,42,1,31]) -> %y {
%t = Mul %x, %s
%u = Add %t, %b
%y = Relu %u
})",
       broadcast, move_one_to_one(), {42, 17, 31});
  rows("bias tanh GELU 128x3072",
       "graph @g(%x: f32[128,3072], %bias: f32[3072]) -> %y {\n%q = Add %x, %bias\n" + tanh_gelu_of("q") + "\n}",
       bias_gelu_tanh, move_one_to_one(), {128, 3072});
  for (const auto& [r, n] : {std::pair{128, 768}, {512, 1024}, {16, 65536}, {4096, 33}, {32768, 1024}, {32768, 1001},
                             {16384, 2048}, {4096, 8192}, {512, 65536}, {32, 1048576}, {8, 4194304}}) {
    all.push_back(layer_norm_case(r, n));
    all.push_back(skip_layer_norm_case(r, n));
    all.push_back(softmax_case(r, n));
    all.push_back(sum_of_rows_case(r, n));
    rows(str("softmax skip ", r, "x", n),
         str("graph @g(%x: f32[", r, ",", n, "]) -> %y {\n%p = Softmax %x {axis = -1}\n%y = Add %p, %x\n}"),
         softmax_skip, move_one_to_one(), {r, n});
  }
  for (const auto& [images, channels, side, groups] :
       {std::tuple{1, 64, 56, 32}, {8, 256, 128, 32}, {32, 512, 48, 32}, {64, 2048, 16, 32}}) {
    const std::string image = str(images, "x", channels, "x", side, "x", side);
    const std::string signature = str("graph @g(%x: f32[", images, ",", channels, ",", side, ",", side, "], %s: f32[",
                                      channels, "], %b: f32[", channels, "]) -> %y {\n%y = ");
    const int64_t pixels = side * side;
    rows("instance norm " + image, signature + "InstanceNormalization %x, %s, %b {epsilon = 1e-5}\n}", group_norm,
         move_one_to_one(), {images * channels, channels, 1, pixels});
    rows("group norm " + image,
         signature + str("GroupNormalization %x, %s, %b {epsilon = 1e-5, num_groups = ", groups, "}\n}"), group_norm,
         move_one_to_one(), {images * groups, groups, channels / groups, pixels});
  }
  rows("softmax 1536x128", "graph @g(%x: f32[12,128,128]) -> %y {\n%y = Softmax %x {axis = -1}\n}", softmax,
       move_one_to_one(), {1536, 128});
  for (const auto& [p, r, n] : {std::tuple{16, 64, 784},
                                {1, 16, 2097152},
                                {1, 150, 262144},
                                {1, 4096, 8192},
                                {1, 4194304, 8},
                                {1, 1048576, 31},
                                {3, 1000, 24},
                                {64, 197, 12},
                                {16, 3000, 31},
                                {1, 77, 100003},
                                {4096, 77, 64},
                                {8192, 49, 49},
                                {2048, 196, 32}}) {
    const std::string extents = str(p, "x", r, "x", n), type = str("f32[", p, ",", r, ",", n, "]");
    rows("softmax over axis 1 of " + extents, str("graph @g(%x: ", type, ") -> %y {\n%y = Softmax %x {axis = 1}\n}"),
         softmax_columns, move_one_to_one(), {p, r, n});
    rows("sum over axis 1 of " + extents, str("graph @g(%x: ", type, R"() -> %y {
%a = Constant {value = dense<i64[1]: 1>}
%y = ReduceSum %x, %a
})"),
         sum_columns, move_in(), {p, r, n});
  }
  return all;
}

}  // namespace tenon::bench
