#include <tenon/ops/attention.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/float_work.hpp>
#include <tenon/reference/gemm.hpp>
#include <tenon/reference/loops.hpp>

namespace tenon {
namespace {

bool given(EvalContext& context, size_t i) { return i < context.operand_count() && context.has_operand(i); }

// The position of head h of batch entry b in [B, H, L, D] or [B, L, H * D]: its rows are `row` apart.
struct Heads {
  int64_t batch = 0, heads = 0, length = 0, size = 0, row = 0;
  bool packed = false;

  Heads(const Dims& dims, int64_t stated_heads) {
    packed = dims.size() == 3;
    batch = dims[0];
    heads = packed ? stated_heads : dims[1];
    length = packed ? dims[1] : dims[2];
    size = packed ? dims[2] / std::max<int64_t>(1, heads) : dims[3];
    row = packed ? dims[2] : size;
  }
  int64_t offset(int64_t b, int64_t h) const {
    return packed ? b * length * row + h * size : (b * heads + h) * length * size;
  }
};

// Past and present rows of every head, concatenated: [B, H, P + S, D].
template <class T>
std::vector<T> joined(const Tensor& past, const Tensor& present, const Heads& at) {
  const int64_t before = past.valid() ? past.dim(2) : 0, total = before + at.length;
  std::vector<T> out(at.batch * at.heads * total * at.size);
  for (int64_t b = 0; b < at.batch; ++b) {
    for (int64_t h = 0; h < at.heads; ++h) {
      T* to = out.data() + (b * at.heads + h) * total * at.size;
      if (past.valid()) std::copy_n(past.as<T>().data() + (b * at.heads + h) * before * at.size, before * at.size, to);
      const T* from = present.as<T>().data() + at.offset(b, h);
      for (int64_t i = 0; i < at.length; ++i) std::copy_n(from + i * at.row, at.size, to + (before + i) * at.size);
    }
  }
  return out;
}

// The bias of one row of scores.
class Bias {
 public:
  Bias(EvalContext& context, const Tensor& mask, int64_t queries, int64_t keys, int64_t past)
      : mask_(mask), keys_(keys), queries_(queries), past_(past), causal_(context.attr<int64_t>("is_causal", 0) != 0) {
    if (given(context, 6)) nonpad_ = context.tensor(6).to_ints();
  }

  // Adds it to scores[0, keys). True if it is -inf everywhere.
  template <class T>
  bool add(int64_t b, int64_t h, int64_t i, T* scores) const {
    const int64_t limit = std::clamp<int64_t>(visible(b, i), 0, keys_);
    std::fill(scores + limit, scores + keys_, -std::numeric_limits<T>::infinity());
    bool masked = true;
    if (!mask_.valid()) return limit == 0;
    const int64_t row = mask_row(b, h, i), width = mask_.rank() == 0 ? 1 : mask_.dim(mask_.rank() - 1);
    for (int64_t j = 0; j < limit; ++j) {
      const T addend =
          width != 1 && j >= width ? -std::numeric_limits<T>::infinity() : element<T>(row + (width == 1 ? 0 : j));
      scores[j] += addend;
      masked = masked && addend == -std::numeric_limits<T>::infinity();
    }
    return masked;
  }

 private:
  // Columns from this one on are masked for row i.
  int64_t visible(int64_t b, int64_t i) const {
    const int64_t length = nonpad_.empty() ? keys_ : nonpad_[b];
    if (!causal_) return length;
    return std::min(length, i + 1 + (nonpad_.empty() ? past_ : nonpad_[b] - queries_));
  }
  // The offset of the mask's row for this row of scores; the mask has at most the axes [B, H, L, S].
  int64_t mask_row(int64_t b, int64_t h, int64_t i) const {
    const int64_t at[] = {b, h, i};
    int64_t row = 0;
    for (int64_t axis = 0; axis + 1 < mask_.rank(); ++axis) {
      const int64_t extent = mask_.dim(axis);
      row = row * extent + (extent == 1 ? 0 : at[axis + 4 - mask_.rank()]);
    }
    return mask_.rank() == 0 ? 0 : row * mask_.dim(mask_.rank() - 1);
  }
  template <class T>
  T element(int64_t i) const {
    if (mask_.element().is_bool()) return mask_.as<uint8_t>()[i] ? T(0) : -std::numeric_limits<T>::infinity();
    return mask_.as<T>()[i];
  }

