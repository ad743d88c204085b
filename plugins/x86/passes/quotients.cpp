#include "x86/passes/quotients.hpp"

#include <bit>
#include <cstdint>

#include "x86/names.hpp"

namespace tenon::x86 {

Quotients::Quotients(const LinearKernel& kernel, const PassOptions& options)
    : kernel_(kernel), options_(options), alike_(kernel, Uses(kernel)) {}

bool Quotients::holds(const Instruction& one) const {
  return one.op == kDiv && !one.memory && kernel_.registers[static_cast<size_t>(one.out[0])].element == kF32 &&
         !alike_.holds(one.out[0]);
}

double Quotients::cycles_of(const Instruction& one) const {
  constexpr double kOfQuotient = 8;  // where no machine is known
  return options_.cycles ? options_.cycles(kernel_, one) : holds(one) ? kOfQuotient : 1;
}

std::pair<size_t, double> Quotients::stretch_from(size_t begin) const {
  size_t end = begin + 1;
  double quotients = 0;
  for (; end < kernel_.body.size() && !is_border(kernel_.body[end].op); ++end) quotients += holds(kernel_.body[end]);
  if (quotients == 0) return {end, 0};
  double beside = 0;
  for (size_t i = begin + 1; i < end; ++i)
    if (!holds(kernel_.body[i])) beside += cycles_of(kernel_.body[i]);
  return {end, beside / quotients};
}

DivisorFactors FactorWriter::write_factors(RegisterId divisor, bool moderate, int label) {
  const auto make = [&](Name op, RegisterIds in) { return write(op, std::move(in), label); };
  const auto number = [&](float number) {
    const auto [made, is_new] = numbers_.try_emplace(number, -1);
    if (is_new) made->second = write_number(number);
    return made->second;
  };
  DivisorFactors made{parts_of_divisor(divisor, make, number)};
  if (moderate) return made;
  made.odd = kernel_.add_lanes(kBool);
  kernel_.body.push_back({.op = "OddDivisor", .in = {divisor}, .out = {made.odd}, .label = label});
  return made;
}

RegisterId FactorWriter::write(Name op, RegisterIds in, int label) {
  const RegisterId out = kernel_.add_lanes(kF32);
  kernel_.body.push_back({.op = op, .in = std::move(in), .out = {out}, .label = label});
  return out;
}

RegisterId FactorWriter::write_number(float number) {
  const RegisterId out = write(kScalar, {}, -1);
  kernel_.body.back().attributes.set("bits", static_cast<int64_t>(std::bit_cast<uint32_t>(number)));
  return out;
}

}  // namespace tenon::x86
