// Extrema that need not pass NaN on, since no output misses it.
#include "x86/body/spared.hpp"

#include <algorithm>
#include <unordered_set>

#include "x86/body/numbers.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::Body;
using snippet::BodyNode;
using snippet::DimSet;
using snippet::ValueId;

// NaN of any operand is NaN of the result.
bool passes_nan_on(Name op) {
  static const std::unordered_set<Name> kAll{
      "Add",  "Sub",  "Mul",   "Div",  "Neg",   "Abs",   "Sqrt",     "Floor", "Ceil",  "Trunc", "RoundEven", "Max",
      "Min",  "Exp",  "Expm1", "Log",  "Erf",   "Tanh",  "Sigmoid",  "Mish",  "Sin",   "Cos",   "Tan",       "Asin",
      "Acos", "Atan", "Sinh",  "Cosh", "Asinh", "Acosh", "Softplus", "Atanh", "Swish", "Gelu",  "Round"};
  return kAll.contains(op);
}

// What comes of NaN of one value, the cause, when node `without` does not pass it on.
class Spread {
 public:
  Spread(const Body& body, const BodyNode& without, ValueId cause)
      : body_(body), without_(without), here_(body.values.size(), 0), row_(body.values.size(), 0) {
    const DimSet reduced = body.reduced_dims(), varies = body.values[index(cause)].varies;
    here_[index(cause)] = 1;
    row_[index(cause)] = (varies & reduced) == 0;
    // Of a row without elements a fold is a number, whatever stands beside it.
    const bool is_folded = (varies & reduced) == reduced;
    for (const BodyNode& node : body.nodes)
      if (node.result != cause && &node != &without) see(node, is_folded);
  }

  // Is every output NaN wherever the cause is, or does it not depend on the node?
  bool misses_nothing() const {
    std::vector<char> fine(here_.size(), 1), fine_in_row(here_.size(), 1);
    for (const snippet::BodyPort& output : body_.outputs)
      fine[index(output.value)] = fine_in_row[index(output.value)] = 0;
    for (auto node = body_.nodes.rbegin(); &*node != &without_; ++node) {
      const size_t made = index(node->result);
      const char row = fine_in_row[made] | row_[made],
                 here = snippet::is_reduction(node->op) ? row : fine[made] | here_[made];
      for (const ValueId operand : node->operands) fine[index(operand)] &= here, fine_in_row[index(operand)] &= row;
    }
    return (snippet::is_reduction(without_.op) ? fine_in_row : fine)[index(without_.result)];
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  bool is_float(ValueId id) const { return body_.values[index(id)].element.is_float(); }

  void see(const BodyNode& node, bool is_folded) {
    const auto& in = node.operands;
    const size_t made = index(node.result);
    if (!is_float(node.result)) return;
    if (snippet::is_reduction(node.op)) {
      here_[made] = row_[made] = is_folded && here_[index(in[0])] && !node.attributes.find("numbers");
    } else if (node.op == kWhere) {
      here_[made] = here_[index(in[1])] & here_[index(in[2])], row_[made] = row_[index(in[1])] & row_[index(in[2])];
    } else if (node.op == kClampLow || node.op == kClampHigh || (node.op == kConvert && is_float(in[0]))) {
      here_[made] = here_[index(in[0])], row_[made] = row_[index(in[0])];
    } else if (passes_nan_on(node.op)) {
      for (const ValueId operand : in) here_[made] |= here_[index(operand)], row_[made] |= row_[index(operand)];
    }
  }

  const Body& body_;
  const BodyNode& without_;
  // Of each value, by other ways than the node: it is NaN at each element where the cause is; at all elements of a row
  // in any of which the cause is. The latter says no less.
  std::vector<char> here_, row_;
};

class Sparer {
 public:
  explicit Sparer(Body body) : body_(std::move(body)), numbers_(numbers_of(body_)) {}

