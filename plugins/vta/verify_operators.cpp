#include <algorithm>
#include <unordered_map>

#include <tenon/ops/constant.hpp>

#include "vta/operators.hpp"
#include "vta/operators_internal.hpp"
#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

template <class... Parts>
Error wrong(const Op& op, const Parts&... parts) {
  return error(Code::invalid_argument, op.describe(), ": ", parts...);
}

Result<Dims> dims_of(const Op& op, const Value& value, std::string_view what) {
  const auto dims = value.type().shape().static_dims();
  if (dims && dims->size() >= 2 && dims->size() <= 4) return *dims;
  return wrong(op, what, " has the shape ", value.type().shape(), "; ranks 2 to 4 of known extents are taken");
}

Result<void> verify_list(const Op& op, Name name, size_t count, int64_t least) {
  const auto& list = integers_of(op.attributes(), name);
  if (!op.attributes().has(name)) return {};
  if (list.size() != count) return wrong(op, "'", name, "' has ", list.size(), " numbers, not ", count);
  for (const int64_t number : list)
    if (number < least) return wrong(op, "'", name, "' holds ", number, ", which is below ", least);
  return {};
}

Result<void> verify_micro_ops(const Op& op) {
  const auto& uops = integers_of(op.attributes(), names().uops);
  if (uops.size() % 2 != 0) return wrong(op, "'uops' has ", uops.size(), " numbers, which are no pairs");
  for (size_t i = 0; i < uops.size(); i += 2)
    if (uops[i] < 0 || uops[i] >= uops[i + 1])
      return wrong(op, "'uops' holds the range [", uops[i], ", ", uops[i + 1], ")");
  return {};
}

// Along one axis: x must have as many windows as acc has positions.
Result<void> verify_axis(const Op& op, std::string_view axis_name, const WindowAxis& axis, int64_t behind, int64_t x,
                         int64_t acc) {
  const int64_t room = x + axis.pad + behind - axis.extent();
  const int64_t windows = room < 0 ? 0 : room / axis.stride + 1;
  if (windows == acc) return {};
  return wrong(op, "x has ", windows, " windows along its ", axis_name, ", acc has ", acc);
}

Result<void> verify_window(const Op& op, const Extents& acc, const Extents& x) {
  TENON_OK(verify_list(op, names().kernel, 2, 1));
  TENON_OK(verify_list(op, names().strides, 2, 1));
  TENON_OK(verify_list(op, names().dilations, 2, 1));
  TENON_OK(verify_list(op, names().pads, 4, 0));
  TENON_OK(verify_micro_ops(op));
  if (acc.n != x.n) return wrong(op, "x has ", x.n, " images, acc ", acc.n);
  const WindowAttributes window = window_of(op.attributes());
  TENON_OK(verify_axis(op, "rows", window.rows, window.bottom, x.h, acc.h));
  return verify_axis(op, "columns", window.cols, window.right, x.w, acc.w);
}

// ---- Weights ----

// In the layout of the model: [O, C / group, kernel ...].
Result<void> verify_plain_weights(const Op& op, const Dims& w, const Extents& acc, const Extents& x) {
  const int64_t group = integer_of(op.attributes(), names().group, 1);
  const WindowAttributes window = window_of(op.attributes());
  int64_t taps = 1;
  for (size_t d = 2; d < w.size(); ++d) taps *= w[d];
  if (w.size() >= 2 && w[0] == acc.c && w[1] * group == x.c && taps == window.rows.kernel * window.cols.kernel)
    return {};
  return wrong(op, "w is ", Shape(w), "; ", x.c, " channels in ", group, " groups become ", acc.c, " by ",
               window.rows.kernel, " x ", window.cols.kernel, " taps");
}

// In the machine's blocks: [output blocks, input blocks, kernel, block, block].
Result<void> verify_packed_weights(const Op& op, const Dims& w, const Extents& acc, const Extents& x) {
  if (w.size() != 6 || w[4] != w[5])
    return wrong(op, "w is ", Shape(w), "; packed, it has square blocks in its last two of six dims");
  const auto form = op.attr<std::string>(names().form);
  const int64_t block = w[4], outputs = ceil_div(acc.c, block), inputs = ceil_div(x.c, block);
  const WindowAttributes window = window_of(op.attributes());
  const bool taps = w[2] == window.rows.kernel && w[3] == window.cols.kernel;
  if (form == "uniform") {
    if (w[0] * w[1] * w[2] * w[3] == 1 && outputs == inputs) return {};
    return wrong(op, "w is ", Shape(w), "; a uniform one is one element, for as many blocks as x has: ", inputs);
  }
  if (form == "diagonal") {
    if (taps && w[0] == outputs && w[1] == 1 && outputs == inputs) return {};
    return wrong(op, "w is ", Shape(w), "; a diagonal one has one element for each of ", outputs, " blocks and tap");
  }
  const int64_t x_block = integer_of(op.attributes(), names().x_block, 0);
  const int64_t w_block = integer_of(op.attributes(), names().w_block, 0);
  const int64_t groups = integer_of(op.attributes(), names().groups, 1);
  const int64_t blocks = integer_of(op.attributes(), names().blocks, groups > 0 ? inputs / groups : 0);
  if (taps && w[0] == outputs && x_block >= 0 && w_block >= 0 && blocks >= 1 && x_block + blocks <= inputs &&
      w_block + blocks <= w[1])
    return {};
  return wrong(op, "w is ", Shape(w), " for ", outputs, " output blocks and ", blocks, " of ", inputs,
               " input blocks, from ", x_block, " in x and ", w_block, " in w on");
}

