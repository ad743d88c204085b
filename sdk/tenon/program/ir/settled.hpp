// Kernels whose calls can be settled.
#pragma once
#include <vector>

#include <tenon/program/ir/kernel.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/support/settled_call.hpp>

namespace tenon::program {

// A second base of a KernelState. Asked for by dynamic_cast, so that states without it stay as they are.
class TENON_API SettlingState {
 public:
  virtual ~SettlingState();
  // Adds what a call with these operands does, on the calling thread alone; true if it did. They hold as long as
  // the state does and makes no other call. False: nothing is added, the call is made as any other.
  virtual Result<bool> settle(const CallContext& context, std::vector<SettledCall>& calls) = 0;
};

}  // namespace tenon::program
