// JitMemory: where generated code runs.
//
// Code lies in anonymous files (memfd), mapped readable and executable. It is written through the file, not through
// memory, so this process never has a writable mapping of it, not even for a moment, and no mapping changes its
// protection: all this works under prctl(PR_SET_MDWE) and under SELinux without execmem. Small kernels share pages;
// each starts at an address that 64 divides. Freed code becomes int3.
//
//   TENON_TRY(code, JitMemory::shared().add(std::make_shared<CodeObject>(std::move(object))));
//   code->function()(params);
//
// A process made by fork() runs its parent's code, and writes its own elsewhere.
#pragma once
#include <functional>
#include <memory>
#include <mutex>

#include <tenon/support/result.hpp>

#include "x86/code/code_object.hpp"

namespace tenon::x86 {

class JitMemory;

// Code that can run, until this is destroyed. Nobody may be in it then. Any thread.
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

  // Puts the bytes where they can run, and tells debuggers and profilers (code_observers.hpp). An error when the
  // operating system gives no memory that may be executed. The code may outlive this object.
  Result<std::shared_ptr<const JitCode>> add(std::shared_ptr<const CodeObject> object);

  struct Usage {
    size_t kernels = 0, used_bytes = 0, mapped_bytes = 0;  // used: with the gaps up to the next multiple of 64
  };
  Usage usage() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<JitCode::Region>> regions_;
};

}  // namespace tenon::x86