// Verifies the address lists of kernels and streams.
Result<void> verify_dram(const Op& op, size_t count) {
  const auto& dram = integers_of(op.attributes(), names().dram);
  TENON_OK(verify_list(op, names().dram, count, 0));
  // A value must be at the address where its producer stored it.
  for (size_t i = 0; i < op.operand_count() && i + 1 < dram.size(); ++i) {
    const Op* made = op.operand(i) ? op.operand(i)->producer() : nullptr;
    if (!made) continue;
    const auto& places = integers_of(made->attributes(), names().dram);
    const int64_t there = places.empty() ? integer_of(made->attributes(), names().at, dram[i]) : places.back();
    if (there != dram[i])
      return wrong(op, "operand ", i, " is read at byte ", dram[i], ", ", made->describe(), " left it at ", there);
  }
  return {};
}

}  // namespace

Result<void> verify_zero(const Op& op) {
  const auto& shape = integers_of(op.attributes(), names().shape);
  if (shape.size() < 2 || shape.size() > 4 || *std::min_element(shape.begin(), shape.end()) < 1)
    return wrong(op, "'shape' is ", Shape(shape), "; ranks 2 to 4 of positive extents are taken");
  for (const Name name : {names().slot, names().at})
    if (integer_of(op.attributes(), name, 0) < 0) return wrong(op, "'", name, "' is negative");
  return verify_micro_ops(op);
}

Result<void> verify_gemm(const Op& op) {
  TENON_TRY(acc_dims, dims_of(op, *op.operand(0), "acc"));
  TENON_TRY(x_dims, dims_of(op, *op.operand(1), "x"));
  const Extents acc = extents_of(acc_dims), x = extents_of(x_dims);
  TENON_OK(verify_window(op, acc, x));
  const Value* w = op.operand(2);
  const bool packed = op.attributes().has(names().form);
  if (!w) {
    if (packed) return wrong(op, "'form' is that of packed weights, and there are none");
    if (acc.c == x.c) return {};
    return wrong(op, "x has ", x.c, " channels, acc ", acc.c, "; without weights they are the same");
  }
  const auto w_dims = w->type().shape().static_dims();
  if (!w_dims) return wrong(op, "w has the shape ", w->type().shape(), ", which is not known");
  return packed ? verify_packed_weights(op, *w_dims, acc, x) : verify_plain_weights(op, *w_dims, acc, x);
}

Result<void> verify_alu(const Op& op) {
  TENON_TRY(dims, dims_of(op, *op.operand(0), "acc"));
  TENON_OK(verify_micro_ops(op));
  const Value* vector = op.operand(1);
  if ((vector != nullptr) == op.attributes().has(names().immediate))
    return wrong(op, "it takes either a vector or an immediate value");
  if (!vector) return {};
  const auto there = vector->type().shape().static_dims();
  if (!there || (there->size() != 1 && there->size() != 3))
    return wrong(op, "its vector is ", vector->type(), "; [C], or [blocks, batch, block] is taken");
  const int64_t first = integer_of(op.attributes(), names().vector_block, 0);
  const int64_t values = there->size() == 1 ? (*there)[0] : ((*there)[0] - first) * (*there)[2];
  if (first >= 0 && values >= dims[1]) return {};
  return wrong(op, "its vector is ", vector->type(), ", from block ", first, " on, for ", dims[1], " channels");
}

Result<void> verify_max(const Op& op) {
  TENON_TRY(acc_dims, dims_of(op, *op.operand(0), "acc"));
  TENON_TRY(x_dims, dims_of(op, *op.operand(1), "x"));
  const Extents acc = extents_of(acc_dims), x = extents_of(x_dims);
  if (acc.c != x.c) return wrong(op, "x has ", x.c, " channels, acc ", acc.c);
  return verify_window(op, acc, x);
}

Result<void> verify_narrow(const Op& op) {
  const Attributes& attributes = op.attributes();
  const int64_t shift = integer_of(attributes, names().shift, 0);
  if (attributes.has(names().min) != attributes.has(names().max))
    return wrong(op, "it has one of 'min' and 'max'; both or none are taken");
  const int64_t min = integer_of(attributes, names().min, -128), max = integer_of(attributes, names().max, 127);
  if (shift < 0 || shift > 31 || min < -128 || min > max || max > 127)
    return wrong(op, "shift ", shift, " and limits ", min, " and ", max,
                 " are none of 0 to 31 and -128 to 127 in order");
  if (shift > 0 && !attributes.has(names().min)) return wrong(op, "it shifts without limits");
  return verify_micro_ops(op);
}

