// Marks instructions whose number of lanes is a constant of the code, as in rows of a few elements, so that emitters
// can use cheaper code: FirstLanes, partial stores, and partial loads of less than 32 bits (attribute `count`); and
// reductions of vectors whose lanes from attribute `first` on hold the neutral element.
//
//   %1 = Number {value = 2}                     %1 = Number {value = 2}
//   %m = FirstLanes %1                          %m = FirstLanes %1 {count = 2}
//   %3 = FillTail %2, %m {bits = 0x0}           %3 = FillTail %2, %m {bits = 0x0}
//   %4 = FoldLanes %3 {by = "Add"}              %4 = FoldLanes %3 {by = "Add", first = 2}
#include <optional>

#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

class FirstLanes {
 public:
  explicit FirstLanes(LinearKernel& kernel) : kernel_(kernel), uses_(kernel) {}

  void run() {
    for (Instruction& one : kernel_.body) {
      if (one.op == kFirstLanes)
        mark(one, one.in[0]);
      else if (one.op == kStore && one.touched == Lanes::partial)
        mark(one, one.in[2]);
      else if (one.op == kLoad && is_few(one))
        mark(one, one.in[1]);
      else if (one.op == kFoldLanes || one.op == kFoldRows)
        fold(one);
    }
  }

 private:
  // Whether it loads by count, because there are no masks for its elements (avx2).
  static bool is_few(const Instruction& load) {
    return load.touched == Lanes::partial && load.in.size() > 1 && load.memory->element.bits() < 32;
  }

  const Instruction* only_maker(RegisterId id) const {
    const auto made = id < 0 ? std::nullopt : uses_.maker(id);
    return made ? &kernel_.body[*made] : nullptr;
  }

  void mark(Instruction& one, RegisterId count) const {
    if (const Instruction* number = only_maker(count); number && number->op == kNumber)
      one.attributes.set("count", *number->attributes.find("value")->get_if<int64_t>());
  }

  void fold(Instruction& one) {
    const bool adds = *one.attributes.find("by")->get_if<std::string>() == "Add";
    int64_t first = 0;
    for (const RegisterId id : one.in) {
      const std::optional<int64_t> lanes = lanes_of(id, adds);
      if (!lanes) return;
      first = std::max(first, *lanes);
    }
    one.attributes.set("first", first);
  }

  // The number of lanes with elements. FillTail fills the others with the initial value of the reduction; a partial
  // Load leaves 0 there, which is neutral for sums.
  std::optional<int64_t> lanes_of(RegisterId value, bool adds) const {
    const Instruction* made = only_maker(value);
    if (!made) return std::nullopt;
    RegisterId mask = -1;
    if (made->op == kFillTail) mask = made->in[1];
    if (adds && made->op == kLoad && made->touched == Lanes::partial) mask = made->in[0];
    const Instruction* lanes = only_maker(mask);
    const Attribute* count = lanes && lanes->op == kFirstLanes ? lanes->attributes.find("count") : nullptr;
    return count ? std::optional(*count->get_if<int64_t>()) : std::nullopt;
  }

  LinearKernel& kernel_;
  const Uses uses_;
};

}  // namespace

void mark_first_lanes(LinearKernel& kernel) {
  if (has_any(kernel, {kNumber})) FirstLanes(kernel).run();
}

}  // namespace tenon::x86