  Body run(bool folds) && {
    for (BodyNode& node : body_.nodes) {
      if (body_.values[static_cast<size_t>(node.result)].element != kF32) continue;
      if (node.op == kMax || node.op == kMin) order(node);
      if (folds && is_fold(node)) fold(node);
    }
    if (folds) join_folds();
    return std::move(body_);
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  static bool is_fold(const BodyNode& node) { return node.op == kReduceMax || node.op == kReduceMin; }
  const Numbers& numbers(ValueId id) const { return numbers_[static_cast<size_t>(id)]; }

  // Does no output miss NaN of x when `node` does not pass it on?
  bool is_spared(const BodyNode& node, ValueId x) const {
    const auto spares = [&](ValueId cause) { return Spread(body_, node, cause).misses_nothing(); };
    return spares(x) || std::ranges::all_of(numbers(x).only, spares);
  }

  // The machine gives the second of two operands where either is NaN, or both are zeros.
  void order(BodyNode& node) const {
    const ValueId a = node.operands[0], b = node.operands[1];
    const auto comes_with = [&](ValueId nan, ValueId other) {
      return std::ranges::includes(numbers(other).where, numbers(nan).only);
    };
    if (comes_with(a, b) || comes_with(b, a) || !is_spared(node, a)) return;
    node.op = node.op == kMax ? kClampLow : kClampHigh;
    std::swap(node.operands[0], node.operands[1]);
  }

  void fold(BodyNode& node) const {
    if (is_spared(node, node.operands[0]))
      node.attributes.set("numbers", 1);
    else if (node.op == kReduceMax && is_magnitude(node.operands[0]))
      node.attributes.set("magnitudes", 1);
  }
  // The greatest and the least of one row have their NaN from its greatest magnitude.
  void join_folds() {
    for (size_t i = 0; i < body_.nodes.size(); ++i) {
      if (!passes_nan_on_by_itself(body_.nodes[i])) continue;
      const auto is_other = [&](const BodyNode& node) {
        return passes_nan_on_by_itself(node) && node.op != body_.nodes[i].op &&
               node.operands == body_.nodes[i].operands;
      };
      if (std::any_of(body_.nodes.begin() + static_cast<std::ptrdiff_t>(i), body_.nodes.end(), is_other))
        i = take_nan_from_magnitude(i);
    }
  }
  bool passes_nan_on_by_itself(const BodyNode& node) const {
    return is_fold(node) && !node.attributes.has("numbers") && !node.attributes.has("magnitudes") &&
           body_.values[index(node.result)].element == kF32;
  }
  // Of the folds of what node `first` folds. Gives the place behind which others may come.
  size_t take_nan_from_magnitude(size_t first) {
    const ValueId x = body_.nodes[first].operands[0];
    const snippet::BodyValue row = body_.values[index(body_.nodes[first].result)];
    const std::string label = body_.nodes[first].label;
    const ValueId magnitude = add_value(body_.values[index(x)]), greatest = add_value(row),
                  is_number = add_value({.element = kBool, .varies = row.varies});
    std::vector<BodyNode> nodes(body_.nodes.begin(), body_.nodes.begin() + static_cast<std::ptrdiff_t>(first));
    nodes.push_back({.op = kAbs, .operands = {x}, .result = magnitude, .label = label});
    BodyNode fold{.op = kReduceMax, .operands = {magnitude}, .result = greatest, .label = label};
    fold.attributes.set("initial", 0), fold.attributes.set("magnitudes", 1);
    nodes.push_back(std::move(fold));
    nodes.push_back({.op = kEqual, .operands = {greatest, greatest}, .result = is_number, .label = label});
    const size_t last = nodes.size();
    for (size_t i = first; i < body_.nodes.size(); ++i) {
      BodyNode& node = body_.nodes[i];
      if (!passes_nan_on_by_itself(node) || node.operands[0] != x) {
        nodes.push_back(std::move(node));
        continue;
      }
      BodyNode number = node;
      number.attributes.set("numbers", 1);
      number.result = add_value(row);
      nodes.push_back(number);
      node.op = kWhere, node.operands = {is_number, number.result, greatest};
      nodes.push_back(std::move(node));
    }
    body_.nodes = std::move(nodes);
    return last;
  }
  ValueId add_value(snippet::BodyValue value) {
    body_.values.push_back(value);
    return static_cast<ValueId>(body_.values.size()) - 1;
  }
  bool is_magnitude(ValueId id) const {
    return std::ranges::any_of(body_.nodes, [&](const BodyNode& node) { return node.result == id && node.op == kAbs; });
  }

  Body body_;
  const std::vector<Numbers> numbers_;
};

}  // namespace

Body with_spared_nan(Body body, bool folds) { return Sparer(std::move(body)).run(folds); }

}  // namespace tenon::x86
