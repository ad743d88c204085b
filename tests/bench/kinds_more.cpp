#include "bench/kinds.hpp"

namespace tenon::bench {
namespace {

constexpr Kind kKinds[] = {
    // Attention scores, positions, masks.
    {"f16 softmax",
     "bhq'k",
     {"1x2x64x128", "1x16x128x384", "16x16x384x384"},
     "a f16 bhqk; x = Cast:f32 a; s = Softmax x; y = Cast:f16 s"},
    {"f16 scores, chosen by a mask",
     "bhqk",
     {"1x1x128x128", "1x16x128x384", "16x16x384x384"},
     "x f16 bhqk; m bool bqk; s = Mul x f16:0.125; y = Where m s f16:-65504"},
    {"scores, slopes by distances",
     "bhqk",
     {"1x2x64x128", "1x16x256x256", "4x32x512x512"},
     "x f32 bhqk; s f32 h; p i32 q; t i32 k; d = Sub t p; f = Cast:f32 d; m = Mul f s; y = Add x m"},
    {"scores, window by positions",
     "bhqk",
     {"1x2x64x128", "1x16x256x256", "4x32x512x512"},
     "x f32 bhqk; p i32 q; t i32 k; d = Sub p t; a = LessOrEqual i32:0 d; b = Less d i32:128; c = And a b; y = Where c "
     "x -65504"},
    {"buckets of distances",
     "qk",
     {"64x128", "1024x1024", "4096x8192"},
     "p i32 q; t i32 k; d = Sub t p; a = Abs d; c = Less a i32:8; f = Cast:f32 a; m = Max f 1; l = Log m; u = Mul l "
     "2.8853901; v = Add u 2; w = Min v 15; i = Cast:i32 w; y = Where c a i"},
    {"algebra of masks",
     "bqk",
     {"1x64x128", "4x512x512", "16x2048x1024"},
     "a bool bqk; b bool bk; c bool qk; d = And a b; e = Or d c; f = Not e; y = Where:f32 f f32:-65504 f32:0"},
    {"classes of a row", "n'c", {"1024x10", "65536x10", "2097152x10"}, "x f32 nc; y = Softmax x"},
    {"words by a temperature",
     "n'c",
     {"1x16000", "8x128256", "256x128256"},
     "x f32 nc; t f32 n; d = Div x t; y = Softmax d"},
    {"words that were said",
     "nc",
     {"1x16000", "8x128256", "256x128256"},
     "x f32 nc; m bool nc; c = Greater x 0; d = Div x 1.2; k = Mul x 1.2; w = Where c d k; y = Where m w x"},
    {"words above a share",
     "nc",
     {"1x16000", "8x128256", "256x128256"},
     "x f32 nc; p f32 nc; m f32 n; c = Less p m; y = Where c -65504 x"},
    // Rows.
    {"L2 lengths of rows",
     "n'c",
     {"32x500", "2000x500", "65536x500"},
     "x f32 nc; s = Mul x x; t = ReduceSum s; y = Sqrt t"},
    {"logarithms of sums of powers",
     "n'c",
     {"16x1000", "1000x1000", "32768x1000"},
     "x f32 nc; m = ReduceMax x; d = Sub x m; e = Exp d; s = ReduceSum e; l = Log s; y = Add l m"},
    {"least and greatest of rows",
     "n'c",
     {"32x500", "2000x500", "65536x500"},
     "x f32 nc; l = ReduceMin x; h = ReduceMax x"},
    {"divergence of logarithms",
     "n'c",
     {"16x1000", "1000x1000", "16384x1000"},
     "x f32 nc; t f32 nc; d = Sub t x; e = Exp t; m = Mul e d; y = ReduceSum m"},
    {"likelihood of a normal",
     "nc",
     {"16x1000", "1000x1000", "16384x1000"},
     "x f32 nc; m f32 nc; l f32 nc; d = Sub x m; s = Mul d d; v = Exp l; q = Div s v; a = Add q l; y = Mul a 0.5"},
    {"sample of a normal",
     "nc",
     {"16x1000", "1000x1000", "16384x1000"},
     "m f32 nc; l f32 nc; n f32 nc; h = Mul l 0.5; e = Exp h; s = Mul e n; y = Add m s"},
    {"RMS norm of heads",
     "bth'd",
     {"1x16x8x64", "1x512x16x64", "4x2048x32x64"},
     "x f32 bthd; g f32 d; s = Mul x x; m = ReduceMean s; e = Add m 0.000001; q = Sqrt e; n = Div x q; y = Mul n g"},
    {"bf16 RMS norm behind a residual",
     "t'c",
     {"16x1024", "512x2048", "8192x4096"},
     "a bf16 tc; r bf16 tc; g bf16 c; x = Cast:f32 a; z = Cast:f32 r; h = Add x z; !o = Cast:bf16 h; s = Mul h h; m = "
     "ReduceMean s; e = Add m 0.00001; q = Sqrt e; n = Div h q; f = Cast:f32 g; w = Mul n f; y = Cast:bf16 w"},
    {"bf16 layer norm",
     "t'c",
     {"16x768", "1024x768", "32768x768"},
     "a bf16 tc; g f32 c; b f32 c; x = Cast:f32 a; m = ReduceMean x; d = Sub x m; s = Mul d d; v = ReduceMean s; e = "
     "Add v 0.00001; q = Sqrt e; n = Div d q; w = Mul n g; u = Add w b; y = Cast:bf16 u"},
    {"bf16 SwiGLU",
     "tc",
     {"4x4096", "128x8192", "2048x11008"},
     "a bf16 tc; b bf16 tc; x = Cast:f32 a; z = Cast:f32 b; s = Sigmoid x; u = Mul x s; v = Mul u z; y = Cast:bf16 v"},
    {"means of pairs of rows and columns",
     "nchw'ab",
     {"1x8x16x32x2x2", "1x64x56x56x2x2", "8x64x112x112x2x2"},
     "x f32 nchwab; y = ReduceMean x"},
    // Gates.
    {"elu of a bias",
     "nchw",
     {"1x32x26x26", "1x64x104x104", "16x64x152x152"},
     "x f32 nchw; b f32 c; t = Add x b; y = Elu t"},
    {"selu", "tc", {"4x4096", "128x8192", "4096x8192"}, "x f32 tc; y = Selu x"},
    {"celu", "tc", {"4x4096", "128x8192", "4096x8192"}, "x f32 tc; y = Celu x"},
    {"hard swish of a batch norm",
     "nchw",
     {"1x32x26x26", "1x64x104x104", "16x64x152x152"},
     "x f32 nchw; s f32 c; b f32 c; t = Mul x s; u = Add t b; y = HardSwish u"},
    {"steps of a state space",
     "tc",
     {"16x1024", "1024x1536", "16384x1536"},
     "x f32 tc; b f32 c; a f32 c; t = Add x b; !s = Softplus t; m = Mul s a; e = Exp m"},
    {"log sigmoid", "tc", {"4x4096", "128x8192", "4096x8192"}, "x f32 tc; n = Neg x; s = Softplus n; y = Neg s"},
    {"residual of paths that are dropped",
     "nchw",
     {"1x24x28x28", "16x24x112x112", "256x24x112x112"},
     "x f32 nchw; z f32 nchw; m f32 n; k = Mul m 1.1111; t = Mul z k; y = Add x t"},
    // Images and bytes.
    {"gray of planes of bytes",
     "hw",
     {"64x128", "720x1280", "4320x7680"},
     "r u8 hw; g u8 hw; b u8 hw; e = Cast:f32 r; f = Cast:f32 g; h = Cast:f32 b; i = Mul e 0.299; j = Mul f 0.587; k = "
     "Mul h 0.114; l = Add i j; m = Add l k; n = Round m; y = Cast:u8 n"},
    {"one picture over another",
     "chw",
     {"3x64x64", "3x720x1280", "3x4320x7680"},
     "a u8 chw; b u8 chw; m u8 hw; e = Cast:f32 a; f = Cast:f32 b; g = Cast:f32 m; s = Mul g 0.003921569; d = Sub e f; "
     "t = Mul d s; u = Add f t; v = Round u; y = Cast:u8 v"},
    {"picture of bytes to i8",
     "nchw",
     {"1x3x64x64", "1x3x512x640", "36x3x512x640"},
     "x u8 nchw; m f32 c; s f32 c; f = Cast:f32 x; d = Sub f m; q = Mul d s; r = Round q; c = Clip r -128 127; y = "
     "Cast:i8 c"},
    {"fake quantisation of channels",
     "kc",
     {"16x1024", "1024x1024", "8192x4096"},
     "x f32 kc; s f32 k; d = Div x s; r = Round d; c = Clip r -128 127; y = Mul c s"},
    {"twice as large, added",
     "chawb",
     {"8x16x2x16x2", "64x56x2x56x2", "256x112x2x112x2"},
     "x f32 chw; r f32 chawb; y = Add x r"},
    {"decibels of a spectrum",
     "ft",
     {"128x64", "513x1000", "4096x8000"},
     "r f32 ft; i f32 ft; a = Mul r r; b = Mul i i; p = Add a b; m = Max p 0.0000001; l = Log m; y = Mul l 4.3429448"},
    // Between steps.
    {"products of complex numbers",
     "nc",
     {"16x512", "512x1024", "8192x2048"},
     "a f32 nc; b f32 nc; c f32 c; d f32 c; e = Mul a c; f = Mul b d; x = Sub e f; g = Mul a d; h = Mul b c; y = Add g "
     "h"},
    {"step by signs",
     "n",
     {"4096", "262144", "16777216"},
     "p f32 n; g f32 n; m f32 n; a = Mul m 0.9; b = Mul g 0.1; c = Add a b; s = Sign c; t = Mul s 0.0001; q = Sub p t; "
     "u = Mul m 0.99; v = Mul g 0.01; w = Add u v"},
    {"gradients that are clipped",
     "n",
     {"4096", "262144", "16777216"},
     "p f32 n; g f32 n; d = Mul p 0.01; e = Add g d; c = Clip e -1 1; t = Mul c 0.001; y = Sub p t"},
};

// Parts of tensors: n0, n1 ... are the extents in order, in the text $0, $1 ...
constexpr WrittenKind kWritten[] = {
    {"rotary embedding by halves",
     {"4x64x64x32", "32x256x128x64", "64x2048x128x64"},  // heads, positions, width, its half
     "(%x: f32[$0,$1,$2], %c: f32[$1,$2], %s: f32[$1,$2]) -> %y {\n"
     "%o = Constant {value = dense<i64[1]: 0>}\n%h = Constant {value = dense<i64[1]: $3>}\n"
     "%n = Constant {value = dense<i64[1]: $2>}\n%a = Constant {value = dense<i64[1]: 2>}\n"
     "%x1 = Slice %x, %o, %h, %a\n%x2 = Slice %x, %h, %n, %a\n%m = Neg %x2\n%r = Concat %m, %x1 {axis = 2}\n"
     "%e = Mul %x, %c\n%f = Mul %r, %s\n%y = Add %e, %f\n}",
     "const float *x = (const float*)in[0], *c = (const float*)in[1], *s = (const float*)in[2];\n"
     "float* __restrict y = (float*)out[0];\n"
     "for (int64_t h = 0; h < n0; ++h) for (int64_t t = 0; t < n1; ++t) {\n"
     "  const float *p = x + (h * n1 + t) * n2, *q = c + t * n2, *u = s + t * n2;\n"
     "  float* __restrict z = y + (h * n1 + t) * n2;\n"
     "  for (int64_t i = 0; i < n3; ++i) z[i] = p[i] * q[i] - p[i + n3] * u[i];\n"
     "  for (int64_t i = 0; i < n3; ++i) z[i + n3] = p[i + n3] * q[i + n3] + p[i] * u[i + n3];\n}\n"},
    {"SwiGLU of one tensor",
     {"4x2048x4096", "128x4096x8192", "2048x11008x22016"},
     "(%x: f32[$0,$2]) -> %y {\n%a, %b = Split %x {axis = 1, num_outputs = 2}\n%s = Sigmoid %a\n%u = Mul %a, %s\n"
     "%y = Mul %u, %b\n}",
     "const float* x = (const float*)in[0];\nfloat* __restrict y = (float*)out[0];\n"
     "for (int64_t t = 0; t < n0; ++t) for (int64_t i = 0; i < n1; ++i) {\n"
     "  const float a = x[t * n2 + i], b = x[t * n2 + n1 + i];\n  y[t * n1 + i] = a / (1.0f + std::exp(-a)) * b;\n}\n"},
    {"gated channels",
     {"1x32x256x64", "1x128x3136x256", "16x256x3136x512"},
     "(%x: f32[$0,$3,$2]) -> %y {\n%a, %b = Split %x {axis = 1, num_outputs = 2}\n%s = Sigmoid %b\n%y = Mul %a, %s\n}",
     "const float* x = (const float*)in[0];\nfloat* __restrict y = (float*)out[0];\n"
     "for (int64_t b = 0; b < n0; ++b) { const float *p = x + b * n3 * n2, *q = p + n1 * n2;\n"
     "  float* __restrict z = y + b * n1 * n2;\n"
     "  for (int64_t i = 0; i < n1 * n2; ++i) z[i] = p[i] / (1.0f + std::exp(-q[i])); }\n"},
    {"LSTM cell of one tensor",
     {"8x256x1024", "256x650x2600", "4096x1024x4096"},
     "(%x: f32[$0,$2], %c: f32[$0,$1]) -> (%n, %y) {\n%i, %o, %f, %g = Split %x {axis = 1, num_outputs = 4}\n"
     "%a = Sigmoid %i\n%b = Sigmoid %f\n%d = Tanh %g\n%e = Sigmoid %o\n%k = Mul %b, %c\n%l = Mul %a, %d\n"
     "%n = Add %k, %l\n%t = Tanh %n\n%y = Mul %e, %t\n}",
     "const float *x = (const float*)in[0], *c = (const float*)in[1];\n"
     "float *__restrict n = (float*)out[0], *__restrict y = (float*)out[1];\n"
     "for (int64_t b = 0; b < n0; ++b) { const float* p = x + b * n2;\n"
     "  for (int64_t j = 0; j < n1; ++j) {\n"
     "    const float i = p[j], o = p[n1 + j], f = p[2 * n1 + j], g = p[3 * n1 + j];\n"
     "    const float m = c[b * n1 + j] / (1.0f + std::exp(-f)) + std::tanh(g) / (1.0f + std::exp(-i));\n"
     "    const float z = std::tanh(m) / (1.0f + std::exp(-o));\n"
     "    n[b * n1 + j] = m; y[b * n1 + j] = z;\n  } }\n"},
    {"maxima of channels",
     {"1x64x256", "4x256x3136", "32x512x3136"},
     "(%x: f32[$0,$1,$2]) -> %y {\n%a = Constant {value = dense<i64[1]: 1>}\n%y = ReduceMax %x, %a\n}",
     "const float* x = (const float*)in[0];\nfloat* __restrict y = (float*)out[0];\n"
     "for (int64_t b = 0; b < n0; ++b) { float* __restrict z = y + b * n2;\n"
     "  for (int64_t j = 0; j < n2; ++j) z[j] = -3.4e38f;\n"
     "  for (int64_t c = 0; c < n1; ++c) for (int64_t j = 0; j < n2; ++j)\n"
     "    z[j] = std::max(z[j], x[(b * n1 + c) * n2 + j]); }\n"},
    {"least and greatest of channels",
     {"1x64x256", "4x256x3136", "32x512x3136"},
     "(%x: f32[$0,$1,$2]) -> (%y, %z) {\n%a = Constant {value = dense<i64[1]: 1>}\n%y = ReduceMin %x, %a\n"
     "%z = ReduceMax %x, %a\n}",
     "const float* x = (const float*)in[0];\nfloat *__restrict y = (float*)out[0], *__restrict w = (float*)out[1];\n"
     "for (int64_t b = 0; b < n0; ++b) { float *__restrict l = y + b * n2, *__restrict h = w + b * n2;\n"
     "  for (int64_t j = 0; j < n2; ++j) l[j] = 3.4e38f, h[j] = -3.4e38f;\n"
     "  for (int64_t c = 0; c < n1; ++c) for (int64_t j = 0; j < n2; ++j) {\n"
     "    const float v = x[(b * n1 + c) * n2 + j]; l[j] = std::min(l[j], v), h[j] = std::max(h[j], v); } }\n"},
    {"L2 norm of channels",
     {"1x64x256", "4x256x3136", "32x512x3136"},
     "(%x: f32[$0,$1,$2]) -> %y {\n%a = Constant {value = dense<i64[1]: 1>}\n%l = ReduceL2 %x, %a\n"
     "%e = Constant {value = dense<f32[]: 0.000001>}\n%m = Max %l, %e\n%y = Div %x, %m\n}",
     "const float* x = (const float*)in[0];\nfloat* __restrict y = (float*)out[0];\n"
     "for (int64_t b = 0; b < n0; ++b) { const float* p = x + b * n1 * n2; float* __restrict z = y + b * n1 * n2;\n"
     "  for (int64_t j = 0; j < n2; ++j) scratch[j] = 0;\n"
     "  for (int64_t c = 0; c < n1; ++c) for (int64_t j = 0; j < n2; ++j) scratch[j] += p[c * n2 + j] * p[c * n2 + "
     "j];\n"
     "  for (int64_t j = 0; j < n2; ++j) scratch[j] = 1.0f / std::max(std::sqrt(scratch[j]), 0.000001f);\n"
     "  for (int64_t c = 0; c < n1; ++c) for (int64_t j = 0; j < n2; ++j) z[c * n2 + j] = p[c * n2 + j] * scratch[j]; "
     "}\n"},
};

}  // namespace

std::span<const Kind> more_kinds() { return kKinds; }
std::span<const WrittenKind> written_kinds() { return kWritten; }

}  // namespace tenon::bench
