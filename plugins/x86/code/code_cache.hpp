// CodeCache: keeps generated code by a hash of what it was generated from, in the process and in files.
//
//   const CodeKey key = code_key(str(print(kernel), options), isa);
//   TENON_TRY(code, CodeCache::shared().get(key, [&] { return assemble(kernel, table, target); }));
//   code->function()(params);
//
// Files: one for each key, in the folder x86 of FileCache::default_folder(). A file names the build of this library
// that wrote it, its own key, and the hash of its contents. A file with a mismatch is ignored, with a warning unless
// only the build differs.
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include <tenon/support/file_cache.hpp>
#include <tenon/support/result.hpp>

#include "x86/code/jit_memory.hpp"

namespace tenon::x86 {

// Hash of what the code is generated from, including its instruction set.
using CodeKey = ContentKey;
CodeKey code_key(std::string_view content, Isa isa);

// Serialisation to the bytes of a file, and back. Any damage, and any other key or build, is an error.
std::vector<std::byte> write_code_object(const CodeObject& object, const CodeKey& key);
Result<CodeObject> read_code_object(std::span<const std::byte> bytes, const CodeKey& key);

// Files of code objects. Any thread, any number of processes. Failures give warnings, once for each kind.
class CodeFiles {
 public:
  // Empty folder: no files. The folder is created when the first file is written.
  explicit CodeFiles(std::string folder, uint64_t max_bytes = kMaxBytes)
      : files_(std::move(folder), {.folder = "x86", .suffix = ".code", .max_bytes = max_bytes}) {}
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

  std::optional<CodeObject> load(const CodeKey& key) const;
  void store(const CodeKey& key, const CodeObject& object) const;

 private:
  FileCache files_;
};

// Any thread. Two threads that request the same key at once may both generate it; one of the two is kept.
class CodeCache {
 public:
  // With FileCache::default_folder() and JitMemory::shared().
  static CodeCache& shared();
  CodeCache(CodeFiles files, JitMemory& memory, size_t max_bytes = size_t{64} << 20)
      : files_(std::move(files)), memory_(memory), max_bytes_(max_bytes) {}

  using Make = std::function<Result<CodeObject>()>;
  // From the process, else from a file, else by `make`. The cache keeps the most recently used objects, up to max_bytes
  // of code, marks and names; users share ownership of what they use.
  Result<std::shared_ptr<const JitCode>> get(const CodeKey& key, const Make& make);

  struct Counts {
    size_t from_process = 0, from_files = 0, made = 0;
  };
  Counts counts() const;

 private:
  struct Kept {
    CodeKey key;
    std::shared_ptr<const JitCode> code;
    size_t bytes;  // CodeObject::footprint()
  };
  std::shared_ptr<const JitCode> find(const CodeKey& key);
  std::shared_ptr<const JitCode> keep(const CodeKey& key, std::shared_ptr<const JitCode> code);

  const CodeFiles files_;
  JitMemory& memory_;
  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<Kept> kept_;  // most recently used first
  std::unordered_map<CodeKey, std::list<Kept>::iterator, ContentKeyHash> by_key_;
  size_t bytes_ = 0;
  Counts counts_;
};

}  // namespace tenon::x86
