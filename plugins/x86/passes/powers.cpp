// Products of integers by constants that are powers of two, as sums or shifts: machines multiply 32 bits in one to four
// operations, and 64 bits in three and more.
//
//   %3 = Scalar {bits = 0x8}      %5 = Scalar {bits = 0x3}
//   %4 = Mul %1, %3               %4 = MulByPower %1, %5         by 2: Add %1, %1
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>

#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

class Shifter {
 public:
  explicit Shifter(LinearKernel& kernel) : kernel_(kernel), uses_(kernel) {
    for (const Instruction& one : kernel.body)
      if (is_product(one)) factors_.insert(one.in.begin(), one.in.end());
  }

  void run() {
    std::vector<Instruction> old = std::move(kernel_.body);
    kernel_.body.clear();
    kernel_.body.reserve(old.size());
    for (Instruction& one : old) {
      if (is_product(one)) shift(one);
      kernel_.body.push_back(std::move(one));
      const Instruction& last = kernel_.body.back();
      if (last.op == kScalar && factors_.contains(last.out[0])) add_shift(Instruction(last));
    }
    drop_unread(kernel_, uses_);  // factors that were only multiplied by
  }

 private:
  ElementType element(RegisterId id) const { return kernel_.registers[static_cast<size_t>(id)].element; }
  bool is_product(const Instruction& one) const {
    return one.op == kMul && !one.memory && element(one.out[0]).is_int();
  }

  // Behind a factor, where it is a power of two.
  void add_shift(Instruction constant) {
    const RegisterId id = constant.out[0];
    if (!uses_.once(id)) return;
    const int width = element(id).bits();
    const auto bits = static_cast<uint64_t>(*constant.attributes.find(kBits)->get_if<int64_t>());
    const uint64_t factor = width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
    constexpr uint64_t kDoubled = 2;
    if (factor < kDoubled || !std::has_single_bit(factor)) return;
    if (factor == kDoubled) return void(shifts_[id] = -1);
    constant.out = {kernel_.add_lanes(element(id))};
    constant.attributes.set(kBits, int64_t{std::countr_zero(factor)});
    shifts_[id] = constant.out[0];
    kernel_.body.push_back(std::move(constant));
  }
  void shift(Instruction& product) const {
    for (const size_t factor : {1, 0}) {
      const auto by = shifts_.find(product.in[factor]);
      if (by == shifts_.end()) continue;
      const RegisterId x = product.in[1 - factor];
      product.op = by->second < 0 ? kAdd : kMulByPower;
      product.in = {x, by->second < 0 ? x : by->second};
      return;
    }
  }

  LinearKernel& kernel_;
  const Uses uses_;
  std::set<RegisterId> factors_;             // of products
  std::map<RegisterId, RegisterId> shifts_;  // by the factor; -1: what is multiplied by it is doubled
};

}  // namespace

void multiply_by_powers(LinearKernel& kernel) {
  const auto multiplies = [&](const Instruction& one) {
    return one.op == kMul && kernel.registers[static_cast<size_t>(one.out[0])].element.is_int();
  };
  if (std::ranges::any_of(kernel.body, multiplies)) Shifter(kernel).run();
}

}  // namespace tenon::x86
