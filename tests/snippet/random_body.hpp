// Random bodies of f32, i32 and boolean lanes whose values are integers, so that every order of a sum gives the same
// bits.
#pragma once
#include <snippet/bodies.hpp>

#include <array>

#include <tenon/snippet/body/body_elements.hpp>

namespace tenon::snippet::test {

class RandomBody {
 public:
  explicit RandomBody(uint64_t seed) : random_(static_cast<uint32_t>(seed)) {}

  Body make() {
    const size_t rank = pick(5);
    std::string dims;
    for (size_t d = 0; d < rank; ++d) dims += pick(3) == 0 ? 'r' : 'k';
    BodyBuilder build("random", dims);
    reduces_ = dims.find('r') != std::string::npos;
    all_ = (DimSet{1} << rank) - 1;
    const size_t inputs = 1 + pick(pick(4) == 0 ? 20 : 4);
    for (size_t i = 0; i < inputs; ++i) add_input(build, rank);
    const size_t nodes = 1 + pick(pick(4) == 0 ? 50 : 10);
    for (size_t i = 0; i < nodes; ++i) add_node(build);
    const size_t outputs = 1 + pick(4);
    for (size_t i = 0; i < outputs; ++i) {
      const std::vector<ValueId>& from = pick(4) == 0 && !ints_.empty() ? ints_ : floats_;
      const bool narrow = pick(4) == 0;
      const ElementType element = &from == &floats_ ? (narrow ? kF16 : kF32) : kI32;
      build.output(i == 0 ? floats_.back() : from[pick(from.size())], i == 0 ? kF32 : element);
    }
    return build.take();
  }

  // Bodies with two or more sweeps along rows or down columns, such as x z minus its sum.
  Body make_swept(bool columns) {
    BodyBuilder build("swept", columns ? "rk" : "kr");
    if (!columns && pick(3) == 0) return swept_twice(std::move(build));
    if (!columns && pick(3) == 0) return swept_group();
    const ValueId product = build.op("Mul", {build.input(3), build.input(3)});
    const ValueId fold = build.reduce(pick(2) == 0 ? "ReduceSum" : "ReduceMax", product);
    build.output(build.op("Add", {product, build.op("Neg", {fold})}));
    return build.take();
  }

  // Some extents are 0 or 1; the innermost is around the number of lanes.
  Dims extents(const Body& body, int lanes) {
    Dims made;
    for (size_t d = 0; d < body.rank(); ++d) made.push_back(static_cast<int64_t>(pick(pick(8) == 0 ? 2 : 4) + 1));
    if (!made.empty()) made.back() = widths_of(lanes)[pick(7)];
    if (!made.empty() && pick(12) == 0) made[pick(made.size())] = 0;
    return made;
  }

  // Makes the extents of all dims known, or only the innermost one, or none. Known rows are unrolled.
  void make_known(Body& body, const Dims& extents) {
    const size_t first = std::array<size_t, 3>{0, body.rank() - std::min<size_t>(body.rank(), 1), body.rank()}[pick(3)];
    for (size_t d = first; d < body.rank(); ++d) body.dims[d].extent = extents[d];
  }

  // Makes some inputs parts of tensors: a cut takes a part of one of their dims, or one index of a dim that the body
  // does not have.
  void cut_inputs(Body& body, const Dims& extents) {
    for (BodyPort& input : body.inputs) cut(body, input, extents);
  }
  // The same for outputs, except where `serves` rejects the resulting layout.
  template <class Serves>
  void cut_outputs(Body& body, const Dims& extents, Serves serves) {
    for (BodyPort& output : body.outputs) {
      cut(body, output, extents);
      if (!serves(output, layout_of(output, body.values[static_cast<size_t>(output.value)].varies, extents)))
        output.cuts.clear();
    }
  }

  // In half of the bodies whose rows may be joined, makes rows so short and so many that they are joined.
  void lengthen_rows(const Body& body, Dims& extents) {
    if (!may_join_rows(body) || pick(2) == 0) return;
    extents[extents.size() - 2] = static_cast<int64_t>(90 + pick(120));
    extents.back() = static_cast<int64_t>(1 + pick(20));
  }

  // Block sizes of kernels that may be cut into blocks: none, the smallest one, or one chosen by the bytes of a block.
  std::vector<LinearKernel::Blocks::Size> block_sizes() {
    switch (pick(3)) {
      case 0: return {};
      case 1: return {{.elements = kLineElements}};
      default: return {{2 * kLineElements, static_cast<int64_t>(pick(2) + 1) * 4000}, {.elements = kLineElements}};
    }
  }

  size_t pick(size_t n) { return random_() % n; }
  std::mt19937& random() { return random_; }

