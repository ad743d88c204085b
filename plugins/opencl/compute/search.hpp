// The measured search (option `search: measured`): finds the fastest form of a compute kernel on this device for the
// extents of a call.
//
// Each form runs on memory of the call's sizes. The choice is kept in the process and in a file of the folder `opencl`,
// keyed by the sources of all forms, extents, device and driver. A process that finds it measures nothing and makes the
// same choice. A file that is damaged, or is about other forms, is ignored with a warning.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/support/file_cache.hpp>

#include "opencl/compute/compute.hpp"

namespace tenon::opencl {

class ClStream;

// The contents of a file.
struct FormChoice {
  char magic[16];
  uint64_t key_high, key_low, forms, chosen, hash;
  static FormChoice of(const ContentKey& key, size_t forms, size_t chosen);
};

// Any thread.
class FormChoices {
 public:
  explicit FormChoices(FileCache files) : files_(std::move(files)) {}
  std::optional<size_t> find(const ContentKey& key, size_t forms);
  void keep(const ContentKey& key, size_t forms, size_t chosen);

  struct Counts {
    size_t measured = 0, from_files = 0;
  };
  Counts counts() const;

 private:
  const FileCache files_;
  mutable std::mutex mutex_;
  std::unordered_map<ContentKey, size_t, ContentKeyHash> known_;
  Counts counts_;
};

using ComputeForms = std::vector<std::shared_ptr<const ComputeKernel>>;

// A call of a kernel that has several forms.
struct FormCall {
  std::string_view stage;
  const ComputeForms& forms;
  const CallShapes& shapes;
  std::vector<size_t> port_bytes;  // of its operands and results, in order
  // The work items for an amount of independent work.
  std::function<int64_t(int64_t)> items_for;
  int64_t work_group = 1;
};
// Waits for the stream.
Result<size_t> fastest_form(ClStream& stream, const FormCall& call);

}  // namespace tenon::opencl
