// Bundles: what four vectors side by side have done to them alike, where they could go as one vector of bytes.
#pragma once
#include <optional>
#include <vector>

#include "x86/passes/uses.hpp"

namespace tenon::x86 {

// Four instructions that stand one behind the other and do the same to four vectors which lie side by side. Each
// operand is one vector, alike in all lanes, or the four results of another bundle of the same stretch of code, in
// order.
struct Bundle {
  static constexpr int kParts = 4;
  size_t first = 0;           // of the four, in the kernel's body
  std::vector<int> operands;  // the bundle that makes each; -1: one vector for all four
  std::vector<int> readers;   // bundles, each once
  bool read_apart = false;    // by an instruction of no bundle, too
};

// Of a kernel that stays as it is meanwhile. Takes time in proportion to its instructions.
class Bundles {
 public:
  Bundles(const LinearKernel& kernel, const Uses& uses);

  const std::vector<Bundle>& all() const { return bundles_; }
  const Instruction& at(const Bundle& bundle, int part = 0) const {
    return kernel_.body[bundle.first + static_cast<size_t>(part)];
  }

 private:
  std::optional<Bundle> bundle_at(size_t first) const;
  bool follows(const Instruction& one, const Instruction& other, int part) const;
  std::optional<int> operand_of(size_t first, size_t i) const;
  RegisterId operand(size_t first, int part, size_t i) const {
    return kernel_.body[first + static_cast<size_t>(part)].in[i];
  }
  void find_readers();

  const LinearKernel& kernel_;
  const Uses& uses_;
  const Alike alike_;
  std::vector<Bundle> bundles_;
  std::vector<int> bundle_of_;  // that a register is a result of; -1: of none
  int first_here_ = 0;          // bundle of the stretch of code that is looked at
};

}  // namespace tenon::x86
