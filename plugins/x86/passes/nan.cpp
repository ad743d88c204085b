// Maxima and minima of rows. Propagating NaN takes two instructions a vector, on avx2 three. Instead, one check tests
// two vectors for NaN and accumulates the result in marks (MarkNaN), which are applied at the end (PutNaN). Pays from
// three vectors on.
//
//   %a = Scalar ...                 %a = Scalar ...   %n = Scalar {bits = 0x0}
//   %a = Max %a, %x                 %a = Max %a, %x {numbers = 1}
//   %a = Max %a, %y                 %n = MarkNaN %n, %x, %y   %a = Max %a, %y {numbers = 1}
//   %b = FoldLanes %a               %c = PutNaN %a, %n   %b = FoldLanes %c
#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

bool passes_nan_on(const Instruction& one) { return !one.attributes.has(kNumbers) && !one.attributes.has(kMagnitudes); }

class NaNChecks {
 public:
  explicit NaNChecks(LinearKernel& kernel) : kernel_(kernel), folds_(kernel.registers.size()) {
    for (const Instruction& one : kernel.body)
      if (is_step(one)) at(one.out[0]).is_fold = true, at(one.out[0]).op = one.op;
    for (size_t id = 0; id < folds_.size(); ++id) folds_[id].whole = static_cast<RegisterId>(id);
    for (const Instruction& one : kernel.body) see(one);
  }

  void run() {
    bool any = false;
    for (size_t id = 0; id < folds_.size(); ++id) any |= pays(static_cast<RegisterId>(id));
    if (!any) return;
    std::vector<Instruction> old = std::exchange(kernel_.body, {});
    kernel_.body.reserve(old.size() + old.size() / 4);
    for (Instruction& one : old) {
      check_waiting([&](RegisterId x) { return is_border(one.op) || std::ranges::find(one.out, x) != one.out.end(); });
      if (is_step(one) && pays(one.out[0]))
        step(one);
      else if (folds_lanes(one))
        for (RegisterId& id : one.in) id = with_nan(id, one.label);
      const RegisterId made = one.op == kScalar ? one.out[0] : -1;
      kernel_.body.push_back(std::move(one));
      if (made >= 0 && pays(made) && whole_of(made).begin == made) begin(made);
    }
  }

 private:
  // The reduction that a register accumulates; several accumulators may be combined into one at the end.
  struct Fold {
    RegisterId whole = -1;  // the accumulator into which this one is combined in the end
    bool is_fold = false, is_done = false /* its lanes are reduced */, is_used_else = false;
    Name op = kMax;
    int steps = 0;                      // vectors that are accumulated, as instructions in the code
    RegisterId begin = -1, marks = -1;  // the accumulator that is initialised first; the marks of NaN lanes
  };
  static size_t index(RegisterId id) { return static_cast<size_t>(id); }
  Fold& at(RegisterId id) { return folds_[index(id)]; }
  Fold& whole_of(RegisterId id) {
    while (at(id).whole != id) id = at(id).whole;
    return at(id);
  }

  bool is_step(const Instruction& one) const {
    return (one.op == kMax || one.op == kMin) && !one.memory && one.out[0] == one.in[0] && one.in[1] != one.in[0] &&
           kernel_.registers[index(one.out[0])].element.is_float() && passes_nan_on(one);
  }
  static bool folds_lanes(const Instruction& one) {
    static const Name kNames[] = {"FoldLanes", "FoldRows", "FoldFour"};
    return std::ranges::find(kNames, one.op) != std::end(kNames) && passes_nan_on(one);
  }

  void see(const Instruction& one) {
    if (is_step(one)) {
      at(one.in[1]).is_fold ? join(one.in[0], one.in[1]) : void(++whole_of(one.in[0]).steps);
      return;
    }
    for (const RegisterId id : one.in)
      at(id).is_done = true, whole_of(id).is_used_else |= !folds_lanes(one) || at(id).whole != id;
    for (const RegisterId id : one.out) {
      if (one.op != kScalar) whole_of(id).is_used_else = true;
      if (whole_of(id).begin < 0) whole_of(id).begin = id;
    }
  }
  void join(RegisterId to, RegisterId from) {
    Fold &all = whole_of(to), &other = whole_of(from);
    if (&all == &other) return;
    all.is_used_else |= other.is_used_else || other.is_done || all.op != other.op;
    all.steps += other.steps;
    other.whole = all.whole;
  }
  bool pays(RegisterId id) {
    constexpr int kLeastSteps = 3;
    return index(id) < folds_.size() && at(id).is_fold && !whole_of(id).is_used_else && whole_of(id).begin >= 0 &&
           whole_of(id).steps >= kLeastSteps;
  }

  void begin(RegisterId fold) {
    RegisterId& marks = whole_of(fold).marks;
    if (marks < 0) marks = add_like(fold);
    kernel_.body.push_back({.op = kScalar, .attributes = {{"bits", 0}}, .out = {marks}});
  }
  // The vector is checked together with the next one of the same stretch.
  void step(Instruction& one) {
    one.attributes.set(kNumbers, 1);
    const RegisterId x = one.in[1], fold = whole_of(one.out[0]).whole;
    if (index(x) < folds_.size() && at(x).is_fold) return;
    const auto [other, is_new] = waiting_.try_emplace(fold, x);
    if (is_new) return;
    check(fold, other->second, x);
    waiting_.erase(other);
  }
  template <class Ends>
  void check_waiting(Ends ends) {
    for (auto one = waiting_.begin(); one != waiting_.end();) {
      const bool done = ends(one->second);
      if (done) check(one->first, one->second, one->second);
      one = done ? waiting_.erase(one) : std::next(one);
    }
  }
  void check(RegisterId fold, RegisterId x, RegisterId y) {
    const RegisterId marks = at(fold).marks;
    kernel_.body.push_back({.op = "MarkNaN", .in = {marks, x, y}, .out = {marks}});
  }
  RegisterId with_nan(RegisterId fold, int label) {
    if (!pays(fold)) return fold;
    const RegisterId whole = whole_of(fold).whole;
    check_waiting([](RegisterId) { return true; });
    const RegisterId made = add_like(fold);
    kernel_.body.push_back({.op = "PutNaN", .in = {fold, at(whole).marks}, .out = {made}, .label = label});
    return made;
  }
  RegisterId add_like(RegisterId id) { return kernel_.add_lanes(kernel_.registers[index(id)].element); }

  LinearKernel& kernel_;
  std::vector<Fold> folds_;
  std::map<RegisterId, RegisterId> waiting_;  // by reduction: a vector that is not yet checked
};

}  // namespace

void share_nan_checks(LinearKernel& kernel) {
  if (has_any(kernel, {kMax, kMin})) NaNChecks(kernel).run();
}

}  // namespace tenon::x86
