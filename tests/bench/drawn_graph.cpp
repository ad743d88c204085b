#include "bench/drawn_graph.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include <tenon/support/str.hpp>

namespace tenon::bench {
namespace {

class Drawer {
 public:
  Drawer(uint32_t seed, int most_bits) : random_(seed) {
    graph_.seed = seed;
    extents(most_bits);
  }

  DrawnGraph draw() {
    if (chance(55)) {
      elementwise();
    } else {
      rows();
    }
    drop_unused();
    return std::move(graph_);
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  const DrawnValue& value(int v) const { return graph_.values[static_cast<size_t>(v)]; }
  unsigned all() const { return (1u << graph_.dims.size()) - 1; }
  unsigned folded() const { return all() & ~((1u << (graph_.dims.size() - static_cast<size_t>(graph_.folded))) - 1); }
  int last() const { return static_cast<int>(graph_.values.size()) - 1; }

  // A size by its logarithm, distributed over the dims at random: odd extents as well as 1.
  void extents(int most_bits) {
    const int rank = pick(1, 4);
    double bits = std::uniform_real_distribution<double>(0, most_bits)(random_);
    for (int d = 0; d < rank; ++d) {
      const double share =
          d + 1 == rank ? bits : std::min(bits, std::uniform_real_distribution<double>(0, 12)(random_));
      graph_.dims.push_back(std::max<int64_t>(1, std::llround(std::exp2(share))));
      bits -= share;
    }
    std::ranges::shuffle(graph_.dims, random_);
  }

  int add(DrawnValue made) {
    graph_.values.push_back(std::move(made));
    return last();
  }
  int input(Element element, unsigned over) {
    return add({.op = "input", .element = element, .over = over, .degree = 1});
  }
  int constant(Element element, double number) { return add({.op = "constant", .element = element, .number = number}); }
  int op(std::string name, std::vector<int> operands) {
    return op(std::move(name), operands, value(operands.back()).element);
  }
  int op(std::string name, std::vector<int> operands, Element element) {
    unsigned over = 0;
    int degree = 0;
    for (const int v : operands) {
      over |= value(v).over;
      degree = name == "Mul" ? degree + value(v).degree : std::max(degree, value(v).degree);
    }
    if (name.starts_with("Reduce")) over &= ~folded();
    return add(
        {.op = std::move(name), .operands = std::move(operands), .element = element, .over = over, .degree = degree});
  }

  Element element() {
    static constexpr std::array kElements{Element::f32, Element::f32, Element::f32, Element::f32, Element::f32,
                                          Element::f16, Element::i32, Element::i32, Element::u8,  Element::i8};
    return kElements[static_cast<size_t>(pick(0, 9))];
  }

  // A tensor over all dims, or a row, a column, a channel, a scalar.
  unsigned over() {
    const auto rank = static_cast<int>(graph_.dims.size());
    switch (pick(0, 7)) {
      case 0: return 1u << (rank - 1);
      case 1: return all() & ~(1u << (rank - 1));
      case 2: return 1u << std::min(1, rank - 1);
      case 3: return 0;
      default: return all();
    }
  }

  // Not 0, which would leave nothing to compute.
  double number(Element element) {
    if (element == Element::f32) return (pick(0, 95) + 1) / 64.0 * (chance(30) ? -1 : 1);
    return pick(1, 9) * (element != Element::u8 && chance(30) ? -1 : 1);
  }

  // Its value as this type.
  int as(Element element, int v) { return value(v).element == element ? v : op("Cast", {v}, element); }

  // Arithmetic is in f32, i32, u8, i8: what is stored as f16 is computed in f32.
  int computed(int v) {
    const Element element = value(v).element;
    return element == Element::f16 ? as(Element::f32, v) : v;
  }

  int any() { return pick(0, last()); }
  // A value of this type that is none of these, or a constant: using a value twice as operand would give a simpler
  // loop.
  int of(Element element, std::vector<int> but) {
    for (int i = 0; i < 6; ++i) {
      const int v = any();
      if (value(v).is_constant() || value(v).element == Element::boolean || std::ranges::count(but, v)) continue;
      if (value(v).element == element || chance(15)) return as(element, computed(v));
    }
    return constant(element, number(element));
  }
  int condition(Element element) {
    static constexpr std::array kCompares{"Less", "Greater", "LessOrEqual"};
    const int a = of(element, {}), b = chance(60) ? constant(element, number(element)) : of(element, {a});
    if (value(a).is_constant() && value(b).is_constant()) return condition(element);
    return op(kCompares[static_cast<size_t>(pick(0, 2))], {a, b}, Element::boolean);
  }

  // Applies one operator, or a few that belong together, to `v`.
  int step(int v) {
    const Element element = value(v).element;
    const bool floats = element == Element::f32;
    switch (pick(0, floats ? 13 : 9)) {
      case 0:
      case 1: return op("Add", {v, of(element, {v})});
      case 2: return op("Sub", {v, of(element, {v})});
      case 3: {
        // Products of a few values at most, so that nothing overflows.
        int other = chance(40) ? of(element, {v}) : constant(element, number(element));
        if (value(v).degree + value(other).degree > 3) other = constant(element, number(element));
        return op("Mul", {v, other});
      }
      case 4: return op(chance(50) ? "Max" : "Min", {v, of(element, {v})});
      case 5: return op("Where", {condition(element), v, of(element, {v})});
      case 6: {
        const int c = condition(element), d = condition(element);
        return op("Where", {op(chance(50) ? "And" : "Or", {c, d}), of(element, {v}), v});
      }
      case 7: return element == Element::u8 ? op("BitwiseNot", {v}) : op(chance(50) ? "Neg" : "Abs", {v});
      case 8: {
        static constexpr std::array kTo{Element::f32, Element::i32, Element::u8, Element::i8};
        return as(kTo[static_cast<size_t>(pick(0, 3))], v);
      }
      case 9:
        if (floats) return op("Relu", {v});
        static constexpr std::array kBits{"BitwiseAnd", "BitwiseOr", "BitwiseXor"};
        return op(kBits[static_cast<size_t>(pick(0, 2))], {v, of(element, {v})});
      case 10: return op("Sqrt", {op("Abs", {v})});
      case 11: {
        static constexpr std::array kFunctions{"Exp", "Tanh", "Sigmoid", "Erf"};
        const int less = op("Neg", {op("Abs", {v})});
        return op(kFunctions[static_cast<size_t>(pick(0, 3))], {less});
      }
      case 12: return op("Div", {v, op("Add", {op("Abs", {of(element, {v})}), constant(element, 0.5)})});
      default: return op(chance(50) ? "HardSwish" : "Floor", {v});
    }
  }

  void elementwise() {
    graph_.kind = "elementwise";
    computed(input(element(), all()));
    for (int i = pick(0, 3); i > 0; --i) computed(input(element(), over()));
    int v = pick(0, last());
    v = computed(v);
    for (int i = pick(1, 10); i > 0; --i) {
      // Sometimes a chain restarts at another value: diamonds.
      if (chance(15)) {
        const int other = any();
        if (!value(other).is_constant() && value(other).element != Element::boolean) v = computed(other);
      }
      v = step(v);
    }
    if (value(v).is_input()) v = op("Add", {v, constant(value(v).element, 1)});
    if (value(v).over != all()) v = op("Add", {as(value(v).element, computed(0)), v});
    graph_.outputs.push_back(chance(8) && value(v).element == Element::f32 ? as(Element::f16, v) : v);
    for (int extra = pick(0, 5) - 3; extra > 0; --extra) more_output();
  }

  void more_output() {
    const int v = any();
    const DrawnValue& one = value(v);
    if (one.is_input() || one.is_constant() || one.over != all() || one.element == Element::boolean) return;
    if (std::ranges::find(graph_.outputs, v) == graph_.outputs.end()) graph_.outputs.push_back(v);
  }

  int reduce(const char* name, int v) { return op(name, {v}); }
  int scalar(double number) { return constant(Element::f32, number); }

  void rows() {
    const auto rank = static_cast<int>(graph_.dims.size());
    graph_.folded = chance(70) ? 1 : pick(1, rank);
    // The mean of one element is that element, and the difference only rounding.
    if (graph_.dims.back() == 1) graph_.dims.back() = 2;
    static constexpr std::array kElements{Element::f32, Element::f32, Element::f32, Element::f16, Element::u8};
    int x = as(Element::f32, input(kElements[static_cast<size_t>(pick(0, 4))], all()));
    for (int i = pick(0, 2); i > 0; --i) {
      const int other = chance(50) ? scalar(number(Element::f32)) : input(Element::f32, over());
      x = op(chance(60) ? "Add" : "Mul", {x, other});
    }
    if (chance(20)) x = op("Relu", {x});
    int y = -1;
    switch (pick(0, 6)) {
      case 0: y = sums(x); break;
      case 1: y = extremes(x); break;
      case 2: y = rms_norm(x); break;
      case 3: y = layer_norm(x); break;
      case 4: y = lp_norm(x); break;
      case 5: y = softmax(x); break;
      default: y = sums(op("Mul", {x, x})); break;
    }
    graph_.outputs.push_back(y);
  }

  // The row's number by itself, or combined with each element.
  int finish(int x, int number) {
    if (chance(60)) return chance(50) ? number : op("Mul", {number, scalar(0.37)});
    return op(chance(50) ? "Sub" : "Mul", {x, number});
  }
  int sums(int x) {
    graph_.kind = "sum-like";
    return finish(x, reduce(chance(50) ? "ReduceSum" : "ReduceMean", x));
  }
  int extremes(int x) {
    graph_.kind = "max-like";
    return finish(x, reduce(chance(60) ? "ReduceMax" : "ReduceMin", x));
  }
  int scaled(int x) {
    const unsigned row = folded();
    if (chance(70)) x = op("Mul", {x, input(Element::f32, row)});
    return chance(50) ? op("Add", {x, input(Element::f32, row)}) : x;
  }
  int rms_norm(int x) {
    graph_.kind = "rms-norm-like";
    const int square = reduce("ReduceMean", op("Mul", {x, x}));
    return scaled(op("Div", {x, op("Sqrt", {op("Add", {square, scalar(1e-5)})})}));
  }
  int layer_norm(int x) {
    graph_.kind = "layer-norm-like";
    const int centred = op("Sub", {x, reduce("ReduceMean", x)});
    const int variance = reduce("ReduceMean", op("Mul", {centred, centred}));
    const int inverse = op("Div", {scalar(1), op("Sqrt", {op("Add", {variance, scalar(1e-5)})})});
    return scaled(op("Mul", {centred, inverse}));
  }
  int lp_norm(int x) {
    graph_.kind = "lp-norm-like";
    const int sum =
        chance(50) ? op("Sqrt", {reduce("ReduceSum", op("Mul", {x, x}))}) : reduce("ReduceSum", op("Abs", {x}));
    return op("Div", {x, op("Max", {sum, scalar(1e-6)})});
  }
  int softmax(int x) {
    graph_.kind = "softmax-like";
    const int power = op("Exp", {op("Sub", {x, reduce("ReduceMax", x)})});
    graph_.values[static_cast<size_t>(power)].kept = true;
    return op("Div", {power, reduce("ReduceSum", power)});
  }

  // Removes unused values; a graph that has only inputs left gets an output.
  void drop_unused() {
    std::vector<char> used(graph_.values.size(), 0);
    for (const int v : graph_.outputs) used[static_cast<size_t>(v)] = 1;
    for (int v = last(); v >= 0; --v) {
      if (!used[static_cast<size_t>(v)]) continue;
      for (const int operand : value(v).operands) used[static_cast<size_t>(operand)] = 1;
    }
    std::vector<int> now(graph_.values.size(), -1);
    std::vector<DrawnValue> left;
    for (int v = 0; v <= last(); ++v) {
      if (!used[static_cast<size_t>(v)]) continue;
      now[static_cast<size_t>(v)] = static_cast<int>(left.size());
      left.push_back(value(v));
      for (int& operand : left.back().operands) operand = now[static_cast<size_t>(operand)];
    }
    for (int& v : graph_.outputs) v = now[static_cast<size_t>(v)];
    graph_.values = std::move(left);
  }

  std::mt19937 random_;
  DrawnGraph graph_;
};

}  // namespace

DrawnGraph draw_graph(uint32_t seed, int most_bits) { return Drawer(seed, most_bits).draw(); }

}  // namespace tenon::bench