Result<void> verify_view(const Op& op) {
  TENON_TRY(from, dims_of(op, *op.operand(0), "x"));
  const auto& to = integers_of(op.attributes(), names().shape);
  const auto one_pixel = [](const Dims& dims) {
    return dims.size() >= 2 && std::all_of(dims.begin() + 2, dims.end(), [](int64_t d) { return d == 1; });
  };
  if (one_pixel(from) && one_pixel(to) && from[0] == to[0] && from[1] == to[1]) return {};
  return wrong(op, "from ", Shape(from), " to ", Shape(to), " values move between blocks");
}

Result<void> verify_stream(const Op& op) {
  const StreamOp stream(const_cast<Op&>(op));
  TENON_OK(verify_dram(op, stream.segment_count()));
  const auto instructions = stream.instructions()->type().shape().static_dims();
  const auto segments = stream.segments()->type().shape().static_dims();
  const bool words = instructions && instructions->size() == 2 && (*instructions)[1] == 2 &&
                     stream.instructions()->type().element() == kU64;
  if (!words || !segments || *segments != Dims{(*instructions)[0]} || stream.segments()->type().element() != kU8)
    return wrong(op, "instructions are ", stream.instructions()->type(), " and their segments ",
                 stream.segments()->type(), ", not u64[n,2] and u8[n]");
  if (stream.micro_ops()->type().element() != kU32)
    return wrong(op, "micro-ops are ", stream.micro_ops()->type(), ", not u32[n]");
  return {};
}

// ---- Kernels ----

namespace {

// Tracks the value in each slot through the body.
class SlotWalk {
 public:
  explicit SlotWalk(const Op& kernel) : kernel_(kernel) {}

  Result<void> run() {
    for (const Op& op : kernel_.region(0)) {
      for (size_t i = 0; i < op.operand_count(); ++i)
        if (op.operand(i)) TENON_OK(check_read(op, *op.operand(i)));
      if (op.result_count() == 0) continue;
      if (op.is(ZeroOp::name()) || op.name() == kLoad) {
        hold(*op.result(), key_of(op));
      } else if (const auto place = place_of_.find(op.operand_count() ? op.operand(0) : nullptr);
                 place != place_of_.end() && op.name() != kStore) {
        hold(*op.result(), place->second);
      }
    }
    return {};
  }

 private:
  // A slot of a memory on the chip, which is named as in the target.
  struct Key {
    std::string_view memory;
    int64_t slot = -1;
    bool operator==(const Key&) const = default;
  };
  static Key key_of(const Op& op) {
    const Attribute* to = op.attributes().find(names().to);
    const auto* memory = to ? to->get_if<std::string>() : nullptr;
    return {memory ? std::string_view(*memory) : "acc", integer_of(op.attributes(), names().slot, -1)};
  }
  const Value*& held(const Key& key) {
    for (auto& [place, value] : holds_)
      if (place == key) return value;
    return holds_.emplace_back(key, nullptr).second;
  }
  void hold(const Value& value, const Key& key) {
    if (key.slot < 0) return;  // resident
    place_of_[&value] = key;
    held(key) = &value;
  }
  Result<void> check_read(const Op& op, const Value& value) {
    const auto place = place_of_.find(&value);
    if (place == place_of_.end() || held(place->second) == &value) return {};
    return wrong(op, "it reads %", value.name(), ", which slot ", place->second.slot, " of ", place->second.memory,
                 " holds no longer");
  }

  inline static const Name kLoad{"dma.load"}, kStore{"dma.store"};
  const Op& kernel_;
  std::unordered_map<const Value*, Key> place_of_;
  std::vector<std::pair<Key, const Value*>> holds_;  // only a few entries
};

Result<void> verify_tiling(const Op& op) {
  const Attributes& attributes = op.attributes();
  TENON_OK(verify_list(op, names().tile, 3, 1));
  for (const Name name : {names().slots, names().weight_slots, names().reduce})
    if (attributes.has(name) && integer_of(attributes, name, 0) < 1)
      return wrong(op, "'", name, "' is ", integer_of(attributes, name, 0), "; at least 1 is wanted");
  if (attributes.has(names().tile) && !attributes.has(names().slots))
    return wrong(op, "it has tiles without a number of slots for them");
  return {};
}

}  // namespace

Result<void> verify_kernel(const Op& op) {
  const Region& body = op.region(0);
  if (body.input_count() != op.operand_count())
    return wrong(op, "its body has ", body.input_count(), " inputs for ", op.operand_count(), " operands");
  for (size_t i = 0; i < op.operand_count(); ++i)
    if (body.input(i)->type() != op.operand(i)->type())
      return wrong(op, "input ", i, " of its body is ", body.input(i)->type(), ", the operand ", op.operand(i)->type());
  if (body.output_count() != 1) return wrong(op, "its body has ", body.output_count(), " outputs, not one");
  TENON_OK(verify_tiling(op));
  if (op.attributes().has(names().dram)) TENON_OK(verify_dram(op, op.operand_count() + 1));
  return SlotWalk(op).run();
}

}  // namespace tenon::vta
