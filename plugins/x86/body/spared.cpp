// Maxima and minima that need not propagate NaN, because no output depends on it.
#include "x86/body/spared.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "x86/body/numbers.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::Body;
using snippet::BodyNode;
using snippet::DimSet;
using snippet::ValueId;

// Whether a NaN operand makes the result NaN.
bool passes_nan_on(Name op) {
  static const std::unordered_set<Name> kAll{
      "Add",  "Sub",  "Mul",   "Div",  "Neg",   "Abs",   "Sqrt",     "Floor", "Ceil",  "Trunc", "RoundEven", "Max",
      "Min",  "Exp",  "Expm1", "Log",  "Erf",   "Tanh",  "Sigmoid",  "Mish",  "Sin",   "Cos",   "Tan",       "Asin",
      "Acos", "Atan", "Sinh",  "Cosh", "Asinh", "Acosh", "Softplus", "Atanh", "Swish", "Gelu",  "Round"};
  return kAll.contains(op);
}

// How nodes propagate NaN, and which nodes read their results.
class Passing {
 public:
  enum class By : uint8_t { nobody, any, first, choice, fold };

  explicit Passing(const Body& body)
      : body_(body),
        by_(body.nodes.size()),
        makers_(body.values.size(), -1),
        last_readers_(body.values.size(), -1),
        is_output_(body.values.size(), 0) {
    for (size_t i = 0; i < body.nodes.size(); ++i) {
      note(i);
      makers_[index(body.nodes[i].result)] = static_cast<int>(i);
      for (const ValueId operand : body.nodes[i].operands) last_readers_[index(operand)] = static_cast<int>(i);
    }
    for (const snippet::BodyPort& output : body.outputs) is_output_[index(output.value)] = 1;
    reaches_output_ = is_output_;
    for (size_t i = body.nodes.size(); i-- > 0;)
      if (reaches_output_[index(body.nodes[i].result)])
        for (const ValueId operand : body.nodes[i].operands) reaches_output_[index(operand)] = 1;
  }

  // Call when node `i` has been replaced.
  void note(size_t i) { by_[i] = by(body_.nodes[i]); }

  const Body& body() const { return body_; }
  By of(size_t node) const { return by_[node]; }
  int maker(ValueId id) const { return makers_[index(id)]; }              // -1: an input
  int last_reader(ValueId id) const { return last_readers_[index(id)]; }  // -1: there is none
  bool is_output(ValueId id) const { return is_output_[index(id)]; }
  bool reaches_output(ValueId id) const { return reaches_output_[index(id)]; }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  bool is_float(ValueId id) const { return body_.values[index(id)].element.is_float(); }
  By by(const BodyNode& node) const {
    if (snippet::is_reduction(node.op)) return By::fold;
    if (!is_float(node.result)) return By::nobody;
    if (node.op == kWhere) return By::choice;
    if (node.op == kClampLow || node.op == kClampHigh || (node.op == kConvert && is_float(node.operands[0])))
      return By::first;
    return passes_nan_on(node.op) ? By::any : By::nobody;
  }

  const Body& body_;
  std::vector<By> by_;
  std::vector<int> makers_, last_readers_;
  std::vector<char> is_output_, reaches_output_;
};

// The values that are NaN because one value, the cause, is NaN. Kept between queries, so that all queries of a body
// take linear time if what they ask about is close to the cause, or close to other values that are NaN.
class Spread {
 public:
  Spread(const Passing& passing, ValueId cause)
      : passing_(passing), cause_(cause), first_(static_cast<size_t>(passing.maker(cause) + 1)) {
    const DimSet reduced = body().reduced_dims(), varies = body().values[static_cast<size_t>(cause)].varies;
    of_cause_ = static_cast<char>(kHere | ((varies & reduced) == 0 ? kInRow : 0));
    // The reduction of a row without elements is a number, whatever other values are.
    is_folded_ = (varies & reduced) == reduced;
    last_reader_ = passing.last_reader(cause);
  }

