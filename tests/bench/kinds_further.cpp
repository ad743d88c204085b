#include "bench/kinds.hpp"

namespace tenon::bench {
namespace {

constexpr Kind kKinds[] = {
    // Vision transformers and denoising networks.
    {"patches, bias and positions",
     "btc",
     {"1x16x384", "8x197x768", "128x197x768"},
     "x f32 btc; b f32 c; p f32 tc; t = Add x b; y = Add t p"},
    {"layer scale, residual and layer norm",
     "t'c",
     {"16x384", "1024x384", "65536x384"},
     "f f32 tc; x f32 tc; s f32 c; g f32 c; b f32 c; k = Mul f s; !h = Add k x; m = ReduceMean h; d = Sub h m; q = Mul "
     "d d; v = ReduceMean q; e = Add v 0.000001; r = Sqrt e; n = Div d r; w = Mul n g; y = Add w b"},
    {"group norm, swish",
     "ng'cp",
     {"1x8x4x256", "1x32x10x4096", "2x32x20x16384"},
     "x f32 ngcp; g f32 gc; b f32 gc; m = ReduceMean x; d = Sub x m; s = Mul d d; v = ReduceMean s; e = Add v 0.00001; "
     "q = Sqrt e; n = Div d q; w = Mul n g; u = Add w b; z = Sigmoid u; y = Mul u z"},
    {"scale and shift by a time, swish",
     "ncp",
     {"1x32x256", "2x320x4096", "8x320x16384"},
     "x f32 ncp; s f32 nc; t f32 nc; a = Add s 1; k = Mul x a; u = Add k t; g = Sigmoid u; y = Mul u g"},
    {"step by predicted velocities",
     "bchw",
     {"1x4x48x48", "4x4x256x256", "32x4x512x512"},
     "x f32 bchw; v f32 bchw; a f32 b; c f32 b; f f32 b; h f32 b; o = Abs c; s = Add o 0.1; k = Mul x a; l = Mul v s; "
     "u = Sub k l; p = Clip u -1 1; i = Mul p a; d = Sub x i; e = Div d s; q = Mul p f; r = Mul e h; y = Add q r"},
    // Speech.
    {"logarithms within eight of the greatest",
     "n'ft",
     {"1x80x100", "4x80x3000", "64x80x3000"},
     "x f32 nft; c = Max x 0.000001; l = Log c; s = Mul l 0.4342945; m = ReduceMax s; o = Sub m 8; k = Max s o; a = "
     "Add k 4; y = Mul a 0.25"},
    {"means and deviations by attention",
     "bc't",
     {"1x64x100", "8x512x300", "64x1536x300"},
     "x f32 bct; w f32 bct; p = Mul x w; !m = ReduceSum p; s = Mul p x; q = ReduceSum s; k = Mul m m; v = Sub q k; a = "
     "Max v 0.000001; d = Sqrt a"},
    // Recommenders.
    {"crossed features",
     "bc",
     {"16x429", "1024x1024", "16384x1024"},
     "x f32 bc; l f32 bc; w f32 b; o f32 c; k = Mul x w; a = Add k o; y = Add a l"},
    {"logarithms of counts",
     "bc",
     {"128x13", "65536x13", "2097152x13"},
     "i i32 bc; m f32 c; d f32 c; f = Cast:f32 i; r = Relu f; a = Add r 1; l = Log a; s = Sub l m; y = Mul s d"},
    // Detection heads.
    {"distances of distributions",
     "bn'k",
     {"1x500x16", "8x8400x16", "64x33600x16"},
     "x f32 bnk; v f32 k; p = Softmax x; m = Mul p v; y = ReduceSum m"},
    {"focal loss by labels",
     "nc",
     {"64x80", "8192x80", "262144x80"},
     "x f32 nc; t f32 nc; p = Sigmoid x; r = Relu x; k = Mul x t; a = Abs x; n = Neg a; e = Exp n; o = Add e 1; l = "
     "Log o; f = Sub r k; c = Add f l; u = Mul p t; v = Sub 1 p; w = Sub 1 t; q = Mul v w; s = Add u q; d = Sub 1 s; g "
     "= Mul d d; h = Mul g c; y = Mul h 0.25"},
    // State spaces and mixtures of experts.
    {"states of a step",
     "bcs",
     {"1x512x16", "8x2048x16", "256x4096x16"},
     "h f32 bcs; d f32 bc; a f32 cs; b f32 bs; x f32 bc; m = Mul d a; n = Abs m; o = Neg n; e = Exp o; k = Mul e h; u "
     "= Mul d x; v = Mul u b; y = Add k v"},
    {"outputs of states, gated",
     "bc's",
     {"1x512x16", "8x2048x16", "256x4096x16"},
     "h f32 bcs; c f32 bs; x f32 bc; w f32 c; z f32 bc; p = Mul h c; s = ReduceSum p; k = Mul x w; a = Add s k; g = "
     "Sigmoid z; i = Mul z g; y = Mul a i"},
    {"experts of a mask",
     "t'e",
     {"1024x8", "65536x8", "2097152x8"},
     "x f32 te; m bool te; p = Softmax x; w = Where m p 0; s = ReduceSum w; a = Max s 0.000001; y = Div w a"},
    {"squares of logarithms of sums",
     "t'e",
     {"128x64", "8192x64", "262144x64"},
     "x f32 te; m = ReduceMax x; d = Sub x m; e = Exp d; s = ReduceSum e; l = Log s; a = Add l m; y = Mul a a"},
    // Losses and metrics.
    {"cross entropy of smoothed labels",
     "n'c",
     {"16x1000", "1000x1000", "16384x1000"},
     "x f32 nc; t f32 nc; l = LogSoftmax x; q = Mul t 0.9; r = Add q 0.0001; p = Mul l r; s = ReduceSum p; y = Neg s"},
    {"distances of triplets",
     "n'c",
     {"32x256", "4096x256", "65536x256"},
     "a f32 nc; p f32 nc; q f32 nc; d = Sub a p; e = Sub a q; s = Mul d d; t = Mul e e; u = ReduceSum s; v = ReduceSum "
     "t; f = Sub u v; g = Add f 1; y = Relu g"},
    {"correlations of rows",
     "n'c",
     {"32x500", "2000x500", "32768x500"},
     "x f32 nc; z f32 nc; m = ReduceMean x; l = ReduceMean z; d = Sub x m; e = Sub z l; p = Mul d e; s = Mul d d; t = "
     "Mul e e; u = ReduceSum p; v = ReduceSum s; w = ReduceSum t; k = Mul v w; q = Sqrt k; a = Add q 0.000001; y = Div "
     "u a"},
    // Weights and images.
    {"weights of 4 bits by groups",
     "ngk",
     {"16x32x16", "1024x64x16", "4096x256x16"},
     "a u8 ngk; s f32 ng; l = BitwiseAnd a 15; h = BitwiseAnd a 240; i = Cast:f32 l; j = Cast:f32 h; o = Sub i 8; t = "
     "Mul j 0.0625; p = Sub t 8; y = Mul o s; z = Mul p s"},
    {"weights of u8 by groups",
     "ngk",
     {"16x8x128", "1024x16x128", "8192x32x128"},
     "a u8 ngk; s f32 ng; o u8 ng; f = Cast:f32 a; z = Cast:f32 o; d = Sub f z; y = Mul d s"},
    {"pictures by their deviations",
     "n'p",
     {"1x12288", "8x150528", "256x150528"},
     "a u8 np; x = Cast:f32 a; m = ReduceMean x; d = Sub x m; s = Mul d d; v = ReduceMean s; q = Sqrt v; e = Max q "
     "0.002; y = Div d e"},
    {"depths to a picture of bytes",
     "np",
     {"2x6400", "8x307200", "64x307200"},
     "x f32 np; l f32 n; h f32 n; d = Sub x l; r = Sub h l; o = Abs r; e = Add o 0.001; q = Div d e; c = Clip q 0 1; m "
     "= Mul c 255; n = Round m; y = Cast:u8 n"},
    {"film tones of light",
     "cp",
     {"3x4096", "3x327680", "3x8294400"},
     "a f32 cp; x = Abs a; k = Mul x 2.51; l = Add k 0.03; n = Mul x l; m = Mul x 2.43; o = Add m 0.59; p = Mul x o; q "
     "= Add p 0.14; r = Div n q; y = Clip r 0 1"},
    // Time series and equations.
    {"scores by moving statistics",
     "nt",
     {"4x1024", "256x4096", "2048x8192"},
     "x f32 nt; m f32 nt; v f32 nt; a = Abs v; e = Add a 0.00001; q = Sqrt e; d = Sub x m; z = Div d q; y = Clip z -3 "
     "3"},
    {"residuals of an equation, means of squares",
     "n'c",
     {"16x256", "2048x256", "65536x256"},
     "t f32 nc; u f32 nc; x f32 nc; z f32 nc; p = Mul u x; q = Mul z 0.01; r = Add t p; s = Sub r q; w = Mul s s; y = "
     "ReduceMean w"},
    {"residuals of a flow",
     "n",
     {"2048", "131072", "8388608"},
     "t f32 n; u f32 n; v f32 n; x f32 n; y f32 n; p f32 n; a f32 n; b f32 n; k = Mul u x; l = Mul v y; c = Add a b; d "
     "= Mul c 0.01; e = Add t k; f = Add e l; g = Add f p; r = Sub g d"},
};

}  // namespace

std::span<const Kind> further_kinds() { return kKinds; }

}  // namespace tenon::bench