  const Tensor& mask_;
  int64_t keys_, queries_, past_;
  bool causal_;
  std::vector<int64_t> nonpad_;
};

// In place; -inf everywhere gives NaN, like 0 / 0.
template <class T>
void softmax_row(T* row, int64_t count) {
  if (count == 0) return;
  const T largest = *std::max_element(row, row + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(row[i] = std::exp(row[i] - largest));
  for (int64_t i = 0; i < count; ++i) row[i] = static_cast<T>(static_cast<double>(row[i]) / sum);
}

double scale_of(EvalContext& context, int64_t head_size) {
  return context.op().attributes().has("scale") ? context.attr<float>("scale")
                                                : 1 / std::sqrt(static_cast<double>(head_size));
}

// scores[b, h] = scale * Q K' for every query head; keys [B, Hkv, S, D].
template <class T>
void score(const Heads& q, const T* queries, int64_t kv_heads, int64_t keys_count, const T* keys, double scale,
           int64_t b, int64_t h, T* scores) {
  const int64_t kv = b * kv_heads + h / (q.heads / kv_heads);
  gemm<T>(q.length, keys_count, q.size, MatrixView<T>{queries + q.offset(b, h), q.row, 1},
          MatrixView<T>{keys + kv * keys_count * q.size, 1, q.size}, scores, keys_count, Store::overwrite, serial());
  for (int64_t i = 0; i < q.length * keys_count; ++i) scores[i] *= static_cast<T>(scale);
}

// Computes one head of Y.
template <class T>
void weigh(const Heads& q, const Heads& y, int64_t kv_heads, int64_t keys_count, const T* probabilities,
           const T* values, int64_t b, int64_t h, T* out) {
  const int64_t kv = b * kv_heads + h / (q.heads / kv_heads);
  gemm<T>(q.length, y.size, keys_count, MatrixView<T>{probabilities, keys_count, 1},
          MatrixView<T>{values + kv * keys_count * y.size, y.size, 1}, out + y.offset(b, h), y.row, Store::overwrite,
          serial());
}

struct AttentionOperands {
  Tensor q, k, v, mask, past_key, past_value;
};

Result<AttentionOperands> attention_operands(EvalContext& context, ElementType work) {
  AttentionOperands operands;
  Tensor* const all[] = {&operands.q,    &operands.k,        &operands.v,
                         &operands.mask, &operands.past_key, &operands.past_value};
  for (size_t i = 0; i < std::size(all); ++i) {
    if (!given(context, i)) continue;
    const Tensor& tensor = context.tensor(i);
    TENON_TRY(converted, tensor.element().is_bool() ? Result<Tensor>(tensor) : in_work_type(tensor, work));
    *all[i] = std::move(converted);
  }
  return operands;
}

template <class T>
void attend(EvalContext& context, const AttentionOperands& operands, std::vector<WorkResult>& results) {
  const int64_t kv_heads_stated = context.attr<int64_t>("kv_num_heads", 0),
                q_heads_stated = context.attr<int64_t>("q_num_heads", 0);
  const Heads q(operands.q.dims(), q_heads_stated), k(operands.k.dims(), kv_heads_stated),
      v(operands.v.dims(), kv_heads_stated);
  const Heads y(results[0].tensor().dims(), q_heads_stated);
  const auto keys = joined<T>(operands.past_key, operands.k, k), values = joined<T>(operands.past_value, operands.v, v);
  const int64_t past = operands.past_key.valid() ? operands.past_key.dim(2) : 0, count = past + k.length;
  if (results.size() > 1) std::copy(keys.begin(), keys.end(), results[1].data<T>());
  if (results.size() > 2) std::copy(values.begin(), values.end(), results[2].data<T>());
  T* shown = results.size() > 3 ? results[3].data<T>() : nullptr;
  const int64_t mode = context.attr<int64_t>("qk_matmul_output_mode", 0);
  const double scale = scale_of(context, q.size);
  const T softcap = context.attr<float>("softcap", 0.0f);
  const Bias bias(context, operands.mask, q.length, count, past);
  const int64_t area = q.length * count;
  T* out = results[0].data<T>();
  context.parallel().run(q.batch * q.heads, grain_of(area * (q.size + y.size + 8)), [&](int64_t begin, int64_t end) {
    std::vector<T> scores(area);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t b = t / q.heads, h = t % q.heads;
      const auto show = [&](int64_t stage) {
        if (shown && stage == mode) std::copy(scores.begin(), scores.end(), shown + t * area);
      };
      score(q, operands.q.as<T>().data(), k.heads, count, keys.data(), scale, b, h, scores.data());
      show(0);
      if (softcap > 0) {
        for (T& value : scores) value = softcap * std::tanh(value / softcap);
      }
      show(1);
      std::vector<bool> hidden(q.length);
      for (int64_t i = 0; i < q.length; ++i) hidden[i] = bias.add(b, h, i, scores.data() + i * count);
      show(2);
      for (int64_t i = 0; i < q.length; ++i) {
        if (hidden[i])
          std::fill_n(scores.data() + i * count, count, T(0));
        else
          softmax_row(scores.data() + i * count, count);
      }
      show(3);
      weigh(q, y, k.heads, count, scores.data(), values.data(), b, h, out);
    }
  });
}

Result<void> mask_fits(const Tensor& mask, const Dims& scores) {
  if (!mask.valid()) return {};
  bool fits = mask.rank() <= 4;
  for (int64_t axis = 0; fits && axis < mask.rank(); ++axis) {
    const int64_t extent = mask.dim(axis), wanted = scores[axis + 4 - mask.rank()];
    fits = extent == 1 || extent == wanted || (axis + 1 == mask.rank() && extent < wanted);
  }
  if (fits) return {};
  return error(Code::invalid_argument, "attn_mask ", mask.dims(), " does not broadcast to the scores ", scores);
}

// Softmax is computed in f32, or in f64 for f64: at least what softmax_precision may request.
Result<void> attention(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(operands, attention_operands(context, work));
  const Heads q(operands.q.dims(), context.attr<int64_t>("q_num_heads", 0)),
      k(operands.k.dims(), context.attr<int64_t>("kv_num_heads", 0));
  const int64_t past = operands.past_key.valid() ? operands.past_key.dim(2) : 0;
  TENON_OK(mask_fits(operands.mask, {q.batch, q.heads, q.length, past + k.length}));
  if (given(context, 6)) {
    const std::vector<int64_t> lengths = context.tensor(6).to_ints();
    if (std::ssize(lengths) != q.batch) {
      return error(Code::invalid_argument, "nonpad_kv_seqlen has ", lengths.size(), " elements for a batch of ",
                   q.batch);
    }
    for (const int64_t length : lengths) {
      if (length >= 0 && length <= past + k.length) continue;
      return error(Code::invalid_argument, "nonpad_kv_seqlen holds ", length, ", outside the ", past + k.length,
                   " keys");
    }
  }
  std::vector<WorkResult> results;
  for (size_t i = 0; i < context.result_count(); ++i) {
    TENON_TRY(result, WorkResult::make(context, i, work));
    results.push_back(std::move(result));
  }
  with_work_type(work, [&]<class T>() { attend<T>(context, operands, results); });
  for (WorkResult& result : results) TENON_OK(result.deliver());
  return {};
}

// One modifier of FlexAttention: the region's output in the work type.
Result<Tensor> modified(EvalContext& context, size_t region, Tensor scores) {
  const ElementType element = scores.element();
  const Dims dims = scores.dims();
  const Type& declared = context.op().region(region).input(0)->type();
  if (declared.is_tensor() && declared.element().valid()) {
    TENON_TRY(converted, in_work_type(scores, declared.element()));
    scores = std::move(converted);
  }
  TENON_TRY(outputs, context.run_region(region, {Datum(std::move(scores))}));
  if (outputs.size() != 1 || !outputs[0].is_tensor() || outputs[0].tensor().dims() != dims) {
    return error(Code::invalid_argument, "region ", region, " must give one tensor of its input's shape ", dims);
  }
  return in_work_type(outputs[0].tensor(), element);
}

Result<void> flex_attention(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(operands, attention_operands(context, work));
  const Heads q(operands.q.dims(), 0), k(operands.k.dims(), 0);
  TENON_TRY(y, WorkResult::make(context, 0, work));
  const Heads out(y.tensor().dims(), 0);
  const int64_t area = q.length * k.length;
  TENON_TRY(scores, Tensor::allocate(work, {q.batch, q.heads, q.length, k.length}));
  const auto each_head = [&](auto&& body) {
    context.parallel().run(q.batch * q.heads, grain_of(area * q.size), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) body(t, t / q.heads, t % q.heads);
    });
  };
  with_work_type(work, [&]<class T>() {
    each_head([&](int64_t t, int64_t b, int64_t h) {
      score(q, operands.q.as<T>().data(), k.heads, k.length, operands.k.as<T>().data(), scale_of(context, q.size), b, h,
            scores.mutable_as<T>().data() + t * area);
    });
  });
  TENON_TRY(biased, modified(context, 0, std::move(scores)), "score_mod");
  // The region may have returned bytes that others share.
  TENON_TRY(weights, biased.clone(), "the scores");
  with_work_type(work, [&]<class T>() {
    each_head([&](int64_t t, int64_t, int64_t) {
      for (int64_t i = 0; i < q.length; ++i)
        softmax_row(weights.mutable_as<T>().data() + t * area + i * k.length, k.length);
    });
  });
  TENON_TRY(probabilities, modified(context, 1, std::move(weights)), "prob_mod");
  with_work_type(work, [&]<class T>() {
    each_head([&](int64_t t, int64_t b, int64_t h) {
      weigh(q, out, k.heads, k.length, probabilities.as<T>().data() + t * area, operands.v.as<T>().data(), b, h,
            y.data<T>());
    });
  });
  return y.deliver();
}

