// Attention and related operators of language models.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// Y = P V, P = softmax of each row of S, S = softcap(scale * Q K') + bias; K' is the transpose of K.
//   heads      Q: [B, Hq, L, D], K: [B, Hkv, S, D], V: [B, Hkv, S, Dv], or all [B, L, heads * D] with q_num_heads and
//              kv_num_heads; Hq / Hkv query heads share one K and V. Y as Q, with Dv.
//   past       past_key, past_value [B, Hkv, P, D] precede K and V; present_key, present_value are the joined tensors.
//   softcap    c tanh(x / c) for c = softcap > 0.
//   bias       attn_mask broadcast to [B, Hq, L, P + S], added; or -inf where a boolean mask is false; -inf also where
//              the mask ends before the last axis does. is_causal: -inf for columns after row + P. nonpad_kv_seqlen
//              [B]: -inf from this column on, and causal rows then start at nonpad_kv_seqlen - L. A row of P whose bias
//              is -inf everywhere is 0.
//   scale      1 / sqrt(D) if not stated.
// qk_matmul_output [B, Hq, L, P + S], by qk_matmul_output_mode: 0 scale * Q K', 1 after softcap, 2 S, 3 P.
struct AttentionOp : OpView<AttentionOp> {
  static constexpr std::string_view kName = "Attention";
  using OpView::OpView;
  Value* q() const { return operand(0); }
  Value* k() const { return operand(1); }
  Value* v() const { return operand(2); }
  Value* attn_mask() const { return operand(3); }  // may be null, like all that follow
  Value* past_key() const { return operand(4); }
  Value* past_value() const { return operand(5); }
  Value* nonpad_kv_seqlen() const { return operand(6); }
  bool is_causal() const { return attr<int64_t>("is_causal", 0) != 0; }
};

// Y = prob_mod(softmax(score_mod(scale * Q K'))) V with Q, K, V as in Attention, 4 axes. The regions are score_mod and
// prob_mod, in this order, each from [B, Hq, L, S] to the same; the identity where a model has none. Their values are
// f32 (f64 for f64), or of the type that they declare.
struct FlexAttention : OpView<FlexAttention> {
  static constexpr std::string_view kName = "ai.onnx.preview.FlexAttention";
  using OpView::OpView;
  Value* q() const { return operand(0); }
  Value* k() const { return operand(1); }
  Value* v() const { return operand(2); }
};

// Rotates pairs (a, b) among the first rotary_embedding_dim elements (0: all) of each head by the angle of their
// position: (a cos - b sin, a sin + b cos). A pair takes one element from each half of that part or, with
// `interleaved`, consists of neighbours. X: [B, H, L, D], or [B, L, num_heads * D]. Caches: [positions, pairs] indexed
// by position_ids [B, L], or without these [B, L, pairs].
struct RotaryEmbedding : OpView<RotaryEmbedding> {
  static constexpr std::string_view kName = "RotaryEmbedding";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* cos_cache() const { return operand(1); }
  Value* sin_cache() const { return operand(2); }
  Value* position_ids() const { return operand(3); }  // may be null
};

// Attention with a running state S [Dk, Dv] for each key head, updated step by step in time:
//   linear        S += k v'                        delta        S += beta k (v - S' k)'
//   gated         S = exp(g) S + k v'              gated_delta  S = exp(g) S, then as delta
//   output_t = scale * S' q_t, scale 1 / sqrt(Dk) when 0
// query: [B, T, q_num_heads * Dk], key: [B, T, kv_num_heads * Dk], value: [B, T, kv_num_heads * Dv]; decay g: one per
// head, or one per head and row of S; beta: one per head or one for all. Query heads share key heads as in Attention.
// States: [B, kv_num_heads, Dk, Dv]. chunk_size is a hint for targets.
struct LinearAttention : OpView<LinearAttention> {
  static constexpr std::string_view kName = "LinearAttention";
  using OpView::OpView;
  Value* query() const { return operand(0); }
  Value* key() const { return operand(1); }
  Value* value() const { return operand(2); }
  Value* past_state() const { return operand(3); }  // may be null, like all that follow
  Value* decay() const { return operand(4); }
  Value* beta() const { return operand(5); }
};

}  // namespace tenon
