// Square roots of vectors by products (Newton's iteration on an estimate), to relieve the divider. For 512 bits the
// divider takes twice as long for a root as two multipliers take for the products, and several roots and quotients of
// one loop wait for it.
//
//   %2 = Sqrt %1 {moderate = 1}      %2 = SqrtByProducts %1      the same bits
#include <algorithm>
#include <span>
#include <vector>

#include "x86/names.hpp"
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

const Name kSqrtByProducts("SqrtByProducts");
// The estimated time must fall to at most this share, by the cycles of the table's rows.
constexpr double kWorth = .8;

bool goes_through_divider(const Instruction& one) {
  return one.op == kDiv || one.op == kSqrt || one.op == kDivAlike || one.op == kSqrtAlike;
}

bool may_be_products(const LinearKernel& kernel, const Instruction& one) {
  return one.op == kSqrt && !one.memory && one.attributes.find(kModerate) &&
         kernel.registers[static_cast<size_t>(one.out[0])].element == kF32;
}

// Moves one root after the other to the multipliers, as long as that reduces the longer time, of the divider or of all
// other units.
void balance(const LinearKernel& kernel, std::span<Instruction> stretch, const PassOptions& options) {
  double divider = 0, beside = 0;
  for (const Instruction& one : stretch)
    goes_through_divider(one) ? divider += options.cycles(kernel, one)
                              : beside += options.cycles(kernel, one) / options.vector_units;
  const double before = std::max(divider, beside);
  std::vector<Instruction*> roots;
  for (Instruction& one : stretch) {
    if (!may_be_products(kernel, one)) continue;
    Instruction products = one;
    products.op = kSqrtByProducts;
    const double less = divider - options.cycles(kernel, one),
                 more = beside + options.cycles(kernel, products) / options.vector_units;
    if (std::max(less, more) >= std::max(divider, beside)) continue;
    roots.push_back(&one);
    divider = less, beside = more;
  }
  if (std::max(divider, beside) > kWorth * before) return;
  for (Instruction* root : roots) root->op = kSqrtByProducts;
}

}  // namespace

void take_roots_by_products(LinearKernel& kernel, const PassOptions& options) {
  const bool long_vectors = kernel.lanes * kF32.bits() == vector_bits(Isa::avx512);
  if (options.isa != Isa::avx512 || !long_vectors || !options.cycles || !has_any(kernel, {kSqrt})) return;
  for_each_stretch(kernel, [&](std::span<Instruction> stretch, Name) { balance(kernel, stretch, options); });
}

}  // namespace tenon::x86
