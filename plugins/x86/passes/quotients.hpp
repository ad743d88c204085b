// Quotients that passes replace by products with two parts of the divisor's reciprocal: which they are, what they cost,
// and the instructions that compute the parts (passes/standing_divisors.cpp derives them). Imports names as
// internal.hpp does.
#pragma once
#include <map>
#include <utility>

#include "x86/body/factors.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {

class Quotients {
 public:
  Quotients(const LinearKernel& kernel, const PassOptions& options);

  // Only quotients of f32 vectors, not those of uniform values.
  bool holds(const Instruction& one) const;
  // Cycles of one vector unit.
  double cycles_of(const Instruction& one) const;
  // Cycles of the divider for a quotient, in each of which every vector unit executes something else.
  double unit_cycles_of(const Instruction& quotient) const { return cycles_of(quotient) * options_.vector_units; }
  // The end of the straight-line stretch of code that contains `begin`, and the cycles of its other instructions per
  // quotient.
  std::pair<size_t, double> stretch_from(size_t begin) const;

 private:
  const LinearKernel& kernel_;
  const PassOptions& options_;
  const Alike alike_;
};

struct DivisorFactors {
  QuotientParts parts;
  RegisterId odd = -1;  // whether the divisor is odd; -1: it is moderate
};

// Appends to the kernel's body.
class FactorWriter {
 public:
  explicit FactorWriter(LinearKernel& kernel) : kernel_(kernel) {}

  // Constants are not shared between stretches of code: they would occupy a register in between.
  void begin_stretch() { numbers_.clear(); }
  DivisorFactors write_factors(RegisterId divisor, bool moderate, int label);

 private:
  RegisterId write(Name op, RegisterIds in, int label);
  RegisterId write_number(float number);

  LinearKernel& kernel_;
  std::map<float, RegisterId> numbers_;  // constants for factors
};

}  // namespace tenon::x86