// ---- RotaryEmbedding ----

Result<void> rotary_embedding(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(x, in_work_type(context.tensor(0), work));
  TENON_TRY(cosines, in_work_type(context.tensor(1), work));
  TENON_TRY(sines, in_work_type(context.tensor(2), work));
  TENON_TRY(y, WorkResult::make(context, 0, work));
  const Heads at(x.dims(), context.attr<int64_t>("num_heads", 0));
  const int64_t stated = context.attr<int64_t>("rotary_embedding_dim", 0), pairs = (stated > 0 ? stated : at.size) / 2;
  const bool interleaved = context.attr<int64_t>("interleaved", 0) != 0;
  const int64_t rows = pairs == 0 ? INT64_MAX : cosines.size() / pairs;
  std::vector<int64_t> positions;  // the row of the caches for each [b, i]
  for (int64_t p = 0; p < at.batch * at.length; ++p) {
    const int64_t position = given(context, 3) ? context.tensor(3).int_at(p) : p;
    if (position < 0 || position >= rows) {
      return error(Code::invalid_argument, "position ", position, " at ", p, " is outside the cache of ", rows);
    }
    positions.push_back(position);
  }
  with_work_type(work, [&]<class T>() {
    std::copy_n(x.as<T>().data(), x.size(), y.data<T>());
    for (int64_t b = 0; b < at.batch; ++b) {
      for (int64_t h = 0; h < at.heads; ++h) {
        for (int64_t i = 0; i < at.length; ++i) {
          const int64_t row = at.offset(b, h) + i * at.row, cache = positions[b * at.length + i] * pairs;
          for (int64_t p = 0; p < pairs; ++p) {
            const int64_t first = row + (interleaved ? 2 * p : p), second = row + (interleaved ? 2 * p + 1 : p + pairs);
            const T c = cosines.as<T>()[cache + p], s = sines.as<T>()[cache + p], u = x.as<T>()[first],
                    v = x.as<T>()[second];
            y.data<T>()[first] = u * c - v * s;
            y.data<T>()[second] = u * s + v * c;
          }
        }
      }
    }
  });
  return y.deliver();
}

