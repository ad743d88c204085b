// ProgramCache: built programs of one device by their sources, in the process and as binaries in files.
//
// Files: one for each combination of source, options, device and driver, in the folder opencl of
// FileCache::default_folder(). A file has its own key and the hash of its contents; with a mismatch it is ignored with
// a warning. A binary that the driver refuses is built anew and replaced.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/support/file_cache.hpp>

#include "opencl/device_info.hpp"

namespace tenon::opencl {

struct BuiltProgram {
  std::shared_ptr<const Program> program;
  std::string suffix;  // of its kernels' names, where the program holds other sources, too
};
struct WantedProgram {
  const std::string* source;
  std::string what;  // names it in errors: "kernel 'gelu'"
};

// Who keeps compiled code from one process to the next: this cache in files, or the driver in its own.
enum class Binaries : uint8_t { files, of_driver };
// Drivers that compile at launch are not asked for binaries: DeviceInfo::compiles_at_launch.
Binaries binaries_of(const DeviceInfo& info);

// Any thread. The device must outlive it and its programs.
class ProgramCache {
 public:
  ProgramCache(const Api& cl, const DeviceInfo& info, cl_device_id id, cl_context context, FileCache files,
               Binaries binaries = Binaries::files);

  // When the device's compiler rejects a source, the error has its log.
  Result<std::shared_ptr<const BuiltProgram>> get(const std::string& source, std::string_view what);
  // The same for many, in order: those that the process does not have are built as one program (batch.hpp).
  Result<std::vector<std::shared_ptr<const BuiltProgram>>> get_all(std::span<const WantedProgram> wanted);

  struct Counts {
    size_t from_process = 0, from_files = 0, built = 0;
  };
  Counts counts() const;

 private:
  ContentKey key_of(const std::string& source) const;
  std::shared_ptr<const BuiltProgram> known(const ContentKey& key);
  std::shared_ptr<const BuiltProgram> keep(const ContentKey& key, std::shared_ptr<const BuiltProgram> made);
  Result<std::shared_ptr<const Program>> make(const std::string& source, std::string_view what);
  Result<Program> build_source(const std::string& source, std::string_view what) const;
  Result<Program> load_binary(const ContentKey& key, const std::string& options) const;
  void store_binary(const ContentKey& key, const Program& program) const;
  Result<void> build(const Program& program, const std::string& options, std::string_view what) const;

  const Api& cl_;
  const DeviceInfo& info_;
  const cl_device_id id_;
  const cl_context context_;
  const FileCache files_;
  const Binaries binaries_;
  mutable std::mutex mutex_;
  std::unordered_map<ContentKey, std::weak_ptr<const BuiltProgram>, ContentKeyHash> programs_;
  Counts counts_;
};

}  // namespace tenon::opencl
