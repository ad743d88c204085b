#include "bench/kinds.hpp"

namespace tenon::bench {
namespace {

constexpr Kind kKinds[] = {
    // Scores.
    {"scores, capped",
     "bhqk",
     {"1x2x64x128", "1x16x256x256", "4x32x512x512"},
     "x f32 bhqk; d = Div x 50; t = Tanh d; y = Mul t 50"},
    {"scores, capped, softmax",
     "bhq'k",
     {"1x2x64x128", "1x16x128x384", "16x16x384x384"},
     "x f32 bhqk; m f32 qk; d = Mul x 0.02; t = Tanh d; c = Mul t 50; a = Add c m; y = Softmax a"},
    {"scores beside a sink",
     "bhq'k",
     {"1x2x64x128", "1x16x128x384", "16x16x384x384"},
     "x f32 bhqk; s f32 h; g = ReduceMax x; m = Max g s; d = Sub x m; e = Exp d; t = ReduceSum e; u = Sub s m; v = Exp "
     "u; w "
     "= Add t v; y = Div e w"},
    {"experts by a router",
     "t'e",
     {"64x64", "4096x64", "131072x64"},
     "x f32 te; b f32 e; s = Sigmoid x; !c = Add s b; t = ReduceSum s; y = Div s t"},
    // Integers and scales.
    {"rows to u8, their scales and zeros",
     "t'c",
     {"16x1024", "512x2048", "8192x4096"},
     "x f32 tc; l = ReduceMin x; h = ReduceMax x; a = Min l 0; b = Max h 0; r = Sub b a; !s = Mul r 0.003921569; d = "
     "Sub x a; "
     "q = Div d s; n = Round q; k = Clip n 0 255; y = Cast:u8 k"},
    {"sums of i32 by scales to u8",
     "tc",
     {"16x1024", "512x2048", "8192x4096"},
     "i i32 tc; s f32 c; b f32 c; x = Cast:f32 i; m = Mul x s; a = Add m b; n = Round a; k = Clip n 0 255; y = Cast:u8 "
     "k"},
    {"sums of i32 by two scales to f16",
     "tc",
     {"16x1024", "512x2048", "8192x4096"},
     "i i32 tc; s f32 c; r f32 t; x = Cast:f32 i; m = Mul x s; n = Mul m r; y = Cast:f16 n"},
    {"sum of two of u8 and their scales",
     "nchw",
     {"1x16x32x32", "1x64x112x112", "16x64x224x224"},
     "a u8 nchw; b u8 nchw; e = Cast:f32 a; f = Cast:f32 b; p = Sub e 128; q = Sub f 120; s = Mul p 0.031; t = Mul q "
     "0.027; u = "
     "Add s t; r = Relu u; v = Div r 0.043; n = Round v; c = Clip n 0 255; y = Cast:u8 c"},
    // Losses and statistics.
    {"cross entropy of probabilities",
     "nc",
     {"16x1000", "1000x1000", "16384x1000"},
     "p f32 nc; t f32 nc; a = Clip p 0.000001 0.999999; l = Log a; m = Mul t l; b = Sub 1 a; k = Log b; c = Sub 1 t; n "
     "= Mul c k; "
     "s = Add m n; y = Neg s"},
    {"overlap of masks",
     "n'c",
     {"32x512", "2048x512", "32768x512"},
     "x f32 nc; t f32 nc; p = Sigmoid x; m = Mul p t; i = ReduceSum m; a = ReduceSum p; b = ReduceSum t; d = Add i i; "
     "e = Add d 1; "
     "f = Add a b; g = Add f 1; y = Div e g"},
    {"distances of pairs of rows",
     "n'c",
     {"32x512", "2048x512", "32768x512"},
     "a f32 nc; b f32 nc; d = Sub a b; e = Add d 0.000001; s = Mul e e; t = ReduceSum s; y = Sqrt t"},
    {"divergence of a normal",
     "n'c",
     {"16x1000", "1000x1000", "16384x1000"},
     "m f32 nc; l f32 nc; s = Mul m m; e = Exp l; a = Sub l s; b = Sub a e; c = Add b 1; t = ReduceSum c; y = Mul t "
     "-0.5"},
    {"means of what a mask holds",
     "n'c",
     {"32x512", "2048x512", "32768x512"},
     "x f32 nc; m f32 nc; p = Mul x m; s = ReduceSum p; c = ReduceSum m; e = Max c 1; y = Div s e"},
    {"rows less their means over their deviations",
     "n'c",
     {"32x512", "2048x512", "32768x512"},
     "x f32 nc; m = ReduceMean x; d = Sub x m; s = Mul d d; v = ReduceMean s; q = Sqrt v; e = Add q 0.00001; y = Div d "
     "e"},
    {"Huber loss",
     "nc",
     {"16x1000", "1000x1000", "16384x1000"},
     "x f32 nc; t f32 nc; d = Sub x t; a = Abs d; c = Min a 1; h = Mul c 0.5; l = Sub a h; y = Mul l c"},
    {"basis of distances",
     "nk",
     {"128x128", "8192x128", "262144x128"},
     "x f32 n; c f32 k; d = Sub x c; s = Mul d d; g = Mul s -10; y = Exp g"},
    // Images, boxes and sound.
    {"sRGB to light",
     "chw",
     {"3x64x64", "3x512x640", "3x4320x7680"},
     "x f32 chw; c = LessOrEqual x 0.04045; l = Mul x 0.07739938; a = Add x 0.055; d = Div a 1.055; m = Max d 0; p = "
     "Pow m 2.4; y = "
     "Where c l p"},
    {"saturation and value of planes",
     "hw",
     {"64x128", "720x1280", "4320x7680"},
     "r f32 hw; g f32 hw; b f32 hw; i = Max r g; !h = Max i b; j = Min r g; l = Min j b; d = Sub h l; e = Max h "
     "0.000001; s = Div d e"},
    {"boxes of a grid",
     "bn",
     {"1x4000", "8x8400", "512x8400"},
     "x f32 bn; w f32 bn; g f32 n; p f32 n; s = Sigmoid x; a = Mul s 2; b = Sub a 0.5; c = Add b g; !k = Mul c p; t = "
     "Sigmoid w; u = "
     "Mul t 2; v = Mul u u; z = Mul v p"},
    {"mu law",
     "nt",
     {"1x16000", "16x16000", "256x160000"},
     "x f32 nt; a = Abs x; m = Mul a 255; b = Add m 1; l = Log b; s = Sign x; p = Mul s l; y = Mul p 0.18033688"},
    {"magnitudes to a power",
     "ft",
     {"128x64", "513x1000", "4096x8000"},
     "r f32 ft; i f32 ft; a = Mul r r; b = Mul i i; p = Add a b; y = Pow p 0.3"},
    // Between steps.
    {"step of RMSprop",
     "n",
     {"4096", "262144", "16777216"},
     "p f32 n; g f32 n; v f32 n; a = Mul v 0.99; s = Mul g g; b = Mul s 0.01; !w = Add a b; A = Abs w; q = Sqrt A; e = "
     "Add q 0.00001; d = "
     "Div g e; t = Mul d 0.01; y = Sub p t"},
    {"gradients by their norm",
     "n",
     {"4096", "262144", "16777216"},
     "g f32 n; s f32 .; e = Add s 0.000001; d = Div 1 e; m = Min d 1; y = Mul g m"},
    {"average of weights",
     "n",
     {"4096", "262144", "16777216"},
     "a f32 n; b f32 n; d = Sub b a; m = Mul d 0.001; y = Add a m"},
    {"gates of a recurrence",
     "tc",
     {"16x1024", "1024x1536", "16384x1536"},
     "x f32 tc; r f32 tc; h f32 tc; l f32 c; s = Sigmoid r; a = Mul s l; e = Exp a; q = Mul e e; o = Sub 1 q; m = Max "
     "o 0; k = Sqrt m; u = Mul "
     "k x; v = Mul e h; y = Add u v"},
};

}  // namespace

std::span<const Kind> other_kinds() { return kKinds; }

}  // namespace tenon::bench
