// Bundles: groups of four instructions that do the same to four adjacent vectors, and could be one on a vector of
// bytes.
#pragma once
#include <optional>
#include <vector>

#include "x86/passes/uses.hpp"

namespace tenon::x86 {

// Four consecutive instructions that do the same to four adjacent vectors. Each operand is one uniform vector, or the
// four results of another bundle in the same straight-line stretch of code, in order.
struct Bundle {
  static constexpr int kParts = 4;
  size_t first = 0;           // position of the first of the four in the kernel's body
  std::vector<int> operands;  // the bundle that computes each operand; -1: one vector for all four
  std::vector<int> readers;   // bundles, each once
  bool read_apart = false;    // also read by an instruction outside all bundles
};

// The bundles of a kernel, which must not change meanwhile. Time: linear in its instructions.
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
  std::vector<int> bundle_of_;  // the bundle that computes each register; -1: none
  int first_here_ = 0;          // first bundle of the current stretch of code
};

}  // namespace tenon::x86