 private:
  // In half of the cases, at whole lines of floats.
  void cut(const Body& body, BodyPort& port, const Dims& extents) {
    const DimSet set = body.values[static_cast<size_t>(port.value)].varies;
    const int64_t unit = pick(2) == 0 ? 1 : 16;
    const auto some = [&] { return static_cast<int64_t>(pick(4)) * unit; };
    for (size_t d = body.rank() + 1; d-- > 0 && port.cuts.size() < 2;) {
      if (pick(8) != 0) continue;
      const bool part = d < body.rank() && (set >> d & 1) != 0 && extents[d] > 0 && pick(3) != 0;
      const int64_t box = part ? extents[d] : 1, begin = some();
      port.cuts.push_back({static_cast<int>(d), begin, box, begin + box + some()});
    }
    if (!lanes_follow(port.cuts, set)) port.cuts.clear();
  }

  // As make_swept(), with two reduced dims and a factor for each index of the outer one. The sweep that reduces may
  // traverse both as one dim.
  Body swept_group() {
    const size_t around = 1 + pick(2);  // kept dims
    BodyBuilder build("group", around == 1 ? "krr" : "kkrr");
    const DimSet channels = DimSet{1} << around, all = 4 * channels - 1;
    const ValueId x = build.input(all), factor = build.input(pick(2) == 0 ? channels : channels | channels >> 1);
    const ValueId fold = build.reduce(pick(2) == 0 ? "ReduceSum" : "ReduceMax", x);
    build.output(build.op("Mul", {build.op("Add", {x, build.op("Neg", {fold})}), factor}));
    return build.take();
  }

  // A softmax of integers: y = x minus its maximum, then y minus its sum.
  Body swept_twice(BodyBuilder build) {
    const ValueId x = build.input(3);
    const ValueId less = build.op("Add", {x, build.op("Neg", {build.reduce("ReduceMax", x)})});
    build.output(build.op("Add", {less, build.op("Neg", {build.reduce("ReduceSum", less)})}));
    return build.take();
  }

  void add_input(BodyBuilder& build, size_t rank) {
    const DimSet all = (DimSet{1} << rank) - 1;
    const DimSet varies = pick(2) == 0 ? all : static_cast<DimSet>(random_()) & all;
    switch (pick(6)) {
      case 0: ints_.push_back(build.input(varies, pick(2) ? kI32 : kI8)); break;
      case 1: masks_.push_back(build.input(varies, kBool)); break;
      default: floats_.push_back(build.input(varies, pick(3) ? kF32 : pick(2) ? kF16 : kBF16));
    }
    if (floats_.empty()) floats_.push_back(build.input(varies));
  }

  ValueId of(const std::vector<ValueId>& from) {
    return from[from.size() - 1 - pick(std::min<size_t>(from.size(), 8))];
  }
  // Keeps numbers small enough for exact sums.
  ValueId clamped(BodyBuilder& build, ValueId x) {
    return build.op("ClampLow", {build.op("ClampHigh", {x, build.scalar(8)}), build.scalar(-8)});
  }

  void add_node(BodyBuilder& build) {
    switch (pick(13)) {
      case 0: floats_.push_back(clamped(build, build.op("Mul", {of(floats_), of(floats_)}))); break;
      case 1: floats_.push_back(build.op("Max", {of(floats_), of(floats_)})); break;
      case 2: floats_.push_back(build.op("Neg", {of(floats_)})); break;
      case 3: floats_.push_back(build.op("Abs", {of(floats_)})); break;
      case 4: masks_.push_back(build.op("Less", {of(floats_), of(floats_)}, {}, kBool)); break;
      case 5:
        if (!masks_.empty()) floats_.push_back(build.op("Where", {of(masks_), of(floats_), of(floats_)}));
        break;
      case 6:
        if (!ints_.empty()) ints_.push_back(build.op(pick(2) ? "Mul" : "Sub", {of(ints_), of(ints_)}));
        break;
      case 7:
        if (masks_.size() > 1) masks_.push_back(build.op("Xor", {of(masks_), of(masks_)}));
        break;
      case 8:
      case 9: add_reduction(build); break;
      case 10: {
        std::vector<ValueId>& from = pick(3) == 0 && !masks_.empty() ? masks_ : floats_;
        const ValueId x = pick(3) == 0 && &from == &floats_ ? build.scalar(static_cast<float>(pick(8))) : of(from);
        from.push_back(build.spread(x, static_cast<DimSet>(random_()) & all_));
        break;
      }
      default: floats_.push_back(clamped(build, build.op("Add", {of(floats_), of(floats_)})));
    }
  }
  void add_reduction(BodyBuilder& build) {
    if (!reduces_) return;
    constexpr std::array kOps{"ReduceSum", "ReduceMax", "ReduceMin"};
    if (pick(4) == 0 && !ints_.empty())
      ints_.push_back(build.reduce(pick(2) ? "ReduceProd" : kOps[pick(3)], of(ints_)));
    else
      floats_.push_back(clamped(build, build.reduce(kOps[pick(3)], of(floats_))));
  }

  std::mt19937 random_;
  bool reduces_ = false;
  DimSet all_ = 0;
  std::vector<ValueId> floats_, ints_, masks_;
};

}  // namespace tenon::snippet::test
