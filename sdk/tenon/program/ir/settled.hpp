// Settled kernel calls: calls reduced to machine code and fixed words (support/settled_call.hpp).
#pragma once
#include <vector>

#include <tenon/program/ir/kernel.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/support/settled_call.hpp>

namespace tenon::program {

// A second base class of a KernelState, found by dynamic_cast, so that states without it need not change.
class TENON_API SettlingState {
 public:
  virtual ~SettlingState();
  // Appends what a call with these operands does, using the calling thread alone, and returns true. The appended calls
  // are valid as long as the state lives and makes no other call. False: nothing is appended, and the call has to be
  // made as usual.
  virtual Result<bool> settle(const CallContext& context, std::vector<SettledCall>& calls) = 0;
};

}  // namespace tenon::program