  // Whether every output is NaN wherever the cause is, when node `without` does not propagate it, or no output depends
  // on the node. Queries must come in node order, and earlier nodes must not have changed since.
  bool misses_nothing(size_t without) {
    while (first_ + made_.size() < without) see(first_ + made_.size());
    const size_t known = made_.size();
    const int last_reader = last_reader_;
    made_.push_back(0);
    const bool answer = is_made_up_for(without);
    made_.resize(known);
    last_reader_ = last_reader;
    return answer;
  }

 private:
  static constexpr char kHere = 1;   // NaN at each element where the cause is NaN
  static constexpr char kInRow = 2;  // NaN at all elements of a row in which the cause is NaN anywhere; implies kHere

  const Body& body() const { return passing_.body(); }
  char of(ValueId id) const {
    if (id == cause_) return of_cause_;
    const size_t maker = static_cast<size_t>(passing_.maker(id)), at = maker - first_;
    return passing_.maker(id) >= static_cast<int>(first_) && at < made_.size() ? made_[at] : 0;
  }
  char of_node(size_t i) const {
    const BodyNode& node = body().nodes[i];
    const auto& in = node.operands;
    char made = 0;
    switch (passing_.of(i)) {
      case Passing::By::nobody: break;
      case Passing::By::any:
        for (const ValueId operand : in) made |= of(operand);
        break;
      case Passing::By::first: made = of(in[0]); break;
      case Passing::By::choice: made = of(in[1]) & of(in[2]); break;
      case Passing::By::fold:
        if (is_folded_ && (of(in[0]) & kHere) && !node.attributes.has(kNumbers) && is_float(node.result))
          made = kHere | kInRow;
    }
    return made;
  }
  bool is_float(ValueId id) const { return body().values[static_cast<size_t>(id)].element.is_float(); }
  void see(size_t i) {
    const char made = of_node(i);
    made_.push_back(made);
    if (made) last_reader_ = std::max(last_reader_, passing_.last_reader(body().nodes[i].result));
  }

  // Values that depend on the node, and are not NaN in other ways, must not reach an output.
  bool is_made_up_for(size_t without) {
    std::vector<char> open;  // by node from `without` on: where its result would otherwise have been NaN
    int last_open = -1;      // the last node that reads such a result
    const auto add = [&](size_t i, char as) {
      open.push_back(as);
      if (as) last_open = std::max(last_open, passing_.last_reader(body().nodes[i].result));
      return !as || !passing_.is_output(body().nodes[i].result);
    };
    const auto open_as = [&](ValueId id) {
      const int maker = passing_.maker(id);
      return maker < static_cast<int>(without) ? char{0} : open[static_cast<size_t>(maker) - without];
    };
    if (!add(without, passing_.of(without) == Passing::By::fold ? kInRow : kHere)) return false;
    for (size_t i = without + 1; static_cast<int>(i) <= last_open; ++i) {
      const BodyNode& node = body().nodes[i];
      char as = 0;
      for (const ValueId operand : node.operands) as |= open_as(operand);
      // From here on no value is NaN in other ways.
      if (as && static_cast<int>(i) > last_reader_) {
        if (passing_.reaches_output(node.result)) return false;
      } else {
        if (as && passing_.of(i) == Passing::By::fold) as = kInRow;
        see(i);
        as &= static_cast<char>(~made_.back());
      }
      if (first_ + made_.size() == i) made_.push_back(0);
      if (!add(i, as)) return false;
    }
    return true;
  }

  const Passing& passing_;
  const ValueId cause_;
  const size_t first_;  // the first node that may depend on the cause
  char of_cause_ = 0;
  bool is_folded_ = false;
  int last_reader_ = -1;    // the last node that reads a NaN value
  std::vector<char> made_;  // by node from first_ on
};

class Sparer {
 public:
  explicit Sparer(Body body) : body_(std::move(body)), numbers_(numbers_of(body_)), passing_(body_) {}

