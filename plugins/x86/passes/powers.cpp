// Products of integers by constants that are powers of two, or differ from one by 1, become sums or shifts: a product
// of 32 bits takes one to four operations, and one of 64 bits three and more. Exact modulo 2^bits.
//
//   %3 = Scalar {bits = 0x8}      %4 = MulByPower %1 {power = 3}
//   %4 = Mul %1, %3
//
// By 2 it is Add %1, %1; by 9, 7 and -7 Add %4, %1, Sub %4, %1 and Sub %1, %4 follow.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <utility>

#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

class Shifter {
 public:
  explicit Shifter(LinearKernel& kernel) : kernel_(kernel), uses_(kernel) {}

  void run() {
    std::vector<Instruction> old = std::move(kernel_.body);
    kernel_.body.clear();
    kernel_.body.reserve(old.size());
    for (Instruction& one : old) {
      if (one.op == kScalar && uses_.once(one.out[0])) add_factor(one);
      if (!is_product(one) || !shift(one)) kernel_.body.push_back(std::move(one));
    }
    drop_unread(kernel_, uses_);  // constants that were only factors
  }

 private:
  // The power of two next to a factor, and what is done with the other operand afterwards.
  struct Shift {
    enum class Then : uint8_t { nothing, add, subtract, subtract_from } then = Then::nothing;
    int power = 1;
  };

  ElementType element(RegisterId id) const { return kernel_.registers[static_cast<size_t>(id)].element; }
  bool is_product(const Instruction& one) const {
    return one.op == kMul && !one.memory && element(one.out[0]).is_int();
  }

  void add_factor(const Instruction& constant) {
    const ElementType type = element(constant.out[0]);
    if (!type.is_int()) return;
    const uint64_t all = type.bits() == 64 ? ~uint64_t{0} : (uint64_t{1} << type.bits()) - 1;
    const auto factor = static_cast<uint64_t>(*constant.attributes.find(kBits)->get_if<int64_t>()) & all;
    for (const auto& [power, then] : {std::pair{factor, Shift::Then::nothing},
                                      {factor - 1, Shift::Then::add},
                                      {factor + 1, Shift::Then::subtract},
                                      {1 - factor, Shift::Then::subtract_from}}) {
      const bool subtracts = then == Shift::Then::subtract || then == Shift::Then::subtract_from;
      if ((power & all) < (subtracts ? 4 : 2) || !std::has_single_bit(power & all)) continue;
      shifts_.emplace(constant.out[0], Shift{then, std::countr_zero(power & all)});
      return;
    }
  }
  // Replaces the product; false: neither operand is such a factor.
  bool shift(const Instruction& product) {
    for (const size_t factor : {1, 0}) {
      const auto found = shifts_.find(product.in[factor]);
      if (found == shifts_.end()) continue;
      const Shift& by = found->second;
      const RegisterId x = product.in[1 - factor];
      const bool alone = by.then == Shift::Then::nothing;
      const RegisterId shifted = alone ? product.out[0] : kernel_.add_lanes(element(product.out[0]));
      if (by.power == 1)
        write(kAdd, {x, x}, shifted, product.label);
      else
        write(kMulByPower, {x}, shifted, product.label).attributes.set("power", int64_t{by.power});
      if (by.then == Shift::Then::add) write(kAdd, {shifted, x}, product.out[0], product.label);
      if (by.then == Shift::Then::subtract) write(kSub, {shifted, x}, product.out[0], product.label);
      if (by.then == Shift::Then::subtract_from) write(kSub, {x, shifted}, product.out[0], product.label);
      return true;
    }
    return false;
  }
  Instruction& write(Name op, snippet::RegisterIds in, RegisterId out, int label) {
    return kernel_.body.emplace_back(Instruction{.op = op, .in = std::move(in), .out = {out}, .label = label});
  }

  LinearKernel& kernel_;
  const Uses uses_;
  std::map<RegisterId, Shift> shifts_;  // by the factor
};

}  // namespace

void multiply_by_powers(LinearKernel& kernel) {
  const auto multiplies = [&](const Instruction& one) {
    return one.op == kMul && kernel.registers[static_cast<size_t>(one.out[0])].element.is_int();
  };
  if (std::ranges::any_of(kernel.body, multiplies)) Shifter(kernel).run();
}

}  // namespace tenon::x86