// ---- LinearAttention ----

Result<void> linear_attention(EvalContext& context) {
  const ElementType work = work_type(context.tensor(0).element());
  TENON_TRY(query, in_work_type(context.tensor(0), work));
  TENON_TRY(key, in_work_type(context.tensor(1), work));
  TENON_TRY(value, in_work_type(context.tensor(2), work));
  Tensor extra[3];  // past_state, decay, beta
  for (size_t i = 0; i < 3; ++i) {
    if (!given(context, i + 3)) continue;
    TENON_TRY(converted, in_work_type(context.tensor(i + 3), work));
    extra[i] = std::move(converted);
  }
  const auto& [past, decay, beta] = extra;
  std::vector<WorkResult> results;
  for (size_t i = 0; i < context.result_count(); ++i) {
    TENON_TRY(result, WorkResult::make(context, i, work));
    results.push_back(std::move(result));
  }
  const Heads q(query.dims(), context.attr<int64_t>("q_num_heads")),
      k(key.dims(), context.attr<int64_t>("kv_num_heads"));
  const Heads v(value.dims(), k.heads), y(results[0].tensor().dims(), q.heads);
  const double stated = context.attr<float>("scale", 0.0f),
               scale = stated == 0 ? 1 / std::sqrt(static_cast<double>(k.size)) : stated;
  const bool delta = context.attr<std::string>("update_rule", "gated_delta").ends_with("delta");
  const int64_t area = k.size * v.size, sharing = q.heads / k.heads;
  // How many numbers a step of decay and beta has per head: 0 if one is shared by all.
  const auto per_head = [&](const Tensor& t) { return t.valid() ? t.dim(2) / k.heads : 0; };
  with_work_type(work, [&]<class T>() {
    context.parallel().run(k.batch * k.heads, grain_of(k.length * area * 4), [&](int64_t begin, int64_t end) {
      std::vector<double> state(area), write(v.size);
      for (int64_t t = begin; t < end; ++t) {
        const int64_t b = t / k.heads, h = t % k.heads;
        for (int64_t i = 0; i < area; ++i) state[i] = past.valid() ? past.as<T>()[t * area + i] : 0;
        for (int64_t step = 0; step < k.length; ++step) {
          const T* keys = key.as<T>().data() + k.offset(b, h) + step * k.row;
          const T* values = value.as<T>().data() + v.offset(b, h) + step * v.row;
          const auto parameter = [&](const Tensor& tensor, int64_t row) -> double {
            const int64_t width = per_head(tensor);
            return tensor
                .as<T>()[(b * k.length + step) * tensor.dim(2) + (width == 0 ? 0 : h * width + (width == 1 ? 0 : row))];
          };
          for (int64_t i = 0; decay.valid() && i < k.size; ++i) {
            const double factor = std::exp(parameter(decay, i));
            for (int64_t j = 0; j < v.size; ++j) state[i * v.size + j] *= factor;
          }
          for (int64_t j = 0; j < v.size; ++j) {
            write[j] = values[j];
            for (int64_t i = 0; delta && i < k.size; ++i) write[j] -= state[i * v.size + j] * keys[i];
            if (delta) write[j] *= parameter(beta, 0);
          }
          for (int64_t i = 0; i < area; ++i) state[i] += keys[i / v.size] * write[i % v.size];
          for (int64_t share = 0; share < sharing; ++share) {
            const T* queries = query.as<T>().data() + q.offset(b, h * sharing + share) + step * q.row;
            T* out = results[0].data<T>() + y.offset(b, h * sharing + share) + step * y.row;
            for (int64_t j = 0; j < v.size; ++j) {
              double sum = 0;
              for (int64_t i = 0; i < k.size; ++i) sum += queries[i] * state[i * v.size + j];
              out[j] = static_cast<T>(scale * sum);
            }
          }
        }
        for (int64_t i = 0; results.size() > 1 && i < area; ++i)
          results[1].data<T>()[t * area + i] = static_cast<T>(state[i]);
      }
    });
  });
  for (WorkResult& result : results) TENON_OK(result.deliver());
  return {};
}

const EvaluatorRegistration kAttentionRegistered({
    {AttentionOp::kName, attention},
    {FlexAttention::kName, flex_attention},
    {RotaryEmbedding::kName, rotary_embedding},
    {LinearAttention::kName, linear_attention},
});

}  // namespace
}  // namespace tenon