  Body run(bool folds) && {
    for (size_t i = 0; i < body_.nodes.size(); ++i) {
      const BodyNode& node = body_.nodes[i];
      if (body_.values[static_cast<size_t>(node.result)].element != kF32) continue;
      if (node.op == kMax || node.op == kMin) order(i);
      if (folds && is_fold(node)) fold(i);
    }
    if (folds) join_folds();
    return std::move(body_);
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  static bool is_fold(const BodyNode& node) { return node.op == kReduceMax || node.op == kReduceMin; }
  const Numbers& numbers(ValueId id) const { return numbers_[static_cast<size_t>(id)]; }

  // Whether no output loses the NaN of x when the node does not propagate it.
  bool is_spared(size_t node, ValueId x) {
    const auto spares = [&](ValueId cause) {
      return spreads_.try_emplace(cause, passing_, cause).first->second.misses_nothing(node);
    };
    return numbers(x).only.empty() || spares(x) || std::ranges::all_of(numbers(x).only, spares);
  }

  // The machine returns the second operand where either is NaN, or both are zeros.
  void order(size_t i) {
    BodyNode& node = body_.nodes[i];
    const ValueId a = node.operands[0], b = node.operands[1];
    const auto comes_with = [&](ValueId nan, ValueId other) {
      return std::ranges::includes(numbers(other).where, numbers(nan).only);
    };
    if (comes_with(a, b) || comes_with(b, a) || !is_spared(i, a)) return;
    node.op = node.op == kMax ? kClampLow : kClampHigh;
    std::swap(node.operands[0], node.operands[1]);
    passing_.note(i);
  }

  void fold(size_t i) {
    BodyNode& node = body_.nodes[i];
    if (is_spared(i, node.operands[0]))
      node.attributes.set("numbers", 1);
    else if (node.op == kReduceMax && is_magnitude(node.operands[0]))
      node.attributes.set("magnitudes", 1);
  }
  // The maximum and the minimum of one row get their NaN from its maximum magnitude.
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
  // For the reductions of the operand of node `first`. Returns the position after which further ones may follow.
  size_t take_nan_from_magnitude(size_t first) {
    const ValueId x = body_.nodes[first].operands[0];
    const snippet::BodyValue row = body_.values[index(body_.nodes[first].result)];
    const std::string label = body_.nodes[first].label;
    std::vector<BodyNode> nodes(body_.nodes.begin(), body_.nodes.begin() + static_cast<std::ptrdiff_t>(first));
    const ValueId magnitude =
        body_.append({.op = kAbs, .operands = {x}, .label = label}, body_.values[index(x)], nodes);
    BodyNode fold{.op = kReduceMax, .operands = {magnitude}, .label = label};
    fold.attributes.set("initial", 0), fold.attributes.set("magnitudes", 1);
    const ValueId greatest = body_.append(std::move(fold), row, nodes);
    const ValueId is_number = body_.append({.op = kEqual, .operands = {greatest, greatest}, .label = label},
                                           {.element = kBool, .varies = row.varies}, nodes);
    const size_t last = nodes.size();
    for (size_t i = first; i < body_.nodes.size(); ++i) {
      BodyNode& node = body_.nodes[i];
      if (!passes_nan_on_by_itself(node) || node.operands[0] != x) {
        nodes.push_back(std::move(node));
        continue;
      }
      BodyNode number = node;
      number.attributes.set("numbers", 1);
      node.op = kWhere, node.operands = {is_number, body_.append(std::move(number), row, nodes), greatest};
      nodes.push_back(std::move(node));
    }
    body_.nodes = std::move(nodes);
    return last;
  }
  bool is_magnitude(ValueId id) const {
    return std::ranges::any_of(body_.nodes, [&](const BodyNode& node) { return node.result == id && node.op == kAbs; });
  }

  Body body_;
  const std::vector<Numbers> numbers_;
  Passing passing_;
  std::unordered_map<ValueId, Spread> spreads_;  // by cause
};

}  // namespace

Body with_spared_nan(Body body, bool folds) { return Sparer(std::move(body)).run(folds); }

}  // namespace tenon::x86
