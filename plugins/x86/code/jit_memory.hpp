// JitMemory: the memory that generated code runs in.
//
// Code is in anonymous files (memfd), which are mapped readable and executable. It is written through the file, not
// through memory. No mapping of it is ever writable, and none changes its protection, so this works under
// prctl(PR_SET_MDWE) and under SELinux without execmem. Small kernels share pages; each starts at a 64-byte aligned
// address. Freed code is overwritten with int3.
//
//   TENON_TRY(code, JitMemory::shared().add(std::make_shared<CodeObject>(std::move(object))));
//   code->function()(params);
//
// A child process made by fork() runs its parent's code, and places its own code in files of its own.
#pragma once
#include <functional>
#include <memory>
#include <mutex>

#include <tenon/support/result.hpp>

#include "x86/code/code_object.hpp"

namespace tenon::x86 {

class JitMemory;

// Runnable code; it must not be running any more when this is destroyed. Any thread.
class JitCode {
 public:
  JitCode(const JitCode&) = delete;
  JitCode& operator=(const JitCode&) = delete;
  ~JitCode();

  const void* address() const { return address_; }
  KernelFunction function() const { return reinterpret_cast<KernelFunction>(address_); }
  const CodeObject& object() const { return *object_; }

 private:
  friend class JitMemory;
  struct Region;
  JitCode(std::shared_ptr<const CodeObject> object, std::shared_ptr<Region> region, const void* address)
      : object_(std::move(object)), region_(std::move(region)), address_(address) {}
  std::shared_ptr<const CodeObject> object_;
  std::shared_ptr<Region> region_;
  const void* address_;
};

// Any thread.
class JitMemory {
 public:
  static JitMemory& shared();  // the process's own

  // Places the bytes where they can run, and notifies debuggers and profilers (code_observers.hpp). An error when the
  // operating system provides no executable memory. The code may outlive this object.
  Result<std::shared_ptr<const JitCode>> add(std::shared_ptr<const CodeObject> object);

  struct Usage {
    size_t kernels = 0, used_bytes = 0, mapped_bytes = 0;  // used: rounded up to multiples of 64
  };
  Usage usage() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<JitCode::Region>> regions_;
};

}  // namespace tenon::x86
